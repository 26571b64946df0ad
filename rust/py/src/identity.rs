//! Binding of `identity`.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use turnout::identity;

use crate::arrays::{slice, vector};
use crate::errors::invalid_type;
use crate::pool::run;

/// The digest of each entry `data[offsets[i]:offsets[i + 1]]`, as rows of 16 bytes.
#[pyfunction]
pub(crate) fn keyed_digests<'py>(
    offsets: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
    key: &[u8],
    context: &[u8],
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let py = offsets.py();
    let (positions, bytes) = (vector::<i64>("offsets", offsets)?, vector::<u8>("data", data)?);
    let (positions, bytes) = (slice(py, "offsets", &positions)?, slice(py, "data", &bytes)?);
    let length = key.len();
    let key: &[u8; identity::KEY_BYTES] = key
        .try_into()
        .map_err(|_| invalid_type(py, format!("key must be 32 bytes, got {length}")))?;
    let digests = run(py, || identity::keyed_digests(positions, bytes, key, context))?;
    let rows = digests.len();
    digests.concat().into_pyarray(py).reshape([rows, identity::DIGEST_BYTES])
}
