//! Integer weights within a band.

mod root;
#[cfg(test)]
mod tests;

use self::root::Clipped;
use super::{Band, LARGEST_TOTAL};
use crate::memory::room;
use crate::{Error, Result};

/// More than the logarithm of any ratio of a weight to its limits: `log 2^62 < 43` and
/// `epsilon <= 42` with a reference of 1 rounded to a base.
const WINDOW: f64 = 45.0;

/// Logarithms beyond this have an exponential that says nothing more.
const FAR: f64 = 600.0;

/// Computes integer weights for entries whose density is `e^log_ratio` times the reference. Each
/// weight is within the limits of the band, and together they have exactly the total of the
/// reference. It also returns `c`.
///
/// A weight is `reference * e^(log_ratio - c)`, clipped to the limits, as closely as floating-point
/// numbers and whole numbers allow; `c` makes the total right. Among all weights within the limits,
/// these have the least divergence from the density to the law that they draw from.
///
/// The limits and the total hold exactly whatever the ratios:
///
/// * equal ratios give the reference itself;
/// * `-inf` and NaN stand for a density of zero. Such entries stay at their lower limit until all
///   others are at their upper limit. Then they share what is left in proportion to the reference,
///   and `c` is `-inf`;
/// * entries of `+inf` rise together, in proportion, before any other leaves its lower limit. If
///   they do not reach their upper limit, `c` is `+inf`.
///
/// ```
/// use turnout_core::samplers::{Band, weights};
/// // All of the density is on the first of four entries.
/// let none = f64::NEG_INFINITY;
/// let band = Band::mollifier(1.0)?;
/// let (found, c) = weights(&[1.4, none, none, none], &[1000; 4], &band)?;
/// assert_eq!(found, [1648, 784, 784, 784]);
/// assert_eq!(c, none);
/// # Ok::<(), turnout_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::LengthMismatch`] if the lengths differ; [`Error::Entry`] if a reference is zero;
/// [`Error::Integer`] if there is no entry or the references add up to more than [`LARGEST_TOTAL`];
/// [`Error::Accounting`] if no weights within the band have that total.
pub fn weights(log_ratios: &[f64], reference: &[u64], band: &Band) -> Result<(Vec<u64>, f64)> {
    if log_ratios.len() != reference.len() {
        return Err(Error::LengthMismatch {
            left: "log_ratios",
            left_length: log_ratios.len(),
            right: "reference",
            right_length: reference.len(),
        });
    }
    Ok(Entries::new(reference, band)?.weights(log_ratios))
}

/// References and their limits.
pub(super) struct Entries {
    reference: Vec<u64>,
    low: Vec<u64>,
    high: Vec<u64>,
    total: u64,
}

/// What a log ratio says, from the first to be raised to the last.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Infinite,
    Finite,
    Zero,
}

impl Class {
    fn of(log_ratio: f64) -> Self {
        if log_ratio.is_finite() {
            Self::Finite
        } else if log_ratio > 0.0 {
            Self::Infinite
        } else {
            Self::Zero
        }
    }

    /// The logarithm that stands for all of the class, if there is one.
    const fn common(self) -> Option<f64> {
        match self {
            Self::Infinite => Some(f64::INFINITY),
            Self::Finite => None,
            Self::Zero => Some(f64::NEG_INFINITY),
        }
    }
}

impl Entries {
    pub(super) fn new(reference: &[u64], band: &Band) -> Result<Self> {
        let total = reference.iter().fold(0, |sum: u64, &one| sum.saturating_add(one));
        if let Some(index) = reference.iter().position(|&one| one == 0) {
            let expected = "an integer of at least 1";
            return Err(Error::Entry { argument: "reference", index, expected });
        }
        if total == 0 || total > LARGEST_TOTAL {
            return Err(Error::Integer {
                argument: "the sum of reference",
                value: total,
                expected: "an integer from 1 to 2^62",
            });
        }
        let length = reference.len();
        let (mut low, mut high) = (room(length, 0)?, room(length, 0)?);
        let mut last = (0, (0, 0));
        for (index, &one) in reference.iter().enumerate() {
            if one != last.0 {
                last = (one, band.limits(one)?);
            }
            (low[index], high[index]) = (last.1.0, last.1.1.min(total));
        }
        // Lower limits are at most their reference.
        if high.iter().map(|&one| u128::from(one)).sum::<u128>() < u128::from(total) {
            return Err(Error::Accounting {
                argument: "base",
                value: band.base().unwrap_or(f64::NAN),
                expected: "so large that base * e^epsilon reaches 1",
            });
        }
        Ok(Self { reference: reference.to_vec(), low, high, total })
    }

    /// Entries of the same reference.
    pub(super) fn equal(length: usize, reference: u64, band: &Band) -> Result<Self> {
        Self::new(&room(length, reference)?, band)
    }

    /// The weights for log ratios, of which there is one for each entry.
    pub(super) fn weights(&self, log_ratios: &[f64]) -> (Vec<u64>, f64) {
        if let Some(common) = self.common(log_ratios) {
            return (self.reference.clone(), common);
        }
        let mut weights = self.low.clone();
        let mut left = self.total - self.low.iter().sum::<u64>();
        let groups = [Class::Infinite, Class::Finite, Class::Zero].map(|class| {
            let members = (0..log_ratios.len()).filter(|&i| Class::of(log_ratios[i]) == class);
            (class, members.collect::<Vec<_>>())
        });
        let mut groups = groups.into_iter().filter(|(_, members)| !members.is_empty()).peekable();
        while let Some((class, members)) = groups.next() {
            let slack: u128 = members.iter().map(|&i| u128::from(self.high[i] - self.low[i])).sum();
            if slack <= u128::from(left) && groups.peek().is_some() {
                for &index in &members {
                    left -= self.high[index] - self.low[index];
                    weights[index] = self.high[index];
                }
                continue;
            }
            let own = |&index: &usize| if class == Class::Finite { log_ratios[index] } else { 0.0 };
            let own: Vec<f64> = members.iter().map(own).collect();
            let found = self.raise(&members, &own, left, &mut weights);
            return (weights, class.common().unwrap_or(found));
        }
        (weights, 0.0) // not reached: there is at least one entry
    }

    /// The log ratio of all entries, if it is the same and the reference is within the limits.
    fn common(&self, log_ratios: &[f64]) -> Option<f64> {
        let (&first, rest) = log_ratios.split_first()?;
        let class = Class::of(first);
        #[expect(clippy::float_cmp, reason = "the same, not nearly the same")]
        let same =
            |&other: &f64| Class::of(other) == class && (class != Class::Finite || other == first);
        let within = || self.reference.iter().zip(&self.high).all(|(one, high)| one <= high);
        (rest.iter().all(same) && within()).then(|| class.common().unwrap_or(first))
    }

    /// Raises the weights of members by `left` in all, from their lower limits; the logarithm of
    /// what the ratios are divided by.
    fn raise(&self, members: &[usize], log_ratios: &[f64], left: u64, weights: &mut [u64]) -> f64 {
        let low: Vec<f64> = members.iter().map(|&index| self.low[index] as f64).collect();
        let high: Vec<f64> = members.iter().map(|&index| self.high[index] as f64).collect();
        let target = members.iter().map(|&index| self.low[index]).sum::<u64>() + left;
        let mut problem = Clipped { numbers: vec![0.0; members.len()], low, high };
        let (anchor, bracket) = self.anchor(members, log_ratios, target as f64, &mut problem);
        self.relative_to(anchor, members, log_ratios, &mut problem);
        let factor = problem.factor(target as f64, bracket);
        let mut sum = 0_u64;
        for (place, &index) in members.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
            let rounded = (problem.at(place, factor) + 0.5) as u64;
            weights[index] = rounded.clamp(self.low[index], self.high[index]);
            sum = sum.saturating_add(weights[index]);
        }
        self.settle(members, target, sum, weights);
        anchor - libm::log(factor)
    }

    /// A logarithm near the one sought, and a bracket of the factor relative to it.
    ///
    /// Only differences of log ratios matter, and they are small only near the target. So the
    /// search first finds a ratio of the list, and then a factor relative to it.
    fn anchor(
        &self,
        members: &[usize],
        log_ratios: &[f64],
        target: f64,
        problem: &mut Clipped,
    ) -> (f64, (f64, f64)) {
        let most = log_ratios.iter().copied().fold(f64::MIN, f64::max);
        let least = log_ratios.iter().copied().fold(f64::MAX, f64::min);
        if most - least <= FAR {
            return (most, ((-WINDOW).exp(), (FAR + WINDOW).exp()));
        }
        let mut sum_at = |anchor: f64, factor: f64| {
            self.relative_to(anchor, members, log_ratios, problem);
            problem.sum(factor)
        };
        let mut sorted = log_ratios.to_vec();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let next = sorted.partition_point(|&ratio| sum_at(ratio, 1.0).0 < target);
        let bracket = ((-2.0 * WINDOW).exp(), (3.0 * WINDOW).exp());
        let below = sorted.get(next).copied().unwrap_or(least);
        let above = next.checked_sub(1).and_then(|place| sorted.get(place)).copied();
        // The sum changes only within a window of a ratio of the list.
        let anchor = match above {
            Some(above) if sum_at(above, (2.0 * WINDOW).exp()).0 >= target => above,
            _ => below,
        };
        (anchor, bracket)
    }

    /// The references times the exponential of their log ratios less the anchor.
    fn relative_to(
        &self,
        anchor: f64,
        members: &[usize],
        log_ratios: &[f64],
        problem: &mut Clipped,
    ) {
        let places = problem.numbers.iter_mut().zip(members.iter().zip(log_ratios));
        for (number, (&index, &ratio)) in places {
            let exponent = (ratio - anchor).clamp(-FAR, FAR);
            *number = self.reference[index] as f64 * libm::exp(exponent);
        }
    }

    /// Spreads the units that rounding left over evenly: over weights strictly within their limits
    /// while there are any.
    fn settle(&self, members: &[usize], target: u64, sum: u64, weights: &mut [u64]) {
        let up = sum < target;
        let mut left = sum.abs_diff(target);
        while left > 0 {
            let slack = |index: usize, weights: &[u64]| {
                if up {
                    self.high[index] - weights[index]
                } else {
                    weights[index] - self.low[index]
                }
            };
            let within = |index: usize, weights: &[u64]| {
                weights[index] > self.low[index] && weights[index] < self.high[index]
            };
            let mut open: Vec<usize> =
                members.iter().copied().filter(|&index| within(index, weights)).collect();
            if open.is_empty() {
                open.extend(members.iter().filter(|&&index| slack(index, weights) > 0));
            }
            if open.is_empty() {
                return; // the target is within the sums of the limits
            }
            let share = (left / open.len() as u64).max(1);
            for index in open {
                let step = share.min(slack(index, weights)).min(left);
                weights[index] = if up { weights[index] + step } else { weights[index] - step };
                left -= step;
            }
        }
    }
}
