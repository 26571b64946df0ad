//! The numbers and names of the draft: roles, batch modes, errors of reports, problem types, media
//! types.

use super::codec::{Input, Wire};
use super::error::Result;

/// The tag of the draft's version, which enters every key and every proof.
pub const VERSION: &str = "dap-18";

macro_rules! words {
    (
        $(#[$meta:meta])* $name:ident:
        $($(#[$one:meta])* $variant:ident $(= $code:literal)?, $word:literal;)*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$one])* $variant $(= $code)?,)* }

        impl $name {
            /// All of them, in the order of the draft.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The draft's word for this value.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Finds the value with this word.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }
        }
    };
}

/// What stands in messages as a number of one byte.
macro_rules! numbered {
    ($name:ident, $kind:literal) => {
        impl $name {
            /// The number that stands for this value in messages.
            #[must_use]
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// Finds the value with this number.
            #[must_use]
            pub fn of(code: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.code() == code)
            }
        }

        impl Wire<'_> for $name {
            fn read(input: &mut Input<'_>) -> Result<Self> {
                let [code] = input.array()?;
                Self::of(code).ok_or_else(|| input.malformed(concat!("unknown ", $kind)))
            }

            fn write(&self, out: &mut Vec<u8>) -> Result<()> {
                out.push(self.code());
                Ok(())
            }
        }
    };
}

words! {
    /// Who takes part in a task.
    Role:
    /// Who asks for results.
    Collector = 0, "collector";
    /// Who has a measurement.
    Client = 1, "client";
    /// The aggregator that gets the reports and drives the rest.
    Leader = 2, "leader";
    /// The other aggregator.
    Helper = 3, "helper";
}

words! {
    /// How reports are put into batches.
    BatchMode:
    /// By their time.
    TimeInterval = 1, "time_interval";
    /// As the leader likes.
    LeaderSelected = 2, "leader_selected";
}

words! {
    /// Why a report is refused.
    ReportError:
    /// Its batch has been collected.
    BatchCollected = 1, "batch_collected";
    /// It was aggregated before.
    ReportReplayed = 2, "report_replayed";
    /// It cannot be known whether it was aggregated before.
    ReportDropped = 3, "report_dropped";
    /// It is encrypted to a key that is not known.
    HpkeUnknownConfigId = 4, "hpke_unknown_config_id";
    /// It does not open.
    HpkeDecryptError = 5, "hpke_decrypt_error";
    /// Its proof fails.
    VdafVerifyError = 6, "vdaf_verify_error";
    /// It is from after the end of the task.
    TaskExpired = 7, "task_expired";
    /// It is malformed.
    InvalidMessage = 8, "invalid_message";
    /// It is from the future.
    ReportTooEarly = 9, "report_too_early";
    /// It is from before the beginning of the task.
    TaskNotStarted = 10, "task_not_started";
    /// It is encrypted to a key that is no longer in use.
    OutdatedConfig = 11, "outdated_config";
}

numbered!(Role, "role");
numbered!(BatchMode, "batch mode");
numbered!(ReportError, "report error");

words! {
    /// Why a request fails: the `type` of its problem document.
    Problem:
    /// A message could not be parsed, or is otherwise invalid.
    InvalidMessage, "invalidMessage";
    /// The task is not known.
    UnrecognizedTask, "unrecognizedTask";
    /// The aggregation job is not known.
    UnrecognizedAggregationJob, "unrecognizedAggregationJob";
    /// The query determines no batch.
    BatchInvalid, "batchInvalid";
    /// A batch has too few reports.
    InvalidBatchSize, "invalidBatchSize";
    /// The aggregation parameter is invalid.
    InvalidAggregationParameter, "invalidAggregationParameter";
    /// The aggregators disagree on the reports of a batch.
    BatchMismatch, "batchMismatch";
    /// The aggregators disagree on the step of an aggregation job.
    StepMismatch, "stepMismatch";
    /// Reports of the batch were collected before.
    BatchOverlap, "batchOverlap";
    /// An extension is not known.
    UnsupportedExtension, "unsupportedExtension";
    /// Extensions are out of order or badly encoded.
    InvalidExtension, "invalidExtension";
}

impl Problem {
    /// The URN of this problem in a problem document.
    #[must_use]
    pub fn urn(self) -> String {
        format!("urn:ietf:params:ppm:dap:error:{}", self.word())
    }
}

words! {
    /// What is sent over HTTP.
    MediaType:
    /// `HpkeConfigList`.
    HpkeConfigList, "hpke-config-list";
    /// `UploadRequest`.
    UploadReq, "upload-req";
    /// `UploadErrors`.
    UploadErrors, "upload-errors";
    /// `AggregationJobInitReq`.
    AggregationJobInitReq, "aggregation-job-init-req";
    /// `AggregationJobContinueReq`.
    AggregationJobContinueReq, "aggregation-job-continue-req";
    /// `AggregationJobResp`.
    AggregationJobResp, "aggregation-job-resp";
    /// `CollectionJobReq`.
    CollectionJobReq, "collection-job-req";
    /// `CollectionJobResp`.
    CollectionJobResp, "collection-job-resp";
    /// `AggregateShareReq`.
    AggregateShareReq, "aggregate-share-req";
    /// `AggregateShare`.
    AggregateShare, "aggregate-share";
}

impl MediaType {
    /// The HTTP content type.
    #[must_use]
    pub fn content_type(self) -> String {
        format!("application/ppm-dap;message={}", self.word())
    }
}
