//! The Distributed Aggregation Protocol: its messages and their encryption, as of draft-ietf-ppm-dap-18.
//!
//! A client splits its measurement into two input shares, and encrypts one to each of two
//! aggregators, the leader and the helper. These verify shares together in aggregation jobs and add
//! them up. A collector gets the sums of a batch in a collection job. A VDAF defines what is
//! verified and how; here its shares and messages are bytes. A server provides storage, HTTP and
//! the time.
//!
//! Every message is a type whose fields have the draft's order. Its [`Message`] reads and writes
//! it. A message that is read borrows from the input and consumes all of it. Reading costs no more
//! than the size of the input, and cannot panic.
//!
//! ```
//! use turnout_core::dap::*;
//!
//! # fn main() -> turnout_core::dap::Result<()> {
//! let vdaf = VdafConfiguration::Count;
//! let configuration = TaskConfiguration {
//!     task_info: b"lunch",
//!     leader_aggregator_endpoint: b"https://leader.example/",
//!     helper_aggregator_endpoint: b"https://helper.example/",
//!     time_precision: 3600,
//!     min_batch_size: 100,
//!     batch_mode: BatchMode::TimeInterval,
//!     batch_config: &[],
//!     vdaf_type: vdaf.vdaf_type(),
//!     vdaf_configuration: &vdaf.encode()?,
//!     extensions: Vec::new(),
//! };
//! let task = Task::of([7; 32], configuration, None)?;
//! let (leader, helper) = (HpkeKey::generate(1)?, HpkeKey::generate(2)?);
//!
//! let new = NewReport {
//!     report_id: [3; 16],
//!     time: 490_000,
//!     public_share: b"public",
//!     input_shares: [b"one share", b"another"],
//! };
//! let to = [HpkeConfig::decode(leader.config())?, HpkeConfig::decode(helper.config())?];
//! let upload = task.seal_reports(&to[0], &to[1], &[new])?;
//!
//! let report = &UploadRequest::decode(&upload)?.reports[0];
//! let share = task.open_input_share(Role::Leader, &[&leader], &report.share(Role::Leader));
//! assert_eq!(share.as_deref(), Ok(&b"one share"[..]));
//! # Ok(())
//! # }
//! ```

#[macro_use]
mod codec;
mod aggregation;
mod collection;
mod error;
mod hpke;
mod janus;
mod shares;
mod task;
mod upload;
mod vdaf;
mod words;

#[cfg(test)]
mod tests;

pub use aggregation::{
    AggregationJobContinueReq, AggregationJobInitReq, AggregationJobResp, BATCH_ID_BYTES, Dialect,
    LEADER_SELECTED_BATCH_ID, ReportShare, VerifyContinue, VerifyInit, VerifyResp, VerifyStep,
};
pub use codec::Message;
pub use collection::{
    AggregateShare, AggregateShareAad, AggregateShareReq, BatchSelector, CollectionJobReq,
    CollectionJobResp, Query, add_to_checksum,
};
pub use error::{Error, Result};
pub use hpke::{HpkeCiphertext, HpkeConfig, HpkeConfigList, HpkeKey};
pub use shares::NewReport;
pub use task::{Extension, Interval, TASK_ID_BYTES, Task, TaskConfiguration, increasing};
pub use upload::{
    InputShareAad, PlaintextInputShare, REPORT_ID_BYTES, Report, ReportMetadata,
    ReportUploadStatus, UploadErrors, UploadRequest,
};
pub use vdaf::{
    HistogramConfig, MultihotCountVecConfig, SumConfig, SumVecConfig, VdafConfiguration,
};
pub use words::{BatchMode, MediaType, Problem, ReportError, Role, VERSION};
