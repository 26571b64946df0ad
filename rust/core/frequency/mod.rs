//! Frequency estimation under local differential privacy when only some nodes report.
//!
//! An answer is a [`Code`] of a domain. A [`Selection`] decides which nodes take part, and a
//! randomizer ([`DirectEncoding`] or any [`FrequencyOracle`]) turns their codes into [`Reports`]. A
//! [`Tally`] holds the sufficient statistics of the reports. Only one part of estimation needs a
//! kernel, the likelihood of whole reports ([`SupportRows`]); callers do the rest.

mod codes;
mod likelihood;
mod oracle;
mod oracles;
mod participation;
mod shared;
mod tally;

pub(crate) use codes::outside;
pub use codes::{Code, Codes, ReportCode};
pub use likelihood::{LikelihoodStep, SupportRows};
pub use oracle::{FrequencyOracle, Randomizer};
pub use oracles::{
    BitChain, BitStage, CountMeanSketch, DirectEncoding, HadamardCountMeanSketch, HadamardResponse,
    LocalHashing, Memoized, MemoizedDirect, MemoizedUnary, PermanentKey, PooledLocalHashing,
    ProjectiveGeometryResponse, SECRET_BYTES, SquareWave, SubsetSelection, SummationHistogram,
    UnaryEncoding,
};
pub use participation::{DesignSums, NodeProbabilities, Selection};
pub use shared::histogram::Histogram;
pub use tally::{Reports, Tally, WeightedSums};

/// The number of nodes in a chunk. Each chunk has random streams of its own, so the result does not
/// depend on which thread handles which chunk.
pub const CHUNK: usize = crate::random::SKIPS_MAXIMUM_LENGTH;
