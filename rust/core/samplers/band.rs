//! Bands around a reference, as limits of integer weights.

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use crate::parameters::Epsilon;
use crate::random::{ExponentialBounds, decompose};
use crate::{Error, Result};

/// The largest total of reference weights.
pub const LARGEST_TOTAL: u64 = 1 << 62;

/// The allowed range of an integer weight around its reference.
///
/// A weight with reference `n` stays within [`limits(n)`](Self::limits), two integers whose ratio
/// is at most `e^epsilon`. The limits are rounded inwards, with proven bounds of the exponential
/// function. So the weights of two data sets never have a ratio above `e^epsilon`.
///
/// ```
/// use turnout_core::samplers::Band;
/// let band = Band::mollifier(1.0)?;
/// assert_eq!(band.limits(1_000_000)?, (606_531, 1_648_721)); // e^-1/2 and e^1/2
/// let band = Band::from_base(0.5, 1.0)?;
/// assert_eq!(band.limits(1_000_000)?, (500_000, 1_359_140)); // 1/2 and e/2
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Band {
    kind: Kind,
    /// `e^(epsilon / 2)` for a mollifier, `e^epsilon` above a base.
    factor: ExponentialBounds,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Mollifier,
    /// `mantissa * 2^exponent`, and the same as a floating-point number.
    Base(u64, i64, f64),
}

impl Band {
    /// Makes the relative mollifier: from `e^(-epsilon/2)` to `e^(epsilon/2)` times the reference.
    ///
    /// # Errors
    ///
    /// [`Error::Epsilon`] unless epsilon is above 0 and at most [`Epsilon::MAXIMUM`].
    pub fn mollifier(epsilon: f64) -> Result<Self> {
        let half = 0.5 * Epsilon::new(epsilon)?.get();
        Ok(Self { kind: Kind::Mollifier, factor: ExponentialBounds::new(half) })
    }

    /// Makes the band from `base` to `base e^epsilon` times the reference, for minimax-optimal
    /// sampling. Source: Park, Asoodeh, Lee, "Exactly minimax-optimal locally differentially
    /// private sampling", `NeurIPS` 2024.
    ///
    /// # Errors
    ///
    /// [`Error::Epsilon`] as for [`mollifier`](Self::mollifier); [`Error::Accounting`] unless the
    /// base is above 0 and at most 1.
    pub fn from_base(base: f64, epsilon: f64) -> Result<Self> {
        let epsilon = Epsilon::new(epsilon)?.get();
        if !(base > 0.0 && base <= 1.0) {
            let expected = "above 0 and at most 1";
            return Err(Error::Accounting { argument: "base", value: base, expected });
        }
        let (mantissa, exponent) = decompose(base);
        let kind = Kind::Base(mantissa, exponent, base);
        Ok(Self { kind, factor: ExponentialBounds::new(epsilon) })
    }

    /// Returns the smallest and the largest weight of an entry with this reference, which must be
    /// from 1 to [`LARGEST_TOTAL`]. If the largest weight exceeds 64 bits, it is `u64::MAX`.
    ///
    /// The smallest is at least 1 and at most the reference. For a mollifier, the largest is at
    /// least the reference; for a base, it is so wherever `base * e^epsilon >= 1`.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if the reference is out of range.
    pub fn limits(&self, reference: u64) -> Result<(u64, u64)> {
        if reference == 0 || reference > LARGEST_TOTAL {
            let expected = "an integer from 1 to 2^62";
            return Err(Error::Integer { argument: "reference", value: reference, expected });
        }
        let (low, scaled) = match self.kind {
            // Quotients of whole numbers by more than one are never above them.
            Kind::Mollifier => (narrow(self.factor.ceiling_quotient(reference)), reference),
            Kind::Base(mantissa, exponent, _) => {
                let low = times_up(reference, mantissa, exponent);
                (low, low)
            }
        };
        Ok((low, narrow(self.factor.floor_times(scaled))))
    }

    /// The base, if the band has one.
    pub(super) fn base(&self) -> Option<f64> {
        match self.kind {
            Kind::Mollifier => None,
            Kind::Base(_, _, base) => Some(base),
        }
    }
}

fn narrow(number: u128) -> u64 {
    number.to_u64().unwrap_or(u64::MAX)
}

/// `number * mantissa * 2^exponent`, rounded up, for a factor of at most one.
fn times_up(number: u64, mantissa: u64, exponent: i64) -> u64 {
    let product = BigUint::from(number) * mantissa;
    let shift = exponent.unsigned_abs();
    let floor = &product >> shift;
    let rounded = if (&floor << shift) == product { floor } else { floor + 1_u32 };
    rounded.to_u64().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_enclose_the_reference() -> Result<()> {
        for epsilon in [f64::from_bits(1), 1e-300, 1e-12, 0.1, 1.0, 7.5, 42.0] {
            let band = Band::mollifier(epsilon)?;
            for reference in [1, 2, 3, 1000, 1 << 32, (1 << 61) + 7, LARGEST_TOTAL] {
                let (low, high) = band.limits(reference)?;
                assert!((1..=reference).contains(&low) && high >= reference, "{epsilon}");
            }
            for base in [f64::from_bits(1), 1e-20, 0.1, 1.0] {
                let band = Band::from_base(base, epsilon)?;
                for reference in [1, 2, 3, 1000, 1 << 32, (1 << 61) + 7, LARGEST_TOTAL] {
                    let (low, high) = band.limits(reference)?;
                    assert!((1..=reference).contains(&low) && high >= low, "{epsilon}, {base}");
                    assert!(base < 1.0 || low == reference);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_base_is_the_binary_number_that_it_is() -> Result<()> {
        // 0.1 as a floating-point number is above 1/10, 0.3 below 3/10, 0.75 exact.
        let low = |base, reference| Band::from_base(base, 1.0)?.limits(reference);
        assert_eq!(low(0.1, 10)?.0, 2);
        assert_eq!(low(0.3, 10)?.0, 3);
        assert_eq!(low(0.75, 4 << 32)?.0, 3 << 32);
        assert_eq!(low(f64::MIN_POSITIVE, 5)?.0, 1);
        Ok(())
    }

    #[test]
    fn what_is_out_of_range_is_refused() -> Result<()> {
        for epsilon in [0.0, -1.0, 42.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(Band::mollifier(epsilon), Err(Error::Epsilon { .. })));
            assert!(matches!(Band::from_base(0.5, epsilon), Err(Error::Epsilon { .. })));
        }
        for base in [0.0, -0.5, 1.000_000_1, f64::NAN, f64::INFINITY] {
            assert!(matches!(Band::from_base(base, 1.0), Err(Error::Accounting { .. })));
        }
        let band = Band::mollifier(1.0)?;
        for reference in [0, LARGEST_TOTAL + 1, u64::MAX] {
            assert!(matches!(band.limits(reference), Err(Error::Integer { .. })));
        }
        Ok(())
    }
}
