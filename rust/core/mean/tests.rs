//! Tests of the mechanisms for means against enumeration and exact rationals.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use rayon::ThreadPoolBuilder;

use super::*;
use crate::frequency::{CHUNK, NodeProbabilities, Selection};
use crate::parameters::{Epsilon, Probability};
use crate::random::{AesStreams, Purpose, Streams};

const EPSILONS: [f64; 14] =
    [1e-6, 0.01, 0.1, 0.5, 0.7, 1.0, 2.0, 2.5, 3.7, 5.0, 8.0, 12.5, 30.0, 42.0];

fn unit() -> Result<Bounds> {
    Bounds::new(-1.0, 1.0)
}

fn duchi(epsilon: f64, dimensions: u64) -> Result<Duchi> {
    Duchi::new(Epsilon::new(epsilon)?, unit()?, Dimensions::new(dimensions)?)
}

fn piecewise(epsilon: f64, dimensions: u64) -> Result<Piecewise> {
    Piecewise::new(Epsilon::new(epsilon)?, unit()?, Dimensions::new(dimensions)?)
}

fn hybrid(epsilon: f64, dimensions: u64) -> Result<Hybrid> {
    Hybrid::new(Epsilon::new(epsilon)?, unit()?, Dimensions::new(dimensions)?)
}

/// Lower and upper bounds of `e^x` by the series in exact rationals.
fn exponential(x: f64) -> Option<(BigRational, BigRational)> {
    let x = BigRational::from_float(x)?;
    let (numerator, denominator) = (x.numer(), x.denom());
    let (mut above, mut below) = (BigInt::one(), BigInt::one());
    for index in (1..=200_u32).rev() {
        let scaled = denominator * BigInt::from(index) * &below;
        above = &scaled + numerator * above;
        below = scaled;
    }
    let sum = BigRational::new_raw(above, below);
    let rest = BigRational::new(BigInt::one(), BigInt::one() << 148_u32);
    Some((sum.clone(), sum + rest))
}

fn whole(number: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(number.into())
}

#[test]
fn likelihood_ratios_are_at_most_e_to_the_epsilon_and_close_to_it() -> Result<()> {
    for epsilon in EPSILONS {
        let Some((low, high)) = exponential(epsilon) else { continue };
        let (many, few) = duchi(epsilon, 1)?.words();
        let ratio = BigRational::new(many.into(), few.into());
        assert!(ratio <= low, "Duchi, {epsilon}");
        // One word more or less: at most a tenth of them at epsilon = 42.
        let next = BigRational::new((many + 1).into(), (few - 1).into());
        assert!(next > low, "Duchi, {epsilon}: loose");
        for dimensions in [1, 2, 7, 40] {
            let mechanism = piecewise(epsilon, dimensions)?;
            let (inside, outside) = mechanism.ratio();
            let one = BigRational::new(inside.into(), outside.into());
            let all = num_traits::pow(one, mechanism.sampled());
            assert!(all <= low, "piecewise, {epsilon}, {dimensions}");
            let tolerance = BigRational::new(1.into(), 1_000_000.into());
            assert!(all >= &high * (BigRational::one() - tolerance), "{epsilon}, {dimensions}");
            // Duchi's part is no more telling than the other, and next to as telling.
            let both = hybrid(epsilon, dimensions)?;
            let (inside, outside) = both.ratio();
            let (one, few) = (BigRational::new(inside.into(), outside.into()), both.ends().1);
            assert!(num_traits::pow(one.clone(), both.sampled()) <= low, "hybrid, {epsilon}");
            let bits = BigRational::new(((1_u128 << 64) - u128::from(few)).into(), few.into());
            assert!(bits <= one, "hybrid, {epsilon}, {dimensions}");
            let next =
                BigRational::new(((1_u128 << 64) - u128::from(few) + 1).into(), (few - 1).into());
            let hair = BigRational::new(1.into(), 1_000_000_000_000_u64.into());
            assert!(next > one * (BigRational::one() - hair), "hybrid, {epsilon}: loose");
        }
    }
    Ok(())
}

#[test]
fn realised_epsilons_are_rounded_up_but_never_above_the_one_asked_for() -> Result<()> {
    for epsilon in EPSILONS {
        for dimensions in [1, 3, 20] {
            let mechanism = piecewise(epsilon, dimensions)?;
            let (inside, outside) = mechanism.ratio();
            let one = BigRational::new(inside.into(), outside.into());
            let duchi = duchi(epsilon, dimensions)?;
            let (many, few) = duchi.words();
            for (realized, ratio) in [
                (mechanism.realized_epsilon(), num_traits::pow(one, mechanism.sampled())),
                (duchi.realized_epsilon(), BigRational::new(many.into(), few.into())),
            ] {
                assert!(realized <= epsilon);
                let Some((_, high)) = exponential(realized) else { continue };
                assert!(ratio <= high, "{epsilon}, {dimensions}");
            }
        }
    }
    Ok(())
}

/// The law of one coordinate's cell: (cell, probability) for a window that starts at `start`.
fn window_mean(mechanism: &Piecewise, start: u64) -> BigRational {
    let (window, anywhere) = mechanism.law();
    let all = BigRational::one() / whole(BigInt::one() << 64_u32);
    let anywhere = whole(anywhere) * all;
    let middle =
        |first: u64, cells: u64| whole(first) + BigRational::new(BigInt::from(cells) - 1, 2.into());
    &anywhere * middle(0, mechanism.cells())
        + (BigRational::one() - &anywhere) * middle(start, window)
}

#[test]
fn the_scale_undoes_the_law_of_a_cell() -> Result<()> {
    for epsilon in EPSILONS {
        let mechanism = piecewise(epsilon, 1)?;
        let (window, _) = mechanism.law();
        let last = mechanism.cells() - window;
        let centre = BigRational::new((mechanism.cells() - 1).into(), 2.into());
        for (start, expected) in [(0, -1.0), (last, 1.0)] {
            let offset = (window_mean(&mechanism, start) - &centre) * whole(2);
            let value = offset.to_f64().unwrap_or(f64::NAN) * mechanism.scale();
            assert!((value - expected).abs() < 1e-9, "{epsilon}: {value}");
        }
    }
    Ok(())
}

/// The law of the reports of Duchi's mechanism for a corner, in words: index bits are agreements.
fn weight(agreeing: u32, dimensions: u32, words: (u128, u64)) -> BigInt {
    if 2 * agreeing > dimensions { words.0.into() } else { words.1.into() }
}

#[test]
fn the_factor_of_duchi_is_that_of_enumeration() -> Result<()> {
    for dimensions in 1..=9_u32 {
        for epsilon in EPSILONS {
            let mechanism = duchi(epsilon, dimensions.into())?;
            let words = mechanism.words();
            let (mut total, mut mean) = (BigInt::zero(), BigInt::zero());
            for agreement in 0..1_u32 << dimensions {
                let weight = weight(agreement.count_ones(), dimensions, words);
                mean += if agreement & 1 == 1 { weight.clone() } else { -weight.clone() };
                total += weight;
            }
            let factor = BigRational::new(total, mean).to_f64().unwrap_or(f64::NAN);
            assert!((mechanism.scale() / factor - 1.0).abs() < 1e-12, "{epsilon}, {dimensions}");
        }
    }
    Ok(())
}

#[test]
fn ties_on_both_sides_would_break_the_guarantee() {
    // The printed rule for d = 2: from T+ (3 corners, two of them ties) with e^eps / (e^eps + 1),
    // else from T- (3 corners, the same ties). A tie: 1/3. The opposite corner: 1/(3 (e^eps + 1)).
    let ratio = BigRational::from_integer(3.into());
    let plus = &ratio / (&ratio + BigRational::one());
    let minus = BigRational::one() - &plus;
    let third = BigRational::new(1.into(), 3.into());
    let tie = &plus * &third + &minus * &third;
    let opposite = &minus * &third;
    assert_eq!(tie / opposite, ratio + BigRational::one());
}

/// Quantile of the chi-square law by Wilson and Hilferty, at alpha = 1e-6.
fn chi_square_limit(freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + 4.76 * part.sqrt()).powi(3)
}

#[test]
fn reports_of_duchi_have_their_law() -> Result<()> {
    let values = [0.3, -0.8, 1.0, 0.0, -1.0];
    for (dimensions, epsilon) in [(1_u32, 0.7), (2, 1.0), (3, 0.5), (4, 2.0), (5, 1.0)] {
        let mechanism = duchi(epsilon, dimensions.into())?;
        let d = dimensions as usize;
        let nodes = 400_000_usize;
        let held = values[..d].repeat(nodes);
        let streams = AesStreams::from_seed(epsilon.to_bits() + u64::from(dimensions));
        let reports = mechanism.randomize::<u8, _>(&held, &Selection::everyone(), &streams)?;
        let mut observed = vec![0_u32; 1 << d];
        for report in reports.cells.chunks(d) {
            let index = report.iter().rev().fold(0, |index, &bit| 2 * index + usize::from(bit));
            observed[index] += 1;
        }
        let (many, few) = mechanism.words();
        let (many, few) = (many as f64, few as f64);
        let weight = |agreeing: u32| if 2 * agreeing > dimensions { many } else { few };
        let total: f64 = (0..1_u32 << d).map(|agreement| weight(agreement.count_ones())).sum();
        let (mut statistic, mut cells) = (0.0, -1.0);
        for (report, &count) in (0_u32..).zip(&observed) {
            // Mixture over the corners.
            let mut probability = 0.0;
            for corner in 0..1_u32 << d {
                let chance: f64 = (0..d)
                    .map(|j| {
                        f64::midpoint(
                            1.0,
                            if corner >> j & 1 == 1 { values[j] } else { -values[j] },
                        )
                    })
                    .product();
                let agreeing = dimensions - (corner ^ report).count_ones();
                probability += chance * weight(agreeing) / total;
            }
            let expected = probability * nodes as f64;
            assert!(expected > 10.0);
            statistic += (f64::from(count) - expected).powi(2) / expected;
            cells += 1.0;
        }
        assert!(statistic < chi_square_limit(cells), "{dimensions}: {statistic}");
    }
    Ok(())
}

#[test]
fn cells_of_the_piecewise_mechanism_have_their_law() -> Result<()> {
    for (case, (epsilon, value)) in
        [(0.5, 0.3), (1.0, -1.0), (4.0, 1.0), (4.0, -0.77), (14.0, 0.1)].into_iter().enumerate()
    {
        let mechanism = piecewise(epsilon, 1)?;
        let nodes = 1_000_000;
        let streams = AesStreams::from_seed(case as u64);
        let held = vec![value; nodes];
        let reports = mechanism.randomize::<u32, _>(&held, &Selection::everyone(), &streams)?;
        let (window, anywhere) = mechanism.law();
        let near = anywhere.wrapping_neg() as f64 / 2.0_f64.powi(64);
        let cells = mechanism.cells();
        let place = f64::midpoint(value, 1.0) * (cells - window) as f64;
        // Forty bins over the grid; the window's share of each, averaged over its two starts.
        let bins = 40_u64;
        let bin = |cell: u64| cell * bins / cells;
        let mut expected = [0.0; 40];
        for index in 0..bins {
            let first = (index * cells).div_ceil(bins);
            let last = ((index + 1) * cells).div_ceil(bins);
            let slot = usize::try_from(index).unwrap_or(0);
            expected[slot] += (1.0 - near) * (last - first) as f64 / cells as f64;
            for (start, chance) in
                [(place.floor(), 1.0 - place.fract()), (place.floor() + 1.0, place.fract())]
            {
                let common = (start + window as f64).min(last as f64) - start.max(first as f64);
                expected[slot] += near * chance * common.max(0.0) / window as f64;
            }
        }
        let mut observed = [0_u32; 40];
        for &cell in &reports.cells {
            observed[usize::try_from(bin(cell.into())).unwrap_or(0)] += 1;
        }
        let mut statistic = 0.0;
        let mut freedom = -1.0;
        for (&count, &probability) in observed.iter().zip(&expected) {
            let mean = probability * f64::from(1_000_000);
            if mean < 10.0 {
                assert!(f64::from(count) < 60.0);
                continue;
            }
            statistic += (f64::from(count) - mean).powi(2) / mean;
            freedom += 1.0;
        }
        assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(statistic < chi_square_limit(freedom), "{epsilon}, {value}: {statistic}");
    }
    Ok(())
}

#[test]
fn coordinates_are_chosen_uniformly() -> Result<()> {
    // epsilon = 7.5 and d = 5: subsets of 3, of which there are 10.
    let mechanism = piecewise(7.5, 5)?;
    assert_eq!(mechanism.sampled(), 3);
    let mut stream = AesStreams::from_seed(4).stream(Purpose::Report, 0);
    let mut observed = std::collections::BTreeMap::<Vec<u16>, u32>::new();
    for _ in 0..200_000 {
        let mut chosen = vec![0; 3];
        mechanism.choose(&mut chosen, &mut stream);
        assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]));
        *observed.entry(chosen).or_default() += 1;
    }
    assert_eq!(observed.len(), 10);
    let statistic: f64 =
        observed.values().map(|&count| (f64::from(count) - 20_000.0).powi(2) / 20_000.0).sum();
    assert!(statistic < chi_square_limit(9.0), "{statistic}");
    Ok(())
}

fn spread(nodes: usize, dimensions: usize) -> Vec<f64> {
    (0..nodes * dimensions).map(|i| ((i * 7919) % 2001) as f64 / 1000.0 - 1.0).collect()
}

fn path_is_one<M: Mechanism>(mechanism: &M, nodes: usize) -> Result<()> {
    let d = mechanism.dimensions().len();
    let values = spread(nodes, d);
    let personal: Vec<f64> = (0..nodes).map(|node| 0.05 + 0.9 * (node % 7) as f64 / 7.0).collect();
    let selections = [
        Selection::everyone(),
        Selection::bernoulli(Probability::new(0.03)?),
        Selection::personalized(NodeProbabilities::new(&personal)?),
    ];
    let streams = AesStreams::from_seed(9);
    for selection in &selections {
        let run = || -> Result<_> {
            let reports = mechanism.randomize::<u32, _>(&values, selection, &streams)?;
            Ok((reports, mechanism.collect(&values, selection, &streams)?))
        };
        let mut results = Vec::new();
        for threads in [1, 5] {
            if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
                results.push(pool.install(run)?);
            }
        }
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        let (reports, sums) = results.remove(0);
        let rates = reports.probabilities.as_deref().map(NodeProbabilities::new).transpose()?;
        let tally = mechanism.tally(&reports.cells, reports.coordinates.as_deref(), rates)?;
        assert_eq!(tally, sums);
        assert_eq!(sums.received * mechanism.sampled() as u64, reports.cells.len() as u64);
        // Sums against plain ones.
        let slots = mechanism.sampled();
        let mut second = vec![0_u128; d];
        let mut inverse = vec![0.0; d];
        for (index, &cell) in reports.cells.iter().enumerate() {
            let place = reports.coordinates.as_ref().map_or(index % slots, |all| all[index].into());
            second[place] += u128::from(cell).pow(2);
            if let Some(rates) = &reports.probabilities {
                inverse[place] += f64::from(cell).powi(2) / rates[index / slots].powi(2);
            }
        }
        assert!(sums.coordinates.iter().map(|sums| sums.second).eq(second));
        for (moments, expected) in sums.weighted.iter().flatten().zip(inverse) {
            let Wide { low, high } = moments.inverse_squared[2];
            let ours = (low as f64 + high as f64 * 2.0_f64.powi(64)) / 2.0_f64.powi(32);
            assert!((ours - expected).abs() <= 1e-6 * expected);
        }
    }
    Ok(())
}

#[test]
fn collect_is_the_tally_of_randomize_on_any_number_of_threads() -> Result<()> {
    path_is_one(&duchi(1.0, 1)?, 2 * CHUNK + 77)?;
    path_is_one(&duchi(1.0, 4)?, CHUNK + 5)?;
    path_is_one(&piecewise(1.0, 1)?, 2 * CHUNK + 77)?;
    path_is_one(&piecewise(6.0, 5)?, CHUNK + 5)?;
    path_is_one(&hybrid(0.5, 3)?, CHUNK + 5)?;
    path_is_one(&hybrid(6.0, 5)?, CHUNK + 5)?;
    path_is_one(&piecewise(42.0, 3)?, 1_000)
}

#[test]
fn where_all_coordinates_are_reported_an_empty_list_of_them_is_none() -> Result<()> {
    let mechanism = duchi(1.0, 1)?;
    let plain = mechanism.tally(&[0_u8, 1, 1], None, None)?;
    assert_eq!(mechanism.tally(&[0_u8, 1, 1], Some(&[]), None)?, plain);
    assert!(mechanism.tally(&[0_u8, 1, 1], Some(&[0, 0, 0]), None).is_err());
    Ok(())
}

#[test]
fn what_cannot_be_is_refused() -> Result<()> {
    for (low, high) in [
        (0.0, 0.0),
        (1.0, -1.0),
        (f64::NAN, 1.0),
        (0.0, f64::INFINITY),
        (f64::MIN, f64::MAX),
        (0.0, 5e-324),
    ] {
        assert!(matches!(Bounds::new(low, high), Err(Error::Bounds { .. })));
    }
    assert!(Dimensions::new(0).is_err() && Dimensions::new(65_537).is_err());
    assert!(matches!(duchi(1e-12, 1), Err(Error::Accounting { .. })));
    assert!(matches!(piecewise(1e-12, 1), Err(Error::Accounting { .. })));
    let mechanism = piecewise(6.0, 3)?;
    let streams = AesStreams::from_seed(1);
    let everyone = Selection::everyone();
    let rare = Selection::bernoulli(Probability::new(1e-9)?);
    for bad in [1.5, f64::NAN, f64::INFINITY, -1.000_000_1] {
        let values = [0.0, 1.0, -1.0, 0.5, bad, 0.0];
        let refused = mechanism.collect(&values, &rare, &streams);
        let Err(Error::OutsideBounds { node: 1, coordinate: 1, offenders: 1, .. }) = refused else {
            return Err(Error::Bounds { low: bad, high: bad });
        };
        assert!(mechanism.randomize::<u32, _>(&values, &everyone, &streams).is_err());
    }
    assert!(mechanism.collect(&[0.0; 4], &everyone, &streams).is_err());
    assert!(mechanism.randomize::<u8, _>(&[0.0; 3], &everyone, &streams).is_err());
    assert!(mechanism.tally(&[0_u32, 0], Some(&[0, 1]), None).is_ok());
    assert!(mechanism.tally(&[0_u32, 0], Some(&[1, 1]), None).is_err());
    assert!(mechanism.tally(&[0_u32, 0], Some(&[0, 3]), None).is_err());
    assert!(mechanism.tally(&[0_u32, u32::MAX], Some(&[0, 1]), None).is_err());
    assert!(mechanism.tally(&[0_u32, 0], None, None).is_err());
    assert!(mechanism.tally(&[0_u32], Some(&[0]), None).is_err());
    let rates = NodeProbabilities::new(&[0.5, 0.5])?;
    assert!(mechanism.tally(&[0_u32, 0], Some(&[0, 1]), Some(rates)).is_err());
    Ok(())
}

#[test]
fn positions_are_linear_and_saturate() -> Result<()> {
    let bounds = Bounds::new(-3.0, 5.0)?;
    assert_eq!(bounds.position(-3.0), 0);
    assert_eq!(bounds.position(5.0), UNIT);
    assert_eq!(bounds.position(1.0), UNIT / 2);
    assert_eq!(bounds.position(f64::NAN), 0);
    assert_eq!(bounds.position(f64::INFINITY), UNIT);
    assert_eq!(bounds.position(-9.0), 0);
    Ok(())
}
