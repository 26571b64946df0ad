//! The mean over sets of how much one Gaussian exceeds a near one and a share of a far one.

use super::gaussian_pair::Opposed;
use super::normal::{
    Coefficient, Rounded, UNIT, difference, log_upper_tail, scaled_tail, upper_tail,
};
use super::weighted::Window;

/// The smallest `sum_i w_i int [A N(0) - B N(s) - C c_i N(k_i s)]_+`, `k_i = i + offset`, over all
/// shares `c_i >= 0` with `sum_i w_i c_i <= 1`, where w is `Bin(n, q)`.
///
/// The caller rounds A and s up and C and B down: the sum rises with the former and falls with the
/// latter. They are then taken as exact.
///
/// The sum is convex in the shares, and its derivative in `w_i c_i` is `-C` times the far mass of
/// the i-th event. So all i with `c_i > 0` share one far mass: seen from the far Gaussian they cross
/// at one place t, where `C c_i N(t; 0) = [A N(t; k_i s) - B N(t; (k_i - 1) s)]_+`; that is zero for
/// all i from some one on, and those cross where the near Gaussian alone bids them. `G(t)`, the sum
/// of the right sides over the density at t, rises with t, and the best t has `G(t) = C`. Any
/// smaller t gives shares that are allowed, hence a bound, which is an explicit function of t.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sets {
    pub(super) trials: u64,
    pub(super) rate: f64,
    /// A, the weight of the one Gaussian.
    pub(super) single: Coefficient,
    /// B, the weight of the one at distance s.
    pub(super) near: Coefficient,
    /// C, the weight of those at distances `k_i s`.
    pub(super) far: Coefficient,
    /// s, the shift over the standard deviation.
    pub(super) shift: f64,
    /// 0 or 1.
    pub(super) offset: u64,
}

/// An upper bound of the smallest sum, and the masses of the events to the nearest.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    pub(super) bound: f64,
    /// The masses of the one Gaussian, of the near ones, and of the far one at its share of each.
    pub(super) masses: [f64; 3],
    /// The smallest share is above zero: all events are one, seen from the far Gaussian.
    pub(super) shared: bool,
}

/// What is left out on either side may be so likely at first; then what is left out must be below
/// this part of the result.
const NEGLIGIBLE: f64 = 1e-20;
const FRACTION: f64 = UNIT;

/// The least probability that is looked at.
const RAREST: f64 = 1e-300;

/// From this shift on Gaussians do not overlap, unless one weighs far more.
const WIDE: f64 = 100.0;

/// Windows longer than this are sampled first.
const LONG: usize = 160;

impl Sets {
    /// Finds it.
    pub(super) fn mean(&self) -> Mean {
        let alone = Opposed { single: self.single, near: self.near, shift: self.shift }.integral();
        let unshared = Mean {
            bound: alone.bound,
            masses: [alone.masses[0], alone.masses[1], 0.0],
            shared: false,
        };
        if alone.bound <= 0.0 || self.near.is_zero() || self.shift > 1e150 {
            return unshared;
        }
        if self.far.is_zero() {
            // The far Gaussian counts for nothing; its first event is that of the nearest one.
            let place = self.threshold(self.offset);
            let far = upper_tail(place);
            let masses = [alone.masses[0], alone.masses[1], far];
            return Mean { masses, shared: true, ..unshared };
        }
        if self.saves_nothing(self.low_guess(), alone.bound) {
            return unshared;
        }
        let mut negligible = NEGLIGIBLE;
        loop {
            let window = Window::new(self.trials, self.rate, negligible);
            if self.saves_nothing(window.first + self.offset, alone.bound) {
                return unshared;
            }
            let mut mean = self.within(&window, &unshared);
            let rest = window.outside * alone.bound;
            let enough = FRACTION * mean.bound;
            mean.bound = (mean.bound + rest) * (1.0 + 4.0 * UNIT);
            if mean.bound.is_nan() || mean.bound >= alone.bound {
                return unshared;
            }
            if rest <= enough || negligible <= RAREST {
                return mean;
            }
            negligible = (0.01 * enough / alone.bound).min(1e-3 * negligible).max(RAREST);
        }
    }

    /// Where the far Gaussian at `multiple * s` begins to count, seen from it.
    fn threshold(&self, multiple: u64) -> f64 {
        (multiple as f64 - 0.5) * self.shift + self.gap() / self.shift
    }

    /// `ln(B / A)`.
    fn gap(&self) -> f64 {
        self.near.logarithm - self.single.logarithm
    }

    /// Whether all shares, given to sets from this multiple on, change the bound by less than
    /// rounding: the far mass of their events is too small.
    fn saves_nothing(&self, multiple: u64, bound: f64) -> bool {
        self.far.logarithm + log_upper_tail(self.threshold(multiple)) < bound.ln() - 38.0
    }

    /// A multiple below which next to no sets are.
    fn low_guess(&self) -> u64 {
        let (mean, size) = (self.trials as f64 * self.rate, self.trials as f64);
        let deviation = (size * self.rate * (1.0 - self.rate)).sqrt();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "any multiple will do, and the cast saturates"
        )]
        let low = (mean - 10.0 * deviation - 40.0).max(0.0) as u64;
        low + self.offset
    }

    fn within(&self, window: &Window, unshared: &Mean) -> Mean {
        let sum = Sum { sets: self, window, gap: self.gap() };
        // Beyond this the exponents lose too many digits, while nothing overlaps.
        if self.shift > WIDE && self.gap() < 0.25 * self.shift * self.shift {
            return sum.apart(unshared);
        }
        if let Some((t, used)) = sum.crossing() {
            return sum.at(t, used, unshared);
        }
        // The only set lies on the far Gaussian, which hides all of it.
        let known = 8.0 + 4.0 * (self.single.logarithm.abs() + self.far.logarithm.abs());
        let bound = window.weights[0] * self.single.linear * known * UNIT;
        Mean { bound, masses: [0.0; 3], shared: true }
    }
}

/// The sum over a window.
struct Sum<'a> {
    sets: &'a Sets,
    window: &'a Window,
    gap: f64,
}

/// `G(t) / C`, its slope, and how much rounding may have moved it.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    value: f64,
    slope: f64,
    error: f64,
}

impl Sum<'_> {
    fn multiple(&self, index: usize) -> f64 {
        (self.window.first + self.sets.offset + index as u64) as f64
    }

    /// How many sets of the window have a share at t.
    fn sharing(&self, t: f64) -> usize {
        let reached = (t - self.gap / self.sets.shift) / self.sets.shift + 0.5;
        let count = (reached - self.multiple(0)).ceil().max(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and the cast saturates"
        )]
        let count = count as usize;
        count.min(self.window.weights.len())
    }

    /// `rho = B N(t; (k-1) s) / (A N(t; k s))` and `1 - rho`, and the error of either in units of
    /// rounding; None if rho is not below one for sure. Such a set gets no share.
    fn overlap(&self, t: f64, distance: f64) -> Option<(f64, f64, f64)> {
        let Sets { single, near, shift, .. } = *self.sets;
        let logarithm = self.gap - shift * (t - distance) - 0.5 * shift * shift;
        let doubt = 8.0
            + 6.0 * (single.logarithm.abs() + near.logarithm.abs())
            + 6.0 * shift * (t.abs() + distance + shift);
        (logarithm < -doubt * UNIT).then(|| {
            let lacks = -logarithm.exp_m1();
            (1.0 - lacks, lacks, doubt)
        })
    }

    /// `G(t) / C`, from every `stride`-th set.
    fn used(&self, t: f64, stride: usize) -> Used {
        let Sets { single, far, shift, .. } = *self.sets;
        let level = single.logarithm - far.logarithm;
        let known = 4.0 + 2.0 * (single.logarithm.abs() + far.logarithm.abs());
        let mut used = Used::default();
        let count = self.sharing(t);
        for index in (0..count).step_by(stride) {
            let distance = self.multiple(index) * shift;
            let Some((rho, lacks, doubt)) = self.overlap(t, distance) else { continue };
            let exponent = distance * (t - 0.5 * distance);
            let term = self.window.weights[index] * (level + exponent).exp();
            used.value += term * lacks;
            used.slope += term * (distance * lacks + shift * rho);
            let exact = known + 4.0 * distance * (t.abs() + 0.5 * distance);
            used.error += term * (lacks * exact + rho * doubt);
        }
        let many = stride as f64;
        used.error = (used.error + used.value * (8.0 + count as f64)) * UNIT * many;
        used.value *= many;
        used.slope *= many;
        used
    }

    /// A place at which `G(t)` is below C by no more than rounding, and G there; None if it nowhere
    /// is so large.
    fn crossing(&self) -> Option<(f64, Used)> {
        let low = self.sets.threshold(self.window.first + self.sets.offset);
        let high = self.beyond()?;
        let length = self.window.weights.len();
        let (stride, width) = if length > LONG { (length / 48, 1e-5) } else { (1, 1e-2) };
        let (mut place, mut used) = self.root(high, (low, high), stride, 1.0, width);
        let mut slack = 1.5 * (used.error / used.value).max(16.0 * UNIT);
        while slack < 0.5 {
            (place, used) = self.root(place, (low, high), 1, 1.0 - slack, 0.05 * slack);
            if used.value + used.error <= 1.0 {
                return Some((place, used));
            }
            slack *= 2.0;
        }
        // Rounding leaves nothing that is known: no shares at all.
        Some((f64::NEG_INFINITY, Used::default()))
    }

    /// A place at which `G(t)` is at least C: one set alone would use up all of it there.
    fn beyond(&self) -> Option<f64> {
        let Sets { single, far, shift, .. } = *self.sets;
        let length = self.window.weights.len();
        let mut best = f64::INFINITY;
        for index in (0..length).step_by(length.div_ceil(32)).chain([length - 1]) {
            let (multiple, weight) = (self.multiple(index), self.window.weights[index]);
            let distance = multiple * shift;
            let start = distance + (self.gap / shift - 0.5 * shift);
            let place = if multiple > 0.0 {
                let wanted = far.logarithm - single.logarithm - weight.ln();
                let twice = (wanted + core::f64::consts::LN_2) / distance + 0.5 * distance;
                twice.max(start + core::f64::consts::LN_2 / shift)
            } else {
                // 1 - rho grows to one and no further.
                let part = (far.logarithm - single.logarithm - weight.ln()).exp();
                if part >= 1.0 {
                    continue;
                }
                start - (-part).ln_1p() / shift + 1e-9 / shift
            };
            best = best.min(place);
        }
        (best < f64::INFINITY).then_some(best)
    }

    /// Newton's method for `ln(G(t) / C) = ln(target)` between safe ends.
    fn root(
        &self,
        start: f64,
        (mut low, mut high): (f64, f64),
        stride: usize,
        target: f64,
        width: f64,
    ) -> (f64, Used) {
        let mut t = start;
        let mut used = self.used(t, stride);
        for _ in 0..200 {
            let off = (used.value / target).ln();
            if off.abs() <= width {
                break;
            }
            if off > 0.0 {
                high = high.min(t);
            } else {
                low = low.max(t);
            }
            let mut next = t - off * used.value / used.slope;
            if !(next > low && next < high) {
                next = 0.5 * (low + high);
            }
            if (next - t).abs() <= UNIT * t.abs() || high - low <= 4.0 * UNIT * t.abs() {
                break;
            }
            t = next;
            used = self.used(t, stride);
        }
        (t, used)
    }

    /// The bound for the shares that belong to t.
    fn at(&self, t: f64, used: Used, unshared: &Mean) -> Mean {
        let Sets { single, near, far, shift, .. } = *self.sets;
        let unit = Coefficient::new(1.0);
        // Tails are used twice where weights cannot take them out of range.
        let twice = single.logarithm.abs().max(near.logarithm.abs()) < 40.0 && t + shift < 36.0;
        let tail = |multiple: f64, coefficient: Coefficient| {
            let distance = multiple * shift;
            let lost = multiple.mul_add(shift, -distance);
            let (x, low) = difference(t, distance);
            scaled_tail(coefficient, (x, low - lost), UNIT * UNIT * distance)
        };
        let scaled = |Rounded { value, error }: Rounded, by: f64| Rounded {
            value: value * by,
            error: error * by,
        };
        let mut gains = Rounded { value: 0.0, error: 0.0 };
        let (mut rest, mut masses, mut magnitude) = (0.0, [0.0; 3], 0.0);
        let mut shared = true;
        let mut before: (Option<usize>, Rounded) = (None, Rounded { value: 0.0, error: 0.0 });
        let count = if t.is_finite() { self.sharing(t) } else { 0 };
        for (index, &weight) in self.window.weights.iter().enumerate() {
            let multiple = self.multiple(index);
            if index >= count || self.overlap(t, multiple * shift).is_none() {
                shared = false;
                rest += weight;
                continue;
            }
            let (own, other);
            if twice {
                let last = if before.0.is_some_and(|last| last + 1 == index) {
                    before.1
                } else {
                    tail(multiple - 1.0, unit)
                };
                let here = tail(multiple, unit);
                before = (Some(index), here);
                own = scaled(here, single.linear);
                other = scaled(last, near.linear);
                masses[0] += weight * here.value;
                masses[1] += weight * last.value;
            } else {
                own = tail(multiple, single);
                other = tail(multiple - 1.0, near);
                masses[0] += weight * upper_tail(t - multiple * shift);
                masses[1] += weight * upper_tail(t - (multiple - 1.0) * shift);
            }
            gains.value += weight * (own.value - other.value);
            gains.error += weight * (own.error + other.error);
            magnitude += weight * (own.value + other.value);
        }
        let mut bound = rest * unshared.bound;
        masses[0] += rest * unshared.masses[0];
        masses[1] += rest * unshared.masses[1];
        if count > 0 {
            let away = scaled_tail(far, (t, 0.0), 0.0);
            masses[2] = upper_tail(t);
            let spent = (used.value - used.error).max(0.0) * (away.value - away.error).max(0.0);
            let rounding = (8.0 + count as f64) * UNIT * magnitude + 8.0 * UNIT * spent;
            bound += (gains.value - spent).max(0.0) + gains.error + rounding;
        }
        bound *= 1.0 + (8.0 + self.window.weights.len() as f64) * UNIT;
        Mean { bound, masses, shared }
    }

    /// Where Gaussians do not overlap a share hides nothing but a set that lies on the far one.
    fn apart(&self, unshared: &Mean) -> Mean {
        let weights = &self.window.weights;
        let total: f64 = weights.iter().sum();
        let mut mean = *unshared;
        let mut bound = total * unshared.bound;
        if self.multiple(0) <= 0.0 {
            let kept = (weights[0] * unshared.bound - self.sets.far.linear).max(0.0);
            bound = (total - weights[0]).max(0.0) * unshared.bound + kept;
            mean.masses[2] = if kept > 0.0 { 1.0 } else { 0.0 };
        }
        mean.bound =
            bound * (1.0 + (8.0 + weights.len() as f64) * UNIT) + 4.0 * UNIT * unshared.bound;
        mean
    }
}
