//! Rows of randomized bits.

use super::{HASHES, HashPool, WIDTH, check_width};
use crate::frequency::oracles::local_hashing::mixed;
use crate::frequency::shared::hashing::{Counts, Instructions, at_once};
use crate::frequency::shared::simulation::nodes;
use crate::frequency::{Randomizer, Tally};
use crate::parallel;
use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{
    BiasedBits, ExponentialBounds, Streams, Words, binomial, logarithm_above, uniform_below,
};
use crate::{Error, Result};

/// The count-mean sketch.
///
/// A report is a row of `1 + ceil(w / 64)` words: the number of the hash function, and `w`
/// independent bits. The bit of the own bucket is one with probability `p = 1 - T / 2^64`, any
/// other bit with probability `1 - p`; unused bits are zero. `T` is the least whole number for
/// which `(2^64 - T) / T <= e^(eps / 2)` is proven. Two rows differ in two bits, so their
/// likelihood ratio is at most `((2^64 - T) / T)^2 <= e^eps`.
///
/// ```
/// use turnout_core::frequency::{CountMeanSketch, FrequencyOracle, Selection};
/// use turnout_core::parameters::{DomainSize, Epsilon};
/// use turnout_core::random::AesStreams;
///
/// let oracle = CountMeanSketch::new(Epsilon::new(2.0)?, DomainSize::new(1000)?, 64, 128, 0)?;
/// let streams = AesStreams::from_operating_system()?;
/// let tally = oracle.collect(&[7_u16; 2000], &Selection::everyone(), &streams)?;
/// assert_eq!(tally.received, 2000);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CountMeanSketch {
    /// Half of epsilon.
    half: Epsilon,
    domain: DomainSize,
    pool: HashPool,
    flips: BiasedBits,
}

/// The largest width by default.
const LARGEST_WIDTH: u64 = 4096;

impl CountMeanSketch {
    /// The default number of hash functions.
    pub const HASHES: u64 = HASHES;

    /// The default width: the least power of two from 256 to 4096 with which collisions cost
    /// little. Compared with infinitely long rows, they raise the variance of a rare code by at
    /// most 5 %.
    #[must_use]
    pub fn default_width(epsilon: Epsilon) -> u64 {
        let q = 1.0 / (1.0 + libm::exp(epsilon.get() / 2.0));
        let variance = |collision: f64| {
            let other = q + (1.0 - 2.0 * q) * collision;
            other * (1.0 - other) / ((1.0 - 2.0 * q) * (1.0 - collision)).powi(2)
        };
        let mut width = WIDTH;
        while width < LARGEST_WIDTH && variance(1.0 / width as f64) > 1.05 * variance(0.0) {
            width *= 2;
        }
        width
    }

    /// Makes a sketch with `hashes` functions from a public seed, each with `width` buckets.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if there are not from 1 to 2^20 functions, a width from 2 to 2^16, and at
    /// most 2^28 buckets in all functions together; [`Error::DomainSize`] if the domain has more
    /// than `2^31 - 1` codes; [`Error::EpsilonUnrealizable`] if epsilon is below about 2^-30.
    pub fn new(
        epsilon: Epsilon,
        domain: DomainSize,
        hashes: u64,
        width: u64,
        seed: u64,
    ) -> Result<Self> {
        check_width(width)?;
        let pool = HashPool::new("hashes", hashes, width, seed, domain)?;
        let half = Epsilon::new(epsilon.get() * 0.5)?;
        let bounds = ExponentialBounds::new(half.get());
        let words = 1_u128 << 64;
        let mut threshold = bounds.floor_quotient(words, 1);
        while !bounds.at_least(words - threshold, threshold) {
            threshold += 1;
        }
        match u64::try_from(threshold) {
            Ok(threshold) if words - 2 * u128::from(threshold) > 1 << 32 => {
                Ok(Self { half, domain, pool, flips: BiasedBits::new(threshold) })
            }
            _ => Err(Error::EpsilonUnrealizable {
                epsilon: epsilon.get(),
                domain_size: domain.get(),
            }),
        }
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

    /// How many of the 2^64 words flip a bit, `T`. The realised guarantee is `2 ln((2^64 - T) /
    /// T)`, exactly.
    #[must_use]
    pub const fn flip_words(&self) -> u64 {
        self.flips.threshold()
    }

    /// The realised epsilon, rounded up.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        // 2^64 - T: T is not zero.
        let flips = self.flips.threshold();
        2.0 * logarithm_above(flips.wrapping_neg().into(), flips.into(), self.half.get())
    }

    /// The probability that a bit is flipped.
    fn flip(&self) -> f64 {
        self.flips.threshold() as f64 / 18_446_744_073_709_551_616.0
    }

    /// `(p*, q*)`: the probabilities that a report supports the node's own code, and any other
    /// fixed code. The latter is an average over all sets of functions.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        mixed((1.0 - self.flip(), self.flip()), self.pool.buckets())
    }

    /// The words of the bits of a row.
    fn row_words(&self) -> usize {
        self.pool.width().div_ceil(64)
    }

    /// The bits of the last word of a row that are used.
    fn last_bits(&self) -> u64 {
        u64::MAX >> (self.row_words() * 64 - self.pool.width())
    }

    /// Draws a tally with the law of [`collect`](crate::frequency::FrequencyOracle::collect) for
    /// these hash functions. `true_counts[i]` nodes hold code `i`, and each takes part with
    /// probability `rate`.
    ///
    /// The nodes of each code that take part choose their functions. Then the count of every cell
    /// of the sketch is one binomial of the nodes whose own bucket it is, plus one of the others.
    /// The joint law is exact, including the correlations of the counts. The cost is that of the
    /// tally, plus a part proportional to the number of nodes or to codes times functions,
    /// whichever is less.
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
        let (flip, received) = (self.flip(), cells.iter().sum());
        parallel::for_each_chunk(&mut cells, self.pool.width(), |function, cells| {
            let mut stream = HashPool::report_stream(streams, function);
            let present: u64 = cells.iter().sum();
            for cell in cells {
                *cell = *cell - binomial(*cell, flip, &mut stream)
                    + binomial(present - *cell, flip, &mut stream);
            }
        });
        let support = self.pool.gather(&cells, self.domain);
        Ok(Tally { support, received, weighted: None })
    }
}

impl Randomizer for CountMeanSketch {
    type Item = u64;
    type Counter = Counts;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        1 + self.row_words()
    }

    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u64], rng: &mut R) {
        // All flips of the block at once, then every row to its place, the last one first.
        let words = self.row_words();
        self.flips.fill(&mut reports[..codes.len() * words], rng);
        for row in (0..codes.len()).rev() {
            reports.copy_within(row * words..(row + 1) * words, row * (words + 1) + 1);
        }
        let last = self.last_bits();
        for (report, &code) in reports.chunks_exact_mut(self.width()).zip(codes) {
            let function = uniform_below(self.functions(), rng);
            let own = self.pool.bucket(function, code);
            if let [index, bits @ ..] = report {
                *index = function;
                // Every word is touched, so that which one holds the own bit does not show.
                for (start, word) in (0..).step_by(64).zip(&mut *bits) {
                    let place = own.wrapping_sub(start);
                    *word ^= u64::from(place < 64) << (place % 64);
                }
                if let Some(word) = bits.last_mut() {
                    *word &= last;
                }
            }
        }
    }

    fn valid(&self, report: &[u64]) -> bool {
        match report {
            [function, .., end] => *function < self.functions() && end & !self.last_bits() == 0,
            _ => false,
        }
    }

    fn expected(&self) -> String {
        format!(
            "a row of {} words: one of {} hash functions, and {} bits followed by zeros",
            self.width(),
            self.functions(),
            self.buckets()
        )
    }

    fn counter(&self) -> Counts {
        Counts::new(self.pool.functions_length() * self.row_words() * 64)
    }

    fn count(&self, counter: &mut Counts, reports: &[u64]) {
        let instructions = Instructions::best();
        let stride = self.row_words() * 64;
        for reports in at_once(reports, self.width()) {
            let lanes = counter.lanes(reports.len() / self.width());
            for report in reports.chunks_exact(self.width()) {
                if let [function, bits @ ..] = report {
                    #[expect(clippy::cast_possible_truncation, reason = "at most 2^20")]
                    let first = *function as usize * stride;
                    if let Some(counts) = lanes.get_mut(first..first + stride) {
                        instructions.add_bits(bits, counts);
                    }
                }
            }
        }
    }

    fn merge(&self, counter: Counts, other: Counts) -> Counts {
        counter.merge(other)
    }

    fn finish(&self, counter: Counts) -> Vec<u64> {
        let mut cells = counter.finish();
        let (stride, width) = (self.row_words() * 64, self.pool.width());
        if stride > width {
            let rows = cells.chunks_exact(stride).flat_map(|row| &row[..width]);
            cells = rows.copied().collect();
        }
        self.pool.gather(&cells, self.domain)
    }

    fn supported(&self, report: &[u64], visit: &mut dyn FnMut(usize)) {
        let [function, bits @ ..] = report else { return };
        for code in 0..self.domain.len() {
            #[expect(clippy::cast_possible_truncation, reason = "at most 2^16")]
            let bucket = self.pool.bucket(*function, code as u64) as usize;
            if bits.get(bucket / 64).is_some_and(|word| word >> (bucket % 64) & 1 == 1) {
                visit(code);
            }
        }
    }
}
