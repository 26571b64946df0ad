//! The wire formats: plans, plan files, messages, headers of report files, and stored tallies. One
//! description of each reads and writes it.
//!
//! A server publishes a [`PlanFile`]. Devices answer it with messages, which a [`MessageReader`]
//! reads. A file of reports has a [`ReportHeader`], and counted reports are stored as a
//! [`StoredTally`]. Nothing here knows the questions. A plan holds its question as a text, and a
//! message holds a report that is one integer or a row of integers of a [`Layout`]. The module
//! `device` answers questions.
//!
//! Untrusted input costs memory and time in proportion to its size, and never causes a panic.

pub(crate) mod canonical;
pub(crate) mod document;
mod error;
mod groups;
pub(crate) mod hex;
pub(crate) mod json;
mod layout;
mod left_out;
mod message;
mod plan;
mod plan_file;
mod remembered;
mod report_header;
pub(crate) mod sealed;
mod signing;
mod tally;

pub use error::{Error, Problem};
pub use groups::{Groups, Key};
pub use layout::{Integer, Layout};
pub use left_out::LeftOut;
pub use message::{Envelope, MessageReader, MessageWriter, NONCE_BYTES, Refusal, RefusalKind};
pub use plan::{Fingerprint, MOST_EXPIRES, MOST_SERIAL, Participation, Plan};
pub use plan_file::PlanFile;
pub use remembered::{NAME_BYTES, RECORD_BYTES, Record, first_records, record};
pub use report_header::{NodeGroup, NodeGroups, ReportFacts, ReportHeader, SEAL, Source};
pub use signing::{PublicKey, SigningKey};
pub use tally::{GroupsFacts, MOST_IDENTITIES, Origin, StoredGroups, StoredTally, TallyFacts};
