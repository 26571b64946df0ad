//! Where the noise of a call comes from.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use turnout_core::random::{AesStreams, Purpose, Streams, Words};

use crate::errors::{Failure, Result};
use crate::pool::run;

/// The streams of a secret key, from some chunk of nodes on.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct NoiseStreams(AesStreams);

#[pymethods]
impl NoiseStreams {
    #[new]
    #[pyo3(signature = (key, first_chunk=0))]
    fn new(key: &[u8], first_chunk: u64) -> Result<Self> {
        let key = exactly("key", key)?;
        Ok(Self(AesStreams::from_key(key).starting_at(first_chunk)))
    }

    /// The streams of a seed: for tests and simulations only.
    #[staticmethod]
    #[pyo3(signature = (seed, first_chunk=0))]
    fn from_seed(seed: u64, first_chunk: u64) -> Self {
        Self(AesStreams::from_seed(seed).starting_at(first_chunk))
    }

    /// The streams of one part of what is drawn, with a key of their own.
    fn part(&self, number: u64) -> Self {
        Self(self.0.part(number))
    }

    // A method without self would not be found by repr().
    #[expect(clippy::unused_self, reason = "the key is never shown")]
    fn __repr__(&self) -> &'static str {
        "NoiseStreams(key hidden)"
    }
}

/// What stands for `seed`: an integer or [`NoiseStreams`].
pub(crate) struct Seed(AesStreams);

impl From<u64> for Seed {
    fn from(seed: u64) -> Self {
        Self(AesStreams::from_seed(seed))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Seed {
    type Error = PyErr;

    fn extract(seed: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(streams) = seed.cast::<NoiseStreams>() {
            return Ok(Self(streams.get().0.clone()));
        }
        let number: u64 = seed.extract().map_err(|_| {
            PyTypeError::new_err("seed must be an integer in [0, 2^64) or NoiseStreams")
        })?;
        Ok(number.into())
    }
}

/// Words of one stream of [`draw_words`].
const WORDS: u64 = 1 << 16;

/// Draws at least so many fresh words on all threads, and returns only their exclusive or. Benches
/// measure the rate of the generator with it.
#[pyfunction]
pub(crate) fn draw_words(py: Python<'_>, count: u64) -> Result<u64> {
    run(py, || {
        let streams = AesStreams::from_operating_system()?;
        let chunk = |index| {
            let mut stream = streams.stream(Purpose::Simulation, index);
            let (mut words, mut all) = ([0; 256], 0);
            for _ in 0..WORDS / 256 {
                stream.fill_words(&mut words);
                all = words.iter().fold(all, |all, word| all ^ word);
            }
            all
        };
        Ok((0..count.div_ceil(WORDS))
            .into_par_iter()
            .map(chunk)
            .reduce(|| 0, |one, other| one ^ other))
    })
}

/// Fresh streams from the operating system, or those of a seed.
pub(crate) fn streams(seed: Option<impl Into<Seed>>) -> turnout_core::Result<AesStreams> {
    seed.map_or_else(AesStreams::from_operating_system, |seed| Ok(seed.into().0))
}

/// Bytes of a length that is fixed, such as those of a key.
pub(crate) fn exactly<const N: usize>(argument: &str, bytes: &[u8]) -> Result<[u8; N]> {
    let found = bytes.len();
    let message = || format!("{argument} must have {N} bytes, got {found}");
    bytes.try_into().map_err(|_| Failure::Value(message()))
}
