//! Tests of count sampling against exact rationals.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::super::point_binomial::log_probability;
use super::*;

/// `e^epsilon` by its series, within 2^-300.
fn exponential(epsilon: f64) -> BigRational {
    let x = BigRational::from_float(epsilon).unwrap_or_else(BigRational::zero);
    let (mut sum, mut term) = (BigInt::zero(), BigInt::one() << 320);
    let (numerator, denominator) = (x.numer().clone(), x.denom().clone());
    for order in 1..400 {
        sum += &term;
        term = term * &numerator / (&denominator * order);
    }
    BigRational::new(sum, BigInt::one() << 320)
}

/// The probabilities of `Bin(n, p)` as integers over a common denominator.
fn exact_masses(n: u64, p: f64) -> (Vec<BigInt>, BigInt) {
    let p = BigRational::from_float(p).unwrap_or_else(BigRational::zero);
    let (kept, dropped) = (p.numer().clone(), p.denom() - p.numer());
    let power = |base: &BigInt, k: u64| base.pow(u32::try_from(k).unwrap_or(0));
    let mut choose = BigInt::one();
    let mut masses = Vec::new();
    for k in 0..=n {
        masses.push(&choose * power(&kept, k) * power(&dropped, n - k));
        choose = choose * (n - k) / (k + 1);
    }
    (masses, power(p.denom(), n))
}

/// `sum [P - a Q]_+ / scale`, `P` over the set where the summand is positive, and `Q`.
fn divergence<'a>(
    pairs: impl Iterator<Item = (BigInt, BigInt)> + 'a,
    ratio: &BigRational,
    scale: &BigInt,
) -> [BigRational; 3] {
    let mut sums = [BigInt::zero(), BigInt::zero(), BigInt::zero()];
    for (p, q) in pairs {
        let gain = &p * ratio.denom() - &q * ratio.numer();
        if gain.is_positive() {
            sums[0] += gain;
            sums[1] += p;
            sums[2] += q;
        }
    }
    let [gain, p, q] = sums;
    [
        BigRational::new(gain, scale * ratio.denom()),
        BigRational::new(p, scale.clone()),
        BigRational::new(q, scale.clone()),
    ]
}

fn agrees(ours: HockeyStick, exact: &[BigRational; 3], context: &str) {
    let rational = |x: f64| BigRational::from_float(x).unwrap_or_else(BigRational::zero);
    let [delta, p, q] = exact;
    assert!(rational(ours.delta) >= *delta, "{context}: {ours:?} below {delta}");
    let above = (rational(ours.delta) - delta) - rational(1e-300);
    assert!(above <= delta * rational(40.0 * UNIT), "{context}: {ours:?} far above");
    for (ours, exact) in [(ours.p, p), (ours.q, q)] {
        let exact = exact.to_f64().unwrap_or(f64::NAN);
        assert!((ours - exact).abs() <= 1e-14 * exact + 1e-300, "{context}: {ours} {exact}");
    }
}

/// Compares all three directions with sums over all outcomes of the laws as they are defined.
fn agrees_with_enumeration(rate: f64, floor: u64, epsilons: &[f64]) -> Result<()> {
    let (with, with_scale) = exact_masses(floor + 1, rate);
    let (mut without, without_scale) = exact_masses(floor, rate);
    without.push(BigInt::zero());
    let ours = CountSampling::new(rate, floor)?;
    let pairs = || (0..with.len()).flat_map(|x| (0..with.len()).map(move |y| (x, y)));
    let scale = &with_scale * &without_scale;
    for &epsilon in epsilons {
        let context = format!("rate {rate}, floor {floor}, epsilon {epsilon}");
        let ratio = exponential(epsilon);
        let products = pairs().map(|(x, y)| (&with[x] * &without[y], &without[x] * &with[y]));
        agrees(ours.replace(epsilon), &divergence(products, &ratio, &scale), &context);
        let padded = || {
            let ordered = with.iter().zip(&without);
            ordered.map(|(with, without)| (with * &without_scale, without * &with_scale))
        };
        let exact = divergence(padded(), &ratio, &scale);
        agrees(ours.remove(epsilon), &exact, &format!("{context}, remove"));
        let exact = divergence(padded().map(|(p, q)| (q, p)), &ratio, &scale);
        agrees(ours.add(epsilon), &exact, &format!("{context}, add"));
    }
    Ok(())
}

#[test]
fn deltas_are_those_of_enumeration_in_exact_rationals_for_floors_to_sixty() -> Result<()> {
    let epsilons = [0.0, 1e-3, 0.1, 0.5, 1.0, 2.0, 3.5, 6.0];
    for floor in 0..=60_usize {
        for (index, rate) in [1e-9, 0.01, 0.3, 0.5, 0.743, 0.99, 1.0 - 1e-12].iter().enumerate() {
            // Every epsilon for small floors, two of them in turn and half the rates for
            // others.
            if floor <= 8 {
                agrees_with_enumeration(*rate, floor as u64, &epsilons)?;
            } else if (floor + index) % 2 == 0 {
                let turn = (floor / 2 + index) % 4;
                agrees_with_enumeration(*rate, floor as u64, &epsilons[2 * turn..][..2])?;
            }
        }
    }
    Ok(())
}

#[test]
fn deltas_far_in_the_tails_are_those_of_exact_rationals() -> Result<()> {
    for (rate, floor, epsilon) in
        [(0.125, 150, 1.5), (0.25, 300, 2.0), (0.5, 400, 1.6), (0.0625, 200, 2.2)]
    {
        let delta = CountSampling::new(rate, floor)?.replace(epsilon).delta;
        assert!(delta < 1e-50, "{delta}");
        agrees_with_enumeration(rate, floor, &[epsilon, 0.05])?;
    }
    Ok(())
}

#[test]
fn large_floors_agree_with_the_sum_over_outcomes_with_running_tails() -> Result<()> {
    // H = sum over x of b_{m+1}(x) F_m(k) - a b_m(x) F_{m+1}(k), k the last y below the line.
    for (rate, floor, epsilon) in
        [(0.4, 5_000_u64, 0.05), (0.743, 20_000, 0.02), (0.02, 100_000, 0.003), (0.9, 3_000, 0.3)]
    {
        let ratio = libm::exp(epsilon);
        let size = (floor + 1) as f64;
        let below = |n: u64| {
            let mut sum = Double::ZERO;
            let cumulative = (0..=n).map(|k| {
                sum = sum + libm::exp(log_probability(n, rate, k));
                sum.value()
            });
            cumulative.collect::<Vec<f64>>()
        };
        let (without, with) = (below(floor), below(floor + 1));
        let mut sum = Double::ZERO;
        for x in 0..=floor + 1 {
            let line = size - ratio * (floor + 1 - x) as f64;
            if line > 0.0 {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let last = (line.ceil() as usize - 1).min(without.len() - 1);
                let gain = libm::exp(log_probability(floor + 1, rate, x)) * without[last];
                let loss = libm::exp(log_probability(floor, rate, x)) * with[last];
                sum = sum + (gain - ratio * loss);
            }
        }
        let (ours, other) = (CountSampling::new(rate, floor)?.replace(epsilon).delta, sum.value());
        assert!((ours / other - 1.0).abs() < 1e-9, "{rate} {floor}: {ours} {other}");
    }
    Ok(())
}

#[test]
fn deltas_of_the_table_of_floors_are_reproduced() -> Result<()> {
    // p = 1 - 1/e and epsilon = 1, to the two digits that are printed.
    let rate = 1.0 - libm::exp(-1.0);
    for (floor, delta) in [(500, 1.2e-28), (100, 6.0e-8), (33, 5.2e-4), (10, 2.7e-2)] {
        let ours = CountSampling::new(rate, floor)?.replace(1.0).delta;
        assert!((ours / delta - 1.0).abs() < 0.05, "{floor}: {ours}");
    }
    for (floor, rate) in [(10, 0.167), (33, 0.468), (100, 0.743), (333, 0.908), (1000, 0.968)] {
        assert!(CountSampling::new(rate - 5e-4, floor)?.replace(1.0).delta < 1e-5, "{floor}");
        assert!(CountSampling::new(rate + 5e-4, floor)?.replace(1.0).delta > 1e-5, "{floor}");
    }
    Ok(())
}

#[test]
fn an_item_of_one_user_costs_the_rate() -> Result<()> {
    for rate in [5e-324, 1e-300, 1e-20, 0.3, 0.999, 1.0 - UNIT] {
        for epsilon in [0.0, 0.5, 10.0, 800.0, f64::MAX] {
            let HockeyStick { delta, p, q } = CountSampling::new(rate, 0)?.replace(epsilon);
            assert!(delta >= rate && delta <= rate * (1.0 + 40.0 * UNIT) + 1e-307, "{delta}");
            assert!((p / rate - 1.0).abs() < 1e-14 && q.abs() < 1e-300, "{p} {q}");
        }
    }
    Ok(())
}

#[test]
fn nobody_and_everybody_kept_are_the_extremes() -> Result<()> {
    for floor in [0, 1, 1000, CountSampling::LARGEST_FLOOR] {
        for epsilon in [0.0, 1.0, 1e3, f64::MAX] {
            let (none, all) = (CountSampling::new(0.0, floor)?, CountSampling::new(1.0, floor)?);
            for value in [none.replace(epsilon), none.remove(epsilon), none.add(epsilon)] {
                assert_eq!(value, HockeyStick::NONE);
            }
            for value in [all.replace(epsilon), all.remove(epsilon), all.add(epsilon)] {
                assert_eq!(value, HockeyStick { delta: 1.0, p: 1.0, q: 0.0 });
            }
        }
    }
    Ok(())
}

#[test]
fn what_no_epsilon_excludes_is_that_everybody_is_kept() -> Result<()> {
    let (rate, floor) = (0.999, 2_000);
    let everybody = libm::exp(2_001.0 * libm::log(rate));
    for epsilon in [7.7, 39.0, 41.0, 709.0, 1e6, f64::MAX] {
        let sampling = CountSampling::new(rate, floor)?;
        for ours in [sampling.replace(epsilon), sampling.remove(epsilon)] {
            assert!((ours.delta / everybody - 1.0).abs() < 1e-12, "{ours:?}");
            assert!((ours.p / everybody - 1.0).abs() < 1e-12 && ours.q.abs() < 1e-300);
        }
        assert_eq!(sampling.add(epsilon), HockeyStick::NONE);
    }
    assert!(CountSampling::new(rate, floor)?.add(6.9).delta > 0.0);
    Ok(())
}

#[test]
fn deltas_fall_with_epsilon_and_the_floor_and_rise_with_the_rate() -> Result<()> {
    let within = |low: f64, high: f64| low <= high * (1.0 + 40.0 * UNIT) + 1e-300;
    let directions: [fn(&CountSampling, f64) -> HockeyStick; 3] =
        [CountSampling::replace, CountSampling::remove, CountSampling::add];
    for direction in directions {
        for floor in [0, 3, 50, 2_000, 300_000] {
            for rate in [1e-6, 0.2, 0.6, 0.97] {
                let here = CountSampling::new(rate, floor)?;
                let larger = CountSampling::new(rate, 2 * floor + 1)?;
                let rarer = CountSampling::new(0.9 * rate, floor)?;
                let mut before = 1.0;
                for step in 0..60_u32 {
                    let epsilon = 0.001 * 1.2_f64.powi(step.cast_signed());
                    let HockeyStick { delta, p, q } = direction(&here, epsilon);
                    assert!((0.0..=1.0).contains(&delta));
                    assert!(within(delta, before), "{floor} {rate} {epsilon}");
                    assert!(within(direction(&larger, epsilon).delta, delta));
                    assert!(within(direction(&rarer, epsilon).delta, delta));
                    // The event attains the divergence: delta = P - e^epsilon Q.
                    let gap = p - libm::exp(epsilon.min(600.0)) * q;
                    assert!((gap - delta).abs() <= 1e-13 * p + 1e-300, "{gap} {delta}");
                    before = delta;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn skipped_terms_are_bounded_and_change_nothing() -> Result<()> {
    for (rate, floor, epsilon) in
        [(0.5, 100_000, 0.001), (0.5, 100_000, 0.08), (0.03, 400_000, 0.003), (0.99, 90_000, 0.9)]
    {
        let ours = CountSampling::new(rate, floor)?;
        let ratio = Double::exp(epsilon);
        let mut bound = Sums { bound: Double::ZERO, p: Double::ZERO, q: Double::ZERO, terms: 0 };
        let excess =
            |index: usize| ours.above(ratio * (ours.first + index as f64), THRESHOLD_ERROR).excess;
        let stop = ours.last() / ratio.value() - ours.first + 2.0;
        let (start, stop) = ours.relevant(stop, ours.mean.value(), excess, &mut bound);
        assert!(stop - start < ours.table.len() / 2, "{rate} {floor} {epsilon}");
        let (mut sum, mut skipped) = (Double::ZERO, Double::ZERO);
        for (index, row) in ours.table.iter().enumerate() {
            let threshold = ratio * (ours.first + index as f64);
            let term = row.mass * ours.above(threshold, THRESHOLD_ERROR).excess;
            sum = sum + term;
            if !(start..stop).contains(&index) {
                skipped = skipped + term;
            }
        }
        let bound = bound.bound.value();
        assert!(skipped.value() <= bound && bound < 1e-17 * sum.value(), "{rate} {floor}");
        let (ours, other) = (ours.replace(epsilon).delta, sum.value() / ours.mean.value());
        assert!((ours / other - 1.0).abs() < 30.0 * UNIT, "{rate} {floor}: {ours} {other}");
    }
    Ok(())
}

#[test]
fn a_floor_of_ten_million_has_a_small_table() -> Result<()> {
    let large = CountSampling::new(0.5, CountSampling::LARGEST_FLOOR)?;
    assert!(large.table.len() < 130_000);
    // The normal approximation of the difference, 1/sqrt(2 pi N p s 2) / s, to some digits.
    let delta = large.replace(0.0).delta;
    let expected = libm::sqrt(2.0 * 2.5e6 / core::f64::consts::TAU) / 5e6;
    assert!((delta / expected - 1.0).abs() < 1e-5, "{delta} {expected}");
    Ok(())
}

#[test]
fn bad_parameters_are_named() {
    for rate in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let error = CountSampling::new(rate, 5).err();
        assert!(matches!(error, Some(Error::Accounting { argument: "rate", .. })));
    }
    let error = CountSampling::new(0.5, CountSampling::LARGEST_FLOOR + 1).err();
    assert!(matches!(error, Some(Error::Accounting { argument: "floor", .. })));
}
