//! Many independent bits of one exact probability.

use super::Words;

/// Words that are made at once.
const TILE: usize = 32;

/// Words that are kept in registers.
const STEP: usize = 8;

/// Binary digits that are compared in all lanes. After eight of them a word has an undecided lane
/// with probability 0.22: measured, this is the number that takes the least time.
const ROUNDS: usize = 8;

/// Independent bits that are each one with probability exactly `threshold / 2^64`.
///
/// Lane `i` of a word stands for a uniform number that is compared with the threshold, digit by
/// digit from the most significant one. One random word holds a digit of 64 numbers. The few
/// numbers that agree with the threshold in the first eight digits are decided by one word each. So
/// 64 bits take about eight and a half random words instead of 64.
///
/// ```
/// use turnout_core::random::{AesStreams, BiasedBits, Purpose, Streams};
///
/// let quarter = BiasedBits::new(1 << 62);
/// let mut words = [0; 1000];
/// quarter.fill(&mut words, &mut AesStreams::from_seed(1).stream(Purpose::Report, 0));
/// let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
/// assert!(ones.abs_diff(16_000) < 600);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BiasedBits {
    threshold: u64,
    /// How many digits are compared in all lanes: none of those left out matters if they are zero.
    rounds: usize,
    /// All ones where the digit is one, the least significant of the compared digits first.
    digits: [u64; ROUNDS],
    /// The digits that are not compared in all lanes, as a threshold.
    rest: u64,
}

impl BiasedBits {
    /// Makes bits that are one with probability `threshold / 2^64`.
    #[must_use]
    pub const fn new(threshold: u64) -> Self {
        let needed = (u64::BITS - threshold.trailing_zeros()) as usize;
        let rounds = if needed < ROUNDS { needed } else { ROUNDS };
        let mut digits = [0; ROUNDS];
        let mut round = 0;
        while round < rounds {
            let place = u64::BITS as usize - rounds + round;
            digits[round] = ((threshold >> place) & 1).wrapping_neg();
            round += 1;
        }
        Self { threshold, rounds, digits, rest: threshold << rounds }
    }

    /// The number of 64-bit words, out of 2^64, that make a bit one.
    #[must_use]
    pub const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Fills all 64 bits of every word.
    #[inline]
    pub fn fill<R: Words>(&self, words: &mut [u64], rng: &mut R) {
        if self.rounds == 0 {
            words.fill(0);
            return;
        }
        let mut buffer = [0; TILE * ROUNDS];
        let mut undecided = [0; TILE];
        for tile in words.chunks_mut(TILE) {
            let uniform = &mut buffer[..tile.len() * self.rounds];
            rng.fill_words(uniform);
            let undecided = &mut undecided[..tile.len()];
            let whole = tile.len() - tile.len() % STEP;
            let (steps, rest) = tile.split_at_mut(whole);
            let (open_steps, open_rest) = undecided.split_at_mut(whole);
            let (uniform_steps, uniform_rest) = uniform.split_at(whole * self.rounds);
            self.compare::<STEP>(steps, open_steps, uniform_steps);
            self.compare::<1>(rest, open_rest, uniform_rest);
            if self.rest > 0 {
                for (word, &open) in tile.iter_mut().zip(&*undecided) {
                    self.settle(word, open, rng);
                }
            }
        }
    }

    /// Compares the leading digits, the least significant first: where a digit differs from the
    /// threshold's it overrules those before it. Lanes in which none differs are left open, and
    /// zero for now.
    #[inline(always)]
    fn compare<const LANES: usize>(&self, words: &mut [u64], open: &mut [u64], uniform: &[u64]) {
        let (words, open) = (words.as_chunks_mut::<LANES>().0, open.as_chunks_mut::<LANES>().0);
        let uniform = uniform.as_chunks::<LANES>().0.chunks_exact(self.rounds);
        for ((word, open), rounds) in words.iter_mut().zip(open).zip(uniform) {
            let (mut below, mut same) = ([0; LANES], [u64::MAX; LANES]);
            for (uniform, digit) in rounds.iter().zip(&self.digits) {
                for lane in 0..LANES {
                    // The bits of `agrees` are uniform: one where the digit is the threshold's.
                    // Elsewhere the number is below exactly if the threshold's digit is one.
                    let agrees = uniform[lane];
                    below[lane] = (below[lane] & agrees) | (digit & !agrees);
                    same[lane] &= agrees;
                }
            }
            (*word, *open) = (below, same);
        }
    }

    /// Compares the digits that are left, in the lanes that are open.
    #[inline(always)]
    fn settle<R: Words>(&self, word: &mut u64, open: u64, rng: &mut R) {
        let mut open = open;
        while open != 0 {
            let lane = open & open.wrapping_neg();
            if rng.next_u64() < self.rest {
                *word |= lane;
            }
            open ^= lane;
        }
    }
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use rand::TryRng;

    use super::*;
    use crate::random::{AesStreams, Purpose, Streams};

    /// Gives the words of a list, then zeros, and counts them.
    struct Given<'a> {
        words: &'a [u64],
        used: usize,
    }

    impl TryRng for Given<'_> {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok((self.try_next_u64()? >> 32) as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            let word = self.words.get(self.used).copied().unwrap_or(0);
            self.used += 1;
            Ok(word)
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
            Ok(())
        }
    }

    impl Words for Given<'_> {}

    /// Words that hold every combination of `digits` digits, one in each of the first lanes.
    fn every_combination(digits: u32) -> Vec<u64> {
        (0..digits)
            .map(|digit| {
                (0..1_u64 << digits).fold(0, |word, lane| word | ((lane >> digit) & 1) << lane)
            })
            .collect()
    }

    #[test]
    fn short_thresholds_are_met_by_exactly_their_share_of_all_digits() {
        // 64 lanes hold all combinations of six digits: the number of ones is the threshold.
        for digits in 1..=6_u32 {
            for numerator in 0..1_u64 << digits {
                let bits = BiasedBits::new(numerator << (64 - digits));
                let words = every_combination(digits);
                let mut given = Given { words: &words, used: 0 };
                let mut word = [0];
                bits.fill(&mut word, &mut given);
                let lanes = u64::MAX >> (64 - (1_u32 << digits));
                assert_eq!(u64::from((word[0] & lanes).count_ones()), numerator, "{digits} digits");
                // No word is drawn for digits that are zero.
                let needed = digits - numerator.trailing_zeros().min(digits);
                assert_eq!(given.used, needed as usize);
            }
        }
    }

    #[test]
    fn digits_beyond_the_eighth_are_settled_by_a_word_for_each_lane() {
        // Two lanes agree in all eight digits, and are settled on either side of the rest.
        let threshold = 0xa500_0000_0000_0003;
        let bits = BiasedBits::new(threshold);
        for (words, expected) in [([0x02ff, 0x0300], 0b01), ([0x0300, 0x02ff], 0b10)] {
            let given = [[0b11; ROUNDS].as_slice(), &words].concat();
            let mut word = [0];
            bits.fill(&mut word, &mut Given { words: &given, used: 0 });
            // In the lanes that differ the most significant digit decides: it is one.
            assert_eq!(word[0] & 0b11, expected);
            assert_eq!(word[0] & !0b11, !0b11);
        }
    }

    #[test]
    fn a_bit_is_one_with_its_probability_and_independent_of_its_neighbours() {
        // Chi-square of the patterns of three: neighbours in a word, and the same lane of the next.
        for (case, threshold) in [
            (0, 1),
            (1, 0x4508_1234_5678_9abc),
            (2, 1 << 63),
            (3, u64::MAX - (1 << 58)),
            (4, 3 << 54),
        ] {
            let mut stream = AesStreams::from_seed(case).stream(Purpose::Report, 0);
            let bits = BiasedBits::new(threshold);
            assert_eq!(bits.threshold(), threshold);
            // Lengths that take whole tiles, whole steps, and what is left.
            let mut observed = [0_u64; 8];
            for length in [1, 2, 7, 8, 31, 32, 33, 100, 4096].repeat(8) {
                let mut words = vec![0; length];
                bits.fill(&mut words, &mut stream);
                for pair in words.chunks_exact(2) {
                    let (first, second) = (pair[0], pair[1]);
                    for lane in (0..62).step_by(2) {
                        let pattern = ((first >> lane) & 3) | ((second >> lane) & 1) << 2;
                        observed[(pattern & 7) as usize] += 1;
                    }
                }
            }
            let p = threshold as f64 / 18_446_744_073_709_551_616.0;
            let masses: Vec<f64> = (0..8_u32)
                .map(|pattern| {
                    let ones = pattern.count_ones();
                    p.powi(ones.cast_signed()) * (1.0 - p).powi(3 - ones.cast_signed())
                })
                .collect();
            crate::noise::tests::check_law(&observed, &masses);
        }
    }
}
