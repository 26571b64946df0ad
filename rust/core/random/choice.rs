//! Exact choices by integer weights.

use rand::Rng;

use super::{Purpose, Streams, uniform_below};
use crate::memory::room;
use crate::{Error, Result, parallel};

/// Draws of one stream: a chunk has a stream of its own, whichever thread takes it.
const CHUNK: usize = 4096;

/// Chooses an index with probability exactly `weight / total`.
///
/// It reads all weights, whatever it chooses. The weights must not all be zero, and must add up to
/// less than 2^64. If they are all zero, it returns the first index.
///
/// ```
/// use turnout_core::random::{AesStreams, Purpose, Streams};
/// let mut stream = AesStreams::from_operating_system()?.stream(Purpose::Choice, 0);
/// assert_eq!(turnout_core::random::choose(&[0, 7, 0], &mut stream), 1);
/// # Ok::<(), turnout_core::Error>(())
/// ```
pub fn choose<R: Rng + ?Sized>(weights: &[u64], rng: &mut R) -> usize {
    let total = weights.iter().fold(0, |sum: u64, &weight| sum.wrapping_add(weight));
    if total == 0 {
        return 0;
    }
    let point = uniform_below(total, rng);
    let (mut sum, mut index) = (0_u64, 0);
    for &weight in weights {
        sum = sum.wrapping_add(weight);
        index += usize::from(sum <= point);
    }
    index
}

/// Chooses many indices, each independently with probability exactly `weight / total`. It runs on
/// the current rayon pool, and the result depends on `streams` alone.
///
/// ```
/// use turnout_core::random::AesStreams;
/// let streams = AesStreams::from_operating_system()?;
/// let draws = turnout_core::random::choose_many(&[3, 0, 1], 100, &streams)?;
/// assert!(draws.iter().all(|&index| index == 0 || index == 2));
/// # Ok::<(), turnout_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Integer`] unless the weights add up to an integer from 1 to 2^63 - 1;
/// [`Error::Accounting`] if the indices do not fit in memory.
pub fn choose_many<S: Streams>(weights: &[u64], length: usize, streams: &S) -> Result<Vec<usize>> {
    let mut sum = 0_u64;
    let mut sums = room(weights.len(), 0)?;
    for (place, &weight) in sums.iter_mut().zip(weights) {
        sum = sum.saturating_add(weight);
        *place = sum;
    }
    if sum == 0 || sum > i64::MAX.cast_unsigned() {
        return Err(Error::Integer {
            argument: "the sum of weights",
            value: sum,
            expected: "an integer from 1 to 2^63 - 1",
        });
    }
    let mut indices = room(length, 0)?;
    parallel::for_each_chunk(&mut indices, CHUNK, |chunk, indices| {
        let mut stream = streams.stream(Purpose::Choice, chunk as u64);
        indices.fill_with(|| {
            let point = uniform_below(sum, &mut stream);
            sums.partition_point(|&sum| sum <= point)
        });
    });
    Ok(indices)
}

/// Draws many integers, each exactly uniform on `0..bound`. It runs on the current rayon pool, and
/// the result depends on `streams` alone. A bound of zero stands for 2^64.
///
/// ```
/// use turnout_core::random::AesStreams;
/// let draws = turnout_core::random::uniform_integers(5, 100, &AesStreams::from_operating_system()?)?;
/// assert!(draws.iter().all(|&draw| draw < 5));
/// # Ok::<(), turnout_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Accounting`] if they do not fit in memory.
pub fn uniform_integers<S: Streams>(bound: u64, length: usize, streams: &S) -> Result<Vec<u64>> {
    let mut draws = room(length, 0)?;
    parallel::for_each_chunk(&mut draws, CHUNK, |chunk, draws| {
        let mut stream = streams.stream(Purpose::Choice, chunk as u64);
        draws.fill_with(|| uniform_below(bound, &mut stream));
    });
    Ok(draws)
}

#[cfg(test)]
mod tests {
    use rayon::ThreadPoolBuilder;

    use super::*;
    use crate::noise::tests::check_law;
    use crate::random::AesStreams;

    fn masses(weights: &[u64]) -> Vec<f64> {
        let total = weights.iter().sum::<u64>() as f64;
        weights.iter().map(|&weight| weight as f64 / total).collect()
    }

    #[test]
    fn choices_follow_the_weights() -> Result<()> {
        for weights in
            [vec![1, 2, 3], vec![0, 5, 0, 1, 0], vec![1 << 61, 1 << 60, 3 << 60], vec![9; 40]]
        {
            let streams = AesStreams::from_seed(weights.len() as u64);
            let mut observed = vec![0; weights.len()];
            for index in choose_many(&weights, 1_000_000, &streams)? {
                observed[index] += 1;
            }
            check_law(&observed, &masses(&weights));
            let mut observed = vec![0; weights.len()];
            let mut stream = streams.stream(Purpose::Choice, 1 << 40);
            for _ in 0..300_000 {
                observed[choose(&weights, &mut stream)] += 1;
            }
            check_law(&observed, &masses(&weights));
        }
        Ok(())
    }

    #[test]
    fn integers_below_a_bound_are_uniform() -> Result<()> {
        // Three quarters of 2^64: a quarter of the words would fold onto the first third.
        for (bound, parts) in [(7, 7), (1 << 40, 8), (3 << 62, 3)] {
            let mut observed = vec![0; usize::try_from(parts).unwrap_or(0)];
            for draw in uniform_integers(bound, 300_000, &AesStreams::from_seed(bound))? {
                observed[usize::try_from(draw / (bound / parts)).unwrap_or(usize::MAX)] += 1;
            }
            check_law(&observed, &masses(&vec![1; observed.len()]));
        }
        Ok(())
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() -> Result<()> {
        let streams = AesStreams::from_seed(9);
        let run = || -> Result<_> {
            Ok((
                choose_many(&[1, 2, 3, 4], 3 * CHUNK + 5, &streams)?,
                uniform_integers(1000, 3 * CHUNK + 5, &streams)?,
            ))
        };
        let mut results = Vec::new();
        for threads in [1, 2, 7] {
            if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
                results.push(pool.install(run)?);
            }
        }
        assert_eq!(results.len(), 3);
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        Ok(())
    }

    #[test]
    fn weights_without_a_total_are_refused() {
        let streams = AesStreams::from_seed(1);
        for weights in [vec![], vec![0, 0], vec![1 << 62, 1 << 62], vec![u64::MAX, u64::MAX]] {
            assert!(matches!(choose_many(&weights, 1, &streams), Err(Error::Integer { .. })));
        }
        assert_eq!(choose(&[], &mut streams.stream(Purpose::Choice, 0)), 0);
    }
}
