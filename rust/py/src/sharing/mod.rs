//! Binding of `sharing`.

mod field;
pub(crate) mod noise;
pub(crate) mod sets;
mod shares;

pub(crate) use field::PrimeField;
pub(crate) use shares::ShareSum;

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use turnout::Error;
use turnout::sharing::SEED_BYTES;

use crate::arrays::mismatch;
use crate::errors::{exception, internal, invalid_type};

/// An integer type of elements that NumPy knows.
pub(super) trait Element: turnout::sharing::Element + numpy::Element {}

impl<E: turnout::sharing::Element + numpy::Element> Element for E {}

/// Calls a function generic over the integer type of a field's elements.
macro_rules! by_width {
    ($field:expr, $function:ident($($argument:expr),* $(,)?)) => {
        if $field.width() == 32 {
            $function::<u32>($($argument),*)
        } else {
            $function::<u64>($($argument),*)
        }
    };
}
use by_width;

/// Work, in elements, that is done at once: less than it costs to hand it to another thread or to
/// let go of the interpreter lock. A party handles many short vectors one after the other.
const AT_ONCE: usize = 1 << 16;

/// The longest array that is made on request.
const LONGEST: usize = 1 << 32;

/// Runs a job of the calling thread, without the interpreter lock if it is long.
fn compute<T: Send>(
    py: Python<'_>,
    elements: usize,
    job: impl FnOnce() -> turnout::Result<T> + Send,
) -> PyResult<T> {
    let result = if elements < AT_ONCE { job() } else { py.detach(job) };
    result.map_err(|error| exception(py, &error))
}

/// A one-dimensional array of elements.
fn elements<'py, E: Element>(
    argument: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray1<'py, E>> {
    array.extract().map_err(|_| mismatch(argument, &format!("dtype uint{}", E::BITS), array))
}

/// A new one-dimensional array.
fn vector<E: numpy::Element>(py: Python<'_>, values: Vec<E>) -> Bound<'_, PyAny> {
    values.into_pyarray(py).into_any()
}

/// A new two-dimensional array with that many rows.
fn matrix<E: Element>(py: Python<'_>, rows: usize, values: Vec<E>) -> PyResult<Bound<'_, PyAny>> {
    let columns = values.len() / rows.max(1);
    let array = Array2::from_shape_vec((rows, columns), values)
        .map_err(|error| internal(&error.to_string()))?;
    Ok(array.into_pyarray(py).into_any())
}

/// The content of a `bytes` object.
fn bytes<'a>(argument: &str, value: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    Err(invalid_type(value.py(), format!("{argument} must be bytes, got {}", value.get_type())))
}

/// A seed that stands for a vector.
fn vector_seed(value: &Bound<'_, PyAny>) -> PyResult<[u8; SEED_BYTES]> {
    let seed = bytes("seed", value)?;
    seed.try_into().map_err(|_| {
        let length = seed.len() as u64;
        let error =
            Error::Integer { argument: "the length of seed", value: length, expected: "32 bytes" };
        exception(value.py(), &error)
    })
}

/// Checks the length of an array that is to be made.
fn check_length(py: Python<'_>, length: usize) -> PyResult<usize> {
    if length <= LONGEST {
        return Ok(length);
    }
    let expected = "an integer of at most 2^32";
    Err(exception(py, &Error::Integer { argument: "length", value: length as u64, expected }))
}
