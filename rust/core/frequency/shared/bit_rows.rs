//! Reports that are rows of bits, 64 in a word: what they support, and the sums of their columns.

use crate::parameters::DomainSize;

/// Words that are added at once.
const LANES: usize = 8;

/// Binary digits of a sum before it is moved to the counts.
const PLANES: usize = 10;

/// The most vectors whose sum has that many digits.
const FULL: usize = (1 << PLANES) - 1;

/// Vectors that are added between two looks at whether the digits suffice.
const STRETCH: usize = 256;

/// The words of a row of that many bits.
pub(crate) const fn row_words(domain: DomainSize) -> usize {
    domain.len().div_ceil(64)
}

/// The bits of the last word of a row that are used.
pub(crate) const fn last_word(domain: DomainSize) -> u64 {
    u64::MAX >> ((64 - domain.len() % 64) % 64)
}

/// Whether no unused bit of a row is set.
pub(crate) fn is_row(domain: DomainSize, row: &[u64]) -> bool {
    row.len() == row_words(domain) && row.last().is_some_and(|&last| last & !last_word(domain) == 0)
}

/// Visits the positions of the bits that are set.
pub(crate) fn visit_bits(row: &[u64], visit: &mut dyn FnMut(usize)) {
    for (word, &bits) in row.iter().enumerate() {
        let mut left = bits;
        while left != 0 {
            visit(64 * word + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// Counts the ones in each column of rows of bits.
///
/// Words hold the binary digits of 64 sums, and bit `i` of a new word is added to bit `i` of these.
/// The method is carry-save adders, as for counting bits in Muła, Kurz, Lemire, "Faster population
/// counts using AVX2 instructions", 2018. About six operations add a word to 64 sums. Short rows
/// are combined in groups of eight, so that eight words are always added at once.
#[derive(Debug, Clone)]
pub struct BitCounter {
    /// Words of a row.
    width: usize,
    /// Words of the rows that are taken together.
    span: usize,
    /// The digits of the sums of eight neighbouring words of the span.
    planes: Vec<[Vector; PLANES]>,
    /// How many vectors the digits hold.
    held: usize,
    /// What was moved out of the digits: one count for each bit of a row.
    counts: Vec<u64>,
}

type Vector = [u64; LANES];

impl BitCounter {
    /// A counter of no rows.
    pub(crate) fn new(domain: DomainSize) -> Self {
        let width = row_words(domain);
        let span = if width < LANES { LANES * width } else { width };
        Self {
            width,
            span,
            planes: vec![[[0; LANES]; PLANES]; span.div_ceil(LANES)],
            held: 0,
            counts: vec![0; 64 * width],
        }
    }

    /// Adds rows.
    pub(crate) fn add(&mut self, rows: &[u64]) {
        for rows in rows.chunks(STRETCH * self.span) {
            let vectors = rows.len().div_ceil(self.span);
            if self.held + vectors > FULL {
                self.flush();
            }
            self.held += vectors;
            for (position, planes) in self.planes.iter_mut().enumerate() {
                let start = LANES * position;
                let lanes = LANES.min(self.span - start);
                let mut vectors = (start..rows.len()).step_by(self.span).map(|start| {
                    let words = &rows[start..rows.len().min(start + lanes)];
                    words.try_into().unwrap_or_else(|_| padded(words))
                });
                while let Some(first) = vectors.next() {
                    let mut next = || vectors.next().unwrap_or([0; LANES]);
                    let eight = [first, next(), next(), next(), next(), next(), next(), next()];
                    add_eight(planes, &eight);
                }
            }
        }
    }

    /// Adds up two counters of rows of the same length.
    pub(crate) fn merge(mut self, mut other: Self) -> Self {
        self.flush();
        other.flush();
        for (sum, term) in self.counts.iter_mut().zip(&other.counts) {
            *sum += term;
        }
        self
    }

    /// The sums of the first `size` columns.
    pub(crate) fn finish(mut self, size: usize) -> Vec<u64> {
        self.flush();
        self.counts.truncate(size);
        self.counts
    }

    /// Moves the digits to the counts.
    fn flush(&mut self) {
        if self.held == 0 {
            return;
        }
        self.held = 0;
        for (position, planes) in self.planes.iter_mut().enumerate() {
            for (digit, plane) in planes.iter_mut().enumerate() {
                for (lane, word) in plane.iter_mut().enumerate() {
                    let column = 64 * ((LANES * position + lane) % self.width);
                    let bits = core::mem::take(word);
                    if bits != 0 {
                        for (bit, count) in self.counts[column..column + 64].iter_mut().enumerate()
                        {
                            *count += ((bits >> bit) & 1) << digit;
                        }
                    }
                }
            }
        }
    }
}

/// Words followed by zeros.
#[cold]
fn padded(words: &[u64]) -> Vector {
    let mut vector = [0; LANES];
    for (lane, &word) in vector.iter_mut().zip(words) {
        *lane = word;
    }
    vector
}

/// Adds eight vectors to the digits.
#[inline(always)]
fn add_eight(planes: &mut [Vector; PLANES], vectors: &[Vector; 8]) {
    let [ones, twos, fours, rest @ ..] = planes;
    let [a, b, c, d, e, f, g, h] = vectors;
    let (first, second) = (full_adder(ones, a, b), full_adder(ones, c, d));
    let low = full_adder(twos, &first, &second);
    let (first, second) = (full_adder(ones, e, f), full_adder(ones, g, h));
    let high = full_adder(twos, &first, &second);
    let mut carry = full_adder(fours, &low, &high);
    for plane in rest {
        for (digit, carry) in plane.iter_mut().zip(&mut carry) {
            (*digit, *carry) = (*digit ^ *carry, *digit & *carry);
        }
    }
}

/// Adds two bits to a digit; gives the carry.
#[inline(always)]
fn full_adder(digit: &mut Vector, one: &Vector, other: &Vector) -> Vector {
    let mut carry = [0; LANES];
    for lane in 0..LANES {
        let half = digit[lane] ^ one[lane];
        carry[lane] = (digit[lane] & one[lane]) | (half & other[lane]);
        digit[lane] = half ^ other[lane];
    }
    carry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Result;
    use crate::random::{AesStreams, Purpose, Streams, Words};

    #[test]
    fn sums_of_columns_are_those_of_the_bits_one_by_one() -> Result<()> {
        let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
        for size in [2, 63, 64, 65, 100, 128, 193, 448, 449, 512, 513, 1000, 1025] {
            let domain = DomainSize::new(size)?;
            let width = row_words(domain);
            for rows in [0, 1, 2, 7, 8, 9, 255, 256, 257, 1022, 1023, 1024, 1025, 9000] {
                let mut words = vec![0; rows * width];
                stream.fill_words(&mut words);
                for row in words.chunks_exact_mut(width) {
                    assert_eq!(is_row(domain, row), row[width - 1] & !last_word(domain) == 0);
                    row[width - 1] &= last_word(domain);
                    assert!(is_row(domain, row));
                }
                let mut expected = vec![0; domain.len()];
                for row in words.chunks_exact(width) {
                    visit_bits(row, &mut |bit| expected[bit] += 1);
                }
                let mut whole = BitCounter::new(domain);
                whole.add(&words);
                let (one, other) = words.split_at(rows / 3 * width);
                let mut pieces = BitCounter::new(domain);
                for piece in other.chunks(256 * width) {
                    pieces.add(piece);
                }
                let mut first = BitCounter::new(domain);
                first.add(one);
                assert_eq!(pieces.merge(first).finish(domain.len()), expected, "{size}, {rows}");
                assert_eq!(whole.finish(domain.len()), expected, "{size}, {rows}");
            }
        }
        Ok(())
    }

    #[test]
    fn bits_are_visited_in_order() -> Result<()> {
        let mut found = Vec::new();
        visit_bits(&[1 << 63 | 1, 0, 0b110], &mut |bit| found.push(bit));
        assert_eq!(found, [0, 63, 129, 130]);
        assert!(!is_row(DomainSize::new(131)?, &[0; 2]));
        Ok(())
    }
}
