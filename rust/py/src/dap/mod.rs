//! Binding of `dap`: messages of the Distributed Aggregation Protocol, many reports at a time. Here are tasks,
//! keys and words; `reports` is the upload, `jobs` what aggregators and collector say to each other.

#![expect(clippy::needless_pass_by_value, reason = "Python's lists are taken as vectors")]

mod jobs;
mod reports;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use turnout_core::dap::{
    self, BatchMode, Dialect, HistogramConfig, HpkeCiphertext, HpkeConfig, HpkeConfigList, HpkeKey,
    Interval, MediaType, Message, MultihotCountVecConfig, Problem, ReportError, Role, SumConfig,
    SumVecConfig, Task, TaskConfiguration, VdafConfiguration,
};

pub(crate) use jobs::{
    PyAggregateShareReq, PyAggregationJobInitReq, PyCollectionJobReq, ciphertext_config_id,
    open_aggregate_share, read_aggregation_job_continue_req, read_aggregation_job_resp,
    read_collection_job_resp, report_checksum, seal_aggregate_share,
    write_aggregation_job_continue_req, write_aggregation_job_resp, write_collection_job_resp,
};
pub(crate) use reports::{PyReports, read_upload_errors, seal_reports, write_upload_errors};

use crate::errors::{Failure, Result};
use crate::noise::exactly;

type Words<'py> = Bound<'py, PyBytes>;
type Span = (u64, u64);

impl From<dap::Error> for Failure {
    fn from(error: dap::Error) -> Self {
        match error {
            dap::Error::Malformed { .. } | dap::Error::Sealed { .. } => {
                Self::Corrupt(error.to_string())
            }
            dap::Error::Randomness => Self::Defect(error.to_string()),
            other => Self::Value(other.to_string()),
        }
    }
}

/// The one of these words that was given.
fn word<T: Copy>(argument: &str, given: &str, all: &[(T, &str)]) -> Result<T> {
    let found = all.iter().find(|(_, word)| *word == given).map(|(one, _)| *one);
    found.ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|(_, word)| format!("'{word}'")).collect();
        Failure::Value(format!("{argument} must be {}, got '{given}'", words.join(" or ")))
    })
}

fn batch_mode(given: &str) -> Result<BatchMode> {
    word(
        "batch_mode",
        given,
        &BatchMode::ALL.iter().map(|one| (*one, one.word())).collect::<Vec<_>>(),
    )
}

fn aggregator(given: &str) -> Result<Role> {
    let both = [Role::Leader, Role::Helper].map(|role| (role, role.word()));
    word("role", given, &both)
}

fn dialect(given: &str) -> Result<Dialect> {
    word("dialect", given, &[(Dialect::Draft, dap::VERSION), (Dialect::Janus, "janus")])
}

fn report_error(code: u8) -> Result<ReportError> {
    let message = || format!("a report error must be 1 to 11, got {code}");
    ReportError::of(code).ok_or_else(|| Failure::Value(message()))
}

fn interval((start, duration): Span) -> Result<Interval> {
    Ok(Interval::new(start, duration)?)
}

fn span(interval: Interval) -> Span {
    (interval.start(), interval.duration())
}

fn same_length(lengths: &[(&str, usize)]) -> Result<()> {
    let [(first, expected), ..] = lengths else { return Ok(()) };
    match lengths.iter().find(|(_, length)| length != expected) {
        None => Ok(()),
        Some((name, length)) => Err(Failure::Value(format!(
            "{name} must have as many entries as {first}, {expected}, got {length}"
        ))),
    }
}

fn report_ids<'a>(given: impl IntoIterator<Item = &'a PyBackedBytes>) -> Result<Vec<[u8; 16]>> {
    given.into_iter().map(|id| exactly("a report ID", id)).collect()
}

/// Task parameters that enter every encryption.
#[pyclass(name = "DapTask", module = "turnout._core", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyTask(Task);

#[pymethods]
impl PyTask {
    #[new]
    #[pyo3(signature = (
        task_id, *, leader, helper, time_precision, min_batch_size, batch_mode, vdaf_type, vdaf_configuration,
        task_info, interval = None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are the fields of the draft")]
    fn new(
        task_id: &[u8],
        leader: &str,
        helper: &str,
        time_precision: u64,
        min_batch_size: u64,
        batch_mode: &str,
        vdaf_type: u32,
        vdaf_configuration: &[u8],
        task_info: &[u8],
        interval: Option<Span>,
    ) -> Result<Self> {
        VdafConfiguration::of(vdaf_type, vdaf_configuration)?;
        let configuration = TaskConfiguration {
            task_info,
            leader_aggregator_endpoint: leader.as_bytes(),
            helper_aggregator_endpoint: helper.as_bytes(),
            time_precision,
            min_batch_size,
            batch_mode: self::batch_mode(batch_mode)?,
            batch_config: &[],
            vdaf_type,
            vdaf_configuration,
            extensions: Vec::new(),
        };
        let interval = interval.map(self::interval).transpose()?;
        Ok(Self(Task::of(exactly("task_id", task_id)?, configuration, interval)?))
    }

    #[staticmethod]
    fn read(task_id: &[u8], configuration: &[u8]) -> Result<Self> {
        Ok(Self(Task::new(exactly("task_id", task_id)?, configuration)?))
    }

    fn to_bytes(&self) -> &[u8] {
        self.0.configuration()
    }

    #[getter]
    fn id(&self) -> &[u8] {
        self.0.id()
    }

    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> Words<'py> {
        PyBytes::new(py, &self.0.context())
    }

    #[getter]
    fn leader(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.0.parameters()?.leader_aggregator_endpoint).into_owned())
    }

    #[getter]
    fn helper(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.0.parameters()?.helper_aggregator_endpoint).into_owned())
    }

    #[getter]
    fn time_precision(&self) -> Result<u64> {
        Ok(self.0.parameters()?.time_precision)
    }

    #[getter]
    fn min_batch_size(&self) -> Result<u64> {
        Ok(self.0.parameters()?.min_batch_size)
    }

    #[getter]
    fn batch_mode(&self) -> Result<&'static str> {
        Ok(self.0.parameters()?.batch_mode.word())
    }

    #[getter]
    fn vdaf_type(&self) -> Result<u32> {
        Ok(self.0.parameters()?.vdaf_type)
    }

    #[getter]
    fn vdaf_configuration(&self) -> Result<&[u8]> {
        Ok(self.0.parameters()?.vdaf_configuration)
    }

    #[getter]
    fn task_info(&self) -> Result<&[u8]> {
        Ok(self.0.parameters()?.task_info)
    }

    #[getter]
    fn interval(&self) -> Option<Span> {
        self.0.interval().map(span)
    }
}

/// The parameters of a VDAF as they stand in a task's configuration.
#[pyfunction]
#[pyo3(signature = (vdaf_type, *, length=None, chunk_length=None, max_measurement=None, max_weight=None))]
pub(crate) fn write_vdaf_configuration(
    py: Python<'_>,
    vdaf_type: u32,
    length: Option<u32>,
    chunk_length: Option<u32>,
    max_measurement: Option<u64>,
    max_weight: Option<u64>,
) -> Result<Words<'_>> {
    let configuration = match (vdaf_type, length, chunk_length, max_measurement, max_weight) {
        (1, None, None, None, None) => VdafConfiguration::Count,
        (2, None, None, Some(max_measurement), None) => {
            VdafConfiguration::Sum(SumConfig { max_measurement })
        }
        (3, Some(length), Some(chunk_length), Some(max_measurement), None) => {
            VdafConfiguration::SumVec(SumVecConfig { length, max_measurement, chunk_length })
        }
        (4, Some(length), Some(chunk_length), None, None) => {
            VdafConfiguration::Histogram(HistogramConfig { length, chunk_length })
        }
        (5, Some(length), Some(chunk_length), None, Some(max_weight)) => {
            let config = MultihotCountVecConfig { length, chunk_length, max_weight };
            VdafConfiguration::MultihotCountVec(config)
        }
        _ => {
            return Err(Failure::Value(format!(
                "vdaf_type must be 1 (no parameter), 2 (max_measurement), 3 (length, chunk_length, \
                 max_measurement), 4 (length, chunk_length) or 5 (length, chunk_length, max_weight), got \
                 {vdaf_type} with others"
            )));
        }
    };
    Ok(PyBytes::new(py, &configuration.encode()?))
}

/// The parameters of a VDAF by their names.
#[pyfunction]
pub(crate) fn read_vdaf_configuration<'py>(
    py: Python<'py>,
    vdaf_type: u32,
    configuration: &[u8],
) -> Result<Bound<'py, PyDict>> {
    let found: Vec<(&str, u64)> = match VdafConfiguration::of(vdaf_type, configuration)? {
        VdafConfiguration::Sum(one) => vec![("max_measurement", one.max_measurement)],
        VdafConfiguration::SumVec(one) => vec![
            ("length", one.length.into()),
            ("chunk_length", one.chunk_length.into()),
            ("max_measurement", one.max_measurement),
        ],
        VdafConfiguration::Histogram(one) => {
            vec![("length", one.length.into()), ("chunk_length", one.chunk_length.into())]
        }
        VdafConfiguration::MultihotCountVec(one) => vec![
            ("length", one.length.into()),
            ("chunk_length", one.chunk_length.into()),
            ("max_weight", one.max_weight),
        ],
        _ => vec![],
    };
    let names = PyDict::new(py);
    for (name, value) in found {
        names.set_item(name, value)?;
    }
    Ok(names)
}

/// A private key of HPKE with its configuration.
#[pyclass(name = "HpkeKey", module = "turnout._core", frozen)]
pub(crate) struct PyHpkeKey(HpkeKey);

#[pymethods]
impl PyHpkeKey {
    #[new]
    fn new(config: &[u8], private_key: &[u8]) -> Result<Self> {
        Ok(Self(HpkeKey::new(config, private_key)?))
    }

    #[staticmethod]
    fn generate(config_id: u8) -> Result<Self> {
        Ok(Self(HpkeKey::generate(config_id)?))
    }

    #[getter]
    fn config_id(&self) -> u8 {
        self.0.id()
    }

    #[getter]
    fn config(&self) -> &[u8] {
        self.0.config()
    }

    fn private_key<'py>(&self, py: Python<'py>) -> Words<'py> {
        PyBytes::new(py, &self.0.private_key())
    }

    /// What was encrypted to this key with the same `info` and `aad`.
    fn open<'py>(
        &self,
        py: Python<'py>,
        info: &[u8],
        aad: &[u8],
        ciphertext: &[u8],
    ) -> Result<Words<'py>> {
        let read = HpkeCiphertext::decode(ciphertext)?;
        let opened = self.0.open(info, aad, &read);
        let refused = "the ciphertext was not encrypted to this key for this purpose";
        Ok(PyBytes::new(py, &opened.ok_or_else(|| Failure::Corrupt(refused.into()))?))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Encrypts something to the key of an encoded configuration.
#[pyfunction]
pub(crate) fn seal_to<'py>(
    py: Python<'py>,
    config: &[u8],
    info: &[u8],
    aad: &[u8],
    plaintext: &[u8],
) -> Result<Words<'py>> {
    Ok(PyBytes::new(py, &HpkeConfig::decode(config)?.seal(info, aad, plaintext)?))
}

#[pyfunction]
pub(crate) fn write_hpke_configs(py: Python<'_>, configs: Vec<PyBackedBytes>) -> Result<Words<'_>> {
    let configs: dap::Result<Vec<_>> = configs.iter().map(|one| HpkeConfig::decode(one)).collect();
    Ok(PyBytes::new(py, &HpkeConfigList { configs: configs? }.encode()?))
}

#[pyfunction]
pub(crate) fn read_hpke_configs<'py>(py: Python<'py>, data: &[u8]) -> Result<Vec<Words<'py>>> {
    let list = HpkeConfigList::decode(data)?;
    list.configs.iter().map(|config| Ok(PyBytes::new(py, &config.encode()?))).collect()
}

#[pyfunction]
pub(crate) fn choose_hpke_config<'py>(py: Python<'py>, data: &[u8]) -> Result<Words<'py>> {
    let list = HpkeConfigList::decode(data)?;
    Ok(PyBytes::new(py, &list.supported()?.encode()?))
}

/// The words of the protocol, for the module: media types, problems and errors of reports.
pub(crate) fn add_words(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let (media, problems, errors) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
    for one in MediaType::ALL {
        media.set_item(one.word(), one.content_type())?;
    }
    for one in Problem::ALL {
        problems.set_item(one.word(), one.urn())?;
    }
    for one in ReportError::ALL {
        errors.set_item(one.word(), one.code())?;
    }
    module.add("DAP_MEDIA_TYPES", media)?;
    module.add("DAP_PROBLEMS", problems)?;
    module.add("DAP_REPORT_ERRORS", errors)
}
