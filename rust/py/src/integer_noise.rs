//! Binding of `noise`: integer noise whose law is exact.

use pyo3::prelude::*;
use turnout_core::noise::{
    self, BernoulliCounts, DiscreteGaussian, DiscreteLaplace, DiscreteLaplacePiece, Skellam,
};

use crate::arrays::Out;
use crate::errors::Result;
use crate::noise::streams;
use crate::pool::run_if;

/// Functions that draw so many numbers of a law, on the pool of this process if they are many.
macro_rules! draws {
    ($($(#[$doc:meta])* $name:ident($($parameter:ident: $kind:ty),*) from $law:ident;)*) => {$(
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = ($($parameter,)* length, seed=None))]
        pub(crate) fn $name(
            py: Python<'_>,
            $($parameter: $kind,)*
            length: usize,
            seed: Option<u64>,
        ) -> Result<Out<i64>> {
            run_if(py, length > noise::CHUNK, || {
                $law::new($($parameter),*)?.draw_many(length, &streams(seed)?)
            })
            .map(Out)
        }
    )*};
}

draws! {
    /// Discrete Laplace noise of at least that scale.
    discrete_laplace(scale: f64) from DiscreteLaplace;

    /// One of that many pieces of discrete Laplace noise.
    discrete_laplace_piece(scale: f64, parts: u64) from DiscreteLaplacePiece;

    /// Discrete Gaussian noise of that variance parameter.
    discrete_gaussian(variance: f64) from DiscreteGaussian;

    /// The difference of two Poisson counts of that mean.
    skellam(mean: f64) from Skellam;

    /// Numbers of heads among that many coins.
    bernoulli_counts(trials: u64, rate: f64) from BernoulliCounts;
}

/// The realised rate of discrete Laplace noise, the reciprocal of its scale: numerator, denominator.
#[pyfunction]
pub(crate) fn discrete_laplace_realized(scale: f64) -> Result<(u128, u128)> {
    let (numerator, denominator) = DiscreteLaplace::new(scale)?.realized_scale();
    Ok((denominator, numerator))
}

/// The realised variance parameter of discrete Gaussian noise.
#[pyfunction]
pub(crate) fn discrete_gaussian_realized(variance: f64) -> Result<f64> {
    Ok(DiscreteGaussian::new(variance)?.realized_variance())
}

/// The smallest float that is at least `value / parts`.
#[pyfunction]
pub(crate) fn divide_up(value: f64, parts: u64) -> Result<f64> {
    Ok(noise::divide_up(value, parts)?)
}
