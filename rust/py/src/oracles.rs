//! The classes of the oracles in `frequency::oracles`, but for those with methods of their own.

use pyo3::prelude::*;
use turnout_core::frequency::{self as core, PooledLocalHashing as Pooled};
use turnout_core::parameters::{DomainSize, Epsilon};

use crate::errors::Result;
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
        fn symmetric(epsilon: f64, domain_size: u64) -> Result<Self> {
            Self::made(epsilon, domain_size, core::UnaryEncoding::symmetric)
        }

        /// Own bit with a half, others with `1 / (e^eps + 1)`.
        #[staticmethod]
        fn optimized(epsilon: f64, domain_size: u64) -> Result<Self> {
            Self::made(epsilon, domain_size, core::UnaryEncoding::optimized)
        }

        /// A histogram with Laplace noise, each entry compared with a threshold.
        #[staticmethod]
        fn threshold_histogram(epsilon: f64, domain_size: u64) -> Result<Self> {
            Self::made(epsilon, domain_size, core::UnaryEncoding::threshold_histogram)
        }

        /// The threshold of smallest variance.
        #[staticmethod]
        fn histogram_threshold(epsilon: f64) -> Result<f64> {
            Ok(core::UnaryEncoding::histogram_threshold(Epsilon::new(epsilon)?))
        }
    }
);

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
        fn new(epsilon: f64, domain_size: u64) -> Result<Self> {
            Self::made(epsilon, domain_size, core::SummationHistogram::new)
        }
    }
);

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
        fn new(epsilon: f64, domain_size: u64, subset_size: Option<u64>) -> Result<Self> {
            Self::made(epsilon, domain_size, |epsilon, domain| {
                core::SubsetSelection::new(epsilon, domain, subset_size)
            })
        }
    }
);

macro_rules! hadamard_response {
    ($class:ident, $report:ty, $name:literal) => {
        oracle_class!(
            #[doc = concat!("Hadamard response with reports of type ", $name, ".")]
            $class: core::HadamardResponse<$report>, Shape::Flat,
            {
                /// The weights of a report in the half of the own code, and of another one.
                words: (u64, u64),
                /// How many different reports there are.
                report_count: u64,
            },
            {
                #[new]
                fn new(epsilon: f64, domain_size: u64) -> Result<Self> {
                    Self::made(epsilon, domain_size, core::HadamardResponse::new)
                }
            }
        );
    };
}

hadamard_response!(HadamardResponse8, u8, "uint8");
hadamard_response!(HadamardResponse16, u16, "uint16");
hadamard_response!(HadamardResponse32, u32, "uint32");

/// The size of the field and the number of points that a space has by default, or with a given field.
#[pyfunction]
#[pyo3(signature = (epsilon, domain_size, field_size=None))]
pub(crate) fn projective_space(
    epsilon: f64,
    domain_size: u64,
    field_size: Option<u64>,
) -> Result<(u64, u64)> {
    let (epsilon, domain) = (Epsilon::new(epsilon)?, DomainSize::new(domain_size)?);
    let space = core::ProjectiveGeometryResponse::<u32>::new(epsilon, domain, field_size)?;
    Ok((space.field_size(), space.points()))
}

macro_rules! projective_geometry {
    ($class:ident, $report:ty, $name:literal) => {
        oracle_class!(
            #[doc = concat!("Projective geometry response with reports of type ", $name, ".")]
            $class: core::ProjectiveGeometryResponse<$report>, Shape::Flat,
            {
                /// How many words make each point of the own hyperplane, and each other point.
                words: (u64, u64),
                /// The number of coordinates of a point.
                dimensions: usize,
            },
            {
                #[new]
                fn new(epsilon: f64, domain_size: u64, field_size: u64) -> Result<Self> {
                    Self::made(epsilon, domain_size, |epsilon, domain| {
                        core::ProjectiveGeometryResponse::new(epsilon, domain, Some(field_size))
                    })
                }

                /// How many points there are, in a hyperplane, and in two hyperplanes.
                #[getter]
                fn points(&self) -> (u64, u64, u64) {
                    let oracle = &self.oracle;
                    (oracle.points(), oracle.hyperplane_points(), oracle.common_points())
                }
            }
        );
    };
}

projective_geometry!(ProjectiveGeometry8, u8, "uint8");
projective_geometry!(ProjectiveGeometry16, u16, "uint16");
projective_geometry!(ProjectiveGeometry32, u32, "uint32");

/// An oracle whose reports name a bucket of a hash function.
macro_rules! hashing {
    (
        $(#[$doc:meta])* $class:ident, $shape:expr, { $($getters:tt)* },
        |$epsilon:ident, $domain:ident| ($($parameter:ident: $kind:ty),*) $make:expr
    ) => {
        oracle_class!(
            $(#[$doc])*
            $class: core::$class, $shape,
            {
                /// The number of buckets.
                buckets: u64,
                /// The modulus of the hash functions.
                modulus: u64,
                $($getters)*
            },
            {
                #[new]
                fn new(epsilon: f64, domain_size: u64, $($parameter: $kind),*) -> Result<Self> {
                    Self::made(epsilon, domain_size, |$epsilon, $domain| $make)
                }
            }
        );
    };
}

hashing!(
    /// Local hashing with a function of its own in every report.
    LocalHashing, Shape::Flat,
    {
        /// How many 64-bit words make a node report its own bucket, and each other bucket.
        words: (u64, u64),
        /// The number of bits of a report.
        report_bits: u32,
    },
    |epsilon, domain| (buckets: Option<u64>) match buckets {
        Some(buckets) => core::LocalHashing::new(epsilon, domain, buckets),
        None => core::LocalHashing::optimized(epsilon, domain),
    }
);

hashing!(
    /// Local hashing with a fixed pool of functions.
    PooledLocalHashing, Shape::Flat,
    {
        /// How many 64-bit words make a node report its own bucket, and each other bucket.
        words: (u64, u64),
    },
    |epsilon, domain| (buckets: Option<u64>, functions: u64, seed: u64) match buckets {
        Some(buckets) => Pooled::new(epsilon, domain, buckets, functions, seed),
        None => Pooled::optimized(epsilon, domain, functions, seed),
    }
);

hashing!(
    /// The count-mean sketch.
    CountMeanSketch, Shape::Rows,
    {
        /// The number of hash functions.
        functions: u64,
        /// How many 64-bit words flip a bit.
        flip_words: u64,
    },
    |epsilon, domain| (hashes: Option<u64>, width: Option<u64>, seed: u64) {
        let width = width.unwrap_or(core::CountMeanSketch::default_width(epsilon));
        let hashes = hashes.unwrap_or(core::CountMeanSketch::HASHES);
        core::CountMeanSketch::new(epsilon, domain, hashes, width, seed)
    }
);

hashing!(
    /// The Hadamard count-mean sketch.
    HadamardCountMeanSketch, Shape::Flat,
    {
        /// The number of hash functions.
        functions: u64,
        /// How many 64-bit words keep an entry, and how many turn it round.
        words: (u64, u64),
    },
    |epsilon, domain| (hashes: Option<u64>, width: Option<u64>, seed: u64) {
        let width = width.unwrap_or(core::HadamardCountMeanSketch::WIDTH);
        let hashes = hashes.unwrap_or(core::HadamardCountMeanSketch::HASHES);
        core::HadamardCountMeanSketch::new(epsilon, domain, hashes, width, seed)
    }
);
