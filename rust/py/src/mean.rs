//! Binding of `mean`.

use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use turnout::frequency::{NodeProbabilities, ReportCode, Selection};
use turnout::mean::{Bounds, Dimensions, Duchi, Hybrid, MeanSums, Mechanism, Piecewise, Wide};
use turnout::parameters::Epsilon;

use crate::arrays::{CodeArray, floats, shorts, slice};
use crate::errors::{exception, invalid_type};
use crate::noise::{Seed, streams};
use crate::participation::uniform;
use crate::pool::run;

/// The coordinates of the cells if they were sampled, the cells, and the rates of their nodes.
type Reports<'py> =
    (Option<Bound<'py, PyArray1<u16>>>, Bound<'py, PyAny>, Option<Bound<'py, PyArray1<f64>>>);
/// For every coordinate the number of reports, the sum of cells, the sum of squares.
type Plain = Vec<(u64, u128, u128)>;
/// The six weighted sums of every coordinate, each as low and high part: low + 2^64 high.
type Weighted = Vec<[(u128, u128); 6]>;
type Sums = (u64, Plain, Option<Weighted>);

#[derive(Clone, Copy)]
enum Kind {
    Duchi(Duchi),
    Hybrid(Hybrid),
    Piecewise(Piecewise),
}

/// Calls a generic function with the mechanism behind a [`Kind`].
macro_rules! with_mechanism {
    ($kind:expr, |$mechanism:ident| $body:expr) => {
        match &$kind {
            Kind::Duchi($mechanism) => $body,
            Kind::Hybrid($mechanism) => $body,
            Kind::Piecewise($mechanism) => $body,
        }
    };
}

/// A mechanism for means.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct MeanKernel(Kind);

#[pymethods]
impl MeanKernel {
    #[new]
    fn new(
        py: Python<'_>,
        kind: &str,
        epsilon: f64,
        bounds: (f64, f64),
        dimensions: u64,
    ) -> PyResult<Self> {
        let parameters = || {
            let bounds = Bounds::new(bounds.0, bounds.1)?;
            Ok((Epsilon::new(epsilon)?, bounds, Dimensions::new(dimensions)?))
        };
        let (epsilon, bounds, dimensions) =
            parameters().map_err(|error: turnout::Error| exception(py, &error))?;
        match kind {
            "duchi" => Duchi::new(epsilon, bounds, dimensions).map(Kind::Duchi),
            "hybrid" => Hybrid::new(epsilon, bounds, dimensions).map(Kind::Hybrid),
            "piecewise" => Piecewise::new(epsilon, bounds, dimensions).map(Kind::Piecewise),
            _ => return Err(invalid_type(py, format!("kind = {kind:?} is not known"))),
        }
        .map(Self)
        .map_err(|error| exception(py, &error))
    }

    /// The number of cells.
    #[getter]
    fn cells(&self) -> u64 {
        with_mechanism!(self.0, |mechanism| mechanism.cells())
    }

    /// How many coordinates a report is about.
    #[getter]
    fn sampled(&self) -> usize {
        with_mechanism!(self.0, |mechanism| mechanism.sampled())
    }

    /// What makes the doubled offset of a cell an estimate, on the scale from -1 to 1.
    #[getter]
    fn scale(&self) -> f64 {
        with_mechanism!(self.0, |mechanism| mechanism.scale())
    }

    /// The likelihood ratio of one reported cell, as numerator and denominator.
    #[getter]
    fn ratio(&self) -> (u128, u128) {
        match &self.0 {
            Kind::Duchi(mechanism) => (mechanism.words().0, mechanism.words().1.into()),
            Kind::Hybrid(mechanism) => mechanism.ratio(),
            Kind::Piecewise(mechanism) => mechanism.ratio(),
        }
    }

    /// The cells of the window, and how many of the 2^64 words make a cell uniform over the grid.
    #[getter]
    fn law(&self) -> Option<(u64, u64)> {
        match &self.0 {
            Kind::Duchi(_) => None,
            Kind::Hybrid(mechanism) => mechanism.law(),
            Kind::Piecewise(mechanism) => Some(mechanism.law()),
        }
    }

    /// The larger of the two cells of Duchi's part of the hybrid mechanism, and its `W`.
    #[getter]
    fn ends(&self) -> Option<(u64, u64)> {
        match &self.0 {
            Kind::Hybrid(mechanism) => Some(mechanism.ends()),
            Kind::Duchi(_) | Kind::Piecewise(_) => None,
        }
    }

    /// The realised epsilon, rounded up.
    #[getter]
    fn realized_epsilon(&self) -> f64 {
        with_mechanism!(self.0, |mechanism| mechanism.realized_epsilon())
    }

    /// One report for each node that takes part; `rate` is one number or one for each node.
    #[pyo3(signature = (values, rate, seed=None))]
    fn randomize<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        rate: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> PyResult<Reports<'py>> {
        let cells = self.cells();
        if cells <= u8::RANGE {
            self.reports::<u8>(values, rate, seed)
        } else if cells <= u16::RANGE {
            self.reports::<u16>(values, rate, seed)
        } else {
            self.reports::<u32>(values, rate, seed)
        }
    }

    /// Selects, randomizes and adds up in one pass.
    #[pyo3(signature = (values, rate, seed=None))]
    fn collect<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        rate: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> PyResult<Sums> {
        let py = values.py();
        let values = floats("values", values)?;
        let values = slice(py, "values", &values)?;
        let rate = Rate::extract(rate)?;
        let rate = rate.view(py)?;
        let sums = run(py, || {
            let (selection, streams) = (rate.selection()?, streams(seed)?);
            with_mechanism!(self.0, |mechanism| mechanism.collect(values, &selection, &streams))
        })?;
        Ok(unfold(&sums))
    }

    /// Adds up reports.
    fn tally(
        &self,
        cells: &Bound<'_, PyAny>,
        coordinates: Option<&Bound<'_, PyAny>>,
        probabilities: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Sums> {
        let py = cells.py();
        let coordinates = coordinates.map(|all| shorts("coordinates", all)).transpose()?;
        let probabilities = probabilities.map(|all| floats("probabilities", all)).transpose()?;
        let places = coordinates.as_ref().map(|all| slice(py, "coordinates", all)).transpose()?;
        let rates =
            probabilities.as_ref().map(|all| slice(py, "probabilities", all)).transpose()?;
        match CodeArray::extract("cells", cells)? {
            CodeArray::U8(all) => self.sums(py, slice(py, "cells", &all)?, places, rates),
            CodeArray::U16(all) => self.sums(py, slice(py, "cells", &all)?, places, rates),
            CodeArray::U32(all) => self.sums(py, slice(py, "cells", &all)?, places, rates),
            CodeArray::I64(_) => Err(invalid_type(
                py,
                "cells must be of dtype uint8, uint16 or uint32, got int64".to_owned(),
            )),
        }
    }
}

impl MeanKernel {
    fn reports<'py, O: ReportCode + Element>(
        &self,
        values: &Bound<'py, PyAny>,
        rate: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> PyResult<Reports<'py>> {
        let py = values.py();
        let values = floats("values", values)?;
        let values = slice(py, "values", &values)?;
        let rate = Rate::extract(rate)?;
        let rate = rate.view(py)?;
        let reports = run(py, || {
            let (selection, streams) = (rate.selection()?, streams(seed)?);
            with_mechanism!(self.0, |mechanism| mechanism
                .randomize::<O, _>(values, &selection, &streams))
        })?;
        Ok((
            reports.coordinates.map(|all| all.into_pyarray(py)),
            reports.cells.into_pyarray(py).into_any(),
            reports.probabilities.map(|all| all.into_pyarray(py)),
        ))
    }

    fn sums<O: ReportCode>(
        &self,
        py: Python<'_>,
        cells: &[O],
        coordinates: Option<&[u16]>,
        rates: Option<&[f64]>,
    ) -> PyResult<Sums> {
        let sums = run(py, || {
            let rates = rates.map(NodeProbabilities::new).transpose()?;
            with_mechanism!(self.0, |mechanism| mechanism.tally(cells, coordinates, rates))
        })?;
        Ok(unfold(&sums))
    }
}

/// One rate for all nodes, or one for each.
enum Rate<'py> {
    Common(f64),
    Personal(PyReadonlyArray1<'py, f64>),
}

/// The same, borrowed.
enum RateView<'a> {
    Common(f64),
    Personal(&'a [f64]),
}

impl<'py> Rate<'py> {
    fn extract(rate: &Bound<'py, PyAny>) -> PyResult<Self> {
        // The array first: NumPy before 2.4 takes an array of one entry for a number.
        if let Ok(rates) = rate.extract() {
            return Ok(Self::Personal(rates));
        }
        match rate.extract() {
            Ok(rate) => Ok(Self::Common(rate)),
            Err(_) => Ok(Self::Personal(floats("probabilities", rate)?)),
        }
    }

    fn view(&self, py: Python<'_>) -> PyResult<RateView<'_>> {
        match self {
            Self::Common(rate) => Ok(RateView::Common(*rate)),
            Self::Personal(rates) => Ok(RateView::Personal(slice(py, "probabilities", rates)?)),
        }
    }
}

impl<'a> RateView<'a> {
    fn selection(&self) -> turnout::Result<Selection<'a>> {
        match *self {
            Self::Common(rate) => uniform(rate),
            Self::Personal(rates) => Ok(Selection::personalized(NodeProbabilities::new(rates)?)),
        }
    }
}

fn unfold(sums: &MeanSums) -> Sums {
    let plain = sums.coordinates.iter().map(|sums| (sums.seen, sums.first, sums.second)).collect();
    let weighted = sums.weighted.as_ref().map(|all| {
        all.iter()
            .map(|moments| {
                let [a, b, c] = moments.inverse.map(parts);
                let [d, e, f] = moments.inverse_squared.map(parts);
                [a, b, c, d, e, f]
            })
            .collect()
    });
    (sums.received, plain, weighted)
}

const fn parts(sum: Wide) -> (u128, u128) {
    (sum.low, sum.high)
}
