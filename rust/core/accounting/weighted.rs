//! The binomial probabilities that matter.

use super::normal::UNIT;
use super::point_binomial::log_probability;

/// After so many steps of a recurrence the weight is computed anew.
const RESYNCHRONISE: u32 = 256;

/// The relative error of a weight, the recurrence included.
const WEIGHT_ERROR: f64 = 6e-13;

/// Above all probabilities that are no longer numbers.
const UNDERFLOW: f64 = 1e-307;

/// The probabilities of `Bin(n, q)` within a window around the mode, rounded up.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// The first count.
    pub(super) first: u64,
    /// The probabilities of it and of those that follow; none is below the exact one.
    pub(super) weights: Vec<f64>,
    /// A bound of the probability outside.
    pub(super) outside: f64,
}

/// A walk from count to count.
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

impl Window {
    /// The counts of which all others have a probability of about `negligible` on either side.
    pub(super) fn new(trials: u64, rate: f64, negligible: f64) -> Self {
        if trials == 0 || rate <= 0.0 {
            return Self { first: 0, weights: vec![1.0], outside: 0.0 };
        }
        if rate >= 1.0 {
            return Self { first: trials, weights: vec![1.0], outside: 0.0 };
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 0 to n, and any start will do"
        )]
        let mode = (((trials as f64 + 1.0) * rate) as u64).min(trials);
        let mut walk = Walk::new(trials, rate, mode);
        let mut weights = vec![walk.weight];
        let mut outside = 0.0;
        while walk.position > 0 {
            let ratio = walk.ratio_down();
            let rest = walk.beyond(ratio);
            if rest <= negligible {
                outside += rest.max(UNDERFLOW);
                break;
            }
            walk.step(walk.position - 1, ratio);
            weights.push(walk.weight);
        }
        let first = walk.position;
        weights.reverse();
        walk = Walk::new(trials, rate, mode);
        while walk.position < trials {
            let ratio = walk.ratio_up();
            let rest = walk.beyond(ratio);
            if rest <= negligible {
                outside += rest.max(UNDERFLOW);
                break;
            }
            walk.step(walk.position + 1, ratio);
            weights.push(walk.weight);
        }
        let up = 1.0 + WEIGHT_ERROR;
        for weight in &mut weights {
            *weight = (*weight * up).min(1.0);
        }
        Self { first, weights, outside: outside * (1.0 + 2.0 * WEIGHT_ERROR + 64.0 * UNIT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_all_weights_but_the_stated_rest_and_none_too_small() {
        for (trials, rate) in
            [(0, 0.3), (1, 0.5), (30, 0.1), (1000, 0.001), (2000, 0.9), (50, 1.0), (5000, 0.5)]
        {
            for negligible in [1e-3, 1e-20, 1e-290] {
                let window = Window::new(trials, rate, negligible);
                let mut sum = 0.0;
                for (i, weight) in (window.first..).zip(&window.weights) {
                    let exact = match rate {
                        1.0 => 1.0,
                        _ => log_probability(trials, rate, i).exp(),
                    };
                    assert!(*weight >= exact && *weight <= exact * (1.0 + 2e-12), "{trials} {i}");
                    sum += weight;
                }
                assert!(sum + window.outside >= 1.0 - 1e-15, "{trials} {rate} {negligible}");
                assert!(sum <= 1.0 + 2e-12 && window.outside <= 2.1 * negligible.max(UNDERFLOW));
            }
        }
    }
}
