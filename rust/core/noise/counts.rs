//! Counts of independent coins.

use rand::Rng;

use super::in_chunks;
use crate::random::{Purpose, Streams, decompose};
use crate::{Error, Result};

/// Digits compared before the undecided coins are counted.
const DIGITS: u64 = 3;

/// The number of heads among independent coins with exactly the same probability: how many dummy
/// users take part.
///
/// Each coin compares a uniform number with the probability, binary digit by binary digit, and at
/// each digit half of the undecided coins stay undecided. Coins are tossed 64 at a time: a word has
/// the next digit of each. After three digits the undecided coins are counted, and tossed together
/// from then on. With many coins, 64 of them take about 3.5 words, whatever the probability.
///
/// ```
/// use turnout_core::random::AesStreams;
/// use turnout_core::noise::BernoulliCounts;
///
/// let dummies = BernoulliCounts::new(100, 0.25)?;
/// let streams = AesStreams::from_operating_system()?;
/// assert!(dummies.draw_many(30, &streams)?.iter().all(|&count| (0..=100).contains(&count)));
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BernoulliCounts {
    trials: u64,
    /// The probability is `mantissa / 2^digits`.
    mantissa: u64,
    digits: u64,
}

impl BernoulliCounts {
    /// Makes the count of `trials` coins.
    ///
    /// # Errors
    ///
    /// [`Error::Probability`] if `rate` is not in (0, 1]; [`Error::Accounting`] if there are more
    /// than 2^62 trials.
    pub fn new(trials: u64, rate: f64) -> Result<Self> {
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(Error::Probability { argument: "rate", value: rate });
        }
        if trials > 1 << 62 {
            let expected = "at most 2^62";
            return Err(Error::Accounting { argument: "trials", value: trials as f64, expected });
        }
        let (mantissa, exponent) = decompose(rate);
        Ok(Self { trials, mantissa, digits: exponent.unsigned_abs() })
    }

    /// One count. It costs time in proportion to the trials, about 0.1 ns each.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        if self.mantissa >> self.digits.min(63) == 1 {
            return self.trials.cast_signed(); // the probability is one
        }
        let mut heads = 0;
        let (mut undecided, mut left) = (self.trials, self.digits);
        // When no digit is left the numbers are not below the probability.
        while undecided > 0 && left > 0 {
            let digits = if undecided <= 64 { left } else { left.min(DIGITS) };
            let mut still = 0;
            for start in (0..undecided).step_by(64) {
                let coins = u64::MAX >> (64 - (undecided - start).min(64));
                let (below, equal) = self.compare(coins, left, digits, rng);
                heads += i64::from(below.count_ones());
                still += u64::from(equal.count_ones());
            }
            undecided = still;
            left -= digits;
        }
        heads
    }

    /// Many counts, on the current rayon pool; they depend on `streams` alone.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if they do not fit in memory.
    pub fn draw_many<S: Streams>(&self, length: usize, streams: &S) -> Result<Vec<i64>> {
        in_chunks(length, Purpose::Dummies, streams, |numbers, rng| {
            numbers.fill_with(|| self.draw(rng));
        })
    }

    /// Compares the next digits of the coins with those of the probability, of which `left` are left:
    /// the bits of the coins that are below, and of those that are still equal.
    #[inline]
    fn compare<R: Rng + ?Sized>(
        &self,
        mut equal: u64,
        left: u64,
        digits: u64,
        rng: &mut R,
    ) -> (u64, u64) {
        let mut below = 0;
        for shift in (left - digits..left).rev() {
            if equal == 0 {
                break;
            }
            let one = if shift < 64 { (self.mantissa >> shift & 1).wrapping_neg() } else { 0 };
            let word = rng.next_u64();
            below |= equal & !word & one;
            equal &= !(word ^ one);
        }
        (below, equal)
    }
}
