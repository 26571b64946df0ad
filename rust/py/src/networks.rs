//! Binding of the networks of `samplers`.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use turnout::samplers::{Activation, DenseNetwork, NetworkSum};

use crate::arrays::{floats, matrix, slice, unexpected};
use crate::errors::{exception, invalid_type};
use crate::pool::run;

/// Up to so many points the core works on one thread: they are done where they are called.
const FEW: usize = 128;

/// What makes a network: its activation, its sizes, its parameters, shift and scale.
type Parts<'py> = (String, Vec<usize>, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);
type Floats<'py> = Bound<'py, PyArray1<f64>>;

fn network(py: Python<'_>, parts: Parts<'_>) -> PyResult<DenseNetwork> {
    let (activation, sizes, parameters, shift, scale) = parts;
    let activation = match activation.as_str() {
        "identity" => Activation::Identity,
        "tanh" => Activation::Tanh,
        "logistic" => Activation::Logistic,
        "relu" => Activation::Relu,
        _ => return Err(invalid_type(py, format!("activation = {activation:?} is not known"))),
    };
    let parameters = floats("parameters", &parameters)?;
    let (shift, scale) = (floats("shift", &shift)?, floats("scale", &scale)?);
    let parameters = slice(py, "parameters", &parameters)?;
    let shift = slice(py, "shift", &shift)?;
    let scale = slice(py, "scale", &scale)?;
    DenseNetwork::new(activation, shift, scale, &sizes, parameters)
        .map_err(|error| exception(py, &error))
}

/// Evaluates something at the rows of a contiguous array of points.
fn evaluate<'py>(
    py: Python<'py>,
    points: &Bound<'py, PyAny>,
    inputs: usize,
    job: impl Fn(&[f64]) -> turnout::Result<Vec<f64>> + Send + Sync,
) -> PyResult<Floats<'py>> {
    let array = matrix::<f64>("points", points)?;
    let Ok(values) = array.as_slice() else {
        return Err(invalid_type(py, "points must be a contiguous array".to_owned()));
    };
    if array.as_array().ncols() != inputs {
        let expected = format!("an array with {inputs} column(s)");
        return Err(unexpected("points", &expected, points));
    }
    let results = if values.len() <= FEW * inputs {
        job(values).map_err(|error| exception(py, &error))?
    } else {
        run(py, || job(values))?
    };
    Ok(results.into_pyarray(py))
}

/// The logits of a network at points.
#[pyfunction]
pub(crate) fn network_logits<'py>(
    py: Python<'py>,
    parts: Parts<'py>,
    points: &Bound<'py, PyAny>,
) -> PyResult<Floats<'py>> {
    let network = network(py, parts)?;
    evaluate(py, points, network.inputs(), |points| network.logits(points))
}

/// The weighted sum of the clipped logits of networks at points.
#[pyfunction]
pub(crate) fn network_scores<'py>(
    py: Python<'py>,
    networks: Vec<Parts<'py>>,
    weights: Vec<f64>,
    clip: f64,
    points: &Bound<'py, PyAny>,
) -> PyResult<Floats<'py>> {
    let networks = networks.into_iter().map(|parts| network(py, parts)).collect::<PyResult<_>>()?;
    let sum = NetworkSum::new(networks, weights, clip).map_err(|error| exception(py, &error))?;
    evaluate(py, points, sum.inputs(), |points| sum.scores(points))
}
