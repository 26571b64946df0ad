//! Summation with histogram encoding: each node reports a noisy histogram of its one answer.
//!
//! A node reports one integer for each code: one for its own and zero for every other, each with
//! discrete Laplace noise of scale `2 / eps`. The histograms of two answers differ by two in sum.
//! So the likelihood ratio of a report is at most `e^(2 rate)`, exactly, for a realised rate of at
//! most `eps / 2`. The method is that of Wang, Blocki, Li, Jha, "Locally differentially private
//! protocols for frequency estimation" (2017), section 4.2. The noise is an integer instead of
//! continuous (Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy
//! mechanisms", 2009).

use crate::frequency::shared::simulation::{nodes, take_part};
use crate::frequency::{Randomizer, Tally};
use crate::noise::DiscreteLaplace;
use crate::parallel;
use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{Purpose, Streams, Words, negative_binomial};
use crate::{Error, Result};

/// Codes that share one stream.
const BLOCK: usize = 128;

/// The first stream of the noise: those below draw who takes part.
const NOISE: u64 = 1 << 55;

/// The randomizer of summation with histogram encoding.
///
/// A report is a row of `k` integers of 32 bits. A number that does not fit is clamped; no
/// guarantee depends on that, and its probability is below `e^-2000`. Support counts are the sums
/// of those integers. They may be negative, and are 64 bits in two's complement.
///
/// ```
/// use turnout_core::frequency::{FrequencyOracle, Selection, SummationHistogram};
/// use turnout_core::parameters::{DomainSize, Epsilon};
/// use turnout_core::random::AesStreams;
///
/// let oracle = SummationHistogram::new(Epsilon::new(2.0)?, DomainSize::new(4)?)?;
/// assert!(oracle.realized_epsilon() <= 2.0);
/// let everyone = Selection::everyone();
/// let tally = oracle.collect(&[3_u8; 10_000], &everyone, &AesStreams::from_seed(1))?;
/// let sums: Vec<i64> = tally.support.iter().map(|sum| sum.cast_signed()).collect();
/// assert!(sums[0].abs() < 1000 && (sums[3] - 10_000).abs() < 1000);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SummationHistogram {
    epsilon: Epsilon,
    domain: DomainSize,
    noise: DiscreteLaplace,
}

impl SummationHistogram {
    /// The largest domain: a report of that many integers has 4 MiB.
    pub const MAXIMUM_DOMAIN: u64 = 1 << 20;

    /// Makes a randomizer for an epsilon and a number of codes.
    ///
    /// # Errors
    ///
    /// [`Error::DomainSize`] if the domain is larger than [`Self::MAXIMUM_DOMAIN`];
    /// [`Error::EpsilonUnrealizable`] if epsilon is below about 2e-6, because the scale of the
    /// noise is at most [`DiscreteLaplace::LARGEST_SCALE`].
    pub fn new(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        if domain.get() > Self::MAXIMUM_DOMAIN {
            let maximum = Self::MAXIMUM_DOMAIN;
            return Err(Error::DomainSize { value: domain.get(), maximum });
        }
        // Above the quotient, which is rounded to the nearest number.
        let noise = DiscreteLaplace::new((2.0 / epsilon.get()).next_up());
        let unrealizable =
            Error::EpsilonUnrealizable { epsilon: epsilon.get(), domain_size: domain.get() };
        Ok(Self { epsilon, domain, noise: noise.map_err(|_| unrealizable)? })
    }

    /// The epsilon that was requested.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// The rate of the noise in units of 2^-64. The realised epsilon is twice the rate, exactly.
    #[must_use]
    pub const fn rate(&self) -> u128 {
        self.noise.realized_scale().1
    }

    /// The realised epsilon, rounded up to a floating-point number. It is never below the truth,
    /// and never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let rate = self.rate();
        let twice = rate as f64 / 9_223_372_036_854_775_808.0;
        // Exact unless the rate has more than 53 digits.
        let up = if rate >> 53 == 0 { twice } else { twice.next_up() };
        up.min(self.epsilon.get())
    }

    /// The means of the scores of the own code, and of any other code: `(1, 0)`.
    #[must_use]
    pub const fn support_probabilities(&self) -> (f64, f64) {
        (1.0, 0.0)
    }

    /// Draws a tally with the law of [`collect`](crate::frequency::FrequencyOracle::collect).
    /// `true_counts[i]` nodes hold code `i`, and each takes part with probability `rate`.
    ///
    /// The sum of the noise of any number of reports is the difference of two negative binomial
    /// counts.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there is not one count for each code; [`Error::CountOverflow`]
    /// if the counts, or the noise, add up to more than 64 bits hold.
    pub fn simulate<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Result<Tally> {
        let nodes = nodes(true_counts, self.domain)?;
        let success = -libm::expm1(-(self.rate() as f64) / 18_446_744_073_709_551_616.0);
        // Far below 2^61 failures.
        if nodes as f64 / success > 1e18 {
            return Err(Error::CountOverflow { argument: "true_counts" });
        }
        let (mut support, received) = take_part(true_counts, rate.get(), streams);
        parallel::for_each_chunk(&mut support, BLOCK, |block, support| {
            let mut stream = streams.stream(Purpose::Simulation, NOISE | block as u64);
            for sum in support {
                let above = negative_binomial(received, success, &mut stream);
                let below = negative_binomial(received, success, &mut stream);
                *sum = sum.wrapping_add(above).wrapping_sub(below);
            }
        });
        Ok(Tally { support, received, weighted: None })
    }
}

impl Randomizer for SummationHistogram {
    type Item = i32;
    type Counter = Vec<u64>;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        self.domain.len()
    }

    /// The own one is added by a pass over the whole row: memory accesses do not depend on the
    /// code. How long noise takes to draw depends on the noise.
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [i32], rng: &mut R) {
        for (row, &code) in reports.chunks_exact_mut(self.domain.len()).zip(codes) {
            for (score, position) in row.iter_mut().zip(0_u64..) {
                let sum = self.noise.draw(rng).saturating_add(i64::from(position == code));
                *score = i32::try_from(sum).unwrap_or(if sum < 0 { i32::MIN } else { i32::MAX });
            }
        }
    }

    fn valid(&self, report: &[i32]) -> bool {
        report.len() == self.domain.len()
    }

    fn expected(&self) -> String {
        format!("{} integers", self.domain.get())
    }

    fn counter(&self) -> Vec<u64> {
        vec![0; self.domain.len()]
    }

    fn count(&self, counter: &mut Vec<u64>, reports: &[i32]) {
        for row in reports.chunks_exact(self.domain.len()) {
            for (sum, &score) in counter.iter_mut().zip(row) {
                *sum = sum.wrapping_add_signed(score.into());
            }
        }
    }

    fn merge(&self, mut counter: Vec<u64>, other: Vec<u64>) -> Vec<u64> {
        for (sum, term) in counter.iter_mut().zip(other) {
            *sum = sum.wrapping_add(term);
        }
        counter
    }

    fn finish(&self, counter: Vec<u64>) -> Vec<u64> {
        counter
    }

    /// Those with a score above zero: the codes under which the report is more likely than under
    /// others.
    fn supported(&self, report: &[i32], visit: &mut dyn FnMut(usize)) {
        for (code, &score) in report.iter().enumerate() {
            if score > 0 {
                visit(code);
            }
        }
    }

    fn scores(&self, report: &[i32], visit: &mut dyn FnMut(usize, i64)) {
        for (code, &score) in report.iter().enumerate() {
            visit(code, score.into());
        }
    }
}
