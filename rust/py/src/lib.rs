//! `turnout._core`: the core of turnout for Python.
//!
//! A binding function takes its arguments, lets go of the interpreter lock, calls the core, and maps
//! the error. One file for each module of the core.

mod arrays;
mod direct_encoding;
mod errors;
mod participation;
mod pool;

use pyo3::prelude::*;

/// The compiled core of turnout.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::direct_encoding::DirectEncoding;
    #[pymodule_export]
    use super::participation::design_sums;
}
