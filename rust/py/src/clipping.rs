//! Binding of the clipping of `federated`.

use pyo3::prelude::*;
use turnout_core::federated::{Gradients, Part};

use crate::arrays::{Array, Out, mismatch};
use crate::errors::{Failure, Result};
use crate::pool::run_if;

/// Gradients of examples with respect to some of the parameters.
enum Matrix<'py> {
    Single(Array<'py, f32>),
    Double(Array<'py, f64>),
}

impl<'py> Matrix<'py> {
    fn extract(place: usize, given: &Bound<'py, PyAny>) -> Result<Self> {
        let argument = format!("gradients[{place}]");
        Ok(if let Some(array) = Array::<f32>::offered(&argument, given, 2)? {
            Self::Single(array)
        } else if let Some(array) = Array::<f64>::offered(&argument, given, 2)? {
            Self::Double(array)
        } else {
            return Err(mismatch(&argument, 2, "float32 or float64", given));
        })
    }

    /// The numbers of rows and columns, and the entries.
    fn view(&self) -> (usize, usize, Part<'_>) {
        match self {
            Self::Single(array) => (array.rows(), array.columns(), Part::Single(array)),
            Self::Double(array) => (array.rows(), array.columns(), Part::Double(array)),
        }
    }
}

/// Calls `job` with gradients in parts.
fn with_gradients<T: Send>(
    py: Python<'_>,
    gradients: &[Bound<'_, PyAny>],
    job: impl FnOnce(&Gradients<'_>) -> turnout_core::Result<T> + Send,
) -> Result<T> {
    let arrays = gradients.iter().enumerate().map(|(place, array)| Matrix::extract(place, array));
    let arrays: Vec<Matrix<'_>> = arrays.collect::<Result<_>>()?;
    let examples = arrays.first().map_or(0, |array| array.view().0);
    let mut parts = Vec::with_capacity(arrays.len());
    for (place, array) in arrays.iter().enumerate() {
        let (rows, columns, part) = array.view();
        if rows != examples {
            return Err(Failure::Value(format!(
                "gradients[{place}] must have a row for each of the {examples} example(s) of \
                 gradients[0], got {rows} row(s)"
            )));
        }
        parts.push((columns, part));
    }
    let gradients = Gradients::new(examples, parts)?;
    run_if(py, !gradients.are_few(), || job(&gradients))
}

/// The sum of the gradients of examples, each clipped to a norm.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what pyo3 extracts")]
pub(crate) fn clip_and_sum(
    py: Python<'_>,
    gradients: Vec<Bound<'_, PyAny>>,
    clip: f64,
) -> Result<Out<f64>> {
    with_gradients(py, &gradients, |gradients| gradients.clip_and_sum(clip)).map(Out)
}

/// The same in multiples of a step, rounded toward zero.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what pyo3 extracts")]
pub(crate) fn clip_to_grid(
    py: Python<'_>,
    gradients: Vec<Bound<'_, PyAny>>,
    clip: f64,
    step: f64,
) -> Result<Out<i64>> {
    with_gradients(py, &gradients, |gradients| gradients.clip_to_grid(clip, step)).map(Out)
}
