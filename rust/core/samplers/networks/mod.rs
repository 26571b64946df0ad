//! Small dense networks, evaluated at many points at once.
//!
//! A boosted sampler scores a point by a weighted sum of clipped logits, with one network for each
//! round. It does so at every proposal and at every node of a quadrature. Points are handled in
//! tiles of 64, with one column for each unit, so that every operation works on vectors of points.
//! The vector instructions are chosen when the program runs; the last digits of a score depend on
//! that choice, never on the number of threads. This is in Rust, not in Python, for speed. For ten
//! networks 25-25-25 at 100,000 points on two cores, NumPy takes four times as long, and
//! scikit-learn eight times (`benches/networks.rs` measures this side).

mod kernel;
#[cfg(test)]
mod tests;

use crate::parallel::{self, chunk};
use crate::{Error, Result};
use kernel::{GROUP, Lanes, Layer, Scratch};

/// Points that a thread takes at once.
const CHUNK: usize = 2 * kernel::TILE;

/// How a hidden unit transforms its sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// The sum itself.
    Identity,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-x)`.
    Logistic,
    /// The larger of the sum and zero.
    Relu,
}

/// A network of dense layers with one output, the logit, which has no activation.
///
/// Inputs are first standardised to `(x - shift) / scale`. Weights may have any value: infinities
/// and NaN pass through the network.
///
/// ```
/// use turnout_core::samplers::{Activation, DenseNetwork};
///
/// // One input, two hidden units, one output: 3 tanh(x) - tanh(2 x) + 0.5.
/// let parameters = [1.0, 2.0, 0.0, 0.0, 3.0, -1.0, 0.5];
/// let network =
///     DenseNetwork::new(Activation::Tanh, &[0.0], &[1.0], &[1, 2, 1], &parameters)?;
/// let logits = network.logits(&[0.0, 0.25])?;
/// assert_eq!(logits[0], 0.5);
/// let expected = 3.0 * 0.25_f64.tanh() - 0.5_f64.tanh() + 0.5;
/// assert!((logits[1] - expected).abs() < 1e-14);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DenseNetwork {
    activation: Activation,
    shift: Vec<f64>,
    scale: Vec<f64>,
    layers: Vec<Layer>,
}

impl DenseNetwork {
    /// Makes the network of layers with the given sizes, from the inputs to the one output.
    ///
    /// For every layer, `parameters` holds its weights, one row for each of its inputs, and then
    /// its biases.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if there are fewer than two sizes, a size is 0, or the last size is not
    /// 1; [`Error::LengthMismatch`] if shift, scale or parameters have another length than the
    /// sizes need; [`Error::Accounting`] if a shift is not finite, or a scale is not finite and
    /// above 0.
    pub fn new(
        activation: Activation,
        shift: &[f64],
        scale: &[f64],
        sizes: &[usize],
        parameters: &[f64],
    ) -> Result<Self> {
        let (inputs, needed) = needed(sizes)?;
        same_length("shift", shift.len(), "the inputs", inputs)?;
        same_length("scale", scale.len(), "the inputs", inputs)?;
        same_length("parameters", parameters.len(), "what the sizes need", needed)?;
        if let Some(&value) = shift.iter().find(|value| !value.is_finite()) {
            return Err(Error::Accounting { argument: "shift", value, expected: "finite" });
        }
        if let Some(&value) = scale.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
            let expected = "finite and above 0";
            return Err(Error::Accounting { argument: "scale", value, expected });
        }
        let mut rest = parameters;
        let layers = sizes
            .windows(2)
            .map(|pair| {
                let (weights, later) = rest.split_at(pair[0] * pair[1]);
                let (biases, later) = later.split_at(pair[1]);
                rest = later;
                Layer::new(pair[0], weights, biases)
            })
            .collect();
        Ok(Self { activation, shift: shift.to_vec(), scale: scale.to_vec(), layers })
    }

    /// The number of inputs, which are the coordinates of a point.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.shift.len()
    }

    /// The most units that a layer has, padded to whole groups.
    fn width(&self) -> usize {
        self.layers.iter().map(|layer| layer.outputs().next_multiple_of(GROUP)).max().unwrap_or(0)
    }

    /// Returns the logit at every point, or NaN where the network gives none.
    ///
    /// `points` holds one row of [`inputs`](Self::inputs) coordinates for each point.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if the coordinates are not a whole number of points.
    pub fn logits(&self, points: &[f64]) -> Result<Vec<f64>> {
        evaluate(Lanes::best(), self.inputs(), self.width(), points, |lanes, scratch, sums| {
            lanes.logits(self, scratch, sums);
        })
    }
}

/// A weighted sum of clipped logits.
///
/// It is `sum_t weight_t clip(logit_t(x), -clip, clip)`, where a logit that is NaN counts as 0.
/// Whatever the networks return, the absolute value is at most `clip * sum_t |weight_t|`, apart
/// from rounding.
///
/// ```
/// use turnout_core::samplers::{Activation, DenseNetwork, NetworkSum};
///
/// let line = |slope| {
///     DenseNetwork::new(Activation::Identity, &[0.0], &[1.0], &[1, 1], &[slope, 0.0])
/// };
/// let networks = vec![line(1.0)?, line(f64::NAN)?, line(f64::INFINITY)?];
/// let sum = NetworkSum::new(networks, vec![1.0, 1.0, 0.25], 0.5)?;
/// assert_eq!(sum.scores(&[0.125, 9.0, -9.0])?, [0.25, 0.625, -0.625]);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkSum {
    networks: Vec<DenseNetwork>,
    weights: Vec<f64>,
    clip: f64,
    inputs: usize,
}

impl NetworkSum {
    /// Makes the sum of some networks.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there are not as many weights as networks, or the networks have
    /// different numbers of inputs; [`Error::Integer`] if there is no network;
    /// [`Error::Accounting`] if a weight is not finite, or `clip` is not finite and above 0.
    pub fn new(networks: Vec<DenseNetwork>, weights: Vec<f64>, clip: f64) -> Result<Self> {
        same_length("weights", weights.len(), "networks", networks.len())?;
        let Some(inputs) = networks.first().map(DenseNetwork::inputs) else {
            let expected = "at least one network";
            return Err(Error::Integer { argument: "networks", value: 0, expected });
        };
        for network in &networks {
            let left = "the inputs of a network";
            same_length(left, network.inputs(), "those of the first", inputs)?;
        }
        if let Some(&value) = weights.iter().find(|value| !value.is_finite()) {
            return Err(Error::Accounting { argument: "weights", value, expected: "finite" });
        }
        if !(clip.is_finite() && clip > 0.0) {
            let expected = "finite and above 0";
            return Err(Error::Accounting { argument: "clip", value: clip, expected });
        }
        Ok(Self { networks, weights, clip, inputs })
    }

    /// The number of coordinates of a point.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the score at every point. `points` holds one row of coordinates for each point.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if the coordinates are not a whole number of points.
    pub fn scores(&self, points: &[f64]) -> Result<Vec<f64>> {
        self.scores_with(Lanes::best(), points)
    }

    fn scores_with(&self, lanes: Lanes, points: &[f64]) -> Result<Vec<f64>> {
        let width = self.networks.iter().map(DenseNetwork::width).max().unwrap_or(0);
        evaluate(lanes, self.inputs, width, points, |lanes, scratch, sums| {
            for (network, &weight) in self.networks.iter().zip(&self.weights) {
                lanes.add(network, weight, self.clip, scratch, sums);
            }
        })
    }
}

/// Evaluates something at every point, tile by tile.
fn evaluate(
    lanes: Lanes,
    inputs: usize,
    width: usize,
    points: &[f64],
    tile: impl Fn(Lanes, &mut Scratch, &mut kernel::Column) + Sync,
) -> Result<Vec<f64>> {
    let number = points.len() / inputs;
    same_length("points", points.len(), "whole rows of coordinates", number * inputs)?;
    let mut results = vec![0.0; number];
    let part = |scratch: &mut Scratch, results: &mut [f64], points: &[f64]| {
        let rows = points.chunks(kernel::TILE * inputs);
        for (results, rows) in results.chunks_mut(kernel::TILE).zip(rows) {
            scratch.load(rows);
            let mut sums = [0.0; kernel::TILE];
            tile(lanes, scratch, &mut sums);
            results.copy_from_slice(&sums[..results.len()]);
        }
    };
    let scratch = || Scratch::new(inputs, width);
    parallel::for_each_chunk(&mut results, CHUNK, |index, results| {
        part(&mut scratch(), results, &points[chunk(index, CHUNK * inputs, points.len())]);
    });
    Ok(results)
}

/// The number of inputs, and how many parameters layers of given sizes have.
fn needed(sizes: &[usize]) -> Result<(usize, usize)> {
    let refused = |value: usize, expected| {
        Err(Error::Integer { argument: "sizes", value: value as u64, expected })
    };
    let (Some(&inputs), Some(&outputs), true) = (sizes.first(), sizes.last(), sizes.len() > 1)
    else {
        return refused(sizes.len(), "the sizes of the inputs, of the hidden layers and 1");
    };
    if outputs != 1 {
        return refused(outputs, "1 for the output");
    }
    if sizes.contains(&0) {
        return refused(0, "at least 1");
    }
    let total = sizes.windows(2).try_fold(0_usize, |total, pair| {
        pair[0].checked_add(1)?.checked_mul(pair[1])?.checked_add(total)
    });
    match total {
        Some(total) => Ok((inputs, total)),
        None => refused(sizes.len(), "the sizes of a network that fits into memory"),
    }
}

fn same_length(
    left: &'static str,
    left_length: usize,
    right: &'static str,
    right_length: usize,
) -> Result<()> {
    if left_length == right_length {
        return Ok(());
    }
    Err(Error::LengthMismatch { left, left_length, right, right_length })
}
