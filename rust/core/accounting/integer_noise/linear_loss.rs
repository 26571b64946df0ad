//! Laws of integer noise whose privacy loss is linear: discrete Gaussian noise.

use super::super::HockeyStick;
use super::super::double::Double;
use super::super::normal::UNIT;
use super::LOST;
use crate::parallel;

/// `e^(-rate * square)`, within `5 * 2^-53` of itself.
#[inline]
fn gaussian(rate: Double, square: f64) -> f64 {
    let exponent = rate * square;
    libm::exp(-exponent.high) * (1.0 - exponent.low)
}

/// `sum e^(-(k + 1/2)^2 / v)` over `sum e^(-k^2 / v)`, over all integers k, within `24 * 2^-53`.
pub(super) fn weight_of_odd(variance: Double) -> f64 {
    if variance.value() > 4.5 {
        // By Poisson summation it is 1 - 4 e^(-pi^2 v) + ..., and that is 1.
        return 1.0;
    }
    let rate = Double::ONE / variance;
    let (mut even, mut odd) = (0.0, 0.0);
    for k in (0..=60_u32).rev() {
        let (whole, half) = (f64::from(k), f64::from(k) + 0.5);
        even += gaussian(rate, whole * whole) * if k > 0 { 2.0 } else { 1.0 };
        odd += 2.0 * gaussian(rate, half * half);
    }
    odd / even
}

/// A symmetric law on the integers with a weight `e^(-n^2 / (2 v))`, times a factor for odd n, and
/// a privacy loss `(n + shift / 2) h` with `h = 1 / sigma^2`: discrete Gaussian noise.
///
/// With `c = epsilon / h - shift / 2` the divergence is the sum over n > c of `w(n) (1 - e^(-(n -
/// c) h))`. With k the first such n and `a = (k - c) h` it is `(1 - e^-a) G(k) + e^-a W(k)`, where
/// `G(k)` is the tail from k and `W(k)` the sum of `w(n) (1 - e^(-(n - k) h))`. Tables hold both at
/// every `stride`-th n, as `W(k) = W'(k, m) + (1 - e^(-(m - k) h)) G(m) + e^(-(m - k) h) W(m)`,
/// with W' the part below m, goes from one to another.
#[derive(Debug, Clone)]
pub(super) struct LinearLoss {
    /// `sigma^2`.
    variance: Double,
    /// `1 / (2 v)`.
    rate: Double,
    odd: f64,
    shift: u32,
    /// One over the sum of all weights.
    scale: f64,
    /// Weights from here on are nothing.
    stop: u64,
    stride: u64,
    nodes: Vec<Tail>,
}

/// `G` and `W`.
#[derive(Debug, Clone, Copy, Default)]
struct Tail {
    mass: f64,
    excess: f64,
}

/// Where a law has no more weights than this, its table holds all.
const ALL: u64 = 1 << 14;

/// Else it holds every so many: they are summed in working precision.
const STRIDE: u64 = 256;

/// The error of `epsilon sigma^2`, relative.
const PAIR_ERROR: f64 = 16.0 * UNIT * UNIT;

impl LinearLoss {
    pub(super) fn new(variance: Double, v: Double, shift: u32, odd: f64) -> Self {
        let rate = Double::from(0.5) / v;
        // e^-746 is less than half the smallest number; the weights from `stop` on add up to less
        // than sqrt(v) / 38 of it.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to 6e7")]
        let stop = libm::sqrt(746.0 / rate.value()) as u64 + 1;
        let stride = if stop <= ALL { 1 } else { STRIDE };
        let count = stop.div_ceil(stride);
        let mut law =
            Self { variance, rate, odd, shift, scale: 1.0, stop, stride, nodes: Vec::new() };
        let block = |index: u64| law.block(index * stride, (index + 1) * stride);
        let blocks: Vec<Tail> = if stride == 1 {
            (0..count).map(block).collect()
        } else {
            // Memory holds a `Tail` for each.
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            parallel::map(count, |index| block(index as u64))
        };
        let step = stride as f64 / variance.value();
        let near = -libm::expm1(-step);
        let (mut mass, mut excess) = (Double::ZERO, Double::ZERO);
        for block in blocks.iter().rev() {
            // With 1 - e^-h in one place only, its error cannot grow over many blocks.
            excess = excess + (mass - excess) * near + block.excess;
            mass = mass + block.mass;
            law.nodes.push(Tail { mass: mass.value(), excess: excess.value() });
        }
        law.nodes.reverse();
        // The weight of 0 is 1.
        law.scale = 1.0 / (mass * 2.0 + -1.0).value();
        law
    }

    /// The weight of n before it is normalised; `n^2` is below 2^53.
    fn weight(&self, n: u64) -> f64 {
        let weight = gaussian(self.rate, (n * n) as f64);
        if n % 2 == 1 { weight * self.odd } else { weight }
    }

    /// The part of `G` and `W` at `start` that is below `stop`; not normalised.
    fn block(&self, start: u64, stop: u64) -> Tail {
        let near = -libm::expm1(-1.0 / self.variance.value());
        let mut tail = Tail::default();
        for n in (start..stop).rev() {
            tail.excess += near * (tail.mass - tail.excess);
            tail.mass += self.weight(n);
        }
        tail
    }

    /// `G` and `W` at k, normalised.
    fn tail(&self, k: u64) -> Tail {
        let next = k.div_ceil(self.stride);
        let node = usize::try_from(next).ok().and_then(|next| self.nodes.get(next));
        let node = node.copied().unwrap_or_default();
        if k >= self.stop {
            return Tail::default();
        }
        let block = self.block(k, next * self.stride);
        let step = (next * self.stride - k) as f64 / self.variance.value();
        let excess = block.excess - libm::expm1(-step) * node.mass + libm::exp(-step) * node.excess;
        Tail { mass: (block.mass + node.mass) * self.scale, excess: excess * self.scale }
    }

    /// The divergence at an epsilon.
    ///
    /// The relative errors, in `2^-53`: a weight 30 at the most (its factor for odd n included),
    /// its normalisation as much, the sums `stride` and 12, a result from them 12. The coefficients
    /// `1 - e^-h` are computed within 4, and W rises no faster than in proportion to them.
    pub(super) fn divergence(&self, epsilon: f64) -> HockeyStick {
        let lost = 2.0 * LOST * (self.stop + 64) as f64;
        if epsilon * self.variance.value() > self.stop as f64 {
            return HockeyStick { delta: lost, ..HockeyStick::NONE };
        }
        let threshold = self.variance * epsilon + -0.5 * f64::from(self.shift);
        let (floor, _) = threshold.split_integer();
        let first = floor + 1.0;
        let gap = (first - threshold.high) - threshold.low;
        // The divergence rises with the gap, and is continuous where k changes.
        let doubt = (threshold.value().abs() + 1.0) * PAIR_ERROR;
        let loss = (gap + doubt) / self.variance.value();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0")]
        let k = first as u64;
        let tail = self.tail(k);
        let delta = -libm::expm1(-loss) * tail.mass + libm::exp(-loss) * tail.excess;
        let margin = (96.0 + self.stride as f64) * UNIT;
        HockeyStick {
            delta: (delta * (1.0 + margin) + lost).min(1.0),
            p: tail.mass.min(1.0),
            q: self.tail(k + u64::from(self.shift)).mass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::IntegerNoise;
    use super::*;
    use crate::Result;

    #[test]
    fn wide_discrete_gaussians_agree_with_sixty_digits() -> Result<()> {
        // G(k) - e^epsilon G(k + shift), tails by the Euler-Maclaurin formula: (replace, single).
        let cases = [
            (300.25, 0.1, 5.748_793_754_151_954e-104, 2.694_905_495_526_286e-202),
            (1000.0, 0.001, 0.000_199_741_027_318_917_52, 8.335_714_221_236_307e-5),
            (1000.0, 0.005, 7.194_163_964_208_95e-8, 5.359_553_251_214_073e-11),
            (1000.0, 0.03, 2.429_892_909_957_957_5e-104, 1.656_682_720_025_789_8e-202),
            (1e5, 1e-5, 1.996_422_265_782_224_6e-6, 8.331_588_716_642_782e-7),
            (1e5, 1e-4, 1.481_417_002_321_103e-18, 7.474_933_995_059_933e-30),
            (1e5, 3e-4, 2.394_121_380_509_829_6e-106, 1.632_201_552_082_831e-204),
        ];
        for (sigma, epsilon, replace, single) in cases {
            let noise = IntegerNoise::discrete_gaussian(sigma)?;
            for (ours, exact) in
                [(noise.replace(epsilon), replace), (noise.single(epsilon), single)]
            {
                let above = ours.delta / exact - 1.0;
                assert!((-UNIT..360.0 * UNIT).contains(&above), "{sigma} {epsilon}: {above}");
            }
        }
        Ok(())
    }

    #[test]
    fn tables_with_strides_agree_with_full_ones() {
        let variance = Double::product(60.5, 60.5);
        let full = LinearLoss::new(variance, variance, 1, 1.0);
        let mut sparse = LinearLoss { stride: 16, ..full.clone() };
        sparse.nodes = full.nodes.iter().step_by(16).copied().collect();
        // The nodes are normalised only when they are read.
        for k in 0..full.stop + 20 {
            let (ours, other) = (sparse.tail(k), full.tail(k));
            assert!((ours.mass - other.mass).abs() <= 1e-14 * other.mass + 1e-310, "{k}");
            assert!((ours.excess - other.excess).abs() <= 1e-14 * other.excess + 1e-310, "{k}");
        }
    }
}
