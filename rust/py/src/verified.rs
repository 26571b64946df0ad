//! Binding of `verified`: Prio3.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use turnout_core::verified::{
    self, Continued, Entire, Error, Given, Incoming, Measure, NONCE_SIZE, Noise,
};

use crate::arrays::vector;
use crate::errors::{Failure, Result};
use crate::noise::{Seed, exactly, streams};
use crate::pool::run;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Core(error) => Self::Core(error),
            error if error.malformed() => Self::Corrupt(error.to_string()),
            error => Self::Value(error.to_string()),
        }
    }
}

/// Bytes in, bytes out.
type Bytes<'py> = Bound<'py, PyBytes>;
type Pair<'py> = (Bytes<'py>, Bytes<'py>);

/// Prio3 of one measure.
#[pyclass(frozen, eq, module = "turnout._core")]
#[derive(PartialEq)]
pub(crate) struct Prio3(verified::Prio3);

impl Prio3 {
    fn of(measure: Measure, aggregators: u8) -> Result<Self> {
        Ok(Self(verified::Prio3::new(measure, aggregators)?))
    }
}

#[pymethods]
impl Prio3 {
    #[staticmethod]
    #[pyo3(signature = (aggregators=2))]
    fn count(aggregators: u8) -> Result<Self> {
        Self::of(Measure::Count, aggregators)
    }

    #[staticmethod]
    #[pyo3(signature = (max_measurement, aggregators=2))]
    fn sum(max_measurement: u64, aggregators: u8) -> Result<Self> {
        Self::of(Measure::Sum { max_measurement }, aggregators)
    }

    #[staticmethod]
    #[pyo3(signature = (max_measurement, length, chunk_length=None, aggregators=2))]
    fn sum_vec(
        max_measurement: u64,
        length: u32,
        chunk_length: Option<u32>,
        aggregators: u8,
    ) -> Result<Self> {
        Self::of(Measure::SumVec { max_measurement, length, chunk_length }, aggregators)
    }

    #[staticmethod]
    #[pyo3(signature = (length, chunk_length=None, aggregators=2))]
    fn histogram(length: u32, chunk_length: Option<u32>, aggregators: u8) -> Result<Self> {
        Self::of(Measure::Histogram { length, chunk_length }, aggregators)
    }

    #[staticmethod]
    #[pyo3(signature = (length, max_weight=1, chunk_length=None, aggregators=2))]
    fn multihot(
        length: u32,
        max_weight: u32,
        chunk_length: Option<u32>,
        aggregators: u8,
    ) -> Result<Self> {
        Self::of(Measure::MultihotCountVec { length, max_weight, chunk_length }, aggregators)
    }

    #[getter]
    fn aggregators(&self) -> u8 {
        self.0.aggregators()
    }

    #[getter]
    fn algorithm_id(&self) -> u32 {
        self.0.algorithm_id()
    }

    /// How many numbers are added up.
    #[getter]
    fn length(&self) -> usize {
        self.0.output_length()
    }

    #[getter]
    fn chunk_length(&self) -> Option<u32> {
        match self.0.measure() {
            Measure::SumVec { chunk_length, .. }
            | Measure::Histogram { chunk_length, .. }
            | Measure::MultihotCountVec { chunk_length, .. } => chunk_length,
            _ => None,
        }
    }

    /// The largest number that one report adds to an entry.
    #[getter]
    fn max_measurement(&self) -> u64 {
        self.0.measure().largest()
    }

    #[getter]
    fn max_weight(&self) -> Option<u32> {
        match self.0.measure() {
            Measure::MultihotCountVec { max_weight, .. } => Some(max_weight),
            _ => None,
        }
    }

    #[getter]
    fn modulus(&self) -> u128 {
        self.0.modulus()
    }

    #[getter]
    fn public_share_length(&self) -> usize {
        self.0.public_share_length()
    }

    #[getter]
    fn aggregate_share_length(&self) -> usize {
        self.0.aggregate_share_length()
    }

    fn input_share_length(&self, aggregator: u8) -> usize {
        self.0.input_share_length(aggregator)
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the list")]
    fn shard<'py>(
        &self,
        py: Python<'py>,
        context: &[u8],
        measurement: Vec<u64>,
        nonce: &[u8],
    ) -> Result<(Bytes<'py>, Bound<'py, PyList>)> {
        let nonce = exactly("nonce", nonce)?;
        let report = py.detach(|| self.0.shard(context, &measurement, &nonce))?;
        Ok((PyBytes::new(py, &report.public_share), list(py, &report.input_shares)?))
    }

    fn shard_votes<'py>(
        &self,
        py: Python<'py>,
        context: &[u8],
        votes: &Bound<'py, PyAny>,
        nonces: &[u8],
    ) -> Result<Bound<'py, PyList>> {
        let votes = vector::<i64>("votes", votes)?;
        let (votes, nonces): (&[i64], _) = (&votes, each_of("vote", nonces)?);
        made(py, run(py, || Ok(self.0.shard_votes(context, votes, nonces)))??)
    }

    fn shard_numbers<'py>(
        &self,
        py: Python<'py>,
        context: &[u8],
        numbers: &Bound<'py, PyAny>,
        nonces: &[u8],
    ) -> Result<Bound<'py, PyList>> {
        let numbers = vector::<u64>("numbers", numbers)?;
        let (numbers, nonces): (&[u64], _) = (&numbers, each_of("report", nonces)?);
        made(py, run(py, || Ok(self.0.shard_numbers(context, numbers, nonces)))??)
    }

    #[expect(clippy::too_many_arguments, reason = "those of the draft")]
    fn verify_init<'py>(
        &self,
        py: Python<'py>,
        verify_key: &[u8],
        context: &[u8],
        aggregator: u8,
        nonce: &[u8],
        public_share: &[u8],
        input_share: &[u8],
    ) -> Result<Pair<'py>> {
        let key = exactly("verify_key", verify_key)?;
        let report = Incoming { nonce: &exactly("nonce", nonce)?, public_share, input_share };
        let begun = py.detach(|| self.0.verify_init(&key, context, aggregator, report))?;
        Ok((PyBytes::new(py, &begun.state), PyBytes::new(py, &begun.message)))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the list")]
    fn verifier_message<'py>(
        &self,
        py: Python<'py>,
        context: &[u8],
        verifier_shares: Vec<Bytes<'py>>,
    ) -> Result<Bytes<'py>> {
        let shares: Vec<&[u8]> = verifier_shares.iter().map(PyBytesMethods::as_bytes).collect();
        Ok(PyBytes::new(py, &py.detach(|| self.0.verifier_message(context, &shares))?))
    }

    fn verify_next<'py>(
        &self,
        py: Python<'py>,
        context: &[u8],
        aggregator: u8,
        state: &[u8],
        verifier_message: &[u8],
    ) -> Result<Bytes<'py>> {
        let next = || self.0.verify_next(context, aggregator, state, verifier_message);
        Ok(PyBytes::new(py, &py.detach(next)?))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the list")]
    fn leader_initialized<'py>(
        &self,
        py: Python<'py>,
        verify_key: &[u8],
        context: &[u8],
        reports: Vec<(Bytes<'py>, Bytes<'py>, Bytes<'py>)>,
    ) -> Result<Bound<'py, PyList>> {
        let key = exactly("verify_key", verify_key)?;
        let incoming: Vec<_> = reports
            .iter()
            .map(|(nonce, public_share, input_share)| incoming(nonce, public_share, input_share))
            .collect::<Result<_>>()?;
        let begun = run(py, || Ok(self.0.leader_initialized_many(&key, context, &incoming)))?;
        outcomes(py, begun, |py, begun| {
            (PyBytes::new(py, &begun.state), PyBytes::new(py, &begun.message))
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the list")]
    fn helper_initialized<'py>(
        &self,
        py: Python<'py>,
        verify_key: &[u8],
        context: &[u8],
        reports: Vec<(Bytes<'py>, Bytes<'py>, Bytes<'py>, Bytes<'py>)>,
    ) -> Result<Bound<'py, PyList>> {
        let key = exactly("verify_key", verify_key)?;
        let given: Vec<_> = reports
            .iter()
            .map(|(nonce, public_share, input_share, message)| {
                let report = incoming(nonce, public_share, input_share)?;
                Ok(Given { report, leader_message: message.as_bytes() })
            })
            .collect::<Result<_>>()?;
        let done = run(py, || Ok(self.0.helper_initialized_many(&key, context, &given)))?;
        outcomes(py, done, |py, done| {
            (PyBytes::new(py, &done.output_share), PyBytes::new(py, &done.message))
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the list")]
    fn leader_continued<'py>(
        &self,
        py: Python<'py>,
        context: &[u8],
        reports: Vec<Pair<'py>>,
    ) -> Result<Bound<'py, PyList>> {
        let continued: Vec<_> = reports
            .iter()
            .map(|(state, message)| Continued {
                state: state.as_bytes(),
                helper_message: message.as_bytes(),
            })
            .collect();
        let done = run(py, || Ok(self.0.leader_continued_many(context, &continued)))?;
        outcomes(py, done, |py, share| PyBytes::new(py, &share))
    }

    /// Verifies whole reports as all aggregators would.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the list")]
    fn verify_together<'py>(
        &self,
        py: Python<'py>,
        verify_key: &[u8],
        context: &[u8],
        reports: Vec<(Bytes<'py>, Bytes<'py>, Vec<Bytes<'py>>)>,
    ) -> Result<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let key = exactly("verify_key", verify_key)?;
        let shares: Vec<Vec<&[u8]>> = reports
            .iter()
            .map(|(_, _, shares)| shares.iter().map(PyBytesMethods::as_bytes).collect())
            .collect();
        let entire: Vec<_> = reports
            .iter()
            .zip(&shares)
            .map(|((nonce, public, _), input_shares)| {
                let public_share = public.as_bytes();
                Ok(Entire { nonce: sized(nonce)?, public_share, input_shares })
            })
            .collect::<Result<_>>()?;
        let done = run(py, || Ok(self.0.verify_together(&key, context, &entire)))??;
        let refused = done.refused.iter().map(|error| error.as_ref().map(reason));
        Ok((list(py, &done.aggregate_shares)?, PyList::new(py, refused)?))
    }

    /// Adds output shares to an aggregate share, or to that of no report.
    #[pyo3(signature = (output_shares, aggregate_share=None))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the list")]
    fn aggregate<'py>(
        &self,
        py: Python<'py>,
        output_shares: Vec<Bytes<'py>>,
        aggregate_share: Option<&[u8]>,
    ) -> Result<Bytes<'py>> {
        let shares: Vec<&[u8]> = output_shares.iter().map(PyBytesMethods::as_bytes).collect();
        let empty = self.0.aggregate_init();
        let start = aggregate_share.unwrap_or(&empty);
        Ok(PyBytes::new(py, &py.detach(|| self.0.aggregate(start, &shares))?))
    }

    #[pyo3(signature = (aggregate_share, noise, parameter, reports, seed=None))]
    fn add_noise<'py>(
        &self,
        py: Python<'py>,
        aggregate_share: &[u8],
        noise: &str,
        parameter: f64,
        reports: u64,
        seed: Option<Seed>,
    ) -> Result<Bytes<'py>> {
        let noise = noise_of(noise, parameter)?;
        let streams = streams(seed)?;
        let add = || Ok(self.0.add_noise(aggregate_share, noise, reports, &streams));
        Ok(PyBytes::new(py, &run(py, add)??))
    }

    fn check_noise(&self, noise: &str, parameter: f64, reports: u64) -> Result<()> {
        Ok(self.0.check_noise(noise_of(noise, parameter)?, reports)?)
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 makes the list")]
    fn unshard(&self, aggregate_shares: Vec<Bytes<'_>>) -> Result<Vec<i128>> {
        let shares: Vec<&[u8]> = aggregate_shares.iter().map(PyBytesMethods::as_bytes).collect();
        Ok(self.0.unshard(&shares)?)
    }
}

fn noise_of(law: &str, parameter: f64) -> Result<Noise> {
    match law {
        "discrete_laplace" => Ok(Noise::DiscreteLaplace { scale: parameter }),
        "discrete_gaussian" => Ok(Noise::DiscreteGaussian { variance: parameter }),
        _ => {
            let message = "noise must be \"discrete_laplace\" or \"discrete_gaussian\"";
            Err(Failure::Value(message.to_owned()))
        }
    }
}

fn each_of<'a>(what: &str, nonces: &'a [u8]) -> Result<&'a [[u8; NONCE_SIZE]]> {
    let (nonces, rest) = nonces.as_chunks::<NONCE_SIZE>();
    if rest.is_empty() {
        return Ok(nonces);
    }
    Err(Failure::Value(format!("nonces must have {NONCE_SIZE} bytes for each {what}")))
}

/// Reports as pairs of the public share and a list of the input shares.
fn made(py: Python<'_>, reports: Vec<verified::Report>) -> Result<Bound<'_, PyList>> {
    let made = PyList::empty(py);
    for report in reports {
        let public = PyBytes::new(py, &report.public_share);
        made.append((public, list(py, &report.input_shares)?))?;
    }
    Ok(made)
}

/// Why a report was refused, in a word.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Replayed => "replayed",
        error if error.malformed() => "malformed",
        _ => "proof",
    }
}

fn sized<'a>(nonce: &'a Bytes<'_>) -> Result<&'a [u8; NONCE_SIZE]> {
    nonce
        .as_bytes()
        .try_into()
        .map_err(|_| Failure::Value(format!("nonce must have {NONCE_SIZE} bytes")))
}

fn incoming<'a>(
    nonce: &'a Bytes<'_>,
    public_share: &'a Bytes<'_>,
    input_share: &'a Bytes<'_>,
) -> Result<Incoming<'a>> {
    let (public_share, input_share) = (public_share.as_bytes(), input_share.as_bytes());
    Ok(Incoming { nonce: sized(nonce)?, public_share, input_share })
}

fn list<'py>(py: Python<'py>, parts: &[Vec<u8>]) -> Result<Bound<'py, PyList>> {
    Ok(PyList::new(py, parts.iter().map(|part| PyBytes::new(py, part)))?)
}

/// What came of each report: what the verification gives, or why it was refused.
fn outcomes<'py, T, O: IntoPyObject<'py>>(
    py: Python<'py>,
    results: Vec<verified::Result<T>>,
    given: impl Fn(Python<'py>, T) -> O,
) -> Result<Bound<'py, PyList>>
where
    PyErr: From<O::Error>,
{
    let all = PyList::empty(py);
    for result in results {
        match result {
            Ok(value) => all.append(given(py, value))?,
            // Of all reports alike: not a matter of one of them.
            Err(error @ Error::Parameter { .. }) => return Err(error.into()),
            Err(error) => all.append(reason(&error))?,
        }
    }
    Ok(all)
}
