//! Decisions of single points, compared with exact rationals around the limit.

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

use super::super::curve::{CELL_FACTOR, Trial, below_fraction, half_square, unit_height};
use super::super::lazy::Lazy;
use super::super::table::{BLOCKS, HEIGHT, PIECES};
use super::{cell, decay, stream};
use crate::noise::tests::Given;

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
