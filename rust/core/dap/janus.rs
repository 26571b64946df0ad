//! Aggregation jobs as Janus writes them, which differs from the draft; see [`Dialect`].

use super::aggregation::{
    AggregationJobContinueReq, AggregationJobInitReq, AggregationJobResp, Dialect,
    LEADER_SELECTED_BATCH_ID, VerifyContinue, VerifyInit, VerifyResp,
};
use super::codec::Message;
use super::error::{Error, Result};
use super::task::Extension;
use super::words::BatchMode;

struct JanusInitReq<'a> {
    verification_key_id: u8,
    agg_param: &'a [u8],
    batch_mode: BatchMode,
    batch_config: &'a [u8],
    verify_inits: Vec<VerifyInit<'a>>,
}

layout!(
    JanusInitReq<'a>:
    verification_key_id,
    agg_param as Opaque32,
    batch_mode,
    batch_config as Opaque16,
    verify_inits as List32,
);

struct JanusContinueReq<'a> {
    step: u16,
    verify_continues: Vec<VerifyContinue<'a>>,
}

layout!(JanusContinueReq<'a>: step, verify_continues as List32);

struct JanusResp<'a> {
    verify_resps: Vec<VerifyResp<'a>>,
}

layout!(JanusResp<'a>: verify_resps as List32);

impl<'a> AggregationJobInitReq<'a> {
    /// Reads a request that is written in this dialect.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the bytes are not such a request.
    pub fn decode_as(dialect: Dialect, bytes: &'a [u8]) -> Result<Self> {
        if dialect == Dialect::Draft {
            return Self::decode(bytes);
        }
        let read = JanusInitReq::decode(bytes)?;
        let extensions = match read.batch_mode {
            BatchMode::TimeInterval if read.batch_config.is_empty() => Vec::new(),
            BatchMode::LeaderSelected => vec![Extension {
                extension_type: LEADER_SELECTED_BATCH_ID,
                extension_data: read.batch_config,
            }],
            BatchMode::TimeInterval => {
                return Err(Error::Malformed {
                    message: Self::NAME,
                    reason: "a partial batch selector of a time interval is not empty",
                    place: 0,
                });
            }
        };
        Ok(Self {
            verification_key_id: read.verification_key_id,
            agg_param: read.agg_param,
            extensions,
            verify_inits: read.verify_inits,
        })
    }

    /// Returns its bytes in this dialect.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if it has no encoding.
    pub fn encode_as(self, dialect: Dialect) -> Result<Vec<u8>> {
        if dialect == Dialect::Draft {
            return self.encode();
        }
        let (batch_mode, batch_config) = match self.extensions[..] {
            [] => (BatchMode::TimeInterval, &[][..]),
            [Extension { extension_type: LEADER_SELECTED_BATCH_ID, extension_data }] => {
                (BatchMode::LeaderSelected, extension_data)
            }
            _ => {
                return Err(Error::Value {
                    what: "an aggregation job for Janus",
                    expected: "one with no extension but leader_selected_batch_id",
                    given: format!("{} extensions", self.extensions.len()),
                });
            }
        };
        JanusInitReq {
            verification_key_id: self.verification_key_id,
            agg_param: self.agg_param,
            batch_mode,
            batch_config,
            verify_inits: self.verify_inits,
        }
        .encode()
    }
}

impl<'a> AggregationJobContinueReq<'a> {
    /// Reads one that is written in this dialect.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the bytes are not one.
    pub fn decode_as(dialect: Dialect, bytes: &'a [u8]) -> Result<Self> {
        if dialect == Dialect::Draft {
            return Self::decode(bytes);
        }
        let JanusContinueReq { step, verify_continues } = JanusContinueReq::decode(bytes)?;
        Ok(Self { step, verify_continues })
    }

    /// Returns its bytes in this dialect.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if it has no encoding.
    pub fn encode_as(self, dialect: Dialect) -> Result<Vec<u8>> {
        if dialect == Dialect::Draft {
            return self.encode();
        }
        JanusContinueReq { step: self.step, verify_continues: self.verify_continues }.encode()
    }
}

impl<'a> AggregationJobResp<'a> {
    /// Reads one that is written in this dialect.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the bytes are not one.
    pub fn decode_as(dialect: Dialect, bytes: &'a [u8]) -> Result<Self> {
        if dialect == Dialect::Draft {
            return Self::decode(bytes);
        }
        Ok(Self { verify_resps: JanusResp::decode(bytes)?.verify_resps })
    }

    /// Returns its bytes in this dialect.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if it has no encoding.
    pub fn encode_as(self, dialect: Dialect) -> Result<Vec<u8>> {
        if dialect == Dialect::Draft {
            return self.encode();
        }
        JanusResp { verify_resps: self.verify_resps }.encode()
    }
}
