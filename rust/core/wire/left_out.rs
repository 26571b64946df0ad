//! Numbers that several documents have: what a collection leaves out, and sums of probabilities.

use core::fmt;

use super::json::Json;
use crate::frequency::DesignSums;

/// How many rows or messages a collection leaves out, by reason. No other number includes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Rows without an answer.
    pub unanswered: u64,
    /// Rows without a group.
    pub ungrouped: u64,
    /// Extra rows, or reports, of a person who already has one that counts.
    pub duplicates: u64,
    /// Messages that were refused.
    pub refused: u64,
    /// Rows of parts of a job that are missing.
    pub absent: u64,
}

impl LeftOut {
    /// What messages say that it must be.
    pub(super) const EXPECTED: &str = "five numbers of which one is above 0";

    /// Tells whether nothing is left out.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Reads what stands in a document only if anything is left out.
    pub(super) fn of(json: &Json<'_>) -> Option<Self> {
        let names = ["unanswered", "ungrouped", "duplicates", "refused", "absent"];
        let number = |name| json.member(name)?.unsigned();
        let found = Self {
            unanswered: number("unanswered")?,
            ungrouped: number("ungrouped")?,
            duplicates: number("duplicates")?,
            refused: number("refused")?,
            absent: number("absent")?,
        };
        (json.has_only(&names, &[]) && !found.is_nothing()).then_some(found)
    }
}

/// As it stands in documents.
impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unanswered, ungrouped, duplicates, refused, absent } = self;
        write!(
            formatter,
            r#"{{"absent":{absent},"duplicates":{duplicates},"refused":{refused},"unanswered":{unanswered},"ungrouped":{ungrouped}}}"#
        )
    }
}

/// Writes sums of probabilities.
pub(super) fn design_text(design: &DesignSums) -> String {
    let DesignSums { probability, probability_squared } = design;
    format!(r#"{{"probability":{probability},"probability_squared":{probability_squared}}}"#)
}

/// Reads sums of probabilities.
pub(super) fn design_of(json: &Json<'_>) -> Option<DesignSums> {
    let number = |name| json.member(name)?.unsigned();
    let found = DesignSums {
        probability: number("probability")?,
        probability_squared: number("probability_squared")?,
    };
    let fine = json.has_only(&["probability", "probability_squared"], &[])
        && found.probability_squared <= found.probability;
    fine.then_some(found)
}
