//! Failures of the binding, as exceptions of `turnout.errors`.

use std::convert::Infallible;

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use turnout_core::{Error, device, wire};

/// Why a function of the binding gives nothing.
pub(crate) enum Failure {
    /// The core refused.
    Core(Error),
    /// A plan or a state is refused.
    Wire(wire::Error),
    /// What was read is no document of turnout.
    Corrupt(String),
    /// An argument is of another type than it must be.
    Type(String),
    /// An argument has another value than it must have.
    Value(String),
    /// A defect of turnout, not of its input.
    Defect(String),
    /// Python raised.
    Python(PyErr),
}

/// What a function of the binding gives: `?` takes errors of the core and of Python.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<wire::Error> for Failure {
    fn from(error: wire::Error) -> Self {
        Self::Wire(error)
    }
}

impl From<device::Error> for Failure {
    fn from(error: device::Error) -> Self {
        match error {
            device::Error::Core(error) => Self::Core(error),
            device::Error::Wire(error) => Self::Wire(error),
            other => Self::Value(other.to_string()),
        }
    }
}

impl From<Infallible> for Failure {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Core(error @ Error::CodeOutsideDomain { .. }) => {
                named("CodeOutsideDomainError", error.to_string())
            }
            Failure::Core(error @ Error::Entropy { .. }) => PyOSError::new_err(error.to_string()),
            Failure::Core(error) => named("InvalidValueError", error.to_string()),
            Failure::Wire(error) => {
                let class = match error {
                    wire::Error::Version { .. } => "UnsupportedVersionError",
                    wire::Error::Expired { .. } | wire::Error::Serial { .. } => "PlanExpiredError",
                    _ => "CorruptDataError",
                };
                named(class, error.to_string())
            }
            Failure::Corrupt(message) => named("CorruptDataError", message),
            Failure::Type(message) => named("InvalidTypeError", message),
            Failure::Value(message) => named("InvalidValueError", message),
            Failure::Defect(message) => PyRuntimeError::new_err(message),
            Failure::Python(error) => error,
        }
    }
}

fn named(class: &str, message: String) -> PyErr {
    let found = |py: Python<'_>| -> PyResult<PyErr> {
        let class = py.import("turnout.errors")?.getattr(class)?.cast_into::<PyType>()?;
        Ok(PyErr::from_type(class, message))
    };
    Python::attach(found).unwrap_or_else(|error| error)
}
