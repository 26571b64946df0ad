//! Collecting again and again: a permanent randomised answer behind an instantaneous one.
//!
//! A node randomises its code once and for all, and in every round randomises that *permanent
//! answer* afresh: Erlingsson, Pihur, Korolova, "RAPPOR" (2014). However many rounds there are,
//! they say no more of an unchanged code than the permanent answer does; the first says less.
//!
//! The permanent answer is never drawn again: it is a function of a secret of 32 bytes that the node
//! keeps, of the context (which collection this is) and of the code. See [`PermanentKey`].

mod bits;
mod direct;
mod key;
#[cfg(test)]
mod tests;
mod unary;

pub use bits::{BitChain, BitStage};
pub use direct::MemoizedDirect;
pub use key::{PermanentKey, SECRET_BYTES};
pub use unary::MemoizedUnary;

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use crate::random::{ExponentialBounds, Purpose, Streams};
use crate::{Error, Result};

/// The logarithm of a ratio that is at most `e^limit`, rounded up to a floating-point number.
fn logarithm_up(numerator: &BigUint, denominator: &BigUint, limit: f64) -> f64 {
    // Of a ratio next to one the digits are in the gain, and the loop starts next to its end.
    let gain = if numerator > denominator { numerator - denominator } else { BigUint::ZERO };
    let (gain, below) = (gain.to_f64(), denominator.to_f64());
    let gain = gain.zip(below).map_or(f64::MAX, |(gain, below)| gain / below);
    let mut candidate = libm::log1p(gain) * (1.0 - 1e-14);
    while candidate < limit {
        if ExponentialBounds::new(candidate).at_least_ratio(numerator, denominator) {
            return candidate;
        }
        candidate = (candidate * (1.0 + 1e-15)).next_up();
    }
    limit
}

/// The error for a first report that would say as much as the permanent answer, or more.
fn first_out_of_reach(first: f64, lifetime: f64) -> Error {
    Error::Accounting {
        argument: "first_epsilon",
        value: first,
        expected: if first < lifetime {
            "smaller: so close to the lifetime epsilon the permanent answer alone hides as much"
        } else {
            "below the lifetime epsilon: the permanent answer is what never says more"
        },
    }
}

/// The streams of a family under another purpose, independent of the others.
struct Second<'a, S>(&'a S);

impl<S: Streams> Streams for Second<'_, S> {
    type Stream = S::Stream;

    fn stream(&self, _: Purpose, index: u64) -> S::Stream {
        self.0.stream(Purpose::PermanentReport, index)
    }
}

/// The keys of nodes, one for each code.
fn check_secrets(secrets: &[[u8; SECRET_BYTES]], nodes: usize) -> Result<()> {
    if secrets.len() == nodes {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        left: "secrets",
        left_length: secrets.len(),
        right: "values",
        right_length: nodes,
    })
}
