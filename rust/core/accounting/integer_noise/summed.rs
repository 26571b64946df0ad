//! Sums of many independent discrete Gaussians.

use core::f64::consts::TAU;

use super::super::double::Double;
use super::super::normal::UNIT;
use super::tabulated::{Errors, Tabulated};

/// The law of a sum of `pieces` discrete Gaussians of the same parameter `sigma^2`, below
/// [`SMOOTH`] and such that a piece is not almost always 0.
///
/// Where the sum is narrow its law is a power under convolution of the law of one: all terms are
/// positive, so relative errors stay small, and the probability of what is cut off on the way is
/// added up. Where it is wide the law is summed from its Fourier series,
///
/// `P(s) = (1 / N) sum over j of f(2 pi j / N)^n cos(2 pi j s / N)`,
///
/// which is the law modulo N; f is positive and falls up to pi, being a product of factors `1 + 2 c
/// cos t + c^2`, and few of its powers matter. `1 - f^n` is made from `1 - f` by doublings, `1 -
/// f^(2 m) = (1 - f^m)(2 - (1 - f^m))`, in which no relative error grows.
pub(super) fn summed(variance: f64, pieces: u32) -> Tabulated {
    let piece = Piece::new(variance, pieces);
    if piece.variance() * f64::from(pieces) <= NARROW {
        piece.convolved()
    } else {
        piece.inverted()
    }
}

/// From this `sigma^2` on the law of a sum of n is the discrete Gaussian of n times that, up to
/// factors within `10 n e^(-pi^2 sigma^2) < 1e-60` of one (Kairouz, Liu, Steinke, "The Distributed
/// Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation", 2021, Theorem 1).
pub(super) const SMOOTH: f64 = 16.0;

/// Variances up to this are convolved.
const NARROW: f64 = 256.0;

/// What is cut off from the law of one piece is below this part of one over the number of pieces,
/// and so on up to their sum.
const CUT: f64 = 1e-60;

/// How many standard deviations the table reaches in the Fourier series.
const REACH: f64 = 9.0;

/// Powers of f below e to the power of minus this are left out.
const LARGEST_EXPONENT: f64 = 101.0;

/// A bound of the absolute error of a probability from the series, in units of the largest. A power
/// is within 40 units of `10 * 2^-106` (30 doublings, and as much for `1 - f`, times `x e^-x`), its
/// cosine within 10; the sum of the powers would be the largest probability, and there are at most
/// 15 times as many as their sum. Together that is 1e-28.
const SERIES_ERROR: f64 = 1e-27;

/// A bound of the relative error of a convolution, for each piece: 2^-94 of a weight's exponential,
/// and a few roundings of pairs.
const STEP_ERROR: f64 = UNIT * UNIT * 65_536.0;

/// One discrete Gaussian.
struct Piece {
    /// The probabilities of `0..`.
    law: Vec<Double>,
    pieces: u32,
    /// What the law leaves out.
    missing: f64,
}

impl Piece {
    fn new(variance: f64, pieces: u32) -> Self {
        let rate = Double::from(0.5) / variance;
        let cut = CUT / f64::from(pieces);
        let mut law = vec![Double::ONE];
        let missing = loop {
            let square = rate * (law.len() * law.len()) as f64;
            let weight = if square.value() < 600.0 { exponential(square) } else { Double::ZERO };
            law.push(weight);
            if weight.value() < cut {
                // Weights fall by more than half where they are as small.
                break 4.0 * cut;
            }
        };
        let half = law[1..].iter().fold(Double::ZERO, |sum, &weight| sum + weight);
        let inverse = Double::ONE / (half * 2.0 + 1.0);
        for weight in &mut law {
            *weight = *weight * inverse;
        }
        Self { law, pieces, missing }
    }

    fn variance(&self) -> f64 {
        let square = |(k, p): (usize, &Double)| (k * k) as f64 * p.value();
        2.0 * self.law.iter().enumerate().map(square).sum::<f64>()
    }

    /// The law of the sum by convolution.
    fn convolved(&self) -> Tabulated {
        let all = f64::from(self.pieces);
        let mut sum = Summed { law: self.law.clone(), missing: self.missing };
        let mut count = 1_u32;
        for bit in (0..self.pieces.ilog2()).rev() {
            count *= 2;
            sum = sum.plus(&sum.law, sum.missing, CUT * f64::from(count) / all);
            if self.pieces >> bit & 1 == 1 {
                count += 1;
                sum = sum.plus(&self.law, self.missing, CUT * f64::from(count) / all);
            }
        }
        let ratios = ratios(&sum.law);
        // The last two are below the cut: a piece ends below it, and there are two at least.
        let reach = sum.law.len().saturating_sub(2).max(1);
        sum.law.truncate(reach + 1);
        let relative = all * STEP_ERROR;
        let errors = Errors { missing: sum.missing, absolute: 0.0, relative };
        Tabulated::new(&sum.law, &ratios[..=reach + 1], &errors)
    }

    /// The law of the sum from its Fourier series.
    fn inverted(&self) -> Tabulated {
        let deviation = libm::sqrt(self.variance() * f64::from(self.pieces));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to 2e5")]
        let reach = (REACH * deviation) as usize + 1;
        let mut size = (2 * reach).next_power_of_two();
        // What wraps around is below e^-80 = 2e-35.
        while self.exponent((size - reach - 1) as f64, deviation) < 80.0 {
            size *= 2;
        }
        let sines = sines(size);
        let powers: Vec<Double> = (1..size / 2).map_while(|j| self.power(&sines, j)).collect();
        let masses: Vec<Double> = (0..reach + 2)
            .map(|s| {
                let mut sum = Double::ZERO;
                for (index, &power) in powers.iter().enumerate().rev() {
                    // cos(2 pi m / N) = sin(pi (2 m + N / 2) / N).
                    let place = 2 * ((index + 1) * s % size) + size / 2;
                    sum = sum + power * sines[place % (2 * size)];
                }
                (sum * 2.0 + Double::ONE) / size as f64
            })
            .collect();
        let absolute = SERIES_ERROR * masses[0].value();
        let ratios = ratios(&masses);
        let missing = f64::from(self.pieces) * self.missing;
        Tabulated::new(&masses[..=reach], &ratios, &Errors { missing, absolute, relative: 0.0 })
    }

    /// Chernoff's exponent: the sum is above x with a probability of at most e to minus this.
    fn exponent(&self, x: f64, deviation: f64) -> f64 {
        let tilt = libm::asinh(x / (deviation * deviation));
        let part = |(k, p): (usize, &Double)| p.value() * (libm::cosh(k as f64 * tilt) - 1.0);
        let moment = 2.0 * self.law.iter().enumerate().map(part).sum::<f64>();
        x * tilt - f64::from(self.pieces) * libm::log1p(moment)
    }

    /// `f(2 pi j / N)^n`, if it matters.
    fn power(&self, sines: &[Double], j: usize) -> Option<Double> {
        let mut rest = Double::ZERO;
        for (k, &mass) in self.law.iter().enumerate().rev() {
            // 1 - cos(2 pi m / N) = 2 sin(pi m / N)^2.
            let sine = sines[j * k % sines.len()];
            rest = rest + mass * sine * sine * 4.0;
        }
        // (1 - x)^n <= e^(-n x).
        if rest.value() * f64::from(self.pieces) > LARGEST_EXPONENT {
            return None;
        }
        let mut lost = rest;
        for bit in (0..self.pieces.ilog2()).rev() {
            lost = lost * (Double::from(2.0) - lost);
            if self.pieces >> bit & 1 == 1 {
                lost = lost + rest * (Double::ONE - lost);
            }
        }
        Some(Double::ONE - lost)
    }
}

/// A sum of some pieces: a lower bound of its law at `0..`, and what it leaves out in all.
struct Summed {
    law: Vec<Double>,
    missing: f64,
}

impl Summed {
    /// Adds an independent symmetric law; what follows two entries of which the first is below
    /// `cut` is left out.
    fn plus(&self, other: &[Double], missing: f64, cut: f64) -> Self {
        let (one, two) = (self.law.len() - 1, other.len() - 1);
        let mut law: Vec<Double> = Vec::with_capacity(one + two + 1);
        let mut missing = self.missing + missing;
        for s in 0..=one + two {
            // x from -two to two, with |s - x| at most `one`.
            let near = other.iter().enumerate().filter(|(x, _)| s.abs_diff(*x) <= one);
            let near = near.map(|(x, &p)| p * self.law[s.abs_diff(x)]);
            let far = self.law.get(s + 1..).unwrap_or_default();
            let far = other[1..].iter().zip(far).map(|(&p, &q)| p * q);
            let mass = near.chain(far).fold(Double::ZERO, |sum, part| sum + part);
            law.push(mass);
            if s > 0 && law[s - 1].value() < cut {
                // Masses fall, and from here on faster than by the last ratio.
                let ratio = mass.value() / law[s - 1].value();
                missing += 4.0 * mass.value() / (1.0 - ratio);
                break;
            }
        }
        Self { law, missing }
    }
}

/// `e^-x` for a pair.
fn exponential(x: Double) -> Double {
    let rest = Double::from(x.low);
    Double::ONE / (Double::exp(x.high) * (Double::ONE + rest + rest * x.low * 0.5))
}

/// Ratios of neighbours, the first of no meaning.
fn ratios(masses: &[Double]) -> Vec<Double> {
    let mut ratios = vec![Double::ONE];
    ratios.extend(masses.windows(2).map(|pair| pair[1] / pair[0]));
    ratios
}

/// `sin(pi m / N)` for m below 2 N, N a power of two.
fn sines(size: usize) -> Vec<Double> {
    let mut first = vec![Double::ZERO; size / 2 + 1];
    // Angles are sums of a coarse and a fine one.
    let step = 1 << (size.ilog2() / 2);
    let fine: Vec<_> = (0..step).map(|m| angle(m, size)).collect();
    for start in (0..=size / 2).step_by(step) {
        let (sine, cosine) = angle(start, size);
        for (&(s, c), entry) in fine.iter().zip(&mut first[start..]) {
            *entry = sine * c + cosine * s;
        }
    }
    (0..2 * size)
        .map(|m| {
            let (part, sign) = (m % size, m < size);
            let value = first[part.min(size - part)];
            if sign { value } else { -value }
        })
        .collect()
}

/// The sine and cosine of `pi m / N` for m up to `N / 2`: the series of both, up to `pi / 2`.
fn angle(m: usize, size: usize) -> (Double, Double) {
    let pi = Double { high: 0.5 * TAU, low: PI_REST };
    let x = pi * m as f64 / size as f64;
    let square = x * x;
    let (mut sine, mut cosine) = (Double::ONE, Double::ONE);
    for k in (1..=18_u32).rev() {
        let even = f64::from(2 * k);
        sine = Double::ONE - sine * square / (even * (even + 1.0));
        cosine = Double::ONE - cosine * square / (even * (even - 1.0));
    }
    (sine * x, cosine)
}

/// Pi less its nearest number.
const PI_REST: f64 = 1.224_646_799_147_353_2e-16;

#[cfg(test)]
mod tests {
    use super::super::IntegerNoise;
    use super::*;
    use crate::Result;

    #[test]
    fn sines_are_those_of_thirty_digits() {
        let sines = sines(1 << 9);
        let half =
            Double { high: core::f64::consts::FRAC_1_SQRT_2, low: -4.833_646_656_726_457e-17 };
        assert!((sines[1 << 7] - half).value().abs() < 1e-31);
        assert!((sines[1 << 8] - Double::ONE).value().abs() < 1e-31);
        for m in 0..1 << 9 {
            let (sine, cosine) = (sines[m], sines[(m + (1 << 8)) % (1 << 10)]);
            assert!((sine * sine + cosine * cosine - Double::ONE).value().abs() < 1e-30, "{m}");
            assert!((sines[m + (1 << 9)] + sine).value().abs() <= 0.0);
        }
    }

    #[test]
    fn the_series_and_the_convolution_agree() {
        for (variance, pieces) in [(0.08, 130_000), (0.2, 4_099), (1.0, 300), (13.0, 21)] {
            let piece = Piece::new(variance, pieces);
            let (one, other) = (piece.convolved(), piece.inverted());
            for epsilon in [0.0, 0.01, 0.1, 0.3] {
                for (one, other) in [
                    (one.replace(epsilon), other.replace(epsilon)),
                    (one.single(epsilon), other.single(epsilon)),
                ] {
                    let (low, high) = (one.delta * (1.0 - 1e-14), one.delta * (1.0 + 1e-9) + 1e-17);
                    let context = format!("{variance} {pieces} {epsilon}: {one:?} {other:?}");
                    assert!((low..high).contains(&other.delta), "{context}");
                    assert!((one.p - other.p).abs() < 1e-12 * one.p + 1e-17, "{context}");
                    assert!((one.q - other.q).abs() < 1e-12 * one.q + 1e-17, "{context}");
                }
            }
        }
    }

    #[test]
    fn pieces_just_below_the_limit_are_nearly_one_discrete_gaussian() -> Result<()> {
        let pieces = 1_000_000;
        let sum = IntegerNoise::summed_discrete_gaussian(SMOOTH.next_down(), pieces)?;
        let whole = IntegerNoise::summed_discrete_gaussian(SMOOTH, pieces)?;
        for epsilon in [0.0, 1e-4, 1e-3] {
            let (one, other) = (sum.replace(epsilon).delta, whole.replace(epsilon).delta);
            assert!((one / other - 1.0).abs() < 1e-11, "{epsilon}: {one} {other}");
        }
        Ok(())
    }

    #[test]
    fn narrow_sums_of_many_pieces_are_nearly_skellam_noise() -> Result<()> {
        // A piece is -1, 0 or 1 but for 1e-30.
        let (variance, pieces) = (0.02, 10_000_000);
        let away = libm::exp(-0.5 / variance);
        let mean = f64::from(pieces) * away / (1.0 + 2.0 * away);
        let sum = IntegerNoise::summed_discrete_gaussian(variance, pieces)?;
        let skellam = IntegerNoise::skellam(mean)?;
        for epsilon in [0.0, 1.0, 3.0] {
            let (one, other) = (sum.replace(epsilon).delta, skellam.replace(epsilon).delta);
            assert!((one / other - 1.0).abs() < 1e-9, "{epsilon}: {one} {other}");
        }
        assert!(IntegerNoise::summed_discrete_gaussian(0.004, pieces)?.single(9.0).delta >= 1.0);
        Ok(())
    }

    #[test]
    fn bad_variances_and_numbers_of_pieces_are_named() {
        for (named, variance, pieces) in [
            ("variance", 0.0, 10),
            ("variance", f64::NAN, 10),
            ("variance", 1e11, 11),
            ("pieces", 1.0, 0),
            ("pieces", 1.0, 10_000_001),
        ] {
            let error = IntegerNoise::summed_discrete_gaussian(variance, pieces).err();
            let found = matches!(error, Some(crate::Error::Accounting { argument, .. }) if argument == named);
            assert!(found, "{variance} {pieces}: {error:?}");
        }
    }
}
