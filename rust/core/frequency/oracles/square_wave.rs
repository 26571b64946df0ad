//! The square wave mechanism on an integer grid: a report is near the value, to estimate the
//! distribution of values.
//!
//! In Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric, "Estimating numerical distributions under local
//! differential privacy" (SIGMOD 2020), a number in `[0, 1]` is reported as a real number of `[-b,
//! 1 + b]`. The density within `b` of the number is `e^eps` times the density elsewhere. Here the
//! number is one of `N` bins, and a report is one of `G = N + W - 1` cells. Each of the `W` cells
//! from the bin on has `A` words of 64 bits, each other cell has `B`, and `A <= e^eps B` is proven.
//! The words left over are drawn again, so every report has probability `A / T` or `B / T` exactly,
//! with `T = W A + (N - 1) B` whatever the bin. `W` is next to `2 b N`, where `b` is the published
//! width, which makes a report most informative. With `W = 1` this is direct encoding.

use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::divisor::Divisor;
use crate::frequency::shared::histogram::position;
use crate::frequency::{Histogram, Randomizer};
use crate::parameters::{DomainSize, Epsilon};
use crate::random::{ExponentialBounds, Words, logarithm_above};
use crate::{Error, Result};

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// The randomizer of the square wave mechanism. Its codes are bins, and its counts are those of
/// cells.
///
/// ```
/// use turnout_core::frequency::{FrequencyOracle, Selection, SquareWave};
/// use turnout_core::parameters::{DomainSize, Epsilon};
/// use turnout_core::random::AesStreams;
///
/// let wave = SquareWave::new(Epsilon::new(1.0)?, DomainSize::new(64)?)?;
/// assert!(wave.realized_epsilon() <= 1.0);
/// assert_eq!((wave.window(), wave.cells()), (33, 96));
/// let tally = wave.collect(&[7_u8; 10_000], &Selection::everyone(), &AesStreams::from_seed(1))?;
/// assert_eq!(tally.support.len(), 96);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SquareWave {
    epsilon: Epsilon,
    bins: DomainSize,
    window: u64,
    /// `(A, B)`.
    words: (u64, u64),
    /// Words that give a cell of the window, `W (A - B)`. The next `G B` give any cell.
    near: u64,
    nearby: Divisor,
    anywhere: Divisor,
    /// The last word that is accepted: those above are drawn again.
    last: u64,
}

impl SquareWave {
    /// The largest number of bins: the time of estimation grows with its third power.
    pub const MAXIMUM_BINS: u64 = 1024;

    /// Makes a randomizer for an epsilon and a number of bins.
    ///
    /// # Errors
    ///
    /// [`Error::DomainSize`] if there are more bins than [`Self::MAXIMUM_BINS`];
    /// [`Error::EpsilonUnrealizable`] if epsilon is below about 2^-32.
    pub fn new(epsilon: Epsilon, bins: DomainSize) -> Result<Self> {
        if bins.get() > Self::MAXIMUM_BINS {
            return Err(Error::DomainSize { value: bins.get(), maximum: Self::MAXIMUM_BINS });
        }
        let window = window(epsilon.get(), bins.get());
        let others = bins.get() - 1;
        let refused =
            Error::EpsilonUnrealizable { epsilon: epsilon.get(), domain_size: bins.get() };
        let weight = window as f64 * libm::exp(epsilon.get()) + others as f64;
        // A hair below the quotient: the sum of all words is checked.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^64")]
        let few = (TWO_TO_64 / weight * (1.0 - 1e-12)) as u64;
        let many = ExponentialBounds::new(epsilon.get()).floor_times(few);
        let all = u128::from(window) * many + u128::from(others) * u128::from(few);
        let (Ok(many), true) = (u64::try_from(many), all <= 1 << 64) else { return Err(refused) };
        let extra = many.saturating_sub(few);
        if extra <= few >> 32 {
            return Err(refused);
        }
        Ok(Self {
            epsilon,
            bins,
            window,
            words: (many, few),
            near: window * extra,
            nearby: Divisor::new(extra),
            anywhere: Divisor::new(few),
            #[expect(clippy::cast_possible_truncation, reason = "at most 2^64 - 1")]
            last: (all - 1) as u64,
        })
    }

    /// The epsilon that was requested.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// How many cells are near a bin, `W`.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// How many cells there are, `G`.
    #[must_use]
    pub const fn cells(&self) -> u64 {
        self.bins.get() + self.window - 1
    }

    /// `(A, B)`: how many words give each cell near the bin, and how many each other cell. The
    /// realised guarantee is `ln(A / B)`, exactly.
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        self.words
    }

    /// The realised epsilon `ln(A / B)`, rounded up. It is never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        logarithm_above(self.words.0.into(), self.words.1.into(), self.epsilon.get())
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

    /// The cell that `word`, which is not above the last one accepted, makes of a bin.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a cell is below 2^11")]
    fn decide(&self, bin: u64, word: u64) -> u16 {
        let near = bin + self.nearby.quotient(word);
        let any = self.anywhere.quotient(word.wrapping_sub(self.near));
        let mask = u64::from(word >= self.near).wrapping_neg();
        ((any & mask) | (near & !mask)) as u16
    }
}

/// How many of the cells of `bins` bins are near a value: `2 b` of them, at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the bins")]
fn window(epsilon: f64, bins: u64) -> u64 {
    let half = if epsilon < 1e-2 {
        // (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps)), of which all leading terms cancel.
        0.5 - epsilon / 3.0
    } else {
        let power = libm::exp(epsilon);
        (epsilon * power - libm::expm1(epsilon)) / (2.0 * power * (libm::expm1(epsilon) - epsilon))
    };
    (libm::round(2.0 * half * bins as f64) as u64).clamp(1, bins)
}

impl Randomizer for SquareWave {
    type Item = u16;
    type Counter = Histogram;

    fn domain(&self) -> DomainSize {
        self.bins
    }

    fn counts(&self) -> usize {
        position(self.cells())
    }

    fn width(&self) -> usize {
        1
    }

    /// One word for each node; those that must be drawn again are, after all have theirs. No branch
    /// depends on a bin.
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [u16], rng: &mut R) {
        let mut buffer = [0; BLOCK];
        let words = &mut buffer[..reports.len()];
        rng.fill_words(words);
        if words.iter().fold(0, |most, &word| most.max(word)) > self.last {
            self.draw_again(words, rng);
        }
        for ((slot, &word), &code) in reports.iter_mut().zip(&*words).zip(codes) {
            *slot = self.decide(code, word);
        }
    }

    fn valid(&self, report: &[u16]) -> bool {
        report.iter().all(|&cell| u64::from(cell) < self.cells())
    }

    fn expected(&self) -> String {
        format!("a cell from 0 to {}", self.cells() - 1)
    }

    fn counter(&self) -> Histogram {
        Histogram::new(self.counts())
    }

    fn count(&self, counter: &mut Histogram, reports: &[u16]) {
        counter.add(reports);
    }

    fn merge(&self, counter: Histogram, other: Histogram) -> Histogram {
        counter.merge(&other)
    }

    fn finish(&self, counter: Histogram) -> Vec<u64> {
        counter.finish()
    }

    /// The bins whose window the cell is in.
    fn supported(&self, report: &[u16], visit: &mut dyn FnMut(usize)) {
        for &cell in report {
            let first = (u64::from(cell) + 1).saturating_sub(self.window);
            (first..self.bins.get().min(u64::from(cell) + 1)).for_each(|bin| visit(position(bin)));
        }
    }

    /// The cell itself: that is what is counted.
    fn scores(&self, report: &[u16], visit: &mut dyn FnMut(usize, i64)) {
        for &cell in report {
            visit(cell.into(), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::One;

    use super::*;
    use crate::frequency::FrequencyOracle;

    fn wave(epsilon: f64, bins: u64) -> Result<SquareWave> {
        SquareWave::new(Epsilon::new(epsilon)?, DomainSize::new(bins)?)
    }

    const GRID: [(f64, u64); 9] = [
        (1e-6, 7),
        (0.01, 64),
        (0.5, 2),
        (1.0, 64),
        (1.0, 1024),
        (3.0, 100),
        (8.0, 300),
        (20.0, 64),
        (42.0, 1024),
    ];

    #[test]
    fn each_word_makes_the_cell_that_it_counts_for() -> Result<()> {
        // Against plain division, at and around every kind of boundary.
        for (epsilon, bins) in GRID {
            let made = wave(epsilon, bins)?;
            let (many, few) = (u128::from(made.words.0), u128::from(made.words.1));
            let (extra, window) = (many - few, u128::from(made.window));
            let near = window * extra;
            let all = near + u128::from(made.cells()) * few;
            assert_eq!(all, u128::from(made.last) + 1);
            assert!(all as f64 > TWO_TO_64 * (1.0 - 1e-9 - 2.0 / few as f64));
            let edges = (0..=window).map(|index| index * extra);
            for edge in edges.chain((0..=u128::from(made.cells())).map(|cell| near + cell * few)) {
                for word in [edge.saturating_sub(1), edge, edge + 1] {
                    let Ok(word64) = u64::try_from(word.min(all - 1)) else { continue };
                    let word = u128::from(word64);
                    for bin in [0, bins - 1] {
                        let expected = if word < near {
                            u128::from(bin) + word / extra
                        } else {
                            (word - near) / few
                        };
                        assert_eq!(u128::from(made.decide(bin, word64)), expected);
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn the_realised_ratio_is_at_most_e_to_the_epsilon_and_close_to_it() -> Result<()> {
        for (epsilon, bins) in GRID {
            let made = wave(epsilon, bins)?;
            let bounds = ExponentialBounds::new(epsilon);
            let (many, few) = made.words();
            assert!(bounds.at_least(many.into(), few.into()), "{epsilon}, {bins}");
            let loss = BigRational::new(1.into(), BigInt::from(few));
            let next = BigRational::new(many.into(), few.into()) + loss;
            let (up, down) = (next.numer().clone(), next.denom().clone());
            assert!(next > BigRational::one());
            assert!(!bounds.at_least_ratio(up.magnitude(), down.magnitude()));
            let realized = made.realized_epsilon();
            assert!(realized <= epsilon);
            assert!(ExponentialBounds::new(realized).at_least(many.into(), few.into()));
        }
        Ok(())
    }

    #[test]
    fn the_window_is_the_published_one() {
        // b at epsilon 1: 1 / (2 e (e - 2)).
        let half = 1.0 / (2.0 * core::f64::consts::E * (core::f64::consts::E - 2.0));
        assert!((window(1.0, 1024) as f64 - 2048.0 * half).abs() <= 0.5);
        assert_eq!((window(1e-9, 100), window(42.0, 1024), window(0.1, 2)), (100, 1, 2));
        // Both ways to compute it agree where they meet.
        assert_eq!(window(0.01 - 1e-12, 1024), window(0.01 + 1e-12, 1024));
        assert!(wave(1.0, 1025).is_err() && wave(1e-15, 8).is_err());
    }

    #[test]
    fn a_cell_supports_the_bins_whose_window_it_is_in() -> Result<()> {
        let made = wave(1.0, 9)?;
        for cell in 0..made.cells() {
            #[expect(clippy::cast_possible_truncation)]
            let bits = made.supports(&[cell as u16])?[0];
            for bin in 0..9 {
                let inside = bin <= cell && cell < bin + made.window();
                assert_eq!(bits >> bin & 1 == 1, inside);
            }
        }
        #[expect(clippy::cast_possible_truncation)]
        let outside = made.cells() as u16;
        assert!(made.check(&[0, outside]).is_err());
        Ok(())
    }
}
