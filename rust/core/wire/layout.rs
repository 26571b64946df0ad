//! What reports look like: one integer, or a row of integers of one width.

/// The width of an integer, in bytes, and whether it has a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Integer {
    bytes: usize,
    signed: bool,
}

impl Integer {
    /// Integers of 1, 2, 4 or 8 bytes; none of other widths.
    #[must_use]
    pub const fn new(bytes: usize, signed: bool) -> Option<Self> {
        if matches!(bytes, 1 | 2 | 4 | 8) { Some(Self { bytes, signed }) } else { None }
    }

    /// The narrowest unsigned ones of which so many differ; of 64 bits for 0, which stands for 2^64.
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

    /// How many bytes one has.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.bytes
    }

    /// Whether it has a sign.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        self.signed
    }

    /// The smallest and the largest.
    #[must_use]
    pub const fn range(self) -> (i128, i128) {
        let values = 1_i128 << (8 * self.bytes);
        if self.signed { (-values / 2, values / 2 - 1) } else { (0, values - 1) }
    }
}

/// What the reports of a question look like.
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
    /// A report is one integer.
    #[must_use]
    pub const fn one(integer: Integer) -> Self {
        Self { integer, width: None }
    }

    /// A report is a row of so many integers.
    #[must_use]
    pub const fn row(integer: Integer, width: usize) -> Self {
        Self { integer, width: Some(width) }
    }

    /// The integers of a report.
    #[must_use]
    pub const fn integer(self) -> Integer {
        self.integer
    }

    /// How many integers a row has; none where a report is one integer.
    #[must_use]
    pub const fn width(self) -> Option<usize> {
        self.width
    }

    /// How many integers a report has.
    #[must_use]
    pub const fn integers(self) -> usize {
        match self.width {
            None => 1,
            Some(width) => width,
        }
    }

    /// How many bytes a report has.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.integers().saturating_mul(self.integer.bytes)
    }
}
