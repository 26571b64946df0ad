//! What is asked: the answers, and what makes reports of them. Beside single oracles a plan can name
//! the rounds of protocols: a round that searches for frequent values, and a second round.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use turnout::frequency::{NodeProbabilities, Selection};

use crate::Refusal;
use crate::labels::Labels;
use crate::noise::Noise;
use crate::oracles::{Description, Nodes, Parameters, Report};
use crate::prefixes::Prefixes;

/// The members of an object as they stand in a plan.
pub(crate) type Members<'a> = BTreeMap<String, &'a RawValue>;

/// By how much an epsilon, which is a sum of floating-point logarithms here, may be rounded up.
const ROUNDING: f64 = 1e-12;

/// A question that was checked.
#[derive(Debug)]
pub(crate) struct Question {
    /// The answers that can be given.
    pub(crate) labels: Labels,
    /// What randomizes their codes.
    pub(crate) oracle: Description,
    second: Option<SecondRound>,
}

/// Who takes part in a second round depends on the answer.
#[derive(Debug)]
struct SecondRound {
    /// What a report, or silence, may say, in nats.
    epsilon: f64,
    /// The probability of taking part for each answer.
    rates: Vec<f64>,
    /// Whether those who do not take part report one code more than there are answers.
    hidden: bool,
}

impl Question {
    /// Reads what a plan asks.
    pub(crate) fn read(mut members: Members<'_>) -> Result<Self, Refusal> {
        let name: String = take(&mut members, "name")?;
        match name.as_str() {
            "prefixes" => Self::search(members),
            "second_round" => Self::second(members),
            _ => {
                let domain: &RawValue = take(&mut members, "domain")?;
                let labels = Labels::read(domain.get())?;
                let oracle = single(name, labels.size(), members)?;
                Ok(Self { labels, oracle, second: None })
            }
        }
    }

    /// A round of a search: a node reports which of some prefixes its value has.
    fn search(mut members: Members<'_>) -> Result<Self, Refusal> {
        let epsilon: f64 = take(&mut members, "epsilon")?;
        let domain: &RawValue = take(&mut members, "domain")?;
        let labels = Labels::Prefixes(Prefixes::read(domain.get())?);
        let number: u64 = take(&mut members, "number")?;
        let groups: u64 = take(&mut members, "groups")?;
        let (codes, oracle) = inner(&mut members)?;
        finish(&members)?;
        if number >= groups {
            return Err(format!("the number of the round is {number}, of {groups}"));
        }
        let fits = matches!(codes, Labels::Integers(size) if size == labels.size());
        if !fits || oracle.epsilon.to_bits() != epsilon.to_bits() {
            return Err("the oracle of the round is of another epsilon or other codes".to_owned());
        }
        Ok(Self { labels, oracle, second: None })
    }

    /// A second round: whether a node takes part depends on its answer.
    fn second(mut members: Members<'_>) -> Result<Self, Refusal> {
        let epsilon: f64 = take(&mut members, "epsilon")?;
        let domain: &RawValue = take(&mut members, "domain")?;
        let labels = Labels::read(domain.get())?;
        let rates: Vec<f64> = take(&mut members, "rates")?;
        let hidden: bool = take(&mut members, "hidden")?;
        let (codes, oracle) = inner(&mut members)?;
        finish(&members)?;
        if oracle.name == "summation_histogram_encoding" {
            return Err("the oracle of a second round must count reports".to_owned());
        }
        if rates.len() as u64 != labels.size() || codes.size() != labels.size() + u64::from(hidden)
        {
            return Err("the rates or the oracle of the second round are of other codes".to_owned());
        }
        Ok(Self { labels, oracle, second: Some(SecondRound { epsilon, rates, hidden }) })
    }

    /// The reports of those nodes that take part, in the order of the nodes.
    pub(crate) fn reports(
        &self,
        codes: &[u32],
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        let oracle = self.oracle.randomizer()?;
        let Some(second) = &self.second else {
            return oracle.reports(Nodes { codes, selection, streams: &noise.streams()? });
        };
        second.check(oracle.realized_epsilon)?;
        let codes = second.codes(codes, selection, noise)?;
        let (selection, streams) = (&Selection::everyone(), &noise.part(3).streams()?);
        oracle.reports(Nodes { codes: &codes, selection, streams })
    }
}

impl SecondRound {
    /// Refuses to say more than the plan states, if the report of an oracle says so much.
    fn check(&self, report: f64) -> Result<(), Refusal> {
        NodeProbabilities::new(&self.rates).map_err(|error| error.to_string())?;
        let least = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.rates.iter().copied().fold(0.0, f64::max);
        let spent = if self.hidden {
            (report.exp_m1() * most).ln_1p()
        } else if most >= 1.0 && least < 1.0 {
            return Err("who is silent in the second round cannot hold some answer".to_owned());
        } else {
            let silence = if most > least { (-least).ln_1p() - (-most).ln_1p() } else { 0.0 };
            (report + (most / least).ln()).max(silence)
        };
        if spent > self.epsilon + ROUNDING {
            let stated = self.epsilon;
            return Err(format!("the second round says {spent} nats, and states {stated}"));
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
        let refused = |error: turnout::Error| error.to_string();
        let asked = selection.participants(codes.len(), &noise.streams()?).map_err(refused)?;
        let asked: Vec<u32> = chosen(codes, &asked).collect();
        let places: Vec<i64> = asked.iter().copied().map(i64::from).collect();
        let rates: Vec<f64> = chosen(&self.rates, &places).collect();
        let by_answer = Selection::personalized(NodeProbabilities::new(&rates).map_err(refused)?);
        let streams = noise.part(2).streams()?;
        let present = by_answer.participants(asked.len(), &streams).map_err(refused)?;
        let kept = chosen(&asked, &present);
        if !self.hidden {
            return Ok(kept.collect());
        }
        let dummy = u32::try_from(self.rates.len()).map_err(|error| error.to_string())?;
        let mut all = vec![dummy; asked.len()];
        for (&place, code) in present.iter().zip(kept) {
            if let Some(slot) = usize::try_from(place).ok().and_then(|place| all.get_mut(place)) {
                *slot = code;
            }
        }
        Ok(all)
    }
}

/// The items at some places.
fn chosen<'a, T: Copy>(items: &'a [T], places: &'a [i64]) -> impl Iterator<Item = T> + 'a {
    places.iter().filter_map(|&place| items.get(usize::try_from(place).ok()?).copied())
}

/// Takes a member that must be there.
fn take<'a, T: Deserialize<'a>>(members: &mut Members<'a>, name: &str) -> Result<T, Refusal> {
    let value = members.remove(name).ok_or_else(|| format!("the oracle has no {name}"))?;
    serde_json::from_str(value.get()).map_err(|error| format!("not an oracle: {error}"))
}

/// Refuses members that nobody took.
fn finish(members: &Members<'_>) -> Result<(), Refusal> {
    match members.keys().next() {
        None => Ok(()),
        Some(name) => Err(format!("the oracle has an unknown parameter {name}")),
    }
}

/// The oracle that a round reports through, and what it knows of codes.
fn inner(members: &mut Members<'_>) -> Result<(Labels, Description), Refusal> {
    let mut members: Members<'_> = take(members, "oracle")?;
    let name = take(&mut members, "name")?;
    let domain: &RawValue = take(&mut members, "domain")?;
    let labels = Labels::read(domain.get())?;
    let oracle = single(name, labels.size(), members)?;
    Ok((labels, oracle))
}

/// A single oracle of so many codes, of whose members those are left that it alone has.
fn single(name: String, size: u64, mut members: Members<'_>) -> Result<Description, Refusal> {
    let epsilon = take(&mut members, "epsilon")?;
    let parameters: Result<BTreeMap<String, u64>, Refusal> = members
        .into_iter()
        .map(|(parameter, value)| match serde_json::from_str(value.get()) {
            Ok(value) => Ok((parameter, value)),
            Err(_) => Err(format!("this device does not have the {parameter} of {name}")),
        })
        .collect();
    let parameters = Parameters(parameters?);
    Ok(Description { name, epsilon, size, parameters })
}
