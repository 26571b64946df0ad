//! Numbers within bounds, as a line states them.

use super::error::Result;
use super::members::Members;
use crate::mean::Bounds;
use crate::wire::json::Json;

/// From here on not every integer is a 64-bit floating-point number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// One number within bounds, or a list of some.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    bounds: Bounds,
    dimensions: usize,
}

impl Interval {
    /// So many numbers within bounds.
    pub(crate) const fn new(bounds: Bounds, dimensions: usize) -> Self {
        Self { bounds, dimensions }
    }

    /// Reads bounds, and what stands beside them.
    pub(crate) fn read(domain: &Json<'_>, beside: &str) -> Result<(Bounds, u64)> {
        let mut members = Members::read(domain)?;
        let ([low, high], found): ([f64; 2], u64) =
            (members.take("bounds")?, members.take(beside)?);
        members.finish()?;
        Ok((Bounds::new(low, high)?, found))
    }

    /// How many numbers a person has.
    pub(crate) const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Adds the numbers of a line: one, or a list of JSON.
    pub(crate) fn find(&self, line: &str, numbers: &mut Vec<f64>) -> Result<(), String> {
        let found: Option<Vec<f64>> = if self.dimensions == 1 {
            number(line).map(|number| vec![number])
        } else {
            let json = Json::read(line).ok();
            let listed = json.as_ref().and_then(Json::list);
            listed.and_then(|all| all.iter().map(|each| number(each.raw())).collect())
        };
        let (low, high) = (self.bounds.low(), self.bounds.high());
        let inside = |value: &f64| (low..=high).contains(value);
        match found.filter(|all| all.len() == self.dimensions && all.iter().all(inside)) {
            Some(found) => {
                numbers.extend(found);
                Ok(())
            }
            None if self.dimensions == 1 => Err(format!("is no number from {low} to {high}")),
            None => Err(format!("is no list of {} numbers from {low} to {high}", self.dimensions)),
        }
    }
}

/// The number that a text stands for; none where it is an integer that would be rounded.
fn number(text: &str) -> Option<f64> {
    let found: f64 = text.parse().ok()?;
    let digits = text.trim_start_matches(['+', '-']);
    let integer = digits.bytes().all(|digit| digit.is_ascii_digit());
    let kept = !integer || found.abs() < EXACT || format!("{:.0}", found.abs()) == digits;
    kept.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_not_rounded() {
        for (text, expected) in [
            ("-0.5", Some(-0.5)),
            ("1e-7", Some(1e-7)),
            ("9007199254740992", Some(EXACT)),
            ("9007199254740993", None),
            ("-9007199254740993", None),
            ("9007199254740993.0", Some(EXACT)),
            ("100000000000000000000", Some(1e20)),
            ("100000000000000000001", None),
            ("", None),
            (" 1", None),
            ("1,5", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
