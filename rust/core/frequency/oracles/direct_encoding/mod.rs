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

use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::divisor::Divisor;
use crate::parameters::{DomainSize, Epsilon};
use crate::random::{ExponentialBounds, Words, logarithm_above};
use crate::{Error, Result};

/// The direct-encoding randomizer.
///
/// ```
/// use turnout::frequency::DirectEncoding;
/// use turnout::parameters::{DomainSize, Epsilon};
///
/// let oracle = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(100)?)?;
/// assert!(oracle.realized_epsilon() <= 1.0);
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
    divisor: Divisor,
    /// The last word that is accepted: those above are drawn again.
    last: u64,
}

impl DirectEncoding {
    /// The randomizer for an epsilon and a number of codes.
    ///
    /// # Errors
    ///
    /// [`Error::EpsilonUnrealizable`] if epsilon is below 2^-32 or so: then nothing can be learned
    /// from reports, and `p* - q*` would be lost in rounding.
    pub fn new(epsilon: Epsilon, domain: DomainSize) -> Result<Self> {
        let bounds = ExponentialBounds::new(epsilon.get());
        // At least 10 words, since e^42 + 2^32 < 2^64 / 10; and below 2^63, since k >= 2.
        let cell = bounds.floor_quotient(1 << 64, domain.get() - 1);
        let cell = u64::try_from(cell).unwrap_or(u64::MAX);
        let keep = bounds.floor_times(cell).saturating_sub(u128::from(cell));
        match u64::try_from(keep) {
            // keep + k cell <= 2^64
            Ok(keep) if keep > cell >> 32 => {
                let last = (keep - 1).wrapping_add(domain.get().wrapping_mul(cell));
                Ok(Self { epsilon, domain, keep, cell, divisor: Divisor::new(cell), last })
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
        logarithm_above(own.into(), other.into(), self.epsilon.get())
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
    pub(in crate::frequency) fn keep_probability(&self) -> f64 {
        self.keep as f64 / self.accepted_words() as f64
    }

    fn accepted_words(&self) -> u128 {
        u128::from(self.keep) + u128::from(self.domain.get()) * u128::from(self.cell)
    }

    /// The reports of at most [`BLOCK`] nodes that hold `codes`, one for each slot of `reports`.
    ///
    /// One word for each node; those that must be drawn again are, after all have theirs. No branch
    /// depends on a code.
    #[inline(always)]
    pub(in crate::frequency) fn report<T, R: Words>(
        &self,
        codes: impl Iterator<Item = u64> + Clone,
        reports: &mut [T],
        rng: &mut R,
        from_index: impl Fn(u64) -> T,
    ) {
        let mut buffer = [0; BLOCK];
        let words = &mut buffer[..reports.len()];
        rng.fill_words(words);
        let mut most = 0;
        for ((slot, &word), code) in reports.iter_mut().zip(&*words).zip(codes.clone()) {
            most = most.max(word);
            *slot = from_index(self.decide(code, word));
        }
        if most > self.last {
            self.draw_again(words, rng);
            for ((slot, &word), code) in reports.iter_mut().zip(&*words).zip(codes) {
                *slot = from_index(self.decide(code, word));
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn draw_again<R: Words>(&self, words: &mut [u64], rng: &mut R) {
        for word in words {
            while *word > self.last {
                *word = rng.next_u64();
            }
        }
    }

    /// The report that `word`, which is not above the last one accepted, makes of `code`.
    #[inline(always)]
    fn decide(&self, code: u64, word: u64) -> u64 {
        let replacement = self.divisor.quotient(word.wrapping_sub(self.keep));
        let replace = u64::from(word >= self.keep).wrapping_neg();
        (replacement & replace) | (code & !replace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_makes_the_report_of_its_cell() -> Result<()> {
        // Against plain division, at and around every kind of boundary.
        for (epsilon, size) in
            [(0.1, 2), (1.0, 3), (1.0, 100), (5.0, 1 << 20), (40.0, 7), (42.0, 2)]
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
            assert_eq!(u128::from(oracle.last) + 1, keep + u128::from(size) * cell);
        }
        Ok(())
    }

    #[test]
    fn a_cell_next_to_a_power_of_two_is_as_quick_as_any() -> Result<()> {
        // e^eps + k - 1 close to 2^j: epsilon = ln 3 and k = 2^j - 2.
        for power in 2..20 {
            let size = DomainSize::new((1 << power) - 2)?;
            let oracle = DirectEncoding::new(Epsilon::new(1.098_612_288_668_109_8)?, size)?;
            assert!(
                (oracle.support_probabilities().1.recip().log2() - f64::from(power)).abs() < 1e-9
            );
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
