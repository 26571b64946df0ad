//! Local hashing with a fixed pool of functions.

use super::mixed;
use super::optimal::optimal_buckets;
use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::hashing::HashPool;
use crate::frequency::shared::simulation::nodes;
use crate::frequency::{DirectEncoding, Histogram, Randomizer, Tally};
use crate::parallel;
use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{Streams, Words, binomial, multinomial_uniform, uniform_below};
use crate::{Error, Result};

/// Local hashing in which the node draws its function from a fixed, public pool of `m` functions.
///
/// A report is one small number, `function * g + bucket`. A tally costs `m k` evaluations, whatever
/// the number of reports. This is the pool of Cormode, Maddock, Maple, "Frequency estimation under
/// local differential privacy" (2021). The guarantee is the same as without a pool, because the
/// functions do not depend on anybody's code. The cost of a pool is an error that does not average
/// out. Codes that collide in these functions more often than expected are mistaken for each other.
///
/// ```
/// use turnout_core::frequency::{FrequencyOracle, PooledLocalHashing, Selection};
/// use turnout_core::parameters::{DomainSize, Epsilon};
/// use turnout_core::random::AesStreams;
///
/// let domain = DomainSize::new(1000)?;
/// let oracle = PooledLocalHashing::optimized(Epsilon::new(1.0)?, domain, 4096, 0)?;
/// let streams = AesStreams::from_operating_system()?;
/// let tally = oracle.collect(&[7_u16; 2000], &Selection::everyone(), &streams)?;
/// assert_eq!(tally.received, 2000);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PooledLocalHashing {
    domain: DomainSize,
    pool: HashPool,
    encoding: DirectEncoding,
}

impl PooledLocalHashing {
    /// Makes a randomizer with a given number of buckets and `functions` functions from a public
    /// seed.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if there are not from 2 to 2^20 buckets, not from 1 to 2^20 functions, or
    /// more than 2^28 buckets in all functions together; [`Error::DomainSize`] if the domain has
    /// more than `2^31 - 1` codes; [`Error::EpsilonUnrealizable`] as for [`DirectEncoding::new`].
    pub fn new(
        epsilon: Epsilon,
        domain: DomainSize,
        buckets: u64,
        functions: u64,
        seed: u64,
    ) -> Result<Self> {
        if !(2..=super::LocalHashing::MAXIMUM_BUCKETS).contains(&buckets) {
            let expected = "an integer from 2 to 2^20";
            return Err(Error::Integer { argument: "buckets", value: buckets, expected });
        }
        let pool = HashPool::new("hashes", functions, buckets, seed, domain)?;
        let encoding = DirectEncoding::new(epsilon, DomainSize::new(buckets)?)?;
        Ok(Self { domain, pool, encoding })
    }

    /// Makes a randomizer with the number of buckets that gives rare codes the least variance.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn optimized(
        epsilon: Epsilon,
        domain: DomainSize,
        functions: u64,
        seed: u64,
    ) -> Result<Self> {
        // A small domain: here the functions are not sent and leave room for any bucket.
        let small = DomainSize::new(domain.get().min(1 << 20))?;
        let most = (HashPool::MAXIMUM_CELLS / functions.max(1)).max(2);
        Self::new(epsilon, domain, optimal_buckets(epsilon, small).min(most), functions, seed)
    }

    /// The number of buckets, `g`.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.pool.buckets().count()
    }

    /// The number of functions, `m`.
    #[must_use]
    pub fn functions(&self) -> u64 {
        self.pool.functions()
    }

    /// The modulus of the functions, `P`.
    #[must_use]
    pub const fn modulus(&self) -> u64 {
        self.pool.buckets().modulus().get()
    }

    /// `(A, W)`: how many words of 2^64 make a node report its own bucket, and how many each other
    /// bucket.
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        self.encoding.words()
    }

    /// The realised epsilon, rounded up.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        self.encoding.realized_epsilon()
    }

    /// `(p*, q*)`: the probabilities that a report supports the node's own code, and any other
    /// fixed code. The latter is an average over all pools.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        mixed(self.encoding.support_probabilities(), self.pool.buckets())
    }

    /// Draws a tally with the law of [`collect`](crate::frequency::FrequencyOracle::collect) for
    /// this pool. `true_counts[i]` nodes hold code `i`, and each takes part with probability
    /// `rate`.
    ///
    /// The nodes of each code that take part choose their functions; those that share a function
    /// and a bucket are randomized together. The joint law is exact, including the correlations of
    /// the counts. The cost is that of the tally, plus a part proportional to the number of nodes
    /// or to codes times functions, whichever is less.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there is not one count for each code; [`Error::CountOverflow`]
    /// if the counts add up to more than 64 bits hold.
    pub fn simulate<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Result<Tally> {
        nodes(true_counts, self.domain)?;
        let mut cells = self.pool.scatter(true_counts, rate, streams);
        let received = cells.iter().sum();
        let keep = self.encoding.keep_probability();
        parallel::for_each_chunk(&mut cells, self.pool.width(), |function, cells| {
            let mut stream = HashPool::report_stream(streams, function);
            let mut replaced = 0;
            for cell in &mut *cells {
                let kept = binomial(*cell, keep, &mut stream);
                replaced += *cell - kept;
                *cell = kept;
            }
            multinomial_uniform(replaced, cells, &mut stream);
        });
        let support = self.pool.gather(&cells, self.domain);
        Ok(Tally { support, received, weighted: None })
    }
}

impl Randomizer for PooledLocalHashing {
    type Item = u32;
    type Counter = Histogram;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        1
    }

    #[expect(clippy::cast_possible_truncation, reason = "there are at most 2^28 cells")]
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u32], rng: &mut R) {
        let mut own = [0; BLOCK];
        for ((report, own), &code) in reports.iter_mut().zip(&mut own).zip(codes) {
            let function = uniform_below(self.functions(), rng);
            *report = (function * self.buckets()) as u32;
            *own = self.pool.bucket(function, code);
        }
        let mut randomized = [0; BLOCK];
        let randomized = &mut randomized[..codes.len()];
        self.encoding.report(own.iter().copied(), randomized, rng, |bucket| bucket);
        for (report, &bucket) in reports.iter_mut().zip(&*randomized) {
            *report += bucket as u32;
        }
    }

    fn valid(&self, report: &[u32]) -> bool {
        report.iter().all(|&report| (report as usize) < self.pool.cells())
    }

    fn expected(&self) -> String {
        format!(
            "an integer below {}: one of {} buckets of one of {} hash functions",
            self.pool.cells(),
            self.buckets(),
            self.functions()
        )
    }

    fn counter(&self) -> Histogram {
        Histogram::new(self.pool.cells())
    }

    fn count(&self, counter: &mut Histogram, reports: &[u32]) {
        counter.add(reports);
    }

    fn merge(&self, counter: Histogram, other: Histogram) -> Histogram {
        counter.merge(&other)
    }

    fn finish(&self, counter: Histogram) -> Vec<u64> {
        self.pool.gather(&counter.finish(), self.domain)
    }

    fn supported(&self, report: &[u32], visit: &mut dyn FnMut(usize)) {
        for &report in report {
            let (function, bucket) =
                (u64::from(report) / self.buckets(), u64::from(report) % self.buckets());
            for code in 0..self.domain.len() {
                if self.pool.bucket(function, code as u64) == bucket {
                    visit(code);
                }
            }
        }
    }
}
