//! Binding of `frequency::local_hashing`.

use pyo3::prelude::*;
use turnout::frequency as core;

use crate::oracle::{Shape, oracle_class};

oracle_class!(
    /// Local hashing with a function of its own in every report.
    LocalHashing: core::LocalHashing, Shape::Flat,
    {
        /// The number of buckets.
        buckets: u64,
        /// The modulus of the hash functions.
        modulus: u64,
        /// How many 64-bit words make a node report its own bucket, and each other bucket.
        words: (u64, u64),
        /// The number of bits of a report.
        report_bits: u32,
    },
    {
        #[new]
        #[pyo3(signature = (epsilon, domain_size, buckets=None))]
        fn new(
            py: Python<'_>,
            epsilon: f64,
            domain_size: u64,
            buckets: Option<u64>,
        ) -> PyResult<Self> {
            Self::made(py, epsilon, domain_size, |epsilon, domain| match buckets {
                Some(buckets) => core::LocalHashing::new(epsilon, domain, buckets),
                None => core::LocalHashing::optimized(epsilon, domain),
            })
        }
    }
);

oracle_class!(
    /// Local hashing with a fixed pool of functions.
    PooledLocalHashing: core::PooledLocalHashing, Shape::Flat,
    {
        /// The number of buckets.
        buckets: u64,
        /// The modulus of the hash functions.
        modulus: u64,
        /// How many 64-bit words make a node report its own bucket, and each other bucket.
        words: (u64, u64),
    },
    {
        #[new]
        fn new(
            py: Python<'_>,
            epsilon: f64,
            domain_size: u64,
            buckets: Option<u64>,
            functions: u64,
            seed: u64,
        ) -> PyResult<Self> {
            use core::PooledLocalHashing as Pooled;
            Self::made(py, epsilon, domain_size, |epsilon, domain| match buckets {
                Some(buckets) => Pooled::new(epsilon, domain, buckets, functions, seed),
                None => Pooled::optimized(epsilon, domain, functions, seed),
            })
        }
    }
);
