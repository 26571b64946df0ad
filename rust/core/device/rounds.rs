//! The rounds of a protocol: a round of a search for frequent values, and a second round.

use super::answers::{Answers, Domain};
use super::coded::check;
use super::error::{Result, refused};
use super::labels::Labels;
use super::members::Members;
use super::noise::Noise;
use super::oracles::Randomizer;
use super::prefixes::Prefixes;
use super::question::{Description, Question, Reports};
use crate::frequency::{NodeProbabilities, Selection};
use crate::wire::Layout;

/// By how much an epsilon, which is a sum of floating-point logarithms here, may be rounded up.
const ROUNDING: f64 = 1e-12;

/// A round of a search: a person reports which of some prefixes the own value has.
pub(crate) struct Search {
    domain: Domain,
    oracle: Randomizer,
}

impl Search {
    /// Reads such a round.
    pub(crate) fn read(mut asked: Description<'_, '_>) -> Result<Self> {
        let prefixes = Prefixes::read(asked.domain)?;
        let number: u64 = asked.rest.take("number")?;
        let groups: u64 = asked.rest.take("groups")?;
        let described = asked.rest.take("oracle")?;
        asked.rest.finish()?;
        if number >= groups {
            return Err(refused(format!("the number of the round is {number}, of {groups}")));
        }
        let oracle = Randomizer::of_codes(described, asked.epsilon, prefixes.size())?;
        Ok(Self { domain: Domain::Prefixes(prefixes), oracle })
    }
}

impl Question for Search {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn layout(&self) -> Layout {
        self.oracle.layout()
    }

    fn reports(
        &self,
        answers: &Answers,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Reports> {
        self.oracle.reports(answers.codes()?, selection, &noise.streams()?)
    }
}

/// A second round: who takes part depends on the answer.
pub(crate) struct SecondRound {
    domain: Domain,
    oracle: Randomizer,
    /// The probability of taking part for each answer.
    rates: Vec<f64>,
}

impl SecondRound {
    /// Reads such a round.
    pub(crate) fn read(mut asked: Description<'_, '_>) -> Result<Self> {
        let labels = Labels::read(asked.domain)?;
        let rates: Vec<f64> = asked.rest.take("rates")?;
        let inner = Description::read(asked.rest.take::<Members<'_, '_>>("oracle")?)?;
        asked.rest.finish()?;
        if inner.name == "summation_histogram_encoding" {
            return Err(refused("the oracle of a second round must count reports"));
        }
        let size = Labels::read(inner.domain)?.size();
        if rates.len() as u64 != labels.size() || size != labels.size() {
            return Err(refused("the rates or the oracle of the second round are of other codes"));
        }
        let round =
            Self { domain: Domain::Labels(labels), oracle: Randomizer::read(inner, size)?, rates };
        round.check(asked.epsilon)?;
        Ok(round)
    }

    /// Refuses to say more than the plan states.
    fn check(&self, epsilon: f64) -> Result<()> {
        NodeProbabilities::new(&self.rates)?;
        let report = self.oracle.realized_epsilon();
        let least = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.rates.iter().copied().fold(0.0, f64::max);
        if most >= 1.0 && least < 1.0 {
            return Err(refused("who is silent in the second round cannot hold some answer"));
        }
        let silence = if most > least { (-least).ln_1p() - (-most).ln_1p() } else { 0.0 };
        let spent = (report + (most / least).ln()).max(silence);
        if spent > epsilon + ROUNDING {
            return Err(refused(format!(
                "the second round says {spent} nats, and states {epsilon}"
            )));
        }
        Ok(())
    }

    /// The codes that are reported, by those who do.
    fn codes(&self, codes: &[u32], selection: &Selection<'_>, noise: Noise) -> Result<Vec<u32>> {
        let asked = selection.participants(codes.len(), &noise.streams()?)?;
        let asked: Vec<u32> = chosen(codes, &asked).collect();
        let places: Vec<i64> = asked.iter().copied().map(i64::from).collect();
        let rates: Vec<f64> = chosen(&self.rates, &places).collect();
        let by_answer = Selection::personalized(NodeProbabilities::new(&rates)?);
        let streams = noise.part(&[2]).streams()?;
        let present = by_answer.participants(asked.len(), &streams)?;
        Ok(chosen(&asked, &present).collect())
    }
}

impl Question for SecondRound {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn layout(&self) -> Layout {
        self.oracle.layout()
    }

    fn reports(
        &self,
        answers: &Answers,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Reports> {
        let codes = answers.codes()?;
        check(codes, self.rates.len() as u64)?;
        let codes = self.codes(codes, selection, noise)?;
        self.oracle.reports(&codes, &Selection::everyone(), &noise.part(&[3]).streams()?)
    }
}

/// The items at some places.
pub(crate) fn chosen<'a, T: Copy>(
    items: &'a [T],
    places: &'a [i64],
) -> impl Iterator<Item = T> + 'a {
    places.iter().filter_map(|&place| items.get(usize::try_from(place).ok()?).copied())
}
