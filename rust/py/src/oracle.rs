//! What the bindings of all frequency oracles have in common.

use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use turnout::frequency::{FrequencyOracle, NodeProbabilities, Reports, Selection, Tally};
use turnout::parameters::Probability;
use turnout::random::AesStreams;

use crate::arrays::{CodeArray, counts, floats, matrix, slice, unexpected, vector, wide};
use crate::errors::internal;
use crate::noise::{Seed, streams};
use crate::participation::uniform;
use crate::pool::run;

/// Support counts.
pub(crate) type Support<'py> = Bound<'py, PyArray1<u64>>;

/// 128-bit sums as (k + 1, 2) arrays of low and high 64 bits, the last row for all reports.
pub(crate) type Sums<'py> = Bound<'py, PyArray2<u64>>;

/// Support counts and the sums of the weights and of their squares.
pub(crate) type Weighted<'py> = (Support<'py>, Sums<'py>, Sums<'py>);

/// The same with the number of reports.
pub(crate) type WeightedCollection<'py> = (Support<'py>, u64, Sums<'py>, Sums<'py>);

/// How reports look as an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One integer for each report: a one-dimensional array.
    Flat,
    /// One row for each report: a two-dimensional array.
    Rows,
}

/// A view of an array of reports.
enum ReportArray<'py, T: Element> {
    Flat(PyReadonlyArray1<'py, T>),
    Rows(PyReadonlyArray2<'py, T>),
}

impl<'py, T: Element> ReportArray<'py, T> {
    fn extract(shape: Shape, width: usize, reports: &Bound<'py, PyAny>) -> PyResult<Self> {
        if shape == Shape::Flat {
            return Ok(Self::Flat(vector("reports", reports)?));
        }
        let array = matrix::<T>("reports", reports)?;
        if array.shape()[1] == width {
            return Ok(Self::Rows(array));
        }
        Err(unexpected("reports", &format!("an array with rows of {width} items"), reports))
    }

    fn slice(&self, py: Python<'_>) -> PyResult<&[T]> {
        match self {
            Self::Flat(array) => slice(py, "reports", array),
            Self::Rows(array) => array.as_slice().map_err(|_| {
                crate::errors::invalid_type(py, "reports must be a contiguous array".to_owned())
            }),
        }
    }
}

fn into_array<T: Element>(
    py: Python<'_>,
    items: Vec<T>,
    shape: Shape,
    width: usize,
) -> PyResult<Bound<'_, PyAny>> {
    let rows = items.len() / width;
    let array = items.into_pyarray(py);
    if shape == Shape::Flat {
        Ok(array.into_any())
    } else {
        Ok(array.reshape([rows, width])?.into_any())
    }
}

/// How many items a report has.
pub(crate) fn width<O: FrequencyOracle>(oracle: &O) -> usize {
    oracle.width()
}

/// One report for each node that takes part, all with the same rate.
pub(crate) fn randomize<'py, O>(
    oracle: &O,
    shape: Shape,
    codes: &Bound<'py, PyAny>,
    rate: f64,
    seed: Option<Seed>,
) -> PyResult<Bound<'py, PyAny>>
where
    O: FrequencyOracle<Item: Element>,
{
    let py = codes.py();
    let array = CodeArray::extract("values", codes)?;
    let codes = array.codes(py, "values")?;
    let reports: Reports<O::Item> =
        run(py, || oracle.randomize_codes(codes, &uniform(rate)?, &streams(seed)?))?;
    into_array(py, reports.codes, shape, oracle.width())
}

/// The same with a rate for each node; gives the reports and the rates of their nodes.
pub(crate) fn randomize_personalized<'py, O>(
    oracle: &O,
    shape: Shape,
    codes: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    seed: Option<Seed>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)>
where
    O: FrequencyOracle<Item: Element>,
{
    let py = codes.py();
    let array = CodeArray::extract("values", codes)?;
    let rates = floats("probabilities", probabilities)?;
    let rates = slice(py, "probabilities", &rates)?;
    let codes = array.codes(py, "values")?;
    let reports: Reports<O::Item> = run(py, || {
        let selection = Selection::personalized(NodeProbabilities::new(rates)?);
        oracle.randomize_codes(codes, &selection, &streams(seed)?)
    })?;
    let rates = reports.probabilities.ok_or_else(|| internal("reports without rates"))?;
    Ok((into_array(py, reports.codes, shape, oracle.width())?, rates.into_pyarray(py)))
}

/// Counts the reports that support each code.
pub(crate) fn tally<'py, O>(
    oracle: &O,
    shape: Shape,
    reports: &Bound<'py, PyAny>,
) -> PyResult<Support<'py>>
where
    O: FrequencyOracle<Item: Element>,
{
    let py = reports.py();
    let array = ReportArray::<O::Item>::extract(shape, oracle.width(), reports)?;
    let reports = array.slice(py)?;
    Ok(run(py, || oracle.tally(reports, None))?.support.into_pyarray(py))
}

/// Counts reports and adds up the weights of their nodes.
pub(crate) fn tally_personalized<'py, O>(
    oracle: &O,
    shape: Shape,
    reports: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
) -> PyResult<Weighted<'py>>
where
    O: FrequencyOracle<Item: Element>,
{
    let py = reports.py();
    let array = ReportArray::<O::Item>::extract(shape, oracle.width(), reports)?;
    let reports = array.slice(py)?;
    let rates = floats("probabilities", probabilities)?;
    let rates = slice(py, "probabilities", &rates)?;
    weighted(py, run(py, || oracle.tally(reports, Some(NodeProbabilities::new(rates)?)))?)
}

/// Selects, randomizes and counts in one pass, all with the same rate.
pub(crate) fn collect<'py, O: FrequencyOracle>(
    oracle: &O,
    codes: &Bound<'py, PyAny>,
    rate: f64,
    seed: Option<Seed>,
) -> PyResult<(Support<'py>, u64)> {
    let py = codes.py();
    let array = CodeArray::extract("values", codes)?;
    let codes = array.codes(py, "values")?;
    let tally = run(py, || oracle.collect_codes(codes, &uniform(rate)?, &streams(seed)?))?;
    Ok((tally.support.into_pyarray(py), tally.received))
}

/// The same with a rate for each node.
pub(crate) fn collect_personalized<'py, O: FrequencyOracle>(
    oracle: &O,
    codes: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    seed: Option<Seed>,
) -> PyResult<WeightedCollection<'py>> {
    let py = codes.py();
    let array = CodeArray::extract("values", codes)?;
    let rates = floats("probabilities", probabilities)?;
    let rates = slice(py, "probabilities", &rates)?;
    let codes = array.codes(py, "values")?;
    let tally = run(py, || {
        let selection = Selection::personalized(NodeProbabilities::new(rates)?);
        oracle.collect_codes(codes, &selection, &streams(seed)?)
    })?;
    let received = tally.received;
    let (support, inverse, squared) = weighted(py, tally)?;
    Ok((support, received, inverse, squared))
}

/// A tally with the law of `collect`, from the true counts alone; `draw` is the oracle's own.
pub(crate) fn simulate<'py>(
    true_counts: &Bound<'py, PyAny>,
    rate: f64,
    seed: Option<Seed>,
    draw: impl FnOnce(&[u64], Probability, &AesStreams) -> turnout::Result<Tally> + Send,
) -> PyResult<(Support<'py>, u64)> {
    let py = true_counts.py();
    let array = counts("true_counts", true_counts)?;
    let held = slice(py, "true_counts", &array)?;
    let tally = run(py, || draw(held, Probability::new(rate)?, &streams(seed)?))?;
    Ok((tally.support.into_pyarray(py), tally.received))
}

/// Which codes each report supports, as rows of bits.
pub(crate) fn supports<'py, O>(
    oracle: &O,
    shape: Shape,
    reports: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<u64>>>
where
    O: FrequencyOracle<Item: Element>,
{
    let py = reports.py();
    let array = ReportArray::<O::Item>::extract(shape, oracle.width(), reports)?;
    let reports = array.slice(py)?;
    let bits = run(py, || oracle.supports(reports))?;
    bit_rows(py, bits, oracle.domain().len())
}

/// Bits of `size` codes as an array with one row for each report.
pub(crate) fn bit_rows(
    py: Python<'_>,
    bits: Vec<u64>,
    size: usize,
) -> PyResult<Bound<'_, PyArray2<u64>>> {
    let words = size.div_ceil(64);
    let rows = bits.len() / words;
    bits.into_pyarray(py).reshape([rows, words])
}

/// Refuses reports that the oracle cannot have made.
pub(crate) fn check<O>(oracle: &O, shape: Shape, reports: &Bound<'_, PyAny>) -> PyResult<()>
where
    O: FrequencyOracle<Item: Element>,
{
    let py = reports.py();
    let array = ReportArray::<O::Item>::extract(shape, oracle.width(), reports)?;
    let reports = array.slice(py)?;
    run(py, || oracle.check(reports))
}

/// Support counts and the sums of weights of a tally for personal participation.
pub(crate) fn weighted(py: Python<'_>, tally: Tally) -> PyResult<Weighted<'_>> {
    let sums = tally.weighted.ok_or_else(|| internal("a personalized tally without weights"))?;
    let (mut inverse, mut squared) = (sums.inverse, sums.inverse_squared);
    inverse.push(sums.total);
    squared.push(sums.total_squared);
    Ok((tally.support.into_pyarray(py), wide(py, &inverse), wide(py, &squared)))
}

/// The methods of a class whose reports are counted: a struct with a field `oracle`, whose type
/// implements [`FrequencyOracle`] and has `realized_epsilon`.
///
/// `$via` names the module whose functions do the work: this one, where no other is faster. In the
/// first braces stand getters that only ask the oracle, in the second the methods that only this
/// class has, its constructor first.
macro_rules! report_methods {
    (
        $class:ident, $via:ident, $shape:expr,
        { $($(#[$about:meta])* $name:ident: $kind:ty,)* },
        { $($own:tt)* }
    ) => {
        #[pymethods]
        impl $class {
            $($own)*

            $(
                $(#[$about])*
                #[getter]
                fn $name(&self) -> $kind {
                    self.oracle.$name()
                }
            )*

            /// How many items a report has.
            #[getter]
            fn report_width(&self) -> usize {
                $crate::$via::width(&self.oracle)
            }

            /// The realised epsilon, rounded up.
            #[getter]
            fn realized_epsilon(&self) -> f64 {
                self.oracle.realized_epsilon()
            }

            /// One report for each node that takes part, all with the same rate.
            #[pyo3(signature = (codes, rate, seed=None))]
            fn randomize<'py>(
                &self,
                codes: &Bound<'py, PyAny>,
                rate: f64,
                seed: Option<$crate::noise::Seed>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::$via::randomize(&self.oracle, $shape, codes, rate, seed)
            }

            /// The same with a rate for each node; gives the reports and the rates of their nodes.
            #[pyo3(signature = (codes, probabilities, seed=None))]
            fn randomize_personalized<'py>(
                &self,
                codes: &Bound<'py, PyAny>,
                probabilities: &Bound<'py, PyAny>,
                seed: Option<$crate::noise::Seed>,
            ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, numpy::PyArray1<f64>>)> {
                $crate::$via::randomize_personalized(
                    &self.oracle, $shape, codes, probabilities, seed,
                )
            }

            /// Refuses reports that the oracle cannot have made.
            fn check(&self, reports: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::$via::check(&self.oracle, $shape, reports)
            }

            /// Counts the reports that support each code.
            fn tally<'py>(
                &self,
                reports: &Bound<'py, PyAny>,
            ) -> PyResult<$crate::oracle::Support<'py>> {
                $crate::$via::tally(&self.oracle, $shape, reports)
            }

            /// Counts reports and adds up the weights of their nodes.
            fn tally_personalized<'py>(
                &self,
                reports: &Bound<'py, PyAny>,
                probabilities: &Bound<'py, PyAny>,
            ) -> PyResult<$crate::oracle::Weighted<'py>> {
                $crate::$via::tally_personalized(&self.oracle, $shape, reports, probabilities)
            }

            /// Selects, randomizes and counts in one pass, all with the same rate.
            #[pyo3(signature = (codes, rate, seed=None))]
            fn collect<'py>(
                &self,
                codes: &Bound<'py, PyAny>,
                rate: f64,
                seed: Option<$crate::noise::Seed>,
            ) -> PyResult<($crate::oracle::Support<'py>, u64)> {
                $crate::$via::collect(&self.oracle, codes, rate, seed)
            }

            /// The same with a rate for each node.
            #[pyo3(signature = (codes, probabilities, seed=None))]
            fn collect_personalized<'py>(
                &self,
                codes: &Bound<'py, PyAny>,
                probabilities: &Bound<'py, PyAny>,
                seed: Option<$crate::noise::Seed>,
            ) -> PyResult<$crate::oracle::WeightedCollection<'py>> {
                $crate::$via::collect_personalized(&self.oracle, codes, probabilities, seed)
            }
        }
    };
}
pub(crate) use report_methods;

/// The class of an oracle, whose type implements [`FrequencyOracle`] and has `realized_epsilon`,
/// `support_probabilities` and `simulate`; in braces as for [`report_methods`].
///
/// A constructor is made with `Self::made`.
macro_rules! oracle_class {
    (
        $(#[$doc:meta])* $class:ident: $core:ty, via $via:ident, $shape:expr,
        { $($getters:tt)* },
        { $($own:tt)* }
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "turnout._core")]
        pub(crate) struct $class {
            oracle: $core,
        }

        impl $class {
            fn made(
                py: Python<'_>,
                epsilon: f64,
                domain_size: u64,
                make: impl FnOnce(
                    turnout::parameters::Epsilon,
                    turnout::parameters::DomainSize,
                ) -> turnout::Result<$core>,
            ) -> PyResult<Self> {
                turnout::parameters::Epsilon::new(epsilon)
                    .and_then(|epsilon| {
                        make(epsilon, turnout::parameters::DomainSize::new(domain_size)?)
                    })
                    .map(|oracle| Self { oracle })
                    .map_err(|error| $crate::errors::exception(py, &error))
            }
        }

        $crate::oracle::report_methods!($class, $via, $shape, {
            /// The probabilities p* and q*.
            support_probabilities: (f64, f64),
            $($getters)*
        }, {
            $($own)*

            /// Which codes each report supports, as rows of bits.
            fn supports<'py>(
                &self,
                reports: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, numpy::PyArray2<u64>>> {
                $crate::$via::supports(&self.oracle, $shape, reports)
            }

            /// A tally with the law of `collect`, from the true counts alone.
            #[pyo3(signature = (true_counts, rate, seed=None))]
            fn simulate<'py>(
                &self,
                true_counts: &Bound<'py, PyAny>,
                rate: f64,
                seed: Option<$crate::noise::Seed>,
            ) -> PyResult<($crate::oracle::Support<'py>, u64)> {
                $crate::oracle::simulate(true_counts, rate, seed, |counts, rate, streams| {
                    self.oracle.simulate(counts, rate, streams)
                })
            }
        });
    };
    ($(#[$doc:meta])* $class:ident: $core:ty, $shape:expr, $getters:tt, $own:tt) => {
        $crate::oracle::oracle_class!($(#[$doc])* $class: $core, via oracle, $shape, $getters, $own);
    };
}
pub(crate) use oracle_class;
