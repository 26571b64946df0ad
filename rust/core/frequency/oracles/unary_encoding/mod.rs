//! Unary encodings: one randomized bit for each code.
//!
//! A node reports one bit for each code, all independent. The bit of its own code is one with
//! probability `p`, every other bit with probability `q`. The likelihood of a report is `p (1 - q)
//! / ((1 - p) q)` times as large under the codes whose bit is one as under the others.
//!
//! * Symmetric: `p = e^(eps/2) / (e^(eps/2) + 1)`, `q = 1 - p`. This is the one-time form of basic
//!   RAPPOR: Erlingsson, Pihur, Korolova, "RAPPOR: randomized aggregatable privacy-preserving
//!   ordinal response" (2014).
//! * Optimized: `p = 1/2`, `q = 1 / (e^eps + 1)`, and thresholding with histogram encoding: Wang,
//!   Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation" (2017).
//!
//! The realised `p` and `q` are whole numbers `P` and `Q` of 64-bit words. Integer bounds of the
//! exponential prove that `P (2^64 - Q) <= e^eps (2^64 - P) Q`.

#[cfg(test)]
mod tests;

use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::bit_rows::{self, BitCounter};
use crate::frequency::shared::simulation::independent;
use crate::frequency::{Randomizer, Tally};
use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{BiasedBits, ExponentialBounds, Streams, Words, logarithm_above};
use crate::{Error, Result};

/// 2^64.
const ALL: u128 = 1 << 64;

/// A unary-encoding randomizer.
///
/// A report is a row of `ceil(k / 64)` words, with code `i` in bit `i % 64` of word `i / 64`.
/// Unused bits are zero.
///
/// ```
/// use turnout_core::frequency::{FrequencyOracle, Selection, UnaryEncoding};
/// use turnout_core::parameters::{DomainSize, Epsilon};
/// use turnout_core::random::AesStreams;
///
/// let oracle = UnaryEncoding::optimized(Epsilon::new(1.0)?, DomainSize::new(100)?)?;
/// assert!(oracle.realized_epsilon() <= 1.0);
/// let everyone = Selection::everyone();
/// let reports = oracle.randomize(&[7_u8; 1000], &everyone, &AesStreams::from_seed(1))?;
/// assert_eq!(reports.codes.len(), 2000);
/// let tally = oracle.tally(&reports.codes, None)?;
/// assert!(tally.support[7].abs_diff(500) < 100);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnaryEncoding {
    epsilon: Epsilon,
    domain: DomainSize,
    /// Words, out of 2^64, that set the bit of the own code.
    own: u64,
    /// Bits that any other code gets.
    others: BiasedBits,
}

impl UnaryEncoding {
    /// The largest domain: a report of that many bits has 128 KiB.
    pub const MAXIMUM_DOMAIN: u64 = 1 << 20;

    /// Makes symmetric unary encoding: `p = e^(eps/2) / (e^(eps/2) + 1)`, `q = 1 - p` exactly.
    ///
    /// # Errors
    ///
    /// [`Error::DomainSize`] if the domain is larger than [`Self::MAXIMUM_DOMAIN`];
    /// [`Error::EpsilonUnrealizable`] if `p - q` is below 2^-32, which happens for an epsilon of
    /// about 1e-9.
    pub fn symmetric(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        // Exact unless epsilon is subnormal, and then refused below.
        let own = ExponentialBounds::new(0.5 * epsilon.get()).floor_odds(1, 1);
        Self::new(epsilon, domain, own, own.wrapping_neg())
    }

    /// Makes optimized unary encoding: `p = 1/2`, `q = 1 / (e^eps + 1)`, the pair with the smallest
    /// variance for rare codes.
    ///
    /// `q` is rounded down to a whole number of words. `p` is the largest number of words that the
    /// guarantee then allows. Up to an epsilon of 20, it is below a half by at most 1e-9.
    ///
    /// # Errors
    ///
    /// Those of [`symmetric`](Self::symmetric).
    pub fn optimized(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        let bounds = ExponentialBounds::new(epsilon.get());
        let other = u64::try_from(bounds.floor_quotient(ALL, 1)).unwrap_or(u64::MAX);
        let own = bounds.floor_odds(other, ALL - u128::from(other));
        Self::new(epsilon, domain, own, other)
    }

    /// Makes thresholding with histogram encoding, in its equivalent unary form. Laplace noise of
    /// scale `2 / eps` is added to the node's histogram, which is one for the own code and zero for
    /// others. A bit says whether the sum is above
    /// [`histogram_threshold`](Self::histogram_threshold) `t`. So `p = 1 - e^(eps (t - 1) / 2) / 2`
    /// and `q = e^(-eps t / 2) / 2`.
    ///
    /// The noisy histogram would be private to `eps`. Its bits reveal less, and the realised
    /// epsilon is that of the bits, so it is smaller than the requested epsilon.
    ///
    /// # Errors
    ///
    /// Those of [`symmetric`](Self::symmetric).
    pub fn threshold_histogram(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        let threshold = Self::histogram_threshold(epsilon);
        let half = 0.5 * epsilon.get();
        // Half of the 2^64 words, exactly: a product with it is rounded once.
        let words = |exponent: f64| (libm::exp(exponent) * 9_223_372_036_854_775_808.0).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [0, 2^63]")]
        let (miss, other) =
            (words(half * (threshold - 1.0)) as u64, words(-half * threshold) as u64);
        let bounds = ExponentialBounds::new(epsilon.get());
        let most = bounds.floor_odds(other, ALL - u128::from(other));
        Self::new(epsilon, domain, most.min(miss.max(1).wrapping_neg()), other)
    }

    /// The threshold in [1/2, 1] with which thresholding with histogram encoding has the smallest
    /// variance for rare codes, `q (1 - q) / (p - q)^2`. Golden-section search finds it to about
    /// 1e-9.
    #[must_use]
    pub fn histogram_threshold(epsilon: Epsilon) -> f64 {
        let half = 0.5 * epsilon.get();
        let variance = |threshold: f64| {
            let q = 0.5 * libm::exp(-half * threshold);
            let gap =
                -0.5 * (libm::expm1(half * (threshold - 1.0)) + libm::expm1(-half * threshold));
            q * (1.0 - q) / (gap * gap)
        };
        let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
        let (mut low, mut high) = (0.5, 1.0);
        for _ in 0..60 {
            let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
            if variance(left) <= variance(right) {
                high = right;
            } else {
                low = left;
            }
        }
        0.5 * (low + high)
    }

    fn new(epsilon: Epsilon, domain: DomainSize, own: u64, other: u64) -> Result<Self> {
        if domain.get() > Self::MAXIMUM_DOMAIN {
            let maximum = Self::MAXIMUM_DOMAIN;
            return Err(Error::DomainSize { value: domain.get(), maximum });
        }
        if other == 0 || own.saturating_sub(other) >> 32 == 0 {
            return Err(Error::EpsilonUnrealizable {
                epsilon: epsilon.get(),
                domain_size: domain.get(),
            });
        }
        Ok(Self { epsilon, domain, own, others: BiasedBits::new(other) })
    }

    /// The epsilon that was requested.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// `(P, Q)`: how many of the 2^64 words set the bit of the own code, and how many that of each
    /// other code. The realised guarantee is `ln(P (2^64 - Q) / ((2^64 - P) Q))`, exactly.
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        (self.own, self.others.threshold())
    }

    /// The realised epsilon, rounded up to a floating-point number. It is never below the truth,
    /// and never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let (own, other) = self.words();
        let (own, other) = (u128::from(own), u128::from(other));
        logarithm_above(own * (ALL - other), (ALL - own) * other, self.epsilon.get())
    }

    /// `(p*, q*)`: the probabilities that the bit is one for the own code, and for any other code.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        let (own, other) = self.words();
        (own as f64 / ALL as f64, other as f64 / ALL as f64)
    }

    /// Draws a tally with the law of [`collect`](crate::frequency::FrequencyOracle::collect).
    /// `true_counts[i]` nodes hold code `i`, and each takes part with probability `rate`.
    ///
    /// The bits of a report are independent. So, given who takes part, all counts are independent
    /// too: each code takes two binomial numbers, for any number of nodes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there is not one count for each code; [`Error::CountOverflow`]
    /// if the counts add up to more than 64 bits hold.
    ///
    /// ```
    /// use turnout_core::frequency::UnaryEncoding;
    /// use turnout_core::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout_core::random::AesStreams;
    ///
    /// let oracle = UnaryEncoding::symmetric(Epsilon::new(1.0)?, DomainSize::new(2)?)?;
    /// let streams = AesStreams::from_seed(1);
    /// let tally = oracle.simulate(&[400_000_000_000, 600_000_000_000], Probability::ONE, &streams)?;
    /// assert_eq!(tally.received, 1_000_000_000_000);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn simulate<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Result<Tally> {
        let probabilities = self.support_probabilities();
        independent(self.domain, probabilities, true_counts, rate, streams)
    }
}

impl Randomizer for UnaryEncoding {
    type Item = u64;
    type Counter = BitCounter;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        bit_rows::row_words(self.domain)
    }

    /// All bits as those of other codes, then one word for the own bit, which is written by a pass
    /// over the whole row: neither time nor memory accesses depend on the code.
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u64], rng: &mut R) {
        self.others.fill(reports, rng);
        let mut buffer = [0; BLOCK];
        let words = &mut buffer[..codes.len()];
        rng.fill_words(words);
        let last = bit_rows::last_word(self.domain);
        let rows = reports.chunks_exact_mut(self.width());
        for ((row, &code), &word) in rows.zip(codes).zip(&*words) {
            let value = u64::from(word < self.own).wrapping_neg();
            let bit = 1 << (code % 64);
            for (items, position) in row.iter_mut().zip(0..) {
                let own = u64::from(position == code / 64).wrapping_neg() & bit;
                *items = (*items & !own) | (value & own);
            }
            if let Some(items) = row.last_mut() {
                *items &= last;
            }
        }
    }

    fn valid(&self, report: &[u64]) -> bool {
        bit_rows::is_row(self.domain, report)
    }

    fn expected(&self) -> String {
        format!("the bits from {} on of a report to be zero", self.domain.get())
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
