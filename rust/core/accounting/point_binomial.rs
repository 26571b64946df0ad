//! Binomial probabilities.

use core::f64::consts::TAU;

use super::double::Double;
use crate::stirling::stirling_error;

/// `ln Pr[Bin(n, p) = k]`, for n up to 2^53 and p in [0, 1]; negative infinity where k is above n.
///
/// The saddle-point form of Loader, "Fast and accurate computation of binomial probabilities"
/// (2000): `n D(k/n || p)` is a sum of two deviances that are not negative, computed from means
/// that are exact to twice the working precision, so nothing cancels at any n. The error of the
/// logarithm l, and with it the relative error of `e^l`, is at most `(16 + 12 |l|) 2^-53`; near the
/// mode it is about 1e-15. Two thirds of the part that grows with l are the worst case of rounding
/// `t = (mean - k) / k`; the largest error measured is a third of the bound.
pub(super) fn log_probability(n: u64, p: f64, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    let size = n as f64;
    let rest = n - k;
    if k == 0 {
        return if n == 0 { 0.0 } else { size * libm::log1p(-p) };
    }
    if rest == 0 {
        return size * libm::log(p);
    }
    if p <= 0.0 || p >= 1.0 {
        return f64::NEG_INFINITY;
    }
    let mean = Double::product(size, p);
    let (k_float, rest_float) = (k as f64, rest as f64);
    let deviances = deviance(k_float, mean) + deviance(rest_float, Double::from(size) - mean);
    let errors = stirling_error(n) - stirling_error(k) - stirling_error(rest);
    errors - 0.5 * libm::log(TAU * k_float * (rest_float / size)) - deviances
}

/// `x ln(x / m) + m - x`, without cancellation.
fn deviance(x: f64, m: Double) -> f64 {
    let t = ((m.high - x) + m.low) / x;
    if t < -0.5 {
        let logarithm =
            if m.high < 1e-280 { libm::log(x) - libm::log(m.high) } else { libm::log(x / m.high) };
        return x * logarithm - (x - m.high);
    }
    if t > 1.0 {
        return x * (t - libm::log1p(t));
    }
    // With v = t / (2 + t), ln(1 + t) = 2 (v + v^3/3 + v^5/5 + ...) and t - 2 v = t v.
    let v = t / (2.0 + t);
    let square = v * v;
    let (mut sum, mut power, mut odd) = (1.0 / 3.0, square, 5.0);
    while power > 1e-17 {
        sum += power / odd;
        power *= square;
        odd += 2.0;
    }
    x * v * (t - 2.0 * square * sum)
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::{One, Signed, ToPrimitive, Zero};

    use super::*;

    const UNIT: f64 = f64::EPSILON / 2.0;

    fn rational(value: f64) -> BigRational {
        BigRational::from_float(value).unwrap_or_else(BigRational::zero)
    }

    /// `|ours / truth - 1|`, rounded.
    fn relative(ours: &BigRational, truth: &BigRational) -> f64 {
        if truth.is_zero() {
            return ours.abs().to_f64().unwrap_or(f64::NAN);
        }
        (ours / truth - BigRational::one()).abs().to_f64().unwrap_or(f64::NAN)
    }

    #[test]
    fn the_probability_agrees_with_exact_rationals_within_its_error() {
        for (n, p) in
            [(1, 0.3), (2, 0.5), (17, 0.01), (33, 1e-9), (60, 0.4), (200, 0.125), (300, 0.97)]
        {
            let p_exact = rational(p);
            let odds = &p_exact / (BigRational::one() - &p_exact);
            let mut mass = (BigRational::one() - &p_exact).pow(n);
            for k in 0..=n {
                let logarithm =
                    log_probability(u64::from(n.unsigned_abs()), p, k.unsigned_abs().into());
                if logarithm > -690.0 {
                    let error = relative(&rational(libm::exp(logarithm)), &mass);
                    let allowed = (18.0 + 12.0 * logarithm.abs()) * UNIT;
                    assert!(error <= allowed, "{n} {p} {k}: {error} of {allowed}");
                }
                mass *= BigRational::new(BigInt::from(n - k), BigInt::from(k + 1)) * &odds;
            }
        }
    }

    #[test]
    fn the_logarithm_agrees_with_log_gamma_at_sixty_digits() {
        // ln n! - ln k! - ln (n-k)! + k ln p + (n-k) ln (1-p), p the floating-point number.
        let cases = [
            (40, 0.01, 33, -135.299_957_152_471_05),
            (5000, 0.75, 3300, -105.304_293_770_624_74),
            (1000, 1e-320, 1, -729.919_485_611_991_7),
            (123_456_789, 0.25, 30_900_000, -37.078_582_456_309_57),
            (1_000_000_000, 0.5, 500_000_000, -10.587_424_271_367_933),
            (1_000_000_000, 0.5, 500_500_000, -510.587_507_104_734_36),
            (1_000_000_000, 0.1, 99_800_000, -232.429_751_887_082_55),
            (1_000_000_000, 1e-9, 30, -75.658_236_754_330_16),
            (1_000_000_000, 0.999, 999_040_000, -819.491_853_339_278_7),
            (1_000_000_000, 0.3, 300_000_017, -10.500_248_282_144_742),
            (1_000_000_000, 1e-300, 2, -1_340.797_671_304_094_6),
            (1_000_000_000, 0.5, 999_999_999, -693_147_159.836_679_5),
            (9_007_199_254_740_992, 0.25, 2_251_800_813_685_248, -314.509_794_765_599_17),
        ];
        for (n, p, k, truth) in cases {
            let ours = log_probability(n, p, k);
            let allowed = (16.0 + 12.0 * f64::abs(truth)) * UNIT;
            assert!((ours - truth).abs() <= allowed, "{n} {p} {k}: {ours} not {truth}");
        }
    }

    #[test]
    fn the_probabilities_of_a_billion_trials_sum_to_one() {
        for p in [0.5, 0.123, 0.001] {
            let n = 1_000_000_000_u64;
            let deviation = (n as f64 * p * (1.0 - p)).sqrt();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let mut k = (n as f64 * p - 9.0 * deviation) as u64;
            let mut sum = Double::ZERO;
            while (k as f64) < n as f64 * p + 9.0 * deviation {
                sum = sum + libm::exp(log_probability(n, p, k));
                k += 1;
            }
            assert!((sum.value() - 1.0).abs() < 2e-14, "{p}: {}", sum.value() - 1.0);
        }
    }

    #[test]
    fn certain_and_impossible_counts_have_their_logarithms() {
        for (n, p, k, expected) in [
            (0, 0.5, 0, 0.0),
            (7, 0.0, 0, 0.0),
            (7, 1.0, 7, 0.0),
            (7, 0.0, 7, f64::NEG_INFINITY),
            (7, 0.0, 3, f64::NEG_INFINITY),
            (7, 1.0, 0, f64::NEG_INFINITY),
            (7, 1.0, 3, f64::NEG_INFINITY),
            (7, 0.5, 8, f64::NEG_INFINITY),
        ] {
            let ours = log_probability(n, p, k);
            assert!((ours + 0.0).total_cmp(&expected).is_eq(), "{n} {p} {k}: {ours}");
        }
    }
}
