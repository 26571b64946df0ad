//! The law of the numbers, against the error function and against Karney's sampler.

use rand::Rng;

use super::super::curve::FRACTION;
use super::super::table::CELLS;
use super::super::{BITS, karney, nearest, rounded_gaussian};
use super::{area, cell, stream};
use crate::Result;
use crate::noise::tests::check_law;
use crate::random::{AesStream, AesStreams};

/// Masses of `-reach..=reach` with the tails at the ends.
fn masses(bits: u32, reach: i64) -> Vec<f64> {
    let edge = |number: i64| (number as f64 - 0.5) / f64::from(1_u32 << bits);
    let half = (2.0 * core::f64::consts::PI).sqrt();
    let masses: Vec<f64> = (-reach..=reach)
        .map(|number| match number.abs() {
            0 => 2.0 * area(0.0, edge(1)) / half,
            number if number == reach => area(edge(number), 40.0) / half,
            number => area(edge(number), edge(number + 1)) / half,
        })
        .collect();
    let sum: f64 = masses.iter().sum();
    assert!((sum - 1.0).abs() < 1e-12);
    masses
}

/// Counts of many numbers, in pieces that fit in memory.
fn counts(bits: u32, reach: i64, millions: u64) -> Result<Vec<u64>> {
    let mut counts = vec![0; cell((2 * reach + 1).unsigned_abs())];
    for seed in 0..millions {
        for number in rounded_gaussian(1_000_000, bits, &AesStreams::from_seed(seed))? {
            counts[cell((number.clamp(-reach, reach) + reach).unsigned_abs())] += 1;
        }
    }
    Ok(counts)
}

/// Counts of Karney's sampler.
fn peer_counts(bits: u32, reach: i64, draws: u32, rng: &mut AesStream) -> Vec<u64> {
    let mut counts = vec![0; cell((2 * reach + 1).unsigned_abs())];
    for _ in 0..draws {
        let (whole, fraction) = karney::magnitude(rng);
        let digits = (whole << FRACTION) | (fraction.first() >> 11);
        let magnitude = nearest(digits, BITS - bits).cast_signed();
        let number = if rng.next_u64() >> 63 == 1 { -magnitude } else { magnitude };
        counts[cell((number.clamp(-reach, reach) + reach).unsigned_abs())] += 1;
    }
    counts
}

#[test]
fn numbers_have_the_law_of_the_rounded_normal() -> Result<()> {
    for (bits, millions) in [(0, 4), (1, 4), (2, 4), (5, 10)] {
        let reach = 6 << bits;
        check_law(&counts(bits, reach, millions)?, &masses(bits, reach));
    }
    Ok(())
}

#[test]
fn every_cell_has_its_mass() -> Result<()> {
    // Among 2^28 numbers, a cell near zero whose weight is off by a hundredth has a score of 9. A
    // number is rounded over the end of its cell with a probability of 2^-18, in and out alike.
    let mut observed = vec![0_u64; CELLS + 1];
    for seed in 0..256 {
        for number in rounded_gaussian(1 << 20, 24, &AesStreams::from_seed(seed))? {
            observed[cell(number.unsigned_abs() >> 16).min(CELLS)] += 1;
        }
    }
    let edge = |index: usize| index as f64 / 256.0;
    let whole = area(0.0, 40.0);
    let mut masses: Vec<f64> =
        (0..CELLS).map(|index| area(edge(index), edge(index + 1)) / whole).collect();
    masses.push(area(4.0, 40.0) / whole);
    check_law(&observed, &masses);
    let draws = f64::from(1 << 28);
    for (index, (&observed, mass)) in observed.iter().zip(masses).enumerate() {
        let score = (observed as f64 - mass * draws) / (mass * (1.0 - mass) * draws).sqrt();
        // 1e-6 in all: 1e-9 on either side of each.
        assert!(score.abs() < 6.2, "cell {index}: {score}");
    }
    Ok(())
}

#[test]
fn karneys_numbers_have_that_law_too() {
    let mut rng = stream(6);
    for bits in [0, 1, 2, 8] {
        let reach = 6 << bits;
        check_law(&peer_counts(bits, reach, 2_000_000, &mut rng), &masses(bits, reach));
    }
}

#[test]
fn both_samplers_agree() -> Result<()> {
    // Two samples of one size: half of the numbers of each cell are expected from either.
    let (bits, reach) = (6, 4 << 6);
    let ours = counts(bits, reach, 3)?;
    let peers = peer_counts(bits, reach, 3_000_000, &mut stream(7));
    let (mut statistic, mut freedom) = (0.0, -1.0_f64);
    for (&one, &other) in ours.iter().zip(&peers) {
        if one + other > 20 {
            statistic += (one as f64 - other as f64).powi(2) / (one + other) as f64;
            freedom += 1.0;
        }
    }
    let nine = 2.0 / (9.0 * freedom);
    let quantile = freedom * (1.0 - nine + 4.75 * nine.sqrt()).powi(3);
    assert!(freedom > 400.0 && statistic < quantile, "{statistic} of {quantile}");
    Ok(())
}

#[test]
fn far_numbers_are_as_frequent_as_they_should_be() -> Result<()> {
    // Quarters from 4 on: 12,700 numbers of 2 * 10^8 are beyond 4, and 114 beyond 5.
    let (bits, reach) = (2, 22);
    let observed = counts(bits, reach, 200)?;
    let masses = masses(bits, reach);
    for side in [0, 1] {
        let far = |cells: &[u64]| -> Vec<u64> {
            if side == 0 { cells[..7].to_vec() } else { cells[cells.len() - 7..].to_vec() }
        };
        let far_masses = if side == 0 { &masses[..7] } else { &masses[masses.len() - 7..] };
        let mut far = far(&observed);
        far.push(observed.iter().sum::<u64>() - far.iter().sum::<u64>());
        let mut far_masses = far_masses.to_vec();
        far_masses.push(1.0 - far_masses.iter().sum::<f64>());
        check_law(&far, &far_masses);
    }
    Ok(())
}

#[test]
fn digits_below_the_table_are_uniform() -> Result<()> {
    // Over 2^-16 and less the curve is flat to 10^-5: far below what this many numbers show.
    for (bits, shifts) in
        [(24, vec![0, 1, 4]), (25, vec![0, 3]), (40, vec![0, 9, 20]), (52, vec![0, 8, 27, 28, 36])]
    {
        let numbers = rounded_gaussian(2_000_000, bits, &AesStreams::from_seed(bits.into()))?;
        for shift in shifts {
            let mut observed = [0; 16];
            for number in &numbers {
                observed[cell((number >> shift).unsigned_abs() % 16)] += 1;
            }
            check_law(&observed, &[1.0 / 16.0; 16]);
        }
    }
    Ok(())
}

#[test]
fn moments_and_signs_are_those_of_the_normal_law() -> Result<()> {
    for bits in [24, 52] {
        let draws = 4_000_000;
        let numbers = rounded_gaussian(draws, bits, &AesStreams::from_seed(99))?;
        let unit = (1_u64 << bits) as f64;
        let (mut sums, mut negative) = ([0.0; 4], 0.0);
        // Neighbours are independent.
        let (mut products, mut last) = (0.0, 0.0);
        for &number in &numbers {
            let z = number as f64 / unit;
            for (sum, power) in sums.iter_mut().zip(1..) {
                *sum += z.powi(power);
            }
            negative += f64::from(number < 0);
            products += z * last;
            last = z;
        }
        let n = draws as f64;
        let scores = [
            sums[0] / n.sqrt(),
            (sums[1] - n) / (2.0 * n).sqrt(),
            sums[2] / (15.0 * n).sqrt(),
            (sums[3] - 3.0 * n) / (96.0 * n).sqrt(),
            (negative - 0.5 * n) / (0.25 * n).sqrt(),
            products / n.sqrt(),
        ];
        assert!(scores.iter().all(|score| score.abs() < 5.2), "{scores:?}");
    }
    Ok(())
}
