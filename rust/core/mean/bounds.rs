//! The bounds and the number of coordinates of values.

use super::UNIT;
use crate::frequency::CHUNK;
use crate::parallel::{self, chunk};
use crate::parameters::DomainSize;
use crate::{Error, Result};

/// The public bounds of every coordinate of a value.
///
/// ```
/// use turnout_core::mean::Bounds;
/// let bounds = Bounds::new(0.0, 120.0)?;
/// assert_eq!(bounds.position(30.0), 1 << 61);
/// assert!(Bounds::new(1.0, 1.0).is_err());
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// Checks the bounds.
    ///
    /// # Errors
    ///
    /// [`Error::Bounds`] unless both are finite, the lower is below the upper, and their distance
    /// is from 1e-100 to 1e100. Then variances stay within floating-point range.
    pub fn new(low: f64, high: f64) -> Result<Self> {
        if low.is_finite() && (1e-100..=1e100).contains(&(high - low)) {
            Ok(Self { low, high })
        } else {
            Err(Error::Bounds { low, high })
        }
    }

    /// The lower bound.
    #[must_use]
    pub const fn low(self) -> f64 {
        self.low
    }

    /// The upper bound.
    #[must_use]
    pub const fn high(self) -> f64 {
        self.high
    }

    /// Maps a value within the bounds to a position from 0 to `2^63`. The map is linear, except
    /// that a difference and a quotient are rounded to 53 binary digits.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [0, 2^63]")]
    pub fn position(self, value: f64) -> u64 {
        // Both roundings keep order, so the quotient is at most 1; what is outside is saturated.
        let share = (value - self.low) / (self.high - self.low);
        ((share * UNIT as f64) as u64).min(UNIT)
    }

    /// Returns the bin of each value, of `bins` bins of equal width. The upper edge belongs to the
    /// last bin.
    ///
    /// If bins are one wide and begin at whole numbers, a whole number is in the bin that begins
    /// with it.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideBounds`] if a value is outside the bounds.
    ///
    /// ```
    /// use turnout_core::mean::Bounds;
    /// use turnout_core::parameters::DomainSize;
    /// let tenths = Bounds::new(0.0, 10.0)?.bins(&[0.0, 2.9, 7.0, 10.0], DomainSize::new(10)?)?;
    /// assert_eq!(tenths, [0, 2, 7, 9]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn bins(self, values: &[f64], bins: DomainSize) -> Result<Vec<u16>> {
        let mut found = vec![0; values.len()];
        let count = bins.get() as f64;
        let last = u16::try_from(bins.get() - 1).unwrap_or(u16::MAX);
        let inside = parallel::map_chunks(&mut found, CHUNK, |index, found| {
            let values = &values[chunk(index, CHUNK, values.len())];
            for (bin, value) in found.iter_mut().zip(values) {
                // Saturates: what is outside is refused below.
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let place = ((value - self.low) * count / (self.high - self.low)) as u16;
                *bin = place.min(last);
            }
            self.enclose(values)
        });
        if inside.into_iter().all(|inside| inside) {
            return Ok(found);
        }
        Err(self.outside(values, Dimensions::new(1)?))
    }

    /// Whether all values are within the bounds; not-a-number is not.
    pub(super) fn enclose(self, values: &[f64]) -> bool {
        // Counted, so that it vectorises.
        values.iter().filter(|value| !(self.low..=self.high).contains(value)).count() == 0
    }

    /// The error for values of which some are outside.
    #[cold]
    pub(super) fn outside(self, values: &[f64], dimensions: Dimensions) -> Error {
        let outside = |value: &f64| !self.enclose(core::slice::from_ref(value));
        let place = values.iter().position(outside).unwrap_or(0);
        Error::OutsideBounds {
            node: place / dimensions.len(),
            coordinate: place % dimensions.len(),
            dimensions: dimensions.len(),
            low: self.low,
            high: self.high,
            offenders: values.iter().filter(|value| outside(value)).count(),
        }
    }
}

/// How many numbers a node holds: from 1 to [`Dimensions::MAXIMUM`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dimensions(u32);

impl Dimensions {
    /// The largest number: coordinates are reported in 16 bits.
    pub const MAXIMUM: u64 = 1 << 16;

    /// Checks a number of coordinates.
    ///
    /// # Errors
    ///
    /// [`Error::Dimensions`] if it is zero or above the maximum.
    ///
    /// ```
    /// use turnout_core::mean::Dimensions;
    /// assert_eq!(Dimensions::new(3)?.get(), 3);
    /// assert!(Dimensions::new(0).is_err());
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn new(value: u64) -> Result<Self> {
        match u32::try_from(value) {
            Ok(number) if (1..=Self::MAXIMUM).contains(&value) => Ok(Self(number)),
            _ => Err(Error::Dimensions { value, maximum: Self::MAXIMUM }),
        }
    }

    /// The value.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0 as u64
    }

    /// The value as a length.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0 as usize
    }

    /// Returns false: there is at least one coordinate.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        false
    }
}
