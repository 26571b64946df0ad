//! Aggregation jobs: the messages with which leader and helper verify reports.

use super::codec::{Filled32, Input, Message, Wire};
use super::error::{Error, Result};
use super::hpke::HpkeCiphertext;
use super::task::{Extension, increasing};
use super::upload::{REPORT_ID_BYTES, ReportMetadata};
use super::words::ReportError;

/// The number of bytes of a batch ID.
pub const BATCH_ID_BYTES: usize = 32;

/// The extension of an aggregation job that says to which batch its reports belong.
pub const LEADER_SELECTED_BATCH_ID: u16 = 1;

/// What the helper needs to know of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportShare<'a> {
    /// The public metadata of the report.
    pub report_metadata: ReportMetadata<'a>,
    /// The part of the VDAF that both aggregators see.
    pub public_share: &'a [u8],
    /// The helper's share, encrypted to it.
    pub encrypted_input_share: HpkeCiphertext<'a>,
}

layout!(ReportShare<'a>: report_metadata, public_share as Opaque32, encrypted_input_share);

/// A report for the helper, with the leader's first message about its verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyInit<'a> {
    /// The report.
    pub report_share: ReportShare<'a>,
    /// The message.
    pub payload: &'a [u8],
}

layout!(VerifyInit<'a>: report_share, payload as Filled32);

/// The beginning of an aggregation job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregationJobInitReq<'a> {
    /// Which verification key, of those that the aggregators agreed on, the job uses.
    pub verification_key_id: u8,
    /// The aggregation parameter of the VDAF.
    pub agg_param: &'a [u8],
    /// Extensions, ordered by their types.
    pub extensions: Vec<Extension<'a>>,
    /// The reports.
    pub verify_inits: Vec<VerifyInit<'a>>,
}

layout!(
    AggregationJobInitReq<'a>:
    verification_key_id,
    agg_param as Opaque32,
    extensions as List16,
    verify_inits as Rest,
);

impl<'a> AggregationJobInitReq<'a> {
    /// The batch to which the leader assigned the reports, if it names one.
    #[must_use]
    pub fn batch_id(&self) -> Option<&'a [u8]> {
        let found = self
            .extensions
            .iter()
            .find(|extension| extension.extension_type == LEADER_SELECTED_BATCH_ID);
        found.map(|extension| extension.extension_data)
    }

    /// Checks what every helper must check: extensions are in order, a batch ID has its length, and
    /// no report is duplicated.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if one of these is not so.
    pub fn check(&self) -> Result<()> {
        let malformed = |reason| Err(Error::Malformed { message: Self::NAME, reason, place: 0 });
        if !increasing(&self.extensions) {
            return malformed("its extensions are not in increasing order");
        }
        if self.batch_id().is_some_and(|id| id.len() != BATCH_ID_BYTES) {
            return malformed("a batch ID must have 32 bytes");
        }
        let mut ids: Vec<_> = self
            .verify_inits
            .iter()
            .map(|init| init.report_share.report_metadata.report_id)
            .collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return malformed("a report is duplicated");
        }
        Ok(())
    }
}

/// The result of one step of a report's verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyStep<'a> {
    /// There is a message for the other aggregator.
    Continue(&'a [u8]),
    /// There is nothing more to do.
    Finish,
    /// The report is refused.
    Reject(ReportError),
}

impl<'a> Wire<'a> for VerifyStep<'a> {
    fn read(input: &mut Input<'a>) -> Result<Self> {
        Ok(match input.array()? {
            [0] => Self::Continue(Filled32::read(input)?),
            [1] => Self::Finish,
            [2] => Self::Reject(Wire::read(input)?),
            _ => return Err(input.malformed("unknown type of a VerifyResp")),
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Continue(payload) => {
                out.push(0);
                Filled32::write(payload, out)?;
            }
            Self::Finish => out.push(1),
            Self::Reject(error) => {
                out.push(2);
                error.write(out)?;
            }
        }
        Ok(())
    }
}

/// The helper's answer about one report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyResp<'a> {
    /// Which report.
    pub report_id: [u8; REPORT_ID_BYTES],
    /// The result of the step.
    pub result: VerifyStep<'a>,
}

layout!(VerifyResp<'a>: report_id, result);

/// The helper's answers about all reports, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregationJobResp<'a> {
    /// One answer for each report.
    pub verify_resps: Vec<VerifyResp<'a>>,
}

layout!(AggregationJobResp<'a>: verify_resps as Rest);

/// The next message to the helper about a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyContinue<'a> {
    /// Which report.
    pub report_id: [u8; REPORT_ID_BYTES],
    /// The message.
    pub payload: &'a [u8],
}

layout!(VerifyContinue<'a>: report_id, payload as Filled32);

/// The next step of an aggregation job. Prio3 has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregationJobContinueReq<'a> {
    /// The step that the helper is to reach.
    pub step: u16,
    /// The reports.
    pub verify_continues: Vec<VerifyContinue<'a>>,
}

layout!(AggregationJobContinueReq<'a>: step, verify_continues as Rest);

/// The encoding of an aggregation job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// The encoding of the draft.
    #[default]
    Draft,
    /// The encoding of Janus, whose main branch mixes draft 18 with earlier drafts (commit
    /// 4ab28a36, of August 2026). Lists state their length, and a partial batch selector takes the
    /// place of the draft's extensions.
    Janus,
}
