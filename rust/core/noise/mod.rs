//! Integer noise with an exact law.
//!
//! No draw uses a floating-point number: every decision compares uniform words with integers, and
//! reads further words until the comparison is certain. A parameter given as a floating-point
//! number is the rational that it holds.
//!
//! * [`DiscreteLaplace`], and [`DiscreteLaplacePiece`], a given number of which add up to it;
//! * [`DiscreteGaussian`];
//! * [`Skellam`], whose pieces are Skellam noise of a smaller mean ([`divide_up`]);
//! * [`BernoulliCounts`], the number of dummy users that take part;
//! * [`ExponentialTrial`], a trial of probability `e^-g`.
//!
//! All but the Gaussian use Poisson counts, which an exact table gives with one word.

mod counts;
mod gaussian;
mod laplace;
mod piece;
mod poisson;
mod skellam;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod trial;

use num_bigint::BigUint;

pub use counts::BernoulliCounts;
pub use gaussian::DiscreteGaussian;
pub use laplace::DiscreteLaplace;
pub use piece::DiscreteLaplacePiece;
pub use skellam::Skellam;
pub use trial::ExponentialTrial;

use crate::memory::room;
use crate::parallel;
use crate::random::{Purpose, Streams, decompose};
use crate::{Error, Result};

/// How many numbers are drawn from one stream. Each chunk has a stream of its own, whichever thread
/// draws it. If there is at most one chunk, the calling thread draws it.
pub const CHUNK: usize = 4096;

/// Fills chunks in parallel, each from its own stream.
fn in_chunks<S: Streams>(
    length: usize,
    purpose: Purpose,
    streams: &S,
    fill: impl Fn(&mut [i64], &mut S::Stream) + Sync,
) -> Result<Vec<i64>> {
    let mut numbers = room(length, 0)?;
    parallel::for_each_chunk(&mut numbers, CHUNK, |chunk, numbers| {
        fill(numbers, &mut streams.stream(purpose, chunk as u64));
    });
    Ok(numbers)
}

/// Returns the smallest floating-point number that is at least `value / parts` as an exact
/// rational.
///
/// So `parts` pieces of a mean or of a variance never add up to less than the whole.
///
/// ```
/// use turnout_core::noise::divide_up;
/// assert_eq!(divide_up(26.0, 4)?, 6.5);
/// assert!(divide_up(1.0, 10)? > 0.1 - 1e-17);
/// # Ok::<(), turnout_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Accounting`] if the value is not a finite number above zero, or there are no parts.
pub fn divide_up(value: f64, parts: u64) -> Result<f64> {
    check(value, f64::from_bits(1), f64::MAX, "value", "a finite number above 0")?;
    check_parts(parts)?;
    // The quotient of rounded numbers is less than two units off.
    let mut quotient = (value / parts as f64).next_down().next_down().max(f64::from_bits(1));
    while !product_reaches(quotient, parts, value) {
        quotient = quotient.next_up();
    }
    Ok(quotient)
}

/// Whether `quotient * parts >= value`, exactly.
fn product_reaches(quotient: f64, parts: u64, value: f64) -> bool {
    let (left, left_exponent) = decompose(quotient);
    let (right, right_exponent) = decompose(value);
    let (left, right) = (BigUint::from(left) * parts, BigUint::from(right));
    let shift = left_exponent - right_exponent;
    if shift >= 0 {
        left << shift.unsigned_abs() >= right
    } else {
        left >= right << shift.unsigned_abs()
    }
}

fn check_parts(parts: u64) -> Result<()> {
    if parts == 0 {
        let expected = "an integer of at least 1";
        return Err(Error::Accounting { argument: "parts", value: 0.0, expected });
    }
    Ok(())
}

/// Checks that a parameter is in its range.
fn check(
    value: f64,
    least: f64,
    most: f64,
    argument: &'static str,
    expected: &'static str,
) -> Result<f64> {
    if value >= least && value <= most {
        Ok(value)
    } else {
        Err(Error::Accounting { argument, value, expected })
    }
}
