//! The question of a plan: one of the kinds that a plan can name.

use super::answers::{Answers, Domain};
use super::coded::Coded;
use super::error::{Error, Result};
use super::members::Members;
use super::noise::Noise;
use super::numbers;
use super::padded::Padded;
use super::parts::Parts;
use super::rounds::{Search, SecondRound};
use crate::frequency::Selection;
use crate::wire::Layout;
use crate::wire::json::Json;

/// What a plan says of its question.
pub(crate) struct Description<'j, 'a> {
    pub(crate) name: String,
    pub(crate) epsilon: f64,
    pub(crate) domain: &'j Json<'a>,
    /// What its kind alone has.
    pub(crate) rest: Members<'j, 'a>,
}

impl<'j, 'a> Description<'j, 'a> {
    /// Takes apart what every kind has.
    pub(crate) fn read(mut members: Members<'j, 'a>) -> Result<Self> {
        Ok(Self {
            name: members.take("name")?,
            epsilon: members.take("epsilon")?,
            domain: members.take("domain")?,
            rest: members,
        })
    }
}

/// Reports as bytes: those of the integers of one after the other, little-endian.
pub(crate) type Reports = Vec<u8>;

/// A question that was checked.
pub(crate) trait Question: Send + Sync {
    /// What answers to it are.
    fn domain(&self) -> &Domain;

    /// What its reports look like.
    fn layout(&self) -> Layout;

    /// The reports of those people who take part, in their order.
    fn reports(
        &self,
        answers: &Answers,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Reports>;
}

/// Reads what a plan asks.
pub(crate) fn read(question: &Json<'_>) -> Result<Box<dyn Question>> {
    let asked = Description::read(Members::read(question)?)?;
    match asked.name.as_str() {
        "prefixes" => Ok(Box::new(Search::read(asked)?)),
        "second_round" => Ok(Box::new(SecondRound::read(asked)?)),
        "joint_table" => Ok(Box::new(Coded::joint_table(asked)?)),
        "padded" => Ok(Box::new(Padded::read(asked)?)),
        "hierarchical" => Ok(Box::new(Parts::hierarchical(asked)?)),
        "pair_tables" => Ok(Box::new(Parts::pairs(asked)?)),
        "sampled_attribute" => Ok(Box::new(Parts::sampled(asked)?)),
        "split_budget" => Ok(Box::new(Parts::split(asked)?)),
        "square_wave" => numbers::square_wave(&asked),
        "duchi" | "hybrid" | "piecewise" => numbers::mean(&asked),
        "memoized" => Err(Error::Permanent),
        _ => Ok(Box::new(Coded::read(asked)?)),
    }
}
