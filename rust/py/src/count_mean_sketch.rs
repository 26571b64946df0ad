//! Binding of `frequency::count_mean_sketch`.

use pyo3::prelude::*;
use turnout::frequency as core;

use crate::oracle::{Shape, oracle_class};

macro_rules! sketch {
    ($(#[$doc:meta])* $class:ident, $shape:expr, |$epsilon:ident| $width:expr, { $($words:tt)* }) => {
        oracle_class!(
            $(#[$doc])*
            $class: core::$class, $shape,
            {
                /// The number of hash functions.
                functions: u64,
                /// The number of buckets.
                buckets: u64,
                /// The modulus of the hash functions.
                modulus: u64,
                $($words)*
            },
            {
                #[new]
                fn new(
                    py: Python<'_>,
                    epsilon: f64,
                    domain_size: u64,
                    hashes: Option<u64>,
                    width: Option<u64>,
                    seed: u64,
                ) -> PyResult<Self> {
                    Self::made(py, epsilon, domain_size, |$epsilon, domain| {
                        let width = width.unwrap_or($width);
                        let hashes = hashes.unwrap_or(core::$class::HASHES);
                        core::$class::new($epsilon, domain, hashes, width, seed)
                    })
                }
            }
        );
    };
}

sketch!(
    /// The count-mean sketch.
    CountMeanSketch, Shape::Rows, |epsilon| core::CountMeanSketch::default_width(epsilon),
    {
        /// How many 64-bit words flip a bit.
        flip_words: u64,
    }
);

sketch!(
    /// The Hadamard count-mean sketch.
    HadamardCountMeanSketch, Shape::Flat, |epsilon| core::HadamardCountMeanSketch::WIDTH,
    {
        /// How many 64-bit words keep an entry, and how many turn it round.
        words: (u64, u64),
    }
);
