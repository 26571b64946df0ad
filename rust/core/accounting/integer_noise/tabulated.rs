//! Symmetric log-concave noise whose probabilities are in a table.

use super::super::HockeyStick;
use super::super::counts::partition_point;
use super::super::double::Double;
use super::super::normal::UNIT;
use super::LOST;

/// A symmetric log-concave law on the integers.
#[derive(Debug, Clone)]
pub(super) struct Tabulated {
    /// For x from `1 - reach` to `reach`: row i and row `len - 1 - i` belong to x and `1 - x`.
    rows: Vec<Row>,
    /// An upper bound of `Pr[X <= -reach]`, and of what is missing in the table.
    beyond: f64,
    /// A bound of the absolute error of a probability.
    absolute: f64,
    /// A bound of the relative error of a ratio, beyond the absolute errors.
    relative: f64,
    /// No two ratios multiply to `e` to the power of this.
    largest_epsilon: f64,
}

/// What is known of the errors of the masses that a table is made from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Errors {
    /// A bound of the probability that they leave out within their reach.
    pub(super) missing: f64,
    /// A bound of the absolute error of one.
    pub(super) absolute: f64,
    /// A bound of the relative error of one, besides.
    pub(super) relative: f64,
}

/// What is known of the noise X at a value x.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// `Pr[X = x]`.
    mass: f64,
    /// `Pr[X < x]`.
    below: f64,
    /// `sum over y <= x of P(y) - rho(x) P(y - 1)`: the divergence where the ratio of the laws is
    /// `rho(x)`.
    excess: f64,
    /// `rho(x)`.
    ratio: Double,
}

/// The relative error of a ratio: 16 units of 2^-106 in each of as many steps as there are standard
/// deviations (errors shrink by the square of the ratio in a step), twice, and that of e^epsilon.
const RATIO_ERROR: f64 = UNIT * UNIT * 16_777_216.0;

/// The relative error of a divergence: 7 units for differences of ratios, and 16 roundings.
const MARGIN: f64 = 32.0 * UNIT;

/// Terms that cannot make up more than this part of a sum are not computed; their bound is added.
const NEGLIGIBLE: f64 = UNIT / 128.0;

/// So few terms are all computed.
const FEW: usize = 512;

impl Tabulated {
    /// Makes the table from the masses of `0..=reach`, up to a factor, and the ratios `rho(x) =
    /// P(x) / P(x - 1)` of `0..=reach + 1`, the first unused; the reach is at least 1.
    ///
    /// The errors are up to the same factor.
    pub(super) fn new(masses: &[Double], ratios: &[Double], errors: &Errors) -> Self {
        let reach = masses.len() - 1;
        let half = masses[1..].iter().fold(Double::ZERO, |sum, &mass| sum + mass);
        let inverse = Double::ONE / (half * 2.0 + masses[0]);
        let number = |scaled: Double| (scaled * inverse).value();

        // Ratios fall: what is beyond is at most a geometric series.
        let (last, next) = (masses[reach], ratios[reach + 1].value());
        let beyond = last * ((1.0 + 4.0 * UNIT) / (1.0 - next));
        let (mut below, mut excess) = (beyond, beyond + masses[reach - 1]);
        let mut before = None;
        let mut rows = Vec::with_capacity(2 * reach);
        for index in 0..2 * reach {
            // x = index + 1 - reach; rho(1 - k) = 1 / rho(k).
            let (mass, ratio) = if index < reach {
                let k = reach - index;
                (masses[k - 1], Double::ONE / ratios[k])
            } else {
                let k = index + 1 - reach;
                (masses[k], ratios[k])
            };
            if let Some((ratio_before, below_before)) = before {
                excess = excess + (ratio_before - ratio) * below_before;
            }
            rows.push(Row {
                mass: number(mass),
                below: number(below),
                excess: number(excess),
                ratio,
            });
            before = Some((ratio, below));
            below = below + mass;
        }
        let largest_epsilon = 2.0 * libm::log(rows[0].ratio.value()) + 1.0;
        // A divergence is a sum of at most as many masses as there are rows, times a probability.
        let lost = errors.missing + 16.0 * reach as f64 * errors.absolute;
        let beyond = number(beyond) + lost * inverse.value() + LOST;
        let absolute = errors.absolute * inverse.value();
        let relative = RATIO_ERROR + 4.0 * errors.relative;
        Self { rows, beyond, absolute, relative, largest_epsilon }
    }

    /// The divergence for one shifted coordinate.
    pub(super) fn single(&self, epsilon: f64) -> HockeyStick {
        if epsilon > self.largest_epsilon {
            return HockeyStick { delta: self.bound(0.0, 0), ..HockeyStick::NONE };
        }
        let ratio = Double::exp(epsilon);
        let event = self.event(ratio);
        let Some(last) = event.checked_sub(1) else {
            return HockeyStick { delta: self.bound(0.0, 0), ..HockeyStick::NONE };
        };
        let row = &self.rows[last];
        HockeyStick {
            delta: self.bound(row.divergence(ratio, self.error(last)), 1),
            p: row.at_most().min(1.0),
            q: row.below,
        }
    }

    /// The divergence for two coordinates shifted in opposite directions: the sum over x of P(x)
    /// times the divergence of y at `e^epsilon / rho(x)`, and `1 / rho(x)` is `rho(1 - x)`.
    pub(super) fn replace(&self, epsilon: f64) -> HockeyStick {
        if epsilon > self.largest_epsilon {
            return HockeyStick { delta: self.bound(0.0, 0), ..HockeyStick::NONE };
        }
        let ratio = Double::exp(epsilon);
        let (start, stop, rest) = self.relevant(ratio);
        let (mut bound, mut p, mut q) = (Double::from(rest), Double::ZERO, Double::ZERO);
        let mut event = self.event(self.ratio_for(ratio, start));
        for index in start..stop {
            let needed = self.ratio_for(ratio, index);
            while event > 0 && !exceeds(self.rows[event - 1].ratio, needed) {
                event -= 1;
            }
            if event == 0 {
                break;
            }
            let (x, y) = (&self.rows[index], &self.rows[event - 1]);
            let error = self.error(index) + self.error(event - 1);
            bound = bound + x.mass * y.divergence(needed, error);
            p = p + x.mass * y.at_most();
            let mass_before = if index > 0 { self.rows[index - 1].mass } else { 0.0 };
            q = q + mass_before * y.below;
        }
        HockeyStick {
            delta: self.bound(bound.value(), stop - start),
            p: p.value().min(1.0),
            q: q.value(),
        }
    }

    /// What y has to exceed at the x of a row.
    fn ratio_for(&self, ratio: Double, index: usize) -> Double {
        ratio * self.rows[self.rows.len() - 1 - index].ratio
    }

    /// A bound of the relative error of the ratio of a row: the smaller of its masses is that of
    /// the larger of `x` and `1 - x`.
    fn error(&self, index: usize) -> f64 {
        if self.absolute > 0.0 {
            let row = &self.rows[index.max(self.rows.len() - 1 - index)];
            self.relative + 4.0 * self.absolute / row.mass
        } else {
            self.relative
        }
    }

    /// The number of rows whose ratio exceeds what is needed.
    fn event(&self, needed: Double) -> usize {
        self.rows.partition_point(|row| exceeds(row.ratio, needed))
    }

    /// Rounds a divergence up and adds what was lost: x or y at or below `-reach`, and numbers
    /// below the range of `f64`. (If x is above `reach`, then y is below `-reach`.)
    fn bound(&self, divergence: f64, terms: usize) -> f64 {
        let lost = 2.0 * self.beyond + LOST * (terms + 8) as f64;
        (divergence * (1.0 + MARGIN) + lost).min(1.0)
    }

    /// The rows that are to be summed for `replace`, and a bound of the sum over others.
    fn relevant(&self, ratio: Double) -> (usize, usize, f64) {
        let rows = &self.rows;
        if rows.len() <= FEW {
            return (0, rows.len(), 0.0);
        }
        let divergence = |index: usize| {
            let needed = self.ratio_for(ratio, index);
            let error = |last: usize| self.error(index) + self.error(last);
            let row = self.event(needed).checked_sub(1);
            row.map_or(0.0, |last| rows[last].divergence(needed, error(last)))
        };
        // Any one term is at most the sum, and the terms are log-concave up to rounding.
        let largest = (0..rows.len())
            .step_by(rows.len() / 128)
            .map(|index| rows[index].mass * divergence(index))
            .fold(0.0, f64::max);
        let allowed = NEGLIGIBLE * largest;
        // Above x the divergences are smaller; P[X >= x] is P[X < 1 - x].
        let above = |index: usize| rows[rows.len() - 1 - index].below * divergence(index);
        let stop = partition_point(0, rows.len(), |index| above(index) > allowed);
        // There the bound is too large to leave out; at the row before it is not.
        let start = rows[..stop].partition_point(|row| row.below <= allowed).saturating_sub(1);
        let rest = rows[start].below + rows.get(stop).map_or(0.0, |_| above(stop));
        (start, stop, rest)
    }
}

impl Row {
    /// `Pr[X <= x]`.
    fn at_most(&self) -> f64 {
        self.below + self.mass
    }

    /// The divergence at a ratio of the laws that is below this row's, and not below the next
    /// one's; `error` is the relative error of both.
    fn divergence(&self, needed: Double, error: f64) -> f64 {
        // Where rounding makes the row the wrong one, it is by less than the doubt.
        let gap = (self.ratio - needed).value().max(0.0);
        let doubt = needed.value() * error;
        self.excess + (gap * self.below + doubt * self.at_most())
    }
}

/// Whether one pair is above another.
fn exceeds(first: Double, second: Double) -> bool {
    first.high > second.high || (first.high >= second.high && first.low > second.low)
}

#[cfg(test)]
mod tests {
    use super::super::IntegerNoise;
    use super::super::skellam::skellam;
    use super::*;
    use crate::Result;

    #[test]
    fn skipped_terms_are_bounded_and_change_nothing() -> Result<()> {
        for (mean, epsilon) in [(5e3, 0.0), (5e3, 0.05), (5e3, 0.4), (2e6, 0.004)] {
            let skellam = skellam(mean);
            let ratio = Double::exp(epsilon);
            let (start, stop, rest) = skellam.relevant(ratio);
            assert!(stop - start < skellam.rows.len() * 3 / 4, "{mean} {epsilon}");
            let (mut sum, mut skipped) = (Double::ZERO, Double::ZERO);
            for (index, row) in skellam.rows.iter().enumerate() {
                let needed = skellam.ratio_for(ratio, index);
                if let Some(last) = skellam.event(needed).checked_sub(1) {
                    let error = skellam.error(index) + skellam.error(last);
                    let term = row.mass * skellam.rows[last].divergence(needed, error);
                    sum = sum + term;
                    if !(start..stop).contains(&index) {
                        skipped = skipped + term;
                    }
                }
            }
            let ours = IntegerNoise::skellam(mean)?.replace(epsilon).delta;
            assert!(skipped.value() <= rest && rest < 1e-17 * ours, "{mean} {epsilon}");
            assert!((ours / sum.value() - 1.0).abs() < 40.0 * UNIT, "{mean} {epsilon}");
        }
        Ok(())
    }
}
