//! What the bindings of all frequency oracles have in common.

use numpy::Element;
use pyo3::prelude::*;
use turnout_core::frequency::{CHUNK, FrequencyOracle, NodeProbabilities, Reports, Tally};
use turnout_core::parameters::Probability;
use turnout_core::random::AesStreams;

use crate::arrays::{Array, CodeArray, Out, OutRows, matrix_of, vector};
use crate::errors::Result;
use crate::noise::{Seed, streams};
use crate::participation::run_selected;
use crate::pool::{run, run_if};

/// Reports, and the rates of their nodes if each has its own.
pub(crate) type Drawn<'py> = (Bound<'py, PyAny>, Option<Out<f64>>);

/// Support counts, the number of reports, and the sums of the weights and of their squares if each
/// node has its own rate. A 128-bit sum is a row of its low and its high 64 bits; the last row is
/// for all reports.
pub(crate) type Counted = (Out<u64>, u64, Option<(OutRows<u64>, OutRows<u64>)>);

/// How reports look as an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One integer for each report: a one-dimensional array.
    Flat,
    /// One row for each report: a two-dimensional array.
    Rows,
}

impl Shape {
    /// Takes an array of reports that have so many items.
    pub(crate) fn taken<'py, T: Element>(
        self,
        argument: &str,
        width: usize,
        reports: &Bound<'py, PyAny>,
    ) -> Result<Array<'py, T>> {
        match self {
            Self::Flat => vector(argument, reports),
            Self::Rows => matrix_of(argument, reports, width),
        }
    }

    /// Makes an array of reports that have so many items.
    pub(crate) fn given<T: Element>(
        self,
        py: Python<'_>,
        width: usize,
        reports: Reports<T>,
    ) -> Result<Drawn<'_>> {
        let codes = match self {
            Self::Flat => Out(reports.codes).into_pyobject(py)?.into_any(),
            Self::Rows => OutRows(reports.codes, width).into_pyobject(py)?.into_any(),
        };
        Ok((codes, reports.probabilities.map(Out)))
    }
}

/// How many items a report has.
pub(crate) fn width<O: FrequencyOracle>(oracle: &O) -> usize {
    oracle.width()
}

/// One report for each node that takes part.
pub(crate) fn randomize<'py, O: FrequencyOracle<Item: Element>>(
    oracle: &O,
    shape: Shape,
    codes: &Bound<'py, PyAny>,
    rate: &Bound<'py, PyAny>,
    seed: Option<Seed>,
) -> Result<Drawn<'py>> {
    let array = CodeArray::extract("values", codes)?;
    let codes = array.codes();
    let reports = run_selected(rate, seed, |selection, streams| {
        oracle.randomize_codes(codes, selection, streams)
    })?;
    shape.given(rate.py(), oracle.width(), reports)
}

/// Counts the reports that support each code, and the weights of their nodes.
pub(crate) fn tally<O: FrequencyOracle<Item: Element>>(
    oracle: &O,
    shape: Shape,
    reports: &Bound<'_, PyAny>,
    probabilities: Option<&Bound<'_, PyAny>>,
) -> Result<Counted> {
    let py = reports.py();
    let reports = &*shape.taken("reports", oracle.width(), reports)?;
    with_rates(py, probabilities, |rates| oracle.tally(reports, rates)).map(counted)
}

/// Selects, randomizes and counts in one pass.
pub(crate) fn collect<O: FrequencyOracle>(
    oracle: &O,
    codes: &Bound<'_, PyAny>,
    rate: &Bound<'_, PyAny>,
    seed: Option<Seed>,
) -> Result<Counted> {
    let array = CodeArray::extract("values", codes)?;
    let codes = array.codes();
    run_selected(rate, seed, |selection, streams| oracle.collect_codes(codes, selection, streams))
        .map(counted)
}

/// A tally with the law of `collect`, from the true counts alone; `draw` is the oracle's own.
pub(crate) fn simulate(
    true_counts: &Bound<'_, PyAny>,
    rate: f64,
    seed: Option<Seed>,
    draw: impl FnOnce(&[u64], Probability, &AesStreams) -> turnout_core::Result<Tally> + Send,
) -> Result<Counted> {
    simulate_if(0, true_counts, rate, seed, draw)
}

/// The same, of at most so many counts by the calling thread: they are no work for several.
pub(crate) fn simulate_if(
    at_once: usize,
    true_counts: &Bound<'_, PyAny>,
    rate: f64,
    seed: Option<Seed>,
    draw: impl FnOnce(&[u64], Probability, &AesStreams) -> turnout_core::Result<Tally> + Send,
) -> Result<Counted> {
    let held = &*vector("true_counts", true_counts)?;
    let job = || draw(held, Probability::new(rate)?, &streams(seed)?);
    run_if(true_counts.py(), held.len() > at_once, job).map(counted)
}

/// Which codes each report supports, as rows of bits.
pub(crate) fn supports<O: FrequencyOracle<Item: Element>>(
    oracle: &O,
    shape: Shape,
    reports: &Bound<'_, PyAny>,
) -> Result<OutRows<u64>> {
    let py = reports.py();
    let reports = &*shape.taken("reports", oracle.width(), reports)?;
    let bits = run(py, || oracle.supports(reports))?;
    Ok(OutRows(bits, oracle.domain().len().div_ceil(64)))
}

/// Refuses reports that the oracle cannot have made.
pub(crate) fn check<O: FrequencyOracle<Item: Element>>(
    oracle: &O,
    shape: Shape,
    reports: &Bound<'_, PyAny>,
) -> Result<()> {
    let py = reports.py();
    let reports = &*shape.taken("reports", oracle.width(), reports)?;
    // The calling thread looks at what one thread of the pool would: a message is checked by itself.
    run_if(py, reports.len() > CHUNK, || oracle.check(reports))
}

/// Runs with the rates of the nodes of reports, if each has its own.
pub(crate) fn with_rates<T: Send>(
    py: Python<'_>,
    probabilities: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(Option<NodeProbabilities<'_>>) -> turnout_core::Result<T> + Send,
) -> Result<T> {
    let array = probabilities.map(|all| vector("probabilities", all)).transpose()?;
    let rates = array.as_deref();
    run(py, || job(rates.map(NodeProbabilities::new).transpose()?))
}

/// What Python gets of a tally.
pub(crate) fn counted(tally: Tally) -> Counted {
    #[expect(clippy::cast_possible_truncation, reason = "the low and the high half")]
    let halves = |sums: &[u128], total: u128| {
        let all = sums.iter().chain([&total]);
        OutRows(all.flat_map(|&sum| [sum as u64, (sum >> 64) as u64]).collect(), 2)
    };
    let sums = tally.weighted.map(|sums| {
        (halves(&sums.inverse, sums.total), halves(&sums.inverse_squared, sums.total_squared))
    });
    (Out(tally.support), tally.received, sums)
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

            /// One report for each node that takes part; `rate` is one number, or one for each node.
            #[pyo3(signature = (codes, rate, seed=None))]
            fn randomize<'py>(
                &self,
                codes: &Bound<'py, PyAny>,
                rate: &Bound<'py, PyAny>,
                seed: Option<$crate::noise::Seed>,
            ) -> $crate::errors::Result<$crate::oracle::Drawn<'py>> {
                $crate::$via::randomize(&self.oracle, $shape, codes, rate, seed)
            }

            /// Refuses reports that the oracle cannot have made.
            fn check(&self, reports: &Bound<'_, PyAny>) -> $crate::errors::Result<()> {
                $crate::$via::check(&self.oracle, $shape, reports)
            }

            /// Counts the reports that support each code, and the weights of their nodes.
            #[pyo3(signature = (reports, probabilities=None))]
            fn tally(
                &self,
                reports: &Bound<'_, PyAny>,
                probabilities: Option<&Bound<'_, PyAny>>,
            ) -> $crate::errors::Result<$crate::oracle::Counted> {
                $crate::$via::tally(&self.oracle, $shape, reports, probabilities)
            }

            /// Selects, randomizes and counts in one pass.
            #[pyo3(signature = (codes, rate, seed=None))]
            fn collect(
                &self,
                codes: &Bound<'_, PyAny>,
                rate: &Bound<'_, PyAny>,
                seed: Option<$crate::noise::Seed>,
            ) -> $crate::errors::Result<$crate::oracle::Counted> {
                $crate::$via::collect(&self.oracle, codes, rate, seed)
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
                epsilon: f64,
                domain_size: u64,
                make: impl FnOnce(
                    turnout_core::parameters::Epsilon,
                    turnout_core::parameters::DomainSize,
                ) -> turnout_core::Result<$core>,
            ) -> $crate::errors::Result<Self> {
                let epsilon = turnout_core::parameters::Epsilon::new(epsilon)?;
                let domain = turnout_core::parameters::DomainSize::new(domain_size)?;
                Ok(Self { oracle: make(epsilon, domain)? })
            }
        }

        $crate::oracle::report_methods!($class, $via, $shape, {
            /// The probabilities p* and q*.
            support_probabilities: (f64, f64),
            $($getters)*
        }, {
            $($own)*

            /// Which codes each report supports, as rows of bits.
            fn supports(
                &self,
                reports: &Bound<'_, PyAny>,
            ) -> $crate::errors::Result<$crate::arrays::OutRows<u64>> {
                $crate::$via::supports(&self.oracle, $shape, reports)
            }

            /// A tally with the law of `collect`, from the true counts alone.
            #[pyo3(signature = (true_counts, rate, seed=None))]
            fn simulate(
                &self,
                true_counts: &Bound<'_, PyAny>,
                rate: f64,
                seed: Option<$crate::noise::Seed>,
            ) -> $crate::errors::Result<$crate::oracle::Counted> {
                $crate::$via::simulate(true_counts, rate, seed, |counts, rate, streams| {
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
