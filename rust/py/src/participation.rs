//! Binding of `frequency::participation`.

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use turnout_core::frequency::{NodeProbabilities, Selection};
use turnout_core::parameters::Probability;
use turnout_core::random::{AesStreams, Purpose, Streams, binomial};

use crate::arrays::{Out, vector};
use crate::errors::Result;
use crate::noise::{Seed, streams};
use crate::pool::{run, run_if};

/// Sums of the participation probabilities of all nodes, and of their squares, in units of 2^-64.
#[pyfunction]
pub(crate) fn design_sums(probabilities: &Bound<'_, PyAny>) -> Result<(u128, u128)> {
    let nodes = &*vector("probabilities", probabilities)?;
    let sums = run(probabilities.py(), || Ok(NodeProbabilities::new(nodes)?.design()))?;
    Ok((sums.probability, sums.probability_squared))
}

/// The positions of the nodes that take part in a call with the same rate and seed.
#[pyfunction]
#[pyo3(signature = (nodes, rate, seed=None))]
pub(crate) fn participants(
    nodes: usize,
    rate: &Bound<'_, PyAny>,
    seed: Option<Seed>,
) -> Result<Out<i64>> {
    run_selected(rate, seed, |selection, streams| selection.participants(nodes, streams)).map(Out)
}

/// How many of each of several groups of nodes take part, drawn at once: for simulations.
#[pyfunction]
#[pyo3(signature = (nodes, rate, seed=None))]
pub(crate) fn binomial_counts(
    py: Python<'_>,
    nodes: &Bound<'_, PyAny>,
    rate: f64,
    seed: Option<Seed>,
) -> Result<Out<u64>> {
    let nodes = &*vector::<u64>("nodes", nodes)?;
    run_if(py, false, || {
        let mut stream = streams(seed)?.stream(Purpose::Simulation, 0);
        let rate = Probability::new(rate)?.get();
        Ok(nodes.iter().map(|group| binomial(*group, rate, &mut stream)).collect())
    })
    .map(Out)
}

/// Runs with the selection of one rate for all nodes, or of one for each, and the streams of a seed.
pub(crate) fn run_selected<T: Send>(
    rate: &Bound<'_, PyAny>,
    seed: Option<Seed>,
    job: impl FnOnce(&Selection<'_>, &AesStreams) -> turnout_core::Result<T> + Send,
) -> Result<T> {
    // NumPy before 2.4 takes an array of one entry for a number.
    let is_array = rate.cast::<PyUntypedArray>().is_ok();
    let common = if is_array { None } else { rate.extract::<f64>().ok() };
    let personal = if common.is_none() { Some(vector("probabilities", rate)?) } else { None };
    let rates = personal.as_deref();
    run(rate.py(), || {
        let selection = match rates {
            Some(rates) => Selection::personalized(NodeProbabilities::new(rates)?),
            None => Selection::bernoulli(Probability::new(common.unwrap_or(f64::NAN))?),
        };
        job(&selection, &streams(seed)?)
    })
}
