//! Laws within the pieces that are not certain, each drawn by itself.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;

use super::super::curve::{
    FRACTION, beyond, half_square, in_block, in_cell, in_fraction_of_cell, in_unit,
};
use super::super::table::{BLOCKS, CELLS, FAR, HEIGHT, PIECES};
use super::{area, cell, decay, stream};
use crate::noise::tests::{Given, check_law};
use crate::random::uniform_below;

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

#[test]
fn each_block_beyond_has_its_own_height() {
    // 2^j 256 HEIGHT e^(-(8 + j)^2 / 2), computed with 60 digits.
    for (excess, height) in
        [(0, 0.709_791_056_711_335), (1, 2.888_400_572_947_93e-4), (2, 4.324_041_366_676_72e-8)]
    {
        for (factor, kept) in [(0.999_999, true), (1.000_001, false)] {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let uniform = (height * factor * 2.0_f64.powi(64)) as u64;
            // Coins; the number that is compared; a position, and trials that keep it.
            let mut words = vec![u64::MAX; excess];
            words.extend([0, uniform, 0]);
            words.extend([u64::MAX; 12]);
            let found = beyond(&mut Given::new(&words));
            assert_eq!(found, kept.then(|| (8 + excess as u64) << FRACTION), "{excess}");
        }
    }
}

#[test]
fn units_lie_in_the_pieces_that_they_belong_to() {
    let mut rng = stream(8);
    let mut check = |unit: u64, low: f64, high: f64, seldom: bool| {
        // Most points of some pieces are above the curve.
        let mut found = (0..2000).filter_map(|_| in_unit(unit, &mut rng)).take(10).peekable();
        assert!(seldom || found.peek().is_some(), "{unit} from {low}");
        for digits in found {
            let x = digits as f64 / (1_u64 << FRACTION) as f64;
            assert!((low..high).contains(&x), "{unit}: {x} not from {low}");
        }
    };
    let edge = |index: usize| index as f64 / 256.0;
    let mut first = 0;
    for (index, &end) in PIECES.sums.iter().enumerate() {
        if index % 50 == 0 || index > CELLS - 3 {
            // What is in the first unit of a wedge is almost never below the curve.
            check(first, edge(index), edge(index + 1), true);
            check(u64::midpoint(first, end), edge(index), edge(index + 1), false);
            check(end - 1, edge(index), edge(index + 1), false);
        }
        first = end;
    }
    for (whole, weight) in BLOCKS.zip(PIECES.blocks) {
        check(first, whole as f64, whole as f64 + 1.0, false);
        check(first + weight - 1, whole as f64, whole as f64 + 1.0, false);
        first += weight;
    }
    // Cells of which the floor has cut more than a tenth.
    for index in [1, 3, 500, 700, 1000, 1001, 1023] {
        check(first + index as u64, edge(index), edge(index + 1), false);
    }
    first += CELLS as u64;
    for (unit, whole) in (first..).zip(BLOCKS) {
        check(unit, whole as f64, whole as f64 + 1.0, false);
    }
    first += 4;
    check(first, 8.0, 9.0, false);
    check(first + 1, 8.0, 9.0, false);
    assert!((first + FAR..PIECES.rest).all(|unit| in_unit(unit, &mut rng).is_none()));
}
