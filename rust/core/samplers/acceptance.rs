//! Accepts proposals by exact trials.

use super::{each_row, rows};
use crate::memory::room;
use crate::noise::ExponentialTrial;
use crate::random::{Purpose, Streams};
use crate::{Error, Result};

/// The largest gap.
pub const MOST: f64 = 64.0;

/// 2^64 as a floating-point number.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Finds, in each row of `columns` gaps, the first that is accepted. Each is accepted with
/// probability `e^-gap`.
///
/// The law of the accepted proposal is within a factor `e^most` of the law of the proposals,
/// whatever the gaps. Each gap is rounded down to a multiple of 2^-64. A negative gap becomes `0`,
/// and a gap that is larger than `most` or not a number becomes `most`. So the probability of
/// acceptance is exactly `e^-g` for a `g` from 0 to `most`, and no floating-point number is
/// compared with another. All gaps of a row are tried, even after one was accepted.
///
/// A row without an accepted proposal gives `None`. If you then draw afresh from the reference, the
/// law stays within the same factor.
///
/// Rows run on the current rayon pool, and the result depends on `streams` alone.
///
/// ```
/// use turnout_core::random::AesStreams;
/// use turnout_core::samplers::first_accepted;
///
/// let streams = AesStreams::from_operating_system()?;
/// let gaps = [0.0, 0.3, 0.3, 0.0]; // two rows: the first gap of the first is always accepted
/// let accepted = first_accepted(&gaps, 2, 0.5, &streams)?;
/// assert_eq!(accepted[0], Some(0));
/// assert!(accepted[1].is_some());
/// # Ok::<(), turnout_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Accounting`] unless `most` is from 0 to [`MOST`]; [`Error::Integer`] if the gaps are
/// not rows of `columns`.
pub fn first_accepted<S: Streams>(
    gaps: &[f64],
    columns: usize,
    most: f64,
    streams: &S,
) -> Result<Vec<Option<usize>>> {
    if !(0.0..=MOST).contains(&most) {
        return Err(Error::Accounting { argument: "most", value: most, expected: "from 0 to 64" });
    }
    let rows = rows("gaps", gaps, columns)?;
    let mut accepted = room(rows, None)?;
    each_row(gaps, columns, &mut accepted, |row, gaps, accepted| {
        let mut stream = streams.stream(Purpose::Acceptance, row as u64);
        for (column, &gap) in gaps.iter().enumerate() {
            let success = trial(gap, most).draw(&mut stream);
            *accepted = accepted.or(success.then_some(column));
        }
    });
    Ok(accepted)
}

/// The trial of a gap.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^70")]
fn trial(gap: f64, most: f64) -> ExponentialTrial {
    let gap = if gap.is_nan() { most } else { gap.clamp(0.0, most) };
    // Scaling by a power of two is exact.
    let units = (gap * TWO_TO_64) as u128;
    ExponentialTrial::binary((units >> 64) as u64, units as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::tests::check_law;
    use crate::random::AesStreams;

    #[test]
    fn a_gap_is_the_multiple_of_2_to_the_minus_64_below_it() {
        let half = 1 << 63;
        for (gap, most, whole, digits) in [
            (0.0, 1.0, 0, 0),
            (-0.0, 1.0, 0, 0),
            (-3.0, 1.0, 0, 0),
            (f64::NEG_INFINITY, 1.0, 0, 0),
            (f64::MIN_POSITIVE, 1.0, 0, 0),
            ((-64.0_f64).exp2(), 1.0, 0, 1),
            ((-63.0_f64).exp2() * 1.25, 1.0, 0, 2),
            (0.5, 1.0, 0, half),
            (0.5, 0.25, 0, half / 2),
            (f64::NAN, 2.5, 2, half),
            (f64::INFINITY, 2.5, 2, half),
            (f64::INFINITY, 64.0, 64, 0),
            (63.5, 64.0, 63, half),
        ] {
            assert_eq!(trial(gap, most), ExponentialTrial::binary(whole, digits), "{gap}");
        }
    }

    #[test]
    fn the_first_accepted_follows_its_law() -> Result<()> {
        let (rows, most) = (400_000, 3.0_f64);
        for (case, gaps) in [
            vec![0.7],
            vec![0.0, 1.0],
            vec![1e-3, 0.1],
            vec![1.5, f64::NAN, 0.2, 2.25, 100.0],
            vec![2.9, -1.0, 0.5],
            vec![0.05; 7],
        ]
        .into_iter()
        .enumerate()
        {
            let matrix: Vec<f64> = gaps.iter().copied().cycle().take(rows * gaps.len()).collect();
            let streams = AesStreams::from_seed(case as u64);
            let mut observed = vec![0; gaps.len() + 1];
            for accepted in first_accepted(&matrix, gaps.len(), most, &streams)? {
                observed[accepted.unwrap_or(gaps.len())] += 1;
            }
            let mut left = 1.0;
            let mut masses = Vec::new();
            for gap in gaps {
                let gap = if gap.is_nan() { most } else { gap.clamp(0.0, most) };
                masses.push(left * (-gap).exp());
                left *= -(-gap).exp_m1();
            }
            masses.push(left);
            check_law(&observed, &masses);
        }
        Ok(())
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let streams = AesStreams::from_seed(1);
        for most in [-1.0, 64.1, f64::NAN, f64::INFINITY] {
            assert!(first_accepted(&[0.0], 1, most, &streams).is_err());
        }
        for (length, columns) in [(3, 2), (3, 0), (0, 0), (2, 3)] {
            assert!(first_accepted(&vec![0.0; length], columns, 1.0, &streams).is_err());
        }
        assert_eq!(first_accepted(&[], 4, 1.0, &streams), Ok(vec![]));
    }
}
