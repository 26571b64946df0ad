//! Binding of `frequency::direct_encoding`: its functions are generic over the types of codes and
//! reports, and so faster than those of other oracles.

use numpy::{Element, IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use turnout::frequency::{self as core, NodeProbabilities, ReportCode, Reports, Selection};

use crate::arrays::{CodeArray, floats, slice, with_codes};
use crate::errors::internal;
use crate::noise::{Seed, streams};
use crate::oracle::{
    Shape, Support, Weighted, WeightedCollection, bit_rows, oracle_class, weighted,
};
use crate::participation::uniform;
use crate::pool::run;

oracle_class!(
    /// The direct-encoding randomizer on integer codes.
    DirectEncoding: core::DirectEncoding, via direct_encoding, Shape::Flat,
    {
        /// How many 64-bit words make a node report its own code, and each other code.
        words: (u64, u64),
    },
    {
        #[new]
        fn new(py: Python<'_>, epsilon: f64, domain_size: u64) -> PyResult<Self> {
            Self::made(py, epsilon, domain_size, core::DirectEncoding::new)
        }
    }
);

/// How the nodes of a call are selected.
type Select<'a> = dyn Fn() -> turnout::Result<Selection<'a>> + Sync + 'a;

/// A report is one code.
pub(crate) const fn width(_: &core::DirectEncoding) -> usize {
    1
}

/// As [`crate::oracle::randomize`].
pub(crate) fn randomize<'py>(
    oracle: &core::DirectEncoding,
    _: Shape,
    codes: &Bound<'py, PyAny>,
    rate: f64,
    seed: Option<Seed>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(drawn(oracle, codes, &|| uniform(rate), seed)?.0)
}

/// As [`crate::oracle::randomize_personalized`].
pub(crate) fn randomize_personalized<'py>(
    oracle: &core::DirectEncoding,
    _: Shape,
    codes: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    seed: Option<Seed>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)> {
    let py = codes.py();
    let array = floats("probabilities", probabilities)?;
    let rates = slice(py, "probabilities", &array)?;
    let (reports, rates) = drawn(oracle, codes, &|| personal(rates), seed)?;
    Ok((reports, rates.ok_or_else(|| internal("reports without rates"))?.into_pyarray(py)))
}

/// As [`crate::oracle::tally`].
pub(crate) fn tally<'py>(
    oracle: &core::DirectEncoding,
    _: Shape,
    reports: &Bound<'py, PyAny>,
) -> PyResult<Support<'py>> {
    let py = reports.py();
    let array = CodeArray::extract("reports", reports)?;
    let tally = with_codes!(py, "reports", array, |codes| run(py, || oracle.tally(codes, None)))?;
    Ok(tally.support.into_pyarray(py))
}

/// As [`crate::oracle::tally_personalized`].
pub(crate) fn tally_personalized<'py>(
    oracle: &core::DirectEncoding,
    _: Shape,
    reports: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
) -> PyResult<Weighted<'py>> {
    let py = reports.py();
    let array = CodeArray::extract("reports", reports)?;
    let rates = floats("probabilities", probabilities)?;
    let rates = slice(py, "probabilities", &rates)?;
    let tally = with_codes!(py, "reports", array, |codes| {
        run(py, || oracle.tally(codes, Some(NodeProbabilities::new(rates)?)))
    })?;
    weighted(py, tally)
}

/// As [`crate::oracle::collect`].
pub(crate) fn collect<'py>(
    oracle: &core::DirectEncoding,
    codes: &Bound<'py, PyAny>,
    rate: f64,
    seed: Option<Seed>,
) -> PyResult<(Support<'py>, u64)> {
    let tally = counted(oracle, codes, &|| uniform(rate), seed)?;
    Ok((tally.support.into_pyarray(codes.py()), tally.received))
}

/// As [`crate::oracle::collect_personalized`].
pub(crate) fn collect_personalized<'py>(
    oracle: &core::DirectEncoding,
    codes: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    seed: Option<Seed>,
) -> PyResult<WeightedCollection<'py>> {
    let py = codes.py();
    let array = floats("probabilities", probabilities)?;
    let rates = slice(py, "probabilities", &array)?;
    let tally = counted(oracle, codes, &|| personal(rates), seed)?;
    let received = tally.received;
    let (support, inverse, squared) = weighted(py, tally)?;
    Ok((support, received, inverse, squared))
}

/// As [`crate::oracle::supports`].
pub(crate) fn supports<'py>(
    oracle: &core::DirectEncoding,
    _: Shape,
    reports: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let py = reports.py();
    let array = CodeArray::extract("reports", reports)?;
    let bits = with_codes!(py, "reports", array, |codes| run(py, || oracle.supports(codes)))?;
    bit_rows(py, bits, oracle.domain_size().len())
}

/// As [`crate::oracle::check`].
pub(crate) fn check(
    oracle: &core::DirectEncoding,
    _: Shape,
    reports: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let py = reports.py();
    let array = CodeArray::extract("reports", reports)?;
    with_codes!(py, "reports", array, |codes| run(py, || oracle.check(codes)))
}

fn personal(rates: &[f64]) -> turnout::Result<Selection<'_>> {
    Ok(Selection::personalized(NodeProbabilities::new(rates)?))
}

/// Reports of the smallest type that holds the codes, and the rates of their nodes if each has its
/// own.
fn drawn<'py>(
    oracle: &core::DirectEncoding,
    codes: &Bound<'py, PyAny>,
    select: &Select<'_>,
    seed: Option<Seed>,
) -> PyResult<(Bound<'py, PyAny>, Option<Vec<f64>>)> {
    fn of_type<'py, O: ReportCode + Element>(
        oracle: &core::DirectEncoding,
        codes: &Bound<'py, PyAny>,
        select: &Select<'_>,
        seed: Option<Seed>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Vec<f64>>)> {
        let py = codes.py();
        let array = CodeArray::extract("values", codes)?;
        let reports: Reports<O> = with_codes!(py, "values", array, |codes| {
            run(py, || oracle.randomize(codes, &select()?, &streams(seed)?))
        })?;
        Ok((reports.codes.into_pyarray(py).into_any(), reports.probabilities))
    }
    let size = oracle.domain_size().get();
    if size <= u8::RANGE {
        of_type::<u8>(oracle, codes, select, seed)
    } else if size <= u16::RANGE {
        of_type::<u16>(oracle, codes, select, seed)
    } else {
        of_type::<u32>(oracle, codes, select, seed)
    }
}

fn counted(
    oracle: &core::DirectEncoding,
    codes: &Bound<'_, PyAny>,
    select: &Select<'_>,
    seed: Option<Seed>,
) -> PyResult<core::Tally> {
    let py = codes.py();
    let array = CodeArray::extract("values", codes)?;
    with_codes!(py, "values", array, |codes| {
        run(py, || oracle.collect(codes, &select()?, &streams(seed)?))
    })
}
