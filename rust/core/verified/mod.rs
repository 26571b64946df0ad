//! Sums of reports that are each proven valid: Prio3.
//!
//! A client shares a measurement among aggregators, with a proof that the measurement is allowed.
//! Aggregators verify the proof together, learn nothing else, and add up the shares of the reports
//! that they accept. A client that cheats can change a sum by one allowed measurement at most.
//!
//! [`Prio3`] implements [draft-irtf-cfrg-vdaf-18] with the crate `prio`, over bytes. Messages of
//! clients and aggregators, and states that an aggregator keeps, have the encodings of the draft.
//! Aggregators can verify in two ways. Any number of them can use [`Prio3::verify_init`],
//! [`Prio3::verifier_message`] and [`Prio3::verify_next`]. A leader and a helper that send one
//! message each, as in the Distributed Aggregation Protocol, use [`Prio3::leader_initialized`],
//! [`Prio3::helper_initialized`] and [`Prio3::leader_continued`].
//!
//! [draft-irtf-cfrg-vdaf-18]: https://datatracker.ietf.org/doc/draft-irtf-cfrg-vdaf/18/
//!
//! ```
//! use turnout_core::random::AesStreams;
//! use turnout_core::verified::{Incoming, Measure, Noise, Prio3};
//!
//! # fn main() -> turnout_core::verified::Result<()> {
//! let items = Measure::MultihotCountVec { length: 3, max_weight: 1, chunk_length: None };
//! let votes = Prio3::new(items, 2)?;
//! let (verify_key, context, nonce) = ([7; 32], b"a poll", [1; 16]);
//! let report = votes.shard(context, &[0, 1, 0], &nonce)?;
//!
//! let [leader, helper] = &report.input_shares[..] else { panic!("there are two") };
//! let to = |input_share| Incoming { nonce: &nonce, public_share: &report.public_share, input_share };
//! let begun = votes.leader_initialized(&verify_key, context, to(leader))?;
//! let answer = votes.helper_initialized(&verify_key, context, to(helper), &begun.message)?;
//! let output = votes.leader_continued(context, &begun.state, &answer.message)?;
//!
//! let shares = [&output, &answer.output_share].map(|share| {
//!     let sum = votes.aggregate(&votes.aggregate_init(), &[share])?;
//!     let noise = Noise::DiscreteLaplace { scale: 2.0 };
//!     votes.add_noise(&sum, noise, 1, &AesStreams::from_operating_system()?)
//! });
//! let [one, other] = shares;
//! assert_eq!(votes.unshard(&[&one?, &other?])?.len(), 3);
//! # Ok(())
//! # }
//! ```

mod batches;
mod engine;
mod error;
mod measure;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use prio::flp::types::{Count, Histogram, MultihotCountVec, Sum, SumVec};

pub use batches::{Continued, Given, Together};
pub use engine::Entire;
pub use error::{Error, Result};
pub use measure::{MOST_ELEMENTS, Measure};

use crate::noise::{DiscreteGaussian, DiscreteLaplace};
use crate::random::Streams;
use engine::{Engine, Of, Setting};

/// The number of bytes of a nonce. In the Distributed Aggregation Protocol it is the identifier of
/// a report.
pub const NONCE_SIZE: usize = 16;

/// The number of bytes of the key that aggregators share and that clients must not know.
pub const VERIFY_KEY_SIZE: usize = 32;

/// A report of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The share for every aggregator.
    pub public_share: Vec<u8>,
    /// The share for each aggregator, in their order.
    pub input_shares: Vec<Vec<u8>>,
}

/// The part of a report that one aggregator receives.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// The nonce of the report.
    pub nonce: &'a [u8; NONCE_SIZE],
    /// The share for every aggregator.
    pub public_share: &'a [u8],
    /// The share for this aggregator.
    pub input_share: &'a [u8],
}

/// An aggregator's side after it has begun to verify a report.
#[derive(Clone, PartialEq, Eq)]
pub struct Started {
    /// The state that it keeps to itself.
    pub state: Vec<u8>,
    /// The message that it sends.
    pub message: Vec<u8>,
}

/// An aggregator's side after it has accepted a report with the other's message.
#[derive(Clone, PartialEq, Eq)]
pub struct Finished {
    /// The share that it adds to its sum, and keeps to itself.
    pub output_share: Vec<u8>,
    /// The message that it sends.
    pub message: Vec<u8>,
}

/// Exact integer noise that an aggregator adds to each entry of its sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// [`DiscreteLaplace`] noise.
    DiscreteLaplace {
        /// Its scale.
        scale: f64,
    },
    /// [`DiscreteGaussian`] noise.
    DiscreteGaussian {
        /// Its variance parameter.
        variance: f64,
    },
}

impl Noise {
    /// Whole numbers of that law.
    fn draw<S: Streams>(self, length: usize, streams: &S) -> crate::Result<Vec<i64>> {
        match self {
            Self::DiscreteLaplace { scale } => {
                DiscreteLaplace::new(scale)?.draw_many(length, streams)
            }
            Self::DiscreteGaussian { variance } => {
                DiscreteGaussian::new(variance)?.draw_many(length, streams)
            }
        }
    }

    fn check(self) -> crate::Result<()> {
        match self {
            Self::DiscreteLaplace { scale } => DiscreteLaplace::new(scale).map(drop),
            Self::DiscreteGaussian { variance } => DiscreteGaussian::new(variance).map(drop),
        }
    }

    /// What a number is beyond with a chance below `e^-99`.
    fn reach(self) -> f64 {
        match self {
            Self::DiscreteLaplace { scale } => 1.0 + 100.0 * scale,
            Self::DiscreteGaussian { variance } => 1.0 + 20.0 * variance.sqrt(),
        }
    }
}

/// Prio3 with one measure and a number of aggregators.
#[derive(Debug, Clone)]
pub struct Prio3 {
    measure: Measure,
    aggregators: u8,
    id: u32,
    engine: Arc<dyn Engine>,
}

impl PartialEq for Prio3 {
    fn eq(&self, other: &Self) -> bool {
        (self.measure, self.aggregators) == (other.measure, other.aggregators)
    }
}

impl Eq for Prio3 {}

impl Prio3 {
    /// The smallest number of aggregators: one alone would see the secret.
    pub const FEWEST_AGGREGATORS: u8 = 2;

    /// The largest number of aggregators.
    pub const MOST_AGGREGATORS: u8 = 254;

    /// Makes Prio3 for a measure.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if a parameter is out of range.
    pub fn new(measure: Measure, aggregators: u8) -> Result<Self> {
        if !(Self::FEWEST_AGGREGATORS..=Self::MOST_AGGREGATORS).contains(&aggregators) {
            let (argument, value) = ("aggregators", aggregators.into());
            return Err(Error::Parameter { argument, value, expected: "from 2 to 254" });
        }
        let measure = measure.settled()?;
        let (id, engine) = engine(measure, aggregators).ok_or(Error::Parameter {
            argument: "chunk_length",
            value: measure.largest(),
            expected: "one that prio takes",
        })?;
        Ok(Self { measure, aggregators, id, engine })
    }

    /// The measure, with the chunk length that it uses.
    #[must_use]
    pub const fn measure(&self) -> Measure {
        self.measure
    }

    /// The number of aggregators.
    #[must_use]
    pub const fn aggregators(&self) -> u8 {
        self.aggregators
    }

    /// The number of the algorithm in the draft.
    #[must_use]
    pub const fn algorithm_id(&self) -> u32 {
        self.id
    }

    /// How many numbers are added up.
    #[must_use]
    pub fn output_length(&self) -> usize {
        self.engine.sizes().output_share / self.engine.sizes().element
    }

    /// The modulus of the field.
    #[must_use]
    pub fn modulus(&self) -> u128 {
        self.engine.modulus()
    }

    /// The number of bytes of a report's public share.
    #[must_use]
    pub fn public_share_length(&self) -> usize {
        self.engine.sizes().public_share
    }

    /// The number of bytes of an aggregator's share of a report; the first aggregator's is long.
    #[must_use]
    pub fn input_share_length(&self, aggregator: u8) -> usize {
        let sizes = self.engine.sizes();
        if aggregator == 0 { sizes.leader_share } else { sizes.helper_share }
    }

    /// The number of bytes of an output share or an aggregate share.
    #[must_use]
    pub fn aggregate_share_length(&self) -> usize {
        self.engine.sizes().output_share
    }

    /// Shares a measurement among the aggregators, with its proof.
    ///
    /// `measurement` is 0 or 1 for a count, one integer for a sum or a histogram (the bucket),
    /// otherwise one integer for each entry. `context` names the application. `nonce` is public and
    /// random, and no other report may have it. The randomness is the operating system's.
    ///
    /// # Errors
    ///
    /// [`Error::Measurement`] if the measurement is not allowed; [`crate::Error::Entropy`] if the
    /// operating system gives no randomness.
    pub fn shard(
        &self,
        context: &[u8],
        measurement: &[u64],
        nonce: &[u8; NONCE_SIZE],
    ) -> Result<Report> {
        self.engine.shard(context, measurement, nonce)
    }

    /// Begins to verify a report. The message is the verifier share of this aggregator.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] or [`Error::Encoding`] if the report cannot be read; [`Error::Parameter`]
    /// if there is no such aggregator.
    pub fn verify_init(
        &self,
        verify_key: &[u8; VERIFY_KEY_SIZE],
        context: &[u8],
        aggregator: u8,
        report: Incoming<'_>,
    ) -> Result<Started> {
        self.check_aggregator(aggregator)?;
        self.engine.verify_init(Setting { verify_key, context }, aggregator, report)
    }

    /// Combines the verifier shares of all aggregators, in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Proof`] if the proof does not hold; [`Error::Length`], [`Error::Encoding`] or
    /// [`Error::Parts`] if the shares cannot be read.
    pub fn verifier_message(&self, context: &[u8], verifier_shares: &[&[u8]]) -> Result<Vec<u8>> {
        self.engine.verifier_message(context, verifier_shares)
    }

    /// Ends the verification at one aggregator, and returns its output share.
    ///
    /// # Errors
    ///
    /// [`Error::Proof`] if the report was altered; [`Error::Length`] or [`Error::Encoding`] if the
    /// state or the message cannot be read.
    pub fn verify_next(
        &self,
        context: &[u8],
        aggregator: u8,
        state: &[u8],
        verifier_message: &[u8],
    ) -> Result<Vec<u8>> {
        self.check_aggregator(aggregator)?;
        self.engine.verify_next(context, aggregator, state, verifier_message)
    }

    /// Begins to verify a report as the leader of two aggregators.
    ///
    /// # Errors
    ///
    /// Those of [`Prio3::verify_init`]; [`Error::Parameter`] if there are not two aggregators.
    pub fn leader_initialized(
        &self,
        verify_key: &[u8; VERIFY_KEY_SIZE],
        context: &[u8],
        report: Incoming<'_>,
    ) -> Result<Started> {
        self.engine.leader_initialized(Setting { verify_key, context }, report)
    }

    /// Verifies a report as the helper, with the leader's message. Prio3 has one round, so the
    /// helper is done.
    ///
    /// # Errors
    ///
    /// [`Error::Proof`] if the proof does not hold; [`Error::Length`] or [`Error::Encoding`] if the
    /// report or the message cannot be read; [`Error::Parameter`] if there are not two aggregators.
    pub fn helper_initialized(
        &self,
        verify_key: &[u8; VERIFY_KEY_SIZE],
        context: &[u8],
        report: Incoming<'_>,
        leader_message: &[u8],
    ) -> Result<Finished> {
        self.engine.helper_initialized(Setting { verify_key, context }, report, leader_message)
    }

    /// Ends the verification at the leader, with the helper's message.
    ///
    /// # Errors
    ///
    /// [`Error::Proof`] if the report was altered; [`Error::Length`] or [`Error::Encoding`] if the
    /// state or the message cannot be read; [`Error::Parameter`] if there are not two aggregators.
    pub fn leader_continued(
        &self,
        context: &[u8],
        state: &[u8],
        helper_message: &[u8],
    ) -> Result<Vec<u8>> {
        self.engine.leader_continued(context, state, helper_message)
    }

    /// The aggregate share of no reports.
    #[must_use]
    pub fn aggregate_init(&self) -> Vec<u8> {
        vec![0; self.engine.sizes().output_share]
    }

    /// Adds output shares of one aggregator, or aggregate shares of its batches, to its aggregate
    /// share.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] or [`Error::Encoding`] if a share cannot be read.
    pub fn aggregate(&self, aggregate_share: &[u8], output_shares: &[&[u8]]) -> Result<Vec<u8>> {
        self.engine.add(aggregate_share, output_shares)
    }

    /// Adds noise to every entry of an aggregate share of `reports` reports.
    ///
    /// Every aggregator may add as much noise, and the sum still fits into the field.
    ///
    /// # Errors
    ///
    /// [`Error::Wraps`] if the sum may not fit into the field; [`Error::Core`] if a parameter of
    /// the noise is out of range; [`Error::Length`] or [`Error::Encoding`] if the share cannot be
    /// read.
    pub fn add_noise<S: Streams>(
        &self,
        aggregate_share: &[u8],
        noise: Noise,
        reports: u64,
        streams: &S,
    ) -> Result<Vec<u8>> {
        self.check_noise(noise, reports)?;
        let numbers = noise.draw(self.output_length(), streams)?;
        self.engine.shift(aggregate_share, &numbers)
    }

    /// Checks what [`Prio3::add_noise`] says of noise, without drawing any.
    ///
    /// # Errors
    ///
    /// [`Error::Wraps`] if the sum may not fit into the field; [`Error::Core`] if a parameter of
    /// the noise is out of range.
    pub fn check_noise(&self, noise: Noise, reports: u64) -> Result<()> {
        noise.check()?;
        let sums = reports as f64 * self.measure.largest() as f64;
        if sums + f64::from(self.aggregators) * noise.reach() > self.modulus() as f64 / 2.01 {
            return Err(Error::Wraps { reports });
        }
        Ok(())
    }

    /// Adds up the aggregate shares of all aggregators, in any order.
    ///
    /// Noise may make a number negative. A number above half of the modulus stands for a negative
    /// one.
    ///
    /// # Errors
    ///
    /// [`Error::Parts`] if there is not one share for each aggregator; [`Error::Length`] or
    /// [`Error::Encoding`] if one cannot be read.
    pub fn unshard(&self, aggregate_shares: &[&[u8]]) -> Result<Vec<i128>> {
        self.engine.unshard(aggregate_shares)
    }

    fn check_aggregator(&self, aggregator: u8) -> Result<()> {
        if aggregator < self.aggregators {
            return Ok(());
        }
        let expected = "below the number of aggregators";
        Err(Error::Parameter { argument: "aggregator", value: aggregator.into(), expected })
    }
}

/// The number of the algorithm in the draft, and what does the work.
fn engine(measure: Measure, aggregators: u8) -> Option<(u32, Arc<dyn Engine>)> {
    fn boxed<E: Engine + 'static>(id: u32, engine: Option<E>) -> Option<(u32, Arc<dyn Engine>)> {
        Some((id, Arc::new(engine?)))
    }
    let size = |number: Option<u32>| number.unwrap_or(1) as usize;
    match measure {
        Measure::Count => boxed(1, Of::new(Count::new(), 1, measure, aggregators)),
        Measure::Sum { max_measurement } => {
            boxed(2, Of::new(Sum::new(max_measurement).ok()?, 2, measure, aggregators))
        }
        Measure::SumVec { max_measurement, length, chunk_length } => {
            let typ = SumVec::new(max_measurement.into(), length as usize, size(chunk_length));
            boxed(3, Of::<measure::Vectors>::new(typ.ok()?, 3, measure, aggregators))
        }
        Measure::Histogram { length, chunk_length } => {
            let typ = Histogram::new(length as usize, size(chunk_length));
            boxed(4, Of::<measure::Buckets>::new(typ.ok()?, 4, measure, aggregators))
        }
        Measure::MultihotCountVec { length, max_weight, chunk_length } => {
            let (length, weight) = (length as usize, max_weight as usize);
            let typ = MultihotCountVec::new(length, weight, size(chunk_length));
            boxed(5, Of::<measure::Multihot>::new(typ.ok()?, 5, measure, aggregators))
        }
    }
}
