//! Numbers within bounds: for a mean, of one number or of several, or for a distribution.

use serde_json::value::RawValue;
use turnout_core::frequency::{FrequencyOracle, Selection, SquareWave};
use turnout_core::mean::{Bounds, Dimensions, Duchi, Hybrid, Mechanism, Piecewise};
use turnout_core::parameters::{DomainSize, Epsilon};
use turnout_core::random::AesStreams;

use crate::Refusal;
use crate::members::Members;
use crate::noise::Noise;
use crate::question::{Answers, Description, Question};
use crate::reports::{Layout, Report, Word, narrowest};

/// From here on not every integer is a 64-bit floating-point number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Makes the reports of the nodes that take part.
type Draw = dyn Fn(&[f64], &Selection<'_>, &AesStreams) -> turnout_core::Result<Vec<Report>>;

/// A question for numbers.
struct Numbers {
    bounds: Bounds,
    /// How many numbers a node holds.
    dimensions: usize,
    draw: Box<Draw>,
}

/// Reads a mechanism for means.
pub(crate) fn mean(asked: &Description<'_>) -> Result<Box<dyn Question>, Refusal> {
    asked.rest.finish()?;
    let ([low, high], dimensions) = domain(asked.domain, "dimensions")?;
    let made = || {
        let bounds = Bounds::new(low, high)?;
        let (epsilon, dimensions) = (Epsilon::new(asked.epsilon)?, Dimensions::new(dimensions)?);
        Ok(match asked.name.as_str() {
            "duchi" => of_mechanism(Duchi::new(epsilon, bounds, dimensions)?),
            "hybrid" => of_mechanism(Hybrid::new(epsilon, bounds, dimensions)?),
            _ => of_mechanism(Piecewise::new(epsilon, bounds, dimensions)?),
        })
    };
    Ok(Box::new(made().map_err(|error: turnout_core::Error| error.to_string())?))
}

/// Reads the square wave mechanism.
pub(crate) fn square_wave(asked: &Description<'_>) -> Result<Box<dyn Question>, Refusal> {
    asked.rest.finish()?;
    let ([low, high], bins) = domain(asked.domain, "bins")?;
    let made = || {
        let (bounds, bins) = (Bounds::new(low, high)?, DomainSize::new(bins)?);
        let wave = SquareWave::new(Epsilon::new(asked.epsilon)?, bins)?;
        let draw = move |values: &[f64], selection: &Selection<'_>, streams: &AesStreams| {
            let reports = wave.randomize(&bounds.bins(values, bins)?, selection, streams)?;
            let layout = Layout { bytes: u16::BYTES, width: None };
            let report = |cell: u16| Report { words: vec![cell.word()], layout };
            Ok(reports.codes.into_iter().map(report).collect())
        };
        Ok(Numbers { bounds, dimensions: 1, draw: Box::new(draw) })
    };
    Ok(Box::new(made().map_err(|error: turnout_core::Error| error.to_string())?))
}

/// The bounds of numbers, and what stands beside them.
fn domain(text: &RawValue, beside: &str) -> Result<([f64; 2], u64), Refusal> {
    let mut members = Members::read(text)?;
    let found = (members.take("bounds")?, members.take(beside)?);
    members.finish()?;
    Ok(found)
}

fn of_mechanism(mechanism: impl Mechanism + 'static) -> Numbers {
    let (bounds, dimensions) = (mechanism.bounds(), mechanism.dimensions().len());
    let sampled = mechanism.sampled();
    let places = if sampled < dimensions { sampled } else { 0 };
    let most = mechanism.cells().max(if places > 0 { dimensions as u64 } else { 0 });
    let width = (dimensions > 1).then_some(places + sampled);
    let layout = Layout { bytes: narrowest(most), width };
    let draw = move |values: &[f64], selection: &Selection<'_>, streams: &AesStreams| {
        let reports = mechanism.randomize::<u32, _>(values, selection, streams)?;
        let coordinates = reports.coordinates.unwrap_or_default();
        let mut places = coordinates.chunks(places.max(1));
        // The places of a report come first, ascending, where it is about some of the numbers.
        let report = |cells: &[u32]| {
            let first = places.next().unwrap_or_default().iter().map(|place| place.word());
            Report { words: first.chain(cells.iter().map(|cell| cell.word())).collect(), layout }
        };
        Ok(reports.cells.chunks(sampled).map(report).collect())
    };
    Numbers { bounds, dimensions, draw: Box::new(draw) }
}

impl Numbers {
    /// The numbers of a line: one, or a list of JSON.
    fn find(&self, line: &str) -> Result<Vec<f64>, Refusal> {
        let inside = |value: &f64| (self.bounds.low()..=self.bounds.high()).contains(value);
        let found: Option<Vec<f64>> = if self.dimensions == 1 {
            number(line).map(|number| vec![number])
        } else {
            let texts: Option<Vec<&RawValue>> = serde_json::from_str(line).ok();
            texts.and_then(|texts| texts.iter().map(|text| number(text.get())).collect())
        };
        found.filter(|all| all.len() == self.dimensions && all.iter().all(inside)).ok_or_else(
            || {
                let (low, high) = (self.bounds.low(), self.bounds.high());
                if self.dimensions == 1 {
                    format!("is no number from {low} to {high}")
                } else {
                    format!("is no list of {} numbers from {low} to {high}", self.dimensions)
                }
            },
        )
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

impl Question for Numbers {
    fn reports(
        &self,
        answers: Answers<'_>,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        if answers.codes {
            return Err("numbers have no codes: leave --codes out".to_owned());
        }
        let values = answers.each(|line| self.find(line))?.concat();
        (self.draw)(&values, selection, &noise.streams()?)
            .map_err(|error: turnout_core::Error| error.to_string())
    }
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
