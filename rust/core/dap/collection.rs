//! Collection jobs: how a collector gets the result of a batch.

use sha2::{Digest, Sha256};

use super::aggregation::BATCH_ID_BYTES;
use super::codec::{Input, Message, Opaque16, Wire};
use super::error::Result;
use super::hpke::HpkeCiphertext;
use super::task::{Extension, Interval, TaskConfiguration};
use super::upload::REPORT_ID_BYTES;
use super::words::BatchMode;

/// Which batch a collector asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// The reports of this interval.
    TimeInterval(Interval),
    /// The next batch that the leader has ready.
    LeaderSelected,
}

/// The batch that the leader has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchSelector {
    /// The reports of this interval.
    TimeInterval(Interval),
    /// The batch with this ID.
    LeaderSelected([u8; BATCH_ID_BYTES]),
}

impl Query {
    /// The batch mode of the query.
    #[must_use]
    pub fn batch_mode(&self) -> BatchMode {
        match self {
            Self::TimeInterval(_) => BatchMode::TimeInterval,
            Self::LeaderSelected => BatchMode::LeaderSelected,
        }
    }
}

impl BatchSelector {
    /// The batch mode of the batch.
    #[must_use]
    pub fn batch_mode(&self) -> BatchMode {
        match self {
            Self::TimeInterval(_) => BatchMode::TimeInterval,
            Self::LeaderSelected(_) => BatchMode::LeaderSelected,
        }
    }

    /// Tells whether this batch is one that the query asks for.
    #[must_use]
    pub fn answers(&self, query: &Query) -> bool {
        match (self, query) {
            (Self::TimeInterval(batch), Query::TimeInterval(asked)) => {
                asked.start() <= batch.start() && batch.end() <= asked.end()
            }
            (Self::LeaderSelected(_), Query::LeaderSelected) => true,
            _ => false,
        }
    }
}

/// A batch mode, and behind it in bytes what it wants to know.
fn configured<'a, T>(
    input: &mut Input<'a>,
    read: impl FnOnce(BatchMode, &mut Input<'a>) -> Result<T>,
) -> Result<T> {
    let mode = BatchMode::read(input)?;
    let mut config = Input::new("batch configuration", Opaque16::read(input)?);
    let value = read(mode, &mut config)?;
    config.finish()?;
    Ok(value)
}

impl<'a> Wire<'a> for Query {
    fn read(input: &mut Input<'a>) -> Result<Self> {
        configured(input, |mode, config| {
            Ok(match mode {
                BatchMode::TimeInterval => Self::TimeInterval(Wire::read(config)?),
                BatchMode::LeaderSelected => Self::LeaderSelected,
            })
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        self.batch_mode().write(out)?;
        match self {
            Self::TimeInterval(interval) => Opaque16::write(&interval.encode()?, out),
            Self::LeaderSelected => Opaque16::write(&[], out),
        }
    }
}

impl<'a> Wire<'a> for BatchSelector {
    fn read(input: &mut Input<'a>) -> Result<Self> {
        configured(input, |mode, config| {
            Ok(match mode {
                BatchMode::TimeInterval => Self::TimeInterval(Wire::read(config)?),
                BatchMode::LeaderSelected => Self::LeaderSelected(Wire::read(config)?),
            })
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        self.batch_mode().write(out)?;
        match self {
            Self::TimeInterval(interval) => Opaque16::write(&interval.encode()?, out),
            Self::LeaderSelected(batch) => Opaque16::write(batch, out),
        }
    }
}

impl Message<'_> for Query {
    const NAME: &'static str = "Query";
}

impl Message<'_> for BatchSelector {
    const NAME: &'static str = "BatchSelector";
}

/// A collector's request to the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionJobReq<'a> {
    /// The batch.
    pub query: Query,
    /// The aggregation parameter of the VDAF.
    pub agg_param: &'a [u8],
    /// Extensions, ordered by their types.
    pub extensions: Vec<Extension<'a>>,
}

layout!(CollectionJobReq<'a>: query, agg_param as Opaque32, extensions as List16);

/// The result of a batch, in two shares that only the collector can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionJobResp<'a> {
    /// The number of reports of the batch.
    pub report_count: u64,
    /// The shortest interval that contains the times of all its reports.
    pub interval: Interval,
    /// The leader's share.
    pub leader_encrypted_agg_share: HpkeCiphertext<'a>,
    /// The helper's share.
    pub helper_encrypted_agg_share: HpkeCiphertext<'a>,
}

layout!(
    CollectionJobResp<'a>:
    report_count,
    interval,
    leader_encrypted_agg_share,
    helper_encrypted_agg_share,
);

/// The leader's request to the helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateShareReq<'a> {
    /// The collector's request.
    pub collection_job_req: CollectionJobReq<'a>,
    /// The batch.
    pub batch_selector: BatchSelector,
    /// The number of reports of the batch.
    pub report_count: u64,
    /// Their checksum, computed by [`add_to_checksum`].
    pub checksum: [u8; 32],
}

layout!(AggregateShareReq<'a>: collection_job_req, batch_selector, report_count, checksum);

/// The helper's share of the result of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateShare<'a> {
    /// The share, encrypted to the collector.
    pub encrypted_aggregate_share: HpkeCiphertext<'a>,
}

layout!(AggregateShare<'a>: encrypted_aggregate_share);

/// The associated data of an encrypted aggregate share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateShareAad<'a> {
    /// The task.
    pub task_id: [u8; 32],
    /// What its parties agreed on.
    pub task_configuration: TaskConfiguration<'a>,
    /// The collector's request.
    pub collection_job_req: CollectionJobReq<'a>,
}

layout!(AggregateShareAad<'a>: task_id, task_configuration, collection_job_req);

/// Adds one report to the checksum of a batch: the exclusive or of the SHA-256 of all report IDs.
/// Adding a report twice removes it again.
pub fn add_to_checksum(checksum: &mut [u8; 32], report_id: &[u8; REPORT_ID_BYTES]) {
    for (byte, digit) in checksum.iter_mut().zip(Sha256::digest(report_id)) {
        *byte ^= digit;
    }
}
