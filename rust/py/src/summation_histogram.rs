//! Binding of `frequency::summation_histogram`.

use pyo3::prelude::*;
use turnout::frequency as core;

use crate::oracle::{Shape, oracle_class};

oracle_class!(
    /// Summation with histogram encoding on integer codes. Support counts are sums of scores, in
    /// two's complement.
    SummationHistogram: core::SummationHistogram, Shape::Rows,
    {
        /// The rate of the noise in units of 2^-64.
        rate: u128,
    },
    {
        #[new]
        fn new(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
            Self::made(py, epsilon, domain_size, core::SummationHistogram::new)
        }
    }
);
