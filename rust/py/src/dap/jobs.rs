//! Aggregation jobs and collection jobs: what aggregators and collector say to each other.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use turnout_core::dap::{
    self, AggregateShareReq, AggregationJobContinueReq, AggregationJobInitReq, AggregationJobResp,
    BatchSelector, CollectionJobReq, CollectionJobResp, Dialect, HpkeCiphertext, HpkeConfig,
    LEADER_SELECTED_BATCH_ID, Message, Query, ReportShare, Role, VerifyContinue, VerifyResp,
    VerifyStep,
};

use super::reports::{Opened, opened};
use super::{
    PyHpkeKey, PyTask, Span, Words, aggregator, interval, report_error, report_ids, same_length,
    span,
};
use crate::errors::Result;
use crate::noise::exactly;

/// The beginning of an aggregation job, as the helper gets it.
#[pyclass(name = "AggregationJobInitReq", module = "turnout._core", frozen)]
pub(crate) struct PyAggregationJobInitReq {
    data: PyBackedBytes,
    dialect: Dialect,
}

impl PyAggregationJobInitReq {
    fn read(&self) -> Result<AggregationJobInitReq<'_>> {
        Ok(AggregationJobInitReq::decode_as(self.dialect, &self.data)?)
    }

    fn shares<T>(&self, one: impl Fn(&ReportShare<'_>) -> T) -> Result<Vec<T>> {
        Ok(self.read()?.verify_inits.iter().map(|init| one(&init.report_share)).collect())
    }
}

#[pymethods]
impl PyAggregationJobInitReq {
    #[new]
    #[pyo3(signature = (data, *, dialect = "dap-18"))]
    fn new(data: PyBackedBytes, dialect: &str) -> Result<Self> {
        let request = Self { data, dialect: super::dialect(dialect)? };
        request.read()?.check()?;
        Ok(request)
    }

    fn __len__(&self) -> Result<usize> {
        Ok(self.read()?.verify_inits.len())
    }

    #[getter]
    fn key_id(&self) -> Result<u8> {
        Ok(self.read()?.verification_key_id)
    }

    #[getter]
    fn aggregation_parameter(&self) -> Result<&[u8]> {
        Ok(self.read()?.agg_param)
    }

    #[getter]
    fn batch_id(&self) -> Result<Option<&[u8]>> {
        Ok(self.read()?.batch_id())
    }

    #[getter]
    fn unsupported_extensions(&self) -> Result<Vec<u16>> {
        let types = self.read()?.extensions.into_iter().map(|one| one.extension_type);
        Ok(types.filter(|one| *one != LEADER_SELECTED_BATCH_ID).collect())
    }

    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Result<Vec<Words<'py>>> {
        self.shares(|one| PyBytes::new(py, &one.report_metadata.report_id))
    }

    #[getter]
    fn times(&self) -> Result<Vec<u64>> {
        self.shares(|one| one.report_metadata.time)
    }

    #[getter]
    fn public_shares<'py>(&self, py: Python<'py>) -> Result<Vec<Words<'py>>> {
        self.shares(|one| PyBytes::new(py, one.public_share))
    }

    #[getter]
    fn payloads<'py>(&self, py: Python<'py>) -> Result<Vec<Words<'py>>> {
        let inits = self.read()?.verify_inits;
        Ok(inits.iter().map(|one| PyBytes::new(py, one.payload)).collect())
    }

    fn open<'py>(
        &self,
        py: Python<'py>,
        task: &PyTask,
        keys: Vec<Py<PyHpkeKey>>,
    ) -> Result<Vec<Opened<'py>>> {
        let inits = self.read()?.verify_inits;
        let shares: Vec<_> = inits.into_iter().map(|one| one.report_share).collect();
        opened(py, task, Role::Helper, &keys, &shares)
    }
}

/// What came out of a step of a report's verification: a message, an error, or that it is finished.
#[derive(FromPyObject)]
pub(crate) enum Step {
    Continue(PyBackedBytes),
    Reject(u8),
}

#[pyfunction]
#[pyo3(signature = (ids, results, *, dialect = "dap-18"))]
pub(crate) fn write_aggregation_job_resp<'py>(
    py: Python<'py>,
    ids: Vec<PyBackedBytes>,
    results: Vec<Option<Step>>,
    dialect: &str,
) -> Result<Words<'py>> {
    same_length(&[("ids", ids.len()), ("results", results.len())])?;
    let mut verify_resps = Vec::with_capacity(results.len());
    for (report_id, step) in report_ids(&ids)?.into_iter().zip(&results) {
        let result = match step {
            None => VerifyStep::Finish,
            Some(Step::Continue(payload)) => VerifyStep::Continue(payload),
            Some(Step::Reject(code)) => VerifyStep::Reject(report_error(*code)?),
        };
        verify_resps.push(VerifyResp { report_id, result });
    }
    let answer = AggregationJobResp { verify_resps };
    Ok(PyBytes::new(py, &answer.encode_as(super::dialect(dialect)?)?))
}

type Results<'py> = (Vec<Words<'py>>, Vec<Option<Opened<'py>>>);

#[pyfunction]
#[pyo3(signature = (data, *, dialect = "dap-18"))]
pub(crate) fn read_aggregation_job_resp<'py>(
    py: Python<'py>,
    data: &[u8],
    dialect: &str,
) -> Result<Results<'py>> {
    let read = AggregationJobResp::decode_as(super::dialect(dialect)?, data)?;
    let one = |step: &VerifyResp<'_>| {
        let result = match step.result {
            VerifyStep::Continue(payload) => Some(Opened::Share(PyBytes::new(py, payload))),
            VerifyStep::Finish => None,
            VerifyStep::Reject(error) => Some(Opened::Error(error.code())),
        };
        (PyBytes::new(py, &step.report_id), result)
    };
    Ok(read.verify_resps.iter().map(one).unzip())
}

#[pyfunction]
#[pyo3(signature = (step, ids, payloads, *, dialect = "dap-18"))]
pub(crate) fn write_aggregation_job_continue_req<'py>(
    py: Python<'py>,
    step: u16,
    ids: Vec<PyBackedBytes>,
    payloads: Vec<PyBackedBytes>,
    dialect: &str,
) -> Result<Words<'py>> {
    same_length(&[("ids", ids.len()), ("payloads", payloads.len())])?;
    let known = report_ids(&ids)?.into_iter().zip(&payloads);
    let verify_continues =
        known.map(|(report_id, payload)| VerifyContinue { report_id, payload }).collect();
    let request = AggregationJobContinueReq { step, verify_continues };
    Ok(PyBytes::new(py, &request.encode_as(super::dialect(dialect)?)?))
}

type Continued<'py> = (u16, Vec<Words<'py>>, Vec<Words<'py>>);

#[pyfunction]
#[pyo3(signature = (data, *, dialect = "dap-18"))]
pub(crate) fn read_aggregation_job_continue_req<'py>(
    py: Python<'py>,
    data: &[u8],
    dialect: &str,
) -> Result<Continued<'py>> {
    let read = AggregationJobContinueReq::decode_as(super::dialect(dialect)?, data)?;
    let one = |report: &VerifyContinue<'_>| {
        (PyBytes::new(py, &report.report_id), PyBytes::new(py, report.payload))
    };
    let (ids, payloads) = read.verify_continues.iter().map(one).unzip();
    Ok((read.step, ids, payloads))
}

/// The checksum of a batch, with these reports added to it.
#[pyfunction]
#[pyo3(signature = (ids, start = None))]
pub(crate) fn report_checksum<'py>(
    py: Python<'py>,
    ids: Vec<PyBackedBytes>,
    start: Option<&[u8]>,
) -> Result<Words<'py>> {
    let start = start.map(|start| exactly("start", start)).transpose()?;
    let mut checksum = start.unwrap_or_default();
    for id in report_ids(&ids)? {
        dap::add_to_checksum(&mut checksum, &id);
    }
    Ok(PyBytes::new(py, &checksum))
}

/// What a collector asks for.
#[pyclass(name = "CollectionJobReq", module = "turnout._core", frozen)]
pub(crate) struct PyCollectionJobReq(Vec<u8>);

impl PyCollectionJobReq {
    fn read(&self) -> Result<CollectionJobReq<'_>> {
        Ok(CollectionJobReq::decode(&self.0)?)
    }
}

#[pymethods]
impl PyCollectionJobReq {
    #[new]
    fn new(data: &[u8]) -> Result<Self> {
        CollectionJobReq::decode(data)?;
        Ok(Self(data.to_vec()))
    }

    #[staticmethod]
    #[pyo3(signature = (interval = None))]
    fn of(interval: Option<Span>) -> Result<Self> {
        let query = match interval {
            Some(given) => Query::TimeInterval(super::interval(given)?),
            None => Query::LeaderSelected,
        };
        Ok(Self(CollectionJobReq { query, agg_param: &[], extensions: Vec::new() }.encode()?))
    }

    fn to_bytes(&self) -> &[u8] {
        &self.0
    }

    #[getter]
    fn batch_mode(&self) -> Result<&'static str> {
        Ok(self.read()?.query.batch_mode().word())
    }

    #[getter]
    fn interval(&self) -> Result<Option<Span>> {
        Ok(match self.read()?.query {
            Query::TimeInterval(interval) => Some(span(interval)),
            Query::LeaderSelected => None,
        })
    }

    #[getter]
    fn aggregation_parameter(&self) -> Result<&[u8]> {
        Ok(self.read()?.agg_param)
    }

    #[getter]
    fn extensions(&self) -> Result<Vec<u16>> {
        Ok(self.read()?.extensions.iter().map(|one| one.extension_type).collect())
    }
}

/// A batch: its ID, or its times.
#[derive(FromPyObject, IntoPyObject)]
enum Batch<'py> {
    Id(Words<'py>),
    Times(Span),
}

/// What the leader asks the helper for.
#[pyclass(name = "AggregateShareReq", module = "turnout._core", frozen)]
pub(crate) struct PyAggregateShareReq(Vec<u8>);

impl PyAggregateShareReq {
    fn read(&self) -> Result<AggregateShareReq<'_>> {
        Ok(AggregateShareReq::decode(&self.0)?)
    }
}

#[pymethods]
impl PyAggregateShareReq {
    #[new]
    fn new(data: &[u8]) -> Result<Self> {
        AggregateShareReq::decode(data)?;
        Ok(Self(data.to_vec()))
    }

    #[staticmethod]
    fn of(
        collection_job_req: &PyCollectionJobReq,
        batch: Batch<'_>,
        report_count: u64,
        checksum: &[u8],
    ) -> Result<Self> {
        let batch_selector = match &batch {
            Batch::Id(id) => BatchSelector::LeaderSelected(exactly("batch", id.as_bytes())?),
            Batch::Times(times) => BatchSelector::TimeInterval(interval(*times)?),
        };
        let request = AggregateShareReq {
            collection_job_req: collection_job_req.read()?,
            batch_selector,
            report_count,
            checksum: exactly("checksum", checksum)?,
        };
        Ok(Self(request.encode()?))
    }

    fn to_bytes(&self) -> &[u8] {
        &self.0
    }

    #[getter]
    fn collection_job_req(&self) -> Result<PyCollectionJobReq> {
        Ok(PyCollectionJobReq(self.read()?.collection_job_req.encode()?))
    }

    #[getter]
    fn batch<'py>(&self, py: Python<'py>) -> Result<Batch<'py>> {
        Ok(match self.read()?.batch_selector {
            BatchSelector::LeaderSelected(id) => Batch::Id(PyBytes::new(py, &id)),
            BatchSelector::TimeInterval(interval) => Batch::Times(span(interval)),
        })
    }

    #[getter]
    fn consistent(&self) -> Result<bool> {
        let read = self.read()?;
        Ok(read.batch_selector.answers(&read.collection_job_req.query))
    }

    #[getter]
    fn report_count(&self) -> Result<u64> {
        Ok(self.read()?.report_count)
    }

    #[getter]
    fn checksum<'py>(&self, py: Python<'py>) -> Result<Words<'py>> {
        Ok(PyBytes::new(py, &self.read()?.checksum))
    }
}

#[pyfunction]
pub(crate) fn write_collection_job_resp<'py>(
    py: Python<'py>,
    report_count: u64,
    interval: Span,
    leader_share: &[u8],
    helper_share: &[u8],
) -> Result<Words<'py>> {
    let answer = CollectionJobResp {
        report_count,
        interval: super::interval(interval)?,
        leader_encrypted_agg_share: HpkeCiphertext::decode(leader_share)?,
        helper_encrypted_agg_share: HpkeCiphertext::decode(helper_share)?,
    };
    Ok(PyBytes::new(py, &answer.encode()?))
}

type CollectionResult<'py> = (u64, Span, Words<'py>, Words<'py>);

#[pyfunction]
pub(crate) fn read_collection_job_resp<'py>(
    py: Python<'py>,
    data: &[u8],
) -> Result<CollectionResult<'py>> {
    let read = CollectionJobResp::decode(data)?;
    let bytes = |share: &HpkeCiphertext<'_>| -> Result<Words<'py>> {
        Ok(PyBytes::new(py, &share.encode()?))
    };
    let (leader, helper) = (&read.leader_encrypted_agg_share, &read.helper_encrypted_agg_share);
    Ok((read.report_count, span(read.interval), bytes(leader)?, bytes(helper)?))
}

#[pyfunction]
pub(crate) fn seal_aggregate_share<'py>(
    py: Python<'py>,
    task: &PyTask,
    role: &str,
    collector_config: &[u8],
    request: &PyCollectionJobReq,
    share: &[u8],
) -> Result<Words<'py>> {
    let (role, config) = (aggregator(role)?, HpkeConfig::decode(collector_config)?);
    let request = request.read()?;
    let sealed = task.0.seal_aggregate_share(role, &config, &request, share)?;
    Ok(PyBytes::new(py, &sealed))
}

#[pyfunction]
pub(crate) fn open_aggregate_share<'py>(
    py: Python<'py>,
    task: &PyTask,
    role: &str,
    key: &PyHpkeKey,
    request: &PyCollectionJobReq,
    ciphertext: &[u8],
) -> Result<Words<'py>> {
    let ciphertext = HpkeCiphertext::decode(ciphertext)?;
    let request = request.read()?;
    let share = task.0.open_aggregate_share(aggregator(role)?, &key.0, &request, &ciphertext)?;
    Ok(PyBytes::new(py, &share))
}

/// The configuration to which a ciphertext belongs.
#[pyfunction]
pub(crate) fn ciphertext_config_id(data: &[u8]) -> Result<u8> {
    Ok(HpkeCiphertext::decode(data)?.config_id)
}
