//! What is reported.

use std::fmt;

/// What the reports of a randomizer look like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Layout {
    /// How many bytes each integer has.
    pub(crate) bytes: usize,
    /// How many integers a row has; none where a report is one integer.
    pub(crate) width: Option<usize>,
}

impl Layout {
    /// How many integers a report has.
    pub(crate) fn words(self) -> usize {
        self.width.unwrap_or(1)
    }
}

/// How many bytes the narrowest integers have that so many different ones need.
pub(crate) const fn narrowest(count: u64) -> usize {
    if count <= 1 << 8 {
        1
    } else if count <= 1 << 16 {
        2
    } else {
        4
    }
}

/// One report.
#[derive(Debug, PartialEq)]
pub(crate) struct Report {
    /// Its integers; signed ones as the unsigned ones of the same bytes.
    pub(crate) words: Vec<u64>,
    pub(crate) layout: Layout,
}

/// As it stands in a message.
impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout { bytes, width } = self.layout;
        if width.is_none() {
            return self.words.iter().try_for_each(|word| write!(formatter, "{word}"));
        }
        formatter.write_str("\"")?;
        for word in &self.words {
            let row = word.to_le_bytes();
            row.iter().take(bytes).try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
        }
        formatter.write_str("\"")
    }
}

/// An integer of a report.
pub(crate) trait Word: Copy {
    /// How many bytes it has.
    const BYTES: usize = size_of::<Self>();

    /// The unsigned integer of the same bytes.
    fn word(self) -> u64;
}

impl Word for u16 {
    fn word(self) -> u64 {
        self.into()
    }
}

impl Word for u32 {
    fn word(self) -> u64 {
        self.into()
    }
}

impl Word for u64 {
    fn word(self) -> u64 {
        self
    }
}

impl Word for i32 {
    fn word(self) -> u64 {
        self.cast_unsigned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_little_endian_digits() {
        let report = |bytes, width, words: &[u64]| {
            Report { words: words.to_vec(), layout: Layout { bytes, width } }.to_string()
        };
        assert_eq!(report(8, None, &[u64::MAX]), "18446744073709551615");
        assert_eq!(report(1, Some(2), &[1, 0xab]), r#""01ab""#);
        assert_eq!(report(4, Some(1), &[(-2_i32).word()]), r#""feffffff""#);
    }
}
