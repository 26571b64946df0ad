//! Binding of `samplers`.

use pyo3::prelude::*;
use turnout_core::random;
use turnout_core::samplers::{self, Band};

use crate::arrays::{Out, matrix, vector};
use crate::errors::Result;
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
    fn new(epsilon: f64, base: Option<f64>) -> Result<Self> {
        let from_base = |base| Band::from_base(base, epsilon);
        Ok(Self(base.map_or_else(|| Band::mollifier(epsilon), from_base)?))
    }

    /// The smallest and the largest weight of an entry of that reference.
    fn limits(&self, reference: u64) -> Result<(u64, u64)> {
        Ok(self.0.limits(reference)?)
    }

    /// The weights for log ratios, and the logarithm of what the ratios are divided by.
    fn weights(
        &self,
        log_ratios: &Bound<'_, PyAny>,
        reference: &Bound<'_, PyAny>,
    ) -> Result<(Out<u64>, f64)> {
        let py = log_ratios.py();
        let log_ratios = &*vector("log_ratios", log_ratios)?;
        let reference = &*vector("reference", reference)?;
        let (weights, c) = run(py, || samplers::weights(log_ratios, reference, &self.0))?;
        Ok((Out(weights), c))
    }

    /// For each row of log ratios, the column chosen.
    #[pyo3(signature = (log_ratios, seed=None))]
    fn resample(&self, log_ratios: &Bound<'_, PyAny>, seed: Option<Seed>) -> Result<Out<i64>> {
        let array = matrix("log_ratios", log_ratios)?;
        let (entries, columns) = (&*array, array.columns());
        let job = || samplers::resample(entries, columns, &self.0, &streams(seed)?);
        run(log_ratios.py(), job).map(indices)
    }
}

/// Indices, chosen by integer weights.
#[pyfunction]
#[pyo3(signature = (weights, length, seed=None))]
pub(crate) fn choose_weighted(
    weights: &Bound<'_, PyAny>,
    length: usize,
    seed: Option<Seed>,
) -> Result<Out<i64>> {
    let py = weights.py();
    let weights = &*vector("weights", weights)?;
    run(py, || random::choose_many(weights, length, &streams(seed)?)).map(indices)
}

/// Integers below a bound that is at most 2^63, all equally likely.
#[pyfunction]
#[pyo3(signature = (bound, length, seed=None))]
pub(crate) fn uniform_integers(
    py: Python<'_>,
    bound: u64,
    length: usize,
    seed: Option<Seed>,
) -> Result<Out<i64>> {
    let draws = run(py, || random::uniform_integers(bound, length, &streams(seed)?))?;
    Ok(Out(draws.into_iter().map(u64::cast_signed).collect()))
}

/// For each row of gaps, the first column that is accepted, or -1.
#[pyfunction]
#[pyo3(signature = (gaps, most, seed=None))]
pub(crate) fn first_accepted(
    gaps: &Bound<'_, PyAny>,
    most: f64,
    seed: Option<u64>,
) -> Result<Out<i64>> {
    let array = matrix("gaps", gaps)?;
    let (entries, columns) = (&*array, array.columns());
    let job = || samplers::first_accepted(entries, columns, most, &streams(seed)?);
    let accepted = run(gaps.py(), job)?.into_iter();
    Ok(Out(accepted.map(|index| index.map_or(-1, signed)).collect()))
}

/// Uniform numbers strictly between 0 and 1.
#[pyfunction]
#[pyo3(signature = (length, seed=None))]
pub(crate) fn uniforms(py: Python<'_>, length: usize, seed: Option<Seed>) -> Result<Out<f64>> {
    run(py, || samplers::uniforms(length, &streams(seed)?)).map(Out)
}

fn indices(chosen: Vec<usize>) -> Out<i64> {
    Out(chosen.into_iter().map(signed).collect())
}

/// An index of an array in memory.
const fn signed(index: usize) -> i64 {
    (index as u64).cast_signed()
}
