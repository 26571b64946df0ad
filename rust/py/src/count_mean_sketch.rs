//! Binding of `frequency::count_mean_sketch`.

use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::parameters::{DomainSize, Epsilon};

use crate::errors::exception;
use crate::oracle::{Shape, oracle_methods};

/// The count-mean sketch.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct CountMeanSketch {
    oracle: core::CountMeanSketch,
}

oracle_methods!(CountMeanSketch, Shape::Rows, {
    #[new]
    fn new(
        py: Python<'_>,
        epsilon: f64,
        domain_size: u64,
        hashes: Option<u64>,
        width: Option<u64>,
        seed: u64,
    ) -> PyResult<Self> {
        let build = || {
            let (epsilon, domain) = (Epsilon::new(epsilon)?, DomainSize::new(domain_size)?);
            let width = width.unwrap_or_else(|| core::CountMeanSketch::default_width(epsilon));
            let hashes = hashes.unwrap_or(core::CountMeanSketch::HASHES);
            core::CountMeanSketch::new(epsilon, domain, hashes, width, seed)
        };
        build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
    }

    /// The number of hash functions.
    #[getter]
    fn functions(&self) -> u64 {
        self.oracle.functions()
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

    /// How many 64-bit words flip a bit.
    #[getter]
    fn flip_words(&self) -> u64 {
        self.oracle.flip_words()
    }
});

/// The Hadamard count-mean sketch.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct HadamardCountMeanSketch {
    oracle: core::HadamardCountMeanSketch,
}

oracle_methods!(HadamardCountMeanSketch, Shape::Flat, {
    #[new]
    fn new(
        py: Python<'_>,
        epsilon: f64,
        domain_size: u64,
        hashes: Option<u64>,
        width: Option<u64>,
        seed: u64,
    ) -> PyResult<Self> {
        let build = || {
            let (epsilon, domain) = (Epsilon::new(epsilon)?, DomainSize::new(domain_size)?);
            let width = width.unwrap_or(core::HadamardCountMeanSketch::WIDTH);
            let hashes = hashes.unwrap_or(core::HadamardCountMeanSketch::HASHES);
            core::HadamardCountMeanSketch::new(epsilon, domain, hashes, width, seed)
        };
        build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
    }

    /// The number of hash functions.
    #[getter]
    fn functions(&self) -> u64 {
        self.oracle.functions()
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

    /// How many 64-bit words keep an entry, and how many turn it round.
    #[getter]
    fn words(&self) -> (u64, u64) {
        self.oracle.words()
    }
});
