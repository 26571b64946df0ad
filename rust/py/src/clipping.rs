//! Binding of the clipping of `federated`.

use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use turnout::federated::{Gradients, Part};

use crate::arrays::unexpected;
use crate::errors::{exception, invalid_value};
use crate::pool::run;

/// Gradients of examples with respect to some of the parameters.
enum Matrix<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

impl<'py> Matrix<'py> {
    fn extract(place: usize, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(view) = array.extract() {
            return Ok(Self::Single(view));
        }
        if let Ok(view) = array.extract() {
            return Ok(Self::Double(view));
        }
        let expected = "a two-dimensional NumPy array of dtype float32 or float64";
        Err(unexpected(&format!("gradients[{place}]"), expected, array))
    }

    /// The numbers of rows and columns, and the entries.
    fn view(&self, place: usize, array: &Bound<'py, PyAny>) -> PyResult<(usize, usize, Part<'_>)> {
        fn parts<'a, T: Element>(
            array: &'a PyReadonlyArray2<'_, T>,
            part: impl Fn(&'a [T]) -> Part<'a>,
        ) -> Option<(usize, usize, Part<'a>)> {
            // An array in Fortran's order is contiguous as well.
            let view = array.as_array();
            let (rows, columns) = view.dim();
            view.is_standard_layout().then_some(())?;
            Some((rows, columns, part(array.as_slice().ok()?)))
        }
        match self {
            Self::Single(array) => parts(array, Part::Single),
            Self::Double(array) => parts(array, Part::Double),
        }
        .ok_or_else(|| {
            let expected = "contiguous, row by row (see numpy.ascontiguousarray)";
            unexpected(&format!("gradients[{place}]"), expected, array)
        })
    }
}

/// Calls `job` with gradients in parts.
fn with_gradients<T: Send>(
    py: Python<'_>,
    gradients: &[Bound<'_, PyAny>],
    job: impl FnOnce(&Gradients<'_>) -> turnout::Result<T> + Send,
) -> PyResult<T> {
    let arrays: Vec<Matrix<'_>> = gradients
        .iter()
        .enumerate()
        .map(|(place, array)| Matrix::extract(place, array))
        .collect::<PyResult<_>>()?;
    let mut examples = None;
    let mut parts = Vec::with_capacity(arrays.len());
    for (place, (array, given)) in arrays.iter().zip(gradients).enumerate() {
        let (rows, columns, part) = array.view(place, given)?;
        let expected = *examples.get_or_insert(rows);
        if rows != expected {
            return Err(invalid_value(
                py,
                format!(
                    "gradients[{place}] must have a row for each of the {expected} example(s) of \
                     gradients[0], got {rows} row(s)"
                ),
            ));
        }
        parts.push((columns, part));
    }
    let gradients = Gradients::new(examples.unwrap_or(0), parts);
    let gradients = gradients.map_err(|error| exception(py, &error))?;
    if gradients.are_few() {
        py.detach(|| job(&gradients)).map_err(|error| exception(py, &error))
    } else {
        run(py, || job(&gradients))
    }
}

/// The sum of the gradients of examples, each clipped to a norm.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what pyo3 extracts")]
pub(crate) fn clip_and_sum<'py>(
    py: Python<'py>,
    gradients: Vec<Bound<'py, PyAny>>,
    clip: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let sums = with_gradients(py, &gradients, |gradients| gradients.clip_and_sum(clip))?;
    Ok(sums.into_pyarray(py))
}

/// The same in multiples of a step, rounded toward zero.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what pyo3 extracts")]
pub(crate) fn clip_to_grid<'py>(
    py: Python<'py>,
    gradients: Vec<Bound<'py, PyAny>>,
    clip: f64,
    step: f64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let sums = with_gradients(py, &gradients, |gradients| gradients.clip_to_grid(clip, step))?;
    Ok(sums.into_pyarray(py))
}
