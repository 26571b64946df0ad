//! Published counts of users who are sampled and report only some of the items.

use super::super::HockeyStick;
use super::super::double::Double;
use super::super::normal::UNIT;
use super::mixture::Mixture;
use super::{CountSampling, THRESHOLD_ERROR, masses};
use crate::parallel;
use crate::{Error, Result};

/// Two-stage sampling. Every user is kept with a probability, and then reports a random set of
/// items that everybody sees. The counts of the items that kept users report are published.
///
/// A user with item x has a hidden coin of probability p. If the coin is 0, the set A is uniform
/// among the sets of M of the N items. If the coin is 1, A has a weight `gamma / D` if x is in it,
/// and `1 / D` otherwise, with `D = gamma C(N - 1, M - 1) + C(N - 1, M)`. The user adds one to the
/// count of x if the coin is 1 and x is in A. `gamma = 1` is uniform reporting, and otherwise the
/// sets are adaptive. (Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and Differentially Private
/// Distributed Frequency Estimation", section 3.1.3. Against a server that sees no set, their
/// Theorem 3.4 gives it the privacy of one stage: the counts, and how many sets hold each item, are
/// a random function of the counts of one stage. A visible set is a second coin that protects
/// nobody.)
///
/// The adversary here sees **all sets and the published counts**, and knows all values but one. Let
/// `alpha = M / N` and `D' = gamma alpha + 1 - alpha`, and take `1 / C(N, M)` as the unit. A set
/// with x comes with `u1 = p gamma / D'` and adds one, or with `u0 = 1 - p` and adds none. A set
/// without x comes with `z = p / D' + 1 - p`. Let B be the law of a count without the user. The
/// divergence for replacing x by x' depends on the set:
///
/// * if it holds both: that of `u1 B(+1) x B + u0 B x B` and the same with the counts exchanged;
/// * if it holds one of them: that of `u1 B(+1) + u0 B` and `z B`, in either order;
/// * if it holds neither: zero.
///
/// B is the law of what the coins of others keep hidden. It is one of two:
///
/// * `dummies` added to every count, with coins of the same p that nobody knows: `Bin(k, p)`;
/// * a `floor` of other users that hold each item. K of them, a binomial number, have it in their
///   set, and each of these has the coin 1 with probability `u1 / (u1 + u0)`. The divergence falls
///   as either item's K grows, because the law of a larger count is a function of the law of a
///   smaller one and of independent coins. For two items, the divergence at the smaller K of both
///   is a bound. If K has many values, it is rounded down to a grid.
///
/// Each alone gives a bound, and the smaller one is taken. It is an upper bound, rounding included.
/// With dummies, the worst data attain it; with the floor, one item attains it.
///
/// ```
/// use turnout_core::accounting::{CountSampling, TwoStageCountSampling};
/// let halves = TwoStageCountSampling::new(0.5, 20, 10, 3.0, 0, 100)?;
/// assert!(halves.replace(1.0).delta > CountSampling::new(0.5, 100)?.replace(1.0).delta);
/// assert!(halves.local_epsilon() < 3.0_f64.ln());
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TwoStageCountSampling {
    /// `alpha`.
    inside: Double,
    /// The part of the sets that hold both of two items, and the part that hold one but not the
    /// other.
    both: Double,
    one: Double,
    /// `u1 + u0` and `z`.
    shown: Double,
    other: Double,
    /// Nobody is kept.
    none: bool,
    dummies: Mixture,
    floor: Vec<Holders>,
}

/// What others hide where at least so many holders of an item have it in their set.
#[derive(Debug, Clone)]
struct Holders {
    mixture: Mixture,
    /// The probability that one item has so many, up to the next entry; and that the smaller
    /// number of two items is that.
    one: f64,
    two: f64,
}

/// Fewer holders than this many with a smaller probability are not looked at.
const RARE: f64 = 1e-30;

/// More holders than this many with a smaller probability count as this many.
const FEW: f64 = 1e-5;

/// The rows of all tables of a floor together.
const ROWS: f64 = 1e6;

/// The relative error of a probability of a number of holders: a sum of positive terms.
const MASS_ERROR: f64 = 16.0 * UNIT;

/// The relative error of a sum of a few divergences, of their weights and of the sum over holders.
const MARGIN: f64 = 64.0 * UNIT;

impl TwoStageCountSampling {
    /// The largest number of items.
    pub const LARGEST_DOMAIN: u64 = 1 << 32;

    /// The largest floor and the largest number of dummies.
    pub const LARGEST_FLOOR: u64 = CountSampling::LARGEST_FLOOR;

    /// The largest gamma.
    pub const LARGEST_GAMMA: f64 = 1e15;

    /// Builds the tables.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the rate is not in [0, 1]; if there are fewer than two items or
    /// more than [`TwoStageCountSampling::LARGEST_DOMAIN`]; if the number of reported items is not
    /// from 1 to the number of items; if gamma is not from 1 to
    /// [`TwoStageCountSampling::LARGEST_GAMMA`]; or if the floor or the dummies are above
    /// [`TwoStageCountSampling::LARGEST_FLOOR`].
    pub fn new(
        rate: f64,
        domain_size: u64,
        reported: u64,
        gamma: f64,
        floor: u64,
        dummies: u64,
    ) -> Result<Self> {
        let rate = super::super::rate("rate", rate)?;
        whole("domain_size", domain_size, 2, Self::LARGEST_DOMAIN, "from 2 to 2^32")?;
        whole("reported", reported, 1, domain_size, "from 1 to the number of items")?;
        whole("floor", floor, 0, Self::LARGEST_FLOOR, "at most 10^7")?;
        whole("dummies", dummies, 0, Self::LARGEST_FLOOR, "at most 10^7")?;
        if !(1.0..=Self::LARGEST_GAMMA).contains(&gamma) {
            let expected = "from 1 to 10^15";
            return Err(Error::Accounting { argument: "gamma", value: gamma, expected });
        }
        // Where all items are reported gamma has no effect.
        let gamma = if reported == domain_size { 1.0 } else { gamma };
        let (n, m) = (domain_size as f64, reported as f64);
        let inside = Double::from(m) / n;
        let outside = Double::from(n - m) / n;
        // `D'`, and `c - w0 / s` for dummies.
        let total = inside * Double::sum(gamma, -1.0) + 1.0;
        let gain = outside * Double::sum(gamma, -1.0) / total;
        let (kept, dropped) = (Double::from(rate) / total, Double::sum(1.0, -rate));
        let shown = kept * gamma + dropped;
        let counts = CountSampling::new(rate, dummies)?;
        let slope = gain / counts.size as f64;
        let dummies = Mixture { counts, constant: gain + 1.0, slope };
        let hidden = if gamma > 1.0 { up(kept * gamma / shown) } else { rate };
        Ok(Self {
            inside,
            both: inside * (m - 1.0) / (n - 1.0),
            one: inside * (n - m) / (n - 1.0),
            shown,
            other: kept + dropped,
            none: rate <= 0.0,
            dummies,
            floor: holders(floor, inside * shown, hidden, shown)?,
        })
    }

    /// The local guarantee of the sets alone, rounded up: the logarithm of the largest ratio of
    /// their probabilities, `ln((p gamma + (1 - p) D') / (p + (1 - p) D'))`.
    #[must_use]
    pub fn local_epsilon(&self) -> f64 {
        let gain = ((self.shown - self.other) / self.other).value().max(0.0);
        libm::log1p(gain) * (1.0 + 8.0 * UNIT)
    }

    /// The divergence for replacing one user's item, at a finite epsilon of at least 0. Both
    /// directions are the same.
    #[must_use]
    pub fn replace(&self, epsilon: f64) -> HockeyStick {
        let (both, one) = (self.both.value(), self.one.value());
        self.smaller(|mixture, weight_one, weight_two| {
            let mut sum = HockeyStick::NONE;
            if both > 0.0 {
                add(&mut sum, both * weight_two, mixture.moved(epsilon));
            }
            if one > 0.0 {
                add(&mut sum, one * weight_one, mixture.against(self.other, epsilon));
                add(&mut sum, one * weight_one, mixture.from(self.other, epsilon));
            }
            sum
        })
    }

    /// The divergence for removing a user: of the law with the user from the law with a user who
    /// has no item, at a finite epsilon of at least 0.
    #[must_use]
    pub fn remove(&self, epsilon: f64) -> HockeyStick {
        self.smaller(|mixture, weight, _| {
            let mut sum = HockeyStick::NONE;
            let divergence = mixture.against(Double::ONE, epsilon);
            add(&mut sum, self.inside.value() * weight, divergence);
            sum
        })
    }

    /// The divergence for adding a user: of the law with a user who has no item from the law with
    /// the user, at a finite epsilon of at least 0.
    #[must_use]
    pub fn add(&self, epsilon: f64) -> HockeyStick {
        let mut sum = self.smaller(|mixture, weight, _| {
            let mut sum = HockeyStick::NONE;
            let divergence = mixture.from(Double::ONE, epsilon);
            add(&mut sum, self.inside.value() * weight, divergence);
            sum
        });
        // A set without the item is less likely with the user.
        let outside = (Double::ONE - self.inside).value();
        if epsilon < 80.0 && !self.none && outside > 0.0 {
            let power = Double::exp(epsilon) * self.other;
            let gap = (Double::ONE - power).value() + power.value() * THRESHOLD_ERROR;
            if gap > 0.0 {
                let told = HockeyStick { delta: gap, p: 1.0, q: self.other.value() };
                add(&mut sum, outside, told);
                sum.delta = (sum.delta * (1.0 + MARGIN)).min(1.0);
            }
        }
        sum
    }

    /// The smaller of what dummies and a floor of holders give.
    fn smaller(&self, at: impl Fn(&Mixture, f64, f64) -> HockeyStick + Sync) -> HockeyStick {
        if self.none {
            return HockeyStick::NONE;
        }
        let dummies = at(&self.dummies, 1.0, 1.0);
        let mut holders = HockeyStick::NONE;
        for entry in &self.floor {
            add(&mut holders, 1.0, at(&entry.mixture, entry.one, entry.two));
        }
        let mut best = if dummies.delta <= holders.delta { dummies } else { holders };
        best.delta = (best.delta * (1.0 + MARGIN)).min(1.0);
        best.p = best.p.min(1.0);
        best.q = best.q.min(1.0);
        best
    }
}

/// Adds a weighted divergence.
fn add(sum: &mut HockeyStick, weight: f64, term: HockeyStick) {
    sum.delta += weight * term.delta;
    sum.p += weight * term.p;
    sum.q += weight * term.q;
}

/// Rounds a pair up to a probability.
fn up(value: Double) -> f64 {
    let above = value + value * THRESHOLD_ERROR;
    let number = if above.low > 0.0 { above.high.next_up() } else { above.high };
    number.min(1.0)
}

fn whole(
    argument: &'static str,
    value: u64,
    least: u64,
    most: u64,
    expected: &'static str,
) -> Result<()> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(Error::Accounting { argument, value: value as f64, expected })
    }
}

/// The numbers of holders with the item in their set, `Bin(floor, chosen)`, and what they hide.
fn holders(floor: u64, chosen: Double, hidden: f64, shown: Double) -> Result<Vec<Holders>> {
    let mixture = |count: u64| -> Result<Mixture> {
        let counts = CountSampling::new(hidden, count)?;
        Ok(Mixture { counts, constant: shown, slope: Double::ZERO })
    };
    if floor == 0 || chosen.value() >= 1.0 {
        return Ok(vec![Holders { mixture: mixture(floor)?, one: 1.0, two: 1.0 }]);
    }
    // Odds rounded down: fewer holders are on the safe side.
    let chosen = chosen.value().next_down();
    let (first, law) = masses(floor, (1.0 - chosen).next_up(), Double::from(chosen));
    let total = law.iter().fold(Double::ZERO, |sum, &mass| sum + mass);
    // `tails[i]` is the probability of at least `first + i`.
    let mut tails = vec![0.0; law.len() + 1];
    let mut above = Double::ZERO;
    for (tail, &mass) in tails.iter_mut().zip(&law).rev() {
        above = above + mass;
        *tail = (above / total).value();
    }
    let mut below = Double::ZERO;
    let low = law.iter().take_while(|&&mass| {
        below = below + mass;
        (below / total).value() <= RARE
    });
    let low = low.count().min(law.len() - 1);
    let high = tails.partition_point(|&tail| tail > FEW).max(low + 1).min(law.len());
    let range = (high - low) as f64;
    let deviation = libm::sqrt(floor as f64 * chosen * (1.0 - chosen));
    let rows = 80.0 * libm::sqrt((first + high as u64) as f64) + 8.0;
    let rows = rows.min((first + high as u64) as f64 + 2.0);
    let width = (deviation / 8.0).max(range * rows / ROWS).min(range / 8.0).max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 10^7")]
    let width = width as usize;

    // Whatever is not looked at has no holders at all.
    let mut starts: Vec<usize> = (low..high).step_by(width).collect();
    let rest = first + low as u64 > 0;
    if rest {
        starts.insert(0, 0);
    }
    let holders = |place: usize| {
        let start = starts[place];
        let end = starts.get(place + 1).copied().unwrap_or(law.len());
        let mass = law[start..end].iter().fold(Double::ZERO, |sum, &mass| sum + mass);
        // What the table leaves out is below the range of `f64`.
        let one = (mass / total).value() * (1.0 + MASS_ERROR) + f64::MIN_POSITIVE;
        let two = one * (tails[start] + tails[end]) * (1.0 + MASS_ERROR);
        let count = if rest && place == 0 { 0 } else { first + start as u64 };
        Ok(Holders { mixture: mixture(count)?, one, two: two.min(1.0) })
    };
    parallel::map(starts.len(), holders).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: HockeyStick, other: HockeyStick, context: &str) {
        let difference = (ours.delta - other.delta).abs();
        assert!(difference <= 200.0 * UNIT * other.delta + 1e-290, "{context}: {ours:?} {other:?}");
        for (ours, other) in [(ours.p, other.p), (ours.q, other.q)] {
            assert!((ours - other).abs() <= 1e-12 * other + 1e-290, "{context}: {ours} {other}");
        }
    }

    #[test]
    fn reporting_every_item_is_sampling_in_one_stage() -> Result<()> {
        for (rate, hidden, gamma) in
            [(0.5, 30, 1.0), (0.743, 100, 4.0), (0.01, 3, 1.0), (0.2, 90_000, 1.0), (0.9, 0, 2.0)]
        {
            let plain = CountSampling::new(rate, hidden)?;
            for (floor, dummies) in [(hidden, 0), (0, hidden)] {
                let ours = TwoStageCountSampling::new(rate, 7, 7, gamma, floor, dummies)?;
                assert!(ours.local_epsilon() <= 0.0);
                for epsilon in [0.0, 1e-3, 0.04, 0.7, 1.0, 3.0, 60.0] {
                    let context = format!("{rate} {floor} {dummies} {epsilon}");
                    close(ours.replace(epsilon), plain.replace(epsilon), &context);
                    close(ours.remove(epsilon), plain.remove(epsilon), &context);
                    close(ours.add(epsilon), plain.add(epsilon), &context);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn events_attain_the_divergence() -> Result<()> {
        for (rate, gamma, floor, dummies) in
            [(0.5, 1.0, 0, 40), (0.3, 3.0, 0, 900), (0.3, 3.0, 60, 0), (0.8, 12.0, 3000, 0)]
        {
            let ours = TwoStageCountSampling::new(rate, 12, 4, gamma, floor, dummies)?;
            for epsilon in [0.0, 0.01, 0.3, 0.8, 1.5, 3.0] {
                for stick in [ours.replace(epsilon), ours.remove(epsilon), ours.add(epsilon)] {
                    let gap = stick.p - libm::exp(epsilon) * stick.q;
                    let context = format!("{rate} {gamma} {floor} {epsilon}: {stick:?} {gap}");
                    assert!((gap - stick.delta).abs() <= 1e-12 * stick.p + 1e-290, "{context}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn grids_of_holders_are_above_the_sum_over_all_and_near_it() -> Result<()> {
        // The numbers of holders have a deviation of 22 and 39.
        for (floor, rate, epsilon) in [(2_000, 0.3, 0.25), (5_500, 0.5, 0.15)] {
            let ours = TwoStageCountSampling::new(rate, 10, 4, 1.0, floor, 0)?;
            assert!(ours.floor.len() < 200);
            let mut exact = 0.0;
            let low = floor * 3 / 10;
            let mut tail = 1.0;
            for count in low..floor / 2 {
                let mass = libm::exp(super::super::super::point_binomial::log_probability(
                    floor, 0.4, count,
                ));
                let part = CountSampling::new(rate, count)?;
                let one = 0.4 * 6.0 / 9.0 * (part.remove(epsilon).delta + part.add(epsilon).delta);
                let two = 0.4 * 3.0 / 9.0 * part.replace(epsilon).delta * (2.0 * tail - mass);
                exact += mass * (one + two);
                tail -= mass;
            }
            let bound = ours.replace(epsilon).delta;
            assert!(bound >= exact * (1.0 - 1e-9), "{floor}: {bound} {exact}");
            assert!(bound <= exact * 1.2, "{floor}: {bound} {exact}");
        }
        Ok(())
    }

    #[test]
    fn without_others_a_user_is_hidden_by_the_coin_alone() -> Result<()> {
        for epsilon in [0.0, 0.5, 2.0, 50.0] {
            let ours = TwoStageCountSampling::new(0.4, 10, 5, 1.0, 0, 0)?;
            // Only a one gives the user away, and one of two items is reported.
            let expected = 0.5 * 0.4;
            let delta = ours.remove(epsilon).delta;
            assert!((delta / expected - 1.0).abs() < 1e-13, "{epsilon}: {delta}");
            let nobody = TwoStageCountSampling::new(0.0, 10, 5, 2.0, 0, 3)?;
            assert_eq!(nobody.add(epsilon), HockeyStick::NONE);
            let all = TwoStageCountSampling::new(1.0, 10, 5, 1.0, 70, 70)?;
            assert!((all.remove(epsilon).delta - 0.5).abs() < 1e-13);
        }
        Ok(())
    }

    #[test]
    fn bad_parameters_are_named() {
        let large = TwoStageCountSampling::LARGEST_FLOOR + 1;
        for (argument, made) in [
            ("rate", TwoStageCountSampling::new(f64::NAN, 9, 3, 1.0, 0, 0)),
            ("domain_size", TwoStageCountSampling::new(0.5, 1, 1, 1.0, 0, 0)),
            ("reported", TwoStageCountSampling::new(0.5, 9, 10, 1.0, 0, 0)),
            ("reported", TwoStageCountSampling::new(0.5, 9, 0, 1.0, 0, 0)),
            ("gamma", TwoStageCountSampling::new(0.5, 9, 3, 0.5, 0, 0)),
            ("gamma", TwoStageCountSampling::new(0.5, 9, 3, f64::NAN, 0, 0)),
            ("floor", TwoStageCountSampling::new(0.5, 9, 3, 1.0, large, 0)),
            ("dummies", TwoStageCountSampling::new(0.5, 9, 3, 1.0, 0, large)),
        ] {
            let error = made.err();
            let named =
                matches!(error, Some(Error::Accounting { argument: a, .. }) if a == argument);
            assert!(named, "{argument}: {error:?}");
        }
    }
}
