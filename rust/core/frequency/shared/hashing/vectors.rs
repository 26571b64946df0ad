//! Counting in vector instructions.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

/// Walks that are counted together, so that the counts stay in registers. Measured.
const GROUP: usize = 4;

/// The widest vector of 32-bit numbers.
const LANES: usize = 16;

/// The residues of successive codes under a line, relative to the first residue of a bucket: the
/// code is in the bucket if its residue is below the length of the bucket.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::frequency) struct Walk {
    /// The residue of the first code.
    pub(in crate::frequency) start: u32,
    /// What the residue grows by from a code to the next, modulo the prime.
    pub(in crate::frequency) step: u32,
    /// The length of the bucket.
    pub(in crate::frequency) length: u32,
}

impl Walk {
    /// Counts come in multiples of this.
    pub(in crate::frequency) const LANES: usize = LANES;
}

/// The vector instructions to use.
#[derive(Debug, Clone, Copy)]
pub(in crate::frequency) struct Instructions(Level);

impl Instructions {
    /// The widest of this machine.
    pub(in crate::frequency) fn best() -> Self {
        Self(Level::new())
    }

    /// Every kind that this machine has and that has a kernel of its own.
    #[cfg(test)]
    pub(in crate::frequency) fn all() -> Vec<Self> {
        let mut all = vec![Self(Level::baseline()), Self::best()];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Level::new().as_sse4_2().map(|lanes| Self(Level::Sse4_2(lanes))));
            all.extend(Level::new().as_avx2().map(|lanes| Self(Level::Avx2(lanes))));
        }
        all
    }

    /// Adds one to the count of every code that a walk finds in its bucket, for every walk. There
    /// is a multiple of [`LANES`] counts, one for each code; the prime is below 2^31.
    pub(in crate::frequency) fn follow(self, walks: &[Walk], prime: u32, counts: &mut [u32]) {
        dispatch!(self.0, simd => follow(simd, walks, prime, counts));
    }

    /// Adds the bits of the words to the counts: bit `i` of a word to its count `i`.
    pub(in crate::frequency) fn add_bits(self, words: &[u64], counts: &mut [u32]) {
        dispatch!(self.0, simd => add_bits(simd, words, counts));
    }
}

/// Residues stay below the prime: a sum of two is below 2^32, and one subtraction of the prime
/// either gives the residue or wraps to a larger number.
#[inline(always)]
fn follow<S: Simd>(simd: S, walks: &[Walk], prime: u32, counts: &mut [u32]) {
    simd.vectorize(
        #[inline(always)]
        || {
            let lanes = S::u32s::LEN;
            let (primes, one) = (S::u32s::splat(simd, prime), S::u32s::splat(simd, 1));
            let add = |left: u32, right: u32| {
                let sum = left + right;
                sum.min(sum.wrapping_sub(prime))
            };
            for group in walks.chunks(GROUP) {
                // Walks that are missing have buckets without residues.
                let mut residues = [S::u32s::splat(simd, 0); GROUP];
                let mut steps = residues;
                let mut lengths = residues;
                for (place, walk) in group.iter().enumerate() {
                    let mut first = [0; LANES];
                    let (mut residue, mut step) = (walk.start, 0);
                    for lane in &mut first[..lanes] {
                        *lane = residue;
                        residue = add(residue, walk.step);
                        step = add(step, walk.step);
                    }
                    residues[place] = S::u32s::from_slice(simd, &first[..lanes]);
                    steps[place] = S::u32s::splat(simd, step);
                    lengths[place] = S::u32s::splat(simd, walk.length);
                }
                for counts in counts.chunks_exact_mut(lanes) {
                    let mut sums = S::u32s::from_slice(simd, counts);
                    for walk in 0..GROUP {
                        // Vectors of 16 lanes have masks of their own; narrower ones are quicker
                        // with the sign of the difference, both numbers being below 2^31.
                        sums = if lanes == LANES {
                            residues[walk].simd_lt(lengths[walk]).select(sums + one, sums)
                        } else {
                            sums + ((residues[walk] - lengths[walk]) >> 31_u32)
                        };
                        let next = residues[walk] + steps[walk];
                        residues[walk] = next.min(next - primes);
                    }
                    sums.store_slice(counts);
                }
            }
        },
    );
}

#[inline(always)]
fn add_bits<S: Simd>(simd: S, words: &[u64], counts: &mut [u32]) {
    simd.vectorize(
        #[inline(always)]
        || {
            for (&word, counts) in words.iter().zip(counts.as_chunks_mut::<64>().0) {
                #[expect(clippy::cast_possible_truncation, reason = "the low and the high half")]
                let halves = [word as u32, (word >> 32) as u32];
                for (half, counts) in halves.into_iter().zip(counts.as_chunks_mut::<32>().0) {
                    for (place, count) in (0_u32..).zip(counts) {
                        *count += (half >> place) & 1;
                    }
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{AesStreams, Purpose, Streams, uniform_below};

    #[test]
    fn all_instructions_follow_every_walk() {
        let mut stream = AesStreams::from_seed(4).stream(Purpose::Simulation, 0);
        for prime in [3_u32, 13, 251, (1 << 22) - 3, (1 << 31) - 1] {
            for number in [0, 1, 3, 4, 5, 11] {
                let mut draw = |bound: u32| {
                    u32::try_from(uniform_below(bound.into(), &mut stream)).unwrap_or(0)
                };
                let walks: Vec<Walk> = (0..number)
                    .map(|_| Walk { start: draw(prime), step: draw(prime), length: draw(prime) })
                    .chain([Walk { start: prime - 1, step: prime - 1, length: prime }])
                    .collect();
                let mut expected = vec![7; 48];
                for (code, count) in (0_u64..).zip(&mut expected) {
                    for walk in &walks {
                        let residue = u64::from(walk.start) + code * u64::from(walk.step);
                        *count += u32::from(residue % u64::from(prime) < walk.length.into());
                    }
                }
                for instructions in Instructions::all() {
                    let mut counts = vec![7; 48];
                    instructions.follow(&walks, prime, &mut counts);
                    assert_eq!(counts, expected, "{prime}, {instructions:?}");
                }
            }
        }
    }

    #[test]
    fn all_instructions_add_every_bit() {
        let words = [0x8000_0000_0000_0001, 0x0123_4567_89ab_cdef, u64::MAX];
        let expected: Vec<u32> =
            (0..192).map(|i| 5 + u32::from(words[i / 64] >> (i % 64) & 1 == 1)).collect();
        for instructions in Instructions::all() {
            let mut counts = vec![5; 192];
            instructions.add_bits(&words, &mut counts);
            assert_eq!(counts, expected, "{instructions:?}");
        }
    }
}
