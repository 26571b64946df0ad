//! Binding of `frequency::longitudinal`.

use numpy::PyUntypedArrayMethods;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use turnout::frequency::{self as core, BitStage, NodeProbabilities, SECRET_BYTES, Selection};
use turnout::parameters::Epsilon;

use crate::arrays::{CodeArray, floats, matrix, slice, vector, with_codes};
use crate::errors::{internal, invalid_type};
use crate::noise::{Seed, streams};
use crate::oracle::{Shape, oracle_class};
use crate::participation::uniform;
use crate::pool::run;

/// Two numbers of words for each of two stages.
type Stages = ((u64, u64), (u64, u64));

/// Reports with the rates of their nodes, if each has its own.
type Round<'py, A> = (A, Option<Bound<'py, PyArray1<f64>>>);

/// The secrets of nodes, one row for each.
struct Secrets<'py>(PyReadonlyArray2<'py, u8>);

impl<'py> Secrets<'py> {
    fn extract(secrets: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = matrix::<u8>("secrets", secrets)?;
        if array.shape()[1] == SECRET_BYTES {
            return Ok(Self(array));
        }
        let found = array.shape()[1];
        let message = format!("secrets must have rows of {SECRET_BYTES} bytes, got {found}");
        Err(invalid_type(secrets.py(), message))
    }

    fn rows(&self, py: Python<'_>) -> PyResult<&[[u8; SECRET_BYTES]]> {
        let bytes = self
            .0
            .as_slice()
            .map_err(|_| invalid_type(py, "secrets must be a contiguous array".to_owned()))?;
        Ok(bytes.as_chunks().0)
    }
}

oracle_class!(
    /// Direct encoding of permanent answers made by direct encoding.
    MemoizedDirect: core::MemoizedDirect, Shape::Flat,
    {
        /// The realised epsilon of the permanent answer, rounded up.
        lifetime_epsilon: f64,
    },
    {
        #[new]
        fn new(py: Python<'_>, domain_size: u64, lifetime: f64, first: f64) -> PyResult<Self> {
            Self::made(py, lifetime, domain_size, |lifetime, domain| {
                core::MemoizedDirect::new(domain, lifetime, Epsilon::new(first)?)
            })
        }

        /// The words of the permanent answer and of a report: for the own code, and for another.
        #[getter]
        fn words(&self) -> Stages {
            self.oracle.words().into()
        }

        /// The permanent answers of nodes.
        fn permanent<'py>(
            &self,
            codes: &Bound<'py, PyAny>,
            secrets: &Bound<'py, PyAny>,
            context: [u8; 32],
        ) -> PyResult<Bound<'py, PyArray1<u32>>> {
            let py = codes.py();
            let array = CodeArray::extract("values", codes)?;
            let secrets = Secrets::extract(secrets)?;
            let rows = secrets.rows(py)?;
            let answers = with_codes!(py, "values", array, |codes| {
                run(py, || self.oracle.permanent(codes, rows, &context))
            })?;
            Ok(answers.into_pyarray(py))
        }

        /// One round of reports of permanent answers.
        #[pyo3(signature = (permanent, rate, seed=None))]
        fn instantaneous<'py>(
            &self,
            permanent: &Bound<'py, PyAny>,
            rate: &Bound<'py, PyAny>,
            seed: Option<Seed>,
        ) -> PyResult<Round<'py, Bound<'py, PyArray1<u32>>>> {
            let py = permanent.py();
            let array = vector::<u32>("permanent", permanent)?;
            let answers = slice(py, "permanent", &array)?;
            let reports = select(py, rate, |selection| {
                self.oracle.instantaneous(answers, selection, &streams(seed)?)
            })?;
            let rates = reports.probabilities.map(|rates| rates.into_pyarray(py));
            Ok((reports.codes.into_pyarray(py), rates))
        }
    }
);

oracle_class!(
    /// Unary encoding with two stages of randomised bits.
    MemoizedUnary: core::MemoizedUnary, Shape::Rows,
    {},
    {
        #[new]
        fn new(
            py: Python<'_>,
            domain_size: u64,
            lifetime: f64,
            first: f64,
            optimized: (bool, bool),
        ) -> PyResult<Self> {
            let stage = |optimized| if optimized { BitStage::Optimized } else { BitStage::Symmetric };
            Self::made(py, lifetime, domain_size, |lifetime, domain| {
                let stages = [stage(optimized.0), stage(optimized.1)];
                core::MemoizedUnary::new(domain, lifetime, Epsilon::new(first)?, stages)
            })
        }

        /// The words of the permanent answer and of a report: for a bit that is one, and for a zero.
        #[getter]
        fn words(&self) -> Stages {
            self.oracle.chain().words().into()
        }

        /// The realised epsilon of the permanent answer, rounded up.
        #[getter]
        fn lifetime_epsilon(&self) -> f64 {
            self.oracle.chain().lifetime_epsilon()
        }

        /// The permanent answers of nodes.
        fn permanent<'py>(
            &self,
            codes: &Bound<'py, PyAny>,
            secrets: &Bound<'py, PyAny>,
            context: [u8; 32],
        ) -> PyResult<Bound<'py, PyArray2<u64>>> {
            let py = codes.py();
            let array = CodeArray::extract("values", codes)?;
            let secrets = Secrets::extract(secrets)?;
            let rows = secrets.rows(py)?;
            let answers = with_codes!(py, "values", array, |codes| {
                run(py, || self.oracle.permanent(codes, rows, &context))
            })?;
            self.rows(py, answers)
        }

        /// One round of reports of permanent answers.
        #[pyo3(signature = (permanent, rate, seed=None))]
        fn instantaneous<'py>(
            &self,
            permanent: &Bound<'py, PyAny>,
            rate: &Bound<'py, PyAny>,
            seed: Option<Seed>,
        ) -> PyResult<Round<'py, Bound<'py, PyArray2<u64>>>> {
            let py = permanent.py();
            let array = matrix::<u64>("permanent", permanent)?;
            let answers = array.as_slice().map_err(|_| internal("permanent is not contiguous"))?;
            let reports = select(py, rate, |selection| {
                self.oracle.instantaneous(answers, selection, &streams(seed)?)
            })?;
            let rates = reports.probabilities.map(|rates| rates.into_pyarray(py));
            Ok((self.rows(py, reports.codes)?, rates))
        }
    }
);

impl MemoizedUnary {
    fn rows<'py>(&self, py: Python<'py>, items: Vec<u64>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let width = turnout::frequency::Randomizer::width(&self.oracle);
        let rows = items.len() / width;
        items.into_pyarray(py).reshape([rows, width])
    }
}

/// Runs with the selection of one rate, or of one for each node.
fn select<T: Send>(
    py: Python<'_>,
    rate: &Bound<'_, PyAny>,
    job: impl FnOnce(&Selection<'_>) -> turnout::Result<T> + Send,
) -> PyResult<T> {
    if let Ok(rate) = rate.extract::<f64>() {
        return run(py, || job(&uniform(rate)?));
    }
    let array = floats("probabilities", rate)?;
    let rates = slice(py, "probabilities", &array)?;
    run(py, || job(&Selection::personalized(NodeProbabilities::new(rates)?)))
}
