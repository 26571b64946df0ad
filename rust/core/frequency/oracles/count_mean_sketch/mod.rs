//! Count-mean sketches: a fixed, public set of hash functions, and reports that are rows of a
//! sketch.
//!
//! The method is that of Apple's Differential Privacy Team, "Learning with privacy at scale"
//! (2017). A node draws one of `m` hash functions to `w` buckets. It reports the function with a
//! randomized one-hot row of `w` bits, or with one randomized bit of the row's Hadamard transform.
//! Here the rows are flipped symmetrically, and all counts are whole numbers. The estimators of
//! pure oracles estimate from the sketch: a report supports the codes whose bucket its row
//! supports.

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
