//! Additive secret sharing over prime fields: sums of secrets without a trusted server.
//!
//! A vector of a [`PrimeField`] is split among m parties into m vectors that add up to it. Any m -
//! 1 of them are uniform and reveal nothing. Parties add up the shares of many users in a
//! [`ShareSum`]; the sums of all parties add up to the sum of the secrets. Shares travel
//! [packed](PrimeField::pack) to as many bits as an element needs, or as seeds that the receiver
//! [expands](PrimeField::expand). [`OneHotSharing`] simulates this for many users in memory.
//!
//! In two-stage sampling a [`SetSampler`] chooses which items a user reports, and
//! [`two_stage_sums`] adds up the shares of elected users. Integer noise whose law is exact is in
//! [`noise`](crate::noise).
//!
//! ```
//! use turnout_core::random::{AesStreams, Purpose, Streams};
//! use turnout_core::sharing::{PrimeField, ShareSum};
//!
//! let field = PrimeField::larger_than(1000)?;
//! let streams = AesStreams::from_operating_system()?;
//! let mut parties = [ShareSum::<u32>::new(field, 4)?, ShareSum::new(field, 4)?];
//! for (user, secret) in (0..).zip([[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1_u32]]) {
//!     let mut stream = streams.stream(Purpose::Share, user);
//!     let shares = field.share(&secret, 2, &mut stream)?;
//!     for (party, share) in parties.iter_mut().zip(shares.chunks(4)) {
//!         party.add(share)?;
//!     }
//! }
//! let sums = parties.map(ShareSum::finish);
//! assert_eq!(field.add(&sums[0], &sums[1])?, [0, 2, 0, 1]);
//! # Ok::<(), turnout_core::Error>(())
//! ```

mod elections;
mod elements;
mod expansion;
mod field;
mod one_hot;
mod packing;
mod sets;
mod shares;
mod sums;

pub use elections::{TwoStageSums, two_stage_sums};
pub use elements::Element;
pub use expansion::SEED_BYTES;
pub use field::PrimeField;
pub use one_hot::{OneHotSharing, OneHotSums};
pub use sets::SetSampler;
pub use shares::CompressedShares;
pub use sums::ShareSum;
