//! The wire: plans, plan files and messages, read and written by one description each.
//!
//! A server publishes a [`PlanFile`]; devices answer it with messages, which a [`MessageReader`] reads.
//! Nothing here knows what is asked: a plan holds its question as a text, and a message a report that is
//! one integer or a row of integers of a [`Layout`]. What answers questions is `device`.
//!
//! What comes from elsewhere costs memory and time in proportion to its size, and nothing in it ends in
//! a panic.

mod canonical;
mod document;
mod error;
mod groups;
mod hex;
mod json;
mod layout;
mod message;
mod plan;
mod plan_file;
mod signing;

pub use error::{Error, Problem};
pub use groups::Groups;
pub use layout::{Integer, Layout};
pub use message::{Envelope, MessageReader, MessageWriter, NONCE_BYTES, Refusal, RefusalKind};
pub use plan::{Fingerprint, MOST_EXPIRES, MOST_SERIAL, Participation, Plan};
pub use plan_file::PlanFile;
pub use signing::{PublicKey, SigningKey};
