//! Repeated collections: each report randomises a permanent answer, which is itself randomised.
//!
//! A node randomises its code once and for all. In every round it randomises that *permanent
//! answer* afresh: Erlingsson, Pihur, Korolova, "RAPPOR" (2014). However many rounds there are,
//! together they reveal no more about an unchanged code than the permanent answer does; the first
//! round reveals less.
//!
//! The permanent answer is never drawn again. It is a function of a secret of 32 bytes that the
//! node keeps, of the context (which collection this is), and of the code. See [`PermanentKey`].

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

use crate::frequency::oracle::BLOCK;
use crate::frequency::{Codes, Randomizer, Reports, Selection};
use crate::parallel::{self, chunk};
use crate::random::{ExponentialBounds, Purpose, Streams, Words};
use crate::{Error, Result};

/// A randomizer in two stages. As a [`Randomizer`] it makes first reports: each uses a permanent
/// answer that is dropped at once.
pub trait Memoized: Randomizer {
    /// The words of the permanent answer, and of a report: for the true value, and for another one.
    fn words(&self) -> [(u64, u64); 2];

    /// The realised epsilon of the permanent answer, rounded up.
    fn lifetime_epsilon(&self) -> f64;

    /// Makes the permanent answer for a code of the domain. The words that it reads are a format.
    fn remember<R: Words>(&self, code: u64, answer: &mut [Self::Item], rng: &mut R);

    /// Makes the permanent answers of nodes that hold `codes`: a row for each node.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] for a code outside the domain; [`Error::LengthMismatch`] if
    /// there is not one secret for each code.
    fn permanent(
        &self,
        codes: Codes<'_>,
        secrets: &[[u8; SECRET_BYTES]],
        context: &[u8; 32],
    ) -> Result<Vec<Self::Item>> {
        let (nodes, width) = (codes.len(), self.width());
        if secrets.len() != nodes {
            return Err(Error::LengthMismatch {
                left: "secrets",
                left_length: secrets.len(),
                right: "values",
                right_length: nodes,
            });
        }
        if !codes.inside(0..nodes, self.domain()) {
            return Err(codes.outside("values", self.domain()));
        }
        let mut answers = vec![Self::Item::default(); nodes * width];
        parallel::for_each_chunk(&mut answers, BLOCK * width, |block, answers| {
            let nodes = chunk(block, BLOCK, nodes);
            let mut buffer = [0; BLOCK];
            let codes = codes.gather(nodes.clone(), &mut buffer);
            let rows = answers.chunks_mut(width);
            for ((&code, secret), row) in codes.iter().zip(&secrets[nodes]).zip(rows) {
                self.remember(code, row, &mut PermanentKey::new(secret, context).stream(code));
            }
        });
        Ok(answers)
    }

    /// Makes one round of reports of nodes with these permanent answers.
    ///
    /// # Errors
    ///
    /// [`Error::Report`] or [`Error::CodeOutsideDomain`] if an item is not a permanent answer;
    /// [`Error::LengthMismatch`] if there are not as many personal probabilities as answers;
    /// [`Error::DomainSize`] for 2^32 nodes or more.
    fn instantaneous<S: Streams>(
        &self,
        permanent: &[Self::Item],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Reports<Self::Item>>;
}

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
