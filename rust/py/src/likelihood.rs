//! Binding of `frequency::likelihood`.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use turnout::frequency::SupportRows;

use crate::arrays::{floats, matrix, slice, unexpected};
use crate::errors::{exception, invalid_type};
use crate::pool::run;

/// The rows of support bits for a domain of `domain` codes.
fn rows<'a>(
    array: &'a PyReadonlyArray2<'_, u64>,
    given: &Bound<'_, PyAny>,
    domain: usize,
) -> PyResult<SupportRows<'a>> {
    let py = given.py();
    let words = domain.div_ceil(64);
    if domain == 0 || array.shape()[1] != words {
        return Err(unexpected("support", &format!("an array with {words} column(s)"), given));
    }
    match array.as_slice() {
        Ok(bits) if array.is_c_contiguous() => {
            SupportRows::new(bits, domain).map_err(|error| exception(py, &error))
        }
        _ => Err(invalid_type(py, "support must be a C-contiguous array".to_owned())),
    }
}

/// The gradient and the mean log-likelihood of weighted reports.
#[pyfunction]
pub(crate) fn likelihood_step<'py>(
    frequencies: &Bound<'py, PyAny>,
    support: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    ratio: f64,
) -> PyResult<(Bound<'py, PyArray1<f64>>, f64)> {
    let py = frequencies.py();
    let (frequencies, weights) = (floats("frequencies", frequencies)?, floats("weights", weights)?);
    let frequencies = slice(py, "frequencies", &frequencies)?;
    let weights = slice(py, "weights", &weights)?;
    let array = matrix("support", support)?;
    let rows = rows(&array, support, frequencies.len())?;
    let step = run(py, || rows.step(frequencies, weights, ratio))?;
    Ok((step.gradient.into_pyarray(py), step.log_likelihood))
}

/// For each report, the sum of the coefficients of the answers that it supports.
#[pyfunction]
pub(crate) fn support_sums<'py>(
    coefficients: &Bound<'py, PyAny>,
    support: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let py = coefficients.py();
    let coefficients = floats("coefficients", coefficients)?;
    let coefficients = slice(py, "coefficients", &coefficients)?;
    let array = matrix("support", support)?;
    let rows = rows(&array, support, coefficients.len())?;
    Ok(run(py, || rows.sums(coefficients))?.into_pyarray(py))
}
