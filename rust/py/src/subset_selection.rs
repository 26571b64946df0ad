//! Binding of `frequency::subset_selection`.

use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::parameters::{DomainSize, Epsilon};

use crate::errors::exception;
use crate::oracle::{Shape, oracle_methods};

/// The subset-selection randomizer on integer codes.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct SubsetSelection {
    oracle: core::SubsetSelection,
}

oracle_methods!(SubsetSelection, Shape::Rows, {
    #[new]
    #[pyo3(signature = (epsilon, domain_size, subset_size=None))]
    fn new(
        py: Python<'_>,
        epsilon: f64,
        domain_size: u64,
        subset_size: Option<u64>,
    ) -> PyResult<Self> {
        let build = || {
            let domain = DomainSize::new(domain_size)?;
            core::SubsetSelection::new(Epsilon::new(epsilon)?, domain, subset_size)
        };
        build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
    }

    /// How many codes a report holds.
    #[getter]
    fn subset_size(&self) -> u64 {
        self.oracle.subset_size()
    }

    /// How many 64-bit words put the own code into the set.
    #[getter]
    fn own_words(&self) -> u64 {
        self.oracle.own_words()
    }
});
