//! Stored tallies, of one collection or of one collection by groups. Only programs that count know
//! what their sums mean; here they are bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::error::{Error, shown};
use super::groups::Key;
use super::hex;
use super::json::Json;
use super::left_out::{LeftOut, design_of, design_text};
use super::plan::{Participation, Plan, quoted};
use crate::frequency::DesignSums;

/// The largest number of collections that an origin names.
pub const MOST_IDENTITIES: usize = 1024;

/// The version of tallies, and of those by groups.
const VERSION: u32 = 4;

/// Magic, version and length of the header.
const PREFIX: usize = 16;
const DIGEST: usize = 32;

/// Which collections a tally counts, and the number of nodes of each round of permanent answers.
///
/// ```
/// use turnout_core::wire::Origin;
/// let origin = Origin::new([[7; 16]], [([8; 16], 100)]).expect("one collection, one round");
/// assert_eq!(origin.identities().len(), 1);
/// assert_eq!(Origin::new([], [([8; 16], 0)]), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    identities: BTreeSet<[u8; 16]>,
    rounds: BTreeMap<[u8; 16], u64>,
}

impl Origin {
    /// Makes the origin of collections (16 bytes each) and of rounds with their nodes.
    ///
    /// Returns `None` if there are more than [`MOST_IDENTITIES`] collections, a collection or a
    /// round is duplicated, or a round has no nodes.
    #[must_use]
    pub fn new(
        identities: impl IntoIterator<Item = [u8; 16]>,
        rounds: impl IntoIterator<Item = ([u8; 16], u64)>,
    ) -> Option<Self> {
        let mut made = Self::default();
        let different = identities.into_iter().all(|one| made.identities.insert(one))
            && rounds
                .into_iter()
                .all(|(name, nodes)| nodes > 0 && made.rounds.insert(name, nodes).is_none());
        (different && made.identities.len() <= MOST_IDENTITIES).then_some(made)
    }

    /// The collections, in order.
    #[must_use]
    pub const fn identities(&self) -> &BTreeSet<[u8; 16]> {
        &self.identities
    }

    /// The number of nodes of each round.
    #[must_use]
    pub const fn rounds(&self) -> &BTreeMap<[u8; 16], u64> {
        &self.rounds
    }

    fn text(&self) -> String {
        let identities: Vec<String> =
            self.identities.iter().map(|one| quoted(&hex::text(one))).collect();
        let mut text = format!(r#"{{"identities":[{}]"#, identities.join(","));
        if !self.rounds.is_empty() {
            let round =
                |(name, nodes): (&[u8; 16], &u64)| format!(r#""{}":{nodes}"#, hex::text(name));
            let rounds: Vec<String> = self.rounds.iter().map(round).collect();
            // Nothing can go wrong when a text is written to.
            let _ = write!(text, r#","rounds":{{{}}}"#, rounds.join(","));
        }
        text.push('}');
        text
    }

    fn of(json: &Json<'_>) -> Option<Self> {
        let listed = json.member("identities")?.list()?.iter().map(|one| hex::read(&one.text()?));
        let identities: Vec<[u8; 16]> = listed.collect::<Option<_>>()?;
        let rounds: Vec<([u8; 16], u64)> = match json.member("rounds") {
            None => Vec::new(),
            Some(rounds) => {
                let round = |(name, nodes): (_, &Json<'_>)| {
                    let name: &std::borrow::Cow<'_, str> = name;
                    Some((hex::read(name)?, nodes.unsigned()?))
                };
                let found: Vec<_> = rounds.members()?.iter().map(round).collect::<Option<_>>()?;
                Some(found).filter(|found| !found.is_empty())?
            }
        };
        let fine = json.has_only(&["identities"], &["rounds"]) && identities.is_sorted();
        fine.then(|| Self::new(identities, rounds))?
    }
}

/// What a tally says beyond its plan and its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TallyFacts {
    /// The number of nodes, reporting or not.
    pub nodes: u64,
    /// The number of reports that were counted.
    pub received: u64,
    /// Sums of the probabilities of all nodes; present if and only if each node has its own.
    pub design: Option<DesignSums>,
    /// Which collections it counts.
    pub origin: Origin,
    /// How many rows or messages are left out; none of these numbers includes them.
    pub left_out: LeftOut,
}

impl TallyFacts {
    /// Writes the members of a tally, or of a group with its key, in the order of their names.
    fn text(&self, key: Option<&Key>, plan: Option<&Plan>) -> String {
        let design = self.design.as_ref().map_or_else(|| "null".to_owned(), design_text);
        let mut text = format!(r#"{{"design":{design}"#);
        // Nothing can go wrong when a text is written to.
        let _ = key.map(|key| write!(text, r#","key":{}"#, key.text()));
        if !self.left_out.is_nothing() {
            let _ = write!(text, r#","left_out":{}"#, self.left_out);
        }
        let _ = write!(text, r#","nodes":{},"origin":{}"#, self.nodes, self.origin.text());
        let _ = plan.map(|plan| write!(text, r#","plan":{}"#, plan.text()));
        let _ = write!(text, r#","received":{}}}"#, self.received);
        text
    }

    fn of(kind: &Kind, json: &Json<'_>, more: &'static str) -> Result<Self, Error> {
        if !json.has_only(&["design", "nodes", "origin", "received", more], &["left_out"]) {
            let words = "what is known of it must be its nodes, received, design, origin and perhaps \
                         left_out, got ";
            return Err(kind.malformed(&format!("{words}{}", shown(json.raw()))));
        }
        let member = |name| json.member(name);
        let value = |name, expected| kind.value(name, expected, member(name));
        let count = |name| {
            let number = member(name).and_then(Json::unsigned);
            number.ok_or_else(|| value(name, "an integer from 0 to 18446744073709551615"))
        };
        let design = member("design").filter(|found| found.raw() != "null");
        Ok(Self {
            nodes: count("nodes")?,
            received: count("received")?,
            design: match design {
                None => None,
                Some(found) => {
                    let read = design_of(found);
                    Some(read.ok_or_else(|| value("design", "null or sums of probabilities"))?)
                }
            },
            origin: origin(kind, json)?,
            left_out: left_out(kind, json)?,
        })
    }

    /// Refuses facts that contradict the plan or one another.
    fn check(&self, kind: &Kind, plan: &Plan) -> Result<(), Error> {
        if self.received > self.nodes {
            let (received, nodes) = (self.received, self.nodes);
            return Err(kind.malformed(&format!("it has {received} reports of {nodes} nodes")));
        }
        if self.design.is_some() != (plan.participation() == Participation::Personalized) {
            let reason =
                "it must have sums of probabilities if each node has its own, and only then";
            return Err(kind.malformed(reason));
        }
        Ok(())
    }
}

fn origin(kind: &Kind, json: &Json<'_>) -> Result<Origin, Error> {
    let found = json.member("origin");
    found.and_then(Origin::of).ok_or_else(|| {
        let expected = "its collections by 16 bytes each, in hexadecimal and in order, and perhaps \
                        rounds with their nodes";
        kind.value("origin", expected, found)
    })
}

fn left_out(kind: &Kind, json: &Json<'_>) -> Result<LeftOut, Error> {
    json.member("left_out").map_or(Ok(LeftOut::default()), |found| {
        let read = LeftOut::of(found);
        read.ok_or_else(|| kind.value("left_out", LeftOut::EXPECTED, Some(found)))
    })
}

/// The plan in a header.
fn plan(kind: &Kind, json: &Json<'_>) -> Result<Plan, Error> {
    let found = json.member("plan").filter(|found| found.members().is_some());
    Plan::described_by(found.ok_or_else(|| kind.value("plan", "a plan", json.member("plan")))?)
}

/// A kind of stored tallies.
struct Kind {
    word: &'static str,
    magic: &'static [u8; 8],
}

const TALLY: Kind = Kind { word: "tally", magic: b"\x89TALLY\r\n" };
const GROUPS: Kind = Kind { word: "grouped tally", magic: b"\x89GROUP\r\n" };

impl Kind {
    fn write(&self, header: &str, sums: &[u8]) -> Result<Vec<u8>, Error> {
        let length = u32::try_from(header.len());
        let length =
            length.map_err(|_| self.malformed("its header is 2^32 bytes long, or longer"))?;
        let mut data = Vec::with_capacity(PREFIX + header.len() + sums.len() + DIGEST);
        data.extend_from_slice(self.magic);
        data.extend_from_slice(&VERSION.to_le_bytes());
        data.extend_from_slice(&length.to_le_bytes());
        data.extend_from_slice(header.as_bytes());
        data.extend_from_slice(sums);
        let digest: [u8; DIGEST] = Sha256::digest(&data).into();
        data.extend_from_slice(&digest);
        Ok(data)
    }

    /// Gives the header and the sums.
    fn read<'a>(&self, data: &'a [u8]) -> Result<(Json<'a>, &'a [u8]), Error> {
        let foreign = || self.malformed("the first bytes are not those of one");
        let (prefix, rest) = data.split_first_chunk::<PREFIX>().ok_or_else(foreign)?;
        let (magic, numbers) = prefix.split_at(self.magic.len());
        if magic != self.magic {
            return Err(foreign());
        }
        let number = |place| numbers.get(place..).and_then(<[u8]>::first_chunk).copied();
        let [version, length] =
            [0, 4].map(|place| u32::from_le_bytes(number(place).unwrap_or_default()));
        if version != VERSION {
            return Err(Error::Version {
                document: self.word,
                found: version.to_string(),
                expected: VERSION.into(),
            });
        }
        let altered = || Error::Checksum(self.word);
        let (body, stated) = data.split_last_chunk::<DIGEST>().ok_or_else(altered)?;
        let inner = rest.len().checked_sub(DIGEST).and_then(|end| rest.get(..end));
        let parts = usize::try_from(length).ok().and_then(|length| inner?.split_at_checked(length));
        let (header, sums) = parts.ok_or_else(altered)?;
        let digest: [u8; DIGEST] = Sha256::digest(body).into();
        if digest != *stated {
            return Err(altered());
        }
        let text = core::str::from_utf8(header);
        let text = text.map_err(|_| self.malformed("its header is no text in UTF-8"))?;
        let json = Json::read(text).map_err(|flaw| self.malformed(&flaw.to_string()))?;
        Ok((json, sums))
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::Malformed { document: self.word, reason: reason.to_owned() }
    }

    fn value(&self, name: &'static str, expected: &'static str, found: Option<&Json<'_>>) -> Error {
        let found = shown(found.map_or("nothing", Json::raw));
        Error::Value { document: self.word, name, expected, found }
    }
}

/// A stored tally: its plan, its facts, and the bytes of its sums.
///
/// ```
/// use turnout_core::wire::{LeftOut, Origin, Participation, Plan, StoredTally, TallyFacts};
///
/// let question = r#"{"domain":{"integers":2},"epsilon":1.0,"name":"direct_encoding"}"#;
/// let plan = Plan::new(question, Participation::Everyone)?;
/// let facts = TallyFacts {
///     nodes: 3,
///     received: 3,
///     design: None,
///     origin: Origin::default(),
///     left_out: LeftOut::default(),
/// };
/// let sums = [1_u64, 2].map(u64::to_le_bytes).concat();
/// let tally = StoredTally::new(plan, facts, &sums)?;
/// let data = tally.to_bytes()?;
/// assert_eq!(StoredTally::read(&data)?, tally);
/// # Ok::<(), turnout_core::wire::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTally<'a> {
    plan: Plan,
    facts: TallyFacts,
    sums: &'a [u8],
}

impl<'a> StoredTally<'a> {
    /// Makes the tally of a plan.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the facts contradict the plan or one another.
    pub fn new(plan: Plan, facts: TallyFacts, sums: &'a [u8]) -> Result<Self, Error> {
        facts.check(&TALLY, &plan)?;
        Ok(Self { plan, facts, sums })
    }

    /// Reads the bytes that [`StoredTally::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Version`] for another version of the tally or of its plan; [`Error::Checksum`] if
    /// it is truncated or was altered; the other errors if it is not a tally or contradicts itself.
    pub fn read(data: &'a [u8]) -> Result<Self, Error> {
        let (json, sums) = TALLY.read(data)?;
        let facts = TallyFacts::of(&TALLY, &json, "plan")?;
        Self::new(plan(&TALLY, &json)?, facts, sums)
    }

    /// Its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if its plan has 2^32 bytes or more.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        TALLY.write(&self.facts.text(None, Some(&self.plan)), self.sums)
    }

    /// Its plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The facts about its reports.
    #[must_use]
    pub const fn facts(&self) -> &TallyFacts {
        &self.facts
    }

    /// The bytes of its sums.
    #[must_use]
    pub const fn sums(&self) -> &'a [u8] {
        self.sums
    }
}

/// What a tally by groups says beyond its plan and its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupsFacts {
    /// The names of the columns: at least one, all different.
    pub columns: Vec<String>,
    /// The groups, each with its key, which has a value for each column.
    pub groups: Vec<(Key, TallyFacts)>,
    /// Which collections it counts, in all groups together.
    pub origin: Origin,
    /// What is left out and belongs to no group.
    pub left_out: LeftOut,
}

/// A stored tally by groups: its plan, its facts, and the bytes of the sums of all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredGroups<'a> {
    plan: Plan,
    facts: GroupsFacts,
    sums: &'a [u8],
}

impl<'a> StoredGroups<'a> {
    /// The first bytes of a tally by groups.
    pub const MAGIC: &'static [u8; 8] = GROUPS.magic;

    /// Makes the tally by groups of a plan. The sums of all groups have the same length.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the facts contradict the plan or one another.
    pub fn new(plan: Plan, facts: GroupsFacts, sums: &'a [u8]) -> Result<Self, Error> {
        let refused = |reason| Err(GROUPS.malformed(reason));
        let GroupsFacts { columns, groups, origin, left_out: _ } = &facts;
        let names: BTreeSet<&String> = columns.iter().collect();
        if columns.is_empty() || names.len() < columns.len() {
            return refused("its names are not those of different columns");
        }
        let keys: BTreeSet<&str> = groups.iter().map(|(key, _)| key.text()).collect();
        if keys.len() < groups.len() || groups.iter().any(|(key, _)| key.len() != columns.len()) {
            return refused("its groups are not different ones, with a value for each column");
        }
        if !origin.rounds().is_empty() {
            return refused("its origin has rounds, which only those of its groups have");
        }
        let whole = match groups.len() {
            0 => sums.is_empty(),
            number => sums.len().is_multiple_of(number),
        };
        if !whole {
            return refused("its sums do not fit its groups");
        }
        groups.iter().try_for_each(|(_, facts)| facts.check(&GROUPS, &plan))?;
        Ok(Self { plan, facts, sums })
    }

    /// Reads the bytes that [`StoredGroups::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// Those of [`StoredTally::read`].
    pub fn read(data: &'a [u8]) -> Result<Self, Error> {
        let (json, sums) = GROUPS.read(data)?;
        if !json.has_only(&["groups", "names", "origin", "plan"], &["left_out"]) {
            let words =
                "its members must be groups, names, origin, plan and perhaps left_out, got ";
            return Err(GROUPS.malformed(&format!("{words}{}", shown(json.raw()))));
        }
        let list = |name| {
            let found = json.member(name);
            found.and_then(Json::list).ok_or_else(|| GROUPS.value(name, "a list", found))
        };
        let name = |name: &Json<'_>| {
            let text = name.text();
            let text = text.ok_or_else(|| GROUPS.value("names", "a list of texts", Some(name)))?;
            Ok(text.into_owned())
        };
        let group = |group: &Json<'_>| {
            let key = group.member("key");
            let found = key.and_then(Key::of);
            let found = found.ok_or_else(|| GROUPS.value("key", "a list of values", key))?;
            Ok((found, TallyFacts::of(&GROUPS, group, "key")?))
        };
        let facts = GroupsFacts {
            columns: list("names")?.iter().map(name).collect::<Result<_, Error>>()?,
            groups: list("groups")?.iter().map(group).collect::<Result<_, Error>>()?,
            origin: origin(&GROUPS, &json)?,
            left_out: left_out(&GROUPS, &json)?,
        };
        Self::new(plan(&GROUPS, &json)?, facts, sums)
    }

    /// Its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if its header has 2^32 bytes or more.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let GroupsFacts { columns, groups, origin, left_out } = &self.facts;
        let group = |(key, facts): &(Key, TallyFacts)| facts.text(Some(key), None);
        let groups: Vec<String> = groups.iter().map(group).collect();
        let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        let mut header = format!(r#"{{"groups":[{}]"#, groups.join(","));
        // Nothing can go wrong when a text is written to.
        if !left_out.is_nothing() {
            let _ = write!(header, r#","left_out":{left_out}"#);
        }
        let (names, origin, plan) = (names.join(","), origin.text(), self.plan.text());
        let _ = write!(header, r#","names":[{names}],"origin":{origin},"plan":{plan}}}"#);
        GROUPS.write(&header, self.sums)
    }

    /// Its plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The facts about its reports.
    #[must_use]
    pub const fn facts(&self) -> &GroupsFacts {
        &self.facts
    }

    /// The bytes of the sums of all groups, one after another.
    #[must_use]
    pub const fn sums(&self) -> &'a [u8] {
        self.sums
    }
}

#[cfg(test)]
mod tests;
