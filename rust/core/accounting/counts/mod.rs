//! Published counts of sampled users.

mod mixture;
mod two_stage;

pub use self::two_stage::TwoStageCountSampling;

use super::HockeyStick;
use super::double::Double;
use super::normal::UNIT;
use crate::{Error, Result};

/// A count of users who are each kept with the same probability, above a floor.
///
/// At least m users hold each item, whatever the data: real users, or dummies whose coins nobody
/// knows. Each is kept with probability p, and the number of those kept is published without noise.
/// With one user more there are `N = m + 1`. Let I be how many of the N are *not* kept, so `I ~
/// Bin(N, s)` with `s = 1 - p`, and let J be an independent copy. If i are not kept, the law
/// without the user is `i / (N s)` times the law with the user. So with `a = e^epsilon`
///
/// * remove, `Bin(m + 1, p)` against `Bin(m, p)`, is `E[(N s - a I)_+] / (N s)`;
/// * add, the reverse, is `E[(I - a N s)_+] / (N s)`;
/// * replace moves a user from one item to another. Both counts change, in opposite directions; the
///   ratio of the laws is `j / i`, and the divergence is `E[(J - a I)_+] / (N s)`.
///
/// Counts are worst at their floor. All three are sums of tails of tails. They have only positive
/// terms, so nothing cancels, and one table of the law of I serves every epsilon. The table is
/// computed from the ratios of neighbours at twice the working precision, and normalised by its
/// sum. (For this mechanism, Theorems 3.1 and 3.2 of Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and
/// Differentially Private Distributed Frequency Estimation", give the mass of a single outcome,
/// which is no bound.)
///
/// The bound is never below the exact value. It is above it by at most `40 * 2^-53` of it plus
/// 1e-300. The table has about `78 sqrt(N p s)` rows of 40 bytes, and evaluating one epsilon takes
/// time proportional to them at most.
///
/// ```
/// use turnout_core::accounting::CountSampling;
/// assert!(CountSampling::new(0.743, 100)?.replace(1.0).delta < 1e-5);
/// assert!(CountSampling::new(0.744, 100)?.replace(1.0).delta > 1e-5);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CountSampling {
    /// N.
    size: u64,
    /// `N s`, the mean of I.
    mean: Double,
    /// The value of I that the first row of the table is for.
    first: f64,
    table: Vec<Row>,
}

/// What is known of I at a value i; each number to the nearest.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// `Pr[I = i]`.
    mass: f64,
    /// `Pr[I < i]`.
    below: f64,
    /// `Pr[I >= i]`.
    above: f64,
    /// `E[(i - I)_+]`.
    shortfall: f64,
    /// `E[(I - i)_+]`.
    excess: f64,
}

/// What is known of I above a threshold c that need not be an integer.
#[derive(Debug, Clone, Copy, Default)]
struct Above {
    /// An upper bound of `E[(I - c)_+]`, but for [`MARGIN`].
    excess: f64,
    /// `E[I; I > c]`.
    part: f64,
    /// `Pr[I > c]`.
    probability: f64,
}

/// A sum of terms: the bound, and the probabilities of the event under both laws.
#[derive(Debug, Clone, Copy)]
struct Sums {
    bound: Double,
    p: Double,
    q: Double,
    terms: usize,
}

/// No ratio of outcomes is above 10^7 + 1, and none of means above 2^53: all less than `e^40`.
const LARGEST_EPSILON: f64 = 40.0;

/// A bound of the relative error of what is computed from rows: one rounding of each of two numbers
/// of the table (its sums and ratios have 106 bits, less 26 for up to 10^7 steps), five of a term,
/// two of the sum, three of the division and of its divisor; the rest is reserve.
const MARGIN: f64 = 20.0 * UNIT;

/// The relative error of `e^epsilon` and of what is multiplied with it or divided by it.
const THRESHOLD_ERROR: f64 = UNIT * UNIT * 65_536.0;

/// The table is computed with its largest entry at 2^960: sums stay finite, and entries keep 106
/// bits until they are far too small to matter.
const LARGEST_ENTRY: i32 = 960;

/// It ends where entries fall below 2^-180, that is 2^-1140 of the largest. Ratios of neighbours
/// fall outwards, so what is cut off is below `2^-1140 * 10^7 / 790`; even divided by s that is at
/// most twice the smallest positive number, which every bound adds.
const SMALLEST_ENTRY: i32 = -180;

/// Terms that cannot make up more than this part of a sum are not computed; their bound is added.
const NEGLIGIBLE: f64 = UNIT / 128.0;

/// So few terms are all computed.
const FEW: usize = 256;

impl CountSampling {
    /// The largest floor.
    pub const LARGEST_FLOOR: u64 = 10_000_000;

    /// Builds the table for the probability that a user is kept, and the floor m.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the rate is not in [0, 1] or the floor is above
    /// [`CountSampling::LARGEST_FLOOR`].
    pub fn new(rate: f64, floor: u64) -> Result<Self> {
        let kept = super::rate("rate", rate)?;
        if floor > Self::LARGEST_FLOOR {
            let expected = "at most 10^7";
            return Err(Error::Accounting { argument: "floor", value: floor as f64, expected });
        }
        let size = floor + 1;
        let dropped = Double::sum(1.0, -kept);
        let (first, masses) = masses(size, kept, dropped);
        Ok(Self {
            size,
            mean: dropped * size as f64,
            first: first as f64,
            table: tabulate(&masses),
        })
    }

    /// The divergence for replacing one user's item, at a finite epsilon of at least 0. Both
    /// directions are the same.
    #[must_use]
    pub fn replace(&self, epsilon: f64) -> HockeyStick {
        if let Some(limit) = self.degenerate() {
            return limit;
        }
        let ratio = Double::exp(epsilon.min(LARGEST_EPSILON));
        let mut sums = Sums { bound: Double::ZERO, p: Double::ZERO, q: Double::ZERO, terms: 8 };
        // e^0 is exact.
        let error = if epsilon > 0.0 { THRESHOLD_ERROR } else { 0.0 };
        let excess = |index: usize| self.above(ratio * (self.first + index as f64), error).excess;
        let stop = self.last() / ratio.value() - self.first + 2.0;
        let (start, stop) = self.relevant(stop, self.mean.value(), excess, &mut sums);
        sums.terms += stop - start;
        for index in start..stop {
            let (i, mass) = (self.first + index as f64, self.table[index].mass);
            let above = self.above(ratio * i, error);
            sums.bound = sums.bound + mass * above.excess;
            sums.p = sums.p + mass * above.part;
            sums.q = sums.q + mass * i * above.probability;
        }
        let mean = self.mean.value();
        HockeyStick {
            delta: self.bound(sums.bound.value() / mean, sums.terms),
            p: (sums.p.value() / mean).min(1.0),
            q: (sums.q.value() / mean).min(1.0),
        }
    }

    /// The divergence of the law with a user from the law without the user, at a finite epsilon of
    /// at least 0.
    #[must_use]
    pub fn remove(&self, epsilon: f64) -> HockeyStick {
        if let Some(limit) = self.degenerate() {
            return limit;
        }
        let threshold = self.mean / Double::exp(epsilon.min(LARGEST_EPSILON));
        // The value is continuous in the threshold, also at an integer: the side does not matter.
        let (k, rest) = threshold.split_integer();
        let row = self.row(k);
        if k < 1.0 {
            return HockeyStick { delta: self.bound(row.mass, 8), p: row.mass, q: 0.0 };
        }
        let excess = row.shortfall + (rest + threshold.value() * THRESHOLD_ERROR) * at_most(&row);
        // At an integer threshold the outcome k itself has no part in the event. The masses rise up
        // to k, so `k Pr[I < k]` is at most twice the expectation: no cancellation.
        let at_threshold = if rest > 0.0 { row.mass } else { 0.0 };
        let part = k.mul_add(row.below, -row.shortfall) + k * at_threshold;
        HockeyStick {
            delta: self.bound(excess / threshold.value(), 8),
            p: (row.below + at_threshold).min(1.0),
            q: part / self.mean.value(),
        }
    }

    /// The divergence of the law without a user from the law with the user, at a finite epsilon of
    /// at least 0. It is 0 for an epsilon of `-ln(1 - p)` or more.
    #[must_use]
    pub fn add(&self, epsilon: f64) -> HockeyStick {
        if let Some(limit) = self.degenerate() {
            return limit;
        }
        let threshold = self.mean * Double::exp(epsilon.min(LARGEST_EPSILON));
        if threshold.value() > self.size as f64 * (1.0 + 4.0 * UNIT) {
            return HockeyStick::NONE;
        }
        let above = self.above(threshold, THRESHOLD_ERROR);
        let mean = self.mean.value();
        HockeyStick {
            delta: self.bound(above.excess / mean, 8),
            p: (above.part / mean).min(1.0),
            q: above.probability,
        }
    }

    /// The divergence where nobody or everybody is kept.
    fn degenerate(&self) -> Option<HockeyStick> {
        if self.mean.value() <= 0.0 {
            Some(HockeyStick { delta: 1.0, p: 1.0, q: 0.0 })
        } else if self.mean.value() >= self.size as f64 && self.mean.low >= 0.0 {
            Some(HockeyStick::NONE)
        } else {
            None
        }
    }

    /// Rounds a quotient up; numbers below the range of `f64` may have been lost in every term.
    fn bound(&self, quotient: f64, terms: usize) -> f64 {
        let lost = terms as f64 * f64::from_bits(1) * (1.0 + 1.0 / self.mean.value());
        (quotient * (1.0 + MARGIN) + lost).min(1.0)
    }

    /// The value of I that the last row of the table is for.
    fn last(&self) -> f64 {
        self.first + (self.table.len() - 1) as f64
    }

    /// The row for an integer of at least 0; all 0 outside the table.
    fn row(&self, i: f64) -> Row {
        if i < self.first {
            return Row::default();
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
        let index = (i - self.first) as usize;
        self.table.get(index).copied().unwrap_or_default()
    }

    /// What is known of I above a threshold that is not below the table and has this relative
    /// error.
    fn above(&self, threshold: Double, error: f64) -> Above {
        let (floor, _) = threshold.split_integer();
        let doubt = threshold.value() * error;
        let size = self.size as f64;
        if floor >= size {
            // Only the doubt can let N pass.
            let passes = (threshold.high - size) + threshold.low < doubt;
            let excess = if passes { doubt * self.row(size).above } else { 0.0 };
            return Above { excess, ..Above::default() };
        }
        // Continuous in the threshold, also at an integer: the side does not matter.
        let k = floor + 1.0;
        let row = self.row(k);
        let gap = (k - threshold.high) - threshold.low;
        Above {
            excess: (gap + doubt).mul_add(row.above, row.excess),
            part: k.mul_add(row.above, row.excess),
            probability: row.above,
        }
    }

    /// The rows whose terms are to be summed, of the first `stop` rows that are not nothing; a bound
    /// of the others is added.
    ///
    /// A term is the mass of i times `excess`, which falls in i and is at most `most`.
    fn relevant(
        &self,
        stop: f64,
        most: f64,
        excess: impl Fn(usize) -> f64,
        sums: &mut Sums,
    ) -> (usize, usize) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
        let stop = (stop as usize).min(self.table.len());
        if stop <= FEW {
            return (0, stop);
        }
        // The terms are log-concave, so that the largest of these is not far from the largest of
        // all; any one is at most the sum.
        let largest = (0..stop)
            .step_by(stop / 64)
            .map(|index| self.table[index].mass * excess(index))
            .fold(0.0, f64::max);
        let allowed = NEGLIGIBLE * largest;
        let row = |index: usize| self.table.get(index).copied().unwrap_or_default();
        let above = |index: usize| row(index).above * excess(index);
        let below = |index: usize| row(index).below * most;
        let end = partition_point(0, stop, |index| above(index) > allowed);
        // There the bound is too large to leave out; at the value before it is not.
        let start = partition_point(0, end, |index| below(index) <= allowed).saturating_sub(1);
        sums.bound = sums.bound + below(start) + above(end);
        (start, end)
    }
}

/// `Pr[I <= i]`.
fn at_most(row: &Row) -> f64 {
    row.below + row.mass
}

/// The first value in `[start, stop)` for which a predicate that turns from true to false is false.
pub(super) fn partition_point(start: usize, stop: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (start, stop);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The probabilities of `Bin(size, dropped)`, scaled, from the first that matters to the last.
fn masses(size: u64, kept: f64, dropped: Double) -> (u64, Vec<Double>) {
    let smallest = libm::ldexp(1.0, SMALLEST_ENTRY);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 10^7 + 2")]
    let mode = (((size + 1) as f64 * dropped.value()) as u64).min(size);
    let start = Double::from(libm::ldexp(1.0, LARGEST_ENTRY));
    let mut masses = Vec::new();
    let (mut i, mut mass) = (mode, start);
    while i > 0 {
        // Products of `kept` with an integer below 2^53 are exact pairs, subnormal or not.
        mass = mass * Double::product(kept, i as f64) / (dropped * (size - i + 1) as f64);
        if mass.value() < smallest {
            break;
        }
        masses.push(mass);
        i -= 1;
    }
    let first = i;
    masses.reverse();
    masses.push(start);
    (i, mass) = (mode, start);
    while i < size {
        mass = mass * (dropped * (size - i) as f64) / Double::product(kept, (i + 1) as f64);
        if mass.value() < smallest {
            break;
        }
        masses.push(mass);
        i += 1;
    }
    (first, masses)
}

/// Normalises masses, and sums them from both ends, once and twice.
fn tabulate(masses: &[Double]) -> Vec<Row> {
    let total = masses.iter().fold(Double::ZERO, |sum, &mass| sum + mass);
    let inverse = Double::ONE / total;
    let number = |scaled: Double| (scaled * inverse).value();
    let mut table = Vec::with_capacity(masses.len());
    let (mut below, mut shortfall) = (Double::ZERO, Double::ZERO);
    for &mass in masses {
        shortfall = shortfall + below;
        table.push(Row {
            mass: number(mass),
            below: number(below),
            shortfall: number(shortfall),
            ..Row::default()
        });
        below = below + mass;
    }
    let (mut above, mut excess) = (Double::ZERO, Double::ZERO);
    for (row, &mass) in table.iter_mut().zip(masses).rev() {
        excess = excess + above;
        above = above + mass;
        row.above = number(above);
        row.excess = number(excess);
    }
    table
}

#[cfg(test)]
mod tests;
