//! Binding of `mean`.

use numpy::Element;
use pyo3::prelude::*;
use turnout_core::frequency::{Codes, ReportCode};
use turnout_core::mean::{Bounds, Dimensions, Duchi, Hybrid, MeanSums, Mechanism, Piecewise, Wide};
use turnout_core::parameters::Epsilon;

use crate::arrays::{CodeArray, Out, mismatch, vector};
use crate::errors::{Failure, Result};
use crate::noise::Seed;
use crate::oracle::with_rates;
use crate::participation::run_selected;

/// The coordinates of the cells if they were sampled, the cells, and the rates of their nodes.
type Reports<'py> = (Option<Out<u16>>, Bound<'py, PyAny>, Option<Out<f64>>);
/// For every coordinate the number of reports, the sum of cells, the sum of squares.
type Plain = Vec<(u64, u128, u128)>;
/// The six weighted sums of every coordinate, each as low and high part: low + 2^64 high.
type Weighted = Vec<Vec<(u128, u128)>>;
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
    fn new(kind: &str, epsilon: f64, bounds: (f64, f64), dimensions: u64) -> Result<Self> {
        let bounds = Bounds::new(bounds.0, bounds.1)?;
        let (epsilon, dimensions) = (Epsilon::new(epsilon)?, Dimensions::new(dimensions)?);
        Ok(Self(match kind {
            "duchi" => Kind::Duchi(Duchi::new(epsilon, bounds, dimensions)?),
            "hybrid" => Kind::Hybrid(Hybrid::new(epsilon, bounds, dimensions)?),
            "piecewise" => Kind::Piecewise(Piecewise::new(epsilon, bounds, dimensions)?),
            _ => return Err(Failure::Type(format!("kind = {kind:?} is not known"))),
        }))
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
    ) -> Result<Reports<'py>> {
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
    fn collect(
        &self,
        values: &Bound<'_, PyAny>,
        rate: &Bound<'_, PyAny>,
        seed: Option<Seed>,
    ) -> Result<Sums> {
        let values = &*vector("values", values)?;
        let sums = run_selected(rate, seed, |selection, streams| {
            with_mechanism!(self.0, |mechanism| mechanism.collect(values, selection, streams))
        });
        sums.map(|sums| unfold(&sums))
    }

    /// Adds up reports.
    fn tally(
        &self,
        cells: &Bound<'_, PyAny>,
        coordinates: Option<&Bound<'_, PyAny>>,
        probabilities: Option<&Bound<'_, PyAny>>,
    ) -> Result<Sums> {
        let places = coordinates.map(|all| vector("coordinates", all)).transpose()?;
        let (py, places) = (cells.py(), places.as_deref());
        match CodeArray::extract("cells", cells)?.codes() {
            Codes::U8(cells) => self.sums(py, cells, places, probabilities),
            Codes::U16(cells) => self.sums(py, cells, places, probabilities),
            Codes::U32(cells) => self.sums(py, cells, places, probabilities),
            Codes::I64(_) => Err(mismatch("cells", 1, "uint8, uint16 or uint32", cells)),
        }
    }
}

impl MeanKernel {
    fn reports<'py, O: ReportCode + Element>(
        &self,
        values: &Bound<'py, PyAny>,
        rate: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> Result<Reports<'py>> {
        let py = values.py();
        let values = &*vector("values", values)?;
        let reports = run_selected(rate, seed, |selection, streams| {
            with_mechanism!(self.0, |m| m.randomize::<O, _>(values, selection, streams))
        })?;
        let cells = Out(reports.cells).into_pyobject(py)?.into_any();
        Ok((reports.coordinates.map(Out), cells, reports.probabilities.map(Out)))
    }

    fn sums<O: ReportCode>(
        &self,
        py: Python<'_>,
        cells: &[O],
        coordinates: Option<&[u16]>,
        probabilities: Option<&Bound<'_, PyAny>>,
    ) -> Result<Sums> {
        let sums = with_rates(py, probabilities, |rates| {
            with_mechanism!(self.0, |mechanism| mechanism.tally(cells, coordinates, rates))
        });
        sums.map(|sums| unfold(&sums))
    }
}

fn unfold(sums: &MeanSums) -> Sums {
    let plain = sums.coordinates.iter().map(|sums| (sums.seen, sums.first, sums.second)).collect();
    let parts = |sum: &Wide| (sum.low, sum.high);
    let weighted = sums.weighted.as_ref().map(|all| {
        all.iter()
            .map(|moments| {
                moments.inverse.iter().chain(&moments.inverse_squared).map(parts).collect()
            })
            .collect()
    });
    (sums.received, plain, weighted)
}
