//! Binding of `sharing::noise`.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use turnout::random::AesStreams;
use turnout::sharing::noise::{
    self, BernoulliCounts, DiscreteGaussian, DiscreteLaplace, DiscreteLaplacePiece, Skellam,
};

use crate::errors::exception;
use crate::noise::streams;
use crate::pool::run;

/// Draws that many numbers, on the pool of this process if they are many.
fn draw(
    py: Python<'_>,
    length: usize,
    seed: Option<u64>,
    job: impl FnOnce(usize, &AesStreams) -> turnout::Result<Vec<i64>> + Send,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let job = || job(length, &streams(seed)?);
    let numbers = if length <= noise::CHUNK {
        py.detach(job).map_err(|error| exception(py, &error))?
    } else {
        run(py, job)?
    };
    Ok(numbers.into_pyarray(py))
}

/// Discrete Laplace noise of at least that scale.
#[pyfunction]
#[pyo3(signature = (scale, length, seed=None))]
pub(crate) fn discrete_laplace(
    py: Python<'_>,
    scale: f64,
    length: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    draw(py, length, seed, |length, streams| {
        DiscreteLaplace::new(scale)?.draw_many(length, streams)
    })
}

/// One of that many pieces of discrete Laplace noise.
#[pyfunction]
#[pyo3(signature = (scale, parts, length, seed=None))]
pub(crate) fn discrete_laplace_piece(
    py: Python<'_>,
    scale: f64,
    parts: u64,
    length: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    draw(py, length, seed, |length, streams| {
        DiscreteLaplacePiece::new(scale, parts)?.draw_many(length, streams)
    })
}

/// The realised rate of discrete Laplace noise, the reciprocal of its scale: numerator, denominator.
#[pyfunction]
pub(crate) fn discrete_laplace_realized(py: Python<'_>, scale: f64) -> PyResult<(u128, u128)> {
    let noise = DiscreteLaplace::new(scale).map_err(|error| exception(py, &error))?;
    let (numerator, denominator) = noise.realized_scale();
    Ok((denominator, numerator))
}

/// Discrete Gaussian noise of that variance parameter.
#[pyfunction]
#[pyo3(signature = (variance, length, seed=None))]
pub(crate) fn discrete_gaussian(
    py: Python<'_>,
    variance: f64,
    length: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    draw(py, length, seed, |length, streams| {
        DiscreteGaussian::new(variance)?.draw_many(length, streams)
    })
}

/// The realised variance parameter of discrete Gaussian noise.
#[pyfunction]
pub(crate) fn discrete_gaussian_realized(py: Python<'_>, variance: f64) -> PyResult<f64> {
    DiscreteGaussian::new(variance)
        .map(|noise| noise.realized_variance())
        .map_err(|error| exception(py, &error))
}

/// The difference of two Poisson counts of that mean.
#[pyfunction]
#[pyo3(signature = (mean, length, seed=None))]
pub(crate) fn skellam(
    py: Python<'_>,
    mean: f64,
    length: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    draw(py, length, seed, |length, streams| Skellam::new(mean)?.draw_many(length, streams))
}

/// Numbers of heads among that many coins.
#[pyfunction]
#[pyo3(signature = (trials, rate, length, seed=None))]
pub(crate) fn bernoulli_counts(
    py: Python<'_>,
    trials: u64,
    rate: f64,
    length: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    draw(py, length, seed, |length, streams| {
        BernoulliCounts::new(trials, rate)?.draw_many(length, streams)
    })
}

/// The smallest float that is at least `value / parts`.
#[pyfunction]
pub(crate) fn divide_up(py: Python<'_>, value: f64, parts: u64) -> PyResult<f64> {
    noise::divide_up(value, parts).map_err(|error| exception(py, &error))
}
