//! Binding of `frequency::longitudinal`.

use pyo3::prelude::*;
use turnout_core::frequency::{self as core, BitStage, Memoized, Randomizer, SECRET_BYTES};
use turnout_core::parameters::Epsilon;

use crate::arrays::{CodeArray, matrix_of};
use crate::errors::Result;
use crate::noise::Seed;
use crate::oracle::{Drawn, Shape, oracle_class};
use crate::participation::run_selected;
use crate::pool::run;

/// The class of an oracle that is [`Memoized`], with its constructor.
macro_rules! memoized_class {
    ($(#[$doc:meta])* $class:ident, $shape:expr, { $($constructor:tt)* }) => {
        oracle_class!(
            $(#[$doc])*
            $class: core::$class, $shape,
            {
                /// The realised epsilon of the permanent answer, rounded up.
                lifetime_epsilon: f64,
            },
            {
                $($constructor)*

                /// The words of the permanent answer and of a report: for what is so, and what not.
                #[getter]
                fn words(&self) -> ((u64, u64), (u64, u64)) {
                    self.oracle.words().into()
                }

                /// The permanent answers of nodes.
                fn permanent<'py>(
                    &self,
                    codes: &Bound<'py, PyAny>,
                    secrets: &Bound<'py, PyAny>,
                    context: [u8; 32],
                ) -> Result<Bound<'py, PyAny>> {
                    let py = codes.py();
                    let array = CodeArray::extract("values", codes)?;
                    let codes = array.codes();
                    let secrets = matrix_of("secrets", secrets, SECRET_BYTES)?;
                    let secrets = secrets.as_chunks().0;
                    let codes = run(py, || self.oracle.permanent(codes, secrets, &context))?;
                    let reports = core::Reports { codes, probabilities: None };
                    Ok($shape.given(py, self.oracle.width(), reports)?.0)
                }

                /// One round of reports of permanent answers.
                #[pyo3(signature = (permanent, rate, seed=None))]
                fn instantaneous<'py>(
                    &self,
                    permanent: &Bound<'py, PyAny>,
                    rate: &Bound<'py, PyAny>,
                    seed: Option<Seed>,
                ) -> Result<Drawn<'py>> {
                    let (py, width) = (permanent.py(), self.oracle.width());
                    let answers = &*$shape.taken("permanent", width, permanent)?;
                    let reports = run_selected(rate, seed, |selection, streams| {
                        self.oracle.instantaneous(answers, selection, streams)
                    })?;
                    $shape.given(py, width, reports)
                }
            }
        );
    };
}

memoized_class!(
    /// Direct encoding of permanent answers made by direct encoding.
    MemoizedDirect, Shape::Flat,
    {
        #[new]
        fn new(domain_size: u64, lifetime: f64, first: f64) -> Result<Self> {
            Self::made(lifetime, domain_size, |lifetime, domain| {
                core::MemoizedDirect::new(domain, lifetime, Epsilon::new(first)?)
            })
        }
    }
);

memoized_class!(
    /// Unary encoding with two stages of randomised bits.
    MemoizedUnary, Shape::Rows,
    {
        #[new]
        fn new(domain_size: u64, lifetime: f64, first: f64, optimized: [bool; 2]) -> Result<Self> {
            let stage = |optimized| if optimized { BitStage::Optimized } else { BitStage::Symmetric };
            Self::made(lifetime, domain_size, |lifetime, domain| {
                let stages = optimized.map(stage);
                core::MemoizedUnary::new(domain, lifetime, Epsilon::new(first)?, stages)
            })
        }
    }
);
