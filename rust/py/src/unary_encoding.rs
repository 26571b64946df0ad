//! Binding of `frequency::unary_encoding`.

use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::parameters::Epsilon;

use crate::errors::exception;
use crate::oracle::{Shape, oracle_class};

oracle_class!(
    /// A unary-encoding randomizer on integer codes.
    UnaryEncoding: core::UnaryEncoding, Shape::Rows,
    {
        /// How many 64-bit words set the bit of the own code, and of each other code.
        words: (u64, u64),
    },
    {
        /// Own bit with `e^(eps/2) / (e^(eps/2) + 1)`, others with what is left to one.
        #[staticmethod]
        fn symmetric(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
            Self::made(py, epsilon, domain_size, core::UnaryEncoding::symmetric)
        }

        /// Own bit with a half, others with `1 / (e^eps + 1)`.
        #[staticmethod]
        fn optimized(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
            Self::made(py, epsilon, domain_size, core::UnaryEncoding::optimized)
        }

        /// A histogram with Laplace noise, each entry compared with a threshold.
        #[staticmethod]
        fn threshold_histogram(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
            Self::made(py, epsilon, domain_size, core::UnaryEncoding::threshold_histogram)
        }

        /// The threshold of smallest variance.
        #[staticmethod]
        fn histogram_threshold(py: Python<'_>, epsilon: f64) -> PyResult<f64> {
            let epsilon = Epsilon::new(epsilon).map_err(|error| exception(py, &error))?;
            Ok(core::UnaryEncoding::histogram_threshold(epsilon))
        }
    }
);
