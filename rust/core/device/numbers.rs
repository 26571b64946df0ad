//! Questions for numbers within bounds: for a mean (of one number or several), or for a
//! distribution.

use super::answers::{Answers, Domain};
use super::error::{Error, Result};
use super::interval::Interval;
use super::noise::Noise;
use super::oracles::bytes;
use super::question::{Description, Question, Reports};
use crate::frequency::{FrequencyOracle, Selection, SquareWave};
use crate::mean::{Dimensions, Duchi, Hybrid, Mechanism, Piecewise};
use crate::parameters::{DomainSize, Epsilon};
use crate::random::AesStreams;
use crate::wire::{Integer, Layout};

/// Makes the reports of the people who take part.
type Draw = dyn Fn(&[f64], &Selection<'_>, &AesStreams) -> crate::Result<Reports> + Send + Sync;

/// A question for numbers.
struct Numbers {
    domain: Domain,
    layout: Layout,
    draw: Box<Draw>,
}

/// Reads a mechanism for means.
pub(crate) fn mean(asked: &Description<'_, '_>) -> Result<Box<dyn Question>> {
    asked.rest.finish()?;
    let (bounds, dimensions) = Interval::read(asked.domain, "dimensions")?;
    let (epsilon, dimensions) = (Epsilon::new(asked.epsilon)?, Dimensions::new(dimensions)?);
    Ok(Box::new(match asked.name.as_str() {
        "duchi" => of_mechanism(Duchi::new(epsilon, bounds, dimensions)?),
        "hybrid" => of_mechanism(Hybrid::new(epsilon, bounds, dimensions)?),
        _ => of_mechanism(Piecewise::new(epsilon, bounds, dimensions)?),
    }))
}

/// Reads the square wave mechanism.
pub(crate) fn square_wave(asked: &Description<'_, '_>) -> Result<Box<dyn Question>> {
    asked.rest.finish()?;
    let (bounds, bins) = Interval::read(asked.domain, "bins")?;
    let bins = DomainSize::new(bins)?;
    let wave = SquareWave::new(Epsilon::new(asked.epsilon)?, bins)?;
    let layout = Layout::one(<u16 as super::oracles::Word>::INTEGER);
    let draw = move |values: &[f64], selection: &Selection<'_>, streams: &AesStreams| {
        let reports = wave.randomize(&bounds.bins(values, bins)?, selection, streams)?;
        Ok(bytes(&reports.codes, layout))
    };
    let domain = Domain::Numbers(Interval::new(bounds, 1));
    Ok(Box::new(Numbers { domain, layout, draw: Box::new(draw) }))
}

fn of_mechanism(mechanism: impl Mechanism + Send + 'static) -> Numbers {
    let (bounds, dimensions) = (mechanism.bounds(), mechanism.dimensions().len());
    let sampled = mechanism.sampled();
    let places = if sampled < dimensions { sampled } else { 0 };
    let most = mechanism.cells().max(if places > 0 { dimensions as u64 } else { 0 });
    let integer = Integer::narrowest(most);
    let layout =
        if dimensions > 1 { Layout::row(integer, places + sampled) } else { Layout::one(integer) };
    let draw = move |values: &[f64], selection: &Selection<'_>, streams: &AesStreams| {
        let reports = mechanism.randomize::<u32, _>(values, selection, streams)?;
        let coordinates = reports.coordinates.unwrap_or_default();
        let mut places = coordinates.chunks(places.max(1));
        let mut made = Vec::new();
        for cells in reports.cells.chunks(sampled) {
            // The places of a report come first, ascending, where it is about some of the numbers.
            made.extend(bytes(places.next().unwrap_or_default(), layout));
            made.extend(bytes(cells, layout));
        }
        Ok(made)
    };
    let domain = Domain::Numbers(Interval::new(bounds, dimensions));
    Numbers { domain, layout, draw: Box::new(draw) }
}

impl Question for Numbers {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn reports(
        &self,
        answers: &Answers,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Reports> {
        let numbers = answers.numbers()?;
        if !numbers.len().is_multiple_of(self.domain.columns()) {
            return Err(Error::OtherAnswers(
                "an answer has fewer numbers than the question asks for",
            ));
        }
        Ok((self.draw)(numbers, selection, &noise.streams()?)?)
    }
}
