//! Reports, and how clients upload them.

use core::fmt;

use super::aggregation::ReportShare;
use super::hpke::HpkeCiphertext;
use super::task::{Extension, TaskConfiguration};
use super::words::{ReportError, Role};

/// The number of bytes of a report ID.
pub const REPORT_ID_BYTES: usize = 16;

/// The public metadata of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportMetadata<'a> {
    /// The random number that identifies the report.
    pub report_id: [u8; REPORT_ID_BYTES],
    /// When it was made, in units of the task's time precision.
    pub time: u64,
    /// Extensions that both aggregators see.
    pub public_extensions: Vec<Extension<'a>>,
}

layout!(ReportMetadata<'a>: report_id, time, public_extensions as List16);

/// A report, as a client sends it to the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report<'a> {
    /// The public metadata of the report.
    pub report_metadata: ReportMetadata<'a>,
    /// The part of the VDAF that both aggregators see.
    pub public_share: &'a [u8],
    /// The leader's share, encrypted to the leader.
    pub leader_encrypted_input_share: HpkeCiphertext<'a>,
    /// The helper's share, encrypted to the helper.
    pub helper_encrypted_input_share: HpkeCiphertext<'a>,
}

layout!(
    Report<'a>:
    report_metadata,
    public_share as Opaque32,
    leader_encrypted_input_share,
    helper_encrypted_input_share,
);

impl<'a> Report<'a> {
    /// The part of the report for an aggregator: the leader's share for the leader, the helper's
    /// share for any other role.
    #[must_use]
    pub fn share(&self, role: Role) -> ReportShare<'a> {
        let encrypted_input_share = match role {
            Role::Leader => &self.leader_encrypted_input_share,
            _ => &self.helper_encrypted_input_share,
        };
        ReportShare {
            report_metadata: self.report_metadata.clone(),
            public_share: self.public_share,
            encrypted_input_share: encrypted_input_share.clone(),
        }
    }
}

/// Reports that are uploaded together. Several uploads, one after the other, form one upload again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadRequest<'a> {
    /// The reports.
    pub reports: Vec<Report<'a>>,
}

layout!(UploadRequest<'a>: reports as Rest);

/// Why the leader refused a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportUploadStatus {
    /// Which report.
    pub id: [u8; REPORT_ID_BYTES],
    /// The reason.
    pub error: ReportError,
}

layout!(ReportUploadStatus: id, error);

/// The reports of an upload that the leader refused, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadErrors {
    /// One entry for each.
    pub status: Vec<ReportUploadStatus>,
}

layout!(UploadErrors: status as Rest);

/// The content of an aggregator's decrypted share. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PlaintextInputShare<'a> {
    /// Extensions that only this aggregator sees.
    pub private_extensions: Vec<Extension<'a>>,
    /// Its input share.
    pub payload: &'a [u8],
}

layout!(PlaintextInputShare<'a>: private_extensions as List16, payload as Filled32);

impl fmt::Debug for PlaintextInputShare<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PlaintextInputShare(secret)")
    }
}

/// The associated data of an encrypted input share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputShareAad<'a> {
    /// The task.
    pub task_id: [u8; 32],
    /// What its parties agreed on.
    pub task_configuration: TaskConfiguration<'a>,
    /// The public metadata of the report.
    pub report_metadata: ReportMetadata<'a>,
    /// The part of the VDAF that both aggregators see.
    pub public_share: &'a [u8],
}

layout!(InputShareAad<'a>: task_id, task_configuration, report_metadata, public_share as Opaque32);
