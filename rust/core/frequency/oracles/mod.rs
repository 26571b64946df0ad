//! The oracles. Each says how to make a report, how to count reports, and how to simulate a tally.

mod count_mean_sketch;
mod direct_encoding;
mod hadamard_response;
mod local_hashing;
mod longitudinal;
mod projective_geometry;
mod square_wave;
mod subset_selection;
mod summation_histogram;
mod unary_encoding;

pub use count_mean_sketch::{CountMeanSketch, HadamardCountMeanSketch};
pub use direct_encoding::DirectEncoding;
pub use hadamard_response::HadamardResponse;
pub use local_hashing::{LocalHashing, PooledLocalHashing};
pub use longitudinal::{
    BitChain, BitStage, Memoized, MemoizedDirect, MemoizedUnary, PermanentKey, SECRET_BYTES,
};
pub use projective_geometry::ProjectiveGeometryResponse;
pub use square_wave::SquareWave;
pub use subset_selection::SubsetSelection;
pub use summation_histogram::SummationHistogram;
pub use unary_encoding::UnaryEncoding;
