//! Certified bounds of the exponential function.

use num_bigint::BigUint;
use num_traits::{One, ToPrimitive, Zero};

use super::interval::{Interval, decompose, divide_up};

/// Fractional bits of the working precision: e^42 has 61 integer bits, and squaring loses at most
/// one bit a step.
const BITS: u64 = 256;

/// Proven rational bounds of `e^x`: every operation on the lower bound rounds down, and every
/// operation on the upper bound rounds up.
///
/// ```
/// use turnout_core::random::ExponentialBounds;
/// let e = ExponentialBounds::new(1.0);
/// assert_eq!(e.floor_times(1_000_000_000_000), 2_718_281_828_459);
/// assert_eq!(e.floor_quotient(1_000_000_000_000, 0), 367_879_441_171);
/// assert_eq!(e.ceiling_quotient(1_000_000_000_000), 367_879_441_172);
/// ```
#[derive(Debug, Clone)]
pub struct ExponentialBounds {
    bounds: Interval,
}

impl ExponentialBounds {
    /// Makes the bounds for a finite `x >= 0`.
    #[must_use]
    pub fn new(x: f64) -> Self {
        Self { bounds: exponential(x, BITS) }
    }

    /// Returns a proven lower bound of `floor(e^x * factor)`, which is exact unless the product is
    /// within 2^-100 of a whole number. It saturates at `u128::MAX`.
    #[must_use]
    pub fn floor_times(&self, factor: u64) -> u128 {
        ((&self.bounds.low * factor) >> BITS).to_u128().unwrap_or(u128::MAX)
    }

    /// Returns a proven lower bound of `floor(numerator / (e^x + addend))`, exact outside the same
    /// margin.
    #[must_use]
    pub fn floor_quotient(&self, numerator: u128, addend: u64) -> u128 {
        let denominator = &self.bounds.high + (BigUint::from(addend) << BITS);
        ((BigUint::from(numerator) << BITS) / denominator).to_u128().unwrap_or(u128::MAX)
    }

    /// Returns a proven upper bound of `ceil(numerator / e^x)`, exact outside the same margin.
    #[must_use]
    pub fn ceiling_quotient(&self, numerator: u64) -> u128 {
        divide_up(&(BigUint::from(numerator) << BITS), &self.bounds.low)
            .to_u128()
            .unwrap_or(u128::MAX)
    }

    /// The most words `T` out of 2^64 whose odds `T / (2^64 - T)` are certain to be at most
    /// `e^x * numerator / denominator`, exact but for the same margin.
    pub(crate) fn floor_odds(&self, numerator: u64, denominator: u128) -> u64 {
        let odds = &self.bounds.low * numerator;
        let all = &odds + (BigUint::from(denominator) << BITS);
        ((odds << 64_u32) / all).to_u64().unwrap_or(u64::MAX)
    }

    /// Tells whether `e^x >= numerator / denominator` is certain.
    #[must_use]
    pub fn at_least(&self, numerator: u128, denominator: u128) -> bool {
        self.at_least_ratio(&BigUint::from(numerator), &BigUint::from(denominator))
    }

    /// The same for numbers of any size.
    pub(crate) fn at_least_ratio(&self, numerator: &BigUint, denominator: &BigUint) -> bool {
        &self.bounds.low * denominator >= numerator << BITS
    }
}

/// `e^x` for a finite `x >= 0`, enclosed with that many fractional bits.
///
/// The Taylor series at `x / 2^j < 1`, then `j` squarings.
pub(crate) fn exponential(x: f64, bits: u64) -> Interval {
    let mut halvings = 0_u32;
    let mut reduced = x;
    while reduced >= 1.0 {
        reduced *= 0.5; // exact
        halvings += 1;
    }
    let (mantissa, exponent) = decompose(reduced);
    let argument = Interval::from_binary(mantissa, exponent, bits);
    let mut sum = Interval::one(bits);
    let mut term = Interval::one(bits);
    let mut index = 0_u64;
    while !term.high.is_zero() && index < 4 * bits {
        index += 1;
        term = term.times(&argument);
        term.low /= index;
        term.high = (&term.high + (index - 1)) / index;
        sum.low += &term.low;
        sum.high += &term.high;
        if term.high.is_one() {
            break;
        }
    }
    // The terms left out fall at least as fast as 1/2, 1/4, ... of the last one.
    sum.high += &term.high;
    for _ in 0..halvings {
        sum = sum.times(&sum);
    }
    sum
}

/// The logarithm of `numerator / denominator > 1`, rounded up to a floating-point number that is at
/// most `most`, which must not be below it.
pub(crate) fn logarithm_above(numerator: u128, denominator: u128, most: f64) -> f64 {
    let gain = numerator.saturating_sub(denominator) as f64 / denominator as f64;
    let mut candidate = libm::log1p(gain) * (1.0 - 1e-15);
    while candidate < most {
        if ExponentialBounds::new(candidate).at_least(numerator, denominator) {
            return candidate;
        }
        candidate = candidate.next_up();
    }
    most
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;

    use super::*;

    /// Partial sums of the series in exact rational arithmetic, with a bound of the rest.
    fn rational_bounds(x: f64) -> Option<(BigRational, BigRational)> {
        let x = BigRational::from_float(x)?;
        let mut term = BigRational::one();
        let mut sum = BigRational::one();
        for index in 1..260_u32 {
            term = term * &x / BigInt::from(index);
            sum += &term;
        }
        // x <= 44 and index >= 259: the rest is below the last term.
        Some((sum.clone(), sum + term))
    }

    #[test]
    fn bounds_enclose_the_exact_series() {
        for x in [1e-300, 1e-12, 0.1, 0.5, 1.0, core::f64::consts::LN_2, 3.7, 10.0, 20.5, 44.0] {
            let Some((low, high)) = rational_bounds(x) else { continue };
            let bounds = ExponentialBounds::new(x).bounds;
            let unit = BigInt::from(BigUint::one() << BITS);
            let ours_low = BigRational::new(bounds.low.into(), unit.clone());
            let ours_high = BigRational::new(bounds.high.into(), unit.clone());
            assert!(ours_low <= high && low <= ours_high, "{x}");
            let width = (&ours_high - &ours_low) / &ours_low;
            assert!(width < BigRational::new(1.into(), BigInt::from(BigUint::one() << 200_u32)));
            // One-sided: neither may be on the wrong side of the other enclosure.
            assert!(ours_low <= high, "{x}");
            assert!(ours_high >= low, "{x}");
        }
    }

    #[test]
    fn odds_are_the_largest_within_their_bound() {
        for (x, numerator, denominator) in [
            (1e-9, 1, 1),
            (0.5, 1, 1),
            (1.0, 27, 73),
            (3.0, 1 << 60, 1 << 64),
            (42.0, 1, 1),
            (42.0, 10, (1 << 64) - 10),
        ] {
            let Some((low, high)) = rational_bounds(x) else { continue };
            let words = ExponentialBounds::new(x).floor_odds(numerator, denominator);
            let unit = BigInt::from(BigUint::one() << 64_u32);
            let odds = |words: u64| BigRational::new(words.into(), &unit - BigInt::from(words));
            let share = BigRational::new(numerator.into(), BigInt::from(denominator));
            assert!(odds(words) <= low * &share, "{x}");
            assert!(odds(words + 1) > high * share, "{x}");
        }
    }

    #[test]
    fn logarithms_are_rounded_up() {
        for (numerator, denominator) in [(3, 1), (1 << 100, 1 << 60), ((1 << 64) + 1, 1 << 64)] {
            let found = logarithm_above(numerator, denominator, 50.0);
            assert!(ExponentialBounds::new(found).at_least(numerator, denominator));
            let below = found.next_down().next_down().next_down();
            assert!(!ExponentialBounds::new(below).at_least(numerator, denominator));
            assert!(found <= logarithm_above(numerator, denominator, found));
        }
    }
}
