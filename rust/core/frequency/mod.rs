//! Frequency estimation under local differential privacy when only some nodes report.
//!
//! A value's path is the order of the modules: [`Code`]s of a domain, a [`Selection`] of the nodes
//! that take part, a randomizer ([`DirectEncoding`]), [`Reports`], and the [`Tally`] of sufficient
//! statistics. Of estimation only the likelihood of whole reports needs a kernel ([`SupportRows`]); the
//! rest lives with the caller.

mod bit_rows;
mod codes;
mod count_mean_sketch;
mod direct_encoding;
mod hadamard_response;
mod hashing;
mod histogram;
mod independent;
mod likelihood;
mod local_hashing;
mod longitudinal;
mod oracle;
mod participation;
mod projective_geometry;
mod realized;
mod subset_selection;
mod summation_histogram;
mod tally;
mod unary_encoding;
mod walsh_hadamard;

pub(crate) use codes::outside;
pub use codes::{Code, ReportCode};
pub use count_mean_sketch::{CountMeanSketch, HadamardCountMeanSketch};
pub use direct_encoding::DirectEncoding;
pub use hadamard_response::HadamardResponse;
pub use histogram::Histogram;
pub use likelihood::{LikelihoodStep, SupportRows};
pub use local_hashing::{LocalHashing, PooledLocalHashing};
pub use longitudinal::{
    BitChain, BitStage, MemoizedDirect, MemoizedUnary, PermanentKey, SECRET_BYTES,
};
pub use oracle::{FrequencyOracle, Randomizer};
pub use participation::{DesignSums, NodeProbabilities, Selection};
pub use projective_geometry::ProjectiveGeometryResponse;
pub use subset_selection::SubsetSelection;
pub use summation_histogram::SummationHistogram;
pub use tally::{Reports, Tally, WeightedSums};
pub use unary_encoding::UnaryEncoding;

/// Nodes of one chunk: each chunk has random streams of its own, so that the result does not
/// depend on which thread takes which chunk.
pub const CHUNK: usize = crate::random::SKIPS_MAXIMUM_LENGTH;
