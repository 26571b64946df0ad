//! One Gaussian against a mixture of two that are shifted in the same direction.

use super::normal::{
    Coefficient, UNIT, difference, log_sum, log_upper_tail, scaled_tail, upper_tail,
};

/// `[A N(0) - B N(s) - C N(m s)]_+` with unit variances, `s > 0` and `m >= 0`.
///
/// The caller rounds A up and B and C down: the integral rises with A and falls with B and C.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opposed {
    /// A, the weight of the one Gaussian.
    pub(super) single: Coefficient,
    /// B, the weight of the one at distance s.
    pub(super) near: Coefficient,
    /// C, the weight of the one at distance m s.
    pub(super) far: Coefficient,
    /// s, the shift over the standard deviation; it is known within a relative `2 u`.
    pub(super) shift: f64,
}

/// The integral of an [`Opposed`], and the half-line on which the integrand is positive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Integral {
    /// An upper bound of the integral.
    pub(super) bound: f64,
    /// The integrand is positive below this point.
    pub(super) crossing: f64,
    /// The masses below the crossing of N(0), N(s) and N(m s).
    pub(super) masses: [f64; 3],
}

impl Integral {
    const NONE: Self = Self { bound: 0.0, crossing: f64::NEG_INFINITY, masses: [0.0; 3] };
}

impl Opposed {
    /// The integral where the far component is at distance `multiple * s`.
    ///
    /// The logarithm F of the ratio `(B N(s) + C N(m s)) / (A N(0))` is convex and increasing, so
    /// there is one crossing; it is bracketed by the smaller crossing z0 of the two components alone
    /// (there `0 <= F <= ln 2`) and `z0 - ln 2 / s` (no slope is below s), and Newton's method from
    /// z0 falls towards it without passing it. A crossing that is off by `d` costs the integral at
    /// most `d` times the integrand there; that is added to the bound, so that no convergence is
    /// assumed.
    pub(super) fn integral(&self, multiple: f64) -> Integral {
        let Self { mut single, near, mut far, shift } = *self;
        if multiple <= 0.0 && !far.is_zero() {
            // The far component lies on the single one.
            single = Coefficient::new((single.linear - far.linear) * (1.0 + 2.0 * UNIT));
            far = Coefficient::new(0.0);
        }
        if single.linear.is_nan() || single.linear <= 0.0 {
            return Integral::NONE;
        }
        if shift > 1e150 || (near.is_zero() && far.is_zero()) {
            // The Gaussians do not overlap, to within any rounding.
            return Integral {
                bound: single.linear,
                crossing: f64::INFINITY,
                masses: [1.0, 0.0, 0.0],
            };
        }
        let distance = multiple * shift;
        let near_level = near.logarithm - single.logarithm - 0.5 * shift * shift;
        let far_level = if far.is_zero() {
            f64::NEG_INFINITY
        } else {
            far.logarithm - single.logarithm - 0.5 * distance * distance
        };
        let ratio = |z: f64| (near_level + shift * z, far_level + distance * z);
        let mut z = (-near_level / shift).min(-far_level / distance.max(f64::MIN_POSITIVE));
        let mut doubt = 0.0;
        for _ in 0..100 {
            let (first, second) = ratio(z);
            let level = log_sum(first, second);
            let share = (second - level).exp(); // of the far component
            // Sums are as exact as their largest part; a branch without a share does not matter.
            let near_part = 3.0 * (near.logarithm.abs() + near_level.abs() + (shift * z).abs());
            let far_part = if share > 0.0 {
                3.0 * (far.logarithm.abs() + far_level.abs() + (distance * z).abs())
            } else {
                0.0
            };
            let rounding = UNIT
                * (4.0
                    + 3.0 * single.logarithm.abs()
                    + (1.0 - share) * near_part
                    + share * far_part);
            doubt = level.abs() + rounding;
            if level <= rounding.max(1e-14) {
                break;
            }
            let slope = shift.mul_add(1.0 - share, distance * share).max(shift);
            z -= level / slope;
        }
        self.evaluate(single, far, distance, z, doubt)
    }

    fn evaluate(
        &self,
        single: Coefficient,
        far: Coefficient,
        distance: f64,
        z: f64,
        doubt: f64,
    ) -> Integral {
        let Self { near, shift, .. } = *self;
        let own = scaled_tail(single, (-z, 0.0), 0.0);
        let (near_place, far_place) = (difference(shift, z), difference(distance, z));
        let first = scaled_tail(near, near_place, UNIT * shift);
        let second = scaled_tail(far, far_place, 3.0 * UNIT * distance);
        // How much a better crossing could add: the integrand next to it is at most this density
        // times e^doubt - 1, over a length of doubt / s.
        let reach = doubt / shift;
        let growth = z.abs() * reach;
        let missed = if own.value > 0.0 && growth < 1.0 {
            3.0 * own.value * (z.abs() + 1.0) * doubt.exp_m1() * reach
        } else {
            let logarithm = single.logarithm + log_upper_tail(-z) + growth + 1.0;
            (logarithm + ((z.abs() + 1.0) * reach).ln() + doubt.exp_m1().ln()).exp()
        };
        let error = own.error
            + first.error
            + second.error
            + missed
            + 4.0 * UNIT * (own.value + first.value + second.value);
        let value = (own.value - first.value - second.value).max(0.0);
        let bound = ((value + error) * (1.0 + 4.0 * UNIT)).min(single.linear);
        let mass = |scaled: f64, coefficient: Coefficient, x: f64| {
            if coefficient.linear > 0.0 && coefficient.linear.is_finite() {
                scaled / coefficient.linear
            } else {
                upper_tail(x)
            }
        };
        Integral {
            bound,
            crossing: z,
            masses: [
                mass(own.value, single, -z),
                mass(first.value, near, shift - z),
                mass(second.value, far, distance - z),
            ],
        }
    }

    /// The integral with the far component infinitely far away: the limit from below.
    pub(super) fn limit(&self) -> Integral {
        let alone = Self { far: Coefficient::new(0.0), ..*self };
        let mut limit = alone.integral(1.0);
        limit.masses[2] = 0.0;
        limit
    }

    /// From which multiple on the integral equals its limit to within `2^-54`, relatively.
    ///
    /// At the limit's crossing z the far component costs `C P[Z < z - m s]`, at most
    /// `C exp(-(m s - z)^2 / 2)`.
    pub(super) fn saturation(&self, limit: &Integral) -> f64 {
        if limit.bound <= 0.0 || !limit.crossing.is_finite() {
            return 0.0;
        }
        let exponent = self.far.logarithm - limit.bound.ln() + 37.5;
        // At 8.6 standard deviations the far component is out of the event, too.
        (limit.crossing + (2.0 * exponent.max(37.0)).sqrt()) / self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integral by Simpson's rule on the positive part, from its own crossing by bisection.
    fn by_quadrature(a: f64, b: f64, c: f64, shift: f64, multiple: f64) -> f64 {
        let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * core::f64::consts::PI).sqrt();
        let integrand =
            |z: f64| a * density(z) - b * density(z - shift) - c * density(z - multiple * shift);
        let (mut low, mut high) = (-60.0, 60.0);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            let ratio = b / a * (shift * middle - 0.5 * shift * shift).exp()
                + c / a * (multiple * shift * middle - 0.5 * (multiple * shift).powi(2)).exp();
            if ratio < 1.0 { low = middle } else { high = middle }
        }
        let (start, cells) = (low.min(9.0) - 12.0, 40_000_u32);
        let end = low.min(9.0);
        let step = (end - start) / f64::from(cells);
        let total: f64 = (0..=cells)
            .map(|i| {
                let weight = match i {
                    0 => 1.0,
                    i if i == cells => 1.0,
                    i if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                weight * integrand(start + step * f64::from(i))
            })
            .sum();
        total * step / 3.0
    }

    #[test]
    fn the_bound_is_the_integral_and_not_below_it() {
        for a in [1.0, 1e-3] {
            for (b, c) in [(a, 0.0), (1.5 * a, 0.0), (1.2 * a, 3.0 * a), (20.0 * a, 1e-3 * a)] {
                for shift in [0.05, 0.4, 1.0, 3.0] {
                    for multiple in [1.0, 2.0, 7.0] {
                        let pair = Opposed {
                            single: Coefficient::new(a),
                            near: Coefficient::new(b),
                            far: Coefficient::new(c),
                            shift,
                        };
                        let bound = pair.integral(multiple).bound;
                        let exact = by_quadrature(a, b, c, shift, multiple);
                        let allowed = 1e-11 * exact + 1e-15 * a;
                        assert!(bound >= exact - allowed, "{a} {b} {c} {shift} {multiple}");
                        assert!(bound <= exact + allowed, "{bound} {exact} {shift} {multiple}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_integral_rises_with_the_distance_towards_its_limit() {
        let pair = Opposed {
            single: Coefficient::new(0.1),
            near: Coefficient::new(0.12),
            far: Coefficient::new(0.3),
            shift: 0.7,
        };
        let limit = pair.limit();
        let mut last = 0.0;
        for multiple in 0..40_u32 {
            let bound = pair.integral(f64::from(multiple)).bound;
            assert!(bound >= last * (1.0 - 1e-13) && bound <= limit.bound * (1.0 + 1e-13));
            last = bound;
        }
        let saturated = pair.integral(pair.saturation(&limit)).bound;
        assert!((saturated / limit.bound - 1.0).abs() < 1e-14);
    }
}
