//! Gradients of examples: clipped one by one, then added up.
//!
//! It squares a few rows at a time, and adds them up while they are in the cache. Every sum has a
//! fixed order, so the results are the same to the last bit on every machine and with any number of
//! threads.

mod kernel;
mod passes;
mod rule;

use crate::{Error, Result};
use kernel::WIDTH;
use passes::{Sums, pass};
use rule::Rule;

/// What the sums must stay below.
const LIMIT: f64 = power(62);

/// `2^exponent`, which must be a normal number.
#[expect(clippy::cast_sign_loss, reason = "the exponent of a normal number")]
const fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// The gradients of all examples with respect to some of the parameters, example by example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part<'a> {
    /// In single precision.
    Single(&'a [f32]),
    /// In double precision.
    Double(&'a [f64]),
}

/// Gradients of examples, in one or several parts. The norm of a gradient covers all parts.
///
/// # Examples
///
/// ```
/// use turnout_core::federated::{Gradients, Part};
///
/// # fn main() -> Result<(), turnout_core::Error> {
/// let (weights, biases) = ([3.0_f32, 0.0, 1.0, 0.5], [4.0, 0.25]);
/// let parts = vec![(2, Part::Single(&weights)), (1, Part::Double(&biases))];
/// let gradients = Gradients::new(2, parts)?;
/// assert_eq!(gradients.clip_and_sum(f64::INFINITY)?, [4.0, 0.5, 4.25]);
/// // The first has the norm 5, the second is short enough. On the grid nothing exceeds the clip.
/// assert_eq!(gradients.clip_to_grid(2.5, 0.25)?, [5 + 4, 2, 7 + 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<'a> {
    examples: usize,
    parts: Vec<(usize, Part<'a>)>,
}

impl<'a> Gradients<'a> {
    /// Makes gradients from parts, each with its number of parameters.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if a part does not have that many numbers for every example.
    pub fn new(examples: usize, parts: Vec<(usize, Part<'a>)>) -> Result<Self> {
        for &(parameters, part) in &parts {
            let length = match part {
                Part::Single(values) => values.len(),
                Part::Double(values) => values.len(),
            };
            if examples.checked_mul(parameters) != Some(length) {
                return Err(Error::LengthMismatch {
                    left: "a part of gradients",
                    left_length: length,
                    right: "examples times its parameters",
                    right_length: examples.saturating_mul(parameters),
                });
            }
        }
        Ok(Self { examples, parts })
    }

    /// The total number of parameters.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.parts.iter().map(|(parameters, _)| parameters).sum()
    }

    /// Adds up the gradients; those longer than `clip` are shortened to it.
    ///
    /// The arithmetic is in double precision. For `n` examples, each sum is within `n 2^-52` times
    /// the sum of the absolute values of its terms. A factor is below `min(1, clip / norm)`, by
    /// less than `4e-14` times that for up to 10^5 parameters and `6e-13` for 10^7.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if `clip` is not at least `2^-1000` (it may be infinite);
    /// [`Error::NotFinite`] for the first example with a gradient that is not finite.
    pub fn clip_and_sum(&self, clip: f64) -> Result<Vec<f64>> {
        if clip.is_nan() || clip < power(-1000) {
            let expected = "a number of at least 2^-1000";
            return Err(Error::Accounting { argument: "clip", value: clip, expected });
        }
        let rule = Rule::new(clip, 1.0, self.strips(), false);
        Ok(pass(self, &rule, Sums::Real)?.reals)
    }

    /// Adds up the gradients in multiples of `step`. Those longer than `clip` are shortened to it,
    /// and all are rounded toward zero.
    ///
    /// The sums are exact. Whatever the gradients, the integers of an example are never longer than
    /// `clip / step`. That is, the sum of their squares times `step^2` is at most `clip^2`, with
    /// the exact values of both numbers. Gradients shorter than the clip are shortened only by the
    /// rounding, except within a relative `6e-13` of the clip (for 10^7 parameters; `4e-14` for
    /// 10^5).
    ///
    /// If all gradients are in single precision, and `clip / step` is below about 2^27, products
    /// are in single precision too. They are rounded to it before they are rounded toward zero, and
    /// "except within a relative `2e-7`" is then true.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if `clip` or `step` is not a finite number above 0, or `clip / step`
    /// times the number of examples is not below 2^62; [`Error::NotFinite`] for the first example
    /// with a gradient that is not finite.
    pub fn clip_to_grid(&self, clip: f64, step: f64) -> Result<Vec<i64>> {
        for (argument, value) in [("clip", clip), ("step", step)] {
            if !value.is_finite() || value <= 0.0 {
                let expected = "a finite number above 0";
                return Err(Error::Accounting { argument, value, expected });
            }
        }
        let ratio = clip / step;
        let largest = ratio * self.examples.max(1) as f64;
        if largest >= LIMIT {
            let (argument, value) = if ratio >= LIMIT {
                ("clip / step", ratio)
            } else {
                ("clip / step times the number of examples", largest)
            };
            return Err(Error::Accounting { argument, value, expected: "below 2^62" });
        }
        let single = self.parts.iter().all(|(_, part)| matches!(part, Part::Single(_)));
        let sums = Sums::whole(ratio, single);
        let rule = Rule::new(clip, step, self.strips(), matches!(sums, Sums::Narrow(_)));
        Ok(pass(self, &rule, sums)?.integers)
    }

    /// The number of strips of a row.
    fn strips(&self) -> usize {
        self.parts.iter().map(|(parameters, _)| parameters.div_ceil(WIDTH)).sum()
    }

    /// The bytes of a row.
    fn row_bytes(&self) -> usize {
        let bytes = |&(parameters, part): &(usize, Part<'_>)| match part {
            Part::Single(_) => 4 * parameters,
            Part::Double(_) => 8 * parameters,
        };
        self.parts.iter().map(bytes).sum()
    }

    /// A row, in double precision.
    fn row(&self, example: usize) -> Vec<f64> {
        let mut row = Vec::with_capacity(self.parameters());
        for &(width, part) in &self.parts {
            let range = example * width..(example + 1) * width;
            match part {
                Part::Single(values) => row.extend(values[range].iter().map(|&x| f64::from(x))),
                Part::Double(values) => row.extend_from_slice(&values[range]),
            }
        }
        row
    }
}

#[cfg(test)]
mod tests;
