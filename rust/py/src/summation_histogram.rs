//! Binding of `frequency::summation_histogram`.

use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::parameters::{DomainSize, Epsilon};

use crate::errors::exception;
use crate::oracle::{Shape, oracle_methods};

/// Summation with histogram encoding on integer codes. Support counts are sums of scores, in two's
/// complement.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct SummationHistogram {
    oracle: core::SummationHistogram,
}

oracle_methods!(SummationHistogram, Shape::Rows, {
    #[new]
    fn new(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
        let build =
            || core::SummationHistogram::new(Epsilon::new(epsilon)?, DomainSize::new(domain_size)?);
        build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
    }

    /// The rate of the noise in units of 2^-64.
    #[getter]
    fn rate(&self) -> u128 {
        self.oracle.rate()
    }
});
