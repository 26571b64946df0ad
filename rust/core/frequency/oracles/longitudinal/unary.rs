//! Unary encoding in two stages.

use super::{BitChain, BitStage, Memoized};
use crate::Result;
use crate::frequency::shared::bit_rows::{self, BitCounter};
use crate::frequency::shared::simulation::independent;
use crate::frequency::{FrequencyOracle, Randomizer, Reports, Selection, Tally};
use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{Streams, Words};

/// Unary encoding in which every bit is randomised twice: once permanently, and once for each
/// report.
///
/// With two symmetric stages this is basic one-time RAPPOR made longitudinal ("L-SUE"); with others
/// "L-OUE", "L-OSUE", "L-SOUE": Arcolezi, Couchot, Al Bouna, Xiao (2022).
///
/// Reports are rows of bits, 64 in a word from the least significant one; unused bits are zero. As
/// a [`Randomizer`] it makes first reports: each uses a permanent answer that is dropped at once.
///
/// ```
/// use turnout_core::frequency::{BitStage, Codes, Memoized, MemoizedUnary};
/// use turnout_core::parameters::{DomainSize, Epsilon};
///
/// let (size, stage) = (DomainSize::new(100)?, BitStage::Symmetric);
/// let chain = MemoizedUnary::new(size, Epsilon::new(3.0)?, Epsilon::new(1.0)?, [stage, stage])?;
/// let answer = chain.permanent(Codes::U8(&[4]), &[[1; 32]], &[0; 32])?;
/// assert_eq!(answer.len(), 2);
/// assert_eq!(answer, chain.permanent(Codes::U8(&[4]), &[[1; 32]], &[0; 32])?);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoizedUnary {
    domain: DomainSize,
    chain: BitChain,
}

impl MemoizedUnary {
    /// Makes the randomizer whose permanent answer is `lifetime`-private and whose single report is
    /// `first`-private. The stages are those of the permanent answer and of a report.
    ///
    /// # Errors
    ///
    /// Those of [`BitChain::new`].
    pub fn new(
        domain: DomainSize,
        lifetime: Epsilon,
        first: Epsilon,
        [permanent, instantaneous]: [BitStage; 2],
    ) -> Result<Self> {
        let chain = BitChain::new(lifetime, first, permanent, instantaneous)?;
        Ok(Self { domain, chain })
    }

    /// The realised epsilon of one report, rounded up.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        self.chain.first_epsilon()
    }

    /// `(p*, q*)` of a report.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        self.chain.support_probabilities()
    }

    /// Draws a tally of first reports from the true counts alone.
    ///
    /// # Errors
    ///
    /// Those of [`DirectEncoding::simulate`](crate::frequency::DirectEncoding::simulate).
    pub fn simulate<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Result<Tally> {
        let probabilities = self.support_probabilities();
        independent(self.domain, probabilities, true_counts, rate, streams)
    }

    /// A report of a permanent answer: one word for each bit, whatever the answer.
    fn disguise<R: Words>(&self, answer: &[u64], report: &mut [u64], rng: &mut R) {
        let (one, zero) = self.chain.words()[1];
        self.fill(report, rng, |position| {
            let set = ((answer[position / 64] >> (position % 64)) & 1).wrapping_neg();
            (one & set) | (zero & !set)
        });
    }

    /// Sets each bit with the probability that its threshold says. The order of the words is part of
    /// the format of permanent answers.
    #[inline(always)]
    fn fill<R: Words>(&self, row: &mut [u64], rng: &mut R, threshold: impl Fn(usize) -> u64) {
        let mut words = [0; 64];
        let mut left = self.domain.len();
        for (index, bits) in row.iter_mut().enumerate() {
            let words = &mut words[..left.min(64)];
            rng.fill_words(words);
            *bits = 0;
            for (bit, &word) in words.iter().enumerate() {
                *bits |= u64::from(word < threshold(64 * index + bit)) << bit;
            }
            left -= words.len();
        }
    }
}

impl Memoized for MemoizedUnary {
    fn words(&self) -> [(u64, u64); 2] {
        self.chain.words()
    }

    fn lifetime_epsilon(&self) -> f64 {
        self.chain.lifetime_epsilon()
    }

    /// One word for each bit, whatever the code.
    fn remember<R: Words>(&self, code: u64, answer: &mut [u64], rng: &mut R) {
        let (one, zero) = self.chain.words()[0];
        self.fill(answer, rng, |position| {
            let own = u64::from(position as u64 == code).wrapping_neg();
            (one & own) | (zero & !own)
        });
    }

    fn instantaneous<S: Streams>(
        &self,
        permanent: &[u64],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Reports<u64>> {
        self.check(permanent)?;
        let nodes = permanent.len() / self.width();
        // A report of a node is made from its row, which is looked up by its number.
        let numbers: Vec<i64> = (0..).take(nodes).collect();
        let domain = DomainSize::new(nodes.max(2) as u64)?;
        Rows { chain: *self, answers: permanent, domain }.randomize(&numbers, selection, streams)
    }
}

impl Randomizer for MemoizedUnary {
    type Item = u64;
    type Counter = BitCounter;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        bit_rows::row_words(self.domain)
    }

    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u64], rng: &mut R) {
        let mut answer = vec![0; self.width()];
        for (&code, report) in codes.iter().zip(reports.chunks_mut(self.width())) {
            self.remember(code, &mut answer, rng);
            self.disguise(&answer, report, rng);
        }
    }

    fn valid(&self, report: &[u64]) -> bool {
        bit_rows::is_row(self.domain, report)
    }

    fn expected(&self) -> String {
        format!("{} bits, and zeros above them", self.domain.get())
    }

    fn counter(&self) -> BitCounter {
        BitCounter::new(self.domain)
    }

    fn count(&self, counter: &mut BitCounter, reports: &[u64]) {
        counter.add(reports);
    }

    fn merge(&self, counter: BitCounter, other: BitCounter) -> BitCounter {
        counter.merge(other)
    }

    fn finish(&self, counter: BitCounter) -> Vec<u64> {
        counter.finish(self.domain.len())
    }

    fn supported(&self, report: &[u64], visit: &mut dyn FnMut(usize)) {
        bit_rows::visit_bits(report, visit);
    }
}

/// The reports of nodes whose permanent answers are known, as a randomizer of their numbers.
struct Rows<'a> {
    chain: MemoizedUnary,
    answers: &'a [u64],
    domain: DomainSize,
}

impl Randomizer for Rows<'_> {
    type Item = u64;
    type Counter = ();

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        self.chain.width()
    }

    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u64], rng: &mut R) {
        let width = self.width();
        for (&number, report) in codes.iter().zip(reports.chunks_mut(width)) {
            // The numbers are those of rows, and fit.
            let start = usize::try_from(number).unwrap_or(usize::MAX).saturating_mul(width);
            if let Some(answer) = self.answers.get(start..start.saturating_add(width)) {
                self.chain.disguise(answer, report, rng);
            }
        }
    }

    fn valid(&self, report: &[u64]) -> bool {
        self.chain.valid(report)
    }

    fn expected(&self) -> String {
        self.chain.expected()
    }

    fn counter(&self) {}

    fn count(&self, (): &mut (), _: &[u64]) {}

    fn merge(&self, (): (), (): ()) {}

    fn finish(&self, (): ()) -> Vec<u64> {
        Vec::new()
    }

    fn supported(&self, report: &[u64], visit: &mut dyn FnMut(usize)) {
        self.chain.supported(report, visit);
    }
}
