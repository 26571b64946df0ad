//! NumPy arrays in and out. Data types are strict: widening is the caller's explicit step.

use numpy::ndarray::Array2;
use numpy::{
    Element, IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray,
    PyUntypedArrayMethods, dtype,
};
use pyo3::prelude::*;

use turnout::frequency::Codes;

use crate::errors::invalid_type;

/// A contiguous one-dimensional array of codes.
pub(crate) enum CodeArray<'py> {
    U8(PyReadonlyArray1<'py, u8>),
    U16(PyReadonlyArray1<'py, u16>),
    U32(PyReadonlyArray1<'py, u32>),
    I64(PyReadonlyArray1<'py, i64>),
}

impl<'py> CodeArray<'py> {
    /// Takes a view of an array; `argument` is its name in messages.
    pub(crate) fn extract(argument: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(view) = array.extract() {
            return Ok(Self::U8(view));
        }
        if let Ok(view) = array.extract() {
            return Ok(Self::U16(view));
        }
        if let Ok(view) = array.extract() {
            return Ok(Self::U32(view));
        }
        if let Ok(view) = array.extract() {
            return Ok(Self::I64(view));
        }
        Err(mismatch(argument, "dtype uint8, uint16, uint32 or int64", array))
    }
}

/// Calls a generic function with the slice behind a [`CodeArray`].
macro_rules! with_codes {
    ($py:expr, $argument:literal, $array:expr, |$codes:ident| $body:expr) => {{
        use $crate::arrays::{CodeArray, slice};
        match &$array {
            CodeArray::U8(array) => {
                let $codes = slice($py, $argument, array)?;
                $body
            }
            CodeArray::U16(array) => {
                let $codes = slice($py, $argument, array)?;
                $body
            }
            CodeArray::U32(array) => {
                let $codes = slice($py, $argument, array)?;
                $body
            }
            CodeArray::I64(array) => {
                let $codes = slice($py, $argument, array)?;
                $body
            }
        }
    }};
}
pub(crate) use with_codes;

impl CodeArray<'_> {
    /// The codes, for functions that take those of every type.
    pub(crate) fn codes(&self, py: Python<'_>, argument: &str) -> PyResult<Codes<'_>> {
        Ok(match self {
            Self::U8(array) => Codes::U8(slice(py, argument, array)?),
            Self::U16(array) => Codes::U16(slice(py, argument, array)?),
            Self::U32(array) => Codes::U32(slice(py, argument, array)?),
            Self::I64(array) => Codes::I64(slice(py, argument, array)?),
        })
    }
}

/// The slice of a contiguous array.
pub(crate) fn slice<'a, T: numpy::Element>(
    py: Python<'_>,
    argument: &str,
    array: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| invalid_type(py, format!("{argument} must be a contiguous array")))
}

/// A one-dimensional float64 array.
pub(crate) fn floats<'py>(
    argument: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray1<'py, f64>> {
    array.extract().map_err(|_| mismatch(argument, "dtype float64", array))
}

/// A one-dimensional uint16 array.
pub(crate) fn shorts<'py>(
    argument: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray1<'py, u16>> {
    array.extract().map_err(|_| mismatch(argument, "dtype uint16", array))
}

/// A one-dimensional uint64 array.
pub(crate) fn counts<'py>(
    argument: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray1<'py, u64>> {
    array.extract().map_err(|_| mismatch(argument, "dtype uint64", array))
}

/// A one-dimensional array of a type.
pub(crate) fn vector<'py, T: Element>(
    argument: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray1<'py, T>> {
    array
        .extract()
        .map_err(|_| mismatch(argument, &format!("dtype {}", dtype::<T>(array.py())), array))
}

/// A two-dimensional array of a type.
pub(crate) fn matrix<'py, T: Element>(
    argument: &str,
    array: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray2<'py, T>> {
    array.extract().map_err(|_| {
        let expected = format!("a two-dimensional NumPy array of dtype {}", dtype::<T>(array.py()));
        invalid_type(array.py(), format!("{argument} must be {expected}, got {}", describe(array)))
    })
}

/// 128-bit sums as a (k, 2) array: the low and the high 64 bits.
pub(crate) fn wide<'py>(py: Python<'py>, sums: &[u128]) -> Bound<'py, PyArray2<u64>> {
    #[expect(clippy::cast_possible_truncation, reason = "the low and the high half")]
    let halves =
        Array2::from_shape_fn((sums.len(), 2), |(row, half)| (sums[row] >> (64 * half)) as u64);
    halves.into_pyarray(py)
}

pub(crate) fn mismatch(argument: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyErr {
    unexpected(argument, &format!("a one-dimensional NumPy array of {expected}"), given)
}

/// The error for an array of another kind than `argument` must be.
pub(crate) fn unexpected(argument: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let found = describe(given);
    invalid_type(given.py(), format!("{argument} must be {expected}, got {found}"))
}

fn describe(given: &Bound<'_, PyAny>) -> String {
    match given.cast::<PyUntypedArray>() {
        Ok(array) => format!("dtype {} with {} dimension(s)", array.dtype(), array.ndim()),
        Err(_) => given.get_type().to_string(),
    }
}
