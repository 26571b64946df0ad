//! Binding of `frequency::unary_encoding`.

use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::parameters::{DomainSize, Epsilon};

use crate::errors::exception;
use crate::oracle::{Shape, oracle_methods};

/// A unary-encoding randomizer on integer codes.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct UnaryEncoding {
    oracle: core::UnaryEncoding,
}

impl UnaryEncoding {
    fn build(
        py: Python<'_>,
        epsilon: f64,
        domain_size: u64,
        make: impl FnOnce(Epsilon, DomainSize) -> turnout::Result<core::UnaryEncoding>,
    ) -> PyResult<Self> {
        let build = || make(Epsilon::new(epsilon)?, DomainSize::new(domain_size)?);
        build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
    }
}

oracle_methods!(UnaryEncoding, Shape::Rows, {
    /// Own bit with `e^(eps/2) / (e^(eps/2) + 1)`, others with what is left to one.
    #[staticmethod]
    fn symmetric(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
        Self::build(py, epsilon, domain_size, core::UnaryEncoding::symmetric)
    }

    /// Own bit with a half, others with `1 / (e^eps + 1)`.
    #[staticmethod]
    fn optimized(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
        Self::build(py, epsilon, domain_size, core::UnaryEncoding::optimized)
    }

    /// A histogram with Laplace noise, each entry compared with a threshold.
    #[staticmethod]
    fn threshold_histogram(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
        Self::build(py, epsilon, domain_size, core::UnaryEncoding::threshold_histogram)
    }

    /// The threshold of smallest variance.
    #[staticmethod]
    fn histogram_threshold(py: Python<'_>, epsilon: f64) -> PyResult<f64> {
        let epsilon = Epsilon::new(epsilon).map_err(|error| exception(py, &error))?;
        Ok(core::UnaryEncoding::histogram_threshold(epsilon))
    }

    /// How many 64-bit words set the bit of the own code, and of each other code.
    #[getter]
    fn words(&self) -> (u64, u64) {
        self.oracle.words()
    }
});
