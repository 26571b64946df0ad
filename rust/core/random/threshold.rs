//! Probabilities as integer comparisons.

use rand::Rng;

use crate::{Error, Result};

/// 2^64 as a floating-point number.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// How a probability is rounded when it becomes a count of 64-bit words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// The realised probability is at most the requested one.
    Down,
    /// The realised probability is at least the requested one.
    Up,
}

/// A probability realised as a count of the 2^64 words: a word below the threshold is a success.
///
/// ```
/// use turnout_core::random::{Rounding, Threshold};
/// let half = Threshold::new(0.5, Rounding::Down)?;
/// assert_eq!(half.words(), 1 << 63);
/// assert!(half.accepts(0));
/// assert!(!half.accepts(1 << 63));
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold(u128);

impl Threshold {
    /// Makes the threshold next to `probability` on the side that `rounding` names.
    ///
    /// The two sides differ only for probabilities below 2^-11: a larger floating-point number is a
    /// whole number of words.
    ///
    /// # Errors
    ///
    /// [`Error::Probability`] if `probability` is not in (0, 1].
    pub fn new(probability: f64, rounding: Rounding) -> Result<Self> {
        if !(probability > 0.0 && probability <= 1.0) {
            return Err(Error::Probability { argument: "probability", value: probability });
        }
        // Scaling by a power of two is exact, for subnormal numbers too.
        let scaled = probability * TWO_TO_64;
        let whole = match rounding {
            Rounding::Down => scaled.floor(),
            Rounding::Up => scaled.ceil(),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Self(whole as u128))
    }

    /// How many of the 2^64 words are accepted.
    #[must_use]
    pub const fn words(self) -> u128 {
        self.0
    }

    /// Tells whether `word` is a success.
    #[inline(always)]
    #[must_use]
    pub const fn accepts(self, word: u64) -> bool {
        (word as u128) < self.0
    }
}

/// An exact Bernoulli trial for any floating-point probability, however small.
///
/// One word decides all but one case in 2^64. In that case the next word is compared with what the
/// first threshold left over, and so on.
///
/// ```
/// use turnout_core::parameters::Probability;
/// use turnout_core::random::{AesStreams, Bernoulli, Purpose, Streams};
/// let mut stream = AesStreams::from_seed(1).stream(Purpose::Participation, 0);
/// assert!(Bernoulli::new(1.0)?.draw(&mut stream));
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bernoulli {
    threshold: Threshold,
    remainder: f64,
}

impl Bernoulli {
    /// Makes a trial that succeeds with exactly `probability`.
    ///
    /// # Errors
    ///
    /// [`Error::Probability`] if `probability` is not in (0, 1].
    pub fn new(probability: f64) -> Result<Self> {
        let threshold = Threshold::new(probability, Rounding::Down)?;
        let scaled = probability * TWO_TO_64;
        // Exact: both are multiples of the last binary digit of `scaled`.
        Ok(Self { threshold, remainder: scaled - scaled.floor() })
    }

    /// Draws one trial.
    #[inline(always)]
    pub fn draw<R: Rng + ?Sized>(self, rng: &mut R) -> bool {
        let word = rng.next_u64();
        if u128::from(word) == self.threshold.0 {
            return Self::settle(self.remainder, rng);
        }
        self.threshold.accepts(word)
    }

    #[cold]
    fn settle<R: Rng + ?Sized>(remainder: f64, rng: &mut R) -> bool {
        let mut remainder = remainder;
        while remainder > 0.0 {
            let scaled = remainder * TWO_TO_64;
            let whole = scaled.floor();
            let word = u128::from(rng.next_u64());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let threshold = whole as u128;
            if word != threshold {
                return word < threshold;
            }
            remainder = scaled - whole;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use rand::TryRng;

    use super::*;

    struct Given<'a>(&'a [u64]);

    impl TryRng for Given<'_> {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
            Ok((self.try_next_u64()? >> 32) as u32)
        }
        fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
            let (first, rest) =
                self.0.split_first().map_or((0, self.0), |(&word, rest)| (word, rest));
            self.0 = rest;
            Ok(first)
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Infallible> {
            Ok(())
        }
    }

    #[test]
    fn rounding_brackets_the_probability() -> Result<()> {
        for probability in [1.0, 0.5, 0.1, 1e-3, 1e-9, 1e-19, 3e-20, 1e-300, f64::MIN_POSITIVE] {
            let down = Threshold::new(probability, Rounding::Down)?.words();
            let up = Threshold::new(probability, Rounding::Up)?.words();
            assert!(up - down <= 1, "{probability}");
            assert!(down as f64 <= probability * TWO_TO_64);
            assert!(up as f64 >= probability * TWO_TO_64);
        }
        for refused in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Threshold::new(refused, Rounding::Down).is_err());
        }
        Ok(())
    }

    #[test]
    fn a_tie_is_settled_by_the_following_words() -> Result<()> {
        // 3 * 2^-129: the first threshold is 0, the second 0, the third 3 * 2^63.
        let tiny = Bernoulli::new(3.0 * (-129.0_f64).exp2())?;
        assert!(tiny.draw(&mut Given(&[0, 0, 0])));
        assert!(tiny.draw(&mut Given(&[0, 1, (1 << 63) - 1])));
        assert!(!tiny.draw(&mut Given(&[0, 1, 1 << 63])));
        assert!(!tiny.draw(&mut Given(&[0, 2, 0])));
        assert!(!tiny.draw(&mut Given(&[1, 0, 0])));
        assert!(Bernoulli::new(1.0)?.draw(&mut Given(&[u64::MAX])));
        Ok(())
    }
}
