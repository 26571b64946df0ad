//! Chooses among proposals by the weights of a band.

use super::weights::Entries;
use super::{Band, LARGEST_TOTAL, each_row, rows};
use crate::memory::room;
use crate::random::{Purpose, Streams, choose};
use crate::{Error, Result};

/// The reference weight of each proposal in [`resample`].
pub const UNIT: u64 = 1 << 32;

/// The largest number of proposals among which [`resample`] chooses.
pub const LARGEST_ROW: usize = 1 << 30;

/// Chooses one column in each row of `columns` logarithms of ratios. The choice is exact, with the
/// [`weights`](super::weights()) of the row; each reference is [`UNIT`].
///
/// Let a row have proposals from a reference, and the log ratios of a density to that reference.
/// Then the law of the chosen proposal is in the band around the reference, whatever the ratios,
/// because each probability is between its two limits. Given the proposals, the ratio of these
/// probabilities for two data sets is at most `e^epsilon`.
///
/// Rows run on the current rayon pool, and the result depends on `streams` alone.
///
/// ```
/// use turnout_core::random::AesStreams;
/// use turnout_core::samplers::{Band, resample};
///
/// let streams = AesStreams::from_operating_system()?;
/// let ratios = [0.0, 0.1, -0.2, f64::NAN, 3.0, 5.0];
/// let chosen = resample(&ratios, 3, &Band::mollifier(1.0)?, &streams)?;
/// assert!(chosen.iter().all(|&index| index < 3));
/// # Ok::<(), turnout_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Integer`] if the ratios are not rows of `columns`, which is from 1 to [`LARGEST_ROW`];
/// [`Error::Accounting`] if no weights within the band have the right total.
pub fn resample<S: Streams>(
    log_ratios: &[f64],
    columns: usize,
    band: &Band,
    streams: &S,
) -> Result<Vec<usize>> {
    let rows = rows("log_ratios", log_ratios, columns)?;
    if columns > LARGEST_ROW {
        let expected = "rows of at most 2^30 columns";
        let value = columns as u64;
        return Err(Error::Integer { argument: "log_ratios", value, expected });
    }
    debug_assert!(columns as u64 * UNIT <= LARGEST_TOTAL);
    let entries = Entries::equal(columns, UNIT, band)?;
    let mut chosen = room(rows, 0)?;
    each_row(log_ratios, columns, &mut chosen, |row, log_ratios, chosen| {
        let (weights, _) = entries.weights(log_ratios);
        *chosen = choose(&weights, &mut streams.stream(Purpose::Choice, row as u64));
    });
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use rayon::ThreadPoolBuilder;

    use super::super::{CHUNK, first_accepted, uniforms};
    use super::*;
    use crate::noise::tests::check_law;
    use crate::random::AesStreams;

    fn masses(weights: &[u64]) -> Vec<f64> {
        let total = weights.iter().sum::<u64>() as f64;
        weights.iter().map(|&weight| weight as f64 / total).collect()
    }

    #[test]
    fn rows_are_resampled_by_their_weights() -> Result<()> {
        let band = Band::mollifier(1.5)?;
        let row = [0.3, -2.0, f64::NAN, 1.1, 0.0, f64::NEG_INFINITY, 0.31];
        let (weights, _) = super::super::weights(&row, &[UNIT; 7], &band)?;
        let matrix: Vec<f64> = row.iter().copied().cycle().take(7 * 400_000).collect();
        let mut observed = vec![0; 7];
        for index in resample(&matrix, 7, &band, &AesStreams::from_seed(3))? {
            observed[index] += 1;
        }
        check_law(&observed, &masses(&weights));
        Ok(())
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() -> Result<()> {
        let streams = AesStreams::from_seed(9);
        let band = Band::mollifier(2.0)?;
        let run = || -> Result<_> {
            let numbers = uniforms(5 * CHUNK + 17, &streams)?;
            let columns = numbers.len() / 41;
            Ok((
                resample(&numbers[..41 * columns], columns, &band, &streams)?,
                first_accepted(&numbers[..41 * columns], 41, 0.5, &streams)?,
                numbers,
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
    fn what_is_out_of_range_is_refused() -> Result<()> {
        let streams = AesStreams::from_seed(1);
        let band = Band::mollifier(1.0)?;
        for (length, columns) in [(3, 2), (3, 0), (0, 0)] {
            assert!(resample(&vec![0.0; length], columns, &band, &streams).is_err());
        }
        assert_eq!(resample(&[], 2, &band, &streams), Ok(vec![]));
        Ok(())
    }
}
