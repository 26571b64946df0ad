//! Pieces of discrete Laplace noise.

use rand::Rng;

use super::poisson::poisson;
use super::table::ONE;
use super::trial::Exponent;
use super::{DiscreteLaplace, check_parts, in_chunks};
use crate::Result;
use crate::random::{Purpose, Streams, uniform_below};

/// One of `parts` independent pieces whose sum is exactly [`DiscreteLaplace`] noise. A piece is the
/// difference of two negative binomial numbers of shape `1 / parts` and ratio `q = e^-rate`. The
/// realised rate is that of [`DiscreteLaplace`] with the same scale.
///
/// Such a difference is a sum of jumps, because it is infinitely divisible. For each size `k >= 1`
/// and each sign there is a Poisson number of jumps, of mean `q^k / (k parts)`. They are thinned
/// from jumps with a rational intensity. Let `B` be the smallest power of two with `rate B >= 1`.
/// For each power of two `c < B`, jumps of mean `1 / parts` have a size uniform in `c..2c`, and are
/// kept with probability `c / k * e^(-rate k)`. Further jumps of mean `1 / parts` have a size
/// uniform in `i B..(i + 1) B` with probability `2^-i` for `i >= 1`, and are kept with probability
/// `B / k * (2/e)^i * e^(-(rate k - i))`. All of these are products of probabilities that are
/// rational, or `e^-g` for a rational `g`, or `2/e = P[Poisson(1) <= 1]`.
///
/// So a piece costs about `2 (log2(scale) + 2) / parts` proposals, which is next to nothing with
/// many parts. Compare the ratio test of a geometric number, which accepts with probability `(1 -
/// q)^(1 - 1/parts)`.
///
/// ```
/// use turnout_core::random::AesStreams;
/// use turnout_core::noise::DiscreteLaplacePiece;
///
/// let piece = DiscreteLaplacePiece::new(2.0, 1000)?;
/// let streams = AesStreams::from_operating_system()?;
/// let noise = piece.draw_many(10_000, &streams)?;
/// assert!(noise.iter().filter(|&&number| number == 0).count() > 9_900);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscreteLaplacePiece {
    parts: u64,
    /// In units of 2^-64.
    rate: u128,
    /// `log2 B`: as many classes of jumps are below B.
    classes: u32,
}

impl DiscreteLaplacePiece {
    /// Makes one of `parts` pieces of noise with that scale.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if [`DiscreteLaplace`] refuses the scale, or
    /// `parts` is zero.
    pub fn new(scale: f64, parts: u64) -> Result<Self> {
        let (_, rate) = DiscreteLaplace::new(scale)?.realized_scale();
        check_parts(parts)?;
        let mut classes = 0;
        while rate << classes < 1 << 64 {
            classes += 1;
        }
        Ok(Self { parts, rate, classes })
    }

    /// The number of pieces that make the whole.
    #[must_use]
    pub const fn parts(&self) -> u64 {
        self.parts
    }

    /// The realised scale of the whole as a numerator and a denominator.
    #[must_use]
    pub const fn realized_scale(&self) -> (u128, u128) {
        (1 << 64, self.rate)
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
        in_chunks(length, Purpose::DiscreteLaplacePiece, streams, |numbers, rng| {
            self.add(numbers, rng);
        })
    }

    /// Adds a piece to each number: the jumps of all, each to a number chosen uniformly.
    fn add<R: Rng + ?Sized>(&self, numbers: &mut [i64], rng: &mut R) {
        let places = 2 * numbers.len() as u64;
        let intensity = u128::from(places) * u128::from(self.classes + 1);
        for _ in 0..poisson(intensity, self.parts.into(), rng) {
            if let Some(jump) = self.jump(rng) {
                scatter(numbers, jump, uniform_below(places, rng));
            }
        }
    }

    /// The size of a proposed jump, if it is kept.
    #[inline]
    fn jump<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<i64> {
        let class = uniform_below(u64::from(self.classes) + 1, rng);
        let (size, first, lead) = if class < u64::from(self.classes) {
            let first = 1 << class;
            (first + uniform_below(first, rng), first, 0)
        } else {
            let mut lead = 1;
            while rng.next_u64() >> 63 == 0 {
                lead += 1;
            }
            if (0..lead).any(|_| ONE.draw(rng) > 1) {
                return None;
            }
            let first = 1 << self.classes;
            (lead * first + uniform_below(first, rng), first, lead)
        };
        // first / size and e^-(rate size - lead)
        let kept = uniform_below(size, rng) < first && self.decay(size, lead).trial(rng);
        kept.then(|| size.cast_signed())
    }

    /// `rate size - lead`, which is not negative.
    #[expect(clippy::cast_possible_truncation, reason = "the high and the low half")]
    fn decay(&self, size: u64, lead: u64) -> Exponent {
        let product = self.rate * u128::from(size);
        Exponent::binary((product >> 64) as u64 - lead, product as u64)
    }
}

/// Adds a jump, or takes it away, at one of twice as many places as there are numbers.
#[inline]
pub(super) fn scatter(numbers: &mut [i64], jump: i64, place: u64) {
    if let Some(number) = numbers.get_mut((place >> 1) as usize) {
        *number += if place & 1 == 0 { jump } else { -jump };
    }
}
