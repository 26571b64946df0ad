//! Gaussian noise on a grid, drawn exactly.

mod karney;
mod lazy;

use rand_core::Rng;
use rayon::prelude::*;

use crate::random::{Purpose, Streams};
use crate::{Error, Result};

/// Numbers drawn from one stream: a chunk has a stream of its own, whichever thread takes it.
pub const GAUSSIAN_CHUNK: usize = 1 << 13;

/// The most fractional bits.
const BITS: u32 = 52;

/// `length` independent draws of `2^bits Z` rounded to the nearest integer, for a standard normal
/// Z, on the current rayon pool; they depend on `streams` alone.
///
/// The law is exact: no floating-point number is involved, and every decision reads further words
/// until it is certain. An integer vector plus such noise is the rounded sum of the vector and of
/// continuous Gaussian noise: all that is known of the privacy of the Gaussian mechanism holds for
/// it.
///
/// ```
/// use turnout::federated::rounded_gaussian;
/// use turnout::random::AesStreams;
///
/// let noise = rounded_gaussian(1000, 24, &AesStreams::from_operating_system()?)?;
/// let squares: f64 = noise.iter().map(|&x| (x as f64 / f64::from(1 << 24)).powi(2)).sum();
/// assert!((700.0..1300.0).contains(&squares));
/// # Ok::<(), turnout::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Integer`] if `bits` is above 52, [`Error::Accounting`] if the numbers do not fit in
/// memory.
pub fn rounded_gaussian<S: Streams>(length: usize, bits: u32, streams: &S) -> Result<Vec<i64>> {
    if bits > BITS {
        let expected = "from 0 to 52";
        return Err(Error::Integer { argument: "bits", value: bits.into(), expected });
    }
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(length).map_err(|_| Error::Accounting {
        argument: "length",
        value: length as f64,
        expected: "so small that the numbers fit in memory",
    })?;
    numbers.resize(length, 0);
    let fill = |(chunk, numbers): (usize, &mut [i64])| {
        let mut stream = streams.stream(Purpose::RoundedGaussian, chunk as u64);
        numbers.fill_with(|| draw(bits, &mut stream));
    };
    if length <= GAUSSIAN_CHUNK {
        fill((0, &mut numbers));
    } else {
        numbers.par_chunks_mut(GAUSSIAN_CHUNK).enumerate().for_each(fill);
    }
    Ok(numbers)
}

/// One draw.
fn draw<R: Rng + ?Sized>(bits: u32, rng: &mut R) -> i64 {
    let (whole, fraction) = karney::magnitude(rng);
    let negative = rng.next_u64() >> 63 == 1;
    round(whole, fraction.first() >> 11, bits, negative)
}

/// `2^bits (whole + fraction / 2^53 + less than 2^-53)`, rounded to the nearest integer, with a
/// sign. A whole part of 1000 has a probability below 10^-200000: what is beyond is cut there.
fn round(whole: u64, fraction: u64, bits: u32, negative: bool) -> i64 {
    let digits = (whole.min(1000) << 53) | fraction;
    // One bit more than is wanted: the nearest integer follows from it.
    let nearest = ((digits >> (BITS - bits)) + 1) >> 1;
    let nearest = nearest.cast_signed();
    if negative { -nearest } else { nearest }
}
