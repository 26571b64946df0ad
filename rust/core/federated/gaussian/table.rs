//! Pieces under the bell curve, with whole weights that the compiler computes.
//!
//! Magnitudes are drawn from `HEIGHT e^(-x^2 / 2)` for x >= 0. The unit is the area of a cell of
//! width 1/256 and height one. The following pieces, chosen by their whole weights, cover the
//! curve:
//!
//! * for x below 4, cell `i`, from `i / 256`, up to height `floor(HEIGHT e^(-(i / 256)^2 / 2))`.
//!   Most of it is certainly below the curve, and the rest is its wedge;
//! * block `k`, from `k` to `k + 1`, built in the same way, for x from 4 to 8;
//! * for each of these, the fraction that the floor has cut off: one unit, of which only the
//!   fraction is kept;
//! * two units for everything beyond 8.

use core::ops::Range;

/// Fractional bits of the numbers that the tables are worked out with.
const FRACTION: u32 = 120;

/// Cells.
pub(super) const CELLS: usize = 1024;

/// `log2` of the cells per unit of length.
pub(super) const CELL_BITS: u32 = 8;

/// The blocks.
pub(super) const BLOCKS: Range<u64> = 4..8;

/// Units of what is beyond the blocks.
pub(super) const FAR: u64 = 2;

/// `log2` of all units.
const TOTAL_BITS: u32 = 46;

/// `log2` of the units of a column.
const COLUMN_BITS: u32 = TOTAL_BITS - CELL_BITS - 2;

/// The height of the curve at zero: the largest with which all pieces are at most `2^46` units.
pub(super) const HEIGHT: u64 = 218_934_386_520;

/// The piece that stands for all that is not certain.
pub(super) const REST: usize = CELLS - 1;

/// The weights of the pieces.
#[derive(Debug)]
pub(super) struct Pieces {
    /// The heights of the cells.
    pub(super) cells: [u64; CELLS],
    /// The part of each height in which a point may be above the curve: rounded up, the height
    /// times the most that `-ln` of the curve over its value at the left end is within the cell.
    pub(super) wedges: [u64; CELLS],
    /// The weights of the blocks.
    pub(super) blocks: [u64; 4],
    /// Sums of what is not certain in the cells so far: wedges, and the whole last cell.
    pub(super) sums: [u64; CELLS],
    /// The weight of all that is not certain, and of what is left of the `2^46` units.
    pub(super) rest: u64,
}

/// For each of 1024 columns of `2^36` units, how many the piece of the same number has, and the
/// piece that has the others.
///
/// The alias method: A. J. Walker, "An efficient method for generating discrete random variables
/// with general distributions", ACM Transactions on Mathematical Software 3 (1977).
#[derive(Debug)]
pub(super) struct Columns([u64; CELLS]);

pub(super) static PIECES: Pieces = Pieces::new();
pub(super) static COLUMNS: Columns = Columns::new(&Pieces::new());

/// A number in `[low, high] / 2^120`, at most one.
#[derive(Clone, Copy)]
struct Enclosed {
    low: u128,
    high: u128,
}

impl Enclosed {
    const ONE: Self = Self { low: 1 << FRACTION, high: 1 << FRACTION };

    const fn times(self, other: Self) -> Self {
        // Two carries from the lower halves are not counted.
        Self { low: product(self.low, other.low), high: product(self.high, other.high) + 2 }
    }

    /// `e^-t` for `t = 2^-17`: the terms to the seventh; the next is below `2^-120`.
    const fn slow_decay() -> Self {
        let (mut low, mut high) = (0, 1);
        let (mut index, mut factorial) = (0, 1);
        while index < 8 {
            let power = 1_u128 << (FRACTION - 17 * index);
            let (down, up) = (power / factorial, power.div_ceil(factorial));
            if index % 2 == 0 {
                (low, high) = (low + down, high + up);
            } else {
                (low, high) = (low - up, high - down);
            }
            index += 1;
            factorial *= index as u128;
        }
        Self { low, high }
    }

    /// The whole part of `weight` times this number.
    const fn floor_times(self, weight: u64) -> u64 {
        let whole = floor_product(weight, self.low);
        assert!(whole == floor_product(weight, self.high), "an uncertain digit");
        whole
    }
}

/// `left * right / 2^120` for numbers up to `2^120`, rounded down, or one less.
const fn product(left: u128, right: u128) -> u128 {
    let half = FRACTION / 2;
    let mask = (1 << half) - 1;
    let (a, b) = (left >> half, left & mask);
    let (c, d) = (right >> half, right & mask);
    a * c + ((a * d + b * c) >> half)
}

/// `floor(weight * number / 2^120)`.
#[expect(clippy::cast_possible_truncation, reason = "at most the weight")]
const fn floor_product(weight: u64, number: u128) -> u64 {
    let half = FRACTION / 2;
    let (high, low) = (number >> half, number & ((1 << half) - 1));
    let weight = weight as u128;
    ((weight * high + ((weight * low) >> half)) >> half) as u64
}

impl Pieces {
    /// Evaluated by the compiler, which fails if a digit is uncertain or the weights do not fit.
    const fn new() -> Self {
        // e^(-i^2 / 2^17), by the ratios e^(-(2i + 1) / 2^17) of neighbours.
        let (mut power, mut ratio) = (Enclosed::ONE, Enclosed::slow_decay());
        let ratio_of_ratios = ratio.times(ratio);
        let mut quarters = [Enclosed::ONE; 4];
        let (mut cells, mut wedges, mut sums) = ([0; CELLS], [0; CELLS], [0; CELLS]);
        let (mut certain, mut uncertain) = (0, 0);
        let mut index = 0;
        while index < CELLS {
            cells[index] = power.floor_times(HEIGHT);
            // The height is below 2^38, and 2i + 1 below 2^11.
            wedges[index] = (cells[index] * (2 * index as u64 + 1)).div_ceil(1 << 17);
            if index == REST {
                uncertain += cells[index];
            } else {
                certain += cells[index] - wedges[index];
                uncertain += wedges[index];
            }
            sums[index] = uncertain;
            power = power.times(ratio);
            ratio = ratio.times(ratio_of_ratios);
            index += 1;
            if index.is_multiple_of(CELLS / 4) {
                quarters[4 * index / CELLS - 1] = power;
            }
        }
        // e^(-k^2 / 2) from e^-0.5, e^-2, e^-4.5 and e^-8.
        let [half, two, four_and_half, eight] = quarters;
        let (unit, sixteen) = (HEIGHT << CELL_BITS, eight.times(eight));
        let blocks = [
            eight.floor_times(unit),
            eight.times(four_and_half).floor_times(unit),
            sixteen.times(two).floor_times(unit),
            sixteen.times(eight).times(half).floor_times(unit),
        ];
        let rest = (1 << TOTAL_BITS) - certain;
        let fractions = CELLS as u64 + 4;
        let needed = uncertain + blocks[0] + blocks[1] + blocks[2] + blocks[3] + fractions + FAR;
        assert!(needed <= rest, "pieces that do not fit");
        Self { cells, wedges, blocks, sums, rest }
    }

    /// The weight of the certain part of a cell, or of the rest.
    const fn weight(&self, piece: usize) -> u64 {
        if piece == REST { self.rest } else { self.cells[piece] - self.wedges[piece] }
    }
}

impl Columns {
    /// Vose's construction: columns that are not full are filled up by pieces that do not fit
    /// into theirs.
    const fn new(pieces: &Pieces) -> Self {
        let full = 1 << COLUMN_BITS;
        let mut left = [0; CELLS];
        let (mut small, mut smalls) = ([0; CELLS], 0);
        let (mut large, mut larges) = ([0; CELLS], 0);
        let mut index = 0;
        while index < CELLS {
            left[index] = pieces.weight(index);
            if left[index] < full {
                small[smalls] = index;
                smalls += 1;
            } else {
                large[larges] = index;
                larges += 1;
            }
            index += 1;
        }
        let mut columns = [0; CELLS];
        while smalls > 0 {
            assert!(larges > 0, "weights that do not add up");
            smalls -= 1;
            let (under, over) = (small[smalls], large[larges - 1]);
            columns[under] = (left[under] << 10) | over as u64;
            left[over] -= full - left[under];
            if left[over] < full {
                small[smalls] = over;
                smalls += 1;
                larges -= 1;
            }
        }
        while larges > 0 {
            larges -= 1;
            let piece = large[larges];
            assert!(left[piece] == full, "weights that do not add up");
            columns[piece] = (full << 10) | piece as u64;
        }
        Self(columns)
    }

    /// The piece that a column has at one of its units.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "below 2^10")]
    pub(super) const fn piece(&self, column: usize, unit: u64) -> usize {
        let entry = self.0[column % CELLS];
        if unit < entry >> 10 { column } else { (entry % CELLS as u64) as usize }
    }
}
