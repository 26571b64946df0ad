//! A sampled count of one user more, mixed with the count without that user.

use super::super::HockeyStick;
use super::super::double::Double;
use super::super::normal::UNIT;
use super::{Above, CountSampling, LARGEST_EPSILON, Sums, THRESHOLD_ERROR, at_most};

/// The measure `w1 B(+1) + w0 B` on a count with the law `B = Bin(m, q)`.
///
/// With `N = m + 1` and I the number of N that are not kept, `I ~ Bin(N, s)` with `s = 1 - q`, the
/// law B is `i / (N s)` times that of I, and `B(+1)` is `(N - i) / (N q)` times. So the mixture is
/// `c - d i` times the law of I, with `c = w1 / q` and `d = (w1 / q - w0 / s) / N`, and everything
/// is a sum over the table of [`CountSampling`]. It must hold that `d >= 0` and `w0 / s >= 1`; then
/// so is `c - d i` for every i up to N.
#[derive(Debug, Clone)]
pub(super) struct Mixture {
    pub(super) counts: CountSampling,
    pub(super) constant: Double,
    pub(super) slope: Double,
}

/// What is known of I below a threshold T.
struct Below {
    /// An upper bound of `E[(T - I)_+]`, but for a few roundings.
    shortfall: f64,
    /// `E[I; I < T]`.
    part: f64,
    /// `Pr[I < T]`.
    probability: f64,
}

/// A bound of the relative error of a divergence: that of [`CountSampling`] and a few products.
const MARGIN: f64 = 32.0 * UNIT;

impl Mixture {
    /// Both counts of a user who moves: the mixture on the first and B on the second, against the
    /// same with the counts exchanged.
    ///
    /// `E[(J g(I) - a I g(J))_+] / (N s)` with `g(i) = c - d i`, and that is
    /// `E[f(I) (J - a c I / f(I))_+] / (N s)` with `f(i) = c + (a - 1) d i`. The part for an i falls
    /// in i.
    pub(super) fn moved(&self, epsilon: f64) -> HockeyStick {
        if let Some(limit) = self.limit(self.constant.value()) {
            return limit;
        }
        let counts = &self.counts;
        let (ratio, error) = power(epsilon);
        let rise = (ratio + -1.0) * self.slope;
        let scaled = ratio * self.constant;
        let factor = |i: f64| self.constant + rise * i;
        let above = |i: f64| counts.above(scaled * i / factor(i), error);
        let part = |index: usize| {
            let i = counts.first + index as f64;
            factor(i).value() * above(i).excess
        };
        let mut sums = Sums { bound: Double::ZERO, p: Double::ZERO, q: Double::ZERO, terms: 8 };
        let last = counts.last();
        let stop = (self.constant * last / (scaled - rise * last)).value() - counts.first + 2.0;
        let most = self.constant.value() * counts.mean.value();
        let (start, stop) = counts.relevant(stop, most, part, &mut sums);
        sums.terms += stop - start;
        for index in start..stop {
            let (i, mass) = (counts.first + index as f64, counts.table[index].mass);
            let Above { excess, part, probability } = above(i);
            sums.bound = sums.bound + mass * (factor(i).value() * excess);
            sums.p = sums.p + mass * part * self.weight(i);
            let gap = self.constant.value() * probability - self.slope.value() * part;
            sums.q = sums.q + mass * i * gap.max(0.0);
        }
        let mean = counts.mean.value();
        HockeyStick {
            delta: self.bound(sums.bound.value() / mean, ratio, sums.terms),
            p: sums.p.value() / mean,
            q: sums.q.value() / mean,
        }
    }

    /// The mixture against `z B`: `E[(c - (d + a z / (N s)) I)_+]`.
    pub(super) fn against(&self, z: Double, epsilon: f64) -> HockeyStick {
        if let Some(limit) = self.limit(self.constant.value()) {
            return limit;
        }
        let (ratio, error) = power(epsilon);
        let other = z / self.counts.mean;
        let slope = self.slope + ratio * other;
        let below = self.counts.below(self.constant / slope, error);
        HockeyStick {
            delta: self.bound(slope.value() * below.shortfall, ratio, 8),
            p: (self.constant.value() * below.probability - self.slope.value() * below.part)
                .max(0.0),
            q: other.value() * below.part,
        }
    }

    /// `z B` against the mixture: `E[((z / (N s) + a d) I - a c)_+]`.
    pub(super) fn from(&self, z: Double, epsilon: f64) -> HockeyStick {
        if let Some(limit) = self.limit(z.value()) {
            return limit;
        }
        let (ratio, error) = power(epsilon);
        let other = z / self.counts.mean;
        let slope = other + ratio * self.slope;
        let threshold = ratio * self.constant / slope;
        if threshold.value() > self.counts.size as f64 * (1.0 + 4.0 * UNIT) {
            return HockeyStick::NONE;
        }
        let above = self.counts.above(threshold, error);
        HockeyStick {
            delta: self.bound(slope.value() * above.excess, ratio, 8),
            p: other.value() * above.part,
            q: (self.constant.value() * above.probability - self.slope.value() * above.part)
                .max(0.0),
        }
    }

    /// `c - d i`.
    fn weight(&self, i: f64) -> f64 {
        (self.constant - self.slope * i).value()
    }

    /// The divergence where everybody is kept, and so all of a first measure is told from the
    /// second, or nobody.
    fn limit(&self, first: f64) -> Option<HockeyStick> {
        self.counts.degenerate().map(|limit| {
            let all = limit.p * first;
            HockeyStick { delta: all * (1.0 + MARGIN), p: all, q: 0.0 }
        })
    }

    /// Rounds a divergence up; numbers below the range of `f64` may have been lost in every term.
    fn bound(&self, divergence: f64, ratio: Double, terms: usize) -> f64 {
        let lost = terms as f64 * f64::from_bits(1);
        let inverse = 1.0 + 1.0 / self.counts.mean.value();
        divergence * (1.0 + MARGIN) + lost * inverse * (self.constant.value() + ratio.value())
    }
}

impl CountSampling {
    /// What is known of I below a threshold of at most N that has this relative error.
    fn below(&self, threshold: Double, error: f64) -> Below {
        let (k, rest) = threshold.split_integer();
        let doubt = threshold.value() * error;
        if k > self.last() {
            // All of the mass, and what the table leaves out is nothing.
            let gap = (threshold - self.mean).value();
            let mean = self.mean.value();
            return Below { shortfall: gap + doubt, part: mean, probability: 1.0 };
        }
        let row = self.row(k);
        // At an integer threshold the outcome itself is not below, and has no part in the sum.
        let at_threshold = if rest > 0.0 { row.mass } else { 0.0 };
        let part = k.mul_add(row.below, -row.shortfall).max(0.0) + k * at_threshold;
        Below {
            shortfall: row.shortfall + (rest + doubt) * at_most(&row),
            part,
            probability: (row.below + at_threshold).min(1.0),
        }
    }
}

/// `e^epsilon`, as far as it matters, and its relative error; that of 1 is not 0, as thresholds
/// are quotients.
fn power(epsilon: f64) -> (Double, f64) {
    (Double::exp(epsilon.min(LARGEST_EPSILON)), 2.0 * THRESHOLD_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Result;

    /// Delta by its definition, over all pairs of outcomes of the table: moved, against, from.
    fn by_definition(mixture: &Mixture, z: f64, ratio: f64) -> [f64; 3] {
        let counts = &mixture.counts;
        let mean = counts.mean.value();
        let rows: Vec<(f64, f64, f64)> = counts
            .table
            .iter()
            .zip(0_u32..)
            .map(|(row, index)| {
                let i = counts.first + f64::from(index);
                (row.mass, i / mean, mixture.weight(i))
            })
            .collect();
        let mut sums = [0.0; 3];
        for &(mass, plain, mixed) in &rows {
            sums[1] += mass * (mixed - ratio * z * plain).max(0.0);
            sums[2] += mass * (z * plain - ratio * mixed).max(0.0);
            for &(other, plain_other, mixed_other) in &rows {
                let gap = mixed * plain_other - ratio * plain * mixed_other;
                sums[0] += mass * other * gap.max(0.0);
            }
        }
        sums
    }

    #[test]
    fn divergences_are_those_of_all_pairs_of_outcomes() -> Result<()> {
        for (rate, dummies, weight, z) in [
            (0.4, 12, 1.8, 0.8),
            (0.3, 2_000, 1.5, 0.9),
            (0.7, 2_500, 1.01, 1.0),
            (0.5, 999, 1.0, 0.5),
        ] {
            let counts = CountSampling::new(rate, dummies)?;
            let slope = Double::sum(weight, -1.0) / counts.size as f64;
            let mixture = Mixture { counts, constant: Double::from(weight), slope };
            for epsilon in [0.0, 0.02, 0.1, 0.3, 0.8] {
                let z = Double::from(z);
                let exact = by_definition(&mixture, z.value(), libm::exp(epsilon));
                let ours =
                    [mixture.moved(epsilon), mixture.against(z, epsilon), mixture.from(z, epsilon)];
                for (ours, exact) in ours.iter().zip(exact) {
                    let context = format!("{rate} {dummies} {epsilon}: {ours:?} {exact}");
                    assert!(ours.delta >= exact * (1.0 - 1e-11) - 1e-16, "{context}");
                    assert!(ours.delta <= exact * (1.0 + 1e-11) + 1e-16, "{context}");
                }
            }
        }
        Ok(())
    }
}
