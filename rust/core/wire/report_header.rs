//! The header of a report file: what the metadata of a Parquet or Arrow file says about its
//! reports.

use std::collections::HashSet;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::document::Document;
use super::error::Error;
use super::groups::Key;
use super::hex;
use super::json::Json;
use super::left_out::{LeftOut, design_of, design_text};
use super::plan::{Participation, Plan, quoted};
use crate::frequency::DesignSums;

/// The beginning of the checksum of a report file. Nothing else in the file looks like it.
pub const SEAL: &str = "turnout-sha256:";

/// The same in a text of JSON. "t" and "-" never end or begin an escape.
const ESCAPED: &str = r"turnout\u002dsha256:";

const HEADER: Document = Document {
    word: "report file",
    format: "turnout-reports",
    version: 2,
    members: &["nodes", "plan", "reports"],
    optional: &["design", "groups", "id", "left_out", "part", "pseudonyms"],
};

const COUNT: &str = "an integer from 0 to 18446744073709551615";

/// What a report file says beyond its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFacts {
    /// The number of nodes, reporting or not.
    pub nodes: u64,
    /// The number of reports.
    pub reports: u64,
    /// Sums of the probabilities of all nodes; present if and only if each node has its own.
    pub design: Option<DesignSums>,
    /// The groups of the nodes, if they have any.
    pub groups: Option<NodeGroups>,
    /// Whether each report has a pseudonym.
    pub pseudonyms: bool,
    /// The origin of the reports.
    pub source: Source,
    /// How many rows or messages are left out; none of these numbers includes them.
    pub left_out: LeftOut,
}

/// The groups of the nodes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGroups {
    /// The names of the columns: at least one, all different.
    pub columns: Vec<String>,
    /// The groups, each with its key.
    pub groups: Vec<NodeGroup>,
}

/// A group of the nodes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGroup {
    /// Its values, one for each column.
    pub key: Key,
    /// The number of its nodes, reporting or not.
    pub nodes: u64,
    /// Sums of their probabilities; present if and only if each node has its own.
    pub design: Option<DesignSums>,
    /// How many of its rows are left out because they have no answer.
    pub unanswered: u64,
}

/// The origin of the reports of a file. It tells whether two files are copies of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The reports have 128 random bits of their own.
    Id([u8; 16]),
    /// The reports are a part of a job. Making the part again gives the same bytes.
    Part {
        /// The name of the job, which is random.
        job: String,
        /// Which part it is.
        number: u64,
    },
}

impl Source {
    /// Returns bytes that all copies of the file share, and no other file has.
    #[must_use]
    pub fn identity(&self) -> [u8; 16] {
        match self {
            Self::Id(id) => *id,
            Self::Part { job, number } => {
                let digest: [u8; 32] = Sha256::digest(format!("{job}/{number}")).into();
                let [first, _] = digest.as_chunks().0 else { return [0; 16] };
                *first
            }
        }
    }
}

/// The header of a report file: its plan, and facts that contradict neither it nor one another.
///
/// ```
/// use turnout_core::wire::{LeftOut, Participation, Plan, ReportFacts, ReportHeader, Source};
///
/// let question = r#"{"domain":{"integers":3},"epsilon":1.0,"name":"direct_encoding"}"#;
/// let plan = Plan::new(question, Participation::Everyone)?;
/// let facts = ReportFacts {
///     nodes: 1000,
///     reports: 1000,
///     design: None,
///     groups: None,
///     pseudonyms: false,
///     source: Source::Id([7; 16]),
///     left_out: LeftOut { unanswered: 6, ..LeftOut::default() },
/// };
/// let header = ReportHeader::new(plan, facts)?;
/// assert_eq!(ReportHeader::read(&header.text())?, header);
/// # Ok::<(), turnout_core::wire::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ReportHeader {
    plan: Plan,
    facts: ReportFacts,
}

impl ReportHeader {
    /// Makes the header of a file of reports of a plan.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the facts contradict the plan or one another.
    pub fn new(plan: Plan, facts: ReportFacts) -> Result<Self, Error> {
        let personal = plan.participation() == Participation::Personalized;
        let refused = |reason: &str| Err(HEADER.malformed(reason.to_owned()));
        if facts.design.is_some() != personal {
            return refused(
                "it must have sums of probabilities if each node has its own, and only then",
            );
        }
        if let Some(NodeGroups { columns, groups }) = &facts.groups {
            let width = columns.len();
            if columns.is_empty() || !different(columns) {
                return refused("the names of its groups are not those of different columns");
            }
            if groups.iter().any(|group| group.key.len() != width)
                || !different(groups.iter().map(|group| &group.key))
            {
                return refused("its groups are not different ones, with a value for each column");
            }
            if groups.iter().any(|group| group.design.is_some() != personal) {
                return refused(
                    "a group must have sums of probabilities if each node has its own, and only then",
                );
            }
            let sum = |number: fn(&NodeGroup) -> u64| {
                groups.iter().map(|group| u128::from(number(group))).sum::<u128>()
            };
            if sum(|group| group.nodes) != facts.nodes.into()
                || sum(|group| group.unanswered) != facts.left_out.unanswered.into()
            {
                return refused("its groups are not those of all its nodes and rows left out");
            }
        }
        Ok(Self { plan, facts })
    }

    /// Reads the header in the metadata of a file.
    ///
    /// # Errors
    ///
    /// [`Error::Version`] for a later version of the file or of its plan; the other errors if the
    /// text is not a header or contradicts itself.
    pub fn read(text: &str) -> Result<Self, Error> {
        let json = HEADER.read(text)?;
        let refused = |name, expected| HEADER.value(name, expected, json.member(name));
        let plan = json.member("plan").filter(|plan| plan.members().is_some());
        let plan = Plan::described_by(plan.ok_or_else(|| refused("plan", "a plan"))?)?;
        let count =
            |name| json.member(name).and_then(Json::unsigned).ok_or_else(|| refused(name, COUNT));
        let facts = ReportFacts {
            nodes: count("nodes")?,
            reports: count("reports")?,
            design: optional(&json, "design", "sums of probabilities", design_of)?,
            groups: optional(&json, "groups", "lists with an entry a group", NodeGroups::of)?,
            pseudonyms: optional(&json, "pseudonyms", "true, if it is there", |found| {
                found.truth().filter(|&truth| truth)
            })?
            .is_some(),
            source: source(&json)?,
            left_out: optional(&json, "left_out", LeftOut::EXPECTED, LeftOut::of)?
                .unwrap_or_default(),
        };
        Self::new(plan, facts)
    }

    /// Returns its text: canonical JSON, in which nothing looks like a checksum.
    #[must_use]
    pub fn text(&self) -> String {
        let facts = &self.facts;
        let mut text = String::from("{");
        let mut member = |name: &str, value: &str| {
            // Nothing can go wrong when a text is written to.
            let _ = write!(text, r#"{}"{name}":{value}"#, if text.len() > 1 { "," } else { "" });
        };
        // In the order of their names.
        if let Some(design) = &facts.design {
            member("design", &design_text(design));
        }
        member("format", &quoted(HEADER.format));
        if let Some(groups) = &facts.groups {
            member("groups", &groups.text(&facts.left_out));
        }
        if let Source::Id(id) = &facts.source {
            member("id", &quoted(&hex::text(id)));
        }
        if !facts.left_out.is_nothing() {
            member("left_out", &facts.left_out.to_string());
        }
        member("nodes", &facts.nodes.to_string());
        if let Source::Part { job, number } = &facts.source {
            member("part", &format!(r#"{{"job":{},"number":{number}}}"#, quoted(job)));
        }
        member("plan", self.plan.text());
        if facts.pseudonyms {
            member("pseudonyms", "true");
        }
        member("reports", &facts.reports.to_string());
        member("version", &HEADER.version.to_string());
        text.push('}');
        text.replace(SEAL, ESCAPED)
    }

    /// The plan under which the reports were made.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The other facts of the file.
    #[must_use]
    pub const fn facts(&self) -> &ReportFacts {
        &self.facts
    }
}

impl NodeGroups {
    fn text(&self, left_out: &LeftOut) -> String {
        fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
            items.iter().map(text).collect::<Vec<_>>().join(",")
        }
        let groups = &self.groups;
        let mut text = String::from("{");
        // Nothing can go wrong when a text is written to.
        if groups.iter().any(|group| group.design.is_some()) {
            let designs =
                list(groups, |group| group.design.as_ref().map_or(String::new(), design_text));
            let _ = write!(text, r#""designs":[{designs}],"#);
        }
        let _ = write!(
            text,
            r#""keys":[{}],"names":[{}],"nodes":[{}]"#,
            list(groups, |group| group.key.text().to_owned()),
            list(&self.columns, |name| quoted(name)),
            list(groups, |group| group.nodes.to_string()),
        );
        if left_out.unanswered > 0 {
            let unanswered = list(groups, |group| group.unanswered.to_string());
            let _ = write!(text, r#","unanswered":[{unanswered}]"#);
        }
        text.push('}');
        text
    }

    /// Reads lists with an entry for each group.
    fn of(json: &Json<'_>) -> Option<Self> {
        let names = ["keys", "names", "nodes"];
        if !json.has_only(&names, &["designs", "unanswered"]) {
            return None;
        }
        let texts = each(json.member("names")?, |name| name.text().map(Into::into))?;
        let keys = each(json.member("keys")?, Key::of)?;
        let nodes = each(json.member("nodes")?, Json::unsigned)?;
        let designs = match json.member("designs") {
            Some(list) => each(list, |design| design_of(design).map(Some))?,
            None => vec![None; keys.len()],
        };
        let unanswered = match json.member("unanswered") {
            Some(list) => each(list, Json::unsigned)?,
            None => vec![0; keys.len()],
        };
        let lengths = [nodes.len(), designs.len(), unanswered.len()];
        if lengths != [keys.len(); 3] {
            return None;
        }
        let groups = keys.into_iter().zip(nodes).zip(designs).zip(unanswered);
        Some(Self {
            columns: texts,
            groups: groups
                .map(|(((key, nodes), design), unanswered)| NodeGroup {
                    key,
                    nodes,
                    design,
                    unanswered,
                })
                .collect(),
        })
    }
}

/// Reads the entries of a list.
fn each<'a, T>(json: &Json<'a>, read: impl Fn(&Json<'a>) -> Option<T>) -> Option<Vec<T>> {
    json.list()?.iter().map(read).collect()
}

/// Reads a member that may be missing.
fn optional<'a, T>(
    json: &Json<'a>,
    name: &'static str,
    expected: &'static str,
    read: impl Fn(&Json<'a>) -> Option<T>,
) -> Result<Option<T>, Error> {
    let read = |found| read(found).ok_or_else(|| HEADER.value(name, expected, Some(found)));
    json.member(name).map(read).transpose()
}

fn source(json: &Json<'_>) -> Result<Source, Error> {
    match (json.member("id"), json.member("part")) {
        (Some(id), None) => id
            .text()
            .and_then(|digits| hex::read(&digits))
            .map(Source::Id)
            .ok_or_else(|| HEADER.value("id", "32 hexadecimal digits", Some(id))),
        (None, Some(part)) => {
            let found = || {
                let job = part.member("job")?.text()?.into_owned();
                let number = part.member("number")?.unsigned()?;
                part.has_only(&["job", "number"], &[]).then_some(Source::Part { job, number })
            };
            found().ok_or_else(|| HEADER.value("part", "a job and a number", Some(part)))
        }
        (id, part) => {
            let found = id.and(part);
            Err(HEADER.value(
                "id",
                "there in a file that is no part of a job, and only there",
                found,
            ))
        }
    }
}

fn different<T: Eq + std::hash::Hash>(items: impl IntoIterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    items.into_iter().all(|item| seen.insert(item))
}

#[cfg(test)]
mod tests {
    use super::super::canonical::canonical;
    use super::*;

    /// As Python wrote it before headers were written here: the members in another order.
    const WRITTEN: &str = r#"{"format":"turnout-reports","version":2,"plan":{"format":"turnout-plan","version":1,"oracle":{"name":"direct_encoding","epsilon":1.0,"domain":{"labels":["turnout\u002dsha256:","b"]}},"participation":{"kind":"personalized"}},"nodes":3,"reports":2,"design":{"probability":36893488147419103232,"probability_squared":18446744073709551616},"pseudonyms":true,"groups":{"names":["country","day"],"keys":[["DE",{"date":"2026-01-31"}],[null,{"date":"2026-02-01"}]],"nodes":[2,1],"designs":[{"probability":18446744073709551616,"probability_squared":9223372036854775808},{"probability":18446744073709551616,"probability_squared":9223372036854775808}],"unanswered":[0,4]},"part":{"job":"6f","number":7},"left_out":{"unanswered":4,"ungrouped":1,"duplicates":2,"refused":0,"absent":0}}"#;

    #[test]
    fn a_header_is_read_and_written() -> Result<(), Error> {
        let header = ReportHeader::read(WRITTEN)?;
        assert_eq!((header.facts().nodes, header.facts().reports), (3, 2));
        assert_eq!(header.plan().participation(), Participation::Personalized);
        let text = header.text();
        assert_eq!(ReportHeader::read(&text)?, header);
        assert!(!text.contains(SEAL), "{text}");
        assert_eq!(canonical(&HEADER.read(&text)?).replace(SEAL, ESCAPED), text);
        assert_eq!(
            hex::text(&header.facts().source.identity()),
            "2033e6d541d0ff6a09390365f4546bbb"
        );
        Ok(())
    }

    #[test]
    fn what_contradicts_itself_is_no_header() {
        for (old, new, words) in [
            ("\"version\":2", "\"version\":3", "the report file has version 3"),
            ("\"version\":1", "\"version\":2", "the plan has version 2"),
            ("turnout-reports", "turnout-report", "its format is not"),
            ("\"nodes\":3", "\"nodes\":4", "those of all its nodes"),
            ("\"nodes\":3", "\"nodes\":-3", "the nodes of a report file must be an integer"),
            ("\"nodes\":3", "\"nodes\":3.0", "the nodes of a report file must be an integer"),
            ("\"reports\":2", "\"reports\":true", "the reports of a report file"),
            ("\"pseudonyms\":true", "\"pseudonyms\":1", "the pseudonyms of a report file"),
            ("\"pseudonyms\":true", "\"pseudonym\":true", "unknown members 'pseudonym'"),
            ("personalized", "everyone", "sums of probabilities if each node"),
            ("36893488147419103232", "1", "the design of a report file"),
            ("[2,1]", "[2]", "the groups of a report file"),
            ("[0,4]", "[1,4]", "rows left out"),
            ("\"names\":[\"country\",\"day\"]", "\"names\":[\"day\",\"day\"]", "different columns"),
            ("\"names\":[\"country\",\"day\"]", "\"names\":[\"day\"]", "a value for each column"),
            (
                "[null,{\"date\":\"2026-02-01\"}]",
                "[\"DE\",{\"date\":\"2026-01-31\"}]",
                "different ones",
            ),
            ("\"part\":{\"job\":\"6f\",\"number\":7}", "\"id\":\"6f\"", "the id of a report file"),
            ("\"part\":{\"job\":\"6f\",\"number\":7},", "", "the id of a report file"),
            ("\"number\":7", "\"number\":-7", "the part of a report file"),
            ("\"absent\":0", "\"absence\":0", "the left_out of a report file"),
        ] {
            let text = WRITTEN.replacen(old, new, 1);
            assert_ne!(text, WRITTEN, "{old}");
            let found = ReportHeader::read(&text).map_err(|error| error.to_string());
            assert!(found.as_ref().is_err_and(|error| error.contains(words)), "{new}: {found:?}");
        }
    }
}
