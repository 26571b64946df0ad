//! Binding of `sharing::field`, `packing`, `expansion`, `shares` and `one_hot`.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use turnout::parameters::DomainSize;
use turnout::random::{AesStreams, Purpose, Streams};
use turnout::sharing as core;

use super::{
    Element, by_width, bytes, check_length, compute, elements, matrix, vector, vector_seed,
};
use crate::arrays::{mismatch, slice, unexpected};
use crate::errors::{exception, invalid_type};
use crate::pool::run;

/// Sums of shares as a (parties, length) array, uniform elements drawn, and additions.
type OneHotSums<'py> = (Bound<'py, PyAny>, u128, u128);

/// Seeds, and a packed share.
type CompressedShares<'py> = (Vec<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);

/// The integers modulo a prime.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct PrimeField {
    pub(super) field: core::PrimeField,
}

#[pymethods]
impl PrimeField {
    #[new]
    fn new(py: Python<'_>, modulus: u64) -> PyResult<Self> {
        let field = core::PrimeField::new(modulus).map_err(|error| exception(py, &error))?;
        Ok(Self { field })
    }

    /// The field whose modulus is the smallest prime above a bound.
    #[staticmethod]
    fn larger_than(py: Python<'_>, bound: u64) -> PyResult<Self> {
        let field = core::PrimeField::larger_than(bound).map_err(|error| exception(py, &error))?;
        Ok(Self { field })
    }

    /// The number of elements.
    #[getter]
    fn modulus(&self) -> u64 {
        self.field.modulus()
    }

    /// The bits that an element needs.
    #[getter]
    fn bits(&self) -> u32 {
        self.field.bits()
    }

    /// Uniform elements.
    #[pyo3(signature = (length, seed=None))]
    fn uniform<'py>(
        &self,
        py: Python<'py>,
        length: usize,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, uniform(py, self.field, check_length(py, length)?, seed))
    }

    /// Adds elements pairwise.
    fn add<'py>(
        &self,
        left: &Bound<'py, PyAny>,
        right: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, pairwise(self.field, left, right, core::PrimeField::add))
    }

    /// Subtracts elements pairwise.
    fn subtract<'py>(
        &self,
        left: &Bound<'py, PyAny>,
        right: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, pairwise(self.field, left, right, core::PrimeField::subtract))
    }

    /// The elements that give zero when they are added.
    fn negate<'py>(&self, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, negate(self.field, values))
    }

    /// Adds up the rows of a two-dimensional array.
    fn sum<'py>(&self, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, sum(self.field, rows))
    }

    /// The integers of least absolute value that are equal to elements.
    fn lift<'py>(&self, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, lift(self.field, values))
    }

    /// The elements that are equal to integers.
    fn reduce<'py>(&self, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, reduce(self.field, values))
    }

    /// Elements as bits.
    fn pack<'py>(&self, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        by_width!(self.field, pack(self.field, values))
    }

    /// Elements from their bits.
    fn unpack<'py>(&self, data: &Bound<'py, PyAny>, length: usize) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, unpack(self.field, data, length))
    }

    /// The vector that a seed stands for.
    fn expand<'py>(&self, seed: &Bound<'py, PyAny>, length: usize) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, expand(self.field, seed, check_length(seed.py(), length)?))
    }

    /// Shares of a vector: a row for each party.
    #[pyo3(signature = (vector, parties, seed=None))]
    fn share<'py>(
        &self,
        vector: &Bound<'py, PyAny>,
        parties: usize,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        by_width!(self.field, share(self.field, vector, parties, seed))
    }

    /// Seeds for all shares of a vector but the last, and the last, packed.
    #[pyo3(signature = (vector, parties, seed=None))]
    fn share_compressed<'py>(
        &self,
        vector: &Bound<'py, PyAny>,
        parties: usize,
        seed: Option<u64>,
    ) -> PyResult<CompressedShares<'py>> {
        by_width!(self.field, share_compressed(self.field, vector, parties, seed))
    }

    /// A round of users that share one-hot vectors, or zeros: what each party has added up.
    #[pyo3(signature = (codes, rate, domain_size, parties, compressed, seed=None))]
    fn share_one_hot<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        rate: f64,
        domain_size: u64,
        parties: usize,
        compressed: bool,
        seed: Option<u64>,
    ) -> PyResult<OneHotSums<'py>> {
        let py = codes.py();
        let build = || {
            let domain = DomainSize::new(domain_size)?;
            core::OneHotSharing::new(self.field, domain, parties, rate)
        };
        let round = build().map_err(|error| exception(py, &error))?;
        let round = if compressed { round.compressed() } else { round };
        let array = codes.extract().map_err(|_| mismatch("codes", "dtype uint32", codes))?;
        by_width!(self.field, share_one_hot(py, round, &array, parties, seed))
    }

    fn __repr__(&self) -> String {
        format!("PrimeField(modulus={})", self.field.modulus())
    }
}

/// Fresh streams from the operating system, or those of a seed.
fn streams(seed: Option<u64>) -> turnout::Result<AesStreams> {
    seed.map_or_else(AesStreams::from_operating_system, |seed| Ok(AesStreams::from_seed(seed)))
}

/// The stream of one user: of an index that a vector's own seed does not have.
fn stream(seed: Option<u64>) -> turnout::Result<<AesStreams as Streams>::Stream> {
    Ok(streams(seed)?.stream(Purpose::Share, 1))
}

fn uniform<E: Element>(
    py: Python<'_>,
    field: core::PrimeField,
    length: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'_, PyAny>> {
    let values = compute(py, length, || {
        let mut values = vec![E::default(); length];
        field.uniform(&mut stream(seed)?, &mut values)?;
        Ok(values)
    })?;
    Ok(vector(py, values))
}

fn pairwise<'py, E: Element>(
    field: core::PrimeField,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    operation: impl Fn(core::PrimeField, &[E], &[E]) -> turnout::Result<Vec<E>> + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let py = left.py();
    let (left, right) = (elements("left", left)?, elements("right", right)?);
    let (left, right) = (slice(py, "left", &left)?, slice(py, "right", &right)?);
    Ok(vector(py, compute(py, left.len(), || operation(field, left, right))?))
}

fn negate<'py, E: Element>(
    field: core::PrimeField,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let array = elements::<E>("values", values)?;
    let values = slice(py, "values", &array)?;
    Ok(vector(py, compute(py, values.len(), || field.negate(values))?))
}

fn sum<'py, E: Element>(
    field: core::PrimeField,
    rows: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = rows.py();
    let Ok(array) = rows.extract::<PyReadonlyArray2<'py, E>>() else {
        let expected = format!("a two-dimensional NumPy array of dtype uint{}", E::BITS);
        return Err(unexpected("rows", &expected, rows));
    };
    // A transposed array is contiguous too, but its memory goes along the columns.
    let values = match array.as_slice() {
        Ok(values) if array.is_c_contiguous() => values,
        _ => return Err(invalid_type(py, "rows must be a C-contiguous array".to_owned())),
    };
    let length = array.shape()[1];
    Ok(vector(py, compute(py, values.len(), || field.sum(values, length))?))
}

fn lift<'py, E: Element>(
    field: core::PrimeField,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let array = elements::<E>("values", values)?;
    let values = slice(py, "values", &array)?;
    Ok(vector(py, compute(py, values.len(), || field.lift(values))?))
}

fn reduce<'py, E: Element>(
    field: core::PrimeField,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    let array: PyReadonlyArray1<'py, i64> =
        values.extract().map_err(|_| mismatch("values", "dtype int64", values))?;
    let values = slice(py, "values", &array)?;
    Ok(vector(py, compute(py, values.len(), || field.reduce::<E>(values))?))
}

fn pack<'py, E: Element>(
    field: core::PrimeField,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = values.py();
    let array = elements::<E>("values", values)?;
    let values = slice(py, "values", &array)?;
    Ok(PyBytes::new(py, &compute(py, values.len(), || field.pack(values))?))
}

fn unpack<'py, E: Element>(
    field: core::PrimeField,
    data: &Bound<'py, PyAny>,
    length: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, data) = (data.py(), bytes("data", data)?);
    Ok(vector(py, compute(py, length, || field.unpack::<E>(data, length))?))
}

fn expand<'py, E: Element>(
    field: core::PrimeField,
    seed: &Bound<'py, PyAny>,
    length: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, seed) = (seed.py(), vector_seed(seed)?);
    let values = compute(py, length, || {
        let mut values = vec![E::default(); length];
        field.expand(&seed, &mut values)?;
        Ok(values)
    })?;
    Ok(vector(py, values))
}

fn share<'py, E: Element>(
    field: core::PrimeField,
    secret: &Bound<'py, PyAny>,
    parties: usize,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = secret.py();
    let array = elements::<E>("vector", secret)?;
    let secret = slice(py, "vector", &array)?;
    let work = secret.len().saturating_mul(parties);
    matrix(py, parties, compute(py, work, || field.share(secret, parties, &mut stream(seed)?))?)
}

fn share_compressed<'py, E: Element>(
    field: core::PrimeField,
    secret: &Bound<'py, PyAny>,
    parties: usize,
    seed: Option<u64>,
) -> PyResult<CompressedShares<'py>> {
    let py = secret.py();
    let array = elements::<E>("vector", secret)?;
    let secret = slice(py, "vector", &array)?;
    let (seeds, packed) = compute(py, secret.len().saturating_mul(parties), || {
        let shares = field.share_compressed(secret, parties, &mut stream(seed)?)?;
        Ok((shares.seeds, field.pack(&shares.explicit)?))
    })?;
    let seeds = seeds.iter().map(|seed| PyBytes::new(py, seed)).collect();
    Ok((seeds, PyBytes::new(py, &packed)))
}

fn share_one_hot<'py, E: Element>(
    py: Python<'py>,
    round: core::OneHotSharing,
    codes: &PyReadonlyArray1<'py, u32>,
    parties: usize,
    seed: Option<u64>,
) -> PyResult<OneHotSums<'py>> {
    let codes = slice(py, "codes", codes)?;
    let sums = run(py, || round.run::<E, _, _>(codes, &streams(seed)?))?;
    Ok((matrix(py, parties, sums.shares)?, sums.draws, sums.additions))
}
