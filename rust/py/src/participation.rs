//! Binding of `frequency::participation`.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use turnout::frequency::{DesignSums, NodeProbabilities, Selection};
use turnout::parameters::Probability;

use crate::arrays::{floats, slice};
use crate::noise::{Seed, streams};
use crate::pool::run;

/// Sums of the participation probabilities of all nodes, and of their squares, in units of 2^-64.
#[pyfunction]
pub(crate) fn design_sums(probabilities: &Bound<'_, PyAny>) -> PyResult<(u128, u128)> {
    let py = probabilities.py();
    let array = floats("probabilities", probabilities)?;
    let nodes = slice(py, "probabilities", &array)?;
    let sums: DesignSums = run(py, || Ok(NodeProbabilities::new(nodes)?.design()))?;
    Ok((sums.probability, sums.probability_squared))
}

/// The positions of the nodes that take part in a call with the same rate and seed.
#[pyfunction]
#[pyo3(signature = (nodes, rate, seed=None))]
pub(crate) fn participants(
    py: Python<'_>,
    nodes: usize,
    rate: f64,
    seed: Option<Seed>,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let positions = run(py, || uniform(rate)?.participants(nodes, &streams(seed)?))?;
    Ok(positions.into_pyarray(py))
}

/// The same with a rate for each node.
#[pyfunction]
#[pyo3(signature = (probabilities, seed=None))]
pub(crate) fn participants_personalized<'py>(
    probabilities: &Bound<'py, PyAny>,
    seed: Option<Seed>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let py = probabilities.py();
    let array = floats("probabilities", probabilities)?;
    let nodes = slice(py, "probabilities", &array)?;
    let positions = run(py, || {
        let selection = Selection::personalized(NodeProbabilities::new(nodes)?);
        selection.participants(nodes.len(), &streams(seed)?)
    })?;
    Ok(positions.into_pyarray(py))
}

/// The selection that gives every node the same rate.
pub(crate) fn uniform(rate: f64) -> turnout::Result<Selection<'static>> {
    Ok(Selection::bernoulli(Probability::new(rate)?))
}
