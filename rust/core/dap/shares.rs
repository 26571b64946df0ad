//! Shares that only one party can read: input shares for an aggregator, aggregate shares for the
//! collector.

use core::fmt;

use zeroize::Zeroizing;

use crate::parallel;

use super::aggregation::ReportShare;
use super::codec::{Message, Opaque32, Wire};
use super::collection::CollectionJobReq;
use super::error::{Error, Result};
use super::hpke::{HpkeCiphertext, HpkeConfig, HpkeKey};
use super::task::Task;
use super::upload::{PlaintextInputShare, REPORT_ID_BYTES, ReportMetadata};
use super::words::{ReportError, Role, VERSION};

/// What an encryption is for: the version, a label, who sends and who reads.
fn info(label: &str, sender: Role, recipient: Role) -> Vec<u8> {
    let mut info = format!("{VERSION} {label}").into_bytes();
    info.extend([sender.code(), recipient.code()]);
    info
}

/// A new report of a client, before its shares are encrypted. It is never shown.
#[derive(Clone, Copy)]
pub struct NewReport<'a> {
    /// The random number that identifies the report.
    pub report_id: [u8; REPORT_ID_BYTES],
    /// When it was made, in units of the task's time precision.
    pub time: u64,
    /// The part of the VDAF that both aggregators see.
    pub public_share: &'a [u8],
    /// The leader's share and the helper's share.
    pub input_shares: [&'a [u8]; 2],
}

impl fmt::Debug for NewReport<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NewReport(secret)")
    }
}

impl Task {
    /// The encoded [`InputShareAad`](super::InputShareAad) of a report.
    fn input_share_aad(
        &self,
        metadata: &ReportMetadata<'_>,
        public_share: &[u8],
    ) -> Result<Vec<u8>> {
        let room = self.configuration().len() + public_share.len() + 128;
        let mut aad = Vec::with_capacity(room);
        aad.extend_from_slice(self.id());
        aad.extend_from_slice(self.configuration());
        metadata.write(&mut aad)?;
        Opaque32::write(public_share, &mut aad)?;
        Ok(aad)
    }

    /// Encrypts the shares of reports to leader and helper. Returns an encoded
    /// [`UploadRequest`](super::UploadRequest).
    ///
    /// # Errors
    ///
    /// Those of [`HpkeConfig::seal`]; [`Error::Value`] if a share is empty or too long.
    pub fn seal_reports(
        &self,
        leader: &HpkeConfig<'_>,
        helper: &HpkeConfig<'_>,
        reports: &[NewReport<'_>],
    ) -> Result<Vec<u8>> {
        let sealed =
            parallel::map(reports.len(), |index| self.sealed(leader, helper, &reports[index]));
        Ok(sealed.into_iter().collect::<Result<Vec<_>>>()?.concat())
    }

    fn sealed(
        &self,
        leader: &HpkeConfig<'_>,
        helper: &HpkeConfig<'_>,
        new: &NewReport<'_>,
    ) -> Result<Vec<u8>> {
        let metadata = ReportMetadata {
            report_id: new.report_id,
            time: new.time,
            public_extensions: Vec::new(),
        };
        let aad = self.input_share_aad(&metadata, new.public_share)?;
        let mut report = Vec::new();
        metadata.write(&mut report)?;
        Opaque32::write(new.public_share, &mut report)?;
        let [leader_share, helper_share] = new.input_shares;
        for (role, config, payload) in
            [(Role::Leader, leader, leader_share), (Role::Helper, helper, helper_share)]
        {
            let share = PlaintextInputShare { private_extensions: Vec::new(), payload };
            let plaintext = Zeroizing::new(share.encode()?);
            let info = info("input share", Role::Client, role);
            report.extend(config.seal(&info, &aad, &plaintext)?);
        }
        Ok(report)
    }

    /// Decrypts the input share of an aggregator, or says why the report is refused. It checks what
    /// the report and the task state: the report's extensions, all of which are unknown here, and
    /// the task's interval. The server that stores reports must check whether a report comes from
    /// the future, is a repeat, or is too late.
    ///
    /// # Errors
    ///
    /// The [`ReportError`] that the draft names for the reason.
    pub fn open_input_share(
        &self,
        role: Role,
        keys: &[&HpkeKey],
        report: &ReportShare<'_>,
    ) -> Result<Vec<u8>, ReportError> {
        let metadata = &report.report_metadata;
        if let Some(interval) = self.interval()
            && !interval.holds(metadata.time)
        {
            let early = metadata.time < interval.start();
            return Err(if early { ReportError::TaskNotStarted } else { ReportError::TaskExpired });
        }
        if !metadata.public_extensions.is_empty() {
            return Err(ReportError::InvalidMessage);
        }
        let aad = self
            .input_share_aad(metadata, report.public_share)
            .map_err(|_| ReportError::InvalidMessage)?;
        let info = info("input share", Role::Client, role);
        let ciphertext = &report.encrypted_input_share;
        let mut plaintext = keys
            .iter()
            .filter(|key| key.id() == ciphertext.config_id)
            .find_map(|key| key.open(&info, &aad, ciphertext))
            .ok_or(ReportError::HpkeDecryptError)?;
        let share =
            PlaintextInputShare::decode(&plaintext).map_err(|_| ReportError::InvalidMessage)?;
        if !share.private_extensions.is_empty() {
            return Err(ReportError::InvalidMessage);
        }
        let payload = plaintext.len() - share.payload.len();
        Ok(plaintext.split_off(payload))
    }

    /// Decrypts the input shares of many reports, in parallel.
    #[must_use]
    pub fn open_input_shares(
        &self,
        role: Role,
        keys: &[&HpkeKey],
        reports: &[ReportShare<'_>],
    ) -> Vec<Result<Vec<u8>, ReportError>> {
        parallel::map(reports.len(), |index| self.open_input_share(role, keys, &reports[index]))
    }

    /// The encoded [`AggregateShareAad`](super::AggregateShareAad) of a collection job.
    fn aggregate_share_aad(&self, request: &CollectionJobReq<'_>) -> Result<Vec<u8>> {
        let mut aad = [self.id(), self.configuration()].concat();
        request.write(&mut aad)?;
        Ok(aad)
    }

    /// Encrypts an aggregator's share of a result to the collector. Returns an encoded
    /// [`HpkeCiphertext`].
    ///
    /// # Errors
    ///
    /// Those of [`HpkeConfig::seal`].
    pub fn seal_aggregate_share(
        &self,
        role: Role,
        collector: &HpkeConfig<'_>,
        request: &CollectionJobReq<'_>,
        share: &[u8],
    ) -> Result<Vec<u8>> {
        let info = info("aggregate share", role, Role::Collector);
        collector.seal(&info, &self.aggregate_share_aad(request)?, share)
    }

    /// Decrypts the aggregate share of an aggregator.
    ///
    /// # Errors
    ///
    /// [`Error::Sealed`] if it cannot be decrypted.
    pub fn open_aggregate_share(
        &self,
        role: Role,
        key: &HpkeKey,
        request: &CollectionJobReq<'_>,
        ciphertext: &HpkeCiphertext<'_>,
    ) -> Result<Vec<u8>> {
        let info = info("aggregate share", role, Role::Collector);
        Some(ciphertext)
            .filter(|ciphertext| ciphertext.config_id == key.id())
            .and_then(|ciphertext| {
                key.open(&info, &self.aggregate_share_aad(request).ok()?, ciphertext)
            })
            .ok_or(Error::Sealed { what: "aggregate share" })
    }
}
