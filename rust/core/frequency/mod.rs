//! Frequency estimation under local differential privacy when only some nodes report.
//!
//! A value's path is the order of the modules: [`Code`]s of a domain, a [`Selection`] of the nodes
//! that take part, a randomizer ([`DirectEncoding`]), [`Reports`], and the [`Tally`] of sufficient
//! statistics. Estimation itself needs no kernel and lives with the caller.

mod codes;
mod direct_encoding;
mod oracle;
mod participation;
mod tally;

pub(crate) use codes::outside;
pub use codes::{Code, ReportCode};
pub use direct_encoding::DirectEncoding;
pub use oracle::{FrequencyOracle, Randomizer};
pub use participation::{DesignSums, NodeProbabilities, Selection};
pub use tally::{Reports, Tally, WeightedSums};

/// Nodes of one chunk: each chunk has random streams of its own, so that the result does not
/// depend on which thread takes which chunk.
pub const CHUNK: usize = crate::random::SKIPS_MAXIMUM_LENGTH;
