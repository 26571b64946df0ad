//! Binding of `federated`: selection and noise.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use turnout::federated;

use crate::errors::exception;
use crate::oracle::streams;
use crate::pool::run;

/// That many independent draws of `round(2^bits Z)` for a standard normal Z.
#[pyfunction]
#[pyo3(signature = (length, bits, seed=None))]
pub(crate) fn rounded_gaussian(
    py: Python<'_>,
    length: usize,
    bits: u32,
    seed: Option<u64>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let job = || federated::rounded_gaussian(length, bits, &streams(seed)?);
    let numbers = if length <= federated::GAUSSIAN_CHUNK {
        py.detach(job).map_err(|error| exception(py, &error))?
    } else {
        run(py, job)?
    };
    Ok(numbers.into_pyarray(py))
}

/// The indices of those of `size` that are selected with that probability, ascending.
#[pyfunction]
#[pyo3(signature = (size, rate, seed=None))]
pub(crate) fn select_bernoulli(
    py: Python<'_>,
    size: u64,
    rate: f64,
    seed: Option<u64>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let selected = run(py, || federated::select_bernoulli(size, rate, &streams(seed)?))?;
    Ok(selected.into_pyarray(py))
}
