//! The rows of delimited text, such as CSV: where they end, and which text different readers would
//! read differently.
//!
//! A field is quoted if its first byte is a quote. Within it, delimiters and line ends are text,
//! two quotes stand for one, and the field ends after the closing quote. Any other quote is text. A
//! row ends with a line feed, alone or after a carriage return. If all rows of the file do so, it
//! may end with a carriage return alone. Text of another form is refused, because readers would
//! silently drop or join rows there. That is a quote that is never closed, text after a closing
//! quote, a zero byte, line ends of several kinds, or a row with another number of fields.

mod exact;
mod fast;

use fearless_simd::Level;

use crate::{Error, Result};

const QUOTE: u8 = b'"';
const FEED: u8 = b'\n';
const RETURN: u8 = b'\r';

/// How the rows of a file end, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// No row has ended yet.
    #[default]
    Unknown,
    /// With a line feed, alone or after a carriage return.
    Feed,
    /// With a carriage return alone.
    Return,
}

/// What is known before a stretch of text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The byte between two fields.
    pub delimiter: u8,
    /// Whether this is the last stretch of the file.
    pub last: bool,
    /// How the earlier rows ended.
    pub ends: Ends,
    /// The number of fields that each row must have, or `None` for any number. Counting them is
    /// slower.
    pub fields: Option<usize>,
    /// How many rows that are not empty to read at most, or `None` for all.
    pub most: Option<usize>,
}

/// Why a row is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A quote opens a field, and nothing closes it.
    Unclosed,
    /// There is text after the quote that closes a field.
    Closed,
    /// There is a zero byte.
    Zero,
    /// A row ends with a carriage return alone, and another with a line feed.
    Ends,
    /// The row has this many fields.
    Fields(usize),
}

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Why the row is refused.
    pub reason: Reason,
    /// The index of the wrong field.
    pub field: usize,
    /// How many lines end before the fault. If a quote is not closed, the fault is where it opens
    /// the field.
    pub lines: usize,
}

/// The whole and valid rows at the beginning of a stretch of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stretch {
    /// How many bytes they take.
    pub end: usize,
    /// How many are not empty.
    pub rows: usize,
    /// How many are empty, with nothing between two line ends.
    pub empty: usize,
    /// How many lines they take: more than rows if fields contain line ends.
    pub lines: usize,
    /// How rows end.
    pub ends: Ends,
    /// What is wrong with the next row, if anything.
    pub fault: Option<Fault>,
}

/// Finds the whole rows at the beginning of a stretch of text that begins with a row.
///
/// A row that continues beyond the stretch is not included.
///
/// # Errors
///
/// [`Error::Integer`] if the delimiter is a quote, a line end or zero.
///
/// ```
/// use turnout_core::rows::{Ends, Rules, scan};
///
/// let rules =
///     Rules { delimiter: b',', last: false, ends: Ends::Unknown, fields: None, most: None };
/// let found = scan(b"1,yes\n2,\"no,\nnever\"\n3,ye", rules)?;
/// assert_eq!((found.end, found.rows, found.lines, found.fault), (20, 2, 3, None));
/// # Ok::<(), turnout_core::Error>(())
/// ```
pub fn scan(data: &[u8], rules: Rules) -> Result<Stretch> {
    if [QUOTE, FEED, RETURN, 0].contains(&rules.delimiter) {
        return Err(Error::Integer {
            argument: "delimiter",
            value: rules.delimiter.into(),
            expected: "a byte that is no quote, no line end and not zero",
        });
    }
    Ok(fast::scan(Level::new(), data, rules).unwrap_or_else(|| exact::scan(data, rules)))
}

#[cfg(test)]
mod tests;
