//! The likelihood of frequencies, from the answers that each report supports.
//!
//! Under a pure oracle with likelihood ratio `rho`, consider a report `y` of a node that holds `x`.
//! It has probability `c(y) rho` if `y` supports `x`, and `c(y)` if not. With frequencies `f` its
//! likelihood is `c(y) (1 + (rho - 1) m)`, where `m` is the sum of `f` over the answers that it
//! supports. Support is given as bits, 64 in a word; sums over bits are looked up byte by byte.

use crate::parallel::{self, chunk};
use crate::{Error, Result};

/// Rows of one piece at least: a piece has sums of its own, whichever thread takes it, so that the
/// rounding of the total does not depend on the number of threads.
const PIECE: usize = 4096;

/// At most so many pieces, each of which folds its tables once.
const PIECES: usize = 16;

/// Rows that share a block of tables while it is in the cache.
const ROWS: usize = 512;

/// Words of a block of tables: 128 KiB.
const WORDS: usize = 8;

/// A sum for each value of a byte.
type Table = [f64; 256];

/// Reports, given as the answers that they support.
///
/// Each row has `ceil(domain / 64)` words; answer `i` is bit `i % 64` of word `i / 64`. Bits beyond
/// the domain are ignored.
#[derive(Debug, Clone, Copy)]
pub struct SupportRows<'a> {
    bits: &'a [u64],
    words: usize,
    domain: usize,
}

/// The log-likelihood at some frequencies, and its growth with each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct LikelihoodStep {
    /// For each answer `x`, the mean over the reports of `L(x) / L(f)`. `L(x)` is a report's
    /// likelihood if all nodes held `x`, and `L(f)` is its likelihood at the frequencies. An
    /// iterative Bayesian update multiplies the frequencies by it. At the maximum it is at most
    /// one.
    pub gradient: Vec<f64>,
    /// The mean over the reports of `ln(1 + (rho - 1) m)`.
    pub log_likelihood: f64,
}

impl<'a> SupportRows<'a> {
    /// Makes rows for a domain of `domain` answers.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if the words are not a whole number of rows; [`Error::Integer`] if
    /// the domain is empty.
    pub fn new(bits: &'a [u64], domain: usize) -> Result<Self> {
        let words = domain.div_ceil(64);
        if words == 0 {
            let expected = "at least 1";
            return Err(Error::Integer { argument: "the number of codes", value: 0, expected });
        }
        if bits.len().is_multiple_of(words) {
            return Ok(Self { bits, words, domain });
        }
        Err(Error::LengthMismatch {
            left: "support",
            left_length: bits.len(),
            right: "whole rows",
            right_length: bits.len() / words * words,
        })
    }

    /// The number of reports.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bits.len() / self.words
    }

    /// Tells whether there are no reports.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Returns, for each report, the sum of the coefficients of the answers that it supports.
    ///
    /// ```
    /// use turnout_core::frequency::SupportRows;
    /// let rows = SupportRows::new(&[0b011, 0b100], 3)?;
    /// assert_eq!(rows.sums(&[0.5, 0.25, 0.125])?, [0.75, 0.125]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there is not one coefficient for each answer.
    pub fn sums(&self, coefficients: &[f64]) -> Result<Vec<f64>> {
        self.check("coefficients", coefficients.len())?;
        let tables = tables(coefficients, self.words);
        let mut sums = vec![0.0; self.len()];
        parallel::for_each_chunk(&mut sums, ROWS, |index, sums| {
            let rows = &self.bits[chunk(index, ROWS * self.words, self.bits.len())];
            add_sums(rows, self.words, &tables, sums);
        });
        Ok(sums)
    }

    fn check(&self, argument: &'static str, length: usize) -> Result<()> {
        if length == self.domain {
            return Ok(());
        }
        Err(Error::LengthMismatch {
            left: argument,
            left_length: length,
            right: "answers",
            right_length: self.domain,
        })
    }

    /// Returns the log-likelihood of weighted reports and its gradient, computed on the current
    /// rayon pool.
    ///
    /// The frequencies must be non-negative and add up to one; the weights must be positive.
    ///
    /// ```
    /// use turnout_core::frequency::SupportRows;
    /// // Three reports of the first of two answers and one of the other, each three times as likely
    /// // from its own answer: the log-likelihood is largest at (1, 0).
    /// let rows = SupportRows::new(&[0b01, 0b10], 2)?;
    /// let step = rows.step(&[1.0, 0.0], &[3.0, 1.0], 3.0)?;
    /// assert!((step.gradient[0] - 1.0).abs() < 1e-15);
    /// assert!((step.gradient[1] - 1.0).abs() < 1e-15);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there is not one frequency for each answer, or not one weight
    /// for each report; [`Error::Accounting`] if the ratio is not a finite number of at least one.
    pub fn step(&self, frequencies: &[f64], weights: &[f64], ratio: f64) -> Result<LikelihoodStep> {
        self.check("frequencies", frequencies.len())?;
        if weights.len() != self.len() {
            return Err(Error::LengthMismatch {
                left: "support",
                left_length: self.len(),
                right: "weights",
                right_length: weights.len(),
            });
        }
        if !(ratio >= 1.0 && ratio.is_finite()) {
            return Err(Error::Accounting {
                argument: "ratio",
                expected: "a finite number of at least 1",
                value: ratio,
            });
        }
        let tables = tables(frequencies, self.words);
        let piece = self.len().div_ceil(PIECES).max(PIECE);
        let pieces = parallel::map(weights.len().div_ceil(piece), |index| {
            let rows = &self.bits[chunk(index, piece * self.words, self.bits.len())];
            let weights = &weights[chunk(index, piece, weights.len())];
            Sums::of(rows, self.words, weights, &tables, ratio - 1.0)
        });
        let mut total = Sums { supported: vec![0.0; self.words * 64], ..Sums::default() };
        for sums in &pieces {
            total.add(sums);
        }
        let weight: f64 = total.weight;
        let excess = ratio - 1.0;
        let gradient = total.supported[..frequencies.len()]
            .iter()
            .map(|supported| (total.all + excess * supported) / weight)
            .collect();
        Ok(LikelihoodStep { gradient, log_likelihood: total.logarithm / weight })
    }
}

/// Sums over reports, with `u = weight / (1 + (rho - 1) m)`.
#[derive(Default)]
struct Sums {
    /// `u` over the reports that support each answer.
    supported: Vec<f64>,
    /// `u` over all.
    all: f64,
    /// The weights.
    weight: f64,
    /// `weight ln(1 + (rho - 1) m)`.
    logarithm: f64,
}

impl Sums {
    fn of(rows: &[u64], words: usize, weights: &[f64], tables: &[Table], excess: f64) -> Self {
        let mut counts = vec![[0.0; 256]; words * 8];
        let mut sums = Self::default();
        let mut values = Vec::with_capacity(ROWS);
        for (rows, weights) in rows.chunks(ROWS * words).zip(weights.chunks(ROWS)) {
            values.clear();
            values.resize(weights.len(), 0.0);
            add_sums(rows, words, tables, &mut values);
            for (value, &weight) in values.iter_mut().zip(weights) {
                let likelihood = 1.0 + excess * *value;
                sums.logarithm += weight * likelihood.ln();
                sums.weight += weight;
                *value = weight / likelihood;
                sums.all += *value;
            }
            spread(rows, words, &values, &mut counts);
        }
        sums.supported = counts.iter_mut().flat_map(bits).collect();
        sums
    }

    fn add(&mut self, other: &Self) {
        for (sum, term) in self.supported.iter_mut().zip(&other.supported) {
            *sum += term;
        }
        self.all += other.all;
        self.weight += other.weight;
        self.logarithm += other.logarithm;
    }
}

/// For each byte of a row, the sum of the coefficients of the bits that are set in each value.
fn tables(coefficients: &[f64], words: usize) -> Vec<Table> {
    let mut tables = vec![[0.0; 256]; words * 8];
    for (table, coefficients) in tables.iter_mut().zip(coefficients.chunks(8)) {
        for (bit, &coefficient) in coefficients.iter().enumerate() {
            let (known, wanted) = table.split_at_mut(1 << bit);
            for (sum, rest) in wanted.iter_mut().zip(known) {
                *sum = coefficient + *rest;
            }
        }
        let defined = 1 << coefficients.len();
        for value in defined..256 {
            table[value] = table[value % defined];
        }
    }
    tables
}

/// Adds to each row's value what the tables say of its bytes.
fn add_sums(rows: &[u64], words: usize, tables: &[Table], values: &mut [f64]) {
    for (block, tables) in tables.chunks(WORDS * 8).enumerate() {
        for (row, value) in rows.chunks_exact(words).zip(values.iter_mut()) {
            let row = &row[block * WORDS..];
            let mut sums = [0.0; 8];
            for (word, tables) in row.iter().zip(tables.chunks_exact(8)) {
                for ((sum, table), byte) in sums.iter_mut().zip(tables).zip(word.to_le_bytes()) {
                    *sum += table[usize::from(byte)];
                }
            }
            *value += sums.iter().sum::<f64>();
        }
    }
}

/// Adds each row's value to the counts of its bytes.
fn spread(rows: &[u64], words: usize, values: &[f64], counts: &mut [Table]) {
    for (block, counts) in counts.chunks_mut(WORDS * 8).enumerate() {
        for (row, value) in rows.chunks_exact(words).zip(values) {
            let row = &row[block * WORDS..];
            for (word, counts) in row.iter().zip(counts.chunks_exact_mut(8)) {
                for (count, byte) in counts.iter_mut().zip(word.to_le_bytes()) {
                    count[usize::from(byte)] += value;
                }
            }
        }
    }
}

/// For each bit, the sum of the counts of the values in which it is set. The counts are used up.
fn bits(counts: &mut Table) -> [f64; 8] {
    let mut sums = [0.0; 8];
    for bit in (0..8).rev() {
        let (without, with) = counts.split_at_mut(1 << bit);
        for (sum, &count) in without.iter_mut().zip(with.iter()) {
            sums[bit] += count;
            *sum += count;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    use crate::random::{AesStreams, Purpose, Streams};

    fn set(rows: &[u64], words: usize, row: usize, code: usize) -> bool {
        rows[row * words + code / 64] >> (code % 64) & 1 == 1
    }

    /// Random rows, weights and frequencies.
    fn example(reports: usize, domain: usize) -> (Vec<u64>, Vec<f64>, Vec<f64>) {
        let mut stream = AesStreams::from_seed(7).stream(Purpose::Proposal, domain as u64);
        let mut unit = || (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let raw: Vec<f64> = (0..domain).map(|_| unit()).collect();
        let total: f64 = raw.iter().sum();
        let weights = (0..reports).map(|_| 0.5 + unit()).collect();
        let rows = (0..reports * domain.div_ceil(64)).map(|_| stream.next_u64()).collect();
        (rows, weights, raw.iter().map(|value| value / total).collect())
    }

    #[test]
    fn a_step_is_the_plain_double_sum() -> Result<()> {
        for (reports, domain) in [(1, 2), (700, 3), (30, 8), (30, 64), (9001, 65), (520, 1000)] {
            let (rows, weights, frequencies) = example(reports, domain);
            let words = domain.div_ceil(64);
            let support = SupportRows::new(&rows, domain)?;
            let ratio = 2.5;
            let step = support.step(&frequencies, &weights, ratio)?;
            let mut gradient = vec![0.0; domain];
            let (mut logarithm, mut total) = (0.0, 0.0);
            for (row, weight) in weights.iter().enumerate() {
                let likelihood = |code| if set(&rows, words, row, code) { ratio } else { 1.0 };
                let mixed: f64 = (0..domain).map(|code| frequencies[code] * likelihood(code)).sum();
                logarithm += weight * mixed.ln();
                total += weight;
                for (code, sum) in gradient.iter_mut().enumerate() {
                    *sum += weight * likelihood(code) / mixed;
                }
            }
            assert!((step.log_likelihood - logarithm / total).abs() < 1e-12);
            for (found, sum) in step.gradient.iter().zip(&gradient) {
                assert!((found - sum / total).abs() < 1e-12);
            }
        }
        Ok(())
    }

    #[test]
    fn sums_are_those_of_the_bits_and_ignore_what_is_beyond_the_domain() -> Result<()> {
        let (rows, _, coefficients) = example(1500, 100);
        let sums = SupportRows::new(&rows, 100)?.sums(&coefficients)?;
        for (row, sum) in sums.iter().enumerate() {
            let chosen = (0..100).filter(|&code| set(&rows, 2, row, code));
            let expected: f64 = chosen.map(|code| coefficients[code]).sum();
            assert!((sum - expected).abs() < 1e-13);
        }
        Ok(())
    }

    #[test]
    fn a_step_is_the_same_on_any_number_of_threads() -> Result<()> {
        let (rows, weights, frequencies) = example(100_000, 70);
        let support = SupportRows::new(&rows, 70)?;
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
            pool.map(|pool| pool.install(|| support.step(&frequencies, &weights, 3.0))).transpose()
        };
        let alone = run(1)?;
        assert!(alone.is_some());
        assert_eq!(alone, run(3)?);
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_refused() -> Result<()> {
        assert!(matches!(SupportRows::new(&[1, 2, 3], 65), Err(Error::LengthMismatch { .. })));
        assert!(matches!(SupportRows::new(&[], 0), Err(Error::Integer { .. })));
        let rows = SupportRows::new(&[1, 2], 2)?;
        assert!(matches!(rows.sums(&[0.5; 3]), Err(Error::LengthMismatch { .. })));
        assert!(matches!(rows.step(&[0.5; 65], &[1.0; 2], 2.0), Err(Error::LengthMismatch { .. })));
        assert!(matches!(rows.step(&[0.5, 0.5], &[1.0], 2.0), Err(Error::LengthMismatch { .. })));
        for ratio in [0.5, f64::NAN, f64::INFINITY] {
            let refused = rows.step(&[0.5, 0.5], &[1.0, 1.0], ratio);
            assert!(matches!(refused, Err(Error::Accounting { .. })));
        }
        Ok(())
    }
}
