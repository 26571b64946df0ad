//! Subset selection: a report is a set of `d` codes.
//!
//! The own code is in the set with probability `p = d e^eps / (d e^eps + k - d)`; the rest of the
//! set is uniform among the other codes. The likelihood of a set is `p (k - d) / ((1 - p) d)` times
//! as large under its members as under the other codes. Ye, Barg, "Optimal schemes for discrete
//! distribution estimation under locally differential privacy" (2017); Wang, Huang, Nie, Xu, Xu,
//! Wang, "Local private subset selection" (2016).
//!
//! A set is a row of bits, so the report does not tell the order in which its members were drawn.
//! The realised `p` is a whole number `T` of 64-bit words. Integer bounds of the exponential prove
//! that `T (k - d) <= e^eps (2^64 - T) d`.

mod draw;
mod simulate;
#[cfg(test)]
mod tests;

use num_bigint::BigUint;

use crate::frequency::Randomizer;
use crate::frequency::shared::bit_rows::{self, BitCounter};
use crate::parameters::{DomainSize, Epsilon};
use crate::random::{ExponentialBounds, Words, logarithm_above};
use crate::{Error, Result};

/// 2^64.
const ALL: u128 = 1 << 64;

/// The subset-selection randomizer.
///
/// A report is a row of `ceil(k / 64)` words, with code `i` in bit `i % 64` of word `i / 64`.
/// Exactly `d` bits are set.
///
/// ```
/// use turnout_core::frequency::{FrequencyOracle, Selection, SubsetSelection};
/// use turnout_core::parameters::{DomainSize, Epsilon};
/// use turnout_core::random::AesStreams;
///
/// let oracle = SubsetSelection::new(Epsilon::new(1.0)?, DomainSize::new(100)?, None)?;
/// assert_eq!(oracle.subset_size(), 27);
/// let tally = oracle.collect(&[7_u8; 1000], &Selection::everyone(), &AesStreams::from_seed(1))?;
/// assert_eq!(tally.support.iter().sum::<u64>(), 27 * tally.received);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubsetSelection {
    epsilon: Epsilon,
    domain: DomainSize,
    /// How many codes a report holds, from 1 to `k - 1`.
    size: u32,
    /// Words, out of 2^64, that put the own code into the set.
    own: u64,
}

impl SubsetSelection {
    /// The largest domain: a report of that many bits has 128 KiB.
    pub const MAXIMUM_DOMAIN: u64 = 1 << 20;

    /// Makes a randomizer for an epsilon, a number of codes, and a number of codes in a report. The
    /// default is the number with the smallest variance for rare codes, next to `k / (e^eps + 1)`.
    ///
    /// # Errors
    ///
    /// [`Error::DomainSize`] if the domain is larger than [`Self::MAXIMUM_DOMAIN`];
    /// [`Error::Integer`] if the size of the set is not from 1 to `k - 1`;
    /// [`Error::EpsilonUnrealizable`] if `p* - q*` is below 2^-32, which happens for an epsilon of
    /// about 1e-9.
    pub fn new(epsilon: Epsilon, domain: DomainSize, subset_size: Option<u64>) -> Result<Self> {
        if domain.get() > Self::MAXIMUM_DOMAIN {
            let maximum = Self::MAXIMUM_DOMAIN;
            return Err(Error::DomainSize { value: domain.get(), maximum });
        }
        let bounds = ExponentialBounds::new(epsilon.get());
        let realize = |size: u32| {
            let others = domain.get() - u64::from(size);
            let own = bounds.floor_odds(u64::from(size), u128::from(others));
            Self { epsilon, domain, size, own }
        };
        let oracle = if let Some(value) = subset_size {
            let size = u32::try_from(value).ok().filter(|&size| size > 0);
            let expected = "an integer from 1 to the size of the domain - 1";
            let refused = Error::Integer { argument: "subset_size", value, expected };
            realize(size.filter(|_| value < domain.get()).ok_or(refused)?)
        } else {
            // At most k / 2, since e^eps >= 1.
            let scaled = bounds.floor_quotient(u128::from(domain.get()), 1);
            let size = u32::try_from(scaled).unwrap_or(1).max(1);
            let (smaller, larger) = (realize(size), realize(size + 1));
            if u64::from(size) + 1 < domain.get() && larger.better_than(&smaller) {
                larger
            } else {
                smaller
            }
        };
        // p* - q* = (T k - d 2^64) / (2^64 (k - 1)).
        let gap = u128::from(oracle.own) * u128::from(domain.get());
        if gap.saturating_sub(oracle.expected_words()) < u128::from(domain.get() - 1) << 32 {
            return Err(Error::EpsilonUnrealizable {
                epsilon: epsilon.get(),
                domain_size: domain.get(),
            });
        }
        Ok(oracle)
    }

    /// Whether the variance for rare codes, `q (1 - q) / (p - q)^2`, is smaller than another's: in
    /// exact integers. With `q = (d - p) / (k - 1)` it is
    /// `(d - p) (k - 1 - d + p) / (k p - d)^2`.
    fn better_than(&self, other: &Self) -> bool {
        let terms = |oracle: &Self| {
            let numerator = BigUint::from(oracle.expected_words() - u128::from(oracle.own));
            let rest = u128::from(oracle.domain.get() - 1) * ALL - oracle.expected_words();
            let gap = (u128::from(oracle.own) * u128::from(oracle.domain.get()))
                .saturating_sub(oracle.expected_words());
            (numerator * (rest + u128::from(oracle.own)), BigUint::from(gap).pow(2))
        };
        let ((left, below_left), (right, below_right)) = (terms(self), terms(other));
        left * below_right < right * below_left
    }

    /// `d 2^64`.
    const fn expected_words(&self) -> u128 {
        (self.size as u128) << 64
    }

    /// The epsilon that was requested.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// How many codes a report holds, `d`.
    #[must_use]
    pub const fn subset_size(&self) -> u64 {
        self.size as u64
    }

    /// How many of the 2^64 words put the own code into the set, `T`. The realised guarantee is
    /// `ln(T (k - d) / ((2^64 - T) d))`, exactly.
    #[must_use]
    pub const fn own_words(&self) -> u64 {
        self.own
    }

    /// The realised epsilon, rounded up to a floating-point number. It is never below the truth,
    /// and never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let (own, size) = (u128::from(self.own), u128::from(self.size));
        let others = u128::from(self.domain.get()) - size;
        logarithm_above(own * others, (ALL - own) * size, self.epsilon.get())
    }

    /// `(p*, q*)`: the probabilities that the set holds the own code, and any other fixed code,
    /// which is `(d - p*) / (k - 1)`.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        let others = self.expected_words() - u128::from(self.own);
        let own = self.own as f64 / ALL as f64;
        (own, others as f64 / (ALL as f64 * (self.domain.get() - 1) as f64))
    }
}

impl Randomizer for SubsetSelection {
    type Item = u64;
    type Counter = BitCounter;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        bit_rows::row_words(self.domain)
    }

    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u64], rng: &mut R) {
        self.draw(codes, reports, rng);
    }

    fn valid(&self, report: &[u64]) -> bool {
        bit_rows::is_row(self.domain, report)
            && report.iter().map(|word| word.count_ones()).sum::<u32>() == self.size
    }

    fn expected(&self) -> String {
        format!("{} of the first {} bits of a report to be set", self.size, self.domain.get())
    }

    fn counter(&self) -> BitCounter {
        BitCounter::new(self.domain)
    }

    fn count(&self, counter: &mut BitCounter, reports: &[u64]) {
        counter.add(reports);
    }

    fn merge(&self, counter: BitCounter, other: BitCounter) -> BitCounter {
        counter.merge(other)
    }

    fn finish(&self, counter: BitCounter) -> Vec<u64> {
        counter.finish(self.domain.len())
    }

    fn supported(&self, report: &[u64], visit: &mut dyn FnMut(usize)) {
        bit_rows::visit_bits(report, visit);
    }
}
