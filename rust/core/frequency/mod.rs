//! Frequency estimation under local differential privacy when only some nodes report.
//!
//! A value's path: [`Code`]s of a domain, a [`Selection`] of the nodes that take part, a randomizer
//! ([`DirectEncoding`] or any [`FrequencyOracle`]), [`Reports`], and the [`Tally`] of sufficient
//! statistics. Of estimation only the likelihood of whole reports needs a kernel ([`SupportRows`]); the
//! rest lives with the caller.

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

/// Nodes of one chunk: each chunk has random streams of its own, so that the result does not
/// depend on which thread takes which chunk.
pub const CHUNK: usize = crate::random::SKIPS_MAXIMUM_LENGTH;
