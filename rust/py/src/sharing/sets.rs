//! Binding of `sharing::sets` and `sharing::elections`.

use pyo3::prelude::*;
use turnout_core::parameters::DomainSize;
use turnout_core::sharing;

use crate::arrays::{Out, OutRows, matrix, vector};
use crate::errors::{Failure, Result};
use crate::noise::streams;
use crate::pool::run;

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
    fn new(domain_size: u64, reported: u64, gamma: Option<f64>) -> Result<Self> {
        let domain = DomainSize::new(domain_size)?;
        let sampler = match gamma {
            Some(gamma) => sharing::SetSampler::adaptive(domain, reported, gamma),
            None => sharing::SetSampler::uniform(domain, reported),
        };
        Ok(Self { sampler: sampler? })
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
    fn local_epsilon(&self, rate: f64) -> Result<f64> {
        Ok(self.sampler.realized_local_epsilon(rate)?)
    }

    /// Throws the coins of users and draws their sets.
    #[pyo3(signature = (codes, rate, seed=None))]
    fn draw(
        &self,
        codes: &Bound<'_, PyAny>,
        rate: f64,
        seed: Option<u64>,
    ) -> Result<(Out<u8>, OutRows<u32>)> {
        let py = codes.py();
        let codes = &*vector::<u32>("codes", codes)?;
        let (coins, sets) = run(py, || self.sampler.draw(codes, rate, &streams(seed)?))?;
        let reported = usize::try_from(self.sampler.reported()).unwrap_or(usize::MAX);
        Ok((Out(coins), OutRows(sets, reported)))
    }
}

/// Shares bits among elected users: the sums of what they receive, draws, additions.
#[pyfunction]
#[pyo3(signature = (codes, coins, sets, offsets, elected, modulus, seed=None))]
pub(crate) fn two_stage_sums(
    codes: &Bound<'_, PyAny>,
    coins: &Bound<'_, PyAny>,
    sets: &Bound<'_, PyAny>,
    offsets: &Bound<'_, PyAny>,
    elected: &Bound<'_, PyAny>,
    modulus: u64,
    seed: Option<u64>,
) -> Result<(Out<u64>, u64, u64)> {
    let py = codes.py();
    let codes = &*vector("codes", codes)?;
    let coins = &*vector("coins", coins)?;
    let rows = matrix("sets", sets)?;
    if rows.rows() != codes.len() {
        let (users, found) = (codes.len(), rows.rows());
        let message = format!("sets must have a row for each of {users} users, got {found}");
        return Err(Failure::Type(message));
    }
    let sets = &*rows;
    let offsets = &*vector("offsets", offsets)?;
    let elected = &*vector("elected", elected)?;
    let found = run(py, || {
        let streams = streams(seed)?;
        sharing::two_stage_sums(codes, coins, sets, offsets, elected, modulus, &streams)
    })?;
    Ok((Out(found.sums), found.draws, found.additions))
}
