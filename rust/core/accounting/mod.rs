//! Privacy accounting: what random participation, sampling, shuffling and integer noise cost.
//!
//! Every mechanism is described by its hockey-stick divergence `D_a(P||Q) = sum [P - a Q]_+` at `a
//! = e^epsilon`, for the worst pair of laws among neighbouring data sets. Deltas are upper bounds:
//! they include what is cut off and what rounding may have lost, so an error can only make them
//! larger.
//!
//! ```
//! use turnout_core::accounting::RandomParticipation;
//! let round = RandomParticipation::new(0.001, 0.1, 30, 2.37329)?;
//! assert!(round.remove(0.015).delta < 1e-6);
//! # Ok::<(), turnout_core::Error>(())
//! ```

mod counts;
mod crossing;
mod double;
mod gaussian_pair;
mod integer_noise;
mod normal;
mod participation;
mod point_binomial;
mod shuffle;
mod weighted;

pub use counts::{CountSampling, TwoStageCountSampling};
pub use integer_noise::IntegerNoise;
pub use participation::{PoissonSampling, RandomParticipation};
pub use shuffle::{Shuffle, ShuffleLaw};

use crate::parallel;
use crate::{Error, Result};

/// The hockey-stick divergence of a pair of laws P and Q at one epsilon.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HockeyStick {
    /// An upper bound of `sum [P - e^epsilon Q]_+`, never below the exact value.
    pub delta: f64,
    /// The probability under P that the privacy loss exceeds epsilon, rounded to the nearest
    /// number.
    pub p: f64,
    /// The probability under Q of the same event, rounded to the nearest number.
    pub q: f64,
}

impl HockeyStick {
    /// The divergence of two equal laws.
    pub const NONE: Self = Self { delta: 0.0, p: 0.0, q: 0.0 };
}

/// Checks a probability that may be zero.
fn rate(argument: &'static str, value: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(Error::Accounting { argument, value, expected: "a probability in [0, 1]" })
    }
}

/// Checks a number that must be finite and above zero.
fn positive(argument: &'static str, value: f64) -> Result<f64> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(Error::Accounting { argument, value, expected: "a finite number above 0" })
    }
}

/// Checks an epsilon.
fn check_epsilon(value: f64) -> Result<f64> {
    if value >= 0.0 && value.is_finite() {
        Ok(value)
    } else {
        let expected = "a finite number of at least 0";
        Err(Error::Accounting { argument: "epsilon", value, expected })
    }
}

/// Evaluates mechanisms at many epsilons, on the current rayon pool. `mechanism(i)` returns the
/// mechanism for `epsilons[i]`, and `directions` returns its divergences.
///
/// # Errors
///
/// [`Error::Accounting`] for an epsilon that is negative or not finite; those of `mechanism`.
pub fn evaluate<M, const N: usize>(
    epsilons: &[f64],
    mechanism: impl Fn(usize) -> Result<M> + Sync,
    directions: impl Fn(&M, f64) -> [HockeyStick; N] + Sync,
) -> Result<Vec<[HockeyStick; N]>> {
    let one = |index: usize| -> Result<[HockeyStick; N]> {
        let epsilon = check_epsilon(epsilons[index])?;
        Ok(directions(&mechanism(index)?, epsilon))
    };
    if epsilons.len() < 8 {
        (0..epsilons.len()).map(one).collect()
    } else {
        parallel::map(epsilons.len(), one).into_iter().collect()
    }
}
