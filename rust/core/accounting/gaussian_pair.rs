//! One Gaussian against a shifted one.

use super::normal::{Coefficient, UNIT, difference, log_upper_tail, scaled_tail, upper_tail};

/// `[A N(0) - B N(s)]_+` with unit variances and `s > 0`.
///
/// The caller rounds A up and B down: the integral rises with A and falls with B.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opposed {
    /// A, the weight of the one Gaussian.
    pub(super) single: Coefficient,
    /// B, the weight of the one at distance s.
    pub(super) near: Coefficient,
    /// s, the shift over the standard deviation; it is known within a relative `2 u`.
    pub(super) shift: f64,
}

/// The integral of an [`Opposed`], and the half-line on which the integrand is positive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Integral {
    /// An upper bound of the integral.
    pub(super) bound: f64,
    /// The masses of N(0) and N(s) where the integrand is positive.
    pub(super) masses: [f64; 2],
}

impl Opposed {
    /// The integral: positive below `z = s/2 - ln(B/A) / s`.
    ///
    /// A crossing that is off by `d` costs the integral at most `d` times the integrand there; that
    /// is added to the bound.
    pub(super) fn integral(&self) -> Integral {
        let Self { single, near, shift } = *self;
        if single.linear.is_nan() || single.linear <= 0.0 {
            return Integral { bound: 0.0, masses: [0.0; 2] };
        }
        if shift > 1e150 || near.is_zero() {
            // The Gaussians do not overlap, to within any rounding.
            return Integral { bound: single.linear, masses: [1.0, 0.0] };
        }
        let level = near.logarithm - single.logarithm - 0.5 * shift * shift;
        let z = -level / shift;
        let doubt = UNIT
            * (4.0
                + 3.0 * single.logarithm.abs()
                + 3.0 * (near.logarithm.abs() + level.abs() + (shift * z).abs()));
        let own = scaled_tail(single, (-z, 0.0), 0.0);
        let first = scaled_tail(near, difference(shift, z), UNIT * shift);
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
        let error = own.error + first.error + missed + 4.0 * UNIT * (own.value + first.value);
        let value = (own.value - first.value).max(0.0);
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
            masses: [mass(own.value, single, -z), mass(first.value, near, shift - z)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integral by Simpson's rule on the positive part, from its own crossing by bisection.
    fn by_quadrature(a: f64, b: f64, shift: f64) -> f64 {
        let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * core::f64::consts::PI).sqrt();
        let integrand = |z: f64| a * density(z) - b * density(z - shift);
        let (mut low, mut high) = (-60.0, 60.0);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            let ratio = b / a * (shift * middle - 0.5 * shift * shift).exp();
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
            for b in [a, 1.5 * a, 1.2 * a, 20.0 * a] {
                for shift in [0.05, 0.4, 1.0, 3.0] {
                    let pair =
                        Opposed { single: Coefficient::new(a), near: Coefficient::new(b), shift };
                    let bound = pair.integral().bound;
                    let exact = by_quadrature(a, b, shift);
                    let allowed = 1e-11 * exact + 1e-15 * a;
                    assert!(bound >= exact - allowed, "{a} {b} {shift}");
                    assert!(bound <= exact + allowed, "{bound} {exact} {shift}");
                }
            }
        }
    }
}
