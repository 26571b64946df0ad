//! Binding of `frequency::direct_encoding`.

use numpy::{Element, IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use turnout::frequency::{self as core, NodeProbabilities, ReportCode, Selection};
use turnout::parameters::{DomainSize, Epsilon};

use crate::arrays::{CodeArray, floats, slice, with_codes};
use crate::errors::{exception, internal};
use crate::noise::{Seed, streams};
use crate::oracle::{self, Support, Weighted, WeightedCollection, bit_rows, weighted};
use crate::participation::uniform;
use crate::pool::run;

/// The direct-encoding randomizer on integer codes.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct DirectEncoding {
    oracle: core::DirectEncoding,
}

#[pymethods]
impl DirectEncoding {
    #[new]
    fn new(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
        let build =
            || core::DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(domain_size)?);
        build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
    }

    /// How many 64-bit words make a node report its own code, and each other code.
    #[getter]
    fn words(&self) -> (u64, u64) {
        self.oracle.words()
    }

    /// The realised epsilon, rounded up.
    #[getter]
    fn realized_epsilon(&self) -> f64 {
        self.oracle.realized_epsilon()
    }

    /// The probabilities p* and q*.
    #[getter]
    fn support_probabilities(&self) -> (f64, f64) {
        self.oracle.support_probabilities()
    }

    /// One report for each node that takes part, all with the same rate.
    #[pyo3(signature = (codes, rate, seed=None))]
    fn randomize<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        rate: f64,
        seed: Option<Seed>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = codes.py();
        let array = CodeArray::extract("values", codes)?;
        let size = self.oracle.domain_size().get();
        if size <= u8::RANGE {
            self.reports::<u8>(py, &array, rate, seed)
        } else if size <= u16::RANGE {
            self.reports::<u16>(py, &array, rate, seed)
        } else {
            self.reports::<u32>(py, &array, rate, seed)
        }
    }

    /// The same with a rate for each node; gives the reports and the rates of their nodes.
    #[pyo3(signature = (codes, probabilities, seed=None))]
    fn randomize_personalized<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        probabilities: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)> {
        let py = codes.py();
        let array = CodeArray::extract("values", codes)?;
        let rates = floats("probabilities", probabilities)?;
        let rates = slice(py, "probabilities", &rates)?;
        let size = self.oracle.domain_size().get();
        if size <= u8::RANGE {
            self.personal_reports::<u8>(py, &array, rates, seed)
        } else if size <= u16::RANGE {
            self.personal_reports::<u16>(py, &array, rates, seed)
        } else {
            self.personal_reports::<u32>(py, &array, rates, seed)
        }
    }

    /// Counts the reports that support each code.
    fn tally<'py>(&self, reports: &Bound<'py, PyAny>) -> PyResult<Support<'py>> {
        let py = reports.py();
        let array = CodeArray::extract("reports", reports)?;
        let tally = with_codes!(py, "reports", array, |codes| {
            run(py, || self.oracle.tally(codes, None))
        })?;
        Ok(tally.support.into_pyarray(py))
    }

    /// Counts reports and adds up the weights of their nodes.
    fn tally_personalized<'py>(
        &self,
        reports: &Bound<'py, PyAny>,
        probabilities: &Bound<'py, PyAny>,
    ) -> PyResult<Weighted<'py>> {
        let py = reports.py();
        let array = CodeArray::extract("reports", reports)?;
        let rates = floats("probabilities", probabilities)?;
        let rates = slice(py, "probabilities", &rates)?;
        let tally = with_codes!(py, "reports", array, |codes| {
            run(py, || self.oracle.tally(codes, Some(NodeProbabilities::new(rates)?)))
        })?;
        weighted(py, tally)
    }

    /// Selects, randomizes and counts in one pass, all with the same rate.
    #[pyo3(signature = (codes, rate, seed=None))]
    fn collect<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        rate: f64,
        seed: Option<Seed>,
    ) -> PyResult<(Support<'py>, u64)> {
        let py = codes.py();
        let array = CodeArray::extract("values", codes)?;
        let tally = with_codes!(py, "values", array, |codes| {
            run(py, || self.oracle.collect(codes, &uniform(rate)?, &streams(seed)?))
        })?;
        Ok((tally.support.into_pyarray(py), tally.received))
    }

    /// The same with a rate for each node.
    #[pyo3(signature = (codes, probabilities, seed=None))]
    fn collect_personalized<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        probabilities: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> PyResult<WeightedCollection<'py>> {
        let py = codes.py();
        let array = CodeArray::extract("values", codes)?;
        let rates = floats("probabilities", probabilities)?;
        let rates = slice(py, "probabilities", &rates)?;
        let tally = with_codes!(py, "values", array, |codes| {
            run(py, || {
                let selection = Selection::personalized(NodeProbabilities::new(rates)?);
                self.oracle.collect(codes, &selection, &streams(seed)?)
            })
        })?;
        let received = tally.received;
        let (support, inverse, squared) = weighted(py, tally)?;
        Ok((support, received, inverse, squared))
    }

    /// A tally with the law of `collect`, from the true counts alone.
    #[pyo3(signature = (true_counts, rate, seed=None))]
    fn simulate<'py>(
        &self,
        true_counts: &Bound<'py, PyAny>,
        rate: f64,
        seed: Option<Seed>,
    ) -> PyResult<(Support<'py>, u64)> {
        oracle::simulate(true_counts, rate, seed, |counts, rate, streams| {
            self.oracle.simulate(counts, rate, streams)
        })
    }

    /// Which codes each report supports, as rows of bits.
    fn supports<'py>(&self, reports: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let py = reports.py();
        let array = CodeArray::extract("reports", reports)?;
        let bits =
            with_codes!(py, "reports", array, |codes| run(py, || self.oracle.supports(codes)))?;
        bit_rows(py, bits, self.oracle.domain_size().len())
    }

    /// Refuses reports that are outside the domain.
    fn check(&self, reports: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = reports.py();
        let array = CodeArray::extract("reports", reports)?;
        with_codes!(py, "reports", array, |codes| run(py, || self.oracle.check(codes)))
    }

    /// How many items a report has.
    #[getter]
    #[expect(clippy::unused_self, reason = "it depends on the parameters of other oracles")]
    fn report_width(&self) -> usize {
        1
    }
}

impl DirectEncoding {
    fn reports<'py, O: ReportCode + Element>(
        &self,
        py: Python<'py>,
        codes: &CodeArray<'py>,
        rate: f64,
        seed: Option<Seed>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reports = with_codes!(py, "values", *codes, |codes| {
            run(py, || self.oracle.randomize::<_, O, _>(codes, &uniform(rate)?, &streams(seed)?))
        })?;
        Ok(reports.codes.into_pyarray(py).into_any())
    }

    fn personal_reports<'py, O: ReportCode + Element>(
        &self,
        py: Python<'py>,
        codes: &CodeArray<'py>,
        rates: &[f64],
        seed: Option<Seed>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)> {
        let reports = with_codes!(py, "values", *codes, |codes| {
            run(py, || {
                let selection = Selection::personalized(NodeProbabilities::new(rates)?);
                self.oracle.randomize::<_, O, _>(codes, &selection, &streams(seed)?)
            })
        })?;
        let rates = reports.probabilities.ok_or_else(|| internal("reports without rates"))?;
        Ok((reports.codes.into_pyarray(py).into_any(), rates.into_pyarray(py)))
    }
}
