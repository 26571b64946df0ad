//! Questions whose answers have codes for one randomizer.

use super::answers::{Answers, Domain};
use super::columns::{Columns, MOST_CELLS, combined};
use super::error::{Error, Result, refused};
use super::labels::Labels;
use super::noise::Noise;
use super::oracles::Randomizer;
use super::question::{Description, Question, Reports};
use crate::frequency::Selection;
use crate::wire::Layout;

/// One question, or all combinations of answers to several.
pub(crate) struct Coded {
    domain: Domain,
    oracle: Randomizer,
}

impl Coded {
    /// Reads a question that an oracle asks.
    pub(crate) fn read(asked: Description<'_, '_>) -> Result<Self> {
        let labels = Labels::read(asked.domain)?;
        let oracle = Randomizer::read(asked, labels.size())?;
        Ok(Self { domain: Domain::Labels(labels), oracle })
    }

    /// Reads a question for all combinations of answers.
    pub(crate) fn joint_table(mut asked: Description<'_, '_>) -> Result<Self> {
        let columns = Columns::read(asked.domain)?;
        let cells = columns.sizes().iter().fold(1, |all: u64, &size| all.saturating_mul(size));
        if cells > MOST_CELLS {
            return Err(refused(format!("a joint table has at most {MOST_CELLS} cells")));
        }
        let oracle = Randomizer::of_codes(asked.rest.take("oracle")?, asked.epsilon, cells)?;
        asked.rest.finish()?;
        Ok(Self { domain: Domain::Columns(columns), oracle })
    }
}

impl Question for Coded {
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
        let Domain::Columns(columns) = &self.domain else {
            return self.oracle.reports(codes, selection, &noise.streams()?);
        };
        columns.check(codes)?;
        let sizes = columns.sizes();
        let cells: Vec<u32> =
            codes.chunks_exact(sizes.len()).map(|row| combined(row, &sizes)).collect();
        self.oracle.reports(&cells, selection, &noise.streams()?)
    }
}

/// The error for codes outside a domain, by the first of them.
pub(crate) fn check(codes: &[u32], size: u64) -> Result<()> {
    match codes.iter().position(|&code| u64::from(code) >= size) {
        None => Ok(()),
        Some(position) => {
            Err(Error::Answer { position, reason: format!("is no code below {size}") })
        }
    }
}
