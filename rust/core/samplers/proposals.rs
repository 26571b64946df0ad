//! Uniform numbers from which proposals are made.

use rand::Rng;

use crate::Result;
use crate::memory::room;
use crate::parallel;
use crate::random::{Purpose, Streams};

/// How many numbers are drawn from one stream. Each chunk has a stream of its own, whichever thread
/// draws it.
pub const CHUNK: usize = 4096;

/// Draws uniform numbers strictly between 0 and 1, on the current rayon pool. They depend on
/// `streams` alone.
///
/// Each is the middle of one of 2^52 cells of equal width. So none is 0 or 1, and `u` is as likely
/// as `1 - u`.
///
/// ```
/// use turnout_core::random::AesStreams;
/// let numbers = turnout_core::samplers::uniforms(1000, &AesStreams::from_operating_system()?)?;
/// assert!(numbers.iter().all(|&number| number > 0.0 && number < 1.0));
/// # Ok::<(), turnout_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Accounting`](crate::Error::Accounting) if they do not fit in memory.
pub fn uniforms<S: Streams>(length: usize, streams: &S) -> Result<Vec<f64>> {
    let mut numbers = room(length, 0.0)?;
    parallel::for_each_chunk(&mut numbers, CHUNK, |chunk, numbers| {
        let mut stream = streams.stream(Purpose::Proposal, chunk as u64);
        numbers.fill_with(|| middle(stream.next_u64()));
    });
    Ok(numbers)
}

/// The middle of the cell that the leading 52 bits of a word name. Exact.
fn middle(word: u64) -> f64 {
    ((word >> 12) as f64 + 0.5) * f64::EPSILON
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::tests::check_law;
    use crate::random::AesStreams;

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn cells_are_strictly_within_the_unit_interval_and_symmetric() {
        assert_eq!(middle(0), 0.5 * f64::EPSILON);
        assert_eq!(middle(u64::MAX), 1.0 - 0.5 * f64::EPSILON);
        for word in [0, 1 << 12, 1 << 63, 0x1234_5678_9abc_def0] {
            assert_eq!(middle(word) + middle(!word), 1.0);
        }
    }

    #[test]
    fn numbers_are_uniform_in_every_chunk() -> Result<()> {
        let numbers = uniforms(CHUNK * 200 + 5, &AesStreams::from_seed(4))?;
        for numbers in [&numbers[..], &numbers[CHUNK * 100..], &numbers[CHUNK * 200 - 4000..]] {
            let mut observed = vec![0; 20];
            for number in numbers {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let cell = (number * 20.0) as usize;
                observed[cell] += 1;
            }
            check_law(&observed, &[0.05; 20]);
        }
        Ok(())
    }
}
