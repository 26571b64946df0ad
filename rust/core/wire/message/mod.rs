//! Messages that devices send. `docs/reference/formats.rst` has the layout.

use core::fmt::Write;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::document::Document;
use super::error::{Error, shown};
use super::groups::Groups;
use super::hex;
use super::json::{Json, Kind};
use super::layout::Layout;
use super::plan::{Fingerprint, Plan};

/// The number of bytes from the operating system that identify one message.
pub const NONCE_BYTES: usize = 16;

const MESSAGE: Document = Document {
    word: "message",
    format: "turnout-report",
    version: 1,
    members: &["plan", "nonce", "report"],
    optional: &["group"],
};

/// What stands between the parts of a message as a [`MessageWriter`] writes it.
const TO_PLAN: &str = r#"{"format":"turnout-report","version":1,"plan":""#;
const TO_NONCE: &str = r#"","nonce":""#;
const TO_REPORT: &str = r#"","report":"#;

/// Why a message is refused. An error shows its version, plan and group as the message states them,
/// shortened if they are long. It does not show the report, because a broken device may send the
/// answer itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The text is not a message, lacks a member, or has an unknown member.
    #[error("is no message of turnout, got {bytes} bytes")]
    NoMessage {
        /// How long it is.
        bytes: usize,
    },

    /// The message has another version.
    #[error("has version {0}; this release of turnout reads {version}", version = MESSAGE.version)]
    Version(String),

    /// The message was made under another plan.
    #[error("was made under the plan {0}, which is not among the plans that are read")]
    Plan(String),

    /// The nonce is not valid.
    #[error("must have a nonce of 32 hexadecimal digits")]
    Nonce,

    /// The group is not one of its plan.
    #[error("must have a group of its plan, got {0}")]
    Group(String),

    /// The report does not have the layout of the plan.
    #[error("must have a report of {}", expected(*.layout))]
    Report {
        /// What reports look like.
        layout: Layout,
    },
}

/// The kinds of refusals that are counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// It is not a message, or a part of it is invalid.
    Malformed,
    /// It has a version that this reader does not know.
    OtherVersion,
    /// It was made under another plan.
    OtherPlan,
}

impl Refusal {
    /// Which kind of refusal this is.
    #[must_use]
    pub const fn kind(&self) -> RefusalKind {
        match self {
            Self::Version(_) => RefusalKind::OtherVersion,
            Self::Plan(_) => RefusalKind::OtherPlan,
            Self::NoMessage { .. } | Self::Nonce | Self::Group(_) | Self::Report { .. } => {
                RefusalKind::Malformed
            }
        }
    }
}

fn expected(layout: Layout) -> String {
    match layout.width() {
        None => {
            let (least, most) = layout.integer().range();
            format!("an integer from {least} to {most}")
        }
        Some(_) => format!("{} hexadecimal digits", 2 * layout.bytes()),
    }
}

/// The contents of a message other than its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The index of its plan among the plans of the reader.
    pub plan: usize,
    /// The bytes that identify it: a message that is sent again has the same.
    pub nonce: [u8; NONCE_BYTES],
}

/// Reads messages that were made under one of several plans of the same layout.
///
/// ```
/// use turnout_core::wire::{Integer, Layout, MessageReader, MessageWriter, Participation, Plan};
///
/// let question = r#"{"domain":{"integers":3},"epsilon":1.0,"name":"direct_encoding"}"#;
/// let plan = Plan::new(question, Participation::Everyone)?;
/// let layout = Layout::one(Integer::narrowest(3));
/// let message = MessageWriter::new(&plan, layout).write([1; 16], &[], &[2]).expect("one byte");
///
/// let reader = MessageReader::new([&plan], layout);
/// let mut report = [0];
/// let envelope = reader.read(message.as_bytes(), &mut report, &mut []);
/// assert_eq!((envelope.map(|envelope| envelope.nonce), report), (Ok([1; 16]), [2]));
/// assert!(reader.read(b"another text", &mut report, &mut []).is_err());
/// # Ok::<(), turnout_core::wire::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MessageReader {
    plans: HashMap<Fingerprint, usize>,
    groups: Vec<Groups>,
    layout: Layout,
}

impl MessageReader {
    /// Makes a reader for these plans, whose reports have this layout.
    pub fn new<'a>(plans: impl IntoIterator<Item = &'a Plan>, layout: Layout) -> Self {
        Self::of(plans.into_iter().map(|plan| (plan.fingerprint(), plan.groups().clone())), layout)
    }

    /// Like [`new`](Self::new), if only the fingerprints and groups of the plans are known.
    pub fn of(plans: impl IntoIterator<Item = (Fingerprint, Groups)>, layout: Layout) -> Self {
        let (plans, groups): (Vec<_>, Vec<_>) = plans.into_iter().unzip();
        Self { plans: plans.into_iter().zip(0..).collect(), groups, layout }
    }

    /// The layout of the reports.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The largest number of columns of groups of any of the plans.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.groups.iter().map(Groups::len).max().unwrap_or(0)
    }

    /// Reads one message. It writes the report to `report`, which has as many bytes as the layout,
    /// with little-endian integers. It writes the index of the value of each column of groups to
    /// `group`, which has room for [`columns`](Self::columns) numbers. After a refusal, the
    /// contents of both are meaningless.
    ///
    /// # Errors
    ///
    /// A [`Refusal`]. If a slice has the wrong length, that is a refusal of the report.
    pub fn read(
        &self,
        message: &[u8],
        report: &mut [u8],
        group: &mut [u32],
    ) -> Result<Envelope, Refusal> {
        match self.read_written(message, report) {
            Some(envelope) => Ok(envelope),
            None => self.read_any(message, report, group),
        }
    }

    /// Reads a message without a group that looks as a writer writes it, as most do: [`read_any`] takes
    /// it too, and four times as long.
    ///
    /// [`read_any`]: Self::read_any
    fn read_written(&self, message: &[u8], report: &mut [u8]) -> Option<Envelope> {
        let text = core::str::from_utf8(message).ok()?;
        let (digits, rest) = text.strip_prefix(TO_PLAN)?.split_at_checked(64)?;
        let plan = self.plans.get(&Fingerprint::from_hex(digits)?).copied()?;
        let (digits, rest) = rest.strip_prefix(TO_NONCE)?.split_at_checked(2 * NONCE_BYTES)?;
        let nonce = hex::read(digits)?;
        let found = rest.strip_prefix(TO_REPORT)?.strip_suffix('}')?;
        let fine = self.groups.get(plan)?.is_empty()
            && report.len() == self.layout.bytes()
            && if self.layout.width().is_some() {
                let digits = found.strip_prefix('"')?.strip_suffix('"')?;
                hex::read_into(digits.as_bytes(), report)
            } else {
                // Neither a sign nor a zero before other digits.
                matches!(found.as_bytes(), [b'0'] | [b'1'..=b'9', ..])
                    && self.write_integer(found.parse().ok(), report)
            };
        fine.then_some(Envelope { plan, nonce })
    }

    /// Reads a message in whatever form of JSON.
    fn read_any(
        &self,
        message: &[u8],
        report: &mut [u8],
        group: &mut [u32],
    ) -> Result<Envelope, Refusal> {
        let none = Refusal::NoMessage { bytes: message.len() };
        let text = core::str::from_utf8(message).map_err(|_| none.clone())?;
        let json = MESSAGE.read(text).map_err(|error| match error {
            Error::Version { found, .. } => Refusal::Version(found),
            _ => none.clone(),
        })?;
        let member = |name| json.member(name).ok_or_else(|| none.clone());
        let (plan, nonce) = (member("plan")?, member("nonce")?);
        let number = plan
            .text()
            .and_then(|digits| Fingerprint::from_hex(&digits))
            .and_then(|fingerprint| self.plans.get(&fingerprint).copied());
        let number = number.ok_or_else(|| Refusal::Plan(shown(plan.raw())))?;
        let digits = nonce.text().and_then(|digits| hex::read(&digits));
        let digits = digits.ok_or(Refusal::Nonce)?;
        let groups = self.groups.get(number).filter(|groups| !groups.is_empty());
        match (groups, json.member("group")) {
            (None, None) => {}
            (Some(groups), Some(given)) => {
                let room = group.get_mut(..groups.len());
                if !room.is_some_and(|room| groups.find_in(given, room)) {
                    return Err(Refusal::Group(shown(given.raw())));
                }
            }
            _ => return Err(none),
        }
        let found = member("report")?;
        if self.write_report(found, report) {
            Ok(Envelope { plan: number, nonce: digits })
        } else {
            Err(Refusal::Report { layout: self.layout })
        }
    }

    /// Returns at most 16 bytes that identify the content of a message: its report and its group.
    /// Two messages with the same nonce must have the same content.
    #[must_use]
    pub fn content(report: &[u8], group: &[u32]) -> Vec<u8> {
        let said: Vec<u8> = report
            .iter()
            .copied()
            .chain(group.iter().flat_map(|number| number.to_le_bytes()))
            .collect();
        if said.len() <= NONCE_BYTES {
            return said;
        }
        let mut digest = Sha256::digest(said).to_vec();
        digest.truncate(NONCE_BYTES);
        digest
    }

    fn write_report(&self, found: &Json<'_>, report: &mut [u8]) -> bool {
        if report.len() != self.layout.bytes() {
            return false;
        }
        if self.layout.width().is_some() {
            return match (found.kind(), found.text()) {
                (Kind::Text { .. }, Some(digits)) => hex::read_into(digits.as_bytes(), report),
                _ => false,
            };
        }
        self.write_integer(found.integer(), report)
    }

    fn write_integer(&self, found: Option<i128>, report: &mut [u8]) -> bool {
        let (least, most) = self.layout.integer().range();
        let Some(number) = found.filter(|number| (least..=most).contains(number)) else {
            return false;
        };
        for (byte, found) in report.iter_mut().zip(number.to_le_bytes()) {
            *byte = found;
        }
        true
    }
}

/// Writes messages under a plan.
#[derive(Debug, Clone)]
pub struct MessageWriter {
    /// What every message begins with, up to its nonce.
    head: String,
    groups: Groups,
    layout: Layout,
}

impl MessageWriter {
    /// Makes a writer for a plan whose reports have this layout.
    #[must_use]
    pub fn new(plan: &Plan, layout: Layout) -> Self {
        Self::of(plan.fingerprint(), plan.groups().clone(), layout)
    }

    /// Like [`new`](Self::new), if only the fingerprint and the groups of the plan are known.
    #[must_use]
    pub fn of(plan: Fingerprint, groups: Groups, layout: Layout) -> Self {
        let head = format!("{TO_PLAN}{plan}{TO_NONCE}");
        Self { head, groups, layout }
    }

    /// The layout of the reports.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The public columns that each message carries.
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Writes one message, a line without its end. Its nonce is sixteen bytes from the operating
    /// system that no other message has. `group` is the index of the value for each column of
    /// groups, and `report` has the bytes of the report, with little-endian integers.
    ///
    /// Returns `None` if the report has the wrong number of bytes, or the plan does not list the
    /// group.
    #[must_use]
    pub fn write(&self, nonce: [u8; NONCE_BYTES], group: &[u32], report: &[u8]) -> Option<String> {
        if report.len() != self.layout.bytes() {
            return None;
        }
        let mut text = String::with_capacity(self.head.len() + 2 * report.len() + 96);
        text.push_str(&self.head);
        hex::write(&nonce, &mut text);
        if self.groups.is_empty() && group.is_empty() {
            text.push_str(TO_REPORT);
        } else {
            text.push_str(r#"","group":"#);
            text.push_str(&self.groups.text(group)?);
            text.push_str(r#","report":"#);
        }
        if self.layout.width().is_some() {
            text.push('"');
            hex::write(report, &mut text);
            text.push('"');
        } else {
            // Nothing can go wrong when a text is written to.
            let _ = write!(text, "{}", self.number(report));
        }
        text.push('}');
        Some(text)
    }

    /// The integer of these bytes.
    fn number(&self, report: &[u8]) -> i128 {
        let mut bytes = [0; 16];
        for (byte, found) in bytes.iter_mut().zip(report) {
            *byte = *found;
        }
        let number = i128::from_le_bytes(bytes);
        let (least, most) = self.layout.integer().range();
        if number > most { number - (most - least + 1) } else { number }
    }
}

#[cfg(test)]
mod tests;
