//! Binding of `identity`.

use pyo3::prelude::*;
use turnout_core::identity;

use crate::arrays::{OutRows, vector};
use crate::errors::Result;
use crate::noise::exactly;
use crate::pool::run;

/// The digest of each entry `data[offsets[i]:offsets[i + 1]]`, as rows of 16 bytes.
#[pyfunction]
pub(crate) fn keyed_digests(
    offsets: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
    key: &[u8],
    context: &[u8],
) -> Result<OutRows<u8>> {
    let py = offsets.py();
    let (positions, bytes) = (&*vector("offsets", offsets)?, &*vector("data", data)?);
    let key = exactly("key", key)?;
    let digests = run(py, || identity::keyed_digests(positions, bytes, &key, context))?;
    Ok(OutRows(digests.concat(), identity::DIGEST_BYTES))
}
