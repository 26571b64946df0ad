//! Draws uniform sets of a given size, many at a time.

use super::SubsetSelection;
use crate::frequency::shared::bit_rows::row_words;
use crate::random::Words;

/// The most sets that are drawn together.
const TOGETHER: usize = 256;

/// The bytes of sets that are drawn together: they stay in the nearest cache.
const WORKING: usize = 1 << 14;

impl SubsetSelection {
    /// The sets of nodes that hold `codes`.
    ///
    /// The others of a set are drawn by Floyd's algorithm (Bentley, Floyd, "A sample of
    /// brilliance", 1987): for `j` from `n - d` to `n - 1`, a uniform number of `0..=j` is added,
    /// or `j` if that number is already in the set; that gives a uniform set of `d` of the numbers
    /// below `n`. Leaving out the first step gives one of `d - 1`: so it is done if the own code is
    /// in the set. The numbers below `n = k - 1` stand for the other codes, the own one for the
    /// last.
    ///
    /// All sets take a step before any takes the next, so that none waits for another. Every step
    /// is taken for every code alike, and the own bit is written by a pass over the whole row:
    /// neither time nor memory accesses depend on the code. Numbers that Lemire's method rejects
    /// are drawn again, whatever the code.
    pub(super) fn draw<R: Words>(&self, codes: &[u64], reports: &mut [u64], rng: &mut R) {
        let width = row_words(self.domain);
        let stride = self.domain.len().next_multiple_of(8);
        let together = (WORKING / stride).clamp(1, TOGETHER);
        let mut members = vec![0; together.min(codes.len()) * stride];
        let batches = codes.chunks(together).zip(reports.chunks_mut(together * width));
        for (codes, rows) in batches {
            let members = &mut members[..codes.len() * stride];
            let mut buffer = [0; TOGETHER];
            let own = &mut buffer[..codes.len()];
            rng.fill_words(own);
            for own in &mut *own {
                *own = u64::from(*own < self.own);
            }
            self.draw_others(own, members, stride, rng);
            let sets = members.chunks_exact(stride).zip(rows.chunks_exact_mut(width));
            for ((members, row), (&code, &own)) in sets.zip(codes.iter().zip(&*own)) {
                pack(members, row);
                place_own(row, code, own, self.domain.get() - 1);
            }
        }
    }

    /// Uniform sets of `d - own` numbers below `k - 1`, a byte for each number.
    fn draw_others<R: Words>(&self, own: &[u64], members: &mut [u8], stride: usize, rng: &mut R) {
        #[expect(clippy::cast_possible_truncation, reason = "at most MAXIMUM_DOMAIN")]
        let others = (self.domain.get() - 1) as u32;
        let first = others - self.size;
        members.fill(0);
        let mut buffer = [0; TOGETHER];
        let numbers = &mut buffer[..own.len()];
        uniform_numbers(first + 1, numbers, rng);
        let sets = members.chunks_exact_mut(stride).zip(&*numbers);
        for ((members, &number), &own) in sets.zip(own) {
            if let Some(member) = members.get_mut(number as usize) {
                *member = u8::from(own == 0);
            }
        }
        for last in first + 1..others {
            uniform_numbers(last + 1, numbers, rng);
            for (members, &number) in members.chunks_exact_mut(stride).zip(&*numbers) {
                let there = members.get(number as usize).copied().unwrap_or(0);
                // Without a branch: which numbers are there already cannot be predicted.
                let added = number ^ ((number ^ last) & u32::from(there).wrapping_neg());
                if let Some(member) = members.get_mut(added as usize) {
                    *member = 1;
                }
            }
        }
    }
}

/// Bytes that are zero or one as bits.
#[inline(always)]
fn pack(members: &[u8], row: &mut [u64]) {
    for (word, members) in row.iter_mut().zip(members.chunks(64)) {
        let bytes = members.as_chunks::<8>().0.iter();
        *word = bytes.zip(0..).fold(0, |word, (&bytes, place)| {
            // Byte `i`, at bit `8 i`, meets the factor's bit `56 - 7 i`: no two sums collide.
            let bits = u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            word | bits << (8 * place)
        });
    }
}

/// Moves the bit of the number that stands for the last code there, and sets that of the own code
/// to `value`.
#[inline(always)]
fn place_own(row: &mut [u64], code: u64, value: u64, last: u64) {
    let mut stands_for_last = 0;
    for (word, position) in row.iter_mut().zip(0..) {
        let here = u64::from(position == code / 64);
        stands_for_last |= (*word >> (code % 64)) & here;
        *word = (*word & !(here << (code % 64))) | ((value & here) << (code % 64));
    }
    // If the own code is the last one no number stands for it, and this adds nothing.
    if let Some(word) = row.last_mut() {
        *word |= stands_for_last << (last % 64);
    }
}

/// Numbers that are exactly uniform on `0..bound`, from 32 bits each: Lemire, "Fast random integer
/// generation in an interval" (2019).
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "halves of words and of products")]
pub(super) fn uniform_numbers<R: Words>(bound: u32, numbers: &mut [u32], rng: &mut R) {
    let mut buffer = [0; TOGETHER / 2];
    let words = &mut buffer[..numbers.len().div_ceil(2)];
    rng.fill_words(words);
    let floor = bound.wrapping_neg() % bound;
    let mut lowest = u32::MAX;
    for (pair, &word) in numbers.chunks_mut(2).zip(&*words) {
        for (number, half) in pair.iter_mut().zip([word as u32, (word >> 32) as u32]) {
            let product = u64::from(half) * u64::from(bound);
            lowest = lowest.min(product as u32);
            *number = (product >> 32) as u32;
        }
    }
    if lowest < floor {
        draw_again(bound, floor, numbers, words, rng);
    }
}

/// Replaces the numbers that are rejected.
#[cold]
#[inline(never)]
#[expect(clippy::cast_possible_truncation, reason = "halves of words and of products")]
fn draw_again<R: Words>(bound: u32, floor: u32, numbers: &mut [u32], words: &[u64], rng: &mut R) {
    for (pair, &word) in numbers.chunks_mut(2).zip(words) {
        for (number, half) in pair.iter_mut().zip([word as u32, (word >> 32) as u32]) {
            let mut product = u64::from(half) * u64::from(bound);
            while (product as u32) < floor {
                product = (rng.next_u64() >> 32) * u64::from(bound);
            }
            *number = (product >> 32) as u32;
        }
    }
}
