//! Binding of `accounting`.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;
use turnout::accounting::{
    self, CountSampling, HockeyStick, IntegerNoise, PoissonSampling, RandomParticipation, Shuffle,
    ShuffleLaw, TwoStageCountSampling,
};

use crate::arrays::{counts, floats, slice};
use crate::errors::{exception, invalid_type};
use crate::pool::run;

/// Below this many epsilons the work is done where it is called: the pool costs more.
const FEW: usize = 5;

type Columns<'py> = Bound<'py, PyArray2<f64>>;

/// Rows of (delta, p, q) for each direction.
fn rows<'py, const N: usize>(py: Python<'py>, values: &[[HockeyStick; N]]) -> Columns<'py> {
    Array2::from_shape_fn((values.len(), 3 * N), |(row, column)| {
        let HockeyStick { delta, p, q } = values[row][column / 3];
        [delta, p, q][column % 3]
    })
    .into_pyarray(py)
}

/// Evaluates a mechanism of fixed parameters at many epsilons.
fn evaluate<'py, M: Sync, const N: usize>(
    py: Python<'py>,
    epsilon: &Bound<'py, PyAny>,
    mechanism: &M,
    directions: impl Fn(&M, f64) -> [HockeyStick; N] + Sync,
) -> PyResult<Columns<'py>> {
    let array = floats("epsilon", epsilon)?;
    let epsilons = slice(py, "epsilon", &array)?;
    let job = || accounting::evaluate(epsilons, |_| Ok(mechanism), |m, e| directions(m, e));
    let values = if epsilons.len() < FEW {
        job().map_err(|error| exception(py, &error))?
    } else {
        run(py, job)?
    };
    Ok(rows(py, &values))
}

/// Checks that arrays go together.
fn same_length(py: Python<'_>, lengths: &[usize]) -> PyResult<()> {
    if lengths.iter().any(|length| *length != lengths[0]) {
        return Err(invalid_type(py, format!("arrays must have the same length, got {lengths:?}")));
    }
    Ok(())
}

/// Random participation at many epsilons: remove and add.
#[pyfunction]
pub(crate) fn random_participation<'py>(
    epsilon: &Bound<'py, PyAny>,
    noise_multiplier: f64,
    client_rate: f64,
    sample_rate: f64,
    local_size: u64,
) -> PyResult<Columns<'py>> {
    let py = epsilon.py();
    let mechanism =
        RandomParticipation::new(client_rate, sample_rate, local_size, noise_multiplier)
            .map_err(|error| exception(py, &error))?;
    evaluate(py, epsilon, &mechanism, |m, e| [m.remove(e), m.add(e)])
}

/// Whether gradients are known that reach the deltas of remove and of add.
#[pyfunction]
pub(crate) fn random_participation_attained(
    py: Python<'_>,
    epsilon: f64,
    noise_multiplier: f64,
    client_rate: f64,
    sample_rate: f64,
    local_size: u64,
) -> PyResult<(bool, bool)> {
    let attained = RandomParticipation::new(client_rate, sample_rate, local_size, noise_multiplier)
        .and_then(|mechanism| mechanism.attained(epsilon))
        .map_err(|error| exception(py, &error))?;
    Ok(attained.into())
}

/// Random participation at many epsilons, each with parameters of its own: remove and add.
#[pyfunction]
pub(crate) fn random_participation_grid<'py>(
    epsilon: &Bound<'py, PyAny>,
    noise_multiplier: &Bound<'py, PyAny>,
    client_rate: &Bound<'py, PyAny>,
    sample_rate: &Bound<'py, PyAny>,
    local_size: &Bound<'py, PyAny>,
) -> PyResult<Columns<'py>> {
    let py = epsilon.py();
    let arrays = (
        floats("epsilon", epsilon)?,
        floats("noise_multiplier", noise_multiplier)?,
        floats("client_rate", client_rate)?,
        floats("sample_rate", sample_rate)?,
        counts("local_size", local_size)?,
    );
    let epsilons = slice(py, "epsilon", &arrays.0)?;
    let noises = slice(py, "noise_multiplier", &arrays.1)?;
    let clients = slice(py, "client_rate", &arrays.2)?;
    let samples = slice(py, "sample_rate", &arrays.3)?;
    let sizes = slice(py, "local_size", &arrays.4)?;
    same_length(py, &[epsilons.len(), noises.len(), clients.len(), samples.len(), sizes.len()])?;
    let job = || {
        accounting::evaluate(
            epsilons,
            |i| RandomParticipation::new(clients[i], samples[i], sizes[i], noises[i]),
            |mechanism, epsilon| [mechanism.remove(epsilon), mechanism.add(epsilon)],
        )
    };
    let values = if epsilons.len() < FEW {
        job().map_err(|error| exception(py, &error))?
    } else {
        run(py, job)?
    };
    Ok(rows(py, &values))
}

/// Poisson sampling with seen clients at many epsilons: remove and add.
#[pyfunction]
pub(crate) fn poisson_sampling<'py>(
    epsilon: &Bound<'py, PyAny>,
    noise_multiplier: f64,
    sample_rate: f64,
    client_rate: f64,
) -> PyResult<Columns<'py>> {
    let py = epsilon.py();
    let mechanism = PoissonSampling::new(client_rate, sample_rate, noise_multiplier)
        .map_err(|error| exception(py, &error))?;
    evaluate(py, epsilon, &mechanism, |m, e| [m.remove(e), m.add(e)])
}

/// Sampled counts above a floor at many epsilons: replace, remove and add.
#[pyfunction]
pub(crate) fn count_sampling<'py>(
    epsilon: &Bound<'py, PyAny>,
    rate: f64,
    floor: u64,
) -> PyResult<Columns<'py>> {
    let py = epsilon.py();
    let mechanism = CountSampling::new(rate, floor).map_err(|error| exception(py, &error))?;
    evaluate(py, epsilon, &mechanism, |m, e| [m.replace(e), m.remove(e), m.add(e)])
}

/// Shuffled reports at many epsilons: replace. The law is (own, other, gap, neither, common, blanket).
#[pyfunction]
pub(crate) fn shuffled<'py>(
    epsilon: &Bound<'py, PyAny>,
    nodes: u64,
    law: [f64; 6],
) -> PyResult<Columns<'py>> {
    let py = epsilon.py();
    let [own, other, gap, neither, common, blanket] = law;
    let law = ShuffleLaw { own, other, gap, neither, common, blanket };
    let mechanism = Shuffle::new(nodes, law).map_err(|error| exception(py, &error))?;
    evaluate(py, epsilon, &mechanism, |m, e| [m.replace(e)])
}

/// Integer noise: its table of probabilities is built once.
#[pyclass(frozen, module = "turnout._core", name = "IntegerNoise")]
pub(crate) struct PyIntegerNoise(IntegerNoise);

#[pymethods]
impl PyIntegerNoise {
    /// Builds the table for a kind of noise; `pieces` is for the kind that is a sum of so many.
    #[new]
    #[pyo3(signature = (kind, scale, pieces = 1))]
    fn new(py: Python<'_>, kind: &str, scale: f64, pieces: u32) -> PyResult<Self> {
        let make = match kind {
            "discrete_laplace" => IntegerNoise::discrete_laplace,
            "discrete_gaussian" => IntegerNoise::discrete_gaussian,
            "skellam" => IntegerNoise::skellam,
            "summed_discrete_gaussian" => {
                let job = || IntegerNoise::summed_discrete_gaussian(scale, pieces);
                return Ok(Self(run(py, job)?));
            }
            _ => return Err(invalid_type(py, format!("kind = {kind:?} is not known"))),
        };
        Ok(Self(run(py, || make(scale))?))
    }

    /// At many epsilons: the replace-one shift of two coordinates, and the shift of one.
    fn profile<'py>(&self, epsilon: &Bound<'py, PyAny>) -> PyResult<Columns<'py>> {
        evaluate(epsilon.py(), epsilon, &self.0, |m, e| [m.replace(e), m.single(e)])
    }
}

/// Two-stage sampling: its tables of counts are built once.
#[pyclass(frozen, module = "turnout._core", name = "TwoStageCountSampling")]
pub(crate) struct PyTwoStageCountSampling(TwoStageCountSampling);

#[pymethods]
impl PyTwoStageCountSampling {
    /// Builds the tables.
    #[new]
    fn new(
        py: Python<'_>,
        rate: f64,
        items: (u64, u64),
        gamma: f64,
        floor: u64,
        dummies: u64,
    ) -> PyResult<Self> {
        let (size, reported) = items;
        let job = || TwoStageCountSampling::new(rate, size, reported, gamma, floor, dummies);
        Ok(Self(run(py, job)?))
    }

    /// The local guarantee of the sets alone.
    #[getter]
    fn local_epsilon(&self) -> f64 {
        self.0.local_epsilon()
    }

    /// At many epsilons: replace, remove and add.
    fn profile<'py>(&self, epsilon: &Bound<'py, PyAny>) -> PyResult<Columns<'py>> {
        evaluate(epsilon.py(), epsilon, &self.0, |m, e| [m.replace(e), m.remove(e), m.add(e)])
    }
}
