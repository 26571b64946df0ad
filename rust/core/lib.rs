//! Private statistics when only some people take part: the core of turnout.
//!
//! The crate knows nothing of Python. It holds the kernels that must be exact and fast:
//!
//! * [`random`]: cryptographic streams, exact integer thresholds, exact Bernoulli selection, and
//!   binomial and multinomial draws;
//! * [`accounting`]: what random participation, sampling and shuffling cost in privacy;
//! * [`federated`]: selection, noise and clipping for training by clients that join at random;
//! * [`frequency`]: local randomizers of categorical answers under partial participation;
//! * [`mean`]: local randomizers of numbers under partial participation;
//! * [`noise`]: integer noise whose law is exact;
//! * [`rows`]: where the rows of delimited text end, and which text different readers would read
//!   differently;
//! * [`samplers`]: draws whose law stays in a band around a public reference;
//! * [`sharing`]: prime fields, additive shares and two-stage sets, for sums without a trusted
//!   server;
//! * [`tickets`]: blind signatures, so that each invited person sends one message unseen;
//! * [`verified`]: sums whose every report is proven valid;
//! * [`wire`]: plans and messages;
//! * [`device`]: answers a plan;
//! * [`dap`]: messages of the Distributed Aggregation Protocol, and their encryption.
//!
//! Kernels run on the current rayon pool. They give the same result for any number of threads,
//! because random streams belong to fixed chunks of nodes, never to threads.
//!
//! # Features
//!
//! All are on by default. [`random`], [`noise`], [`frequency`] and [`mean`] need no feature.
//!
//! * `accounting`, `dap`, `device`, `federated`, `identity`, `samplers`, `sharing`, `tickets`,
//!   `verified`, `wire`: the module of the same name;
//! * `parallel`: rayon. Without it, kernels run on the calling thread and give the same results.
//!
//! A device needs `default-features = false, features = ["device"]`.
//!
//! # Example
//!
//! ```
//! use turnout_core::frequency::{DirectEncoding, Selection};
//! use turnout_core::parameters::{DomainSize, Epsilon, Probability};
//! use turnout_core::random::AesStreams;
//!
//! # fn main() -> Result<(), turnout_core::Error> {
//! let oracle = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(3)?)?;
//! let answers = [0_u8, 1, 2, 1, 1, 0];
//! let streams = AesStreams::from_operating_system()?;
//! let tally = oracle.collect(&answers, &Selection::everyone(), &streams)?;
//! assert_eq!(tally.received, 6);
//!
//! let half = Selection::bernoulli(Probability::new(0.5)?);
//! assert!(oracle.collect(&answers, &half, &streams)?.received <= 6);
//! # Ok(())
//! # }
//! ```

// Helpers that several modules share are compiled for whichever of them there are.
#![cfg_attr(
    not(all(
        feature = "accounting",
        feature = "federated",
        feature = "samplers",
        feature = "sharing",
        feature = "device"
    )),
    allow(dead_code, unused_imports)
)]

#[cfg(feature = "accounting")]
pub mod accounting;
#[cfg(feature = "dap")]
pub mod dap;
#[cfg(feature = "device")]
pub mod device;
#[cfg(feature = "federated")]
pub mod federated;
pub mod frequency;
#[cfg(feature = "identity")]
pub mod identity;
pub mod mean;
pub mod noise;
pub mod parameters;
pub mod random;
#[cfg(feature = "rows")]
pub mod rows;
#[cfg(feature = "samplers")]
pub mod samplers;
#[cfg(feature = "sharing")]
pub mod sharing;
#[cfg(feature = "tickets")]
pub mod tickets;
#[cfg(feature = "verified")]
pub mod verified;
#[cfg(feature = "wire")]
pub mod wire;

mod error;
mod memory;
mod parallel;
mod primality;
mod stirling;
mod vectors;

pub use error::{Error, Result};

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
