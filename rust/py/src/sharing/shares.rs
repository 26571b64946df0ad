//! Binding of `sharing::sums`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use turnout::sharing::{self as core, SEED_BYTES};

use super::{Element, PrimeField, bytes, check_length, compute, elements, vector, vector_seed};
use crate::arrays::slice;
use crate::errors::exception;

/// A running sum of shares.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct ShareSum {
    sum: Sum,
    length: usize,
}

/// Nothing of Python runs under a lock: it is never held while the interpreter lock is waited for.
enum Sum {
    Narrow(Mutex<core::ShareSum<u32>>),
    Wide(Mutex<core::ShareSum<u64>>),
}

/// Evaluates an expression with the sum of either type.
macro_rules! either {
    ($sum:expr, $name:ident => $body:expr) => {
        match &$sum {
            Sum::Narrow($name) => $body,
            Sum::Wide($name) => $body,
        }
    };
}

#[pymethods]
impl ShareSum {
    #[new]
    fn new(py: Python<'_>, field: &PrimeField, length: usize) -> PyResult<Self> {
        let (field, length) = (field.field, check_length(py, length)?);
        let sum = if field.width() == 32 {
            core::ShareSum::new(field, length).map(|sum| Sum::Narrow(Mutex::new(sum)))
        } else {
            core::ShareSum::new(field, length).map(|sum| Sum::Wide(Mutex::new(sum)))
        };
        Ok(Self { sum: sum.map_err(|error| exception(py, &error))?, length })
    }

    /// Adds a vector.
    fn add(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        either!(self.sum, sum => add(sum, values))
    }

    /// Adds a packed vector.
    fn add_packed(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let packed = bytes("data", data)?;
        compute(data.py(), self.length, || either!(self.sum, sum => lock(sum).add_packed(packed)))
    }

    /// Adds the vector that a seed stands for.
    fn add_seed(&self, seed: &Bound<'_, PyAny>) -> PyResult<()> {
        let key: [u8; SEED_BYTES] = vector_seed(seed)?;
        compute(seed.py(), self.length, || {
            either!(self.sum, sum => lock(sum).add_seed(&key));
            Ok(())
        })
    }

    /// How many vectors were added.
    #[getter]
    fn count(&self) -> u64 {
        either!(self.sum, sum => lock(sum).count())
    }

    /// The sum so far.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        either!(self.sum, sum => {
            let values = compute(py, self.length, || Ok(lock(sum).sum()))?;
            Ok(vector(py, values))
        })
    }
}

fn add<E: Element>(sum: &Mutex<core::ShareSum<E>>, values: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = values.py();
    let array = elements::<E>("values", values)?;
    let values = slice(py, "values", &array)?;
    compute(py, values.len(), || lock(sum).add(values))
}

/// No job panics; if one did, the sum would still be a sum.
fn lock<T>(sum: &Mutex<T>) -> MutexGuard<'_, T> {
    sum.lock().unwrap_or_else(PoisonError::into_inner)
}
