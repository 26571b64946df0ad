//! Binding of `frequency::direct_encoding`: its functions are generic over the types of codes and
//! reports, and so faster than those of other oracles.

use numpy::Element;
use pyo3::prelude::*;
use turnout_core::frequency::{self as core, Codes, ReportCode, Reports, Tally};
use turnout_core::parameters::Probability;
use turnout_core::random::AesStreams;

use crate::arrays::{CodeArray, OutRows};
use crate::errors::Result;
use crate::noise::Seed;
use crate::oracle::{Counted, Drawn, Shape, counted, oracle_class, simulate_if, with_rates};
use crate::participation::run_selected;
use crate::pool::{run, run_if};

oracle_class!(
    /// The direct-encoding randomizer on integer codes.
    DirectEncoding: core::DirectEncoding, via direct_encoding, Shape::Flat,
    {
        /// How many 64-bit words make a node report its own code, and each other code.
        words: (u64, u64),
    },
    {
        #[new]
        fn new(epsilon: f64, domain_size: u64) -> Result<Self> {
            Self::made(epsilon, domain_size, core::DirectEncoding::new)
        }
    }
);

/// Calls a generic function with the slice behind an array of codes.
macro_rules! with_codes {
    ($argument:literal, $given:expr, |$codes:ident| $body:expr) => {{
        let array = CodeArray::extract($argument, $given)?;
        match array.codes() {
            Codes::U8($codes) => $body,
            Codes::U16($codes) => $body,
            Codes::U32($codes) => $body,
            Codes::I64($codes) => $body,
        }
    }};
}

/// A report is one code.
pub(crate) const fn width(_: &core::DirectEncoding) -> usize {
    1
}

/// As [`crate::oracle::simulate`].
pub(crate) fn simulate(
    true_counts: &Bound<'_, PyAny>,
    rate: f64,
    seed: Option<Seed>,
    draw: impl FnOnce(&[u64], Probability, &AesStreams) -> turnout_core::Result<Tally> + Send,
) -> Result<Counted> {
    simulate_if(core::DirectEncoding::SIMULATED_AT_ONCE, true_counts, rate, seed, draw)
}

/// As [`crate::oracle::randomize`]: reports of the smallest type that holds the codes.
pub(crate) fn randomize<'py>(
    oracle: &core::DirectEncoding,
    shape: Shape,
    codes: &Bound<'py, PyAny>,
    rate: &Bound<'py, PyAny>,
    seed: Option<Seed>,
) -> Result<Drawn<'py>> {
    fn of_type<'py, O: ReportCode + Element>(
        oracle: &core::DirectEncoding,
        codes: &Bound<'py, PyAny>,
        rate: &Bound<'py, PyAny>,
        seed: Option<Seed>,
    ) -> Result<Reports<O>> {
        with_codes!("values", codes, |codes| {
            run_selected(rate, seed, |selection, streams| {
                oracle.randomize(codes, selection, streams)
            })
        })
    }
    let (py, size) = (codes.py(), oracle.domain_size().get());
    if size <= u8::RANGE {
        shape.given(py, 1, of_type::<u8>(oracle, codes, rate, seed)?)
    } else if size <= u16::RANGE {
        shape.given(py, 1, of_type::<u16>(oracle, codes, rate, seed)?)
    } else {
        shape.given(py, 1, of_type::<u32>(oracle, codes, rate, seed)?)
    }
}

/// As [`crate::oracle::tally`].
pub(crate) fn tally(
    oracle: &core::DirectEncoding,
    _: Shape,
    reports: &Bound<'_, PyAny>,
    probabilities: Option<&Bound<'_, PyAny>>,
) -> Result<Counted> {
    let py = reports.py();
    with_codes!("reports", reports, |codes| {
        with_rates(py, probabilities, |rates| oracle.tally(codes, rates))
    })
    .map(counted)
}

/// As [`crate::oracle::collect`].
pub(crate) fn collect(
    oracle: &core::DirectEncoding,
    codes: &Bound<'_, PyAny>,
    rate: &Bound<'_, PyAny>,
    seed: Option<Seed>,
) -> Result<Counted> {
    with_codes!("values", codes, |codes| {
        run_selected(rate, seed, |selection, streams| oracle.collect(codes, selection, streams))
    })
    .map(counted)
}

/// As [`crate::oracle::supports`].
pub(crate) fn supports(
    oracle: &core::DirectEncoding,
    _: Shape,
    reports: &Bound<'_, PyAny>,
) -> Result<OutRows<u64>> {
    let py = reports.py();
    let bits = with_codes!("reports", reports, |codes| run(py, || oracle.supports(codes)))?;
    Ok(OutRows(bits, oracle.domain_size().len().div_ceil(64)))
}

/// As [`crate::oracle::check`].
pub(crate) fn check(
    oracle: &core::DirectEncoding,
    _: Shape,
    reports: &Bound<'_, PyAny>,
) -> Result<()> {
    let py = reports.py();
    with_codes!("reports", reports, |codes| {
        run_if(py, codes.len() > core::CHUNK, || oracle.check(codes))
    })
}
