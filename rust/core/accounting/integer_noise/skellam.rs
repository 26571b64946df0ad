//! Skellam noise: the difference of two Poisson counts.

use super::super::counts::partition_point;
use super::super::double::Double;
use super::tabulated::{Errors, Tabulated};

/// The largest reach of a table of Skellam noise: 168 MB.
const LARGEST_REACH: usize = 1 << 21;

/// The table ends where tails are below e to the power of minus this.
const LARGEST_EXPONENT: f64 = 760.0;

/// Probabilities of Skellam noise are computed with the largest at 2^960, so that they keep 106
/// bits.
const LARGEST_ENTRY: i32 = 960;

/// The table of Skellam noise.
pub(super) fn skellam(mean: f64) -> Tabulated {
    // Chernoff: P[X >= k] <= e^-(t k - 2 mu (cosh t - 1)) at sinh t = k / (2 mu).
    let exponent = |k: f64| {
        let square = libm::hypot(k, 2.0 * mean);
        k * libm::asinh(0.5 * k / mean) - k * (k / (square + 2.0 * mean))
    };
    let reach = partition_point(1, LARGEST_REACH, |k| exponent(k as f64) < LARGEST_EXPONENT);
    let ratios = ratios(mean, reach);
    let mut masses = vec![Double::from(libm::ldexp(1.0, LARGEST_ENTRY))];
    for &ratio in &ratios[1..=reach] {
        masses.push(masses[masses.len() - 1] * ratio);
    }
    Tabulated::new(&masses, &ratios, &Errors::default())
}

/// `rho(0..=reach + 1)` of Skellam noise, the first entry unused.
///
/// `1 / rho(k) = k / mu + rho(k + 1)` downwards; what it starts from is damped by `rho(k)^2` in
/// each step, by 2^-170 in all before the first ratio that is kept.
fn ratios(mean: f64, reach: usize) -> Vec<Double> {
    let inverse_mean = Double::ONE / Double::from(mean);
    let slope = libm::asinh(0.5 * reach as f64 / mean);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "up to 1e6")]
    let before = (60.0 / slope) as usize + 2;
    let mut ratio = Double::from(libm::exp(-slope));
    let mut kept = Vec::new();
    for k in (1..=reach + 1 + before).rev() {
        ratio = Double::ONE / (inverse_mean * k as f64 + ratio);
        if k <= reach + 1 {
            kept.push(ratio);
        }
    }
    kept.push(Double::ONE);
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::super::super::normal::UNIT;
    use super::super::IntegerNoise;
    use super::*;
    use crate::Result;

    #[test]
    fn wide_skellams_agree_with_sixty_digits() -> Result<()> {
        // P[X >= k - 1] - e^epsilon P[X >= k] from a recurrence at sixty digits; and the double sum
        // over x and y in extended precision.
        let singles = [
            (5e3, 0.01, 0.000_837_334_397_298_705_8),
            (5e3, 0.1, 6.914_974_144_641_449e-27),
            (5e3, 0.3, 7.084_819_429_708_283e-206),
            (5e7, 1e-4, 8.331_963_650_007_827e-6),
            (5e7, 1e-3, 7.478_203_512_109_537e-29),
        ];
        for (mean, epsilon, exact) in singles {
            let above = IntegerNoise::skellam(mean)?.single(epsilon).delta / exact - 1.0;
            assert!((-UNIT..40.0 * UNIT).contains(&above), "{mean} {epsilon}: {above}");
        }
        let noise = IntegerNoise::skellam(5e3)?;
        for (epsilon, exact) in [
            (0.01, 0.002_006_386_689_789_155),
            (0.1, 1.532_372_505_677_928_4e-15),
            (0.3, 7.786_716_792_977_715e-104),
        ] {
            let above = noise.replace(epsilon).delta / exact - 1.0;
            assert!((-1e-15..50.0 * UNIT).contains(&above), "{epsilon}: {above}");
        }
        Ok(())
    }

    #[test]
    fn ratios_do_not_depend_on_where_the_recurrence_starts() {
        for (mean, reach) in [(1e-3, 4), (1.0, 12), (40.0, 100), (3e4, 500)] {
            let (short, long) = (ratios(mean, reach), ratios(mean, 4 * reach));
            assert_eq!(short.len(), reach + 2);
            for (k, (&ours, &other)) in short.iter().zip(&long).enumerate() {
                let difference = (ours - other).value().abs();
                assert!(difference <= 1e-30 * other.value(), "{mean} {k}: {difference}");
            }
        }
    }
}
