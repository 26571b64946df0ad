//! Binding of `frequency::hadamard_response`: one class for each width of reports.

use pyo3::prelude::*;
use turnout::frequency as core;

use crate::oracle::{Shape, oracle_class};

macro_rules! hadamard_response {
    ($class:ident, $report:ty, $name:literal) => {
        oracle_class!(
            #[doc = concat!("Hadamard response with reports of type ", $name, ".")]
            $class: core::HadamardResponse<$report>, Shape::Flat,
            {
                /// The weights of a report in the half of the own code, and of another one.
                words: (u64, u64),
                /// How many different reports there are.
                report_count: u64,
            },
            {
                #[new]
                fn new(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
                    Self::made(py, epsilon, domain_size, core::HadamardResponse::new)
                }
            }
        );
    };
}

hadamard_response!(HadamardResponse8, u8, "uint8");
hadamard_response!(HadamardResponse16, u16, "uint16");
hadamard_response!(HadamardResponse32, u32, "uint32");
