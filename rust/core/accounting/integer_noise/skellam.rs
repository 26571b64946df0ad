//! Skellam noise: the difference of two Poisson counts.

use super::super::HockeyStick;
use super::super::counts::partition_point;
use super::super::double::Double;
use super::super::normal::UNIT;
use super::LOST;

/// Skellam noise: the table of its law.
#[derive(Debug, Clone)]
pub(super) struct Skellam {
    /// For x from `1 - reach` to `reach`: row i and row `len - 1 - i` belong to x and `1 - x`.
    rows: Vec<Row>,
    /// An upper bound of `Pr[X <= -reach]`.
    beyond: f64,
    /// No two ratios multiply to `e` to the power of this.
    largest_epsilon: f64,
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

/// The largest reach of a table of Skellam noise: 168 MB.
const LARGEST_REACH: usize = 1 << 21;

/// The table ends where tails are below e to the power of minus this.
const LARGEST_EXPONENT: f64 = 760.0;

/// Probabilities of Skellam noise are computed with the largest at 2^960, so that they keep 106
/// bits.
const LARGEST_ENTRY: i32 = 960;

/// The relative error of a ratio: 16 units of 2^-106 in each of as many steps as there are standard
/// deviations (errors shrink by the square of the ratio in a step), twice, and that of e^epsilon.
const RATIO_ERROR: f64 = UNIT * UNIT * 16_777_216.0;

/// The relative error of a divergence: 7 units for differences of ratios, and 16 roundings.
const MARGIN: f64 = 32.0 * UNIT;

/// Terms that cannot make up more than this part of a sum are not computed; their bound is added.
const NEGLIGIBLE: f64 = UNIT / 128.0;

/// So few terms are all computed.
const FEW: usize = 512;

impl Skellam {
    pub(super) fn new(mean: f64) -> Self {
        // Chernoff: P[X >= k] <= e^-(t k - 2 mu (cosh t - 1)) at sinh t = k / (2 mu).
        let exponent = |k: f64| {
            let square = libm::hypot(k, 2.0 * mean);
            k * libm::asinh(0.5 * k / mean) - k * (k / (square + 2.0 * mean))
        };
        let reach = partition_point(1, LARGEST_REACH, |k| exponent(k as f64) < LARGEST_EXPONENT);
        let ratios = ratios(mean, reach);

        // Masses of 0 to reach, scaled.
        let mut masses = vec![Double::from(libm::ldexp(1.0, LARGEST_ENTRY))];
        let mut total = Double::ZERO;
        for &ratio in &ratios[1..=reach] {
            let mass = masses[masses.len() - 1] * ratio;
            total = total + mass;
            masses.push(mass);
        }
        let inverse = Double::ONE / (total * 2.0 + masses[0]);
        let number = |scaled: Double| (scaled * inverse).value();

        // Ratios fall: what is beyond is at most a geometric series.
        let (last, next) = (masses[reach], ratios[reach + 1].value());
        let beyond = last * ((1.0 + 4.0 * UNIT) / (1.0 - next));
        let inverse_mean = Double::ONE / Double::from(mean);
        let (mut below, mut excess) = (beyond, beyond + masses[reach - 1]);
        let mut before = None;
        let mut rows = Vec::with_capacity(2 * reach);
        for index in 0..2 * reach {
            // x = index + 1 - reach; rho(1 - k) = 1 / rho(k) = k / mu + rho(k + 1).
            let (mass, ratio) = if index < reach {
                let k = reach - index;
                (masses[k - 1], inverse_mean * k as f64 + ratios[k + 1])
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
        Self { rows, beyond: number(beyond) + LOST, largest_epsilon }
    }

    /// The divergence for one shifted coordinate.
    pub(super) fn single(&self, epsilon: f64) -> HockeyStick {
        if epsilon > self.largest_epsilon {
            return HockeyStick { delta: self.bound(0.0, 0), ..HockeyStick::NONE };
        }
        let ratio = Double::exp(epsilon);
        let event = self.event(ratio);
        let Some(row) = event.checked_sub(1).map(|last| &self.rows[last]) else {
            return HockeyStick { delta: self.bound(0.0, 0), ..HockeyStick::NONE };
        };
        HockeyStick {
            delta: self.bound(row.divergence(ratio), 1),
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
            bound = bound + x.mass * y.divergence(needed);
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
            self.event(needed).checked_sub(1).map_or(0.0, |last| rows[last].divergence(needed))
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
    /// one's.
    fn divergence(&self, needed: Double) -> f64 {
        // Where rounding makes the row the wrong one, it is by less than the doubt.
        let gap = (self.ratio - needed).value().max(0.0);
        let doubt = needed.value() * RATIO_ERROR;
        self.excess + (gap * self.below + doubt * self.at_most())
    }
}

/// Whether one pair is above another.
fn exceeds(first: Double, second: Double) -> bool {
    first.high > second.high || (first.high >= second.high && first.low > second.low)
}

/// `rho(0..=reach + 1)` of Skellam noise, the first entry unused.
///
/// `1 / rho(k) = k / mu + rho(k + 1)` downwards; what it starts from is damped by `rho(k)^2` in
/// each step, by 2^-170 in all before the first ratio that is kept.
fn ratios(mean: f64, reach: usize) -> Vec<Double> {
    let inverse_mean = Double::ONE / Double::from(mean);
    let slope = libm::asinh(0.5 * reach as f64 / mean);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to 1e6")]
    let before = (60.0 / slope) as usize + 2;
    let mut ratio = Double::from(libm::exp(-slope));
    let mut kept = Vec::new();
    for k in (1..=reach + 1 + before).rev() {
        ratio = Double::ONE / (inverse_mean * k as f64 + ratio);
        if k <= reach + 1 {
            kept.push(ratio);
        }
    }
    kept.push(Double::ONE);
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::super::IntegerNoise;
    use super::*;
    use crate::Result;

    #[test]
    fn wide_skellams_agree_with_sixty_digits() -> Result<()> {
        // P[X >= k - 1] - e^epsilon P[X >= k] from a recurrence at sixty digits; and the double sum
        // over x and y in extended precision.
        let singles = [
            (5e3, 0.01, 0.000_837_334_397_298_705_8),
            (5e3, 0.1, 6.914_974_144_641_449e-27),
            (5e3, 0.3, 7.084_819_429_708_283e-206),
            (5e7, 1e-4, 8.331_963_650_007_827e-6),
            (5e7, 1e-3, 7.478_203_512_109_537e-29),
        ];
        for (mean, epsilon, exact) in singles {
            let above = IntegerNoise::skellam(mean)?.single(epsilon).delta / exact - 1.0;
            assert!((-UNIT..40.0 * UNIT).contains(&above), "{mean} {epsilon}: {above}");
        }
        let noise = IntegerNoise::skellam(5e3)?;
        for (epsilon, exact) in [
            (0.01, 0.002_006_386_689_789_155),
            (0.1, 1.532_372_505_677_928_4e-15),
            (0.3, 7.786_716_792_977_715e-104),
        ] {
            let above = noise.replace(epsilon).delta / exact - 1.0;
            assert!((-1e-15..50.0 * UNIT).contains(&above), "{epsilon}: {above}");
        }
        Ok(())
    }

    #[test]
    fn skipped_terms_are_bounded_and_change_nothing() -> Result<()> {
        for (mean, epsilon) in [(5e3, 0.0), (5e3, 0.05), (5e3, 0.4), (2e6, 0.004)] {
            let skellam = Skellam::new(mean);
            let ratio = Double::exp(epsilon);
            let (start, stop, rest) = skellam.relevant(ratio);
            assert!(stop - start < skellam.rows.len() * 3 / 4, "{mean} {epsilon}");
            let (mut sum, mut skipped) = (Double::ZERO, Double::ZERO);
            for (index, row) in skellam.rows.iter().enumerate() {
                let needed = skellam.ratio_for(ratio, index);
                if let Some(last) = skellam.event(needed).checked_sub(1) {
                    let term = row.mass * skellam.rows[last].divergence(needed);
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

    #[test]
    fn ratios_do_not_depend_on_where_the_recurrence_starts() {
        for (mean, reach) in [(1e-3, 4), (1.0, 12), (40.0, 100), (3e4, 500)] {
            let (short, long) = (ratios(mean, reach), ratios(mean, 4 * reach));
            assert_eq!(short.len(), reach + 2);
            for (k, (&ours, &other)) in short.iter().zip(&long).enumerate() {
                let difference = (ours - other).value().abs();
                assert!(difference <= 1e-30 * other.value(), "{mean} {k}: {difference}");
            }
        }
    }
}
