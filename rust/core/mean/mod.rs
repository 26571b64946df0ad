//! Mean estimation under local differential privacy when only some nodes report.
//!
//! A node holds `d` numbers within public [`Bounds`]. From them a [`Mechanism`] makes a report of
//! cells on a fixed grid, so that nothing leaks through the digits of floating-point numbers:
//!
//! * [`Duchi`]: one of two cells for every coordinate;
//! * [`Piecewise`]: for some coordinates, a cell of a fine grid, near the value with high
//!   probability;
//! * [`Hybrid`]: one or the other, for a variance that does not depend on the value.
//!
//! The law of a cell is linear in the value. So the cell's offset from the middle of the grid,
//! times [`Mechanism::scale`], is an unbiased estimate of the value. Its scale is that on which the
//! bounds are -1 and 1. The sufficient statistics, [`MeanSums`], are sums of cells and of their
//! squares.

mod bounds;
mod duchi;
mod hybrid;
mod path;
mod piecewise;
mod sums;

pub use bounds::{Bounds, Dimensions};
pub use duchi::Duchi;
pub use hybrid::{ALONE, Hybrid};
pub use path::{MeanReports, Mechanism};
pub use piecewise::Piecewise;
pub use sums::{CoordinateSums, MeanSums, WeightedMoments, Wide};

use crate::random::ExponentialBounds;
use crate::{Error, Result};

/// `2^63`: the position of the upper bound; that of the lower bound is 0.
const UNIT: u64 = 1 << 63;

/// The smallest number from 1 to `most` for which a condition holds that holds from some number on.
fn smallest(most: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(most) {
        return None;
    }
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

/// `ln(numerator / denominator)`, rounded up, but not above an epsilon that is known to bound it.
fn logarithm_up(numerator: u128, denominator: u128, epsilon: f64) -> f64 {
    let gain = (numerator - denominator) as f64 / denominator as f64;
    let mut candidate = libm::log1p(gain) * (1.0 - 1e-15);
    while candidate < epsilon {
        if ExponentialBounds::new(candidate).at_least(numerator, denominator) {
            return candidate;
        }
        candidate = candidate.next_up();
    }
    epsilon
}

/// The error for an epsilon at which reports would say next to nothing.
fn too_small(epsilon: f64) -> Error {
    Error::Accounting {
        argument: "epsilon",
        value: epsilon,
        expected: "at least 1e-9 (reports would say next to nothing)",
    }
}

/// Checks that reports say something: of 2^64 words, this many tell two values apart.
fn informative(words: u64, epsilon: f64) -> Result<()> {
    if words >> 32 == 0 { Err(too_small(epsilon)) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
