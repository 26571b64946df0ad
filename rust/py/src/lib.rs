//! `turnout._core`: the core of turnout for Python.
//!
//! A binding function takes its arguments, lets go of the interpreter lock, calls the core, and maps
//! the error. One file for each module of the core.

mod accounting;
mod arrays;
mod clipping;
mod count_mean_sketch;
mod direct_encoding;
mod errors;
mod federated;
mod hadamard_response;
mod identity;
mod likelihood;
mod local_hashing;
mod longitudinal;
mod mean;
mod networks;
mod noise;
mod oracle;
mod participation;
mod pool;
mod projective_geometry;
mod samplers;
mod sharing;
mod signing;
mod square_wave;
mod subset_selection;
mod summation_histogram;
mod unary_encoding;

use pyo3::prelude::*;

/// The compiled core of turnout.
#[pymodule]
mod _core {
    use numpy::{PyArray1, PyArrayMethods};
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::accounting::{
        PyIntegerNoise, PyTwoStageCountSampling, count_sampling, poisson_sampling,
        random_participation, random_participation_attained, random_participation_grid, shuffled,
    };
    #[pymodule_export]
    use super::clipping::{clip_and_sum, clip_to_grid};
    #[pymodule_export]
    use super::count_mean_sketch::{CountMeanSketch, HadamardCountMeanSketch};
    #[pymodule_export]
    use super::direct_encoding::DirectEncoding;
    #[pymodule_export]
    use super::federated::{rounded_gaussian, select_bernoulli};
    #[pymodule_export]
    use super::hadamard_response::{HadamardResponse8, HadamardResponse16, HadamardResponse32};
    #[pymodule_export]
    use super::identity::keyed_digests;
    #[pymodule_export]
    use super::likelihood::{likelihood_step, support_sums};
    #[pymodule_export]
    use super::local_hashing::{LocalHashing, PooledLocalHashing};
    #[pymodule_export]
    use super::longitudinal::{MemoizedDirect, MemoizedUnary};
    #[pymodule_export]
    use super::mean::MeanKernel;
    #[pymodule_export]
    use super::networks::{network_logits, network_scores};
    #[pymodule_export]
    use super::noise::{NoiseStreams, draw_words};
    #[pymodule_export]
    use super::participation::{design_sums, participants, participants_personalized};
    #[pymodule_export]
    use super::projective_geometry::{
        ProjectiveGeometry8, ProjectiveGeometry16, ProjectiveGeometry32, projective_space,
    };
    #[pymodule_export]
    use super::samplers::{SamplerBand, choose_weighted, first_accepted, uniforms};
    #[pymodule_export]
    use super::sharing::noise::{
        bernoulli_counts, discrete_gaussian, discrete_gaussian_realized, discrete_laplace,
        discrete_laplace_piece, discrete_laplace_realized, divide_up, skellam,
    };
    #[pymodule_export]
    use super::sharing::sets::{SetSampler, two_stage_sums};
    #[pymodule_export]
    use super::sharing::{PrimeField, ShareSum};
    #[pymodule_export]
    use super::signing::{ed25519_public_key, ed25519_sign, ed25519_verify};
    #[pymodule_export]
    use super::square_wave::SquareWave;
    #[pymodule_export]
    use super::subset_selection::SubsetSelection;
    #[pymodule_export]
    use super::summation_histogram::SummationHistogram;
    #[pymodule_export]
    use super::unary_encoding::UnaryEncoding;

    /// Has the numpy crate find its tables now. It would when they are first needed, under a lock,
    /// and a process that forks just then would leave a child that waits for ever.
    #[pymodule_init]
    fn warm_up(module: &Bound<'_, PyModule>) -> PyResult<()> {
        PyArray1::<u8>::zeros(module.py(), 0, false).try_readonly()?;
        Ok(())
    }
}
