//! Direct encoding in two stages.

use num_bigint::BigUint;

use super::{Memoized, Second, first_out_of_reach, logarithm_up};
use crate::Result;
use crate::frequency::oracle::BLOCK;
use crate::frequency::{DirectEncoding, Histogram, Randomizer, Reports, Selection, Tally};
use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{ExponentialBounds, Streams, Words};

/// Direct encoding of a permanent answer that was also made by direct encoding. This is "L-GRR"
/// (Arcolezi, Couchot, Al Bouna, Xiao, "Improving the utility of locally differentially private
/// protocols for longitudinal and multidimensional frequency estimates", 2022).
///
/// As a [`Randomizer`] it makes first reports: each uses a permanent answer that is dropped at
/// once.
///
/// ```
/// use turnout_core::frequency::{Codes, Memoized, MemoizedDirect};
/// use turnout_core::parameters::{DomainSize, Epsilon};
///
/// let size = DomainSize::new(10)?;
/// let chain = MemoizedDirect::new(size, Epsilon::new(3.0)?, Epsilon::new(1.0)?)?;
/// let answer = chain.permanent(Codes::U8(&[4]), &[[1; 32]], &[0; 32])?;
/// assert_eq!(answer, chain.permanent(Codes::U8(&[4]), &[[1; 32]], &[0; 32])?);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoizedDirect {
    first: Epsilon,
    permanent: DirectEncoding,
    instantaneous: DirectEncoding,
}

impl MemoizedDirect {
    /// Finds the stages with which the permanent answer is `lifetime`-private and one report is
    /// `first`-private.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if `first` cannot be reached below
    /// `lifetime`; [`Error::EpsilonUnrealizable`](crate::Error::EpsilonUnrealizable) if an epsilon
    /// is so small that reports would carry no information.
    pub fn new(domain: DomainSize, lifetime: Epsilon, first: Epsilon) -> Result<Self> {
        let permanent = DirectEncoding::new(lifetime, domain)?;
        let (own, other) = permanent.words();
        let (rho, target) = (own as f64 / other as f64, libm::exp(first.get()));
        let others = domain.get() as f64 - 2.0;
        // Solves (rho r + k - 1) / (rho + r + k - 2) = e^first for the second ratio r.
        let wanted = (target * (rho + others) - others - 1.0) / (rho - target);
        if first >= lifetime || wanted <= 1.0 {
            return Err(first_out_of_reach(first.get(), lifetime.get()));
        }
        let bounds = ExponentialBounds::new(first.get());
        let mut epsilon = libm::log(wanted).min(Epsilon::MAXIMUM);
        let mut step = 1e-15;
        loop {
            let instantaneous = DirectEncoding::new(Epsilon::new(epsilon)?, domain)?;
            let chain = Self { first, permanent, instantaneous };
            let (above, below) = chain.words_of_a_report();
            if bounds.at_least_ratio(&above, &below) {
                return Ok(chain);
            }
            epsilon *= 1.0 - step;
            step *= 2.0;
        }
    }

    /// How likely a report names the own code, and another one, in a common unit.
    fn words_of_a_report(&self) -> (BigUint, BigUint) {
        let [(own, other), (kept, changed)] = self.words();
        let size = self.permanent.domain_size().get();
        let product = |left: u64, right: u64| BigUint::from(left) * right;
        (
            product(own, kept) + product(other, changed) * (size - 1),
            product(other, kept) + product(own, changed) + product(other, changed) * (size - 2),
        )
    }

    /// The realised epsilon of one report, rounded up.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let (above, below) = self.words_of_a_report();
        logarithm_up(&above, &below, self.first.get())
    }

    /// `(p*, q*)` of a report.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        let (p, q) = self.permanent.support_probabilities();
        let (kept, changed) = self.instantaneous.support_probabilities();
        (p * kept + (1.0 - p) * changed, q * kept + (1.0 - q) * changed)
    }

    /// Draws a tally of first reports from the true counts alone: see [`DirectEncoding::simulate`].
    ///
    /// # Errors
    ///
    /// Those of [`DirectEncoding::simulate`].
    pub fn simulate<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Result<Tally> {
        let permanent = self.permanent.simulate(true_counts, Probability::ONE, &Second(streams))?;
        self.instantaneous.simulate(&permanent.support, rate, streams)
    }
}

/// Codes have at most 32 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "below the size of the domain")]
const fn narrow(code: u64) -> u32 {
    code as u32
}

impl Memoized for MemoizedDirect {
    fn words(&self) -> [(u64, u64); 2] {
        [self.permanent.words(), self.instantaneous.words()]
    }

    fn lifetime_epsilon(&self) -> f64 {
        self.permanent.realized_epsilon()
    }

    fn remember<R: Words>(&self, code: u64, answer: &mut [u32], rng: &mut R) {
        self.permanent.report(core::iter::once(code), answer, rng, narrow);
    }

    fn instantaneous<S: Streams>(
        &self,
        permanent: &[u32],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Reports<u32>> {
        self.instantaneous.randomize(permanent, selection, streams)
    }
}

impl Randomizer for MemoizedDirect {
    type Item = u32;
    type Counter = Histogram;

    fn domain(&self) -> DomainSize {
        self.permanent.domain_size()
    }

    fn width(&self) -> usize {
        1
    }

    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u32], rng: &mut R) {
        let mut answers = [0; BLOCK];
        let answers = &mut answers[..codes.len()];
        self.permanent.report(codes.iter().copied(), answers, rng, |code| code);
        self.instantaneous.report(answers.iter().copied(), reports, rng, narrow);
    }

    fn valid(&self, report: &[u32]) -> bool {
        report.iter().all(|&code| u64::from(code) < self.domain().get())
    }

    fn expected(&self) -> String {
        format!("a code below {}", self.domain().get())
    }

    fn counter(&self) -> Histogram {
        Histogram::new(self.domain().len())
    }

    fn count(&self, counter: &mut Histogram, reports: &[u32]) {
        counter.add(reports);
    }

    fn merge(&self, counter: Histogram, other: Histogram) -> Histogram {
        counter.merge(&other)
    }

    fn finish(&self, counter: Histogram) -> Vec<u64> {
        counter.finish()
    }

    fn supported(&self, report: &[u32], visit: &mut dyn FnMut(usize)) {
        for &code in report {
            visit(code as usize);
        }
    }
}
