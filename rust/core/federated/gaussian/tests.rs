//! The tables are proven piece by piece, decisions compared with exact rationals, and the law of
//! the numbers with the error function and with Karney's sampler.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use rayon::ThreadPoolBuilder;

use super::curve::{CELL_FACTOR, Trial, below_fraction, beyond, in_block, in_cell};
use super::curve::{half_square, in_fraction_of_cell, unit_height};
use super::lazy::Lazy;
use super::table::{BLOCKS, CELLS, FAR, HEIGHT, PIECES};
use super::*;
use crate::random::{AesStream, AesStreams, ExponentialBounds, uniform_below};
use crate::sharing::noise::tests::{Given, check_law};

const TOTAL: u64 = 1 << 46;

fn stream(index: u64) -> AesStream {
    AesStreams::from_seed(17).stream(Purpose::Simulation, index)
}

fn cell(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

// The tables.

#[test]
fn heights_are_the_whole_parts_of_the_curve() {
    for (index, &height) in (0..).zip(&PIECES.cells) {
        let bounds = ExponentialBounds::new(half_square(index) / 65536.0);
        assert_eq!(u128::from(height), bounds.floor_quotient(HEIGHT.into(), 0), "{index}");
        let above = bounds.ceiling_quotient(HEIGHT);
        assert!(above == u128::from(height) + u128::from(index > 0), "{index}");
    }
    for (whole, weight) in BLOCKS.zip(PIECES.blocks) {
        let bounds = ExponentialBounds::new(half_square(whole));
        assert_eq!(u128::from(weight), bounds.floor_quotient(u128::from(HEIGHT) << 8, 0));
        assert_eq!(u128::from(weight) + 1, bounds.ceiling_quotient(HEIGHT << 8));
    }
}

#[test]
fn below_the_wedges_the_curve_is_certain() {
    for (index, (&height, &wedge)) in (0_u64..).zip(PIECES.cells.iter().zip(&PIECES.wedges)) {
        // Over a cell -ln of the curve grows by ((i + 1)^2 - i^2) / 2^17, so that the curve stays
        // above height * (1 - that): e^-g >= 1 - g.
        let growth = height * ((index + 1).pow(2) - index.pow(2));
        assert!(wedge << 17 >= growth && (wedge - 1) << 17 < growth, "{index}");
        assert!(wedge < 1 << 33 && height < 1 << 38);
    }
}

#[test]
fn all_units_are_shared_out_as_the_weights_say() {
    let mut units = vec![0; CELLS];
    for column in 0..CELLS {
        // A column changes hands once: bisection finds where.
        let (first, last) = (COLUMNS.piece(column, 0), COLUMNS.piece(column, (1 << 36) - 1));
        let (mut own, mut other) = (0, 1_u64 << 36);
        while own < other {
            let middle = u64::midpoint(own, other);
            if COLUMNS.piece(column, middle) == last && first != last {
                other = middle;
            } else {
                own = middle + 1;
            }
        }
        units[first] += own;
        units[last] += (1 << 36) - own;
    }
    assert_eq!(units.iter().sum::<u64>(), TOTAL);
    let mut uncertain = 0;
    for (index, &units) in units.iter().enumerate() {
        if index == REST {
            assert_eq!(units, PIECES.rest);
            uncertain += PIECES.cells[index];
        } else {
            assert_eq!(units, PIECES.cells[index] - PIECES.wedges[index]);
            uncertain += PIECES.wedges[index];
        }
        assert_eq!(PIECES.sums[index], uncertain);
    }
    let used = uncertain + PIECES.blocks.iter().sum::<u64>() + CELLS as u64 + 4 + FAR;
    // What is left over is as small as the height allows.
    assert!(used <= PIECES.rest && PIECES.rest - used < CELLS as u64);
}

#[test]
fn blocks_beyond_the_table_fit_into_their_units() {
    for excess in 0..20 {
        let whole = BLOCKS.end + excess;
        let height = u128::from(HEIGHT) << (8 + excess);
        assert!(ExponentialBounds::new(half_square(whole)).at_least(height, 1), "{whole}");
    }
}

// The decisions.

/// A number of given digits, then zeros.
fn lazy(digits: &BigUint) -> Lazy {
    let word = |shift: u32| ((digits >> shift) & BigUint::from(u64::MAX)).to_u64().unwrap_or(0);
    let mut number = Lazy::new(&mut Given::new(&[word(128)]));
    number.scaled(3, &mut Given::new(&[word(64), word(0)]));
    number
}

fn ratio(digits: &BigUint) -> BigRational {
    BigRational::new(digits.clone().into(), BigInt::one() << 192_u32)
}

/// `number 2^192`, rounded down, and its neighbours at distances of all orders, within the unit.
fn around(number: &BigRational) -> Vec<BigUint> {
    let unit = BigInt::one() << 192_u32;
    let base = (number * BigRational::from(unit.clone())).floor().to_integer();
    let mut digits = Vec::new();
    for shift in [0_u32, 1, 60, 63, 64, 65, 100, 127, 128, 130, 155, 159, 160, 161, 180] {
        let step = BigInt::one() << shift;
        digits.extend([&base - &step, base.clone(), &base + &step]);
    }
    digits.retain(|digits| *digits >= BigInt::zero() && *digits < unit);
    digits.into_iter().map(|digits| digits.magnitude().clone()).collect()
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (whole, (&scale, &wedge)) in (0..).zip(PIECES.cells.iter().zip(&PIECES.wedges)) {
        if whole % 93 < 2 {
            for base in [0, 1, wedge / 2, wedge - 1] {
                trials.push(Trial { base, factor: CELL_FACTOR, scale, whole });
            }
            trials.push(Trial { base: 0, factor: CELL_FACTOR, scale: 1, whole });
        }
    }
    for whole in [4, 5, 6, 7, 8, 11, 1000] {
        trials.push(Trial { base: 0, factor: 2 * whole + 2, scale: 1, whole });
    }
    trials
}

#[test]
fn comparisons_with_the_exponent_agree_with_exact_rationals() {
    let mut rng = stream(0);
    let (mut below, mut above, mut zeros) = (0, 0, Given::new(&[]));
    for trial in trials() {
        let Trial { base, factor, scale, whole } = trial;
        for corner in 0..12 {
            let position = Lazy::new(&mut rng).scaled(3, &mut rng);
            // Positions close to both ends as well.
            let position = match corner {
                0..4 => &position >> (40 * corner),
                4 => (BigUint::one() << 192_u32) - 1_u32,
                _ => position,
            };
            let v = ratio(&position);
            let exponent = &v * (BigRational::from(BigInt::from(2 * whole)) + &v)
                / BigRational::from(BigInt::from(factor));
            let limit = &exponent * BigRational::from(BigInt::from(scale))
                - BigRational::from(BigInt::from(base));
            for first in around(&limit) {
                let u = ratio(&first);
                if u == limit {
                    continue;
                }
                let found =
                    trial.first_is_below(&mut lazy(&first), &mut lazy(&position), &mut zeros);
                assert_eq!(found, u < limit, "{trial:?}");
                *(if found { &mut below } else { &mut above }) += 1;
            }
        }
    }
    assert!(below > 1000 && above > 1000);
}

#[test]
fn comparisons_of_two_numbers_agree_with_exact_rationals() {
    let mut rng = stream(1);
    let (mut below, mut above, mut zeros) = (0, 0, Given::new(&[]));
    for trial in trials() {
        for _ in 0..12 {
            let first = Lazy::new(&mut rng).scaled(3, &mut rng);
            let limit = (BigRational::from(BigInt::from(trial.base)) + ratio(&first))
                / BigRational::from(BigInt::from(trial.scale));
            for second in around(&limit) {
                let other = ratio(&second);
                if other == limit {
                    continue;
                }
                let found =
                    trial.second_is_below(&mut lazy(&second), &mut lazy(&first), &mut zeros);
                assert_eq!(found, other < limit, "{trial:?}");
                *(if found { &mut below } else { &mut above }) += 1;
            }
        }
    }
    assert!(below > 1000 && above > 1000);
}

#[test]
fn digits_are_compared_until_they_differ() {
    let mut zeros = Given::new(&[]);
    let number = |words: [u64; 3]| {
        lazy(&words.into_iter().fold(BigUint::zero(), |sum, word| (sum << 64_u32) + word))
    };
    for (one, other, below) in [
        ([1, 0, 0], [2, 0, 0], true),
        ([2, 0, 0], [1, 9, 9], false),
        ([7, 5, 9], [7, 6, 0], true),
        ([7, 5, 9], [7, 5, 8], false),
        ([7, 5, 8], [7, 5, 9], true),
    ] {
        assert_eq!(number(one).below(&mut number(other), &mut zeros), below);
    }
    let mut rng = Given::new(&[3, 4, 5, 6]);
    let mut one = Lazy::new(&mut rng);
    assert_eq!(one.scaled(2, &mut rng), (BigUint::from(3_u32) << 64_u32) + 4_u32);
    assert_eq!(one.scaled(1, &mut rng), BigUint::from(3_u32));
    assert_eq!(rng.used(), 2);
}

/// `e^-x` within `2^-300`, by the alternating series in exact rationals, for `x = numerator / 2^17`.
fn decay(numerator: u64) -> BigRational {
    let x = BigRational::new(numerator.into(), BigInt::from(1 << 17));
    let (mut term, mut sum) = (BigRational::one(), BigRational::one());
    for index in 1..340_u32 {
        term = -term * &x / BigInt::from(index);
        sum += &term;
    }
    sum
}

#[test]
fn what_the_floor_has_cut_is_compared_exactly() {
    let mut zeros = Given::new(&[]);
    let mut cases = Vec::new();
    for index in [1, 2, 77, 512, 1023] {
        let height = BigUint::from(HEIGHT);
        cases.push((
            height,
            half_square(index) / 65536.0,
            index * index,
            PIECES.cells[cell(index)],
        ));
    }
    for (whole, weight) in BLOCKS.zip(PIECES.blocks) {
        cases.push((unit_height(), half_square(whole), (whole * whole) << 16, weight));
    }
    cases.push((unit_height(), half_square(8), 64 << 16, 0));
    cases.push((unit_height() << 1_u32, half_square(9), 81 << 16, 0));
    for (height, exponent, numerator, floor) in cases {
        let fraction = decay(numerator) * BigRational::from(BigInt::from(height.clone()))
            - BigRational::from(BigInt::from(floor));
        assert!(fraction > BigRational::zero() && fraction < BigRational::one(), "{exponent}");
        for digits in around(&fraction) {
            let words: Vec<u64> = [128_u32, 64, 0]
                .map(|shift| ((&digits >> shift) & BigUint::from(u64::MAX)).to_u64().unwrap_or(0))
                .to_vec();
            let found = below_fraction(&height, exponent, floor, &mut Given::new(&words));
            assert_eq!(found, ratio(&digits) < fraction, "{exponent}");
        }
    }
    // Nothing is cut at the top of the curve.
    assert!(!below_fraction(&HEIGHT.into(), 0.0, HEIGHT, &mut zeros));
}

// Laws of the parts.

/// The integral of `e^(-x^2 / 2)` from `low` to `high`.
fn area(low: f64, high: f64) -> f64 {
    let tail = |x: f64| libm::erfc(x * core::f64::consts::FRAC_1_SQRT_2);
    // Near zero by the error function: no digits cancel.
    let between = if high < 0.5 {
        let body = |x: f64| libm::erf(x * core::f64::consts::FRAC_1_SQRT_2);
        body(high) - body(low)
    } else {
        tail(low) - tail(high)
    };
    between * (core::f64::consts::PI / 2.0).sqrt()
}

const BINS: usize = 16;

/// Counts in equal bins of `[start, start + width)`; the last count is of nothing.
fn binned(start: f64, width: f64, draws: u32, mut draw: impl FnMut() -> Option<u64>) -> Vec<u64> {
    let mut observed = vec![0; BINS + 1];
    for _ in 0..draws {
        let bin = draw().map_or(BINS, |digits| {
            let x = digits as f64 / (1_u64 << FRACTION) as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let bin = ((x - start) / width * BINS as f64) as usize;
            bin.min(BINS - 1)
        });
        observed[bin] += 1;
    }
    observed
}

/// Masses of those bins, where a point at x is kept with probability `e^(-x^2 / 2) scale - cut`.
fn kept(start: f64, width: f64, scale: f64, cut: f64) -> Vec<f64> {
    let step = width / BINS as f64;
    let edge = |bin: usize| start + step * bin as f64;
    let mut masses: Vec<f64> = (0..BINS)
        .map(|bin| (area(edge(bin), edge(bin + 1)) * scale - cut * step) / width)
        .collect();
    masses.push(1.0 - masses.iter().sum::<f64>());
    masses
}

#[test]
fn wedges_hold_what_is_between_them_and_the_curve() {
    let mut rng = stream(2);
    for index in [1, 2, 60, 256, 511, 800, 1023] {
        let (height, wedge) = (PIECES.cells[cell(index)], PIECES.wedges[cell(index)]);
        let start = index as f64 / 256.0;
        let observed = binned(start, 1.0 / 256.0, 400_000, || {
            let unit = uniform_below(wedge, &mut rng);
            in_cell(cell(index), unit, &mut rng)
        });
        // Units above the wedge are kept for certain: they are subtracted.
        let share = height as f64 / wedge as f64;
        let scale = (0.5 * start * start).exp() * share;
        check_law(&observed, &kept(start, 1.0 / 256.0, scale, share - 1.0));
        assert!(in_cell(cell(index), wedge, &mut rng).is_some());
    }
}

#[test]
fn fractions_of_cells_are_kept_under_the_curve() {
    let mut rng = stream(3);
    for index in [1, 700, 1023] {
        let start = index as f64 / 256.0;
        let fraction = decay(index * index) * BigRational::from(BigInt::from(HEIGHT))
            - BigRational::from(BigInt::from(PIECES.cells[cell(index)]));
        let scale = (0.5 * start * start).exp() * fraction.to_f64().unwrap_or(f64::NAN);
        let observed = binned(start, 1.0 / 256.0, 8_000, || in_fraction_of_cell(index, &mut rng));
        check_law(&observed, &kept(start, 1.0 / 256.0, scale, 0.0));
    }
}

#[test]
fn blocks_are_kept_under_the_curve() {
    let mut rng = stream(4);
    for whole in [4, 5, 6, 7, 8, 12] {
        let observed = binned(whole as f64, 1.0, 400_000, || in_block(whole, &mut rng));
        let scale = half_square(whole).exp();
        check_law(&observed, &kept(whole as f64, 1.0, scale, 0.0));
    }
}

#[test]
fn all_beyond_the_blocks_is_kept_under_the_curve() {
    let mut rng = stream(5);
    let mut observed = [0; 2];
    for _ in 0..40_000 {
        let digits = beyond(&mut rng);
        assert!(digits.is_none_or(|digits| digits >> FRACTION >= 8));
        observed[usize::from(digits.is_some())] += 1;
    }
    let mass = area(8.0, 40.0) * 256.0 * HEIGHT as f64 / FAR as f64;
    check_law(&observed, &[1.0 - mass, mass]);
}

// The law of the numbers.

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

// Bits and chunks.

#[test]
fn magnitudes_are_rounded_to_the_nearest() {
    // 0.5 and 1.5 are rounded up, and so is what is above; what is below is rounded down.
    let unit = 1_u64 << FRACTION;
    for (digits, bits, expected) in [
        (unit / 2 - 1, 0, 0),
        (unit / 2, 0, 1),
        (3 * unit / 2 - 1, 0, 1),
        (3 * unit / 2, 0, 2),
        (1, 52, 1),
        (2, 52, 1),
        (3, 52, 2),
        (unit + unit / 8, 2, 5),
        (unit + unit / 8 - 1, 2, 4),
        (1000 * unit, 52, 1000 << 52),
    ] {
        assert_eq!(nearest(digits, BITS - bits), expected);
    }
}

#[test]
fn fewer_bits_are_the_leading_bits() -> Result<()> {
    // The same words give the same real numbers, whatever is kept of them.
    let streams = AesStreams::from_seed(3);
    for (fine, coarse) in [(24_u32, [0, 1, 7, 8, 23]), (52, [25, 26, 40, 50, 51])] {
        let reference = rounded_gaussian(30_000, fine, &streams)?;
        for bits in coarse {
            let numbers = rounded_gaussian(30_000, bits, &streams)?;
            for (&number, &reference) in numbers.iter().zip(&reference) {
                let rounded = number << (fine - bits);
                let half = 1_u64 << (fine - bits - 1);
                assert!(rounded.abs_diff(reference) <= half, "{bits} of {fine}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_number_of_threads_does_not_matter() -> Result<()> {
    let length = 5 * GAUSSIAN_CHUNK + 17;
    for bits in [3, 24, 30] {
        let draw = || rounded_gaussian(length, bits, &AesStreams::from_seed(4));
        let one = ThreadPoolBuilder::new().num_threads(1).build();
        let two = ThreadPoolBuilder::new().num_threads(2).build();
        let (Ok(one), Ok(two)) = (one, two) else { continue };
        let numbers = one.install(draw)?;
        assert_eq!(numbers, two.install(draw)?);
        // Chunks have streams of their own.
        assert_ne!(numbers[..100], numbers[GAUSSIAN_CHUNK..GAUSSIAN_CHUNK + 100]);
    }
    Ok(())
}

#[test]
fn lengths_and_bits_out_of_range_are_refused() -> Result<()> {
    let streams = AesStreams::from_seed(1);
    assert!(rounded_gaussian(0, 24, &streams)?.is_empty());
    assert!(matches!(
        rounded_gaussian(1, 53, &streams),
        Err(Error::Integer { argument: "bits", value: 53, .. })
    ));
    assert!(matches!(
        rounded_gaussian(usize::MAX, 24, &streams),
        Err(Error::Accounting { argument: "length", .. })
    ));
    Ok(())
}
