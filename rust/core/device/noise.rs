//! The source of the noise.

use sha2::{Digest, Sha256};

use crate::Result;
use crate::random::AesStreams;

/// The source of the noise: the operating system, or a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Fresh from the operating system: nobody can draw it again.
    Fresh,
    /// From a seed, for tests and simulations only: anybody who knows the seed can undo the noise.
    Seed(u64),
}

impl Noise {
    /// The streams of everything that is drawn at once.
    pub(crate) fn streams(self) -> Result<AesStreams> {
        match self {
            Self::Fresh => AesStreams::from_operating_system(),
            Self::Seed(seed) => Ok(AesStreams::from_seed(seed)),
        }
    }

    /// The noise of one part of what is drawn, independent of the others: of a seed as Python makes it.
    pub(crate) fn part(self, path: &[u64]) -> Self {
        match self {
            Self::Fresh => Self::Fresh,
            Self::Seed(seed) => {
                let mut text = seed.to_string();
                for number in path {
                    text.push('/');
                    text.push_str(&number.to_string());
                }
                let digest: [u8; 32] = Sha256::digest(text).into();
                let first = digest.first_chunk().copied().unwrap_or_default();
                Self::Seed(u64::from_le_bytes(first))
            }
        }
    }
}
