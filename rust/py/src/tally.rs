//! Binding of stored tallies.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use turnout_core::wire::{GroupsFacts, Origin, StoredGroups, StoredTally, TallyFacts};

use crate::errors::{Failure, Result};
use crate::report_header::{
    Design, Numbers, design_sums, key_of, left_out_of, numbers_of_design, numbers_of_left_out,
};
use crate::wire::{Plan, written};

/// Collections, and rounds with their nodes.
type GivenOrigin = (Vec<[u8; 16]>, Vec<([u8; 16], u64)>);

/// Nodes, reports, sums of probabilities, origin, and what is left out.
type Facts = (u64, u64, Option<Design>, GivenOrigin, Numbers);

/// The names of the columns, the groups with their keys in JSON, the origin of all, and what is left out
/// and of no group.
type Groups = (Vec<String>, Vec<(String, Facts)>, GivenOrigin, Numbers);

fn origin((identities, rounds): GivenOrigin) -> Result<Origin> {
    let origin = Origin::new(identities, rounds);
    origin.ok_or_else(|| Failure::Value("no such origin".to_owned()))
}

fn given_origin(origin: &Origin) -> GivenOrigin {
    let rounds = origin.rounds().iter().map(|(&name, &nodes)| (name, nodes));
    (origin.identities().iter().copied().collect(), rounds.collect())
}

fn facts((nodes, received, design, whence, left_out): Facts) -> Result<TallyFacts> {
    let (design, left_out) = (design.map(design_sums), left_out_of(left_out));
    Ok(TallyFacts { nodes, received, design, origin: origin(whence)?, left_out })
}

fn given_facts(facts: &TallyFacts) -> Facts {
    let design = facts.design.map(numbers_of_design);
    let left_out = numbers_of_left_out(facts.left_out);
    (facts.nodes, facts.received, design, given_origin(&facts.origin), left_out)
}

/// Writes a tally of a plan, by the bytes of its sums.
#[pyfunction]
#[pyo3(signature = (plan, known, sums))]
pub(crate) fn write_tally<'py>(
    py: Python<'py>,
    plan: &Plan,
    known: Facts,
    sums: &[u8],
) -> Result<Bound<'py, PyBytes>> {
    let tally = StoredTally::new(plan.inner().clone(), facts(known)?, sums);
    let data = py.detach(|| tally.and_then(|tally| tally.to_bytes()));
    Ok(PyBytes::new(py, &data.map_err(|error| written(&error))?))
}

/// Reads a tally: its plan, what is known of it, and the bytes of its sums.
#[pyfunction]
pub(crate) fn read_tally<'py>(
    py: Python<'py>,
    data: &[u8],
) -> Result<(Plan, Facts, Bound<'py, PyBytes>)> {
    let tally = py.detach(|| StoredTally::read(data))?;
    let sums = PyBytes::new(py, tally.sums());
    Ok((Plan::of(tally.plan().clone()), given_facts(tally.facts()), sums))
}

/// Writes a tally by groups, by the bytes of the sums of all groups.
#[pyfunction]
#[pyo3(signature = (plan, known, sums))]
pub(crate) fn write_groups<'py>(
    py: Python<'py>,
    plan: &Plan,
    known: Groups,
    sums: &[u8],
) -> Result<Bound<'py, PyBytes>> {
    let (columns, groups, whence, left_out) = known;
    let group = |(key, known): (String, Facts)| Ok((key_of(&key)?, facts(known)?));
    let known = GroupsFacts {
        columns,
        groups: groups.into_iter().map(group).collect::<Result<_>>()?,
        origin: origin(whence)?,
        left_out: left_out_of(left_out),
    };
    let tally = StoredGroups::new(plan.inner().clone(), known, sums);
    let data = py.detach(|| tally.and_then(|tally| tally.to_bytes()));
    Ok(PyBytes::new(py, &data.map_err(|error| written(&error))?))
}

/// Reads a tally by groups: its plan, what is known of it, and the bytes of all sums.
#[pyfunction]
pub(crate) fn read_groups<'py>(
    py: Python<'py>,
    data: &[u8],
) -> Result<(Plan, Groups, Bound<'py, PyBytes>)> {
    let tally = py.detach(|| StoredGroups::read(data))?;
    let GroupsFacts { columns, groups, origin, left_out } = tally.facts();
    let groups = groups.iter().map(|(key, facts)| (key.text().to_owned(), given_facts(facts)));
    let left_out = numbers_of_left_out(*left_out);
    let known = (columns.clone(), groups.collect(), given_origin(origin), left_out);
    Ok((Plan::of(tally.plan().clone()), known, PyBytes::new(py, tally.sums())))
}
