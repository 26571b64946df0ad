//! Binding of `accounting`.

use pyo3::prelude::*;
use turnout_core::accounting::{
    self, CountSampling, HockeyStick, IntegerNoise, PoissonSampling, RandomParticipation, Shuffle,
    ShuffleLaw, TwoStageCountSampling,
};

use crate::arrays::{OutRows, vector};
use crate::errors::{Failure, Result};
use crate::pool::{run, run_if};

/// Below this many epsilons the work is done where it is called: the pool costs more.
const FEW: usize = 5;

/// Columns of (delta, p, q) for each direction.
type Columns = OutRows<f64>;

/// Evaluates mechanisms, that of each index, at many epsilons.
fn evaluate<M: Sync, const N: usize>(
    py: Python<'_>,
    epsilons: &[f64],
    mechanism: impl Fn(usize) -> turnout_core::Result<M> + Sync,
    directions: impl Fn(&M, f64) -> [HockeyStick; N] + Sync,
) -> Result<Columns> {
    let values = run_if(py, epsilons.len() >= FEW, || {
        accounting::evaluate(epsilons, &mechanism, &directions)
    })?;
    let all = values.iter().flatten();
    Ok(OutRows(all.flat_map(|stick| [stick.delta, stick.p, stick.q]).collect(), 3 * N))
}

/// Evaluates one mechanism at many epsilons.
fn profile<M: Sync, const N: usize>(
    epsilon: &Bound<'_, PyAny>,
    mechanism: &M,
    directions: impl Fn(&M, f64) -> [HockeyStick; N] + Sync,
) -> Result<Columns> {
    let epsilons = &*vector("epsilon", epsilon)?;
    evaluate(epsilon.py(), epsilons, |_| Ok(mechanism), |m, e| directions(m, e))
}

/// Random participation at many epsilons: remove and add.
#[pyfunction]
pub(crate) fn random_participation(
    epsilon: &Bound<'_, PyAny>,
    noise_multiplier: f64,
    client_rate: f64,
    sample_rate: f64,
    local_size: u64,
) -> Result<Columns> {
    let mechanism =
        RandomParticipation::new(client_rate, sample_rate, local_size, noise_multiplier)?;
    profile(epsilon, &mechanism, |m, e| [m.remove(e), m.add(e)])
}

/// Whether gradients are known that reach the deltas of remove and of add.
#[pyfunction]
pub(crate) fn random_participation_attained(
    epsilon: f64,
    noise_multiplier: f64,
    client_rate: f64,
    sample_rate: f64,
    local_size: u64,
) -> Result<(bool, bool)> {
    let mechanism =
        RandomParticipation::new(client_rate, sample_rate, local_size, noise_multiplier)?;
    Ok(mechanism.attained(epsilon)?.into())
}

/// Random participation at many epsilons, each with parameters of its own: remove and add.
#[pyfunction]
pub(crate) fn random_participation_grid(
    epsilon: &Bound<'_, PyAny>,
    noise_multiplier: &Bound<'_, PyAny>,
    client_rate: &Bound<'_, PyAny>,
    sample_rate: &Bound<'_, PyAny>,
    local_size: &Bound<'_, PyAny>,
) -> Result<Columns> {
    let epsilons = &*vector("epsilon", epsilon)?;
    let noises = &*vector("noise_multiplier", noise_multiplier)?;
    let clients = &*vector("client_rate", client_rate)?;
    let samples = &*vector("sample_rate", sample_rate)?;
    let sizes = &*vector("local_size", local_size)?;
    let lengths = [epsilons.len(), noises.len(), clients.len(), samples.len(), sizes.len()];
    if lengths.iter().any(|length| *length != lengths[0]) {
        let message = format!("arrays must have the same length, got {lengths:?}");
        return Err(Failure::Type(message));
    }
    let mechanism = |i| RandomParticipation::new(clients[i], samples[i], sizes[i], noises[i]);
    evaluate(epsilon.py(), epsilons, mechanism, |m, e| [m.remove(e), m.add(e)])
}

/// Poisson sampling with seen clients at many epsilons: remove and add.
#[pyfunction]
pub(crate) fn poisson_sampling(
    epsilon: &Bound<'_, PyAny>,
    noise_multiplier: f64,
    sample_rate: f64,
    client_rate: f64,
) -> Result<Columns> {
    let mechanism = PoissonSampling::new(client_rate, sample_rate, noise_multiplier)?;
    profile(epsilon, &mechanism, |m, e| [m.remove(e), m.add(e)])
}

/// Sampled counts above a floor at many epsilons: replace, remove and add.
#[pyfunction]
pub(crate) fn count_sampling(epsilon: &Bound<'_, PyAny>, rate: f64, floor: u64) -> Result<Columns> {
    let mechanism = CountSampling::new(rate, floor)?;
    profile(epsilon, &mechanism, |m, e| [m.replace(e), m.remove(e), m.add(e)])
}

/// Shuffled reports at many epsilons: replace. The law is (own, other, gap, neither, common, blanket).
#[pyfunction]
pub(crate) fn shuffled(epsilon: &Bound<'_, PyAny>, nodes: u64, law: [f64; 6]) -> Result<Columns> {
    let [own, other, gap, neither, common, blanket] = law;
    let law = ShuffleLaw { own, other, gap, neither, common, blanket };
    profile(epsilon, &Shuffle::new(nodes, law)?, |m, e| [m.replace(e)])
}

/// Integer noise: its table of probabilities is built once.
#[pyclass(frozen, module = "turnout._core", name = "IntegerNoise")]
pub(crate) struct PyIntegerNoise(IntegerNoise);

#[pymethods]
impl PyIntegerNoise {
    /// Builds the table for a kind of noise; `pieces` is for the kind that is a sum of so many.
    #[new]
    #[pyo3(signature = (kind, scale, pieces = 1))]
    fn new(py: Python<'_>, kind: &str, scale: f64, pieces: u32) -> Result<Self> {
        let make = match kind {
            "discrete_laplace" => |scale, _| IntegerNoise::discrete_laplace(scale),
            "discrete_gaussian" => |scale, _| IntegerNoise::discrete_gaussian(scale),
            "skellam" => |scale, _| IntegerNoise::skellam(scale),
            "summed_discrete_gaussian" => IntegerNoise::summed_discrete_gaussian,
            _ => return Err(Failure::Type(format!("kind = {kind:?} is not known"))),
        };
        run(py, || make(scale, pieces)).map(Self)
    }

    /// At many epsilons: the replace-one shift of two coordinates, and the shift of one.
    fn profile(&self, epsilon: &Bound<'_, PyAny>) -> Result<Columns> {
        profile(epsilon, &self.0, |m, e| [m.replace(e), m.single(e)])
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
    ) -> Result<Self> {
        let (size, reported) = items;
        run(py, || TwoStageCountSampling::new(rate, size, reported, gamma, floor, dummies))
            .map(Self)
    }

    /// The local guarantee of the sets alone.
    #[getter]
    fn local_epsilon(&self) -> f64 {
        self.0.local_epsilon()
    }

    /// At many epsilons: replace, remove and add.
    fn profile(&self, epsilon: &Bound<'_, PyAny>) -> Result<Columns> {
        profile(epsilon, &self.0, |m, e| [m.replace(e), m.remove(e), m.add(e)])
    }
}
