//! Private samplers: draws whose law stays in a band around a public reference.
//!
//! A user releases one draw. Its law is close to the law of the user's own data, and within a
//! [`Band`] around a public reference. The law is in the band whatever the data, so the draw hides
//! all of the data at once. Husain, Balle, Cranko, Nock, "Local differential privacy for sampling",
//! AISTATS 2020, call the symmetric band a relative mollifier.
//!
//! Privacy never depends on a floating-point number. Densities and scores are floating-point
//! numbers, and may be infinite or undefined. But they only choose among integer [`weights()`]
//! within integer limits, or among exponents within a limit, and the draw is exact:
//!
//! * [`resample`] chooses one of many proposals from the reference by such weights;
//! * [`first_accepted`] accepts proposals by exact trials of probability `e^-g`;
//! * [`uniforms`] draws the numbers from which proposals are made;
//! * [`NetworkSum`] evaluates boosted scores at many points.
//!
//! ```
//! use turnout_core::random::{AesStreams, choose_many};
//! use turnout_core::samplers::{Band, weights};
//!
//! // Four values, a uniform reference, and a user whose data are nearly all of the first value.
//! let band = Band::mollifier(2.0)?;
//! let data = [0.97_f64, 0.01, 0.01, 0.01];
//! let log_ratios = data.map(|p| (p / 0.25).ln());
//! let (found, _) = weights(&log_ratios, &[1 << 32; 4], &band)?;
//! assert_eq!(found.iter().sum::<u64>(), 4 << 32);
//! let (low, high) = band.limits(1 << 32)?;
//! assert!(found.iter().all(|weight| (low..=high).contains(weight)));
//! let draws = choose_many(&found, 1, &AesStreams::from_operating_system()?)?;
//! assert!(draws[0] < 4);
//! # Ok::<(), turnout_core::Error>(())
//! ```

mod acceptance;
mod band;
mod choice;
mod networks;
mod proposals;
mod weights;

pub use acceptance::{MOST, first_accepted};
pub use band::{Band, LARGEST_TOTAL};
pub use choice::{LARGEST_ROW, UNIT, resample};
pub use networks::{Activation, DenseNetwork, NetworkSum};
pub use proposals::{CHUNK, uniforms};
pub use weights::weights;

use crate::{Error, Result, parallel};

/// The rows of a matrix that has so many columns.
fn rows(argument: &'static str, entries: &[f64], columns: usize) -> Result<usize> {
    match entries.len().checked_div(columns) {
        Some(rows) if rows * columns == entries.len() => Ok(rows),
        _ => Err(Error::Integer {
            argument,
            value: columns as u64,
            expected: "rows of at least 1 column, all of the same length",
        }),
    }
}

/// Rows of a matrix that are looked at together.
const ROWS: usize = 16;

/// Finds the result of every row of a matrix that has so many columns, on the current rayon pool.
fn each_row<T: Send>(
    entries: &[f64],
    columns: usize,
    results: &mut [T],
    job: impl Fn(usize, &[f64], &mut T) + Sync,
) {
    parallel::for_each_chunk(results, ROWS, |chunk, results| {
        let first = chunk * ROWS;
        let rows = entries[first * columns..].chunks_exact(columns);
        for ((row, entries), result) in (first..).zip(rows).zip(results) {
            job(row, entries, result);
        }
    });
}
