//! Binding of `frequency::square_wave`.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::mean::Bounds;
use turnout::parameters::{DomainSize, Epsilon};

use crate::arrays::{floats, slice};
use crate::errors::exception;
use crate::noise::Seed;
use crate::oracle::{self, Shape, Support, Weighted, WeightedCollection};
use crate::pool::run;

/// The square wave mechanism on the bins of a number.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct SquareWave {
    oracle: core::SquareWave,
    bounds: Bounds,
}

#[pymethods]
impl SquareWave {
    #[new]
    fn new(py: Python<'_>, epsilon: f64, bounds: (f64, f64), bins: u64) -> PyResult<Self> {
        let build = || {
            let oracle = core::SquareWave::new(Epsilon::new(epsilon)?, DomainSize::new(bins)?)?;
            Ok(Self { oracle, bounds: Bounds::new(bounds.0, bounds.1)? })
        };
        build().map_err(|error| exception(py, &error))
    }

    /// How many cells are near a bin.
    #[getter]
    fn window(&self) -> u64 {
        self.oracle.window()
    }

    /// How many cells there are.
    #[getter]
    fn cells(&self) -> u64 {
        self.oracle.cells()
    }

    /// The words of each cell near the bin, and of each other cell.
    #[getter]
    fn words(&self) -> (u64, u64) {
        self.oracle.words()
    }

    /// The realised epsilon, rounded up.
    #[getter]
    fn realized_epsilon(&self) -> f64 {
        self.oracle.realized_epsilon()
    }

    /// The bin of each value.
    fn bins<'py>(&self, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<u16>>> {
        let py = values.py();
        let values = floats("values", values)?;
        let values = slice(py, "values", &values)?;
        let found = run(py, || self.bounds.bins(values, core::Randomizer::domain(&self.oracle)))?;
        Ok(found.into_pyarray(py))
    }

    /// One report for each node that takes part, all with the same rate.
    #[pyo3(signature = (codes, rate, seed=None))]
    fn randomize<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        rate: f64,
        seed: Option<Seed>,
    ) -> PyResult<Bound<'py, PyAny>> {
        oracle::randomize(&self.oracle, Shape::Flat, codes, rate, seed)
    }

    /// The same with a rate for each node; gives the reports and the rates of their nodes.
    #[pyo3(signature = (codes, probabilities, seed=None))]
    fn randomize_personalized<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        probabilities: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)> {
        oracle::randomize_personalized(&self.oracle, Shape::Flat, codes, probabilities, seed)
    }

    /// Refuses reports that the mechanism cannot have made.
    fn check(&self, reports: &Bound<'_, PyAny>) -> PyResult<()> {
        oracle::check(&self.oracle, Shape::Flat, reports)
    }

    /// Counts the reports of each cell.
    fn tally<'py>(&self, reports: &Bound<'py, PyAny>) -> PyResult<Support<'py>> {
        oracle::tally(&self.oracle, Shape::Flat, reports)
    }

    /// Counts reports and adds up the weights of their nodes.
    fn tally_personalized<'py>(
        &self,
        reports: &Bound<'py, PyAny>,
        probabilities: &Bound<'py, PyAny>,
    ) -> PyResult<Weighted<'py>> {
        oracle::tally_personalized(&self.oracle, Shape::Flat, reports, probabilities)
    }

    /// Selects, randomizes and counts in one pass, all with the same rate.
    #[pyo3(signature = (codes, rate, seed=None))]
    fn collect<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        rate: f64,
        seed: Option<Seed>,
    ) -> PyResult<(Support<'py>, u64)> {
        oracle::collect(&self.oracle, codes, rate, seed)
    }

    /// The same with a rate for each node.
    #[pyo3(signature = (codes, probabilities, seed=None))]
    fn collect_personalized<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        probabilities: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> PyResult<WeightedCollection<'py>> {
        oracle::collect_personalized(&self.oracle, codes, probabilities, seed)
    }
}
