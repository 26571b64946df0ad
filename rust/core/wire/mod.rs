//! The wire: plans, plan files and messages, read and written by one description each.
//!
//! A server publishes a [`PlanFile`]; devices answer it with messages, which a [`MessageReader`] reads.
//! Nothing here knows what is asked: a plan holds its question as a text, and a message a report that is
//! one integer or a row of integers of a [`Layout`]. What answers questions is the module
//! `device`.
//!
//! What comes from elsewhere costs memory and time in proportion to its size, and nothing in it ends in
//! a panic.

pub(crate) mod canonical;
pub(crate) mod document;
mod error;
mod groups;
pub(crate) mod hex;
pub(crate) mod json;
mod layout;
mod message;
mod plan;
mod plan_file;
pub(crate) mod sealed;
mod signing;

pub use error::{Error, Problem};
pub use groups::Groups;
pub use layout::{Integer, Layout};
pub use message::{Envelope, MessageReader, MessageWriter, NONCE_BYTES, Refusal, RefusalKind};
pub use plan::{Fingerprint, MOST_EXPIRES, MOST_SERIAL, Participation, Plan};
pub use plan_file::PlanFile;
pub use signing::{PublicKey, SigningKey};
