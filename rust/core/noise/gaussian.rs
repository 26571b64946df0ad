//! Discrete Gaussian noise.

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use rand::Rng;

use super::laplace::geometric;
use super::trial::{Exponent, never};
use super::{check, in_chunks};
use crate::Result;
use crate::random::{Purpose, Streams, decompose};

/// A distance from which on the exponent is above [`FAR_EXPONENT`].
const FAR: u128 = 1 << 63;

/// `FAR^2 / (v 2^x)` with `v < 2^53` and `x <= 63`.
const FAR_EXPONENT: u64 = 1 << 10;

/// Exact discrete Gaussian noise: `P[x]` proportional to `e^(-x^2 / (2 sigma^2))`.
///
/// It is drawn by algorithm 3 of Canonne, Kamath, Steinke, "The discrete Gaussian for differential
/// privacy" (2020). A discrete Laplace number `y` of scale `t` is kept with probability `e^(-(|y| -
/// sigma^2 / t)^2 / (2 sigma^2))`. Any `t` gives the right law; here it is the power of two nearest
/// to `sigma`, and at least one. `sigma^2` is the exact rational value of the floating-point
/// number, so nothing is rounded.
///
/// ```
/// use turnout_core::random::AesStreams;
/// use turnout_core::noise::DiscreteGaussian;
///
/// let noise = DiscreteGaussian::new(27.8)?;
/// assert!(noise.realized_variance() >= 27.8);
/// let streams = AesStreams::from_operating_system()?;
/// assert_eq!(noise.draw_many(1000, &streams)?.len(), 1000);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiscreteGaussian {
    variance: f64,
    /// `sigma^2 = mantissa / 2^shift`, with `2^52 <= mantissa < 2^53` and `19 <= shift <= 62`.
    mantissa: u64,
    shift: u32,
    /// `log2 t`.
    bits: u32,
}

impl DiscreteGaussian {
    /// The smallest variance parameter.
    pub const SMALLEST_VARIANCE: f64 = 1e-3;

    /// The largest variance parameter.
    pub const LARGEST_VARIANCE: f64 = 1e10;

    /// Makes noise with that variance parameter `sigma^2`.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if the variance is not from
    /// [`DiscreteGaussian::SMALLEST_VARIANCE`] to [`DiscreteGaussian::LARGEST_VARIANCE`].
    pub fn new(variance: f64) -> Result<Self> {
        let (least, most) = (Self::SMALLEST_VARIANCE, Self::LARGEST_VARIANCE);
        check(variance, least, most, "variance", "from 1e-3 to 1e10")?;
        let (mantissa, exponent) = decompose(variance);
        let shift = u32::try_from(exponent.unsigned_abs()).unwrap_or(0);
        // 2^(52 - shift) <= sigma^2 < 2^(53 - shift)
        Ok(Self { variance, mantissa, shift, bits: 53_u32.saturating_sub(shift) / 2 })
    }

    /// The realised parameter `sigma^2`, which is exactly the requested one. The variance of the
    /// noise is at most that.
    #[must_use]
    pub const fn realized_variance(&self) -> f64 {
        self.variance
    }

    /// Draws one number.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        loop {
            let magnitude = geometric(self.bits, rng);
            let negative = rng.next_u64() >> 63 == 1;
            if (negative && magnitude == 0) || !self.keep(magnitude, rng) {
                continue;
            }
            let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
            return if negative { -magnitude } else { magnitude };
        }
    }

    /// Draws many numbers, on the current rayon pool. They depend on `streams` alone.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if they do not fit in memory.
    pub fn draw_many<S: Streams>(&self, length: usize, streams: &S) -> Result<Vec<i64>> {
        in_chunks(length, Purpose::DiscreteGaussian, streams, |numbers, rng| {
            numbers.fill_with(|| self.draw(rng));
        })
    }

    /// `log2` of what divides `distance^2 / mantissa` in the exponent: from 53 to 63.
    const fn scale(&self) -> u32 {
        2 * self.bits + self.shift + 1
    }

    /// A trial of probability `e^-g` with `g = (magnitude 2^(bits + shift) - mantissa)^2 /
    /// (mantissa 2^scale)`.
    #[inline]
    fn keep<R: Rng + ?Sized>(&self, magnitude: u128, rng: &mut R) -> bool {
        let shift = self.bits + self.shift;
        // A power of two times this is below 2^127.
        let centre = u128::from(self.mantissa);
        let distance =
            (magnitude < 1 << (126 - shift)).then(|| (magnitude << shift).abs_diff(centre));
        match distance {
            Some(distance) if distance < FAR => self.exponent(distance).trial(rng),
            _ => self.keep_far(magnitude, rng),
        }
    }

    /// The exponent at a distance below [`FAR`]; all is exact in 128 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "below 2^64 by the bounds of the fields")]
    fn exponent(&self, distance: u128) -> Exponent {
        let denominator = u128::from(self.mantissa);
        let square = distance * distance;
        let (quotient, rest) = (square / denominator, square % denominator);
        let scale = self.scale();
        // The last digits of the 64 come from the rest of the division.
        let rest = rest << (64 - scale);
        let leading = (quotient & ((1 << scale) - 1)) << (64 - scale);
        Exponent {
            whole: (quotient >> scale) as u64,
            digits: (leading + rest / denominator) as u64,
            numerator: rest % denominator,
            denominator,
        }
    }

    /// The same from [`FAR`] on: a certain part of the exponent first, which almost never leaves
    /// anything to do.
    #[cold]
    #[inline(never)]
    fn keep_far<R: Rng + ?Sized>(&self, magnitude: u128, rng: &mut R) -> bool {
        never(FAR_EXPONENT, rng) && self.far_exponent(magnitude).trial(rng)
    }

    /// What is left of the exponent after [`FAR_EXPONENT`].
    fn far_exponent(&self, magnitude: u128) -> Exponent {
        let centre = BigUint::from(self.mantissa);
        // Farther than the centre: the difference is positive.
        let distance = (BigUint::from(magnitude) << (self.bits + self.shift)) - &centre;
        let denominator = centre << self.scale();
        let rest = (&distance * &distance - (&denominator * FAR_EXPONENT)) << 64_u32;
        let (digits, rest) = (&rest / &denominator, rest % &denominator);
        Exponent {
            whole: (&digits >> 64_u32).to_u64().unwrap_or(u64::MAX),
            digits: (digits & BigUint::from(u64::MAX)).to_u64().unwrap_or(0),
            numerator: rest.to_u128().unwrap_or(0),
            denominator: denominator.to_u128().unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::One;

    use super::super::tests::{Given, exact, rational};
    use super::*;

    /// `(magnitude - sigma^2 / t)^2 / (2 sigma^2)`
    fn expected(noise: &DiscreteGaussian, magnitude: u128) -> BigRational {
        let variance = exact(noise.realized_variance());
        let gap = rational(magnitude, 1) - &variance / rational(1_u64 << noise.bits, 1);
        &gap * &gap / (rational(2, 1) * variance)
    }

    fn value(exponent: &Exponent) -> BigRational {
        assert!(exponent.numerator < exponent.denominator && exponent.denominator <= 1 << 127);
        let digits =
            rational(exponent.digits, 1) + rational(exponent.numerator, exponent.denominator);
        rational(exponent.whole, 1) + digits / rational(BigInt::one() << 64, 1)
    }

    #[test]
    fn exponents_are_exact() -> Result<()> {
        let mut far = 0;
        for variance in [1e-3, 0.1, 0.25, 0.9999, 1.0, 2.0, 3.999, 27.8, 1e4, 1.0e10] {
            let noise = DiscreteGaussian::new(variance)?;
            let shift = noise.bits + noise.shift;
            let t = 1_u128 << noise.bits;
            for magnitude in [0, 1, 2, 3, 4, 7, t, 5 * t + 1, 300 * t, 3000 * t + 1, 1 << 90] {
                let expected = expected(&noise, magnitude);
                let distance = (BigInt::from(magnitude) << shift) - noise.mantissa;
                let distance = distance.magnitude().to_u128().unwrap_or(u128::MAX);
                if distance < FAR {
                    assert_eq!(value(&noise.exponent(distance)), expected);
                } else {
                    far += 1;
                    assert!(expected >= rational(FAR_EXPONENT, 1));
                    let exponent = noise.far_exponent(magnitude);
                    if exponent.whole < u64::MAX {
                        let rest = value(&exponent);
                        assert_eq!(rest + rational(FAR_EXPONENT, 1), expected);
                    }
                }
            }
            // The scale of the proposals is within a factor of the square root of two.
            let two_variances = rational(2, 1) * exact(variance);
            assert!(variance < 1.0 || rational(2 * t * t, 1) >= exact(variance));
            assert!(variance < 1.0 || rational(t * t, 1) <= two_variances);
        }
        assert!(far > 10);
        Ok(())
    }

    #[test]
    fn far_proposals_are_kept_by_as_many_trials_as_their_exponent() -> Result<()> {
        // All words zero: all Poisson counts are zero, and everything is kept.
        let noise = DiscreteGaussian::new(1e-3)?;
        let whole = usize::try_from(expected(&noise, 4).to_integer().to_u64().unwrap_or(0));
        let rest = whole.unwrap_or(0) - 1024;
        let mut zeros = Given::new(&[]);
        assert!(noise.keep(4, &mut zeros));
        // Counts of mean eight, of mean one, and one for the fraction.
        assert_eq!(zeros.used(), 1024 / 8 + rest / 8 + rest % 8 + 1);
        let mut words = vec![0; 200];
        words.push(u64::MAX);
        assert!(!noise.keep(4, &mut Given::new(&words)));
        Ok(())
    }
}
