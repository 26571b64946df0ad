//! Skellam noise.

use rand::Rng;

use super::piece::scatter;
use super::poisson::poisson;
use super::{check, in_chunks};
use crate::Result;
use crate::random::{Purpose, Streams, decompose, uniform_below};

/// From this mean on each number is the difference of two Poisson counts of its own.
const SCATTER_BELOW: f64 = 8.0;

/// Exact Skellam noise: the difference of two independent Poisson counts with the same mean. Its
/// variance is twice the mean.
///
/// Noise of mean `a` and noise of mean `b` add up to noise of mean `a + b`. So a user's piece is
/// Skellam noise of the mean divided by the number of users, rounded up
/// ([`divide_up`](super::divide_up)). The cost of a draw is proportional to the mean, about `mean /
/// 4` words.
///
/// ```
/// use turnout_core::random::AesStreams;
/// use turnout_core::noise::{Skellam, divide_up};
///
/// let piece = Skellam::new(divide_up(13.0, 1000)?)?;
/// let streams = AesStreams::from_operating_system()?;
/// assert_eq!(piece.draw_many(30, &streams)?.len(), 30);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Skellam {
    mean: f64,
    /// The mean as `mantissa / 2^shift`.
    mantissa: u64,
    shift: u32,
}

impl Skellam {
    /// The smallest mean.
    pub const SMALLEST_MEAN: f64 = 1e-12;

    /// The largest mean.
    pub const LARGEST_MEAN: f64 = 1e6;

    /// Makes noise in which each of the two counts has that mean.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if the mean is not from
    /// [`Skellam::SMALLEST_MEAN`] to [`Skellam::LARGEST_MEAN`].
    pub fn new(mean: f64) -> Result<Self> {
        check(mean, Self::SMALLEST_MEAN, Self::LARGEST_MEAN, "mean", "from 1e-12 to 1e6")?;
        // The exponent is from -92 to -33.
        let (mantissa, exponent) = decompose(mean);
        let shift = u32::try_from(exponent.unsigned_abs()).unwrap_or(0);
        Ok(Self { mean, mantissa, shift })
    }

    /// The mean of each of the two counts, realised exactly.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Draws one number.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let mut number = [0];
        self.add(&mut number, rng);
        number[0]
    }

    /// Draws many numbers, on the current rayon pool. They depend on `streams` alone.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if they do not fit in memory.
    pub fn draw_many<S: Streams>(&self, length: usize, streams: &S) -> Result<Vec<i64>> {
        in_chunks(length, Purpose::Skellam, streams, |numbers, rng| self.add(numbers, rng))
    }

    fn add<R: Rng + ?Sized>(&self, numbers: &mut [i64], rng: &mut R) {
        let denominator = 1 << self.shift;
        if self.mean >= SCATTER_BELOW {
            for number in numbers {
                let plus = poisson(self.mantissa.into(), denominator, rng);
                let minus = poisson(self.mantissa.into(), denominator, rng);
                *number += plus.cast_signed() - minus.cast_signed();
            }
            return;
        }
        // The points of all counts, each put on one of them uniformly.
        let places = 2 * numbers.len() as u64;
        for _ in 0..poisson(u128::from(self.mantissa) * u128::from(places), denominator, rng) {
            scatter(numbers, 1, uniform_below(places, rng));
        }
    }
}
