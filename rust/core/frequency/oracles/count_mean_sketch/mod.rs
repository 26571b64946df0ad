//! Count-mean sketches: a fixed, public set of hash functions, and reports of rows of a sketch.
//!
//! Apple's Differential Privacy Team, "Learning with privacy at scale" (2017): a node draws one of
//! `m` hash functions to `w` buckets and reports it with a randomized one-hot row of `w` bits, or
//! with one randomized bit of the row's Hadamard transform. Here the rows are flipped symmetrically
//! and everything is counted in whole numbers; what the sketch estimates is left to the estimators
//! of pure oracles, in whose sense a report supports the codes that its row speaks for.

mod hadamard;
mod plain;

pub use hadamard::HadamardCountMeanSketch;
pub use plain::CountMeanSketch;

use crate::frequency::shared::hashing::HashPool;
use crate::{Error, Result};

/// The default number of hash functions.
pub(super) const HASHES: u64 = 1024;

/// The default width is at least this.
const WIDTH: u64 = 256;

/// Refuses a width of the rows that is out of range.
fn check_width(width: u64) -> Result<()> {
    if (2..=1 << 16).contains(&width) {
        return Ok(());
    }
    let expected = "an integer from 2 to 2^16";
    Err(Error::Integer { argument: "width", value: width, expected })
}

#[cfg(test)]
mod tests;
