//! Binding of `sharing::sums`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use turnout_core::sharing as core;

use super::{PrimeField, bytes, check_length, compute};
use crate::arrays::{Out, vector};
use crate::errors::Result;
use crate::noise::exactly;

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
    fn new(field: &PrimeField, length: usize) -> Result<Self> {
        let (field, length) = (field.field, check_length(length)?);
        let sum = if field.width() == 32 {
            Sum::Narrow(Mutex::new(core::ShareSum::new(field, length)?))
        } else {
            Sum::Wide(Mutex::new(core::ShareSum::new(field, length)?))
        };
        Ok(Self { sum, length })
    }

    /// Adds a vector.
    fn add(&self, values: &Bound<'_, PyAny>) -> Result<()> {
        let py = values.py();
        either!(self.sum, sum => {
            let values = &*vector("values", values)?;
            compute(py, values.len(), || lock(sum).add(values))
        })
    }

    /// Adds a packed vector.
    fn add_packed(&self, data: &Bound<'_, PyAny>) -> Result<()> {
        let packed = bytes("data", data)?;
        compute(data.py(), self.length, || either!(self.sum, sum => lock(sum).add_packed(packed)))
    }

    /// Adds the vector that a seed stands for.
    fn add_seed(&self, seed: &Bound<'_, PyAny>) -> Result<()> {
        let key = exactly("seed", bytes("seed", seed)?)?;
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
    fn finish<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        either!(self.sum, sum => {
            let values = compute(py, self.length, || Ok(lock(sum).sum()))?;
            Ok(Out(values).into_pyobject(py)?.into_any())
        })
    }
}

/// No job panics; if one did, the sum would still be a sum.
fn lock<T>(sum: &Mutex<T>) -> MutexGuard<'_, T> {
    sum.lock().unwrap_or_else(PoisonError::into_inner)
}
