//! Binding of `samplers`.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use turnout::samplers::{self, Band};

use crate::arrays::{counts, floats, matrix, slice};
use crate::errors::{exception, invalid_type};
use crate::noise::{Seed, streams};
use crate::pool::run;

/// How far a weight may be from its reference.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct SamplerBand(Band);

#[pymethods]
impl SamplerBand {
    /// The relative mollifier, or the band above a base.
    #[new]
    #[pyo3(signature = (epsilon, base=None))]
    fn new(py: Python<'_>, epsilon: f64, base: Option<f64>) -> PyResult<Self> {
        base.map_or_else(|| Band::mollifier(epsilon), |base| Band::from_base(base, epsilon))
            .map(Self)
            .map_err(|error| exception(py, &error))
    }

    /// The smallest and the largest weight of an entry of that reference.
    fn limits(&self, py: Python<'_>, reference: u64) -> PyResult<(u64, u64)> {
        self.0.limits(reference).map_err(|error| exception(py, &error))
    }

    /// The weights for log ratios, and the logarithm of what the ratios are divided by.
    fn weights<'py>(
        &self,
        log_ratios: &Bound<'py, PyAny>,
        reference: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArray1<u64>>, f64)> {
        let py = log_ratios.py();
        let (log_ratios, reference) =
            (floats("log_ratios", log_ratios)?, counts("reference", reference)?);
        let log_ratios = slice(py, "log_ratios", &log_ratios)?;
        let reference = slice(py, "reference", &reference)?;
        let (weights, c) = run(py, || samplers::weights(log_ratios, reference, &self.0))?;
        Ok((weights.into_pyarray(py), c))
    }

    /// For each row of log ratios, the column chosen.
    #[pyo3(signature = (log_ratios, seed=None))]
    fn resample<'py>(
        &self,
        log_ratios: &Bound<'py, PyAny>,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let py = log_ratios.py();
        let log_ratios = matrix("log_ratios", log_ratios)?;
        let (log_ratios, columns) = rows(py, "log_ratios", &log_ratios)?;
        let chosen = run(py, || samplers::resample(log_ratios, columns, &self.0, &streams(seed)?))?;
        Ok(indices(py, chosen))
    }
}

/// Indices, chosen by integer weights.
#[pyfunction]
#[pyo3(signature = (weights, length, seed=None))]
pub(crate) fn choose_weighted<'py>(
    weights: &Bound<'py, PyAny>,
    length: usize,
    seed: Option<Seed>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let py = weights.py();
    let weights = counts("weights", weights)?;
    let weights = slice(py, "weights", &weights)?;
    let chosen = run(py, || samplers::choose_many(weights, length, &streams(seed)?))?;
    Ok(indices(py, chosen))
}

/// For each row of gaps, the first column that is accepted, or -1.
#[pyfunction]
#[pyo3(signature = (gaps, most, seed=None))]
pub(crate) fn first_accepted<'py>(
    gaps: &Bound<'py, PyAny>,
    most: f64,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let py = gaps.py();
    let gaps = matrix("gaps", gaps)?;
    let (gaps, columns) = rows(py, "gaps", &gaps)?;
    let accepted = run(py, || samplers::first_accepted(gaps, columns, most, &streams(seed)?))?;
    let accepted = accepted.into_iter().map(|index| index.map_or(-1, signed));
    Ok(accepted.collect::<Vec<_>>().into_pyarray(py))
}

/// Uniform numbers strictly between 0 and 1.
#[pyfunction]
#[pyo3(signature = (length, seed=None))]
pub(crate) fn uniforms(
    py: Python<'_>,
    length: usize,
    seed: Option<Seed>,
) -> PyResult<Bound<'_, PyArray1<f64>>> {
    Ok(run(py, || samplers::uniforms(length, &streams(seed)?))?.into_pyarray(py))
}

/// The entries of a matrix, row by row, and the number of its columns.
fn rows<'a>(
    py: Python<'_>,
    argument: &str,
    array: &'a PyReadonlyArray2<'_, f64>,
) -> PyResult<(&'a [f64], usize)> {
    match array.as_slice() {
        Ok(entries) if array.is_c_contiguous() => Ok((entries, array.shape()[1])),
        _ => Err(invalid_type(py, format!("{argument} must be a C-contiguous array"))),
    }
}

fn indices(py: Python<'_>, chosen: Vec<usize>) -> Bound<'_, PyArray1<i64>> {
    chosen.into_iter().map(signed).collect::<Vec<_>>().into_pyarray(py)
}

/// An index of an array in memory.
const fn signed(index: usize) -> i64 {
    (index as u64).cast_signed()
}
