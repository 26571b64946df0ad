//! Exact trials with rational probabilities, or with probability `e^-g` for a rational `g`.

use rand::Rng;

use super::table::{EIGHT, ONE};
use crate::{Error, Result};

/// A trial that succeeds with probability `numerator / denominator`, at most one; the denominator
/// is from 1 to 2^127.
///
/// A uniform number is read 64 bits at a time until it is certain on which side it is.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low and the high half of a product")]
pub(super) fn ratio_trial<R: Rng + ?Sized>(
    numerator: u128,
    denominator: u128,
    rng: &mut R,
) -> bool {
    let mut rest = numerator;
    loop {
        // A uniform number in [word, word + 1) / 2^64 against rest / denominator.
        let word = u128::from(rng.next_u64());
        // word * denominator = high * 2^64 + low
        let product = word * (denominator & u128::from(u64::MAX));
        let (high, low) = (word * (denominator >> 64) + (product >> 64), product as u64);
        if high >= rest {
            return false;
        }
        let gap = rest - high;
        if gap >> 64 != 0 {
            return true;
        }
        rest = (gap << 64) - u128::from(low);
        if rest >= denominator {
            return true;
        }
    }
}

/// `(whole + (digits + numerator / denominator) / 2^64)`, with a ratio below one: an exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exponent {
    pub(super) whole: u64,
    pub(super) digits: u64,
    pub(super) numerator: u128,
    pub(super) denominator: u128,
}

impl Exponent {
    /// `whole + digits / 2^64`.
    pub(super) const fn binary(whole: u64, digits: u64) -> Self {
        Self { whole, digits, numerator: 0, denominator: 1 }
    }

    /// A trial that succeeds with the probability that a Poisson process has no point in an
    /// interval of this length: `e^-g`.
    #[inline]
    pub(super) fn trial<R: Rng + ?Sized>(&self, rng: &mut R) -> bool {
        never(self.whole, rng) && (0..ONE.draw(rng)).all(|_| !self.below_fraction(rng))
    }

    /// A trial of the part below one.
    #[inline]
    fn below_fraction<R: Rng + ?Sized>(&self, rng: &mut R) -> bool {
        let word = rng.next_u64();
        if word == self.digits {
            return ratio_trial(self.numerator, self.denominator, rng);
        }
        word < self.digits
    }
}

/// A trial that succeeds with probability `e^-length`.
#[inline]
pub(super) fn never<R: Rng + ?Sized>(length: u64, rng: &mut R) -> bool {
    (0..length / 8).all(|_| EIGHT.draw(rng) == 0) && (0..length % 8).all(|_| ONE.draw(rng) == 0)
}

/// An exact Bernoulli trial of probability `e^-g` for a non-negative rational `g`.
///
/// It has the law of algorithm 1 of Canonne, Kamath, Steinke, "The discrete Gaussian for
/// differential privacy" (2020), but uses another method. `e^-g` is the probability that a Poisson
/// count of mean `g` is zero. Counts of mean one come from an exact table, and each of their points
/// is kept with the fractional part of `g`. No floating-point number is involved.
///
/// ```
/// use turnout_core::random::{AesStreams, Purpose, Streams};
/// use turnout_core::noise::ExponentialTrial;
///
/// let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
/// let trial = ExponentialTrial::new(1, 2)?; // e^-1/2 = 0.607
/// let successes = (0..10_000).filter(|_| trial.draw(&mut stream)).count();
/// assert!((5_700..6_500).contains(&successes));
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExponentialTrial(Exponent);

impl ExponentialTrial {
    /// Makes a trial of probability `e^-(numerator / denominator)`.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the denominator is zero.
    #[expect(clippy::cast_possible_truncation, reason = "the digits are below 2^64")]
    pub fn new(numerator: u64, denominator: u64) -> Result<Self> {
        if denominator == 0 {
            let expected = "a positive integer";
            return Err(Error::Accounting { argument: "denominator", value: 0.0, expected });
        }
        let rest = u128::from(numerator % denominator) << 64;
        let denominator = u128::from(denominator);
        Ok(Self(Exponent {
            whole: (u128::from(numerator) / denominator) as u64,
            digits: (rest / denominator) as u64,
            numerator: rest % denominator,
            denominator,
        }))
    }

    /// Makes a trial of probability `e^-(whole + digits / 2^64)`.
    #[must_use]
    pub const fn binary(whole: u64, digits: u64) -> Self {
        Self(Exponent::binary(whole, digits))
    }

    /// Draws one trial.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> bool {
        self.0.trial(rng)
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::super::tests::{Given, check_law};
    use super::*;
    use crate::random::{AesStreams, Purpose, Streams};

    #[test]
    fn a_trial_compares_with_the_binary_expansion_of_the_ratio() {
        let denominators = [1, 2, 3, 10, (1 << 64) - 59, 1 << 64, (1 << 64) + 13, 3_u128.pow(80)];
        for denominator in denominators.into_iter().chain([(1 << 127) - 1, 1 << 127]) {
            for numerator in [0, 1, denominator / 3, denominator / 2, denominator - 1, denominator]
            {
                let scaled = (BigUint::from(numerator) << 192_u32) / denominator;
                let digit = |index: u32| {
                    let word: BigUint = (&scaled >> (128 - 64 * index)) & BigUint::from(u64::MAX);
                    word.to_u64_digits().first().copied().unwrap_or(0)
                };
                let (first, second, third) = (digit(0), digit(1), digit(2));
                let exact = (&scaled * denominator) == BigUint::from(numerator) << 192_u32;
                let mut cases = Vec::new();
                if numerator == denominator {
                    cases.push((vec![u64::MAX], true));
                } else {
                    // A number just below the expansion, and just above.
                    cases.push((vec![first, second, third, u64::MAX], false));
                    if !exact {
                        cases.push((vec![first, second, third, 0], true));
                    }
                    if let Some(below) = third.checked_sub(1) {
                        cases.push((vec![first, second, below], true));
                    }
                    if let Some(below) = second.checked_sub(1) {
                        cases.push((vec![first, below], true));
                    }
                    if let Some(below) = first.checked_sub(1) {
                        cases.push((vec![below], true));
                    }
                    if first < u64::MAX {
                        cases.push((vec![first + 1], false));
                    }
                }
                for (words, expected) in cases {
                    let mut given = Given::new(&words);
                    let found = ratio_trial(numerator, denominator, &mut given);
                    assert_eq!(found, expected, "{numerator} / {denominator}: {words:?}");
                    assert!(given.used() <= words.len());
                }
            }
        }
    }

    #[test]
    fn exponents_are_exact_sums() -> Result<()> {
        let one = BigUint::from(1_u32);
        for (numerator, denominator) in
            [(0, 1), (1, 1), (22, 7), (u64::MAX, 3), (5, u64::MAX), (u64::MAX - 1, u64::MAX)]
        {
            let Exponent { whole, digits, numerator: rest, denominator: below } =
                ExponentialTrial::new(numerator, denominator)?.0;
            // numerator / denominator = whole + (digits + rest / below) / 2^64, cross-multiplied.
            let sum = ((BigUint::from(whole) << 64_u32) + digits) * below + rest;
            assert_eq!(sum * denominator, (BigUint::from(numerator) << 64_u32) * below);
            assert!(rest < below && below * &one <= BigUint::from(u64::MAX));
        }
        assert!(ExponentialTrial::new(1, 0).is_err());
        Ok(())
    }

    #[test]
    fn a_tie_is_settled_by_the_following_words() {
        // g = (d + 1/3) / 2^64. The first word is a Poisson count of one: the largest below F(1).
        let exponent = Exponent { whole: 0, digits: 77, numerator: 1, denominator: 3 };
        let one_point = 1 << 63;
        assert_eq!(ONE.draw(&mut Given::new(&[one_point])), 1);
        assert!(!exponent.trial(&mut Given::new(&[one_point, 76])));
        assert!(exponent.trial(&mut Given::new(&[one_point, 78])));
        assert!(!exponent.trial(&mut Given::new(&[one_point, 77, u64::MAX / 3 - 1])));
        assert!(exponent.trial(&mut Given::new(&[one_point, 77, u64::MAX / 3 + 1])));
    }

    #[test]
    fn successes_have_the_exponential_probability() -> Result<()> {
        let mut stream = AesStreams::from_seed(2).stream(Purpose::Simulation, 0);
        for (numerator, denominator) in
            [(0, 7), (1, 1_000), (1, 3), (1, 1), (3, 2), (29, 4), (9, 1), (u64::MAX, u64::MAX / 2)]
        {
            let trial = ExponentialTrial::new(numerator, denominator)?;
            let mut observed = [0, 0];
            for _ in 0..2_000_000 {
                observed[usize::from(trial.draw(&mut stream))] += 1;
            }
            let success = (-(numerator as f64 / denominator as f64)).exp();
            check_law(&observed, &[1.0 - success, success]);
        }
        Ok(())
    }
}
