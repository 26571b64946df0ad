//! Weights against an independent bisection, and against the conditions of optimality.

use core::f64::consts::E;

use super::*;
use crate::random::{AesStreams, Purpose, Streams, uniform_below};

/// What must always hold: limits and total.
fn check_limits(weights: &[u64], reference: &[u64], band: &Band) -> Result<()> {
    assert_eq!(weights.iter().sum::<u64>(), reference.iter().sum::<u64>());
    for (&weight, &reference) in weights.iter().zip(reference) {
        let (low, high) = band.limits(reference)?;
        assert!((low..=high).contains(&weight), "{weight} not from {low} to {high}");
    }
    Ok(())
}

/// The clipped masses by bisection in the logarithm, and their limits.
fn bisection(log_ratios: &[f64], reference: &[u64], band: &Band) -> Result<Vec<f64>> {
    let total: f64 = reference.iter().map(|&one| one as f64).sum();
    let limits = reference.iter().map(|&one| band.limits(one)).collect::<Result<Vec<_>>>()?;
    let at = |c: f64| -> Vec<f64> {
        let entries = log_ratios.iter().zip(reference).zip(&limits);
        entries
            .map(|((r, &n), &(low, high))| {
                (n as f64 * (r - c).exp()).clamp(low as f64, high as f64)
            })
            .collect()
    };
    let (mut low, mut high) = (-1e3, 1e3);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if at(middle).iter().sum::<f64>() > total {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(at(0.5 * (low + high)))
}

fn numbers(case: u64, length: usize, scale: f64) -> Vec<f64> {
    let mut stream = AesStreams::from_seed(case).stream(Purpose::Simulation, 0);
    let mut uniform = || (uniform_below(1 << 40, &mut stream) as f64 + 0.5) / (1_u64 << 40) as f64;
    (0..length).map(|_| scale * (uniform() + uniform() + uniform() - 1.5)).collect()
}

#[test]
fn weights_agree_with_a_bisection() -> Result<()> {
    for (case, (length, scale)) in
        [(2, 1.0), (3, 10.0), (10, 0.1), (10, 1e-9), (100, 3.0), (1000, 40.0), (500, 300.0)]
            .into_iter()
            .enumerate()
    {
        let log_ratios = numbers(case as u64, length, scale);
        for epsilon in [1e-6_f64, 0.1, 1.0, 5.0, 20.0] {
            let equal = vec![1 << 32; length];
            let mixed: Vec<u64> = (0..length as u64).map(|i| 5_000_000_000 + i * i * 977).collect();
            for reference in [equal, mixed] {
                let base = 1.0 / (0.3 * epsilon.exp_m1() + 1.0);
                for band in [Band::mollifier(epsilon)?, Band::from_base(base, epsilon)?] {
                    let (found, c) = weights(&log_ratios, &reference, &band)?;
                    check_limits(&found, &reference, &band)?;
                    let expected = bisection(&log_ratios, &reference, &band)?;
                    for (index, (&found, expected)) in found.iter().zip(&expected).enumerate() {
                        let error = (found as f64 - expected).abs();
                        assert!(error <= 1e-12 * expected + 2.0, "{index}: {found} {expected}");
                        let (low, high) = band.limits(reference[index])?;
                        let again = reference[index] as f64 * (log_ratios[index] - c).exp();
                        let again = again.clamp(low as f64, high as f64);
                        assert!((again - expected).abs() <= 1e-12 * expected + 2.0, "{c}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// The divergence from a density to what is drawn, up to what does not depend on the weights.
fn loss(density: &[f64], weights: &[u64]) -> f64 {
    density.iter().zip(weights).map(|(p, &w)| -p * (w as f64).ln()).sum()
}

#[test]
fn nothing_within_the_limits_has_less_divergence() -> Result<()> {
    // All weights of four entries, by enumeration. Rounding to whole numbers may cost the square
    // of a relative unit.
    let reference = [9, 14, 20, 7];
    let total: u64 = reference.iter().sum();
    for (case, scale) in (0..12).zip([0.2, 1.0, 3.0].into_iter().cycle()) {
        let log_ratios = numbers(1000 + case, 4, scale);
        let density: Vec<f64> =
            log_ratios.iter().zip(reference).map(|(r, n)| n as f64 * r.exp()).collect();
        for band in [Band::mollifier(1.3)?, Band::from_base(0.5, 1.0)?] {
            let (found, _) = weights(&log_ratios, &reference, &band)?;
            check_limits(&found, &reference, &band)?;
            let limits = reference.map(|n| band.limits(n).unwrap_or((1, 1)));
            let mut best = f64::INFINITY;
            for a in limits[0].0..=limits[0].1 {
                for b in limits[1].0..=limits[1].1 {
                    for c in limits[2].0..=limits[2].1 {
                        let Some(d) = total.checked_sub(a + b + c) else { continue };
                        if (limits[3].0..=limits[3].1).contains(&d) {
                            best = best.min(loss(&density, &[a, b, c, d]));
                        }
                    }
                }
            }
            let sum: f64 = density.iter().sum();
            let excess = (loss(&density, &found) - best) / sum;
            assert!((-1e-12..6e-3).contains(&excess), "{found:?}: {excess}");
        }
    }
    Ok(())
}

#[test]
fn equal_ratios_give_the_reference() -> Result<()> {
    let reference = [3, 1, (1 << 61) + 12345, 77];
    for ratio in [0.0, 1e-300, -7.0, 1e300, -f64::MAX] {
        for band in [Band::mollifier(0.7)?, Band::from_base(0.5, 0.7)?] {
            let (found, c) = weights(&[ratio; 4], &reference, &band)?;
            assert_eq!((found, c), (reference.to_vec(), ratio));
        }
    }
    for (ratio, c) in [
        (f64::NAN, f64::NEG_INFINITY),
        (f64::NEG_INFINITY, f64::NEG_INFINITY),
        (f64::INFINITY, f64::INFINITY),
    ] {
        assert_eq!(
            weights(&[ratio; 4], &reference, &Band::mollifier(0.7)?)?,
            (reference.to_vec(), c)
        );
    }
    Ok(())
}

#[test]
fn only_differences_of_ratios_matter() -> Result<()> {
    let band = Band::mollifier(2.0)?;
    let ratios = [0.5, -0.25, 1.0, 0.0, -3.0]; // multiples of 1/4, so that shifts are exact
    let (expected, c) = weights(&ratios, &[1 << 40; 5], &band)?;
    for shift in [-1e15, -512.0, 1.0, 4096.0, 1e15] {
        let shifted = ratios.map(|ratio| ratio + shift);
        let (found, shifted_c) = weights(&shifted, &[1 << 40; 5], &band)?;
        assert_eq!(found, expected);
        assert!((shifted_c - shift - c).abs() <= 1e-15 * shift.abs() + 1e-12);
    }
    Ok(())
}

#[test]
fn ratios_of_any_size_are_sorted_out() -> Result<()> {
    let band = Band::mollifier(1.0)?;
    let reference = [1 << 32; 6];
    let (low, high) = band.limits(1 << 32)?;
    let share = |left: u64, parts: u64| (left - left % parts) / parts;
    let total: u64 = 6 << 32;
    // Two at the top, one lower by exactly 1/4, the others far below.
    let near = weights(&[1e15, 1e15 - 0.25, -1e300, -2.0, 0.0, 1e14], &reference, &band)?.0;
    check_limits(&near, &reference, &band)?;
    let (found, _) = weights(&[1e300, -1e300, 1e300, 0.0, -1e300, 0.0], &reference, &band)?;
    check_limits(&found, &reference, &band)?;
    // The two highest are at the upper limit, the lowest at the lower one.
    assert_eq!([found[0], found[2], found[1], found[4]], [high, high, low, low]);
    assert!(found[3].abs_diff(share(total - 2 * high - 2 * low, 2)) <= 1);
    assert!(found[3].abs_diff(found[5]) <= 1);
    // A cluster far from the rest is solved with its own differences.
    let cluster = [-1e6, -1e6 - 0.125, -1e6 + 0.125, 1e6, 1e6, -1e9];
    let (found, c) = weights(&cluster, &reference, &band)?;
    check_limits(&found, &reference, &band)?;
    assert_eq!([found[3], found[4], found[5]], [high, high, low]);
    assert!((c + 1e6).abs() < 2.0, "{c}");
    // Both are strictly within their limits, so their ratio is that of the densities.
    let ratio = found[0] as f64 / found[1] as f64;
    assert!((ratio - 0.125_f64.exp()).abs() < 1e-8, "{ratio}");
    // The same where what is far is below, and c between.
    let cluster = [1e6, 1e6 - 0.125, 1e6 + 0.125, -1e6, -1e7, -1e9];
    let (found, c) = weights(&cluster, &reference, &band)?;
    check_limits(&found, &reference, &band)?;
    assert_eq!([found[3], found[4], found[5]], [low; 3]);
    assert!(c > 1e6 - 1.0 && c < 1e6 - 0.125, "{c}");
    let ratio = found[2] as f64 / found[1] as f64;
    assert!((ratio - 0.25_f64.exp()).abs() < 1e-8, "{ratio}");
    for (a, b) in [(f64::MAX, f64::MIN), (1e-320, -1e-320), (710.0, -745.0), (1e17, 1e17 + 16.0)] {
        let (found, _) = weights(&[a, b, a, b, a, 0.0], &reference, &band)?;
        check_limits(&found, &reference, &band)?;
        assert!(if a > b { found[0] >= found[1] } else { found[0] <= found[1] });
    }
    Ok(())
}

#[test]
fn a_point_mass_rises_and_the_others_share_the_rest() -> Result<()> {
    let (zero, infinite) = (f64::NEG_INFINITY, f64::INFINITY);
    let band = Band::mollifier(1.0)?;
    let unit = 1 << 40;
    let (low, high) = band.limits(unit)?;
    assert!((high as f64 / unit as f64 - E.sqrt()).abs() < 1e-11);
    for point in [0.0, 2.3, -1e300, infinite] {
        let mut ratios = [zero; 10];
        ratios[4] = point;
        ratios[7] = f64::NAN;
        let (found, c) = weights(&ratios, &[unit; 10], &band)?;
        check_limits(&found, &[unit; 10], &band)?;
        assert_eq!((found[4], c), (high, zero));
        let rest = (10 * unit - high) / 9;
        assert!((0..10).all(|i| i == 4 || found[i].abs_diff(rest) <= 1));
    }
    // In proportion to the reference.
    let reference = [unit, 3 * unit, 2 * unit, 5 * unit];
    let (found, _) = weights(&[1.0, zero, zero, zero], &reference, &band)?;
    let rest = (11 * unit - found[0]) as f64 / (10 * unit) as f64;
    for index in 1..4 {
        assert!((found[index] as f64 - rest * reference[index] as f64).abs() <= 1.0);
    }
    // Infinite entries rise before any finite one, together and in proportion.
    let ratios = [infinite, infinite, 3.0, zero];
    let (found, c) = weights(&ratios, &[3 * unit, 6 * unit, unit, unit], &band)?;
    check_limits(&found, &[3 * unit, 6 * unit, unit, unit], &band)?;
    assert_eq!((found[2], found[3], c), (low, low, infinite));
    assert!(found[1].abs_diff(2 * found[0]) <= 2);
    // Where they reach their limit, the finite ones rise, and where those do, the rest.
    let ratios = [infinite, 1.0, 0.5, zero, 0.0];
    let (found, c) = weights(&ratios, &[unit; 5], &band)?;
    assert_eq!(found[0], high);
    assert_eq!(found[3], low);
    assert!(c.is_finite() && found[1] > found[2] && found[2] > found[4]);
    let band = Band::mollifier(0.5)?;
    let high = band.limits(unit)?.1;
    let (found, c) = weights(&[infinite, -5.0, zero, zero, zero], &[unit; 5], &band)?;
    assert_eq!((found[0], found[1], c), (high, high, zero));
    Ok(())
}

#[test]
fn tiny_references_leave_no_room_and_keep_the_total() -> Result<()> {
    for epsilon in [1e-9, 0.5, 3.0] {
        let band = Band::mollifier(epsilon)?;
        for reference in [vec![1; 5], vec![1, 2, 3, 1, 4], vec![1]] {
            for case in 0..5 {
                let ratios = numbers(case, reference.len(), 5.0);
                check_limits(&weights(&ratios, &reference, &band)?.0, &reference, &band)?;
            }
        }
    }
    Ok(())
}

#[test]
fn what_is_out_of_range_is_refused() -> Result<()> {
    let band = Band::mollifier(1.0)?;
    assert!(matches!(weights(&[0.0], &[1, 1], &band), Err(Error::LengthMismatch { .. })));
    assert!(matches!(weights(&[0.0; 3], &[1, 0, 0], &band), Err(Error::Entry { index: 1, .. })));
    assert!(matches!(weights(&[], &[], &band), Err(Error::Integer { value: 0, .. })));
    for reference in [[1 << 62, 1], [u64::MAX, u64::MAX]] {
        assert!(matches!(weights(&[0.0; 2], &reference, &band), Err(Error::Integer { .. })));
    }
    let narrow = Band::from_base(0.3, 1.0)?; // 0.3 e < 1
    assert!(matches!(
        weights(&[0.0; 2], &[1000; 2], &narrow),
        Err(Error::Accounting { argument: "base", .. })
    ));
    Ok(())
}
