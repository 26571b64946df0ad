//! The layout of reports: one integer, or a row of integers of one width.

/// The width of an integer in bytes, and whether it has a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Integer {
    bytes: usize,
    signed: bool,
}

impl Integer {
    /// Makes integers of 1, 2, 4 or 8 bytes; returns `None` for other widths.
    #[must_use]
    pub const fn new(bytes: usize, signed: bool) -> Option<Self> {
        if matches!(bytes, 1 | 2 | 4 | 8) { Some(Self { bytes, signed }) } else { None }
    }

    /// The narrowest unsigned integers with `count` different values; 64 bits for 0, which stands
    /// for 2^64.
    #[must_use]
    pub const fn narrowest(count: u64) -> Self {
        let bytes = match count {
            1..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            0x1_0001..=0x1_0000_0000 => 4,
            _ => 8,
        };
        Self { bytes, signed: false }
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.bytes
    }

    /// Whether the integers have a sign.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        self.signed
    }

    /// The smallest and the largest value.
    #[must_use]
    pub const fn range(self) -> (i128, i128) {
        let values = 1_i128 << (8 * self.bytes);
        if self.signed { (-values / 2, values / 2 - 1) } else { (0, values - 1) }
    }
}

/// The layout of the reports of a question.
///
/// ```
/// use turnout_core::wire::{Integer, Layout};
/// let row = Layout::row(Integer::narrowest(1000), 3);
/// assert_eq!((row.integers(), row.bytes()), (3, 6));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    integer: Integer,
    width: Option<usize>,
}

impl Layout {
    /// The layout of reports that are one integer.
    #[must_use]
    pub const fn one(integer: Integer) -> Self {
        Self { integer, width: None }
    }

    /// The layout of reports that are rows of `width` integers.
    #[must_use]
    pub const fn row(integer: Integer, width: usize) -> Self {
        Self { integer, width: Some(width) }
    }

    /// The type of the integers of a report.
    #[must_use]
    pub const fn integer(self) -> Integer {
        self.integer
    }

    /// The number of integers of a row; `None` if a report is one integer.
    #[must_use]
    pub const fn width(self) -> Option<usize> {
        self.width
    }

    /// The number of integers of a report.
    #[must_use]
    pub const fn integers(self) -> usize {
        match self.width {
            None => 1,
            Some(width) => width,
        }
    }

    /// The number of bytes of a report.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.integers().saturating_mul(self.integer.bytes)
    }
}
