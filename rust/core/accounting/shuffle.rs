//! Shuffled reports of a pure local randomizer.

use super::normal::UNIT;
use super::point_binomial::log_probability;
use super::{HockeyStick, rate};
use crate::{Error, Result};

/// So many values of the number of clones are worked through by recurrences from an exact start.
const BLOCK: u64 = 1024;

/// The relative error of a weight and of a tail, recurrences over a block included.
const RELATIVE_ERROR: f64 = 2e-12;

/// What is left out is below this part of the sum, and is added.
const NEGLIGIBLE: f64 = UNIT / 4.0;

/// Reports of n nodes in an order that says nothing of who sent them, one node's answer replaced.
///
/// By the variation-ratio reduction, the reports are a post-processing of two counts: `C ~ Bin(n - 1,
/// 2 r)` other nodes send what could stand for either of the two answers, `A ~ Bin(C, 1/2)` of them
/// for the first, and the node itself adds one to the first count with probability `own`, to the
/// second with probability `other`, and to neither else; with the other answer `own` and `other`
/// change places. So the divergence of the two pairs of counts bounds that of the reports. For direct
/// encoding with three or more answers it is attained, by other nodes that all hold a third answer.
///
/// Wang, Peng, Li, Xu, Wu, Yang, "Privacy Amplification via Shuffling: Unified, Simplified, and
/// Tightened" (2024); Feldman, `McMillan`, Talwar, "Stronger Privacy Amplification by Shuffling for
/// Renyi and Approximate Differential Privacy" (2023). Here the sum over A is done in closed form:
/// with `x_c` the distance of the threshold from c/2, each c gives `Pr[C = c - 1]` times
/// `b/2 - (2 x_c / c) T`, b a binomial probability and T a binomial tail, without cancellation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shuffle {
    nodes: u64,
    own: f64,
    other: f64,
    gap: f64,
    common: f64,
}

/// The state of the recurrences at c and its threshold k.
struct Tails {
    c: u64,
    k: u64,
    /// `Pr[Bin(c - 1, 1/2) = k - 1]`.
    point: f64,
    /// `Pr[Bin(c, 1/2) >= k]`.
    tail: f64,
}

impl Tails {
    fn new(c: u64, k: u64) -> Self {
        if k > c {
            return Self { c, k, point: 0.0, tail: 0.0 };
        }
        Self { c, k, point: log_probability(c - 1, 0.5, k - 1).exp(), tail: half_tail(c, k) }
    }

    /// Moves to c + 1, with the threshold at `k`.
    fn advance(&mut self, k: u64) {
        if self.k > self.c || k > self.c + 1 {
            // Nothing to start a recurrence from.
            *self = Self::new(self.c + 1, k);
            return;
        }
        self.point *= self.c as f64 / (2.0 * (self.c - self.k + 1) as f64);
        self.c += 1;
        self.tail += 0.5 * self.point;
        let c = self.c as f64;
        while self.k < k {
            let threshold = self.k as f64;
            self.tail = (self.tail - self.point * c / (2.0 * threshold)).max(0.0);
            self.point *= (c - threshold) / threshold;
            self.k += 1;
        }
        while self.k > k {
            let threshold = self.k as f64;
            self.point *= (threshold - 1.0) / (c - threshold + 1.0);
            self.k -= 1;
            self.tail += self.point * c / (2.0 * (threshold - 1.0));
        }
    }
}

/// `Pr[Bin(c, 1/2) >= k]` for k above c/2: the terms fall from k on.
fn half_tail(c: u64, k: u64) -> f64 {
    let mut term = log_probability(c, 0.5, k).exp();
    let mut sum = term;
    let mut position = k;
    while position < c {
        let ratio = (c - position) as f64 / (position + 1) as f64;
        term *= ratio;
        position += 1;
        sum += term;
        // Subnormal terms would not fall any more.
        if ratio < 1.0 && term * ratio <= (NEGLIGIBLE * (1.0 - ratio) * sum).max(1e-305) {
            break;
        }
    }
    sum
}

/// Nothing below this is looked for; it is added.
const LEAST: f64 = 1e-300;

#[derive(Default)]
struct Sums {
    bound: f64,
    p: f64,
    q: f64,
}

impl Shuffle {
    /// The largest number of nodes.
    pub const LARGEST: u64 = 10_000_000_000;

    /// Checks the parameters: the number of nodes, the three probabilities `own`, `other` and
    /// `common` (r), and `gap = own - other` without its cancellation.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if there is no node or there are more than [`Shuffle::LARGEST`], a
    /// probability is not in [0, 1], `own + other` or `2 common` is above 1, or `gap` is not above 0.
    pub fn new(nodes: u64, own: f64, other: f64, gap: f64, common: f64) -> Result<Self> {
        if nodes == 0 || nodes > Self::LARGEST {
            let expected = "from 1 to 10^10";
            return Err(Error::Accounting { argument: "nodes", value: nodes as f64, expected });
        }
        rate("own", own)?;
        rate("other", other)?;
        if own + other > 1.0 + 4.0 * UNIT {
            let expected = "at most 1 - other";
            return Err(Error::Accounting { argument: "own", value: own, expected });
        }
        if gap.is_nan() || gap <= 0.0 || gap > 1.0 {
            let expected = "a probability above 0";
            return Err(Error::Accounting { argument: "gap", value: gap, expected });
        }
        if !(0.0..=0.5).contains(&common) {
            let expected = "in [0, 1/2]";
            return Err(Error::Accounting { argument: "common", value: common, expected });
        }
        Ok(Self { nodes, own, other, gap, common })
    }

    /// The divergence at a finite epsilon of at least 0; both directions are the same.
    #[must_use]
    pub fn replace(&self, epsilon: f64) -> HockeyStick {
        if epsilon.exp() * self.other >= self.own * (1.0 + 8.0 * UNIT) {
            return HockeyStick::NONE;
        }
        let others = self.nodes - 1;
        let blanket = 2.0 * self.common;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 0 to n; any start will do"
        )]
        let mode = ((self.nodes as f64 * blanket) as u64).min(others);
        let mut sums = Sums::default();
        // c - 1 is the number of clones: blocks [start, stop) of c - 1 in both directions.
        let mut stop = mode + 1;
        while stop > 0 {
            let start = stop.saturating_sub(BLOCK);
            self.block(epsilon, start, stop, &mut sums);
            let rest = self.below(start);
            if rest <= (NEGLIGIBLE * sums.bound).max(LEAST) {
                sums.bound += rest;
                break;
            }
            stop = start;
        }
        let mut start = mode + 1;
        while start <= others {
            let rest = self.above(start);
            if rest <= (NEGLIGIBLE * sums.bound).max(LEAST) {
                sums.bound += rest;
                break;
            }
            let stop = (start + BLOCK).min(others + 1);
            self.block(epsilon, start, stop, &mut sums);
            start = stop;
        }
        let scale = self.gap * (1.0 + epsilon.exp()) * (1.0 + 16.0 * UNIT);
        let delta = (sums.bound * scale + LEAST).min(self.gap * (1.0 + 4.0 * UNIT));
        HockeyStick { delta, p: sums.p.min(1.0), q: sums.q.min(1.0) }
    }

    /// Adds the terms with `c - 1` in `[start, stop)`.
    fn block(&self, epsilon: f64, start: u64, stop: u64, sums: &mut Sums) {
        let (others, blanket) = (self.nodes - 1, 2.0 * self.common);
        let neither = (1.0 - self.own - self.other).max(0.0);
        let odds = blanket / (1.0 - blanket);
        let slope = (0.5 * epsilon).tanh() / self.gap;
        let distance = |c: u64| {
            let left = (self.nodes - c) as f64;
            let missing =
                if neither > 0.0 && left > 0.0 { 0.5 * neither * odds * left } else { 0.0 };
            slope * (0.5 * (self.own + self.other)).mul_add(c as f64, missing)
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "above 0, and saturation above c means that no outcome counts"
        )]
        let threshold = |c: u64| ((0.5 * c as f64 + distance(c)).ceil() as u64).max(1);
        let mut weight = probability(others, blanket, start);
        let mut tails = Tails::new(start + 1, threshold(start + 1));
        for clones in start..stop {
            let c = clones + 1;
            let gain = 0.5 * tails.point;
            let loss = 2.0 * distance(c) / c as f64 * tails.tail;
            let drift = 3.0 * UNIT * (clones as f64 - others as f64 * blanket).abs();
            let error = (gain + loss) * (RELATIVE_ERROR + drift);
            sums.bound += weight * ((gain - loss).max(0.0) + error);
            let left = (self.nodes - c) as f64;
            let next = weight * left / c as f64 * odds;
            let both = weight * (self.own + self.other) * tails.tail;
            let none = if neither > 0.0 && left > 0.0 { neither * next * tails.tail } else { 0.0 };
            sums.p += both + none + weight * self.gap * gain;
            sums.q += both + none - weight * self.gap * gain;
            if clones + 1 < stop {
                weight = next;
                tails.advance(threshold(c + 1));
            }
        }
    }

    /// A bound of `Pr[C < start]`, for a start at most about the mode.
    fn below(&self, start: u64) -> f64 {
        let (others, blanket) = (self.nodes - 1, 2.0 * self.common);
        if start == 0 {
            return 0.0;
        }
        let here = probability(others, blanket, start);
        let ratio = start as f64 * (1.0 - blanket) / ((others - start + 1) as f64 * blanket);
        if ratio < 1.0 { here * ratio / (1.0 - ratio) * 1.01 } else { 1.0 }
    }

    /// A bound of `Pr[C >= start]`, for a start above the mode.
    fn above(&self, start: u64) -> f64 {
        let (others, blanket) = (self.nodes - 1, 2.0 * self.common);
        let here = probability(others, blanket, start);
        let ratio = (others - start) as f64 * blanket / ((start + 1) as f64 * (1.0 - blanket));
        if ratio < 1.0 { here / (1.0 - ratio) * 1.01 } else { 1.0 }
    }
}

/// `Pr[Bin(n, p) = k]`.
fn probability(n: u64, p: f64, k: u64) -> f64 {
    if p <= 0.0 {
        return if k == 0 { 1.0 } else { 0.0 };
    }
    if p >= 1.0 {
        return if k == n { 1.0 } else { 0.0 };
    }
    log_probability(n, p, k).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The divergence of the two pairs of counts, term by term.
    fn by_double_sum(nodes: u64, own: f64, other: f64, common: f64, epsilon: f64) -> f64 {
        let others = nodes - 1;
        let neither = 1.0 - own - other;
        let count = |a: i64, b: i64| -> f64 {
            let (Ok(a), Ok(b)) = (u64::try_from(a), u64::try_from(b)) else { return 0.0 };
            if a + b > others {
                return 0.0;
            }
            probability(others, 2.0 * common, a + b) * probability(a + b, 0.5, a)
        };
        let last = i64::try_from(nodes).unwrap_or(0);
        let mut total = 0.0;
        for a in 0..=last {
            for b in 0..=last - a {
                let (first, second, rest) = (count(a - 1, b), count(a, b - 1), count(a, b));
                let p = own * first + other * second + neither * rest;
                let q = other * first + own * second + neither * rest;
                total += (p - epsilon.exp() * q).max(0.0);
            }
        }
        total
    }

    fn direct_encoding(epsilon: f64, answers: f64) -> (f64, f64) {
        let total = epsilon.exp() + answers - 1.0;
        (epsilon.exp() / total, 1.0 / total)
    }

    #[test]
    fn the_closed_form_is_the_double_sum() -> Result<()> {
        for nodes in [1, 2, 3, 10, 60, 300] {
            for (local, answers) in [(0.5, 2.0), (1.0, 3.0), (2.0, 10.0), (5.0, 4.0)] {
                for rate in [1.0, 0.3] {
                    let (own, other) = direct_encoding(local, answers);
                    let (own, other) = (own * rate, other * rate);
                    let shuffle = Shuffle::new(nodes, own, other, own - other, other)?;
                    for epsilon in [0.0, 0.01, 0.1, 0.5, 1.0, 1.9] {
                        let bound = shuffle.replace(epsilon).delta;
                        let exact = by_double_sum(nodes, own, other, other, epsilon);
                        let label = format!("{nodes} {local} {answers} {rate} {epsilon}");
                        assert!(bound >= exact * (1.0 - 1e-11) - 1e-15, "{label}: {bound} {exact}");
                        assert!(bound <= exact * (1.0 + 1e-9) + 3e-12, "{label}: {bound} {exact}");
                    }
                    assert!(shuffle.replace(local + 1e-9).delta == 0.0);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn delta_falls_with_epsilon_and_with_the_number_of_nodes() -> Result<()> {
        let (own, other) = direct_encoding(1.5, 5.0);
        let mut last = f64::INFINITY;
        for nodes in [1, 10, 1000, 100_000, 10_000_000, 1_000_000_000] {
            let shuffle = Shuffle::new(nodes, own, other, own - other, other)?;
            let at = |epsilon: f64| shuffle.replace(epsilon).delta;
            assert!(at(0.0) < last && at(1e-3) < at(0.0) && at(2e-3) <= at(1e-3), "{nodes}");
            last = at(0.0);
        }
        Ok(())
    }

    #[test]
    fn blocks_and_recurrences_agree_with_exact_starts() {
        let mut tails = Tails::new(1000, 530);
        for c in 1001..3000_u64 {
            let k = c / 2 + 30 + c % 7;
            tails.advance(k);
            let fresh = Tails::new(c, k);
            assert!((tails.tail / fresh.tail - 1.0).abs() < 1e-11, "{c}");
            assert!((tails.point / fresh.point - 1.0).abs() < 1e-11, "{c}");
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        for (nodes, own, other, gap, common) in [
            (0, 0.5, 0.2, 0.3, 0.2),
            (10, 0.9, 0.2, 0.7, 0.2),
            (10, 0.5, 0.2, 0.0, 0.2),
            (10, 0.5, 0.2, f64::NAN, 0.2),
            (10, 0.5, -0.2, 0.3, 0.2),
            (10, 0.5, 0.2, 0.3, 0.6),
        ] {
            assert!(Shuffle::new(nodes, own, other, gap, common).is_err());
        }
    }
}
