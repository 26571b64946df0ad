//! Direct encoding, also called k-ary randomized response.
//!
//! A node reports its own code with probability `p* = e^eps / (e^eps + k - 1)` and each other code
//! with `q* = 1 / (e^eps + k - 1)`. Source: Kairouz, Bonawitz, Ramage, "Discrete distribution
//! estimation under local privacy" (2016). The notation is that of Wang, Blocki, Li, Jha, "Locally
//! differentially private protocols for frequency estimation" (2017).
//!
//! The realised probabilities are whole numbers of 64-bit words: `A` words for the own code and `W`
//! for each other code. Integer bounds of the exponential prove that `A <= e^eps W`. The
//! `2^64 - A - (k - 1) W` words left over (a fraction below `(e^eps + k) / 2^64`) are drawn again.
//! So every report has probability `A / (A + (k - 1) W)` or `W / (A + (k - 1) W)` exactly, whatever
//! the code, and the likelihood ratio is `A / W <= e^eps`. The upper half of a word is mostly enough
//! to decide, and then the lower half is not drawn.

mod collect;
mod halves;
mod randomize;
mod simulate;
mod tally;

use crate::frequency::ReportCode;
use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::divisor::Divisor;
use crate::parameters::{DomainSize, Epsilon};
use crate::random::{ExponentialBounds, Words, logarithm_above};
use crate::{Error, Result};

use halves::Halves;

/// The low 32 bits.
const LOW: u64 = u32::MAX as u64;

/// Where the reports of one block are made.
struct Room {
    words: [u64; BLOCK / 2],
    codes: [u32; BLOCK],
    reports: [u32; BLOCK],
}

impl Room {
    const fn new() -> Self {
        Self { words: [0; BLOCK / 2], codes: [0; BLOCK], reports: [0; BLOCK] }
    }
}

/// The direct-encoding randomizer.
///
/// ```
/// use turnout_core::frequency::DirectEncoding;
/// use turnout_core::parameters::{DomainSize, Epsilon};
///
/// let oracle = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(100)?)?;
/// assert!(oracle.realized_epsilon() <= 1.0);
/// let (p, q) = oracle.support_probabilities();
/// assert!((p + 99.0 * q - 1.0).abs() < 1e-12);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DirectEncoding {
    epsilon: Epsilon,
    domain: DomainSize,
    /// Words that keep the code: `A - W`. The next `k W` words replace it uniformly.
    keep: u64,
    /// Words for each replacement: `W`.
    cell: u64,
    divisor: Divisor,
    /// The last word that is accepted: those above are drawn again.
    last: u64,
    halves: Halves,
}

impl DirectEncoding {
    /// Makes a randomizer for an epsilon and a number of codes.
    ///
    /// # Errors
    ///
    /// [`Error::EpsilonUnrealizable`] if epsilon is below about 2^-32: then reports carry no
    /// information, and `p* - q*` would be lost in rounding.
    pub fn new(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        let bounds = ExponentialBounds::new(epsilon.get());
        // At least 10 words, since e^42 + 2^32 < 2^64 / 10; and below 2^63, since k >= 2.
        let cell = bounds.floor_quotient(1 << 64, domain.get() - 1);
        let cell = u64::try_from(cell).unwrap_or(u64::MAX);
        let keep = bounds.floor_times(cell).saturating_sub(u128::from(cell));
        match u64::try_from(keep) {
            // keep + k cell <= 2^64
            Ok(keep) if keep > cell >> 32 => {
                let last = (keep - 1).wrapping_add(domain.get().wrapping_mul(cell));
                let divisor = Divisor::new(cell);
                let halves = Halves::new(keep, cell, domain.get());
                Ok(Self { epsilon, domain, keep, cell, divisor, last, halves })
            }
            _ => Err(Error::EpsilonUnrealizable {
                epsilon: epsilon.get(),
                domain_size: domain.get(),
            }),
        }
    }

    /// The epsilon that was requested.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// The number of codes.
    #[must_use]
    pub const fn domain_size(&self) -> DomainSize {
        self.domain
    }

    /// `(A, W)`: how many words make a node report its own code, and how many each other code. The
    /// realised guarantee is `ln(A / W)`, exactly.
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        // keep + k cell <= 2^64 and k >= 2, so the sum fits.
        (self.keep + self.cell, self.cell)
    }

    /// The realised epsilon `ln(A / W)`, rounded up to a floating-point number. It is never below
    /// the truth, and never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let (own, other) = self.words();
        logarithm_above(own.into(), other.into(), self.epsilon.get())
    }

    /// `(p*, q*)`: the probabilities that a report supports the node's own code, and any other
    /// fixed code.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        let (own, other) = self.words();
        let total = self.accepted_words() as f64;
        (own as f64 / total, other as f64 / total)
    }

    /// The probability that the code is kept rather than replaced uniformly: `p* - q*`.
    pub(in crate::frequency) fn keep_probability(&self) -> f64 {
        self.keep as f64 / self.accepted_words() as f64
    }

    fn accepted_words(&self) -> u128 {
        u128::from(self.keep) + u128::from(self.domain.get()) * u128::from(self.cell)
    }

    /// The reports of at most [`BLOCK`] nodes that hold `codes`, one for each slot of `reports`.
    ///
    /// Half a word for each node; the few that leave it open draw their other half after all have
    /// theirs, and whole words while those are beyond the last. No branch depends on a code.
    #[inline(always)]
    pub(in crate::frequency) fn report<T, R: Words>(
        &self,
        codes: impl Iterator<Item = u64>,
        reports: &mut [T],
        rng: &mut R,
        from_index: impl Fn(u64) -> T,
    ) {
        self.report_in(&mut Room::new(), codes, reports, rng, from_index);
    }

    /// The same in a room that is used again: to make one for each block takes a sixth of the time.
    #[inline(always)]
    fn report_in<T, R: Words>(
        &self,
        room: &mut Room,
        codes: impl Iterator<Item = u64>,
        reports: &mut [T],
        rng: &mut R,
        from_index: impl Fn(u64) -> T,
    ) {
        let words = &mut room.words[..reports.len().div_ceil(2)];
        let held = &mut room.codes[..reports.len()];
        let made = &mut room.reports[..reports.len()];
        for (slot, code) in held.iter_mut().zip(codes) {
            *slot = u32::from_index(code);
        }
        rng.fill_words(words);
        if self.halves.decide(words, held, made) {
            self.settle(words, held, made, rng);
        }
        for (slot, &report) in reports.iter_mut().zip(&*made) {
            *slot = from_index(report.into());
        }
    }

    /// Draws the lower half where the upper one is open.
    #[cold]
    #[inline(never)]
    fn settle<R: Words>(&self, words: &[u64], codes: &[u32], reports: &mut [u32], rng: &mut R) {
        let halves = words.iter().flat_map(|word| [word << 32, word & !LOW]);
        for ((upper, &code), report) in halves.zip(codes).zip(reports) {
            if self.halves.verdict(upper >> 32).is_open() {
                let mut word = upper | (rng.next_u64() >> 32);
                while word > self.last {
                    word = rng.next_u64();
                }
                *report = u32::from_index(self.decide(code.into(), word));
            }
        }
    }

    /// The report that `word`, which is not above the last one accepted, makes of `code`.
    #[inline(always)]
    fn decide(&self, code: u64, word: u64) -> u64 {
        let replacement = self.divisor.quotient(word.wrapping_sub(self.keep));
        let replace = u64::from(word >= self.keep).wrapping_neg();
        (replacement & replace) | (code & !replace)
    }
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use rand::{Rng, TryRng};

    use super::*;
    use crate::random::{AesStreams, Purpose, Streams};

    /// Gives the words of a list, then zeros.
    struct Given {
        words: Vec<u64>,
    }

    impl TryRng for Given {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
            Ok((self.next_u64() >> 32) as u32)
        }
        fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
            Ok(if self.words.is_empty() { 0 } else { self.words.remove(0) })
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Infallible> {
            Ok(())
        }
    }

    impl Words for Given {}

    #[test]
    fn each_word_makes_the_report_of_its_cell() -> Result<()> {
        // Against plain division, at and around every kind of boundary.
        for (epsilon, size) in
            [(0.1, 2), (1.0, 3), (1.0, 100), (5.0, 1 << 20), (40.0, 7), (42.0, 2)]
        {
            let oracle = DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(size)?)?;
            let (keep, cell) = (u128::from(oracle.keep), u128::from(oracle.cell));
            for index in [0, 1, u128::from(size) / 2, u128::from(size) - 1, u128::from(size)] {
                for offset in [-1_i32, 0, 1] {
                    let Some(word) = (keep + index * cell).checked_add_signed(offset.into()) else {
                        continue;
                    };
                    let Ok(word64) = u64::try_from(word) else { continue };
                    let expected = if word < keep { 1 } else { (word - keep) / cell };
                    assert_eq!(u128::from(oracle.decide(1, word64)), expected);
                }
            }
            assert_eq!(u128::from(oracle.last) + 1, keep + u128::from(size) * cell);
        }
        Ok(())
    }

    /// What half a word decides without the other half, if it does, as the code 1.
    fn by_half(oracle: &DirectEncoding, half: u64) -> Option<u64> {
        let mut report = [0];
        let open = oracle.halves.decide(&[half], &[1], &mut report);
        (!open).then_some(report[0].into())
    }

    #[test]
    fn half_a_word_decides_only_what_the_other_half_does_not_change() -> Result<()> {
        let mut step = 1_u64;
        for epsilon in [1e-6, 0.1, 1.0, 1.098_612_288_668_109_8, 5.0, 16.0, 22.0, 40.0, 42.0] {
            for size in [2, 3, 6, 100, 255, 256, 4096, 1 << 20, (1 << 31) + 7, (1 << 32) - 1] {
                let Ok(oracle) =
                    DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(size)?)
                else {
                    continue;
                };
                // Around the ends of many cells, and anywhere.
                let places = (0..300).map(|place| place * size.div_ceil(300));
                let ends =
                    [0, 1, size - 1, size].into_iter().chain(places.take_while(|&c| c <= size));
                let ends = ends
                    .map(|end| u128::from(oracle.keep) + u128::from(end) * u128::from(oracle.cell));
                let anywhere = (0..300).map(|_| {
                    step = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (step >> 7);
                    u128::from(step)
                });
                let (mut open, mut all) = (0, 0);
                for (place, word) in ends.chain(anywhere).enumerate() {
                    for half in (word >> 32).saturating_sub(3)..=(word >> 32) + 3 {
                        let Ok(half) = u32::try_from(half) else { continue };
                        let half = u64::from(half);
                        let words = [half << 32, (half << 32) | LOW];
                        let whole =
                            words.map(|word| (word <= oracle.last).then(|| oracle.decide(1, word)));
                        match by_half(&oracle, half) {
                            None => open += usize::from(place >= 300),
                            found => assert_eq!(whole, [found; 2], "{epsilon}, {size}, {half}"),
                        }
                        all += usize::from(place >= 300);
                    }
                }
                // Halves are of use: few are open in domains of some size.
                assert!(
                    size > 4096 || epsilon > 20.0 || 50 * open <= all,
                    "{epsilon}, {size}: {open}"
                );
            }
        }
        Ok(())
    }

    #[test]
    fn every_kind_of_instruction_makes_the_same_reports() -> Result<()> {
        let oracle = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(1000)?)?;
        let mut stream = AesStreams::from_seed(8).stream(Purpose::Report, 0);
        let codes: Vec<u32> = (0..255).map(|code| code * 3).collect();
        let mut words = [0; 128];
        stream.fill_words(&mut words);
        let mut expected = vec![0; codes.len()];
        let open = oracle.halves.decide(&words, &codes, &mut expected);
        let halves = words.iter().flat_map(|word| [word & LOW, word >> 32]);
        let mut any = false;
        for ((half, &code), &report) in halves.zip(&codes).zip(&expected) {
            let verdict = oracle.halves.verdict(half);
            any |= verdict.is_open();
            let exact = oracle.decide(code.into(), half << 32);
            assert!(verdict.is_open() || u64::from(report) == exact);
        }
        assert_eq!(open, any);
        for level in halves::levels() {
            let mut found = vec![0; codes.len()];
            assert_eq!(oracle.halves.decide_with(level, &words, &codes, &mut found), open);
            assert_eq!(found, expected);
        }
        Ok(())
    }

    #[test]
    fn an_open_half_is_settled_by_the_words_that_follow() -> Result<()> {
        for (epsilon, size) in [(0.1, 2), (1.0, 100), (3.0, 4096), (5.0, 1 << 31)] {
            let oracle = DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(size)?)?;
            // The words on both sides of some ends of cells, and one beyond the last.
            for cell in [0, 1, size / 2, size - 1, size] {
                let end = u128::from(oracle.keep) + u128::from(cell) * u128::from(oracle.cell);
                for word in [end - 1, end, end + 1] {
                    let Ok(word) = u64::try_from(word) else { continue };
                    let mut rest = Given { words: vec![word >> 32, word << 32, u64::MAX, 7] };
                    let mut report = [0_u64];
                    oracle.report([1].into_iter(), &mut report, &mut rest, |code| code);
                    let accepted = if word > oracle.last { 7 } else { word };
                    assert_eq!(report[0], oracle.decide(1, accepted), "{epsilon}, {size}, {cell}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_cell_next_to_a_power_of_two_is_as_quick_as_any() -> Result<()> {
        // e^eps + k - 1 close to 2^j: epsilon = ln 3 and k = 2^j - 2.
        for power in 2..20 {
            let size = DomainSize::new((1 << power) - 2)?;
            let oracle = DirectEncoding::new(Epsilon::new(1.098_612_288_668_109_8)?, size)?;
            assert!(
                (oracle.support_probabilities().1.recip().log2() - f64::from(power)).abs() < 1e-9
            );
        }
        Ok(())
    }

    #[test]
    fn an_epsilon_that_words_cannot_realise_is_refused() -> Result<()> {
        let refused = DirectEncoding::new(Epsilon::new(1e-19)?, DomainSize::new(1000)?);
        assert!(matches!(refused, Err(Error::EpsilonUnrealizable { .. })));
        Ok(())
    }
}
