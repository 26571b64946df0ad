//! Binding of `frequency::projective_geometry`: one class for each width of reports.

use pyo3::prelude::*;
use turnout::frequency as core;
use turnout::parameters::{DomainSize, Epsilon};

use crate::errors::exception;
use crate::oracle::{Shape, oracle_class};

/// The size of the field and the number of points that a space has by default, or with a given field.
#[pyfunction]
#[pyo3(signature = (epsilon, domain_size, field_size=None))]
pub(crate) fn projective_space(
    py: Python<'_>,
    epsilon: f64,
    domain_size: u64,
    field_size: Option<u64>,
) -> PyResult<(u64, u64)> {
    let build = || {
        core::ProjectiveGeometryResponse::<u32>::new(
            Epsilon::new(epsilon)?,
            DomainSize::new(domain_size)?,
            field_size,
        )
    };
    let space = build().map_err(|error| exception(py, &error))?;
    Ok((space.field_size(), space.points()))
}

macro_rules! projective_geometry {
    ($class:ident, $report:ty, $name:literal) => {
        oracle_class!(
            #[doc = concat!("Projective geometry response with reports of type ", $name, ".")]
            $class: core::ProjectiveGeometryResponse<$report>, Shape::Flat,
            {
                /// How many words make each point of the own hyperplane, and each other point.
                words: (u64, u64),
                /// The number of coordinates of a point.
                dimensions: usize,
            },
            {
                #[new]
                fn new(
                    py: Python<'_>,
                    epsilon: f64,
                    domain_size: u64,
                    field_size: u64,
                ) -> PyResult<Self> {
                    Self::made(py, epsilon, domain_size, |epsilon, domain| {
                        core::ProjectiveGeometryResponse::new(epsilon, domain, Some(field_size))
                    })
                }

                /// How many points there are, in a hyperplane, and in two hyperplanes.
                #[getter]
                fn points(&self) -> (u64, u64, u64) {
                    let oracle = &self.oracle;
                    (oracle.points(), oracle.hyperplane_points(), oracle.common_points())
                }
            }
        );
    };
}

projective_geometry!(ProjectiveGeometry8, u8, "uint8");
projective_geometry!(ProjectiveGeometry16, u16, "uint16");
projective_geometry!(ProjectiveGeometry32, u32, "uint32");
