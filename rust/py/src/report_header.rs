//! Binding of the headers of report files.

use pyo3::prelude::*;
use turnout_core::frequency::DesignSums;
use turnout_core::wire::{self, Key, LeftOut, NodeGroup, NodeGroups, ReportFacts, Source};

use crate::errors::{Failure, Result};
use crate::noise::exactly;
use crate::wire::{Plan, written};

/// Sums of probabilities, and of their squares.
pub(crate) type Design = (u128, u128);

/// Groups: the names of their columns. Each group has its key in JSON, its nodes, the sums of their
/// probabilities, and its rows without an answer.
type Groups = (Vec<String>, Vec<(String, u64, Option<Design>, u64)>);

/// The numbers of what is left out.
pub(crate) type Numbers = (u64, u64, u64, u64, u64);

/// The header of a report file, checked.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct ReportHeader(wire::ReportHeader);

#[pymethods]
impl ReportHeader {
    /// The header of a file of reports of a plan. The source is an
    /// identifier of 16 bytes, or the name of a job and the number of a part.
    #[new]
    #[pyo3(signature = (plan, nodes, reports, design, groups, pseudonyms, source, left_out))]
    #[expect(clippy::too_many_arguments, reason = "a header has as many members")]
    fn new(
        plan: &Plan,
        nodes: u64,
        reports: u64,
        design: Option<Design>,
        groups: Option<Groups>,
        pseudonyms: bool,
        source: GivenSource,
        left_out: Numbers,
    ) -> Result<Self> {
        let facts = ReportFacts {
            nodes,
            reports,
            design: design.map(design_sums),
            groups: groups.map(node_groups).transpose()?,
            pseudonyms,
            source: match source {
                GivenSource::Id(id) => Source::Id(exactly("id", &id)?),
                GivenSource::Part((job, number)) => Source::Part { job, number },
            },
            left_out: left_out_of(left_out),
        };
        wire::ReportHeader::new(plan.inner().clone(), facts)
            .map(Self)
            .map_err(|error| written(&error))
    }

    /// Reads a header.
    #[staticmethod]
    fn read(text: &str) -> Result<Self> {
        Ok(Self(wire::ReportHeader::read(text)?))
    }

    /// Its text.
    #[getter]
    fn text(&self) -> String {
        self.0.text()
    }

    #[getter]
    fn plan(&self) -> Plan {
        Plan::of(self.0.plan().clone())
    }

    #[getter]
    fn nodes(&self) -> u64 {
        self.0.facts().nodes
    }

    #[getter]
    fn reports(&self) -> u64 {
        self.0.facts().reports
    }

    #[getter]
    fn design(&self) -> Option<Design> {
        self.0.facts().design.map(numbers_of_design)
    }

    #[getter]
    fn groups(&self) -> Option<Groups> {
        let NodeGroups { columns, groups } = self.0.facts().groups.clone()?;
        let each = groups.into_iter().map(|group| {
            let design = group.design.map(numbers_of_design);
            (group.key.text().to_owned(), group.nodes, design, group.unanswered)
        });
        Some((columns, each.collect()))
    }

    #[getter]
    fn pseudonyms(&self) -> bool {
        self.0.facts().pseudonyms
    }

    /// The name of the job and the number of the part, of a file that is one.
    #[getter]
    fn part(&self) -> Option<(String, u64)> {
        match &self.0.facts().source {
            Source::Part { job, number } => Some((job.clone(), *number)),
            Source::Id(_) => None,
        }
    }

    /// What tells the file from all others, and not from its copies.
    #[getter]
    fn identity(&self) -> [u8; 16] {
        self.0.facts().source.identity()
    }

    #[getter]
    fn left_out(&self) -> Numbers {
        numbers_of_left_out(self.0.facts().left_out)
    }
}

/// Where reports come from.
#[derive(FromPyObject)]
enum GivenSource {
    Id(Vec<u8>),
    Part((String, u64)),
}

fn node_groups((columns, groups): Groups) -> Result<NodeGroups> {
    let group = |(key, nodes, design, unanswered): (String, u64, Option<Design>, u64)| {
        let key = key_of(&key)?;
        Ok(NodeGroup { key, nodes, design: design.map(design_sums), unanswered })
    };
    Ok(NodeGroups { columns, groups: groups.into_iter().map(group).collect::<Result<_>>()? })
}

pub(crate) const fn design_sums((probability, probability_squared): Design) -> DesignSums {
    DesignSums { probability, probability_squared }
}

pub(crate) const fn numbers_of_design(design: DesignSums) -> Design {
    (design.probability, design.probability_squared)
}

pub(crate) const fn left_out_of(numbers: Numbers) -> LeftOut {
    let (unanswered, ungrouped, duplicates, refused, absent) = numbers;
    LeftOut { unanswered, ungrouped, duplicates, refused, absent }
}

pub(crate) const fn numbers_of_left_out(left_out: LeftOut) -> Numbers {
    let LeftOut { unanswered, ungrouped, duplicates, refused, absent } = left_out;
    (unanswered, ungrouped, duplicates, refused, absent)
}

/// The key of a group, which is given in JSON.
pub(crate) fn key_of(text: &str) -> Result<Key> {
    Key::read(text).ok_or_else(|| Failure::Value("no such key".to_owned()))
}
