//! `turnout._core`: the core of turnout for Python.
//!
//! A binding function takes its arguments, lets go of the interpreter lock and calls the core; errors
//! become exceptions in one place. One file for each module of the core; `oracles` has the classes
//! that say no more than their constructors.

mod accounting;
mod arrays;
mod clipping;
mod dap;
mod direct_encoding;
mod errors;
mod federated;
mod identity;
mod integer_noise;
mod likelihood;
mod longitudinal;
mod mean;
mod networks;
mod noise;
mod oracle;
mod oracles;
mod participation;
mod pool;
mod report_header;
mod rows;
mod samplers;
mod sharing;
mod signing;
mod square_wave;
mod tally;
mod tickets;
mod verified;
mod wire;

use pyo3::prelude::*;

/// The compiled core of turnout.
#[pymodule]
mod _core {
    use numpy::{PyArray1, PyArrayMethods};
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        accounting::{
            PyIntegerNoise, PyTwoStageCountSampling, count_sampling, poisson_sampling,
            random_participation, random_participation_attained, random_participation_grid,
            shuffled,
        },
        clipping::{clip_and_sum, clip_to_grid},
        dap::{
            PyAggregateShareReq, PyAggregationJobInitReq, PyCollectionJobReq, PyHpkeKey, PyReports,
            PyTask, choose_hpke_config, ciphertext_config_id, open_aggregate_share,
            read_aggregation_job_continue_req, read_aggregation_job_resp, read_collection_job_resp,
            read_hpke_configs, read_upload_errors, read_vdaf_configuration, report_checksum,
            seal_aggregate_share, seal_reports, seal_to, write_aggregation_job_continue_req,
            write_aggregation_job_resp, write_collection_job_resp, write_hpke_configs,
            write_upload_errors, write_vdaf_configuration,
        },
        direct_encoding::DirectEncoding,
        federated::{rounded_gaussian, select_bernoulli},
        identity::keyed_digests,
        integer_noise::{
            bernoulli_counts, discrete_gaussian, discrete_gaussian_realized, discrete_laplace,
            discrete_laplace_piece, discrete_laplace_realized, divide_up, skellam,
        },
        likelihood::{likelihood_step, support_sums},
        longitudinal::{MemoizedDirect, MemoizedUnary},
        mean::MeanKernel,
        networks::{network_logits, network_scores},
        noise::{NoiseStreams, draw_words},
        oracles::{
            CountMeanSketch, HadamardCountMeanSketch, HadamardResponse8, HadamardResponse16,
            HadamardResponse32, LocalHashing, PooledLocalHashing, ProjectiveGeometry8,
            ProjectiveGeometry16, ProjectiveGeometry32, SubsetSelection, SummationHistogram,
            UnaryEncoding, projective_space,
        },
        participation::{binomial_counts, design_sums, participants},
        report_header::ReportHeader,
        rows::scan_rows,
        samplers::{SamplerBand, choose_weighted, first_accepted, uniform_integers, uniforms},
        sharing::sets::{SetSampler, two_stage_sums},
        sharing::{PrimeField, ShareSum},
        signing::{ed25519_public_key, ed25519_sign, ed25519_verify},
        square_wave::SquareWave,
        tally::{read_groups, read_tally, write_groups, write_tally},
        tickets::{PyTicketKey, PyTicketRequest, ticket_number},
        verified::Prio3,
        wire::{Device, MessageReader, MessageWriter, Plan, message_records},
    };

    /// What the checksum of a report file begins with.
    #[pymodule_export]
    const SEAL: &str = turnout_core::wire::SEAL;

    /// The largest serial of a plan.
    #[pymodule_export]
    const MOST_SERIAL: u64 = turnout_core::wire::MOST_SERIAL;

    /// What a plan file is, without the questions.
    #[pymodule_export]
    const PLAN_FILE_SCHEMA: &str = turnout_core::wire::PlanFile::SCHEMA;

    /// What the bytes of a tally by groups begin with.
    #[pymodule_export]
    const GROUPS_MAGIC: &[u8] = turnout_core::wire::StoredGroups::MAGIC;

    /// The bytes by which a record of a message is known, and all that it has.
    #[pymodule_export]
    const RECORD_NAME_BYTES: usize = turnout_core::wire::NAME_BYTES;
    #[pymodule_export]
    const RECORD_BYTES: usize = turnout_core::wire::RECORD_BYTES;

    /// The most collections that the origin of a tally names.
    #[pymodule_export]
    const MOST_IDENTITIES: usize = turnout_core::wire::MOST_IDENTITIES;

    /// The version of DAP.
    #[pymodule_export]
    const DAP_VERSION: &str = turnout_core::dap::VERSION;

    /// Adds the words of DAP, and makes the numpy crate find its tables now. Otherwise it would
    /// find them when they are first needed, under a lock. If the process forked just then, its
    /// child would wait forever.
    #[pymodule_init]
    fn begin(module: &Bound<'_, PyModule>) -> PyResult<()> {
        PyArray1::<u8>::zeros(module.py(), 0, false).try_readonly()?;
        super::dap::add_words(module)
    }
}
