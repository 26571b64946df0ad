//! Local hashing: a report is a hash function that the node chooses, and a randomized bucket.
//!
//! A node draws a function from a strongly universal family, whatever its code. Direct encoding
//! randomizes the bucket of its code, one of `g`. A report supports the codes that its function
//! maps to its bucket. The binary variant, `g = 2`, is that of Bassily and Smith, "Local, private,
//! efficient protocols for succinct histograms" (2015). Wang, Blocki, Li, Jha, "Locally
//! differentially private protocols for frequency estimation" (2017), find the `g` of least
//! variance, near `e^eps + 1`.
//!
//! The likelihood of a report `(a, b, y)` under code `x` is that of `y` given the bucket of `x`,
//! divided by `P^2`. So the guarantee is that of direct encoding, for any functions whatever.

mod optimal;
mod pooled;
mod simulate;

pub use pooled::PooledLocalHashing;

use optimal::{domain_limit, optimal_buckets};

use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::hashing::{Buckets, Counts, Instructions, Modulus, Walk};
use crate::frequency::{DirectEncoding, Randomizer};
use crate::parameters::{DomainSize, Epsilon};
use crate::random::Words;
use crate::{Error, Result};

/// The local-hashing randomizer.
///
/// A report is one number: `[a: w bits][b: w bits][bucket: c bits]` with `c = ceil(log2 g)` and `w
/// = min(31, (64 - c) / 2)`. The function is `u = (a x + b) mod P` for the largest prime `P < 2^w`,
/// and the bucket is `floor(u g / P)`; `a` and `b` are uniform on `0..P`. So a domain can have at
/// most `P` codes.
///
/// ```
/// use turnout_core::frequency::{FrequencyOracle, LocalHashing, Selection};
/// use turnout_core::parameters::{DomainSize, Epsilon};
/// use turnout_core::random::AesStreams;
///
/// let oracle = LocalHashing::optimized(Epsilon::new(1.0)?, DomainSize::new(1000)?)?;
/// assert_eq!(oracle.buckets(), 4);
/// let streams = AesStreams::from_operating_system()?;
/// let tally = oracle.collect(&[7_u16; 2000], &Selection::everyone(), &streams)?;
/// assert_eq!(tally.received, 2000);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalHashing {
    domain: DomainSize,
    buckets: Buckets,
    encoding: DirectEncoding,
    /// The widths in bits of a coefficient and of a bucket.
    widths: (u32, u32),
}

/// Codes that are counted together, so that their counts stay in the nearest cache.
const TILE: usize = 4096;

impl LocalHashing {
    /// The largest number of buckets.
    pub const MAXIMUM_BUCKETS: u64 = 1 << 20;

    /// Makes a randomizer with a given number of buckets.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if there are not from 2 to 2^20 buckets; [`Error::HashedDomain`] if the
    /// functions cannot distinguish all codes of the domain with that many buckets;
    /// [`Error::EpsilonUnrealizable`] as for [`DirectEncoding::new`].
    pub fn new(epsilon: Epsilon, domain: DomainSize, buckets: u64) -> Result<Self> {
        if !(2..=Self::MAXIMUM_BUCKETS).contains(&buckets) {
            let expected = "an integer from 2 to 2^20";
            return Err(Error::Integer { argument: "buckets", value: buckets, expected });
        }
        let maximum = domain_limit(buckets);
        if domain.get() > maximum {
            return Err(Error::HashedDomain { value: domain.get(), maximum, buckets });
        }
        Self::with_bits(epsilon, domain, buckets, coefficient_bits(buckets))
    }

    /// Makes a randomizer with two buckets, so that the bucket takes one bit.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn binary(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        Self::new(epsilon, domain, 2)
    }

    /// Makes a randomizer with the number of buckets that gives rare codes the least variance. Only
    /// numbers with which the functions distinguish all codes of the domain are considered.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn optimized(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        Self::new(epsilon, domain, optimal_buckets(epsilon, domain))
    }

    fn with_bits(epsilon: Epsilon, domain: DomainSize, buckets: u64, bits: u32) -> Result<Self> {
        let encoding = DirectEncoding::new(epsilon, DomainSize::new(buckets)?)?;
        let modulus = Modulus::below_power(bits);
        let widths = (bits, bucket_bits(buckets));
        Ok(Self { domain, buckets: Buckets::new(modulus, buckets), encoding, widths })
    }

    /// The number of buckets, `g`.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.buckets.count()
    }

    /// The modulus of the functions, `P`.
    #[must_use]
    pub const fn modulus(&self) -> u64 {
        self.buckets.modulus().get()
    }

    /// `(A, W)`: how many words of 2^64 make a node report its own bucket, and how many each other
    /// bucket. The realised guarantee is `ln(A / W)`, exactly.
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        self.encoding.words()
    }

    /// The number of bits of a report.
    #[must_use]
    pub const fn report_bits(&self) -> u32 {
        2 * self.widths.0 + self.widths.1
    }

    /// The realised epsilon, rounded up.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        self.encoding.realized_epsilon()
    }

    /// `(p*, q*)`: the probabilities that a report supports the node's own code, and any other
    /// fixed code. The latter includes the probability that both codes collide.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        mixed(self.encoding.support_probabilities(), self.buckets)
    }

    /// `a`, `b` and the bucket of a report.
    #[inline(always)]
    const fn parts(&self, report: u64) -> (u64, u64, u64) {
        let (coefficient, bucket) = self.widths;
        let mask = (1 << coefficient) - 1;
        let (a, b) = (report >> (coefficient + bucket), (report >> bucket) & mask);
        (a, b, report & ((1 << bucket) - 1))
    }

    /// The residue of code `first`, relative to the first residue of the report's bucket; the step
    /// to the next code; and the length of the bucket.
    #[inline(always)]
    fn relative(&self, report: u64) -> (u64, u64, u64) {
        let (a, b, bucket) = self.parts(report);
        let start = self.buckets.start(bucket);
        let length = self.buckets.start(bucket + 1) - start;
        let modulus = self.buckets.modulus();
        (modulus.once(b + modulus.get() - start), a, length)
    }
}

/// `(p*, q*)` of codes from the probabilities of the own bucket, and of another fixed bucket.
pub(super) fn mixed((own, other): (f64, f64), buckets: Buckets) -> (f64, f64) {
    let (collision, _) = buckets.collisions();
    (own, other + (own - other) * collision)
}

/// The number of bits of a bucket.
const fn bucket_bits(buckets: u64) -> u32 {
    u64::BITS - (buckets - 1).leading_zeros()
}

/// The number of bits of a coefficient.
const fn coefficient_bits(buckets: u64) -> u32 {
    let bits = (u64::BITS - bucket_bits(buckets)) / 2;
    if bits < Modulus::BITS { bits } else { Modulus::BITS }
}

impl Randomizer for LocalHashing {
    type Item = u64;
    type Counter = Counts;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        1
    }

    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u64], rng: &mut R) {
        let modulus = self.buckets.modulus();
        let (coefficient, bucket) = self.widths;
        let mask = (1 << coefficient) - 1;
        // First the functions, in the place of the reports; they are the same for all codes.
        rng.fill_words(reports);
        let mut own = [0; BLOCK];
        for ((report, own), &code) in reports.iter_mut().zip(&mut own).zip(codes) {
            let (mut a, mut b) = (*report & mask, (*report >> coefficient) & mask);
            while a.max(b) >= modulus.get() {
                *report = rng.next_u64();
                (a, b) = (*report & mask, (*report >> coefficient) & mask);
            }
            *report = (a << (coefficient + bucket)) | (b << bucket);
            *own = self.buckets.of(modulus.reduce(a * code + b));
        }
        let mut randomized = [0; BLOCK];
        let randomized = &mut randomized[..codes.len()];
        self.encoding.report(own.iter().copied(), randomized, rng, |bucket| bucket);
        for (report, &bucket) in reports.iter_mut().zip(&*randomized) {
            *report |= bucket;
        }
    }

    fn valid(&self, report: &[u64]) -> bool {
        report.iter().all(|&report| {
            let (a, b, bucket) = self.parts(report);
            a.max(b) < self.modulus() && bucket < self.buckets()
        })
    }

    fn expected(&self) -> String {
        let (coefficient, bucket) = self.widths;
        format!(
            "an integer of {bucket} low bits for one of {} buckets and {coefficient} bits above \
             for each of two residues modulo {}",
            self.buckets(),
            self.modulus()
        )
    }

    fn counter(&self) -> Counts {
        Counts::new(self.domain.len().next_multiple_of(Walk::LANES))
    }

    fn count(&self, counter: &mut Counts, reports: &[u64]) {
        let instructions = Instructions::best();
        let modulus = self.buckets.modulus();
        #[expect(clippy::cast_possible_truncation, reason = "residues are below 2^31")]
        let narrow = |residue: u64| residue as u32;
        let mut walks = [Walk::default(); BLOCK];
        for reports in reports.chunks(BLOCK) {
            let counts = counter.lanes(reports.len());
            for (walk, &report) in walks.iter_mut().zip(reports) {
                let (start, step, length) = self.relative(report);
                *walk = Walk { start: narrow(start), step: narrow(step), length: narrow(length) };
            }
            let walks = &mut walks[..reports.len()];
            for counts in counts.chunks_mut(TILE) {
                instructions.follow(walks, narrow(modulus.get()), counts);
                if counts.len() == TILE {
                    for walk in &mut *walks {
                        let passed = u64::from(walk.step) * TILE as u64;
                        walk.start = narrow(modulus.reduce(u64::from(walk.start) + passed));
                    }
                }
            }
        }
    }

    fn merge(&self, counter: Counts, other: Counts) -> Counts {
        counter.merge(other)
    }

    fn finish(&self, counter: Counts) -> Vec<u64> {
        let mut support = counter.finish();
        support.truncate(self.domain.len());
        support
    }

    fn supported(&self, report: &[u64], visit: &mut dyn FnMut(usize)) {
        let modulus = self.buckets.modulus();
        for &report in report {
            let (mut residue, step, length) = self.relative(report);
            for code in 0..self.domain.len() {
                if residue < length {
                    visit(code);
                }
                residue = modulus.once(residue + step);
            }
        }
    }
}

#[cfg(test)]
mod tests;
