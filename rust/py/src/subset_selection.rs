//! Binding of `frequency::subset_selection`.

use pyo3::prelude::*;
use turnout::frequency as core;

use crate::oracle::{Shape, oracle_class};

oracle_class!(
    /// The subset-selection randomizer on integer codes.
    SubsetSelection: core::SubsetSelection, Shape::Rows,
    {
        /// How many codes a report holds.
        subset_size: u64,
        /// How many 64-bit words put the own code into the set.
        own_words: u64,
    },
    {
        #[new]
        #[pyo3(signature = (epsilon, domain_size, subset_size=None))]
        fn new(
            py: Python<'_>,
            epsilon: f64,
            domain_size: u64,
            subset_size: Option<u64>,
        ) -> PyResult<Self> {
            Self::made(py, epsilon, domain_size, |epsilon, domain| {
                core::SubsetSelection::new(epsilon, domain, subset_size)
            })
        }
    }
);
