//! What a report measures, and with which parameters.

use prio::field::{Field64, Field128};
use prio::flp::Type;
use prio::flp::gadgets::{Mul, ParallelSum};
use prio::flp::types::{Count, Histogram, MultihotCountVec, Sum, SumVec};
use prio::vdaf::prio3::optimal_chunk_length;

use super::{Error, Result};

type Chunks = ParallelSum<Field128, Mul>;

/// Sums of vectors.
pub(super) type Vectors = SumVec<Field128, Chunks>;
/// Votes, one for each report.
pub(super) type Buckets = Histogram<Field128, Chunks>;
/// Votes, so many at most for each report.
pub(super) type Multihot = MultihotCountVec<Field128, Chunks>;
/// Sums of one number.
pub(super) type Numbers = Sum<Field64>;
/// Yes or no.
pub(super) type Yes = Count<Field64>;

/// The largest number of field elements of an encoded measurement.
pub const MOST_ELEMENTS: u64 = 1 << 24;

/// The measure: the function whose sum is published.
///
/// Without a chunk length, it takes the one with the smallest proof. Both aggregators and all
/// clients must use the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Measure {
    /// Zero or one.
    Count,
    /// An integer from 0 to a maximum.
    Sum {
        /// The largest integer.
        max_measurement: u64,
    },
    /// Several integers from 0 to a maximum.
    SumVec {
        /// The largest integer.
        max_measurement: u64,
        /// How many integers there are.
        length: u32,
        /// How many elements a gadget of the proof takes.
        chunk_length: Option<u32>,
    },
    /// One of several buckets.
    Histogram {
        /// How many buckets there are.
        length: u32,
        /// How many elements a gadget of the proof takes.
        chunk_length: Option<u32>,
    },
    /// A set of items up to a maximum size: with a maximum of 1, a vote or none.
    MultihotCountVec {
        /// How many items there are.
        length: u32,
        /// The size of the largest set.
        max_weight: u32,
        /// How many elements a gadget of the proof takes.
        chunk_length: Option<u32>,
    },
}

impl Measure {
    /// The measure with its chunk length, if all parameters are allowed.
    pub(super) fn settled(self) -> Result<Self> {
        Ok(match self {
            Self::Count => self,
            Self::Sum { max_measurement } => {
                bits(max_measurement)?;
                self
            }
            Self::SumVec { max_measurement, length, chunk_length } => {
                let elements = elements(length, bits(max_measurement)?)?;
                let chunk_length = Some(chunk(chunk_length, elements)?);
                Self::SumVec { max_measurement, length, chunk_length }
            }
            Self::Histogram { length, chunk_length } => {
                let chunk_length = Some(chunk(chunk_length, elements(length, 1)?)?);
                Self::Histogram { length, chunk_length }
            }
            Self::MultihotCountVec { length, max_weight, chunk_length } => {
                let elements = elements(length, 1)?;
                within("max_weight", max_weight, length, "from 1 to the number of items")?;
                let weight = u64::from(max_weight.ilog2()) + 1;
                let chunk_length = Some(chunk(chunk_length, elements + weight)?);
                Self::MultihotCountVec { length, max_weight, chunk_length }
            }
        })
    }

    /// The largest number that one report adds to an entry of the sum.
    #[must_use]
    pub const fn largest(&self) -> u64 {
        match *self {
            Self::Sum { max_measurement } | Self::SumVec { max_measurement, .. } => max_measurement,
            _ => 1,
        }
    }
}

fn within(argument: &'static str, value: u32, most: u32, expected: &'static str) -> Result<()> {
    if (1..=most).contains(&value) {
        Ok(())
    } else {
        Err(Error::Parameter { argument, value: value.into(), expected })
    }
}

/// How many bits numbers up to that have.
fn bits(max_measurement: u64) -> Result<u64> {
    // The field of a single sum has 64 bits, and sums of many must fit.
    if max_measurement == 0 || max_measurement >= 1 << 62 {
        let (argument, expected) = ("max_measurement", "from 1 to 2^62 - 1");
        return Err(Error::Parameter { argument, value: max_measurement, expected });
    }
    Ok(u64::from(max_measurement.ilog2()) + 1)
}

fn elements(length: u32, bits: u64) -> Result<u64> {
    let elements = u64::from(length) * bits;
    if elements == 0 || elements > MOST_ELEMENTS {
        let expected = "at least 1, and with all bits of an entry at most 2^24 in all";
        return Err(Error::Parameter { argument: "length", value: length.into(), expected });
    }
    Ok(elements)
}

fn chunk(given: Option<u32>, elements: u64) -> Result<u32> {
    let found = match given {
        Some(length) => u64::from(length),
        None => optimal_chunk_length(usize::try_from(elements).unwrap_or(usize::MAX)) as u64,
    };
    u32::try_from(found)
        .ok()
        .filter(|length| (1..=MOST_ELEMENTS).contains(&(*length).into()))
        .ok_or(Error::Parameter {
            argument: "chunk_length",
            value: found,
            expected: "from 1 to 2^24",
        })
}

/// A type of prio whose measurements are made from whole numbers.
pub(super) trait Measured: Type {
    /// The measurement that these numbers are.
    fn measurement(&self, numbers: &[u64], measure: &Measure) -> Result<Self::Measurement>;
}

fn refused<T>(expected: impl Into<String>) -> Result<T> {
    Err(Error::Measurement { expected: expected.into() })
}

/// The one number, below a limit.
fn single(numbers: &[u64], most: u64) -> Result<u64> {
    match numbers {
        [number] if *number <= most => Ok(*number),
        _ => refused(format!("one integer from 0 to {most}")),
    }
}

fn several(numbers: &[u64], length: usize, most: u64) -> Result<()> {
    if numbers.len() != length || numbers.iter().any(|number| *number > most) {
        return refused(format!("{length} integers from 0 to {most}"));
    }
    Ok(())
}

impl Measured for Yes {
    fn measurement(&self, numbers: &[u64], _: &Measure) -> Result<bool> {
        Ok(single(numbers, 1)? == 1)
    }
}

impl Measured for Numbers {
    fn measurement(&self, numbers: &[u64], measure: &Measure) -> Result<u64> {
        single(numbers, measure.largest())
    }
}

impl Measured for Vectors {
    fn measurement(&self, numbers: &[u64], measure: &Measure) -> Result<Vec<u128>> {
        several(numbers, self.output_len(), measure.largest())?;
        Ok(numbers.iter().map(|number| u128::from(*number)).collect())
    }
}

impl Measured for Buckets {
    fn measurement(&self, numbers: &[u64], _: &Measure) -> Result<usize> {
        let bucket = single(numbers, self.output_len() as u64 - 1)?;
        usize::try_from(bucket).or_else(|_| refused("a bucket"))
    }
}

impl Measured for Multihot {
    fn measurement(&self, numbers: &[u64], measure: &Measure) -> Result<Vec<bool>> {
        several(numbers, self.output_len(), 1)?;
        let Measure::MultihotCountVec { max_weight, .. } = *measure else {
            return refused("a set of items");
        };
        let set: Vec<bool> = numbers.iter().map(|number| *number == 1).collect();
        if set.iter().filter(|item| **item).count() > max_weight as usize {
            return refused(format!("a set of at most {max_weight} items"));
        }
        Ok(set)
    }
}
