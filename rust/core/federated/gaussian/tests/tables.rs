//! The tables, proven piece by piece.

use super::super::curve::half_square;
use super::super::table::{BLOCKS, CELLS, COLUMNS, FAR, HEIGHT, PIECES, REST};
use crate::random::ExponentialBounds;

const TOTAL: u64 = 1 << 46;

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
