//! Binding of `federated`: selection and noise.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use turnout_core::federated::{self, BernoulliSelection};

use crate::arrays::Out;
use crate::errors::Result;
use crate::noise::streams;
use crate::pool::run_if;

/// That many independent draws of `round(2^bits Z)` for a standard normal Z.
#[pyfunction]
#[pyo3(signature = (length, bits, seed=None))]
pub(crate) fn rounded_gaussian(
    py: Python<'_>,
    length: usize,
    bits: u32,
    seed: Option<u64>,
) -> Result<Out<i64>> {
    run_if(py, length > federated::GAUSSIAN_CHUNK, || {
        federated::rounded_gaussian(length, bits, &streams(seed)?)
    })
    .map(Out)
}

/// The indices of those of `size` that are selected with that probability, ascending.
#[pyfunction]
#[pyo3(signature = (size, rate, seed=None))]
pub(crate) fn select_bernoulli(
    py: Python<'_>,
    size: u64,
    rate: f64,
    seed: Option<u64>,
) -> Result<Out<i64>> {
    run_if(py, size > SMALL, || selection(rate)?.select(size, &streams(seed)?)).map(Out)
}

/// Selections from up to so many never use a pool.
const SMALL: u64 = 1 << 16;

/// Selections that were prepared last, with the bits of their rates.
static PREPARED: Mutex<Vec<(u64, Arc<BernoulliSelection>)>> = Mutex::new(Vec::new());

/// How many are kept.
const KEPT: usize = 8;

/// The selection with a rate. A training has two of them, and every client asks for them in every
/// round: they are kept. No call waits for the lock, because in a forked process another thread may
/// hold it forever: the call prepares its own.
fn selection(rate: f64) -> turnout_core::Result<Arc<BernoulliSelection>> {
    let bits = rate.to_bits();
    if let Ok(prepared) = PREPARED.try_lock()
        && let Some((_, selection)) = prepared.iter().find(|(kept, _)| *kept == bits)
    {
        return Ok(Arc::clone(selection));
    }
    let selection = Arc::new(BernoulliSelection::new(rate)?);
    if let Ok(mut prepared) = PREPARED.try_lock() {
        prepared.truncate(KEPT - 1);
        prepared.insert(0, (bits, Arc::clone(&selection)));
    }
    Ok(selection)
}
