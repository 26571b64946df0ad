//! One bit of a Hadamard transform.

use super::{HASHES, HashPool, check_width};
use crate::frequency::oracle::BLOCK;
use crate::frequency::oracles::local_hashing::mixed;
use crate::frequency::shared::simulation::{fair_coins, nodes};
use crate::frequency::shared::walsh_hadamard::walsh_hadamard;
use crate::frequency::{DirectEncoding, Histogram, Randomizer, Tally};
use crate::parallel;
use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{Streams, Words, binomial, uniform_below};
use crate::{Error, Result};

/// The Hadamard count-mean sketch.
///
/// A report is one number, `(function * w + row) * 2 + bit`. It has a hash function and a row of
/// the Hadamard matrix of order `w`, both uniform. The bit is the matrix entry of that row in the
/// column of the own bucket (0 stands for +1 and 1 for -1). Direct encoding over two codes
/// randomizes it: it is kept with probability `e^eps / (e^eps + 1)`. A report supports the codes
/// whose buckets have its entry in its row; two different columns agree in half of their entries.
///
/// ```
/// use turnout_core::frequency::{FrequencyOracle, HadamardCountMeanSketch, Selection};
/// use turnout_core::parameters::{DomainSize, Epsilon};
/// use turnout_core::random::AesStreams;
///
/// let domain = DomainSize::new(1000)?;
/// let oracle = HadamardCountMeanSketch::new(Epsilon::new(2.0)?, domain, 64, 128, 0)?;
/// let streams = AesStreams::from_operating_system()?;
/// let tally = oracle.collect(&[7_u16; 2000], &Selection::everyone(), &streams)?;
/// assert_eq!(tally.received, 2000);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HadamardCountMeanSketch {
    domain: DomainSize,
    pool: HashPool,
    encoding: DirectEncoding,
}

impl HadamardCountMeanSketch {
    /// The default number of hash functions.
    pub const HASHES: u64 = HASHES;

    /// The default width: collisions raise the variance of a rare code by less than 1 %.
    pub const WIDTH: u64 = super::WIDTH;

    /// Makes a sketch with `hashes` functions from a public seed, each with `width` buckets.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if there are not from 1 to 2^20 functions, a width that is a power of two
    /// from 2 to 2^16, and at most 2^28 buckets in all functions together; [`Error::DomainSize`] if
    /// the domain has more than `2^31 - 1` codes; [`Error::EpsilonUnrealizable`] as for
    /// [`DirectEncoding::new`].
    pub fn new(
        epsilon: Epsilon,
        domain: DomainSize,
        hashes: u64,
        width: u64,
        seed: u64,
    ) -> Result<Self> {
        check_width(width)?;
        if !width.is_power_of_two() {
            let expected = "a power of two from 2 to 2^16";
            return Err(Error::Integer { argument: "width", value: width, expected });
        }
        let pool = HashPool::new("hashes", hashes, width, seed, domain)?;
        let encoding = DirectEncoding::new(epsilon, DomainSize::new(2)?)?;
        Ok(Self { domain, pool, encoding })
    }

    /// The width, `w`.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.pool.buckets().count()
    }

    /// The number of hash functions, `m`.
    #[must_use]
    pub fn functions(&self) -> u64 {
        self.pool.functions()
    }

    /// The modulus of the functions, `P`.
    #[must_use]
    pub const fn modulus(&self) -> u64 {
        self.pool.buckets().modulus().get()
    }

    /// `(A, W)`: how many words of 2^64 keep the entry, and how many reverse it.
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
    /// fixed code. The latter is an average over all sets of functions.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        mixed((self.encoding.support_probabilities().0, 0.5), self.pool.buckets())
    }

    /// Draws a tally with the law of [`collect`](crate::frequency::FrequencyOracle::collect) for
    /// these hash functions. `true_counts[i]` nodes hold code `i`, and each takes part with
    /// probability `rate`.
    ///
    /// The nodes of each code that take part choose their functions, and the nodes of each bucket
    /// draw whether their entry is reversed. Then the bits of their rows are drawn, the highest
    /// first; nodes with the same remaining choice are drawn together. The joint law is exact,
    /// including the correlations of the counts. The cost has two parts. One is proportional to the
    /// number of nodes or to codes times functions, whichever is less. The other is proportional to
    /// functions times columns times bits of a column.
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
        let cells = self.pool.scatter(true_counts, rate, streams);
        let received = cells.iter().sum();
        let width = self.pool.width();
        let mut entries = vec![0; 2 * cells.len()];
        let keep = self.encoding.support_probabilities().0;
        parallel::for_each_chunk(&mut entries, 2 * width, |function, entries| {
            let mut stream = HashPool::report_stream(streams, function);
            let entries = entries.as_chunks_mut::<2>().0;
            for (pair, &nodes) in entries.iter_mut().zip(&cells[function * width..]) {
                let kept = binomial(nodes, keep, &mut stream);
                *pair = [kept, nodes - kept];
            }
            choose_rows(entries, &mut stream);
        });
        let support = self.pool.gather(&self.cells(&entries), self.domain);
        Ok(Tally { support, received, weighted: None })
    }

    /// For every function and column the number of reports that support it, from the number of
    /// reports with each entry. If the reports in row `l` are `P_l` of +1 and `M_l` of -1, column
    /// `b` is supported by `sum_l (P_l + M_l + H_lb (P_l - M_l)) / 2`: a Hadamard transform.
    fn cells(&self, entries: &[u64]) -> Vec<u64> {
        let width = self.pool.width();
        let mut cells = vec![0; entries.len() / 2];
        parallel::for_each_chunk(&mut cells, width, |function, cells| {
            let entries = &entries[function * 2 * width..][..2 * width];
            let pairs = entries.as_chunks::<2>().0.iter();
            let mut balance: Vec<i64> =
                pairs.map(|[plus, minus]| plus.wrapping_sub(*minus).cast_signed()).collect();
            walsh_hadamard(&mut balance);
            let received: u64 = entries.iter().sum();
            for (cell, sum) in cells.iter_mut().zip(balance) {
                // Not negative, and even: the sum has as many terms as there are reports.
                *cell = received.wrapping_add_signed(sum) / 2;
            }
        });
        cells
    }
}

/// Has reports choose rows: from how many of each column have the entry of their row as it is, and
/// turned round, makes how many of each row have +1, and -1.
///
/// Every bit of a row is a fair coin, which turns the entry round if the bits of row and column are
/// both one. What is left to know of a report is its entry, the bits of its row that are drawn, and
/// those of its column that are not: as many numbers as before.
fn choose_rows<R: Words>(entries: &mut [[u64; 2]], rng: &mut R) {
    let mut half = entries.len() / 2;
    while half > 0 {
        for block in entries.chunks_exact_mut(2 * half) {
            let (zeros, ones) = block.split_at_mut(half);
            for (zero, one) in zeros.iter_mut().zip(ones) {
                let [same, turned] = [*zero, *one].map(|pair| pair.map(|all| fair_coins(all, rng)));
                let rest = |entry: usize| zero[entry] - same[entry] + one[entry] - turned[entry];
                *zero = [rest(0), rest(1)];
                *one = [same[0] + turned[1], same[1] + turned[0]];
            }
        }
        half /= 2;
    }
}

/// Whether the entry of the Hadamard matrix is -1.
const fn negative(row: usize, column: usize) -> bool {
    (row & column).count_ones() % 2 == 1
}

impl Randomizer for HadamardCountMeanSketch {
    type Item = u32;
    type Counter = Histogram;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        1
    }

    #[expect(clippy::cast_possible_truncation, reason = "there are at most 2^29 reports")]
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u32], rng: &mut R) {
        let mut own = [0; BLOCK];
        let width = self.buckets();
        for ((report, own), &code) in reports.iter_mut().zip(&mut own).zip(codes) {
            let cell = uniform_below(self.functions() * width, rng);
            // The width is a power of two.
            let (function, row) = (cell >> width.trailing_zeros(), cell & (width - 1));
            *report = (2 * cell) as u32;
            let common = row & self.pool.bucket(function, code);
            *own = u64::from(common.count_ones() & 1);
        }
        let mut randomized = [0; BLOCK];
        let randomized = &mut randomized[..codes.len()];
        self.encoding.report(own.iter().copied(), randomized, rng, |entry| entry);
        for (report, &entry) in reports.iter_mut().zip(&*randomized) {
            *report += entry as u32;
        }
    }

    fn valid(&self, report: &[u32]) -> bool {
        report.iter().all(|&report| (report as usize) < 2 * self.pool.cells())
    }

    fn expected(&self) -> String {
        format!(
            "an integer below {}: an entry of one of {} rows of one of {} hash functions",
            2 * self.pool.cells(),
            self.buckets(),
            self.functions()
        )
    }

    fn counter(&self) -> Histogram {
        Histogram::new(2 * self.pool.cells())
    }

    fn count(&self, counter: &mut Histogram, reports: &[u32]) {
        counter.add(reports);
    }

    fn merge(&self, counter: Histogram, other: Histogram) -> Histogram {
        counter.merge(&other)
    }

    fn finish(&self, counter: Histogram) -> Vec<u64> {
        self.pool.gather(&self.cells(&counter.finish()), self.domain)
    }

    fn supported(&self, report: &[u32], visit: &mut dyn FnMut(usize)) {
        for &report in report {
            let (cell, entry) = (report as usize / 2, report & 1 == 1);
            let (function, row) = (cell / self.pool.width(), cell % self.pool.width());
            for code in 0..self.domain.len() {
                #[expect(clippy::cast_possible_truncation, reason = "at most 2^16")]
                let column = self.pool.bucket(function as u64, code as u64) as usize;
                if negative(row, column) == entry {
                    visit(code);
                }
            }
        }
    }
}
