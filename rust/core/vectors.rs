//! Loops compiled for the vector instructions of the machine.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

/// Does a job compiled for the widest vectors of this machine; its closure is `#[inline(always)]`.
#[inline(always)]
pub(crate) fn widest<T>(job: impl FnOnce() -> T) -> T {
    dispatch!(Level::new(), simd => simd.vectorize(job))
}
