//! Encloses real numbers by fixed-point integers, to set up exact decisions.

use num_bigint::BigUint;
use num_traits::{One, Zero};

/// A real number in `[low, high] / 2^bits`.
#[derive(Debug, Clone)]
pub(crate) struct Interval {
    pub(crate) low: BigUint,
    pub(crate) high: BigUint,
    pub(crate) bits: u64,
}

/// The positive floating-point number `value` as `mantissa * 2^exponent`, exactly.
pub(crate) fn decompose(value: f64) -> (u64, i64) {
    let pattern = value.to_bits();
    let fraction = pattern & ((1 << 52) - 1);
    let biased = i64::from((pattern >> 52) as u16 & 0x7ff);
    if biased == 0 { (fraction, -1074) } else { (fraction | (1 << 52), biased - 1075) }
}

/// `value / 2^shift`, rounded up.
pub(super) fn shift_up(value: &BigUint, shift: u64) -> BigUint {
    let floor = value >> shift;
    if (&floor << shift) == *value { floor } else { floor + 1_u32 }
}

/// `numerator / denominator`, rounded up.
pub(super) fn divide_up(numerator: &BigUint, denominator: &BigUint) -> BigUint {
    (numerator + denominator - 1_u32) / denominator
}

impl Interval {
    /// One, exactly.
    pub(crate) fn one(bits: u64) -> Self {
        let unit = BigUint::one() << bits;
        Self { low: unit.clone(), high: unit, bits }
    }

    /// `mantissa * 2^exponent`, enclosed.
    pub(super) fn from_binary(mantissa: u64, exponent: i64, bits: u64) -> Self {
        let mantissa = BigUint::from(mantissa);
        let shift = exponent.saturating_add_unsigned(bits);
        let magnitude = shift.unsigned_abs();
        if shift >= 0 {
            let low = mantissa << magnitude;
            Self { high: low.clone(), low, bits }
        } else {
            Self { low: &mantissa >> magnitude, high: shift_up(&mantissa, magnitude), bits }
        }
    }

    /// `1 - self`, for a number in [0, 1].
    pub(super) fn complement(&self) -> Self {
        let unit = BigUint::one() << self.bits;
        let low = if self.high > unit { BigUint::zero() } else { &unit - &self.high };
        Self { low, high: &unit - &self.low, bits: self.bits }
    }

    /// The product of two numbers of the same precision.
    pub(super) fn times(&self, other: &Self) -> Self {
        Self {
            low: (&self.low * &other.low) >> self.bits,
            high: shift_up(&(&self.high * &other.high), self.bits),
            bits: self.bits,
        }
    }

    /// `self^exponent`.
    pub(super) fn power(&self, mut exponent: u64) -> Self {
        let mut result = Self::one(self.bits);
        let mut square = self.clone();
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(&square);
            }
            exponent >>= 1;
            if exponent > 0 {
                square = square.times(&square);
            }
        }
        result
    }

    /// The quotient, or nothing while the divisor may be zero.
    pub(crate) fn over(&self, divisor: &Self) -> Option<Self> {
        if divisor.low.is_zero() {
            return None;
        }
        Some(Self {
            low: (&self.low << self.bits) / &divisor.high,
            high: divide_up(&(&self.high << self.bits), &divisor.low),
            bits: self.bits,
        })
    }

    /// The whole part after scaling by `2^64`, if the enclosure settles it.
    pub(super) fn scaled_floor(&self) -> Option<BigUint> {
        let shift = self.bits - 64;
        let low = &self.low >> shift;
        (low == (&self.high >> shift)).then_some(low)
    }
}
