//! Binding of `frequency::participation`.

use pyo3::prelude::*;
use turnout::frequency::{DesignSums, NodeProbabilities, Selection};
use turnout::parameters::Probability;

use crate::arrays::{floats, slice};
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

/// The selection that gives every node the same rate.
pub(crate) fn uniform(rate: f64) -> turnout::Result<Selection<'static>> {
    Ok(Selection::bernoulli(Probability::new(rate)?))
}
