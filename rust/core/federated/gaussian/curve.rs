//! Exact decisions whether a point is below the bell curve.

use num_bigint::BigUint;
use rand::Rng;

use super::lazy::Lazy;
use super::table::{BLOCKS, CELL_BITS, CELLS, FAR, HEIGHT, PIECES};
use crate::random::{Interval, exponential, uniform_below};

/// Bits of a magnitude after the point that are looked at.
pub(super) const FRACTION: u32 = 53;

/// The first digits of a magnitude that is drawn among all that is not certain, or nothing if it
/// is above the curve or in no piece: then all begins anew.
pub(super) fn uncertain<R: Rng + ?Sized>(rng: &mut R) -> Option<u64> {
    in_unit(uniform_below(PIECES.rest, rng), rng)
}

/// The same in a given unit: wedges and the last cell, blocks, what the floors have cut of the
/// cells and of the blocks, what is beyond, and nothing.
pub(super) fn in_unit<R: Rng + ?Sized>(unit: u64, rng: &mut R) -> Option<u64> {
    let mut unit = unit;
    let cell = PIECES.sums.partition_point(|&sum| sum <= unit);
    if cell < CELLS {
        let before = cell.checked_sub(1).map_or(0, |before| PIECES.sums[before]);
        return in_cell(cell, unit - before, rng);
    }
    unit -= PIECES.sums[CELLS - 1];
    for (whole, weight) in BLOCKS.zip(PIECES.blocks) {
        if unit < weight {
            return in_block(whole, rng);
        }
        unit -= weight;
    }
    if unit < CELLS as u64 {
        return in_fraction_of_cell(unit, rng);
    }
    unit -= CELLS as u64;
    for (whole, weight) in BLOCKS.zip(PIECES.blocks) {
        if unit == 0 {
            let kept = below_fraction(&unit_height(), half_square(whole), weight, rng);
            return if kept { in_block(whole, rng) } else { None };
        }
        unit -= 1;
    }
    if unit < FAR { beyond(rng) } else { None }
}

/// The height of a block over `e^(-k^2 / 2)`.
pub(super) fn unit_height() -> BigUint {
    BigUint::from(HEIGHT) << CELL_BITS
}

/// `k^2 / 2`, exactly for `k < 2^26`.
pub(super) fn half_square(whole: u64) -> f64 {
    let whole = whole as f64;
    0.5 * whole * whole
}

/// A point in a cell, in a given unit of its height.
pub(super) fn in_cell<R: Rng + ?Sized>(cell: usize, unit: u64, rng: &mut R) -> Option<u64> {
    let mut position = Lazy::new(rng);
    // Units from the wedge on are certainly below the curve. Within the wedge the unit and further
    // digits are the first number of the trial, times the height of the cell.
    let trial =
        Trial { base: unit, factor: CELL_FACTOR, scale: PIECES.cells[cell], whole: cell as u64 };
    let kept = unit >= PIECES.wedges[cell] || trial.draw(&mut position, rng);
    kept.then(|| digits_in_cell(cell as u64, position.first()))
}

/// The same in the unit that the height of a cell has above its floor.
pub(super) fn in_fraction_of_cell<R: Rng + ?Sized>(cell: u64, rng: &mut R) -> Option<u64> {
    let height = PIECES.cells[usize::try_from(cell).unwrap_or(0)];
    // cell^2 / 2^17, exactly
    let exponent = half_square(cell) / f64::from(1_u32 << (2 * CELL_BITS));
    if !below_fraction(&HEIGHT.into(), exponent, height, rng) {
        return None;
    }
    let mut position = Lazy::new(rng);
    let trial = Trial { base: 0, factor: CELL_FACTOR, scale: 1, whole: cell };
    trial.draw(&mut position, rng).then(|| digits_in_cell(cell, position.first()))
}

/// The digits of a magnitude in a cell.
pub(super) const fn digits_in_cell(cell: u64, position: u64) -> u64 {
    let bits = FRACTION - CELL_BITS;
    (cell << bits) | (position >> (u64::BITS - bits))
}

/// A point in a block, under a curve that is one at its left end.
pub(super) fn in_block<R: Rng + ?Sized>(whole: u64, rng: &mut R) -> Option<u64> {
    let mut position = Lazy::new(rng);
    // x (2k + x) / 2 = (k + 1) x (2k + x) / (2k + 2), and x (2k + x) < 2k + 2.
    let trial = Trial { base: 0, factor: 2 * whole + 2, scale: 1, whole };
    let kept = (0..=whole).all(|_| trial.draw(&mut position, rng));
    kept.then(|| (whole << FRACTION) | (position.first() >> (u64::BITS - FRACTION)))
}

/// A point beyond the blocks: block `8 + j` has `2^-j` units, of which the curve has, at its left
/// end, a part of `2^j 256 HEIGHT e^(-(8 + j)^2 / 2)`, at most 0.71.
#[cold]
pub(super) fn beyond<R: Rng + ?Sized>(rng: &mut R) -> Option<u64> {
    let mut excess = 0;
    while rng.next_u64() >> 63 == 1 {
        excess += 1;
    }
    let whole = BLOCKS.end + excess;
    let kept = below_fraction(&(unit_height() << excess), half_square(whole), 0, rng);
    // A magnitude of 1000 has a probability below 10^-200000: what is beyond is cut there, so that
    // the digits stay within a word.
    if kept { in_block(whole.min(1000), rng) } else { None }
}

/// What the square of a position in a cell is divided by: `(i + v)^2 / 2^17` is `x^2 / 2`.
pub(super) const CELL_FACTOR: u64 = 1 << (2 * CELL_BITS + 1);

/// A trial of probability `e^-g` with `g = v (2 whole + v) / factor`, at most one, for a position v.
///
/// J. von Neumann, "Various techniques used in connection with random digits" (1951): in a
/// sequence of uniform numbers the descent `g > U1 > U2 > ... > Un` has an even length n with
/// probability `e^-g`. It is given that U1 is in the unit `base` out of `scale` units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    pub(super) base: u64,
    pub(super) factor: u64,
    pub(super) scale: u64,
    pub(super) whole: u64,
}

impl Trial {
    #[inline]
    fn draw<R: Rng + ?Sized>(&self, position: &mut Lazy, rng: &mut R) -> bool {
        let mut first = Lazy::new(rng);
        if !self.first_is_below(&mut first, position, rng) {
            return true;
        }
        let mut last = Lazy::new(rng);
        if !self.second_is_below(&mut last, &mut first, rng) {
            return false;
        }
        let mut even = true;
        loop {
            let mut next = Lazy::new(rng);
            if !next.below(&mut last, rng) {
                return even;
            }
            (last, even) = (next, !even);
        }
    }

    /// Whether `(base + u) / scale < v (2 whole + v) / factor`.
    #[inline]
    pub(super) fn first_is_below<R: Rng + ?Sized>(
        &self,
        u: &mut Lazy,
        v: &mut Lazy,
        rng: &mut R,
    ) -> bool {
        // With 32 digits: products are below 2^127 as the base is below 2^33, the scale below 2^38
        // and the other two below 2^18, or base and scale are 0 and 1.
        let (a, b) = (u128::from(u.first() >> 32), u128::from(v.first() >> 32));
        let left = (u128::from(self.base) << 32) + a;
        let unit = u128::from(self.factor) << 32;
        let whole = u128::from(self.whole) << 33;
        let scale = u128::from(self.scale);
        if (left + 1) * unit <= scale * b * (whole + b) {
            return true;
        }
        if left * unit >= scale * (b + 1) * (whole + b + 1) {
            return false;
        }
        self.settle_first(u, v, rng)
    }

    #[cold]
    #[inline(never)]
    fn settle_first<R: Rng + ?Sized>(&self, u: &mut Lazy, v: &mut Lazy, rng: &mut R) -> bool {
        let mut digits = 1;
        loop {
            let shift = 64 * digits as u64;
            let (a, b) = (u.scaled(digits, rng), v.scaled(digits, rng));
            let left = (BigUint::from(self.base) << shift) + a;
            let unit = BigUint::from(self.factor) << shift;
            let whole = BigUint::from(2 * self.whole) << shift;
            if (&left + 1_u32) * &unit <= &b * (&whole + &b) * self.scale {
                return true;
            }
            let b = b + 1_u32;
            if left * unit >= &b * (&whole + &b) * self.scale {
                return false;
            }
            digits += 1;
        }
    }

    /// Whether `other < (base + u) / scale`.
    #[inline]
    pub(super) fn second_is_below<R: Rng + ?Sized>(
        &self,
        other: &mut Lazy,
        u: &mut Lazy,
        rng: &mut R,
    ) -> bool {
        let (a, b) = (u128::from(u.first() >> 32), u128::from(other.first() >> 32));
        let right = (u128::from(self.base) << 32) + a;
        let scale = u128::from(self.scale);
        if (b + 1) * scale <= right {
            return true;
        }
        if b * scale > right {
            return false;
        }
        self.settle_second(other, u, rng)
    }

    #[cold]
    #[inline(never)]
    fn settle_second<R: Rng + ?Sized>(&self, other: &mut Lazy, u: &mut Lazy, rng: &mut R) -> bool {
        let mut digits = 1;
        loop {
            let (a, b) = (u.scaled(digits, rng), other.scaled(digits, rng));
            let right = (BigUint::from(self.base) << (64 * digits as u64)) + a;
            if (&b + 1_u32) * self.scale <= right {
                return true;
            }
            if b * self.scale > right {
                return false;
            }
            digits += 1;
        }
    }
}

/// Whether a uniform number is below `height e^-exponent - floor`, which is from 0 to 1.
#[cold]
pub(super) fn below_fraction<R: Rng + ?Sized>(
    height: &BigUint,
    exponent: f64,
    floor: u64,
    rng: &mut R,
) -> bool {
    let mut uniform = Lazy::new(rng);
    let mut digits = 1;
    loop {
        let shift = 64 * digits as u64;
        let bits = shift + 128;
        let number = uniform.scaled(digits, rng) + (BigUint::from(floor) << shift);
        // The exponential is at least one: the quotient always exists.
        let bounds = Interval::one(bits).over(&exponential(exponent, bits));
        if let Some(bounds) = bounds {
            if (&number + 1_u32) << (bits - shift) <= height * bounds.low {
                return true;
            }
            if number << (bits - shift) >= height * bounds.high {
                return false;
            }
        }
        digits += 1;
    }
}
