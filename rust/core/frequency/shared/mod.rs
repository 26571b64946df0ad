//! Code that several oracles share.

pub(super) mod bit_rows;
pub(super) mod divisor;
pub(super) mod hashing;
pub(super) mod histogram;
pub(super) mod simulation;
pub(super) mod walsh_hadamard;
