//! Direct encoding, also called k-ary randomized response.
//!
//! A node reports its own code with probability `p* = e^eps / (e^eps + k - 1)` and each other code
//! with `q* = 1 / (e^eps + k - 1)`: Kairouz, Bonawitz, Ramage, "Discrete distribution estimation
//! under local privacy" (2016); the notation is that of Wang, Blocki, Li, Jha, "Locally
//! differentially private protocols for frequency estimation" (2017).
//!
//! The realised probabilities are whole numbers of 64-bit words: `A` words for the own code and
//! `W` for each other, with `A <= e^eps W` proven by integer bounds of the exponential, and the
//! `2^64 - A - (k - 1) W` words left over (a fraction below `(e^eps + k) / 2^64`) drawn again. So
//! every report has probability `A / (A + (k - 1) W)` or `W / (A + (k - 1) W)` exactly, whatever
//! the code, and the likelihood ratio is `A / W <= e^eps`.

mod collect;
mod randomize;
mod simulate;
mod tally;

use crate::parameters::{DomainSize, Epsilon};
use crate::random::{ExponentialBounds, Words};
use crate::{Error, Result};

/// Reports made at once.
const BLOCK: usize = 256;

/// The direct-encoding randomizer.
///
/// ```
/// use turnout::frequency::DirectEncoding;
/// use turnout::parameters::{DomainSize, Epsilon};
///
/// let oracle = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(100)?)?;
/// let (own, other) = oracle.words();
/// assert!(own as f64 / other as f64 <= 1.0_f64.exp());
/// let (p, q) = oracle.support_probabilities();
/// assert!((p + 99.0 * q - 1.0).abs() < 1e-12);
/// # Ok::<(), turnout::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DirectEncoding {
    epsilon: Epsilon,
    domain: DomainSize,
    /// Words that keep the code: `A - W`. The next `k W` words replace it uniformly.
    keep: u64,
    /// Words for each replacement: `W`.
    cell: u64,
    /// `floor((2^64 - 1) / W)`, to divide by `W` with a multiplication.
    reciprocal: u64,
}

impl DirectEncoding {
    /// The randomizer for an epsilon and a number of codes.
    ///
    /// # Errors
    ///
    /// [`Error::EpsilonUnrealizable`] if epsilon is so small that 64-bit words cannot tell the own
    /// code from another.
    pub fn new(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        let bounds = ExponentialBounds::new(epsilon.get());
        // e^44 + 2^32 < 2^64, so a cell has at least one word; and below 2^63, as k >= 2.
        let cell = bounds.floor_quotient(1 << 64, domain.get() - 1);
        let cell = u64::try_from(cell).unwrap_or(u64::MAX);
        let keep = bounds.floor_times(cell).saturating_sub(u128::from(cell));
        match u64::try_from(keep) {
            Ok(keep) if keep > 0 && cell > 0 => {
                Ok(Self { epsilon, domain, keep, cell, reciprocal: u64::MAX / cell })
            }
            _ => Err(Error::EpsilonUnrealizable {
                epsilon: epsilon.get(),
                domain_size: domain.get(),
            }),
        }
    }

    /// The epsilon that was asked for.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// The number of codes.
    #[must_use]
    pub const fn domain_size(&self) -> DomainSize {
        self.domain
    }

    /// `(A, W)`: how many words make a node report its own code, and each other code. The realised
    /// guarantee is `ln(A / W)`, exactly.
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        // keep + k cell <= 2^64 and k >= 2, so the sum fits.
        (self.keep + self.cell, self.cell)
    }

    /// The realised epsilon `ln(A / W)`, rounded up to a floating-point number: never below the
    /// truth and never above what was asked for.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let (own, other) = self.words();
        let gain = (own - other) as f64 / other as f64;
        let mut candidate = libm::log1p(gain) * (1.0 - 1e-15);
        while candidate < self.epsilon.get() {
            if ExponentialBounds::new(candidate).at_least(own.into(), other.into()) {
                return candidate;
            }
            candidate = candidate.next_up();
        }
        self.epsilon.get()
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
    fn keep_probability(&self) -> f64 {
        self.keep as f64 / self.accepted_words() as f64
    }

    fn accepted_words(&self) -> u128 {
        u128::from(self.keep) + u128::from(self.domain.get()) * u128::from(self.cell)
    }

    /// The reports of nodes that hold the given codes, in order, a block at a time.
    ///
    /// One word each; the nodes of a block whose word must be drawn again take theirs after the
    /// block. No branch depends on a code.
    #[inline(always)]
    fn reports<R: Words>(
        &self,
        mut codes: impl ExactSizeIterator<Item = u64> + Clone,
        rng: &mut R,
        mut emit: impl FnMut(&[u64]),
    ) {
        let mut buffer = [0_u64; BLOCK];
        while codes.len() > 0 {
            let block = &mut buffer[..codes.len().min(BLOCK)];
            let held = codes.clone();
            rng.fill_words(block);
            let mut most = 0;
            for (word, code) in block.iter_mut().zip(codes.by_ref()) {
                *word = self.decide(code, *word);
                most = most.max(*word);
            }
            if most >= self.domain.get() {
                self.draw_again(held, block, rng);
            }
            emit(block);
        }
    }

    #[cold]
    #[inline(never)]
    fn draw_again<R: Words>(
        &self,
        codes: impl Iterator<Item = u64>,
        reports: &mut [u64],
        rng: &mut R,
    ) {
        for (report, code) in reports.iter_mut().zip(codes) {
            while *report >= self.domain.get() {
                *report = self.decide(code, rng.next_u64());
            }
        }
    }

    /// The report that `word` makes of `code`; an index outside the domain means: draw again.
    #[inline(always)]
    fn decide(&self, code: u64, word: u64) -> u64 {
        let rest = word.wrapping_sub(self.keep);
        // At most one below the quotient: rest / W - rest * reciprocal / 2^64 <= rest / 2^64 < 1.
        let low = ((u128::from(rest) * u128::from(self.reciprocal)) >> 64) as u64;
        let over = u64::from(rest.wrapping_sub(low.wrapping_mul(self.cell)) >= self.cell);
        let replace = u64::from(word >= self.keep).wrapping_neg();
        ((low + over) & replace) | (code & !replace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_makes_the_report_of_its_cell() -> Result<()> {
        // Against plain division, at and around every kind of boundary.
        for (epsilon, size) in
            [(0.1, 2), (1.0, 3), (1.0, 100), (5.0, 1 << 20), (40.0, 7), (44.0, 2)]
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
            assert!(keep + u128::from(size) * cell <= 1 << 64);
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
