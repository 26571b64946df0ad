//! Shuffled reports of a pure local randomizer.

use super::normal::UNIT;
use super::point_binomial::log_probability;
use super::{HockeyStick, rate};
use crate::{Error, Result};

/// So many values of the number of clones are worked through by recurrences from an exact start.
const BLOCK: u64 = 1024;

/// The relative error of the mass of a block of blankets, recurrences included.
const RELATIVE_ERROR: f64 = 4e-12;

/// What is left out is below this part of the sum, and is added.
const NEGLIGIBLE: f64 = UNIT / 4.0;

/// Reports of n nodes, in an order that reveals nothing about who sent them; one node's answer is
/// replaced.
///
/// The node's report falls into a first set of outputs with probability `own`, and into a second
/// set with probability `other`. With the other answer, the two probabilities are exchanged. Any
/// report, whatever its answer, comes with probability `blanket` from a law that all nodes share,
/// the blanket, which gives each of the two sets a mass of `common`. Suppose that the adversary is
/// handed those reports of the other nodes that are not from the blanket. It then sees M ~ Bin(n -
/// 1, `blanket`) reports of the blanket beside the node's own. Of the mass of the node's own law
/// outside of both sets, a part `neither` has the law of the blanket outside of the two sets, and
/// mixes with it; the rest is revealed.
///
/// Given M = m, divide the likelihood of the counts a and b of the two sets by that of m + 1
/// blanket reports: the ratio is linear in a and b. The sum over a has a closed form. Let `x_c` be
/// the distance of the threshold of a from c/2. Then each c = a + b gives `Pr[Bin(m, 2 common /
/// blanket) = c - 1]` times `b/2 - (2 x_c / c) T`, where b is a binomial probability and T a
/// binomial tail, without cancellation. The divergence falls as m grows, so the smallest m of a
/// block is a bound for the block.
///
/// Sources: Balle, Bell, Gascón, Nissim, "The Privacy Blanket of the Shuffle Model" (2019);
/// Feldman, `McMillan`, Talwar, "Stronger Privacy Amplification by Shuffling for Renyi and
/// Approximate Differential Privacy" (2023), for `neither = 0`. The variation-ratio reduction of
/// Wang et al., "Privacy Amplification via Shuffling: Unified, Simplified, and Tightened" (2024),
/// mixes the rest of the node's own law with other nodes' rest, whatever their laws. That is this
/// with `blanket = 1`, which real data exceed: with three answers, two nodes and epsilon 0.5, delta
/// at 0.4 is 0.0194, and the reduction says 0.0118.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shuffle {
    nodes: u64,
    own: f64,
    other: f64,
    gap: f64,
    neither: f64,
    common: f64,
    blanket: f64,
}

/// The probabilities of [`Shuffle`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShuffleLaw {
    /// The probability that a report is in the set that speaks for its answer.
    pub own: f64,
    /// The probability that a report is in the set that speaks for the other answer.
    pub other: f64,
    /// `own - other`, computed without cancellation.
    pub gap: f64,
    /// The mass of the node's own law that equals the blanket's outside of the two sets.
    pub neither: f64,
    /// The mass that the blanket gives to each of the two sets.
    pub common: f64,
    /// The mass of the blanket.
    pub blanket: f64,
}

/// The state of the recurrences at c and its threshold k.
struct Tails {
    c: u64,
    k: u64,
    /// `Pr[Bin(c - 1, 1/2) = k - 1]`.
    point: f64,
    /// `Pr[Bin(c, 1/2) >= k]`.
    tail: f64,
    /// The largest tail since it was last computed afresh.
    largest: f64,
    /// A bound of the relative error of the point and of the largest tail.
    error: f64,
}

impl Tails {
    fn new(c: u64, k: u64) -> Self {
        if k > c {
            return Self { c, k, point: 0.0, tail: 0.0, largest: 0.0, error: 0.0 };
        }
        let (tail, terms) = half_tail(c, k);
        let logarithm = log_probability(c - 1, 0.5, k - 1);
        let error = start_error(logarithm) + 3.0 * UNIT * terms as f64;
        Self { c, k, point: logarithm.exp(), tail, largest: tail, error }
    }

    /// Moves to c + 1, with the threshold at `k`.
    fn advance(&mut self, k: u64) {
        // A recurrence needs something to start from, and a tail that fell to less than half is a
        // difference of larger ones.
        let lost = self.point.min(self.tail) < FAINT || self.tail < 0.5 * self.largest;
        if lost || self.k > self.c || k > self.c + 1 {
            *self = Self::new(self.c + 1, k);
            return;
        }
        self.error += 8.0 * UNIT * (1 + self.k.abs_diff(k)) as f64;
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
        self.largest = self.largest.max(self.tail);
    }
}

/// The relative error of a probability that is computed from its logarithm: see
/// [`log_probability`]; some more for what is next to it.
fn start_error(logarithm: f64) -> f64 {
    UNIT * (12.0 * logarithm.abs().min(750.0) + 40.0)
}

/// `Pr[Bin(c, 1/2) >= k]` for k above c/2, and from how many terms: they fall from k on.
fn half_tail(c: u64, k: u64) -> (f64, u64) {
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
    (sum, position - k + 1)
}

/// What the mean over blankets leaves out is below this part of it, and is added.
const CLOSE: f64 = 1e-9;

/// Below this a recurrence may have left the range of `f64`.
const FAINT: f64 = 1e-280;

/// Nothing below this is looked for; it is added.
const LEAST: f64 = 1e-100;

#[derive(Default)]
struct Sums {
    bound: f64,
    p: f64,
    q: f64,
}

impl Shuffle {
    /// The largest number of nodes.
    pub const LARGEST: u64 = 10_000_000_000;

    /// Checks the number of nodes and the law.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if there is no node or there are more than [`Shuffle::LARGEST`], a
    /// number is not a probability, the masses of a report add up to more than 1, the gap is not
    /// above 0, or the mass of the blanket is less than that of its two sets.
    pub fn new(nodes: u64, law: ShuffleLaw) -> Result<Self> {
        let ShuffleLaw { own, other, gap, neither, common, blanket } = law;
        if nodes == 0 || nodes > Self::LARGEST {
            let expected = "from 1 to 10^10";
            return Err(Error::Accounting { argument: "nodes", value: nodes as f64, expected });
        }
        rate("own", own)?;
        rate("other", other)?;
        rate("neither", neither)?;
        rate("blanket", blanket)?;
        let spare = 1.0 + 8.0 * UNIT;
        if own + other + neither > spare {
            let expected = "at most 1 - other - neither";
            return Err(Error::Accounting { argument: "own", value: own, expected });
        }
        if gap.is_nan() || gap <= 0.0 || gap > 1.0 {
            let expected = "a probability above 0";
            return Err(Error::Accounting { argument: "gap", value: gap, expected });
        }
        if common.is_nan() || common < 0.0 || 2.0 * common > blanket * spare {
            let expected = "from 0 to half of the blanket";
            return Err(Error::Accounting { argument: "common", value: common, expected });
        }
        Ok(Self { nodes, own, other, gap, neither, common, blanket })
    }

    /// The divergence at a finite epsilon of at least 0. Both directions are the same.
    #[must_use]
    pub fn replace(&self, epsilon: f64) -> HockeyStick {
        if epsilon.exp() * self.other >= self.own * (1.0 + 8.0 * UNIT) {
            return HockeyStick::NONE;
        }
        let sums = if self.neither > 0.0 && self.blanket < 1.0 {
            self.over_blankets(epsilon)
        } else {
            // Nothing depends on how many reports are of the blanket outside of the two sets.
            self.given(epsilon, self.nodes - 1, 2.0 * self.common)
        };
        let most = (self.gap * (1.0 + 4.0 * UNIT)).min(1.0);
        HockeyStick {
            delta: (sums.bound + LEAST).min(most),
            p: sums.p.clamp(0.0, 1.0),
            q: sums.q.clamp(0.0, 1.0),
        }
    }

    /// The mean over the number of blanket reports, in blocks.
    fn over_blankets(&self, epsilon: f64) -> Sums {
        let others = self.nodes - 1;
        let blanket = self.blanket;
        let share = (2.0 * self.common / blanket).min(1.0);
        let mean = others as f64 * blanket;
        let spread = (mean * (1.0 - blanket)).sqrt();
        let width = (1e-4 * mean).clamp(spread / 16.0, 2.0 * spread).max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole numbers from 1 to n, where any will do"
        )]
        let (width, mode) = (width as u64, ((self.nodes as f64 * blanket) as u64).min(others));
        let mut sums = Sums::default();
        let add = |start: u64, stop: u64, sums: &mut Sums| {
            let weight = mass(others, blanket, start, stop);
            let part = self.given(epsilon, start, share);
            sums.bound += weight * part.bound;
            sums.p += weight * part.p;
            sums.q += weight * part.q;
            part.bound
        };
        let mut stop = mode + 1;
        while stop > 0 {
            let start = stop.saturating_sub(width);
            add(start, stop, &mut sums);
            let rest = below(others, blanket, start) * self.gap;
            if rest <= (CLOSE * sums.bound).max(LEAST) {
                sums.bound += rest;
                break;
            }
            stop = start;
        }
        let mut start = mode + 1;
        while start <= others {
            let stop = (start + width).min(others + 1);
            let least = add(start, stop, &mut sums);
            let rest = above(others, blanket, stop) * least;
            if rest <= (CLOSE * sums.bound).max(LEAST) {
                sums.bound += rest;
                break;
            }
            start = stop;
        }
        sums
    }

    /// The divergence given that there are `others` reports beside the node's, each of which is in
    /// either of the two sets with probability `share`.
    fn given(&self, epsilon: f64, others: u64, share: f64) -> Sums {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 0 to n; any start will do"
        )]
        let mode = (((others as f64 + 1.0) * share) as u64).min(others);
        let crowd = Crowd { law: self, others, share };
        let mut sums = Sums::default();
        // c - 1 is the number of reports in the two sets: blocks of c - 1 in both directions.
        let mut stop = mode + 1;
        while stop > 0 {
            let start = stop.saturating_sub(BLOCK);
            crowd.block(epsilon, start, stop, &mut sums);
            let rest = below(others, share, start);
            if rest <= (NEGLIGIBLE * sums.bound).max(LEAST) {
                sums.bound += rest;
                break;
            }
            stop = start;
        }
        let mut start = mode + 1;
        while start <= others {
            let rest = above(others, share, start);
            if rest <= (NEGLIGIBLE * sums.bound).max(LEAST) {
                sums.bound += rest;
                break;
            }
            let stop = (start + BLOCK).min(others + 1);
            crowd.block(epsilon, start, stop, &mut sums);
            start = stop;
        }
        sums.bound *= self.gap * (1.0 + epsilon.exp()) * (1.0 + 16.0 * UNIT);
        sums
    }
}

/// The other nodes whose reports the node's own is among.
struct Crowd<'a> {
    law: &'a Shuffle,
    others: u64,
    share: f64,
}

impl Crowd<'_> {
    /// Adds the terms with `c - 1` in `[start, stop)`.
    fn block(&self, epsilon: f64, start: u64, stop: u64, sums: &mut Sums) {
        let &Self { law: &Shuffle { own, other, gap, neither, .. }, others, share } = self;
        // How many reports of the blanket there are outside of the two sets for each one in them.
        let odds = if share < 1.0 { share / (1.0 - share) } else { 0.0 };
        let slope = (0.5 * epsilon).tanh() / gap;
        let distance = |c: u64| {
            let left = (others + 1 - c) as f64;
            slope * (0.5 * (own + other) * c as f64 + 0.5 * neither * odds * left)
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "above 0, and saturation above c means that no outcome counts"
        )]
        let threshold = |c: u64| ((0.5 * c as f64 + distance(c)).ceil() as u64).max(1);
        let mut weight = probability(others, share, start);
        let mut weight_error = start_error(weight.ln());
        let mut tails = Tails::new(start + 1, threshold(start + 1));
        for clones in start..stop {
            let c = clones + 1;
            let gain = 0.5 * tails.point;
            let loss = 2.0 * distance(c) / c as f64 * tails.tail;
            let drift = 3.0 * UNIT * (clones as f64 - others as f64 * share).abs();
            // A tail is at least half of the largest, whose error it shares.
            let error = (gain + loss) * (2.0 * tails.error + weight_error + drift);
            sums.bound += weight * ((gain - loss).max(0.0) + error);
            let next = weight * (others + 1 - c) as f64 / c as f64 * odds;
            let both = (weight * (own + other) + neither * next) * tails.tail;
            sums.p += both + weight * gap * gain;
            sums.q += both - weight * gap * gain;
            if c < stop {
                weight_error += 4.0 * UNIT;
                weight = next;
                if next < FAINT {
                    weight = probability(others, share, c);
                    weight_error = start_error(weight.ln());
                }
                tails.advance(threshold(c + 1));
            }
        }
    }
}

/// A bound of `Pr[Bin(n, p) < start]`, for a start at most about the mode.
fn below(n: u64, p: f64, start: u64) -> f64 {
    if start == 0 || p >= 1.0 {
        return 0.0;
    }
    let here = probability(n, p, start);
    let ratio = start as f64 * (1.0 - p) / ((n - start + 1) as f64 * p);
    if ratio < 1.0 { here * ratio / (1.0 - ratio) * 1.01 } else { 1.0 }
}

/// A bound of `Pr[Bin(n, p) >= start]`, for a start above the mode.
fn above(n: u64, p: f64, start: u64) -> f64 {
    if start > n {
        return 0.0;
    }
    let here = probability(n, p, start);
    let ratio = (n - start) as f64 * p / ((start + 1) as f64 * (1.0 - p));
    if ratio < 1.0 { here / (1.0 - ratio) * 1.01 } else { 1.0 }
}

/// A bound of `Pr[start <= Bin(n, p) < stop]`, close to it.
fn mass(n: u64, p: f64, start: u64, stop: u64) -> f64 {
    let odds = p / (1.0 - p);
    let mut term = probability(n, p, start);
    let mut sum = 0.0;
    for position in start..stop {
        if (position - start) % BLOCK == BLOCK - 1 || term < FAINT {
            term = probability(n, p, position);
        }
        sum += term;
        term *= (n - position) as f64 / (position + 1) as f64 * odds;
    }
    let drift = 3.0 * UNIT * (start as f64 - n as f64 * p).abs();
    sum * (1.0 + RELATIVE_ERROR + drift)
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
mod tests;
