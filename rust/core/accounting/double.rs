//! Pairs of numbers that keep sums and thresholds exact.

use core::f64::consts::LN_2;
use core::ops::{Add, Div, Mul, Neg, Sub};

/// An unevaluated sum of two numbers: 106 bits.
///
/// The operations are those of Joldes, Muller, Popescu, "Tight and rigorous error bounds for basic
/// building blocks of double-word arithmetic" (2017); each has a relative error of at most
/// `10 * 2^-106`, as long as the lower number does not underflow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Double {
    pub(super) high: f64,
    pub(super) low: f64,
}

impl Double {
    pub(super) const ZERO: Self = Self { high: 0.0, low: 0.0 };
    pub(super) const ONE: Self = Self { high: 1.0, low: 0.0 };

    /// The exact sum of two numbers.
    #[inline]
    pub(super) fn sum(first: f64, second: f64) -> Self {
        let high = first + second;
        let of_second = high - first;
        Self { high, low: (first - (high - of_second)) + (second - of_second) }
    }

    /// The exact sum of two numbers, the first the larger one.
    #[inline]
    fn normalized(large: f64, small: f64) -> Self {
        let high = large + small;
        Self { high, low: small - (high - large) }
    }

    /// The exact product of two numbers.
    #[inline]
    pub(super) fn product(first: f64, second: f64) -> Self {
        let high = first * second;
        Self { high, low: first.mul_add(second, -high) }
    }

    /// The nearest number.
    #[inline]
    pub(super) fn value(self) -> f64 {
        self.high
    }

    /// The largest integer that is not above it, as far as 106 bits tell, and the rest.
    #[inline]
    pub(super) fn split_integer(self) -> (f64, f64) {
        let floor = self.high.floor();
        let rest = (self.high - floor) + self.low;
        if rest < 0.0 { (floor - 1.0, rest + 1.0) } else { (floor, rest) }
    }

    /// `e^x` for x from 0 to 700, with a relative error below `2^-94`.
    ///
    /// `x = k ln 2 + 64 r`: the series of `e^r - 1` to `r^12`, six doublings
    /// `e^{2r} - 1 = s (2 + s)`, and an exact scaling by `2^k`.
    pub(super) fn exp(x: f64) -> Self {
        let k = (x / LN_2).round();
        let reduced = Self::from(x) - Self { high: LN_2, low: LN_2_REST } * k;
        let r = Self { high: reduced.high / 64.0, low: reduced.low / 64.0 };
        let mut series = Self::ZERO;
        for term in (1..=12_u32).rev() {
            series = (Self::ONE + series) * r / f64::from(term);
        }
        for _ in 0..6 {
            series = series * (series + Self::from(2.0));
        }
        let result = Self::ONE + series;
        #[expect(clippy::cast_possible_truncation, reason = "a whole number up to 1010")]
        let shift = k as i32;
        Self { high: libm::ldexp(result.high, shift), low: libm::ldexp(result.low, shift) }
    }
}

/// `ln 2` less its nearest number.
const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;

impl From<f64> for Double {
    #[inline]
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Neg for Double {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Add for Double {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        let high = Self::sum(self.high, other.high);
        let low = Self::sum(self.low, other.low);
        let first = Self::normalized(high.high, high.low + low.high);
        Self::normalized(first.high, low.low + first.low)
    }
}

impl Add<f64> for Double {
    type Output = Self;

    #[inline]
    fn add(self, other: f64) -> Self {
        let sum = Self::sum(self.high, other);
        Self::normalized(sum.high, self.low + sum.low)
    }
}

impl Sub for Double {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        let product = Self::product(self.high, other.high);
        let cross = self.high.mul_add(other.low, self.low * other.high);
        Self::normalized(product.high, product.low + cross)
    }
}

impl Mul<f64> for Double {
    type Output = Self;

    #[inline]
    fn mul(self, other: f64) -> Self {
        let product = Self::product(self.high, other);
        Self::normalized(product.high, self.low.mul_add(other, product.low))
    }
}

impl Div for Double {
    type Output = Self;

    #[inline]
    fn div(self, other: Self) -> Self {
        let quotient = self.high / other.high;
        let product = other * quotient;
        let rest = (self.high - product.high) + (self.low - product.low);
        Self::normalized(quotient, rest / other.high)
    }
}

impl Div<f64> for Double {
    type Output = Self;

    #[inline]
    fn div(self, other: f64) -> Self {
        let quotient = self.high / other;
        let product = Self::product(quotient, other);
        let rest = (self.high - product.high) + (self.low - product.low);
        Self::normalized(quotient, rest / other)
    }
}

#[cfg(test)]
mod tests {
    use num_rational::BigRational;
    use num_traits::{One, Signed, ToPrimitive, Zero};

    use super::*;

    const UNIT: f64 = f64::EPSILON / 2.0;

    fn rational(value: f64) -> BigRational {
        BigRational::from_float(value).unwrap_or_else(BigRational::zero)
    }

    fn exact(value: Double) -> BigRational {
        rational(value.high) + rational(value.low)
    }

    /// `|ours / truth - 1|`, rounded.
    fn relative(ours: &BigRational, truth: &BigRational) -> f64 {
        if truth.is_zero() {
            return ours.abs().to_f64().unwrap_or(f64::NAN);
        }
        (ours / truth - BigRational::one()).abs().to_f64().unwrap_or(f64::NAN)
    }

    #[test]
    fn operations_on_pairs_have_106_bits() {
        let numbers = [
            Double::sum(0.1, 3e-18),
            Double::sum(-7.3, 1.1e-16),
            Double::sum(1.0 / 3.0, -1e-17),
            Double::sum(12345.678, 4.3e-13),
            Double::sum(1e200, 3e183),
            Double::from(1.0),
        ];
        let bound = 10.0 * UNIT * UNIT;
        for x in numbers {
            for y in numbers {
                let (a, b) = (exact(x), exact(y));
                assert!(relative(&exact(x + y), &(&a + &b)) <= bound, "{x:?} + {y:?}");
                assert!(relative(&exact(x - y), &(&a - &b)) <= bound, "{x:?} - {y:?}");
                assert!(relative(&exact(x * y), &(&a * &b)) <= bound || x.high > 1e199);
                assert!(relative(&exact(x / y), &(&a / &b)) <= bound, "{x:?} / {y:?}");
                let c = rational(y.high);
                assert!(relative(&exact(x + y.high), &(&a + &c)) <= bound, "{x:?} + {y:?}");
                assert!(relative(&exact(x * y.high), &(&a * &c)) <= bound || x.high > 1e199);
                assert!(relative(&exact(x / y.high), &(&a / &c)) <= bound, "{x:?} / {y:?}");
            }
        }
    }

    #[test]
    fn the_exponential_of_a_number_has_94_bits() {
        // e^x at sixty digits, as a number and the rest.
        let cases = [
            (0.0, 1.0, 0.0),
            (8.673_617_379_884_035e-19, 1.0, 8.673_617_379_884_035e-19),
            (0.1, 1.105_170_918_075_647_7, -8.149_523_913_327_619e-17),
            (0.5, 1.648_721_270_700_128_2, -4.731_568_479_435_833e-17),
            (1.0, core::f64::consts::E, 1.445_646_891_729_250_2e-16),
            (3.25, 25.790_339_917_193_062, -2.022_094_992_771_432_9e-16),
            (16.118_095, 9_999_993.490_418_924, -3.359_888_680_801_278_4e-10),
            (36.7, 8_681_754_200_535_380.0, 0.326_667_438_982_321),
            (325.3, 1.887_969_452_626_627_8e141, 1.043_269_863_109_406_6e125),
            (700.0, 1.014_232_054_735_004_5e304, 1.666_657_192_073_467_3e287),
        ];
        for (x, high, low) in cases {
            let ours = exact(Double::exp(x));
            let error = relative(&ours, &exact(Double::sum(high, low)));
            assert!(error < 2.0_f64.powi(-94), "{x}: {error}");
        }
    }

    #[test]
    fn a_pair_splits_into_an_integer_and_the_rest() {
        assert_eq!(Double::from(3.25).split_integer(), (3.0, 0.25));
        assert_eq!(Double::sum(3.0, 1e-20).split_integer(), (3.0, 1e-20));
        assert_eq!(Double::sum(3.0, -1e-20).split_integer(), (2.0, 1.0));
        assert_eq!(Double::from(-0.5).split_integer(), (-1.0, 0.5));
    }
}
