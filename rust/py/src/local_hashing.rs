//! Binding of `frequency::local_hashing`.

use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::parameters::{DomainSize, Epsilon};

use crate::errors::exception;
use crate::oracle::{Shape, oracle_methods};

/// Local hashing with a function of its own in every report.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct LocalHashing {
    oracle: core::LocalHashing,
}

oracle_methods!(LocalHashing, Shape::Flat, {
    #[new]
    #[pyo3(signature = (epsilon, domain_size, buckets=None))]
    fn new(py: Python<'_>, epsilon: f64, domain_size: u64, buckets: Option<u64>) -> PyResult<Self> {
        let build = || {
            let (epsilon, domain) = (Epsilon::new(epsilon)?, DomainSize::new(domain_size)?);
            match buckets {
                Some(buckets) => core::LocalHashing::new(epsilon, domain, buckets),
                None => core::LocalHashing::optimized(epsilon, domain),
            }
        };
        build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
    }

    /// The number of buckets.
    #[getter]
    fn buckets(&self) -> u64 {
        self.oracle.buckets()
    }

    /// The modulus of the hash functions.
    #[getter]
    fn modulus(&self) -> u64 {
        self.oracle.modulus()
    }

    /// How many 64-bit words make a node report its own bucket, and each other bucket.
    #[getter]
    fn words(&self) -> (u64, u64) {
        self.oracle.words()
    }

    /// The number of bits of a report.
    #[getter]
    fn report_bits(&self) -> u32 {
        self.oracle.report_bits()
    }
});

/// Local hashing with a fixed pool of functions.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct PooledLocalHashing {
    oracle: core::PooledLocalHashing,
}

oracle_methods!(PooledLocalHashing, Shape::Flat, {
    #[new]
    fn new(
        py: Python<'_>,
        epsilon: f64,
        domain_size: u64,
        buckets: Option<u64>,
        functions: u64,
        seed: u64,
    ) -> PyResult<Self> {
        let build = || {
            let (epsilon, domain) = (Epsilon::new(epsilon)?, DomainSize::new(domain_size)?);
            match buckets {
                Some(buckets) => {
                    core::PooledLocalHashing::new(epsilon, domain, buckets, functions, seed)
                }
                None => core::PooledLocalHashing::optimized(epsilon, domain, functions, seed),
            }
        };
        build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
    }

    /// The number of buckets.
    #[getter]
    fn buckets(&self) -> u64 {
        self.oracle.buckets()
    }

    /// The modulus of the hash functions.
    #[getter]
    fn modulus(&self) -> u64 {
        self.oracle.modulus()
    }

    /// How many 64-bit words make a node report its own bucket, and each other bucket.
    #[getter]
    fn words(&self) -> (u64, u64) {
        self.oracle.words()
    }
});
