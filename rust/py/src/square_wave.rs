//! Binding of `frequency::square_wave`.

use pyo3::prelude::*;
use turnout_core::frequency as core;
use turnout_core::mean::Bounds;
use turnout_core::parameters::{DomainSize, Epsilon};

use crate::arrays::{Out, vector};
use crate::errors::Result;
use crate::oracle::{Shape, report_methods};
use crate::pool::run;

/// The square wave mechanism on the bins of a number.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct SquareWave {
    oracle: core::SquareWave,
    bounds: Bounds,
}

report_methods!(
    SquareWave, oracle, Shape::Flat,
    {
        /// How many cells are near a bin.
        window: u64,
        /// How many cells there are.
        cells: u64,
        /// The words of each cell near the bin, and of each other cell.
        words: (u64, u64),
    },
    {
        #[new]
        fn new(epsilon: f64, bounds: (f64, f64), bins: u64) -> Result<Self> {
            let oracle = core::SquareWave::new(Epsilon::new(epsilon)?, DomainSize::new(bins)?)?;
            Ok(Self { oracle, bounds: Bounds::new(bounds.0, bounds.1)? })
        }

        /// The bin of each value.
        fn bins(&self, values: &Bound<'_, PyAny>) -> Result<Out<u16>> {
            let py = values.py();
            let values = &*vector("values", values)?;
            let domain = core::Randomizer::domain(&self.oracle);
            run(py, || self.bounds.bins(values, domain)).map(Out)
        }
    }
);
