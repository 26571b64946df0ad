//! Errors of the core as exceptions of `turnout.errors`.

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use turnout::Error;

/// The exception for an error of the core, with the core's message.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::CodeOutsideDomain { .. } => "CodeOutsideDomainError",
        Error::Entropy { .. } => return PyOSError::new_err(error.to_string()),
        _ => "InvalidValueError",
    };
    named(py, class, error.to_string())
}

/// An `InvalidTypeError` with a message.
pub(crate) fn invalid_type(py: Python<'_>, message: String) -> PyErr {
    named(py, "InvalidTypeError", message)
}

/// An `InvalidValueError` with a message.
pub(crate) fn invalid_value(py: Python<'_>, message: String) -> PyErr {
    named(py, "InvalidValueError", message)
}

/// A failure that is a defect of turnout, not of its input.
pub(crate) fn internal(message: &str) -> PyErr {
    PyRuntimeError::new_err(message.to_owned())
}

fn named(py: Python<'_>, class: &str, message: String) -> PyErr {
    let found = py
        .import("turnout.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match found {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    }
}
