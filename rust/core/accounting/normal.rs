//! Tails of the normal distribution, with a bound of their rounding error.

use core::f64::consts::FRAC_1_SQRT_2;

/// The unit of rounding of `f64`: `2^-53`.
pub(super) const UNIT: f64 = f64::EPSILON / 2.0;

/// `ln(sqrt(2 pi))`.
const LN_SQRT_2_PI: f64 = 0.918_938_533_204_672_8;

/// Beyond this the tail is computed from its logarithm.
const FAR: f64 = 8.0;

/// Up to here the tail itself is a normal number.
const FARTHEST: f64 = 37.3;

/// A number, and by how much rounding may have moved it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rounded {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// A positive coefficient that may be outside the range of `f64`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Coefficient {
    /// The coefficient; zero or infinity out of range.
    pub(super) linear: f64,
    /// Its natural logarithm; negative infinity for zero.
    pub(super) logarithm: f64,
}

impl Coefficient {
    /// A coefficient that is a number.
    pub(super) fn new(linear: f64) -> Self {
        Self { linear, logarithm: linear.ln() }
    }

    /// A coefficient known by its logarithm.
    pub(super) fn from_logarithm(logarithm: f64) -> Self {
        Self { linear: logarithm.exp(), logarithm }
    }

    /// Whether it is zero.
    pub(super) fn is_zero(self) -> bool {
        self.logarithm == f64::NEG_INFINITY
    }
}

/// `P[Z > x]` for a standard normal Z.
///
/// The relative error is at most `(4 + 2 x^2) u` where the result is a normal number: `erfc` is
/// within one unit in the last place, and the rounding of `x / sqrt(2)` moves a tail by at most
/// `(x^2 + 1)` times as much.
pub(super) fn upper_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// `P[Z > x + low]` for a small `low`, and a bound of the relative error in units of rounding.
///
/// To first order the tail is corrected for `low` and for the rounding of `x / sqrt(2)`; the
/// density over the tail, x + 1/x, is right to a tenth for x > 2, and so is the correction.
fn corrected_tail(x: f64, low: f64) -> (f64, f64) {
    /// What `FRAC_1_SQRT_2` lacks.
    const REST: f64 = -4.833_646_656_726_457e-17;
    let argument = x * FRAC_1_SQRT_2;
    let tail = 0.5 * libm::erfc(argument);
    if x <= 2.0 {
        // The density is at most x + 1 times the tail above zero, and below half of it under zero.
        let above = x.max(0.0);
        return (tail, 5.0 + 2.0 * above * (above + 1.0) + low.abs() * (above + 1.0) / UNIT);
    }
    let missed = product_error(x, FRAC_1_SQRT_2, argument) + x * REST + low * FRAC_1_SQRT_2;
    let slope = 2.0 * argument + 1.0 / argument;
    (tail * (1.0 - slope * missed), 6.0 + 0.1 * slope * missed.abs() / UNIT)
}

/// `a b - product`, exactly, where `product` is the rounded product (Dekker's method).
fn product_error(a: f64, b: f64, product: f64) -> f64 {
    let split = |x: f64| {
        let scaled = 134_217_729.0 * x;
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
    ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
}

/// A difference, and what its rounding lost (Knuth's method).
pub(super) fn difference(a: f64, b: f64) -> (f64, f64) {
    let rounded = a - b;
    let back = rounded - a;
    (rounded, (a - (rounded - back)) - (b + back))
}

/// `ln P[Z > x]`, finite for every finite x with a finite square.
pub(super) fn log_upper_tail(x: f64) -> f64 {
    if x > FAR {
        -0.5 * x * x - LN_SQRT_2_PI + mills_ratio(x).ln()
    } else if x > -1.0 {
        upper_tail(x).ln()
    } else {
        (-upper_tail(-x)).ln_1p()
    }
}

/// `P[Z > x]` over the density at x, for x of at least [`FAR`].
///
/// Laplace's continued fraction `1/(x + 1/(x + 2/(x + ...)))`; its approximants enclose the value,
/// and at depth 24 (8 beyond 40) two neighbours differ by less than one unit of rounding for x >= 8.
fn mills_ratio(x: f64) -> f64 {
    let depth: u32 = if x > 40.0 { 8 } else { 24 };
    let mut denominator = x;
    for level in (1..=depth).rev() {
        denominator = x + f64::from(level) / denominator;
    }
    1.0 / denominator
}

/// `coefficient * P[Z > x + low]`, where x is known within `doubt`.
///
/// The density is at most `|x| + 1` times the tail, so a shift of x by `doubt` moves the tail by at
/// most that many times `doubt`, relatively; the exponential of a logarithm adds its own magnitude.
pub(super) fn scaled_tail(coefficient: Coefficient, (x, low): (f64, f64), doubt: f64) -> Rounded {
    if coefficient.is_zero() {
        return Rounded { value: 0.0, error: 0.0 };
    }
    let shift = (x.abs() + 1.0) * doubt;
    if x <= FARTHEST && coefficient.linear.is_normal() {
        let (tail, units) = corrected_tail(x, low);
        let value = coefficient.linear * tail;
        if value > 1e-305 && tail > 1e-305 {
            return Rounded { value, error: value * (UNIT * (units + 4.0) + shift) };
        }
    }
    let logarithm = log_upper_tail(x);
    let value = (coefficient.logarithm + logarithm).exp();
    let magnitude = coefficient.logarithm.abs() + logarithm.abs() + x * x;
    let relative = UNIT * (3.0 * magnitude + 12.0) + shift + (x.abs() + 1.0) * low.abs();
    // What is below the range of f64 has an error of at most the smallest positive number.
    let underflow = if value < 1e-290 { f64::from_bits(1) } else { 0.0 };
    Rounded { value, error: value * relative + underflow }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x, P[Z > x] and its logarithm, computed with 40 digits.
    #[expect(clippy::excessive_precision, clippy::approx_constant, reason = "as computed")]
    const REFERENCE: [(f64, f64, f64); 12] = [
        (-8.0, 0.999_999_999_999_999_378, -6.220_960_574_271_786_06e-16),
        (-1.0, 0.841_344_746_068_542_949, -0.172_753_779_023_449_89),
        (-0.3, 0.617_911_422_188_952_633, -0.481_410_161_588_481_205),
        (0.0, 0.5, -0.693_147_180_559_945_309),
        (0.5, 0.308_537_538_725_986_896, -1.175_911_761_593_618_61),
        (1.0, 0.158_655_253_931_457_051, -1.841_021_645_009_263_51),
        (5.0, 2.866_515_718_791_939_12e-7, -15.064_998_393_988_725_7),
        (7.9, 1.394_517_146_659_264_28e-15, -34.206_228_170_981_716),
        (8.1, 2.747_959_392_398_228_49e-16, -35.830_502_890_801_471_8),
        (20.0, 2.753_624_118_606_233_7e-89, -203.917_155_371_097_264),
        (30.0, 4.906_713_927_148_187_06e-198, -454.321_243_956_343_197),
        (37.0, 5.725_571_222_524_576_82e-300, -689.030_585_576_890_594),
    ];

    #[test]
    fn tails_are_within_their_stated_error() {
        for (x, tail, logarithm) in REFERENCE {
            let allowed = UNIT * (4.0 + 2.0 * x * x);
            assert!((upper_tail(x) / tail - 1.0).abs() <= allowed, "{x}");
            let error = (log_upper_tail(x) - logarithm).abs();
            assert!(error <= allowed + 4.0 * UNIT * logarithm.abs(), "{x}: {error}");
            for scale in [1.0, 1e-200, 1e200] {
                let Rounded { value, error } = scaled_tail(Coefficient::new(scale), (x, 0.0), 0.0);
                assert!((value - scale * tail).abs() <= error, "{scale} {x}");
                assert!(error <= 1e-12 * value + 1e-300, "{scale} {x}: {error}");
            }
        }
        for (x, logarithm) in [
            (50.0, -1_254.831_361_139_419_9),
            (1e3, -500_007.826_694_812_2),
            (1e5, -5_000_000_012.431_864),
        ] {
            assert!((log_upper_tail(x) / logarithm - 1.0).abs() <= 4.0 * UNIT, "{x}");
        }
    }

    #[test]
    fn a_coefficient_out_of_range_meets_a_tail_out_of_range() {
        // e^800 P[Z > 40] = e^(800 - 804.608...).
        let Rounded { value, error } =
            scaled_tail(Coefficient::from_logarithm(800.0), (40.0, 0.0), 0.0);
        let exact = (800.0_f64 - 804.608_442_013_753_8).exp();
        assert!((value - exact).abs() <= error + 1e-12 * exact, "{value} {exact}");
    }
}
