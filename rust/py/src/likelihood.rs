//! Binding of `frequency::likelihood`.

use pyo3::prelude::*;
use turnout_core::frequency::SupportRows;

use crate::arrays::{Out, matrix_of, vector};
use crate::errors::Result;
use crate::pool::run;

/// The gradient and the mean log-likelihood of weighted reports.
#[pyfunction]
pub(crate) fn likelihood_step(
    frequencies: &Bound<'_, PyAny>,
    support: &Bound<'_, PyAny>,
    weights: &Bound<'_, PyAny>,
    ratio: f64,
) -> Result<(Out<f64>, f64)> {
    let py = frequencies.py();
    let frequencies = &*vector("frequencies", frequencies)?;
    let weights = &*vector("weights", weights)?;
    let bits = &*matrix_of("support", support, frequencies.len().div_ceil(64))?;
    let rows = SupportRows::new(bits, frequencies.len())?;
    let step = run(py, || rows.step(frequencies, weights, ratio))?;
    Ok((Out(step.gradient), step.log_likelihood))
}

/// For each report, the sum of the coefficients of the answers that it supports.
#[pyfunction]
pub(crate) fn support_sums(
    coefficients: &Bound<'_, PyAny>,
    support: &Bound<'_, PyAny>,
) -> Result<Out<f64>> {
    let py = coefficients.py();
    let coefficients = &*vector("coefficients", coefficients)?;
    let bits = &*matrix_of("support", support, coefficients.len().div_ceil(64))?;
    let rows = SupportRows::new(bits, coefficients.len())?;
    run(py, || rows.sums(coefficients)).map(Out)
}
