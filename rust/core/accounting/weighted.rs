//! Binomially weighted sums of a function that rises towards a limit.

use super::normal::UNIT;
use super::point_binomial::log_probability;

/// A term: an upper bound that the sum rounds up, and two masses that it rounds to the nearest.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Term {
    pub(super) bound: f64,
    pub(super) p: f64,
    pub(super) q: f64,
}

impl Term {
    fn add(&mut self, weight: f64, term: &Self) {
        self.bound += weight * term.bound;
        self.p += weight * term.p;
        self.q += weight * term.q;
    }
}

/// What a sum leaves out is below this part of it, and is added.
const NEGLIGIBLE: f64 = UNIT / 2.0;

/// After so many steps of a recurrence the weight is computed anew.
const RESYNCHRONISE: u32 = 256;

/// The relative error of a weight, the recurrence included.
const WEIGHT_ERROR: f64 = 6e-13;

/// The binomial weights of `n` trials with success rate `q`, walked along from a start.
struct Walk {
    trials: u64,
    rate: f64,
    position: u64,
    weight: f64,
    steps: u32,
}

impl Walk {
    fn new(trials: u64, rate: f64, position: u64) -> Self {
        let weight = log_probability(trials, rate, position).exp();
        Self { trials, rate, position, weight, steps: 0 }
    }

    /// The weight above over the weight here; it falls as the position rises.
    fn ratio_up(&self) -> f64 {
        let odds = self.rate / (1.0 - self.rate);
        (self.trials - self.position) as f64 / (self.position as f64 + 1.0) * odds
    }

    /// The weight below over the weight here; it falls as the position falls.
    fn ratio_down(&self) -> f64 {
        let odds = (1.0 - self.rate) / self.rate;
        self.position as f64 / ((self.trials - self.position) as f64 + 1.0) * odds
    }

    fn step(&mut self, position: u64, ratio: f64) {
        self.position = position;
        self.steps += 1;
        if self.steps.is_multiple_of(RESYNCHRONISE) {
            self.weight = log_probability(self.trials, self.rate, position).exp();
        } else {
            self.weight *= ratio;
        }
    }

    /// A bound of all the weights beyond this one, if they fall at least as fast as `ratio`.
    fn beyond(&self, ratio: f64) -> f64 {
        if ratio < 1.0 { self.weight * ratio / (1.0 - ratio) } else { f64::INFINITY }
    }
}

/// `sum_i Bin(n, q)(i) f(i)` for an f that rises in i and equals `limit` from `saturation` on.
///
/// Terms that cannot matter are not computed: their weight, times the largest f they can have, is
/// added. So the bound of the result is one, relatively tight however small the sum is.
pub(super) fn weighted_sum(
    trials: u64,
    rate: f64,
    saturation: u64,
    limit: &Term,
    term: impl Fn(u64) -> Term,
) -> Term {
    if saturation == 0 {
        return *limit;
    }
    let value = |i: u64| if i >= saturation { *limit } else { term(i) };
    if trials == 0 || rate <= 0.0 {
        return value(0);
    }
    if rate >= 1.0 {
        return value(trials);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number from 0 to n, and any start will do"
    )]
    let mode = (((trials as f64 + 1.0) * rate) as u64).min(trials);
    let start = mode.min(saturation - 1);
    let mut sum = Term::default();

    let mut walk = Walk::new(trials, rate, start);
    let mut mass = 0.0;
    loop {
        let here = value(walk.position);
        sum.add(walk.weight, &here);
        mass += walk.weight;
        let ratio = walk.ratio_down();
        let rest = walk.beyond(ratio);
        if walk.position == 0 {
            break;
        }
        if rest * here.bound <= NEGLIGIBLE * sum.bound && rest <= NEGLIGIBLE {
            sum.bound += rest * here.bound;
            break;
        }
        walk.step(walk.position - 1, ratio);
    }
    if start < mode {
        // At least half of the weight is above the start: no cancellation.
        sum.add(1.0 - mass * (1.0 - WEIGHT_ERROR), limit);
    } else {
        walk = Walk::new(trials, rate, start);
        while walk.position < trials {
            let ratio = walk.ratio_up();
            let rest = walk.beyond(ratio);
            if rest * limit.bound <= NEGLIGIBLE * sum.bound {
                sum.bound += rest * limit.bound;
                break;
            }
            walk.step(walk.position + 1, ratio);
            sum.add(walk.weight, &value(walk.position));
        }
    }
    sum.bound *= 1.0 + 2.0 * WEIGHT_ERROR;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(scale: f64) -> impl Fn(u64) -> Term {
        move |i| {
            let bound = 1.0 - (-scale * (i as f64 + 1.0)).exp();
            Term { bound, p: bound, q: 0.5 * bound }
        }
    }

    #[test]
    fn every_way_to_leave_terms_out_gives_the_whole_sum() {
        let limit = Term { bound: 1.0, p: 1.0, q: 0.5 };
        for (trials, rate) in [(0, 0.3), (1, 0.5), (30, 0.1), (1000, 0.001), (2000, 0.9), (50, 1.0)]
        {
            for scale in [1e-9, 1e-3, 1.0] {
                let term = rising(scale);
                // From so far on the function is its limit, to within rounding.
                let saturation = (40.0 / scale).ceil().min(1e18);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "small"
                )]
                let sum = weighted_sum(trials, rate, saturation as u64, &limit, &term);
                let direct: f64 = (0..=trials)
                    .map(|i| {
                        let weight = match rate {
                            1.0 => f64::from(u8::from(i == trials)),
                            _ => log_probability(trials, rate, i).exp(),
                        };
                        weight * term(i).bound
                    })
                    .sum();
                assert!(sum.bound >= direct * (1.0 - 1e-13), "{trials} {rate} {scale}");
                assert!(sum.bound <= direct * (1.0 + 2e-12), "{trials} {rate} {scale}");
                assert!((sum.p / direct - 1.0).abs() < 2e-12);
                assert!((sum.q / direct - 0.5).abs() < 2e-12);
            }
        }
    }
}
