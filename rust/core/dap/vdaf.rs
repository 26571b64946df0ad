//! The parameters of the VDAFs in a task's configuration.

use super::codec::{Input, Message, Wire};
use super::error::Result;

/// Which VDAF a task uses, and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum VdafConfiguration<'a> {
    /// `Prio3Count`.
    Count,
    /// `Prio3Sum`.
    Sum(SumConfig),
    /// `Prio3SumVec`.
    SumVec(SumVecConfig),
    /// `Prio3Histogram`.
    Histogram(HistogramConfig),
    /// `Prio3MultihotCountVec`.
    MultihotCountVec(MultihotCountVecConfig),
    /// Any other VDAF.
    Other {
        /// Its number.
        vdaf_type: u32,
        /// Its encoded parameters.
        configuration: &'a [u8],
    },
}

/// The parameters of `Prio3Sum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumConfig {
    /// The largest number that can be sent.
    pub max_measurement: u64,
}

layout!(SumConfig: max_measurement);

/// The parameters of `Prio3SumVec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumVecConfig {
    /// The number of entries of a vector.
    pub length: u32,
    /// The largest number that can be sent.
    pub max_measurement: u64,
    /// How many entries a step of the proof handles together.
    pub chunk_length: u32,
}

layout!(SumVecConfig: length, max_measurement, chunk_length);

/// The parameters of `Prio3Histogram`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramConfig {
    /// The number of buckets.
    pub length: u32,
    /// How many entries a step of the proof handles together.
    pub chunk_length: u32,
}

layout!(HistogramConfig: length, chunk_length);

/// The parameters of `Prio3MultihotCountVec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultihotCountVecConfig {
    /// The number of entries of a vector.
    pub length: u32,
    /// How many entries a step of the proof handles together.
    pub chunk_length: u32,
    /// The largest number of ones in a vector.
    pub max_weight: u64,
}

layout!(MultihotCountVecConfig: length, chunk_length, max_weight);

impl<'a> VdafConfiguration<'a> {
    /// Reads the VDAF with this number from its encoded parameters.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`](super::Error::Malformed) if the bytes are not parameters of this VDAF.
    pub fn of(vdaf_type: u32, configuration: &'a [u8]) -> Result<Self> {
        Ok(match vdaf_type {
            1 => {
                Input::new("Prio3CountConfig", configuration).finish()?;
                Self::Count
            }
            2 => Self::Sum(SumConfig::decode(configuration)?),
            3 => Self::SumVec(SumVecConfig::decode(configuration)?),
            4 => Self::Histogram(HistogramConfig::decode(configuration)?),
            5 => Self::MultihotCountVec(MultihotCountVecConfig::decode(configuration)?),
            _ => Self::Other { vdaf_type, configuration },
        })
    }

    /// Its number.
    #[must_use]
    pub fn vdaf_type(&self) -> u32 {
        match self {
            Self::Count => 1,
            Self::Sum(_) => 2,
            Self::SumVec(_) => 3,
            Self::Histogram(_) => 4,
            Self::MultihotCountVec(_) => 5,
            Self::Other { vdaf_type, .. } => *vdaf_type,
        }
    }

    /// Returns its encoded parameters.
    ///
    /// # Errors
    ///
    /// No error: all have an encoding.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        match self {
            Self::Count => {}
            Self::Sum(config) => config.write(&mut out)?,
            Self::SumVec(config) => config.write(&mut out)?,
            Self::Histogram(config) => config.write(&mut out)?,
            Self::MultihotCountVec(config) => config.write(&mut out)?,
            Self::Other { configuration, .. } => out.extend_from_slice(configuration),
        }
        Ok(out)
    }
}
