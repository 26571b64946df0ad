//! Counts of independent coins.

use rand_core::Rng;

use super::in_chunks;
use crate::random::{Purpose, Streams, decompose};
use crate::{Error, Result};

/// The number of heads among independent coins of exactly the same probability: the dummy users
/// that take part.
///
/// The coins are thrown 64 at a time. Each compares a uniform number with the probability, digit by
/// digit: one word gives the next digit of all, and is the last as soon as no coin is undecided.
/// That takes about 8 words, for any floating-point probability.
///
/// ```
/// use turnout::random::AesStreams;
/// use turnout::sharing::noise::BernoulliCounts;
///
/// let dummies = BernoulliCounts::new(100, 0.25)?;
/// let streams = AesStreams::from_operating_system()?;
/// assert!(dummies.draw_many(30, &streams)?.iter().all(|&count| (0..=100).contains(&count)));
/// # Ok::<(), turnout::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BernoulliCounts {
    trials: u64,
    /// The probability is `mantissa / 2^digits`.
    mantissa: u64,
    digits: u64,
}

impl BernoulliCounts {
    /// So many coins.
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
        let mut count = 0;
        for _ in 0..self.trials / 64 {
            count += i64::from(self.heads(u64::MAX, rng).count_ones());
        }
        let last = self.trials % 64;
        if last > 0 {
            count += i64::from(self.heads(u64::MAX >> (64 - last), rng).count_ones());
        }
        count
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

    /// Throws the coins that have a bit in `undecided`, and gives the bits of those that show heads.
    #[inline]
    fn heads<R: Rng + ?Sized>(&self, mut undecided: u64, rng: &mut R) -> u64 {
        let mut heads = 0;
        let mut left = self.digits;
        // When no digit is left the number is not below the probability.
        while undecided != 0 && left > 0 {
            left -= 1;
            let word = rng.next_u64();
            if left < 64 && (self.mantissa >> left) & 1 == 1 {
                heads |= undecided & !word;
                undecided &= word;
            } else {
                undecided &= !word;
            }
        }
        heads
    }
}
