//! Hadamard response.
//!
//! A report is an integer `y` below `K`, the least power of two above the number of codes. Half of
//! these integers support code `x`: those that have an even number of set bits in common with `x +
//! 1`. A node reports each integer of its own half with a weight of `e^eps`, and each other with a
//! weight of one. This is the form for high privacy of Acharya, Sun, Zhang, "Hadamard response:
//! estimating distributions privately, efficiently, and with little communication" (2019). Two
//! different halves have exactly a quarter in common, so `p* = e^eps / (e^eps + 1)` and `q* = 1/2`.
//!
//! One 64-bit word makes a report. Its low `log2 K` bits are a uniform `y`. The other `b` bits are
//! compared with a threshold `A`, which decides whether `y` shall be in the half of the code. If
//! `y` is in the wrong half, the lowest bit that `x + 1` has set is flipped in `y`, which maps one
//! half onto the other. So every report has probability `2 A / (2^b K)` or `2 (2^b - A) / (2^b K)`
//! exactly, and integer bounds of the exponential prove that `A <= e^eps (2^b - A)`. No branch
//! depends on a code, and no word is drawn again.

mod simulate;

use core::marker::PhantomData;

use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::histogram::{Histogram, position};
use crate::frequency::shared::walsh_hadamard::walsh_hadamard;
use crate::frequency::{Randomizer, ReportCode};
use crate::parameters::{DomainSize, Epsilon};
use crate::random::{ExponentialBounds, Words, logarithm_above};
use crate::{Error, Result};

/// The randomizer of Hadamard response, with reports of type `O`.
///
/// ```
/// use turnout_core::frequency::HadamardResponse;
/// use turnout_core::parameters::{DomainSize, Epsilon};
///
/// let oracle = HadamardResponse::<u8>::new(Epsilon::new(1.0)?, DomainSize::new(100)?)?;
/// assert_eq!(oracle.report_count(), 128);
/// assert!(oracle.realized_epsilon() <= 1.0);
/// assert_eq!(oracle.support_probabilities().1, 0.5);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HadamardResponse<O> {
    epsilon: Epsilon,
    domain: DomainSize,
    /// `log2 K`.
    bits: u32,
    /// How many values of the high bits of a word make a report in the half of the code: `A`.
    inside: u64,
    reports: PhantomData<O>,
}

impl<O: ReportCode> HadamardResponse<O> {
    /// Makes a randomizer for an epsilon and a number of codes.
    ///
    /// # Errors
    ///
    /// [`Error::EpsilonUnrealizable`] if epsilon is too small for the deciding bits of a word:
    /// about 2^-32 for small domains, 2^-31 for the largest; [`Error::DomainSize`] if the reports
    /// do not fit type `O`.
    pub fn new(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        let bits = domain.get().ilog2() + 1;
        if O::RANGE >> bits == 0 {
            return Err(Error::DomainSize { value: domain.get(), maximum: O::RANGE - 1 });
        }
        let words = 1_u64 << (64 - bits);
        let bounds = ExponentialBounds::new(epsilon.get());
        let most = words - 1;
        let mut inside = words / 2;
        // The largest threshold with inside <= e^eps (words - inside), bit by bit.
        for step in (0..64 - bits).rev().map(|bit| 1_u64 << bit) {
            let larger = inside + step;
            if larger <= most && u128::from(larger) <= bounds.floor_times(words - larger) {
                inside = larger;
            }
        }
        let outside = words - inside;
        if inside - words / 2 <= outside >> 33 {
            return Err(Error::EpsilonUnrealizable {
                epsilon: epsilon.get(),
                domain_size: domain.get(),
            });
        }
        Ok(Self { epsilon, domain, bits, inside, reports: PhantomData })
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

    /// The number of different reports, `K`.
    #[must_use]
    pub const fn report_count(&self) -> u64 {
        1 << self.bits
    }

    /// `(A, 2^b - A)`: the weights of a report in the half of the node's code, and of a report
    /// outside it. The realised guarantee is the logarithm of their ratio, exactly.
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        (self.inside, (1 << (64 - self.bits)) - self.inside)
    }

    /// The realised epsilon, rounded up to a floating-point number. It is never below the truth,
    /// and never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let (own, other) = self.words();
        logarithm_above(own.into(), other.into(), self.epsilon.get())
    }

    /// `(p*, q*)`: the probabilities that a report supports the node's own code, and any other
    /// fixed code.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        (self.inside as f64 / (1_u64 << (64 - self.bits)) as f64, 0.5)
    }

    /// The support of every code, from the number of reports of each kind.
    fn support_of(&self, histogram: Vec<u64>) -> Vec<u64> {
        let received: u64 = histogram.iter().sum();
        let mut values: Vec<i64> = histogram.into_iter().map(u64::cast_signed).collect();
        walsh_hadamard(&mut values);
        let codes = values.iter().skip(1).take(self.domain.len());
        // Even reports less odd ones, and both together.
        codes.map(|&difference| received.wrapping_add_signed(difference) / 2).collect()
    }
}

/// Whether a report supports a code: an even number of common bits.
fn supports(code: u64, report: u64) -> bool {
    ((code + 1) & report).count_ones() & 1 == 0
}

/// Whether an odd number of bits is set, as 0 or 1; `values` are below 2^32.
#[inline(always)]
const fn parity(mut value: u64) -> u64 {
    value ^= value >> 16;
    value ^= value >> 8;
    value ^= value >> 4;
    value ^= value >> 2;
    value ^= value >> 1;
    value & 1
}

impl<O: ReportCode> Randomizer for HadamardResponse<O> {
    type Item = O;
    type Counter = Histogram;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        1
    }

    #[inline]
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [O], rng: &mut R) {
        let mut buffer = [0; BLOCK];
        let words = &mut buffer[..codes.len()];
        rng.fill_words(words);
        let mask = (1 << self.bits) - 1;
        for ((report, &word), &code) in reports.iter_mut().zip(&*words).zip(codes) {
            let (y, x) = (word & mask, code + 1);
            let outside = u64::from(word >> self.bits >= self.inside);
            let flip = parity(x & y) ^ outside;
            let pivot = x & x.wrapping_neg();
            *report = O::from_index(y ^ (pivot & flip.wrapping_neg()));
        }
    }

    fn valid(&self, report: &[O]) -> bool {
        matches!(report, [report] if report.index() >> self.bits == 0)
    }

    fn expected(&self) -> String {
        format!("an integer from 0 to {}", self.report_count() - 1)
    }

    fn counter(&self) -> Histogram {
        Histogram::new(1 << self.bits)
    }

    fn count(&self, counter: &mut Histogram, reports: &[O]) {
        counter.add(reports);
    }

    fn merge(&self, counter: Histogram, other: Histogram) -> Histogram {
        counter.merge(&other)
    }

    fn finish(&self, counter: Histogram) -> Vec<u64> {
        self.support_of(counter.finish())
    }

    fn supported(&self, report: &[O], visit: &mut dyn FnMut(usize)) {
        for report in report {
            let codes = (0..self.domain.get()).filter(|&code| supports(code, report.index()));
            codes.for_each(|code| visit(position(code)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::{Code, FrequencyOracle, Selection};
    use crate::random::AesStreams;

    fn oracle(epsilon: f64, size: u64) -> Result<HadamardResponse<u32>> {
        HadamardResponse::new(Epsilon::new(epsilon)?, DomainSize::new(size)?)
    }

    #[test]
    fn the_likelihood_ratio_is_the_largest_below_e_to_the_epsilon() -> Result<()> {
        for epsilon in [1e-6, 0.1, 1.0, 3.0_f64.ln(), 5.0, 20.0, 42.0] {
            for size in [2, 3, 4, 100, 1 << 16, u64::from(u32::MAX)] {
                let oracle = oracle(epsilon, size)?;
                let (own, other) = oracle.words();
                let bounds = ExponentialBounds::new(epsilon);
                assert!(bounds.at_least(own.into(), other.into()), "{epsilon} {size}");
                if other > 1 {
                    let (own, other) = (u128::from(own) + 1, u128::from(other) - 1);
                    assert!(!bounds.at_least(own, other), "{epsilon} {size}");
                }
                assert_eq!(u128::from(own) + u128::from(other), (1 << 64) >> oracle.bits);
                assert!(oracle.realized_epsilon() <= epsilon);
            }
        }
        assert!(matches!(oracle(1e-12, 100), Err(Error::EpsilonUnrealizable { .. })));
        let small = HadamardResponse::<u8>::new(Epsilon::new(1.0)?, DomainSize::new(256)?);
        assert!(matches!(small, Err(Error::DomainSize { value: 256, maximum: 255 })));
        Ok(())
    }

    /// A generator that gives some words, the last one first.
    struct Given(Vec<u64>);

    impl rand::TryRng for Given {
        type Error = core::convert::Infallible;
        fn try_next_u32(&mut self) -> core::result::Result<u32, Self::Error> {
            Ok(0)
        }
        fn try_next_u64(&mut self) -> core::result::Result<u64, Self::Error> {
            Ok(self.0.pop().unwrap_or(0))
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Self::Error> {
            Ok(())
        }
    }

    impl Words for Given {}

    #[test]
    fn every_report_has_its_weight_exactly() -> Result<()> {
        // The high bits matter only by their side of the threshold: each side takes every low part
        // once, and must give every report of its half twice and no other.
        for size in [2, 3, 7, 8, 20] {
            let oracle = oracle(0.7, size)?;
            let count = oracle.report_count();
            for code in 0..size {
                for (side, high) in [(true, 0), (true, oracle.inside - 1), (false, oracle.inside)] {
                    let words = (0..count).map(|low| high << oracle.bits | low).collect();
                    let mut reports = vec![0; position(count)];
                    let codes = vec![code; position(count)];
                    oracle.report(&codes, &mut reports, &mut Given(words));
                    for report in 0..count {
                        let found = reports.iter().filter(|&&found| found.index() == report);
                        let expected = if supports(code, report) == side { 2 } else { 0 };
                        assert_eq!(found.count(), expected, "{size} {code} {report}");
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn the_tally_counts_what_each_report_supports() -> Result<()> {
        for size in [2, 3, 7, 100, 5000] {
            let oracle = oracle(1.0, size)?;
            let codes: Vec<u32> = (0..3000).map(|node| node * node % 2).collect();
            let streams = AesStreams::from_seed(size);
            let reports = oracle.randomize(&codes, &Selection::everyone(), &streams)?.codes;
            let tally = oracle.tally(&reports, None)?;
            for (code, &support) in (0..size).zip(&tally.support) {
                let expected = reports.iter().filter(|&&report| supports(code, report.into()));
                assert_eq!(support, expected.count() as u64);
            }
            assert_eq!(oracle.collect(&codes, &Selection::everyone(), &streams)?, tally);
            assert!(oracle.check(&[u32::MAX]).is_err());
        }
        Ok(())
    }
}
