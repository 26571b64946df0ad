//! Gaussian noise on a grid, drawn exactly.
//!
//! The magnitude comes from pieces of known weights that cover the bell curve (`table`). About 996
//! of 1000 draws end there, with one word. Ten bits choose a column, and 36 bits choose one of its
//! units. The unit gives a cell in which the point is certainly below the curve. 17 bits are the
//! first digits of the position in the cell, and one bit is the sign. For the other draws, integers
//! of growing length decide whether a point is below the curve (`curve`). If it is not, the draw
//! starts anew.
//!
//! Nothing is rounded, and no floating-point numbers are compared. Weights are whole numbers, and a
//! further piece covers what they leave out. A uniform number has as many digits as a decision
//! needs.

mod curve;
#[cfg(test)]
mod karney;
mod lazy;
mod table;
#[cfg(test)]
mod tests;

use rand::Rng;

use self::curve::{FRACTION, digits_in_cell, uncertain};
use self::table::{CELL_BITS, COLUMNS, REST};
use crate::parallel;
use crate::random::{Purpose, Streams, Words};
use crate::{Error, Result};

/// How many numbers are drawn from one stream. Each chunk has a stream of its own, whichever thread
/// draws it.
pub const GAUSSIAN_CHUNK: usize = 1 << 13;

/// The most fractional bits.
const BITS: u32 = 52;

/// Draws `length` independent values of `2^bits Z`, rounded to the nearest integer, for a standard
/// normal Z. It runs on the current rayon pool, and the result depends on `streams` alone.
///
/// The law is exact: no floating-point number is involved, and every decision reads further words
/// until it is certain. An integer vector plus such noise is the rounded sum of the vector and
/// continuous Gaussian noise. So every privacy guarantee of the Gaussian mechanism holds for it.
///
/// ```
/// use turnout_core::federated::rounded_gaussian;
/// use turnout_core::random::AesStreams;
///
/// let noise = rounded_gaussian(1000, 24, &AesStreams::from_operating_system()?)?;
/// let squares: f64 = noise.iter().map(|&x| (x as f64 / f64::from(1 << 24)).powi(2)).sum();
/// assert!((700.0..1300.0).contains(&squares));
/// # Ok::<(), turnout_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Integer`] if `bits` is above 52; [`Error::Accounting`] if the numbers do not fit in
/// memory.
pub fn rounded_gaussian<S: Streams>(length: usize, bits: u32, streams: &S) -> Result<Vec<i64>> {
    if bits > BITS {
        let expected = "from 0 to 52";
        return Err(Error::Integer { argument: "bits", value: bits.into(), expected });
    }
    let mut numbers = zeros(length)?;
    parallel::for_each_chunk(&mut numbers, GAUSSIAN_CHUNK, |chunk, numbers| {
        fill(numbers, bits, &mut streams.stream(Purpose::RoundedGaussian, chunk as u64));
    });
    Ok(numbers)
}

/// That many zeros. They are not written: the threads that fill them touch them first, which takes
/// half of the time.
fn zeros(length: usize) -> Result<Vec<i64>> {
    Vec::<i64>::new().try_reserve_exact(length).map_err(|_| Error::Accounting {
        argument: "length",
        value: length as f64,
        expected: "so small that the numbers fit in memory",
    })?;
    Ok(vec![0; length])
}

/// Words that are drawn at once.
const TILE: usize = 512;

/// Bits of the position in a cell that come with the choice of the cell.
const POSITION_BITS: u32 = 17;

/// Up to so many bits the first word is enough.
const NARROW_BITS: u32 = CELL_BITS + POSITION_BITS - 1;

/// Fills a chunk.
fn fill<R: Words>(numbers: &mut [i64], bits: u32, rng: &mut R) {
    let mut words = [0; TILE];
    if bits <= NARROW_BITS {
        let drop = NARROW_BITS - bits;
        for numbers in numbers.chunks_mut(TILE) {
            let words = &mut words[..numbers.len()];
            rng.fill_words(words);
            for (number, &word) in numbers.iter_mut().zip(&*words) {
                let choice = Choice::new(word);
                *number = if choice.piece == REST {
                    choice.signed(nearest(anew(rng), BITS - bits))
                } else {
                    choice.signed(nearest(choice.digits(), drop))
                };
            }
        }
    } else {
        for numbers in numbers.chunks_mut(TILE / 2) {
            let words = &mut words[..2 * numbers.len()];
            rng.fill_words(words);
            for (number, &[word, more]) in numbers.iter_mut().zip(words.as_chunks().0) {
                let choice = Choice::new(word);
                let digits = if choice.piece == REST { anew(rng) } else { choice.more(more) };
                *number = choice.signed(nearest(digits, BITS - bits));
            }
        }
    }
}

/// What a word chooses.
#[derive(Debug, Clone, Copy)]
struct Choice {
    word: u64,
    piece: usize,
}

impl Choice {
    /// Column, unit, position and sign: 10, 36, 17 bits and one.
    #[inline(always)]
    fn new(word: u64) -> Self {
        let unit = (word >> (POSITION_BITS + 1)) & ((1 << 36) - 1);
        Self { word, piece: COLUMNS.piece((word >> 54) as usize, unit) }
    }

    /// The first 17 binary digits of the position.
    #[inline(always)]
    const fn position(self) -> u64 {
        (self.word >> 1) & ((1 << POSITION_BITS) - 1)
    }

    /// The magnitude times 2^25, rounded down.
    #[inline(always)]
    const fn digits(self) -> u64 {
        ((self.piece as u64) << POSITION_BITS) | self.position()
    }

    /// The magnitude times 2^53, rounded down, with further digits of the position.
    #[inline(always)]
    const fn more(self, word: u64) -> u64 {
        let further = FRACTION - CELL_BITS - POSITION_BITS;
        (self.digits() << further) | (word >> (u64::BITS - further))
    }

    /// The number of that magnitude.
    #[inline(always)]
    const fn signed(self, magnitude: u64) -> i64 {
        let negative = (self.word & 1).cast_signed();
        (magnitude.cast_signed() ^ -negative) + negative
    }
}

/// The nearest integer, from one binary digit more than it has, and `drop` further ones.
#[inline(always)]
const fn nearest(digits: u64, drop: u32) -> u64 {
    ((digits >> drop) + 1) >> 1
}

/// The first digits of a magnitude that begins with what is not certain.
#[cold]
#[inline(never)]
fn anew<R: Rng + ?Sized>(rng: &mut R) -> u64 {
    loop {
        if let Some(digits) = uncertain(rng) {
            return digits;
        }
        // Above the curve: from the start.
        let choice = Choice::new(rng.next_u64());
        if choice.piece != REST {
            return digits_in_cell(choice.piece as u64, rng.next_u64());
        }
    }
}
