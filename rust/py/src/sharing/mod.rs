//! Binding of `sharing`.

mod field;
pub(crate) mod sets;
mod shares;

pub(crate) use field::PrimeField;
pub(crate) use shares::ShareSum;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use turnout_core::Error;

use crate::errors::{Failure, Result};
use crate::pool::run_if;

/// Evaluates an expression in which the integer type of a field's elements has a name.
macro_rules! by_width {
    ($field:expr, $element:ident => $body:expr) => {
        if $field.width() == 32 {
            type $element = u32;
            $body
        } else {
            type $element = u64;
            $body
        }
    };
}
use by_width;

/// How many elements the calling thread handles at once. That costs less than handing them to
/// another thread or releasing the interpreter lock. A party handles many short vectors one after
/// the other.
const AT_ONCE: usize = 1 << 16;

/// The longest array that is made on request.
const LONGEST: usize = 1 << 32;

/// Runs a job of the calling thread, without the interpreter lock if it is long.
fn compute<T: Send>(
    py: Python<'_>,
    elements: usize,
    job: impl FnOnce() -> turnout_core::Result<T> + Send,
) -> Result<T> {
    if elements < AT_ONCE { Ok(job()?) } else { run_if(py, false, job) }
}

/// The content of a `bytes` object.
fn bytes<'a>(argument: &str, value: &'a Bound<'_, PyAny>) -> Result<&'a [u8]> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    Err(Failure::Type(format!("{argument} must be bytes, got {}", value.get_type())))
}

/// Checks the length of an array that is to be made.
fn check_length(length: usize) -> Result<usize> {
    if length <= LONGEST {
        return Ok(length);
    }
    let expected = "an integer of at most 2^32";
    Err(Error::Integer { argument: "length", value: length as u64, expected }.into())
}
