//! Binding of `sharing::sets` and `sharing::elections`.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use turnout::parameters::DomainSize;
use turnout::sharing;

use crate::arrays::{counts, matrix, slice, vector};
use crate::errors::{exception, internal, invalid_type};
use crate::noise::streams;
use crate::pool::run;

/// Coins and sets.
type CoinsAndSets<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray2<u32>>);

/// Draws the sets of items that users of two-stage sampling report.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct SetSampler {
    sampler: sharing::SetSampler,
}

#[pymethods]
impl SetSampler {
    /// Uniform sets if there is no gamma.
    #[new]
    #[pyo3(signature = (domain_size, reported, gamma))]
    fn new(py: Python<'_>, domain_size: u64, reported: u64, gamma: Option<f64>) -> PyResult<Self> {
        let build = || {
            let domain = DomainSize::new(domain_size)?;
            match gamma {
                Some(gamma) => sharing::SetSampler::adaptive(domain, reported, gamma),
                None => sharing::SetSampler::uniform(domain, reported),
            }
        };
        build().map(|sampler| Self { sampler }).map_err(|error| exception(py, &error))
    }

    /// The probability that a user who takes part reports the own item.
    #[getter]
    fn own_probability(&self) -> f64 {
        self.sampler.own_probability()
    }

    /// The realised gamma: numerator, denominator.
    #[getter]
    fn realized_gamma(&self) -> (u128, u128) {
        self.sampler.realized_gamma()
    }

    /// The exact local guarantee towards the server that sees the sets, rounded up.
    fn local_epsilon(&self, py: Python<'_>, rate: f64) -> PyResult<f64> {
        self.sampler.realized_local_epsilon(rate).map_err(|error| exception(py, &error))
    }

    /// Throws the coins of users and draws their sets.
    #[pyo3(signature = (codes, rate, seed=None))]
    fn draw<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        rate: f64,
        seed: Option<u64>,
    ) -> PyResult<CoinsAndSets<'py>> {
        let py = codes.py();
        let array = vector::<u32>("codes", codes)?;
        let codes = slice(py, "codes", &array)?;
        let (coins, sets) = run(py, || self.sampler.draw(codes, rate, &streams(seed)?))?;
        let reported = usize::try_from(self.sampler.reported()).unwrap_or(usize::MAX);
        let sets = Array2::from_shape_vec((coins.len(), reported), sets)
            .map_err(|_| internal("sets of unequal sizes"))?;
        Ok((coins.into_pyarray(py), sets.into_pyarray(py)))
    }
}

/// Shares bits among elected users: the sums of what they receive, draws, additions.
#[pyfunction]
#[pyo3(signature = (codes, coins, sets, offsets, elected, modulus, seed=None))]
pub(crate) fn two_stage_sums<'py>(
    codes: &Bound<'py, PyAny>,
    coins: &Bound<'py, PyAny>,
    sets: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    elected: &Bound<'py, PyAny>,
    modulus: u64,
    seed: Option<u64>,
) -> PyResult<(Bound<'py, PyArray1<u64>>, u64, u64)> {
    let py = codes.py();
    let codes = vector::<u32>("codes", codes)?;
    let codes = slice(py, "codes", &codes)?;
    let coins = vector::<u8>("coins", coins)?;
    let coins = slice(py, "coins", &coins)?;
    let rows = matrix::<u32>("sets", sets)?;
    if rows.as_array().nrows() != codes.len() {
        let found = rows.as_array().nrows();
        let message =
            format!("sets must have a row for each of {} users, got {found}", codes.len());
        return Err(invalid_type(py, message));
    }
    let sets = rows
        .as_slice()
        .map_err(|_| invalid_type(py, "sets must be a contiguous array".to_owned()))?;
    let offsets = counts("offsets", offsets)?;
    let offsets = slice(py, "offsets", &offsets)?;
    let elected = vector::<u32>("elected", elected)?;
    let elected = slice(py, "elected", &elected)?;
    let found = run(py, || {
        let streams = streams(seed)?;
        sharing::two_stage_sums(codes, coins, sets, offsets, elected, modulus, &streams)
    })?;
    Ok((found.sums.into_pyarray(py), found.draws, found.additions))
}
