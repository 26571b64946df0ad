//! What is asked: a question of one of the kinds that a plan can name.

use serde_json::value::RawValue;
use turnout_core::frequency::Selection;

use crate::Refusal;
use crate::columns::JointTable;
use crate::labels::Coded;
use crate::members::Members;
use crate::noise::Noise;
use crate::numbers;
use crate::padded::Padded;
use crate::parts::Parts;
use crate::reports::Report;
use crate::rounds::{Search, SecondRound};

/// What a plan says of its question.
pub(crate) struct Description<'a> {
    pub(crate) name: String,
    pub(crate) epsilon: f64,
    pub(crate) domain: &'a RawValue,
    /// What its kind alone has.
    pub(crate) rest: Members<'a>,
}

impl<'a> Description<'a> {
    /// Takes apart what every kind has.
    pub(crate) fn read(mut members: Members<'a>) -> Result<Self, Refusal> {
        Ok(Self {
            name: members.take("name")?,
            epsilon: members.take("epsilon")?,
            domain: members.take("domain")?,
            rest: members,
        })
    }
}

/// The answers of all nodes, a line each.
#[derive(Clone, Copy)]
pub(crate) struct Answers<'a> {
    pub(crate) lines: &'a [&'a str],
    /// Whether they are codes, and not labels.
    pub(crate) codes: bool,
}

impl<'a> Answers<'a> {
    /// What is made of each line; refusals say which line it is, and never what stands there.
    pub(crate) fn each<T>(
        self,
        made: impl Fn(&'a str) -> Result<T, Refusal>,
    ) -> Result<Vec<T>, Refusal> {
        let numbered = |(line, &answer): (usize, &&'a str)| {
            made(answer).map_err(|reason| format!("answer {} {reason}", line + 1))
        };
        self.lines.iter().enumerate().map(numbered).collect()
    }
}

/// A question that was checked.
pub(crate) trait Question {
    /// The reports of those nodes that take part, in the order of the nodes.
    fn reports(
        &self,
        answers: Answers<'_>,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal>;
}

/// Reads what a plan asks.
pub(crate) fn read(members: Members<'_>) -> Result<Box<dyn Question>, Refusal> {
    let asked = Description::read(members)?;
    match asked.name.as_str() {
        "prefixes" => Ok(Box::new(Search::read(asked)?)),
        "second_round" => Ok(Box::new(SecondRound::read(asked)?)),
        "joint_table" => Ok(Box::new(JointTable::read(asked)?)),
        "padded" => Ok(Box::new(Padded::read(asked)?)),
        "hierarchical" => Ok(Box::new(Parts::hierarchical(asked)?)),
        "pair_tables" => Ok(Box::new(Parts::pairs(asked)?)),
        "sampled_attribute" => Ok(Box::new(Parts::sampled(asked)?)),
        "split_budget" => Ok(Box::new(Parts::split(asked)?)),
        "square_wave" => numbers::square_wave(&asked),
        "duchi" | "hybrid" | "piecewise" => numbers::mean(&asked),
        "memoized" => {
            Err("memoized has permanent answers, and this device keeps nothing".to_owned())
        }
        _ => Ok(Box::new(Coded::read(asked)?)),
    }
}
