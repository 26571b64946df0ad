//! Reports: how clients make them, and how the leader takes them.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use turnout_core::dap::{
    self, AggregationJobInitReq, Extension, HpkeConfig, HpkeKey, LEADER_SELECTED_BATCH_ID, Message,
    NewReport, ReportError, ReportShare, ReportUploadStatus, Role, UploadErrors, UploadRequest,
    VerifyInit,
};

use super::{PyHpkeKey, PyTask, Words, report_error, report_ids, same_length};
use crate::errors::Result;
use crate::noise::exactly;
use crate::pool;

/// A share, or the number of the error with which its report is refused.
#[derive(IntoPyObject)]
pub(crate) enum Opened<'py> {
    Share(Words<'py>),
    Error(u8),
}

/// The input shares of an aggregator.
pub(super) fn opened<'py>(
    py: Python<'py>,
    task: &PyTask,
    role: Role,
    keys: &[Py<PyHpkeKey>],
    reports: &[ReportShare<'_>],
) -> Result<Vec<Opened<'py>>> {
    let keys: Vec<&HpkeKey> = keys.iter().map(|key| &key.get().0).collect();
    let found = pool::run(py, || Ok(task.0.open_input_shares(role, &keys, reports)))?;
    let one = |share: Result<Vec<u8>, ReportError>| match share {
        Ok(share) => Opened::Share(PyBytes::new(py, &share)),
        Err(error) => Opened::Error(error.code()),
    };
    Ok(found.into_iter().map(one).collect())
}

/// An upload of new reports.
#[pyfunction]
#[pyo3(signature = (
    task, leader_config, helper_config, *, ids, times, public_shares, leader_shares, helper_shares,
))]
#[expect(clippy::too_many_arguments, reason = "reports by columns")]
pub(crate) fn seal_reports<'py>(
    py: Python<'py>,
    task: &PyTask,
    leader_config: &[u8],
    helper_config: &[u8],
    ids: Vec<PyBackedBytes>,
    times: Vec<u64>,
    public_shares: Vec<PyBackedBytes>,
    leader_shares: Vec<PyBackedBytes>,
    helper_shares: Vec<PyBackedBytes>,
) -> Result<Words<'py>> {
    same_length(&[
        ("ids", ids.len()),
        ("times", times.len()),
        ("public_shares", public_shares.len()),
        ("leader_shares", leader_shares.len()),
        ("helper_shares", helper_shares.len()),
    ])?;
    let (leader, helper) = (HpkeConfig::decode(leader_config)?, HpkeConfig::decode(helper_config)?);
    let known = report_ids(&ids)?;
    let columns = known.iter().zip(times).zip(&public_shares).zip(&leader_shares);
    let reports: Vec<NewReport<'_>> = columns
        .zip(&helper_shares)
        .map(|((((id, time), public_share), leader), helper)| NewReport {
            report_id: *id,
            time,
            public_share,
            input_shares: [leader, helper],
        })
        .collect();
    let upload = pool::run(py, || Ok(task.0.seal_reports(&leader, &helper, &reports)))??;
    Ok(PyBytes::new(py, &upload))
}

/// Reports of an upload, or as they were stored.
#[pyclass(name = "DapReports", module = "turnout._core", frozen)]
pub(crate) struct PyReports(PyBackedBytes);

impl PyReports {
    fn read(&self) -> Result<UploadRequest<'_>> {
        Ok(UploadRequest::decode(&self.0)?)
    }
}

#[pymethods]
impl PyReports {
    #[new]
    fn new(upload_request: PyBackedBytes) -> Result<Self> {
        UploadRequest::decode(&upload_request)?;
        Ok(Self(upload_request))
    }

    fn __len__(&self) -> Result<usize> {
        Ok(self.read()?.reports.len())
    }

    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Result<Vec<Words<'py>>> {
        let reports = self.read()?.reports;
        Ok(reports.iter().map(|one| PyBytes::new(py, &one.report_metadata.report_id)).collect())
    }

    #[getter]
    fn times(&self) -> Result<Vec<u64>> {
        Ok(self.read()?.reports.iter().map(|one| one.report_metadata.time).collect())
    }

    #[getter]
    fn public_shares<'py>(&self, py: Python<'py>) -> Result<Vec<Words<'py>>> {
        let reports = self.read()?.reports;
        Ok(reports.iter().map(|one| PyBytes::new(py, one.public_share)).collect())
    }

    #[getter]
    fn leader_config_ids(&self) -> Result<Vec<u32>> {
        let id = |one: &dap::Report<'_>| one.leader_encrypted_input_share.config_id.into();
        Ok(self.read()?.reports.iter().map(id).collect())
    }

    #[getter]
    fn encoded<'py>(&self, py: Python<'py>) -> Result<Vec<Words<'py>>> {
        let reports = self.read()?.reports;
        reports.iter().map(|one| Ok(PyBytes::new(py, &one.encode()?))).collect()
    }

    fn open<'py>(
        &self,
        py: Python<'py>,
        task: &PyTask,
        keys: Vec<Py<PyHpkeKey>>,
    ) -> Result<Vec<Opened<'py>>> {
        let reports = self.read()?.reports;
        let shares: Vec<_> = reports.iter().map(|one| one.share(Role::Leader)).collect();
        opened(py, task, Role::Leader, &keys, &shares)
    }

    #[pyo3(signature = (payloads, *, key_id, batch_id, dialect = "dap-18"))]
    fn aggregation_job_init_req<'py>(
        &self,
        py: Python<'py>,
        payloads: Vec<Option<PyBackedBytes>>,
        key_id: u8,
        batch_id: Option<&[u8]>,
        dialect: &str,
    ) -> Result<Words<'py>> {
        let dialect = super::dialect(dialect)?;
        let reports = self.read()?.reports;
        same_length(&[("the reports", reports.len()), ("payloads", payloads.len())])?;
        let batch_id = batch_id.map(|id| exactly::<32>("batch_id", id)).transpose()?;
        let extension =
            |id| Extension { extension_type: LEADER_SELECTED_BATCH_ID, extension_data: id };
        let verify_inits = reports.iter().zip(&payloads).filter_map(|(report, payload)| {
            let payload = payload.as_ref()?;
            Some(VerifyInit { report_share: report.share(Role::Helper), payload })
        });
        let request = AggregationJobInitReq {
            verification_key_id: key_id,
            agg_param: &[],
            extensions: batch_id.iter().map(|id| extension(&id[..])).collect(),
            verify_inits: verify_inits.collect(),
        };
        Ok(PyBytes::new(py, &request.encode_as(dialect)?))
    }
}

#[pyfunction]
pub(crate) fn write_upload_errors(
    py: Python<'_>,
    errors: Vec<(PyBackedBytes, u8)>,
) -> Result<Words<'_>> {
    let one = |(id, code): &(PyBackedBytes, u8)| {
        Ok(ReportUploadStatus { id: exactly("a report ID", id)?, error: report_error(*code)? })
    };
    let status: Result<Vec<_>> = errors.iter().map(one).collect();
    Ok(PyBytes::new(py, &UploadErrors { status: status? }.encode()?))
}

#[pyfunction]
pub(crate) fn read_upload_errors<'py>(
    py: Python<'py>,
    data: &[u8],
) -> Result<Vec<(Words<'py>, u8)>> {
    let status = UploadErrors::decode(data)?.status;
    Ok(status.iter().map(|one| (PyBytes::new(py, &one.id), one.error.code())).collect())
}
