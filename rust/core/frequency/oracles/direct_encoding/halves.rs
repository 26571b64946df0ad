//! Decides from the upper half of a word.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

/// The low 32 bits.
const LOW: u64 = u32::MAX as u64;

/// What the upper 32 bits of a word decide alone, and which of them leave the decision to the lower.
///
/// Let `keep` words keep the code, and the next `k` cells of `cell` words replace it. The words of an
/// upper half `first + 1 + d`, with `first = floor(keep / 2^32)`, lie `d 2^32 + o + l` words beyond
/// `keep`, where `o = 2^32 - keep mod 2^32` and `0 <= l < 2^32`. In units of `cell / 2^s`, with
/// `2^s <= cell < 2^(s+1)`, that is between `P = d M + B` and `P + E`, where `M` is `2^(32+s) / cell`
/// and `B` is `o 2^s / cell`, both rounded down (`M` to 32 bits, by at most one), and
/// `E = 2^32 + M + 1`: `d < 2^32` errors of `M`, one of `B`, and `l` units of at most `M + 1`. So if
/// `P mod 2^s + E < 2^s`, all these words are in the cell `floor(P / 2^s)`. Else the half is *open*:
/// at most `E / 2^s`, or about `4 k / 2^32`, of those that replace are. So are `first`, where `keep`
/// may lie, and the halves beyond the last cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Halves {
    first: u64,
    multiplier: u32,
    addend: u64,
    shift: u32,
    /// A position within a cell is settled below this.
    limit: u64,
    last_code: u64,
}

/// What a half says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    /// All ones if the code is kept, else zero.
    kept: u64,
    /// The code that replaces it, if it is not kept.
    replacement: u64,
    /// The sign is set if the half is open.
    open: u64,
}

impl Verdict {
    #[inline(always)]
    pub(super) fn is_open(self) -> bool {
        self.open >> 63 == 1
    }
}

impl Halves {
    /// `cell` is in `1..2^63`, and all cells end at 2^64 at most.
    pub(super) fn new(keep: u64, cell: u64, size: u64) -> Self {
        let shift = cell.checked_ilog2().unwrap_or(0);
        let divide = |words: u64| (u128::from(words) << shift) / u128::from(cell.max(1));
        // At most 2^32, and that only if the cell is a power of two.
        let multiplier = u32::try_from(divide(1 << 32)).unwrap_or(u32::MAX);
        let addend = u64::try_from(divide((1 << 32) - (keep & LOW))).unwrap_or(u64::MAX);
        let limit = (1_u64 << shift).saturating_sub((1 << 32) + u64::from(multiplier) + 1);
        Self { first: keep >> 32, multiplier, addend, shift, limit, last_code: size - 1 }
    }

    /// The verdict of one half.
    #[inline(always)]
    pub(super) fn verdict(self, half: u64) -> Verdict {
        // Negative up to `first`.
        let beyond = half.wrapping_sub(self.first + 1);
        let position =
            (beyond & LOW).wrapping_mul(self.multiplier.into()).wrapping_add(self.addend);
        let replacement = position >> self.shift;
        let rest = position & ((1 << self.shift) - 1);
        // Both are below 2^63, so that the sign of a difference is that of the numbers.
        let unsettled = self.limit.wrapping_sub(1).wrapping_sub(rest)
            | self.last_code.wrapping_sub(replacement);
        let at_first = beyond & !beyond.wrapping_add(1);
        Verdict {
            kept: (beyond.cast_signed() >> 63).cast_unsigned(),
            replacement,
            open: (unsettled & !beyond) | at_first,
        }
    }

    /// Makes reports from codes and the halves of words, the low half first. Tells whether a half
    /// leaves its report open; then that report is not valid.
    ///
    /// There are half as many words as codes, rounded up.
    #[inline]
    pub(super) fn decide(self, words: &[u64], codes: &[u32], reports: &mut [u32]) -> bool {
        self.decide_with(Level::new(), words, codes, reports)
    }

    #[inline]
    pub(super) fn decide_with(
        self,
        level: Level,
        words: &[u64],
        codes: &[u32],
        reports: &mut [u32],
    ) -> bool {
        let open = dispatch!(level, simd => decide(simd, self, words, codes, reports));
        open >> 63 == 1
    }
}

/// Every kind of instructions that this machine has and that has a kernel of its own.
#[cfg(test)]
pub(super) fn levels() -> Vec<Level> {
    let mut all = vec![Level::baseline(), Level::new()];
    #[cfg(target_arch = "x86_64")]
    {
        all.extend(Level::new().as_sse4_2().map(Level::Sse4_2));
        all.extend(Level::new().as_avx2().map(Level::Avx2));
    }
    all
}

#[inline(always)]
fn decide<S: Simd>(
    simd: S,
    halves: Halves,
    words: &[u64],
    codes: &[u32],
    reports: &mut [u32],
) -> u64 {
    simd.vectorize(
        #[inline(always)]
        || {
            let mut open = 0;
            let mut choose = |half: u64, code: u32| {
                let verdict = halves.verdict(half);
                open |= verdict.open;
                #[expect(clippy::cast_possible_truncation, reason = "codes are below 2^32")]
                let report = ((u64::from(code) & verdict.kept)
                    | (verdict.replacement & !verdict.kept)) as u32;
                report
            };
            let (pairs, last) = codes.as_chunks::<2>();
            let (slots, last_slot) = reports.as_chunks_mut::<2>();
            for ((&word, &[one, other]), slot) in words.iter().zip(pairs).zip(slots) {
                *slot = [choose(word & LOW, one), choose(word >> 32, other)];
            }
            if let (Some(word), [code], [slot]) = (words.get(pairs.len()), last, last_slot) {
                *slot = choose(word & LOW, *code);
            }
            open
        },
    )
}
