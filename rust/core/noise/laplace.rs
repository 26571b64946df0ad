//! Discrete Laplace noise.

use rand::Rng;

use super::trial::{Exponent, never};
use super::{check, in_chunks};
use crate::Result;
use crate::random::{Purpose, Streams, decompose};

/// Exact discrete Laplace noise: `P[x]` proportional to `e^(-rate |x|)`.
///
/// The rate is the largest multiple of 2^-64 that is at most `1 / scale`. So the realised scale is
/// at least the requested one, and exceeds it by at most 5.5e-14 of it. It is drawn by algorithm 2
/// of Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (2020).
///
/// ```
/// use turnout_core::random::AesStreams;
/// use turnout_core::noise::DiscreteLaplace;
///
/// let noise = DiscreteLaplace::new(2.0)?;
/// assert_eq!(noise.realized_scale(), (1 << 64, 1 << 63));
/// let streams = AesStreams::from_operating_system()?;
/// assert_eq!(noise.draw_many(1000, &streams)?.len(), 1000);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscreteLaplace {
    /// The rate in units of 2^-64: from 2^44 to 2^70.
    rate: u128,
}

impl DiscreteLaplace {
    /// The smallest scale.
    pub const SMALLEST_SCALE: f64 = 0.02;

    /// The largest scale.
    pub const LARGEST_SCALE: f64 = 1e6;

    /// Makes noise of at least that scale.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if the scale is not from
    /// [`DiscreteLaplace::SMALLEST_SCALE`] to [`DiscreteLaplace::LARGEST_SCALE`].
    pub fn new(scale: f64) -> Result<Self> {
        check(scale, Self::SMALLEST_SCALE, Self::LARGEST_SCALE, "scale", "from 0.02 to 1e6")?;
        // scale = mantissa * 2^exponent with an exponent from -58 to -33.
        let (mantissa, exponent) = decompose(scale);
        let rate = (1_u128 << (64 + exponent.unsigned_abs())) / u128::from(mantissa);
        Ok(Self { rate })
    }

    /// The realised scale as a numerator and a denominator. The realised rate is its reciprocal.
    #[must_use]
    pub const fn realized_scale(&self) -> (u128, u128) {
        (1 << 64, self.rate)
    }

    /// Draws one number.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        loop {
            let position = geometric(64, rng) / self.rate;
            let magnitude = i64::try_from(position).unwrap_or(i64::MAX);
            if rng.next_u64() >> 63 == 0 {
                return magnitude;
            }
            if magnitude > 0 {
                return -magnitude;
            }
        }
    }

    /// Draws many numbers, on the current rayon pool. They depend on `streams` alone.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if they do not fit in memory.
    pub fn draw_many<S: Streams>(&self, length: usize, streams: &S) -> Result<Vec<i64>> {
        in_chunks(length, Purpose::DiscreteLaplace, streams, |numbers, rng| {
            numbers.fill_with(|| self.draw(rng));
        })
    }
}

/// A geometric number with `P[X >= x] = e^(-x / 2^bits)`, for at most 64 bits.
///
/// The low bits are uniform, kept with probability `e^-(low / 2^bits)`; the number above them has
/// `P[V >= v] = e^-v` and is independent.
#[inline]
pub(super) fn geometric<R: Rng + ?Sized>(bits: u32, rng: &mut R) -> u128 {
    let mut low = 0;
    if bits > 0 {
        loop {
            let fraction = rng.next_u64() >> (64 - bits) << (64 - bits);
            if Exponent::binary(0, fraction).trial(rng) {
                low = fraction >> (64 - bits);
                break;
            }
        }
    }
    let mut high = 0_u128;
    while never(1, rng) {
        high += 1;
    }
    (high << bits) + u128::from(low)
}
