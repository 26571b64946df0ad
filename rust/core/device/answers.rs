//! Answers as codes or numbers, and how they are read from a line of text.

use super::columns::Columns;
use super::error::{Error, Result};
use super::interval::Interval;
use super::labels::Labels;
use super::prefixes::Prefixes;

/// The answers of some people, one person after the other. Each person has as many codes or numbers
/// as the question has [`columns`](super::Device::columns).
#[derive(Debug, Clone, PartialEq)]
pub enum Answers {
    /// Codes: 0 for the first label of a question.
    Codes(Vec<u32>),
    /// Numbers within bounds.
    Numbers(Vec<f64>),
}

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// As labels, or as the text that stands for a value.
    Labels,
    /// As codes: 0 for the first label.
    Codes,
}

/// What answers to a question are.
#[derive(Debug)]
pub(crate) enum Domain {
    /// One of several labels.
    Labels(Labels),
    /// One of several labels for each of several questions.
    Columns(Columns),
    /// A value that begins with one of several prefixes, or with none of them.
    Prefixes(Prefixes),
    /// A number within bounds, or several of them.
    Numbers(Interval),
}

impl Domain {
    /// How many codes or numbers an answer has.
    pub(crate) fn columns(&self) -> usize {
        match self {
            Self::Labels(_) | Self::Prefixes(_) => 1,
            Self::Columns(columns) => columns.len(),
            Self::Numbers(interval) => interval.dimensions(),
        }
    }

    /// Reads answers, a line each.
    pub(crate) fn read<'l>(
        &self,
        lines: impl IntoIterator<Item = &'l str>,
        written: Written,
    ) -> Result<Answers> {
        let codes = written == Written::Codes;
        let (mut found, mut numbers) = (Vec::new(), Vec::new());
        for (position, line) in lines.into_iter().enumerate() {
            let read = match self {
                Self::Labels(labels) => labels.find(line, codes).map(|code| found.push(code)),
                Self::Columns(columns) => columns.find(line, codes, &mut found),
                Self::Prefixes(prefixes) if codes => {
                    Labels::Integers(prefixes.size()).find(line, true).map(|code| found.push(code))
                }
                Self::Prefixes(prefixes) => prefixes.find(line).map(|code| found.push(code)),
                Self::Numbers(_) if codes => {
                    return Err(Error::OtherAnswers("numbers have no codes"));
                }
                Self::Numbers(interval) => interval.find(line, &mut numbers),
            };
            read.map_err(|reason| Error::Answer { position, reason })?;
        }
        Ok(if let Self::Numbers(_) = self {
            Answers::Numbers(numbers)
        } else {
            Answers::Codes(found)
        })
    }
}

impl Answers {
    /// The codes; an error if they are numbers.
    pub(crate) fn codes(&self) -> Result<&[u32]> {
        match self {
            Self::Codes(codes) => Ok(codes),
            Self::Numbers(_) => Err(Error::OtherAnswers("answers must be codes, and are numbers")),
        }
    }

    /// The numbers; an error if they are codes.
    pub(crate) fn numbers(&self) -> Result<&[f64]> {
        match self {
            Self::Numbers(numbers) => Ok(numbers),
            Self::Codes(_) => Err(Error::OtherAnswers("answers must be numbers, and are codes")),
        }
    }
}
