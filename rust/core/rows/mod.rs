//! The rows of delimited text, such as CSV: where they end, and what no two readers take alike.
//!
//! A field is quoted if its first byte is a quote. Within it delimiters and line ends are text, two
//! quotes stand for one, and after the closing quote the field ends. Any other quote is text. A row
//! ends with a line feed, alone or after a carriage return; or with carriage returns alone, if all
//! rows of the file do. What is not of this form is refused, because readers drop or join rows there
//! without a word: a quote that is never closed, text after a closing quote, a zero byte, line ends
//! of several kinds, and a row with another number of fields.

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

/// What is known before a stretch is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// What stands between two fields.
    pub delimiter: u8,
    /// Whether nothing comes after the stretch.
    pub last: bool,
    /// How earlier rows ended.
    pub ends: Ends,
    /// How many fields each row must have; any number if none. It is slower to count them.
    pub fields: Option<usize>,
    /// How many rows with something in them are looked at; all if none.
    pub most: Option<usize>,
}

/// Why a row is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A quote opens a field that nothing closes.
    Unclosed,
    /// There is text after the quote that closes a field.
    Closed,
    /// There is a zero byte.
    Zero,
    /// A row ends with a carriage return alone, and another with a line feed.
    Ends,
    /// The row has so many fields.
    Fields(usize),
}

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Why it is refused.
    pub reason: Reason,
    /// Which field is wrong, from 0.
    pub field: usize,
    /// How many lines end before the place: of a quote the one that opens the field.
    pub lines: usize,
}

/// The rows at the beginning of a stretch of text that are whole and right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stretch {
    /// How many bytes they are.
    pub end: usize,
    /// How many have something in them.
    pub rows: usize,
    /// How many are empty: nothing stands between two line ends.
    pub empty: usize,
    /// How many lines they are: more than rows where fields hold line ends.
    pub lines: usize,
    /// How rows end.
    pub ends: Ends,
    /// What is wrong with the row after them, if anything is.
    pub fault: Option<Fault>,
}

/// Finds the whole rows at the beginning of a stretch of text that begins with a row.
///
/// A row that goes on beyond the stretch is not among them, unless the stretch is the last.
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
