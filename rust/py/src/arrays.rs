//! NumPy arrays in and out. Data types are strict: widening is the caller's explicit step.

use std::convert::Infallible;
use std::ops::Deref;

use numpy::ndarray::Array2;
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyReadonlyArrayDyn};
use numpy::{PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use turnout_core::frequency::Codes;

use crate::errors::{Failure, Result};

/// An array of Python's: its entries, those of a matrix row by row.
pub(crate) struct Array<'py, T: Element>(PyReadonlyArrayDyn<'py, T>);

impl<'py, T: Element> Array<'py, T> {
    /// The array, if it has so many dimensions and entries of this type.
    pub(crate) fn offered(
        argument: &str,
        given: &Bound<'py, PyAny>,
        dimensions: usize,
    ) -> Result<Option<Self>> {
        let array = match given.extract::<PyReadonlyArrayDyn<'py, T>>() {
            Ok(array) if array.ndim() == dimensions => array,
            _ => return Ok(None),
        };
        // A transposed matrix is contiguous too, but its memory goes along the columns.
        if !array.is_c_contiguous() {
            let hint = "see numpy.ascontiguousarray";
            return Err(Failure::Type(format!("{argument} must be a C-contiguous array ({hint})")));
        }
        // A view of bytes may begin within an entry.
        let aligned = array.is_empty() || array.is_aligned();
        Ok(Some(Self(if aligned { array } else { given.call_method0("copy")?.extract()? })))
    }

    fn taken(argument: &str, given: &Bound<'py, PyAny>, dimensions: usize) -> Result<Self> {
        Self::offered(argument, given, dimensions)?.ok_or_else(|| {
            mismatch(argument, dimensions, &dtype::<T>(given.py()).to_string(), given)
        })
    }

    /// How many columns a matrix has.
    pub(crate) fn columns(&self) -> usize {
        self.0.shape().last().copied().unwrap_or(0)
    }

    /// How many rows a matrix has.
    pub(crate) fn rows(&self) -> usize {
        self.0.shape().first().copied().unwrap_or(0)
    }
}

impl<T: Element> Deref for Array<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // It is contiguous and aligned, or empty.
        self.0.as_slice().unwrap_or_default()
    }
}

/// A one-dimensional array of a type; `argument` is its name in messages.
pub(crate) fn vector<'py, T: Element>(
    argument: &str,
    given: &Bound<'py, PyAny>,
) -> Result<Array<'py, T>> {
    Array::taken(argument, given, 1)
}

/// A two-dimensional array of a type.
pub(crate) fn matrix<'py, T: Element>(
    argument: &str,
    given: &Bound<'py, PyAny>,
) -> Result<Array<'py, T>> {
    Array::taken(argument, given, 2)
}

/// A two-dimensional array of a type with so many columns.
pub(crate) fn matrix_of<'py, T: Element>(
    argument: &str,
    given: &Bound<'py, PyAny>,
    columns: usize,
) -> Result<Array<'py, T>> {
    let array = matrix(argument, given)?;
    if array.columns() == columns {
        return Ok(array);
    }
    let found = array.columns();
    Err(Failure::Type(format!("{argument} must have rows of {columns} entries, got {found}")))
}

/// A one-dimensional array of codes.
pub(crate) enum CodeArray<'py> {
    U8(Array<'py, u8>),
    U16(Array<'py, u16>),
    U32(Array<'py, u32>),
    I64(Array<'py, i64>),
}

impl<'py> CodeArray<'py> {
    /// Takes an array; `argument` is its name in messages.
    pub(crate) fn extract(argument: &str, given: &Bound<'py, PyAny>) -> Result<Self> {
        Ok(if let Some(codes) = Array::<u8>::offered(argument, given, 1)? {
            Self::U8(codes)
        } else if let Some(codes) = Array::<u16>::offered(argument, given, 1)? {
            Self::U16(codes)
        } else if let Some(codes) = Array::<u32>::offered(argument, given, 1)? {
            Self::U32(codes)
        } else if let Some(codes) = Array::<i64>::offered(argument, given, 1)? {
            Self::I64(codes)
        } else {
            return Err(mismatch(argument, 1, "uint8, uint16, uint32 or int64", given));
        })
    }

    /// The codes.
    pub(crate) fn codes(&self) -> Codes<'_> {
        match self {
            Self::U8(codes) => Codes::U8(codes),
            Self::U16(codes) => Codes::U16(codes),
            Self::U32(codes) => Codes::U32(codes),
            Self::I64(codes) => Codes::I64(codes),
        }
    }
}

/// The failure of an array that has other dimensions or another type than it must have.
pub(crate) fn mismatch(
    argument: &str,
    dimensions: usize,
    types: &str,
    given: &Bound<'_, PyAny>,
) -> Failure {
    let found = match given.cast::<PyUntypedArray>() {
        Ok(array) => format!("dtype {} with {} dimension(s)", array.dtype(), array.ndim()),
        Err(_) => given.get_type().to_string(),
    };
    let shape = if dimensions == 1 { "one-dimensional" } else { "two-dimensional" };
    let message = format!("{argument} must be a {shape} NumPy array of dtype {types}, got {found}");
    Failure::Type(message)
}

/// Entries that become a one-dimensional array.
pub(crate) struct Out<T>(pub(crate) Vec<T>);

impl<'py, T: Element> IntoPyObject<'py> for Out<T> {
    type Target = PyArray1<T>;
    type Output = Bound<'py, PyArray1<T>>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(self.0.into_pyarray(py))
    }
}

/// Entries that become a two-dimensional array with so many columns.
pub(crate) struct OutRows<T>(pub(crate) Vec<T>, pub(crate) usize);

impl<'py, T: Element> IntoPyObject<'py> for OutRows<T> {
    type Target = PyArray2<T>;
    type Output = Bound<'py, PyArray2<T>>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let rows = self.0.len() / self.1.max(1);
        // NumPy's own reshape() takes as long as a whole kernel of few rows.
        match Array2::from_shape_vec((rows, self.1), self.0) {
            Ok(matrix) => Ok(matrix.into_pyarray(py)),
            Err(error) => Err(PyRuntimeError::new_err(error.to_string())),
        }
    }
}
