//! Binding of the networks of `samplers`.

use pyo3::prelude::*;
use turnout_core::samplers::{Activation, DenseNetwork, NetworkSum};

use crate::arrays::{Out, matrix_of, vector};
use crate::errors::{Failure, Result};
use crate::pool::run_if;

/// Up to so many points the core works on one thread: they are done where they are called.
const FEW: usize = 128;

/// What makes a network: its activation, its sizes, its parameters, shift and scale.
type Parts<'py> = (String, Vec<usize>, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

fn network(parts: Parts<'_>) -> Result<DenseNetwork> {
    let (activation, sizes, parameters, shift, scale) = parts;
    let activation = match activation.as_str() {
        "identity" => Activation::Identity,
        "tanh" => Activation::Tanh,
        "logistic" => Activation::Logistic,
        "relu" => Activation::Relu,
        _ => return Err(Failure::Type(format!("activation = {activation:?} is not known"))),
    };
    let (shift, scale) = (vector("shift", &shift)?, vector("scale", &scale)?);
    let parameters = vector("parameters", &parameters)?;
    Ok(DenseNetwork::new(activation, &shift, &scale, &sizes, &parameters)?)
}

/// Evaluates something at the rows of an array of points.
fn evaluate(
    points: &Bound<'_, PyAny>,
    inputs: usize,
    job: impl Fn(&[f64]) -> turnout_core::Result<Vec<f64>> + Send + Sync,
) -> Result<Out<f64>> {
    let values = &*matrix_of("points", points, inputs)?;
    run_if(points.py(), values.len() > FEW * inputs, || job(values)).map(Out)
}

/// The logits of a network at points.
#[pyfunction]
pub(crate) fn network_logits(parts: Parts<'_>, points: &Bound<'_, PyAny>) -> Result<Out<f64>> {
    let network = network(parts)?;
    evaluate(points, network.inputs(), |points| network.logits(points))
}

/// The weighted sum of the clipped logits of networks at points.
#[pyfunction]
pub(crate) fn network_scores(
    networks: Vec<Parts<'_>>,
    weights: Vec<f64>,
    clip: f64,
    points: &Bound<'_, PyAny>,
) -> Result<Out<f64>> {
    let networks = networks.into_iter().map(network).collect::<Result<_>>()?;
    let sum = NetworkSum::new(networks, weights, clip)?;
    evaluate(points, sum.inputs(), |points| sum.scores(points))
}
