//! The rounds of protocols: a round that searches for frequent values, and a second round.

use turnout_core::frequency::{NodeProbabilities, Selection};

use crate::Refusal;
use crate::labels::Labels;
use crate::members::Members;
use crate::noise::Noise;
use crate::oracles::{Nodes, Randomizer};
use crate::prefixes::Prefixes;
use crate::question::{Answers, Description, Question};
use crate::reports::Report;

/// By how much an epsilon, which is a sum of floating-point logarithms here, may be rounded up.
const ROUNDING: f64 = 1e-12;

/// A round of a search: a node reports which of some prefixes its value has.
pub(crate) struct Search {
    prefixes: Prefixes,
    oracle: Randomizer,
}

impl Search {
    pub(crate) fn read(mut asked: Description<'_>) -> Result<Self, Refusal> {
        let prefixes = Prefixes::read(asked.domain.get())?;
        let number: u64 = asked.rest.take("number")?;
        let groups: u64 = asked.rest.take("groups")?;
        let described = asked.rest.take("oracle")?;
        asked.rest.finish()?;
        if number >= groups {
            return Err(format!("the number of the round is {number}, of {groups}"));
        }
        let oracle = Randomizer::of_codes(described, asked.epsilon, prefixes.size().into())?;
        Ok(Self { prefixes, oracle })
    }
}

impl Question for Search {
    fn reports(
        &self,
        answers: Answers<'_>,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        let codes = answers.each(|line| {
            if answers.codes {
                return Labels::Integers(self.prefixes.size().into()).find(line, true);
            }
            self.prefixes.find(line).ok_or_else(|| format!("is none of the {}", self.prefixes))
        })?;
        self.oracle.reports(Nodes { codes: &codes, selection, streams: &noise.streams()? })
    }
}

/// A second round: who takes part depends on the answer.
pub(crate) struct SecondRound {
    labels: Labels,
    oracle: Randomizer,
    /// The probability of taking part for each answer.
    rates: Vec<f64>,
}

impl SecondRound {
    pub(crate) fn read(mut asked: Description<'_>) -> Result<Self, Refusal> {
        let labels = Labels::read(asked.domain)?;
        let rates: Vec<f64> = asked.rest.take("rates")?;
        let inner = Description::read(asked.rest.take::<Members<'_>>("oracle")?)?;
        asked.rest.finish()?;
        if inner.name == "summation_histogram_encoding" {
            return Err("the oracle of a second round must count reports".to_owned());
        }
        let size = Labels::read(inner.domain)?.size();
        if rates.len() as u64 != labels.size() || size != labels.size() {
            return Err("the rates or the oracle of the second round are of other codes".to_owned());
        }
        let round = Self { labels, oracle: Randomizer::read(inner, size)?, rates };
        round.check(asked.epsilon)?;
        Ok(round)
    }

    /// Refuses to say more than the plan states.
    fn check(&self, epsilon: f64) -> Result<(), Refusal> {
        NodeProbabilities::new(&self.rates).map_err(|error| error.to_string())?;
        let report = self.oracle.realized_epsilon;
        let least = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.rates.iter().copied().fold(0.0, f64::max);
        if most >= 1.0 && least < 1.0 {
            return Err("who is silent in the second round cannot hold some answer".to_owned());
        }
        let silence = if most > least { (-least).ln_1p() - (-most).ln_1p() } else { 0.0 };
        let spent = (report + (most / least).ln()).max(silence);
        if spent > epsilon + ROUNDING {
            return Err(format!("the second round says {spent} nats, and states {epsilon}"));
        }
        Ok(())
    }

    /// The codes that are reported, by those who do.
    fn codes(
        &self,
        codes: &[u32],
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<u32>, Refusal> {
        let refused = |error: turnout_core::Error| error.to_string();
        let asked = selection.participants(codes.len(), &noise.streams()?).map_err(refused)?;
        let asked: Vec<u32> = chosen(codes, &asked).collect();
        let places: Vec<i64> = asked.iter().copied().map(i64::from).collect();
        let rates: Vec<f64> = chosen(&self.rates, &places).collect();
        let by_answer = Selection::personalized(NodeProbabilities::new(&rates).map_err(refused)?);
        let streams = noise.part(&[2]).streams()?;
        let present = by_answer.participants(asked.len(), &streams).map_err(refused)?;
        Ok(chosen(&asked, &present).collect())
    }
}

impl Question for SecondRound {
    fn reports(
        &self,
        answers: Answers<'_>,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        let codes = answers.each(|line| self.labels.find(line, answers.codes))?;
        let codes = &self.codes(&codes, selection, noise)?;
        let (selection, streams) = (&Selection::everyone(), &noise.part(&[3]).streams()?);
        self.oracle.reports(Nodes { codes, selection, streams })
    }
}

/// The items at some places.
pub(crate) fn chosen<'a, T: Copy>(
    items: &'a [T],
    places: &'a [i64],
) -> impl Iterator<Item = T> + 'a {
    places.iter().filter_map(|&place| items.get(usize::try_from(place).ok()?).copied())
}
