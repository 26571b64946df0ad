//! Newtypes that check their value: a value of one of these types is always usable.

use crate::{Error, Result};

/// A privacy parameter of pure local differential privacy, in nats.
///
/// It is finite, above zero and at most [`Epsilon::MAXIMUM`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Epsilon(f64);

impl Epsilon {
    /// The largest epsilon. A 64-bit word cannot realise a likelihood ratio above 2^64 = `e^44.36`;
    /// below 42 it realises one to eleven digits.
    pub const MAXIMUM: f64 = 42.0;

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// [`Error::Epsilon`] if the value is not finite, not above zero, or above the maximum.
    ///
    /// ```
    /// use turnout_core::parameters::Epsilon;
    /// assert_eq!(Epsilon::new(1.0)?.get(), 1.0);
    /// assert!(Epsilon::new(0.0).is_err());
    /// assert!(Epsilon::new(f64::NAN).is_err());
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn new(value: f64) -> Result<Self> {
        if value > 0.0 && value <= Self::MAXIMUM {
            Ok(Self(value))
        } else {
            Err(Error::Epsilon { value, maximum: Self::MAXIMUM })
        }
    }

    /// The value.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A probability of taking part, in (0, 1].
///
/// Zero is refused, because nodes that never report allow no estimate.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// The probability 1.
    pub const ONE: Self = Self(1.0);

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// [`Error::Probability`] if the value is not in (0, 1].
    ///
    /// ```
    /// use turnout_core::parameters::Probability;
    /// assert_eq!(Probability::new(0.25)?.get(), 0.25);
    /// assert!(Probability::new(0.0).is_err());
    /// assert!(Probability::new(1.5).is_err());
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn new(value: f64) -> Result<Self> {
        if value > 0.0 && value <= 1.0 {
            Ok(Self(value))
        } else {
            Err(Error::Probability { argument: "participation", value })
        }
    }

    /// The value.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// The number of codes of a domain: from 2 to [`DomainSize::MAXIMUM`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainSize(u32);

impl DomainSize {
    /// The largest size: a report holds a code in at most 32 bits.
    pub const MAXIMUM: u64 = u32::MAX as u64;

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// [`Error::DomainSize`] if the value is below 2 or above the maximum.
    ///
    /// ```
    /// use turnout_core::parameters::DomainSize;
    /// assert_eq!(DomainSize::new(100)?.get(), 100);
    /// assert!(DomainSize::new(1).is_err());
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn new(value: u64) -> Result<Self> {
        match u32::try_from(value) {
            Ok(size) if size >= 2 => Ok(Self(size)),
            _ => Err(Error::DomainSize { value, maximum: Self::MAXIMUM }),
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

    /// Returns false: a domain has at least two codes.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        false
    }
}
