//! Binding of `frequency::hadamard_response`: one class for each width of reports.

use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::parameters::{DomainSize, Epsilon};

use crate::errors::exception;
use crate::oracle::{Shape, oracle_methods};

macro_rules! hadamard_response {
    ($class:ident, $report:ty, $name:literal) => {
        #[doc = concat!("Hadamard response with reports of type ", $name, ".")]
        #[pyclass(frozen, module = "turnout._core")]
        pub(crate) struct $class {
            oracle: core::HadamardResponse<$report>,
        }

        oracle_methods!($class, Shape::Flat, {
            #[new]
            fn new(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
                let build = || {
                    core::HadamardResponse::new(
                        Epsilon::new(epsilon)?,
                        DomainSize::new(domain_size)?,
                    )
                };
                build().map(|oracle| Self { oracle }).map_err(|error| exception(py, &error))
            }

            /// The weights of a report in the half of the own code, and of another one.
            #[getter]
            fn words(&self) -> (u64, u64) {
                self.oracle.words()
            }

            /// How many different reports there are.
            #[getter]
            fn report_count(&self) -> u64 {
                self.oracle.report_count()
            }
        });
    };
}

hadamard_response!(HadamardResponse8, u8, "uint8");
hadamard_response!(HadamardResponse16, u16, "uint16");
hadamard_response!(HadamardResponse32, u32, "uint32");
