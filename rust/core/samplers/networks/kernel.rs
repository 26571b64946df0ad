//! Layers on tiles of points, with vector instructions.

use core::f64::consts::LOG2_E;
use core::mem;

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

use super::{Activation, DenseNetwork};

/// Points in a tile: a multiple of [`BLOCK`] vectors on every machine.
pub(super) const TILE: usize = 64;

/// Units that are computed together, so that a point is loaded once for all of them.
pub(super) const GROUP: usize = 4;

/// Vectors of points that are computed together.
const BLOCK: usize = 2;

/// One number for every point of a tile.
pub(super) type Column = [f64; TILE];

/// A dense layer. Units are in groups of [`GROUP`]; those that fill the last group are zero.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    inputs: usize,
    outputs: usize,
    /// For every group one row for each input.
    weights: Vec<[f64; GROUP]>,
    biases: Vec<[f64; GROUP]>,
}

impl Layer {
    /// From weights with one row for each input; there is at least one input and one output.
    pub(super) fn new(inputs: usize, weights: &[f64], biases: &[f64]) -> Self {
        let packed = |row: &[f64], group: usize| {
            core::array::from_fn(|unit| row.get(GROUP * group + unit).copied().unwrap_or(0.0))
        };
        let groups = 0..biases.len().div_ceil(GROUP);
        let rows = |group| weights.chunks(biases.len()).map(move |row| packed(row, group));
        Self {
            inputs,
            outputs: biases.len(),
            weights: groups.clone().flat_map(rows).collect(),
            biases: groups.map(|group| packed(biases, group)).collect(),
        }
    }

    pub(super) const fn outputs(&self) -> usize {
        self.outputs
    }
}

/// Room for a tile on its way through a network.
pub(super) struct Scratch {
    points: Vec<Column>,
    standard: Vec<Column>,
    units: Vec<Column>,
    others: Vec<Column>,
}

impl Scratch {
    pub(super) fn new(inputs: usize, width: usize) -> Self {
        let room = |columns| vec![[0.0; TILE]; columns];
        Self {
            points: room(inputs),
            standard: room(inputs),
            units: room(width),
            others: room(width),
        }
    }

    /// Takes the rows of at most a tile of points. Points of an earlier tile may be left behind
    /// them: their results are not used.
    pub(super) fn load(&mut self, rows: &[f64]) {
        for (place, row) in rows.chunks_exact(self.points.len()).enumerate() {
            for (column, &coordinate) in self.points.iter_mut().zip(row) {
                column[place] = coordinate;
            }
        }
    }
}

/// The vector instructions to use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes(Level);

impl Lanes {
    /// The widest of this machine.
    pub(super) fn best() -> Self {
        Self(Level::new())
    }

    /// Every kind that this machine has and that has a kernel of its own.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self(Level::baseline()), Self::best()];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Level::new().as_sse4_2().map(|lanes| Self(Level::Sse4_2(lanes))));
            all.extend(Level::new().as_avx2().map(|lanes| Self(Level::Avx2(lanes))));
        }
        all
    }

    /// The logits of a tile.
    pub(super) fn logits(self, network: &DenseNetwork, scratch: &mut Scratch, out: &mut Column) {
        *out = *dispatch!(self.0, simd => forward(simd, network, scratch));
    }

    /// Adds the clipped logits of a tile, times a weight.
    pub(super) fn add(
        self,
        network: &DenseNetwork,
        weight: f64,
        clip: f64,
        scratch: &mut Scratch,
        sums: &mut Column,
    ) {
        let logits = dispatch!(self.0, simd => forward(simd, network, scratch));
        for (sum, &logit) in sums.iter_mut().zip(logits) {
            *sum += weight * if logit.is_nan() { 0.0 } else { logit.clamp(-clip, clip) };
        }
    }

    /// The hyperbolic tangents of some numbers.
    #[cfg(test)]
    pub(super) fn tanh(self, values: &Column) -> Column {
        let mut out = [0.0; TILE];
        dispatch!(self.0, simd => map(simd, values, &mut out));
        out
    }
}

/// The logits of a tile.
#[inline(always)]
fn forward<'a, S: Simd>(simd: S, network: &DenseNetwork, scratch: &'a mut Scratch) -> &'a Column {
    let Scratch { points, standard, units, others } = scratch;
    let affine = network.shift.iter().zip(&network.scale);
    for ((out, column), (&shift, &scale)) in standard.iter_mut().zip(points.iter()).zip(affine) {
        for (out, &coordinate) in out.iter_mut().zip(column.iter()) {
            *out = (coordinate - shift) / scale;
        }
    }
    let (mut from, mut to): (&mut [Column], &mut [Column]) = (others, units);
    for (index, layer) in network.layers.iter().enumerate() {
        let hidden = index + 1 < network.layers.len();
        let activation = if hidden { network.activation } else { Activation::Identity };
        let input = if index == 0 { &*standard } else { &from[..layer.inputs] };
        match activation {
            Activation::Identity => dense(simd, layer, input, to, |_, sum| sum),
            Activation::Tanh => dense(simd, layer, input, to, tanh),
            Activation::Logistic => dense(simd, layer, input, to, logistic),
            Activation::Relu => dense(simd, layer, input, to, relu),
        }
        mem::swap(&mut from, &mut to);
    }
    &from[0]
}

/// One layer: `out = activation(weights input + biases)`.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "vectors that pass through functions of the library, which know nothing of the \
              instructions, are slow: measured"
)]
fn dense<S: Simd>(
    simd: S,
    layer: &Layer,
    input: &[Column],
    output: &mut [Column],
    activation: impl Fn(S, S::f64s) -> S::f64s,
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let lanes = S::f64s::LEN;
            let groups = layer.weights.chunks_exact(layer.inputs).zip(&layer.biases);
            for ((weights, biases), output) in groups.zip(output.chunks_mut(GROUP)) {
                for start in (0..TILE).step_by(BLOCK * lanes) {
                    let mut sums = [[S::f64s::splat(simd, 0.0); BLOCK]; GROUP];
                    for unit in 0..GROUP {
                        sums[unit] = [S::f64s::splat(simd, biases[unit]); BLOCK];
                    }
                    for (weights, column) in weights.iter().zip(input) {
                        let mut points = [S::f64s::splat(simd, 0.0); BLOCK];
                        for block in 0..BLOCK {
                            let first = start + block * lanes;
                            points[block] =
                                S::f64s::from_slice(simd, &column[first..first + lanes]);
                        }
                        for unit in 0..GROUP {
                            let weight = S::f64s::splat(simd, weights[unit]);
                            for block in 0..BLOCK {
                                sums[unit][block] =
                                    weight.mul_add(points[block], sums[unit][block]);
                            }
                        }
                    }
                    for (unit, output) in output.iter_mut().enumerate() {
                        for block in 0..BLOCK {
                            let first = start + block * lanes;
                            let place = &mut output[first..first + lanes];
                            activation(simd, sums[unit][block]).store_slice(place);
                        }
                    }
                }
            }
        },
    );
}

/// The hyperbolic tangents of a column.
#[cfg(test)]
#[inline(always)]
fn map<S: Simd>(simd: S, values: &Column, out: &mut Column) {
    let lanes = S::f64s::LEN;
    for (value, out) in values.chunks_exact(lanes).zip(out.chunks_exact_mut(lanes)) {
        tanh(simd, S::f64s::from_slice(simd, value)).store_slice(out);
    }
}

/// `1.5 * 2^52`: a small number added to it is rounded to an integer, which is then in the low bits.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// `ln 2` in two parts: the first times an integer below 2^20 is exact (as in FDLIBM).
const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// `(e^r - 1 - r) / r^2` for `|r| <= ln(2) / 2`, by a polynomial of nearly the least largest error:
/// `e^r - 1` has a relative error below 3e-15.
const POLYNOMIAL: [f64; 9] = [
    0.500_000_000_000_000_2,
    0.166_666_666_666_483_03,
    0.041_666_666_666_597_12,
    0.008_333_333_353_718_757,
    0.001_388_888_892_845_808,
    0.000_198_412_087_537_474_36,
    2.480_150_630_886_036e-5,
    2.762_510_371_826_451e-6,
    2.762_633_069_616_872e-7,
];

/// Beyond this the hyperbolic tangent is 1 in double precision.
const FLAT: f64 = 20.0;

/// The hyperbolic tangent with a relative error below 1e-14: `(e^2x - 1) / (e^2x + 1)`, where
/// `e^2x - 1 = 2^k (e^r - 1) + (2^k - 1)` with `2x = k ln 2 + r`. NaN stays NaN.
#[inline(always)]
fn tanh<S: Simd>(simd: S, value: S::f64s) -> S::f64s {
    let rounded = value.mul_add(2.0 * LOG2_E, ROUNDING);
    let exponent = rounded - ROUNDING;
    let rest = exponent.mul_add(-LN_2[0], value + value);
    let rest = exponent.mul_add(-LN_2[1], rest);
    let [first @ .., last] = POLYNOMIAL;
    let mut sum = S::f64s::splat(simd, last);
    for coefficient in first.into_iter().rev() {
        sum = sum.mul_add(rest, coefficient);
    }
    let less_one = (rest * rest).mul_add(sum, rest);
    let bits: S::u64s = rounded.bitcast();
    let power: S::f64s = ((bits + 1023) << 52_u32).bitcast();
    let less_one = power.mul_add(less_one, power - 1.0);
    let ratio = less_one / (less_one + 2.0);
    let one = S::f64s::splat(simd, 1.0);
    value.abs().simd_gt(S::f64s::splat(simd, FLAT)).select(one.copysign(value), ratio)
}

/// `1 / (1 + e^-x)`, as `(1 + tanh(x / 2)) / 2`.
#[inline(always)]
fn logistic<S: Simd>(simd: S, value: S::f64s) -> S::f64s {
    tanh(simd, value * 0.5).mul_add(0.5, S::f64s::splat(simd, 0.5))
}

/// The larger of a number and zero. NaN stays NaN.
#[inline(always)]
fn relu<S: Simd>(simd: S, value: S::f64s) -> S::f64s {
    let zero = S::f64s::splat(simd, 0.0);
    value.simd_lt(zero).select(zero, value)
}
