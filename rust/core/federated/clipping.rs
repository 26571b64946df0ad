//! Gradients of examples, clipped one by one and added up.

use crate::{Error, Result};

/// Columns whose squares are added up on their own.
const BLOCK: usize = 2048;

/// Sums of squares that are kept side by side.
const LANES: usize = 16;

/// Roundings on the way of a square through its block: itself, its lane, and the sum of the lanes.
const ROUNDINGS: usize = 1 + BLOCK / LANES + LANES;

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

/// Gradients of examples, in one or several parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<'a> {
    examples: usize,
    parts: Vec<(usize, Part<'a>)>,
}

impl<'a> Gradients<'a> {
    /// From parts, each with its number of parameters.
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

    /// The number of parameters of all parts.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.parts.iter().map(|(parameters, _)| parameters).sum()
    }

    /// Adds up the gradients, those longer than `clip` shortened to it.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if `clip` is not above 0 (it may be infinite), [`Error::NotFinite`]
    /// for the first example with a gradient that is not finite.
    pub fn clip_and_sum(&self, clip: f64) -> Result<Vec<f64>> {
        if clip.is_nan() || clip <= 0.0 {
            let expected = "a number above 0";
            return Err(Error::Accounting { argument: "clip", value: clip, expected });
        }
        let rule = Rule { clip, step: 1.0, ratio: clip, margin: self.margin() };
        let mut sums = vec![0.0; self.parameters()];
        self.visit(&rule, |row, scale| {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += scale.apply(value);
            }
        })?;
        Ok(sums)
    }

    /// Adds up the gradients in multiples of `step`, those longer than `clip` shortened to it and
    /// all rounded toward zero.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if `clip` or `step` is not a finite number above 0 or `clip / step`
    /// times the number of examples is not below 2^62, [`Error::NotFinite`] for the first example
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
        let rule = Rule { clip, step, ratio, margin: self.margin() };
        let mut sums = vec![0; self.parameters()];
        self.visit(&rule, |row, scale| {
            for (sum, &value) in sums.iter_mut().zip(row) {
                #[expect(clippy::cast_possible_truncation, reason = "toward zero, below 2^62")]
                let multiple = scale.apply(value) as i64;
                *sum += multiple;
            }
        })?;
        Ok(sums)
    }

    fn margin(&self) -> f64 {
        let blocks: usize = self.parts.iter().map(|(width, _)| width.div_ceil(BLOCK)).sum();
        1.0 - (ROUNDINGS + blocks + 12) as f64 * power(-53)
    }

    /// Calls `add` with every row and what to multiply it by.
    fn visit(&self, rule: &Rule, mut add: impl FnMut(&[f64], Scale)) -> Result<()> {
        let mut row = Vec::with_capacity(self.parameters());
        for example in 0..self.examples {
            row.clear();
            let mut squares = 0.0;
            for &(width, part) in &self.parts {
                let start = row.len();
                match part {
                    Part::Single(values) => {
                        row.extend(
                            values[example * width..][..width].iter().map(|&x| f64::from(x)),
                        );
                    }
                    Part::Double(values) => {
                        row.extend_from_slice(&values[example * width..][..width]);
                    }
                }
                squares =
                    row[start..].chunks(BLOCK).fold(squares, |sum, block| sum + sum_squares(block));
            }
            let scale = if (power(-900)..=power(900)).contains(&squares) {
                Some(Scale { powers: [1.0; 2], factor: rule.factor(squares.sqrt()) })
            } else {
                rule.rescaled(&row).ok_or_else(|| Error::NotFinite {
                    argument: "gradients",
                    example,
                    value: row.iter().copied().find(|value| !value.is_finite()).unwrap_or(f64::NAN),
                })?
            };
            if let Some(scale) = scale {
                add(&row, scale);
            }
        }
        Ok(())
    }
}

/// What a row is multiplied by.
#[derive(Debug, Clone, Copy)]
struct Scale {
    /// Powers of two that bring numbers into the middle of the range.
    powers: [f64; 2],
    factor: f64,
}

impl Scale {
    fn apply(self, value: f64) -> f64 {
        value * self.powers[0] * self.powers[1] * self.factor
    }
}

/// How rows are shortened.
#[derive(Debug, Clone, Copy)]
struct Rule {
    clip: f64,
    step: f64,
    /// `clip / step`.
    ratio: f64,
    /// One, less what the computed norm may be too small.
    margin: f64,
}

impl Rule {
    /// What a row of a norm is multiplied by.
    fn factor(&self, norm: f64) -> f64 {
        if norm <= self.clip * self.margin {
            1.0 / self.step
        } else {
            self.ratio / norm * self.margin
        }
    }

    /// What a row is multiplied by of which the squares overflow or underflow: nothing if it is
    /// zero. `None` if it is not finite.
    #[expect(clippy::option_option, reason = "of no use to others")]
    fn rescaled(&self, row: &[f64]) -> Option<Option<Scale>> {
        if row.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let largest = row.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        if largest == 0.0 {
            return Some(None);
        }
        let exponent = -libm::ilogb(largest);
        let powers = [power(exponent / 2), power(exponent - exponent / 2)];
        let scaled = |value: f64| value * powers[0] * powers[1];
        let row: Vec<f64> = row.iter().map(|&value| scaled(value)).collect();
        let norm = row.chunks(BLOCK).fold(0.0, |sum, block| sum + sum_squares(block)).sqrt();
        if norm > scaled(self.clip) * self.margin {
            Some(Some(Scale { powers, factor: self.ratio / norm * self.margin }))
        } else if self.step == 1.0 {
            Some(Some(Scale { powers: [1.0; 2], factor: 1.0 }))
        } else {
            Some(Some(Scale { powers, factor: 1.0 / scaled(self.step) }))
        }
    }
}

/// The sum of the squares of a block, in an order that is the same on every machine.
fn sum_squares(block: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for chunk in block.chunks(LANES) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value * value;
        }
    }
    lanes.iter().sum()
}
