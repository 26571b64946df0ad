//! Binding of `sharing::field`, `packing`, `expansion`, `shares` and `one_hot`.

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use turnout_core::parameters::DomainSize;
use turnout_core::random::{AesStreams, Purpose, Streams};
use turnout_core::sharing as core;

use super::{by_width, bytes, check_length, compute};
use crate::arrays::{Out, OutRows, matrix, vector};
use crate::errors::Result;
use crate::noise::{exactly, streams};
use crate::pool::run;

/// Elements of either width, as NumPy's array.
type Elements<'py> = Result<Bound<'py, PyAny>>;

/// Sums of shares as a (parties, length) array, uniform elements drawn, and additions.
type OneHotSums<'py> = (Bound<'py, PyAny>, u128, u128);

/// Seeds, and a packed share.
type CompressedShares<'py> = (Vec<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);

/// The integers modulo a prime.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct PrimeField {
    pub(super) field: core::PrimeField,
}

/// A method that makes one array of one: `$made` elements or integers of `$given` ones.
macro_rules! one_to_one {
    ($field:expr, $given:expr, |$element:ident, $values:ident| $made:expr) => {{
        let py = $given.py();
        by_width!($field, $element => {
            let $values = &*vector("values", $given)?;
            Ok(Out(compute(py, $values.len(), || $made)?).into_pyobject(py)?.into_any())
        })
    }};
}

#[pymethods]
impl PrimeField {
    #[new]
    fn new(modulus: u64) -> Result<Self> {
        Ok(Self { field: core::PrimeField::new(modulus)? })
    }

    /// The field whose modulus is the smallest prime above a bound.
    #[staticmethod]
    fn larger_than(bound: u64) -> Result<Self> {
        Ok(Self { field: core::PrimeField::larger_than(bound)? })
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
    fn uniform<'py>(&self, py: Python<'py>, length: usize, seed: Option<u64>) -> Elements<'py> {
        let length = check_length(length)?;
        by_width!(self.field, E => {
            let values = compute(py, length, || {
                let mut values = vec![E::default(); length];
                self.field.uniform(&mut stream(seed)?, &mut values)?;
                Ok(values)
            })?;
            Ok(Out(values).into_pyobject(py)?.into_any())
        })
    }

    /// Adds elements pairwise.
    fn add<'py>(&self, left: &Bound<'py, PyAny>, right: &Bound<'py, PyAny>) -> Elements<'py> {
        by_width!(self.field, E => pairwise(self.field, left, right, core::PrimeField::add::<E>))
    }

    /// Subtracts elements pairwise.
    fn subtract<'py>(&self, left: &Bound<'py, PyAny>, right: &Bound<'py, PyAny>) -> Elements<'py> {
        by_width!(self.field, E => {
            pairwise(self.field, left, right, core::PrimeField::subtract::<E>)
        })
    }

    /// The elements that give zero when they are added.
    fn negate<'py>(&self, values: &Bound<'py, PyAny>) -> Elements<'py> {
        one_to_one!(self.field, values, |E, elements| self.field.negate::<E>(elements))
    }

    /// Adds up the rows of a two-dimensional array.
    fn sum<'py>(&self, rows: &Bound<'py, PyAny>) -> Elements<'py> {
        let py = rows.py();
        by_width!(self.field, E => {
            let array = matrix::<E>("rows", rows)?;
            let (values, length) = (&*array, array.columns());
            let sums = compute(py, values.len(), || self.field.sum(values, length))?;
            Ok(Out(sums).into_pyobject(py)?.into_any())
        })
    }

    /// The integers of least absolute value that are equal to elements.
    fn lift<'py>(&self, values: &Bound<'py, PyAny>) -> Elements<'py> {
        one_to_one!(self.field, values, |E, elements| self.field.lift::<E>(elements))
    }

    /// The elements that are equal to integers.
    fn reduce<'py>(&self, values: &Bound<'py, PyAny>) -> Elements<'py> {
        one_to_one!(self.field, values, |E, integers| self.field.reduce::<E>(integers))
    }

    /// Elements as bits.
    fn pack<'py>(&self, values: &Bound<'py, PyAny>) -> Result<Bound<'py, PyBytes>> {
        let py = values.py();
        by_width!(self.field, E => {
            let values = &*vector::<E>("values", values)?;
            Ok(PyBytes::new(py, &compute(py, values.len(), || self.field.pack(values))?))
        })
    }

    /// Elements from their bits.
    fn unpack<'py>(&self, data: &Bound<'py, PyAny>, length: usize) -> Elements<'py> {
        let (py, data) = (data.py(), bytes("data", data)?);
        by_width!(self.field, E => {
            let values = compute(py, length, || self.field.unpack::<E>(data, length))?;
            Ok(Out(values).into_pyobject(py)?.into_any())
        })
    }

    /// The vector that a seed stands for.
    fn expand<'py>(&self, seed: &Bound<'py, PyAny>, length: usize) -> Elements<'py> {
        let (py, length) = (seed.py(), check_length(length)?);
        let key = exactly("seed", bytes("seed", seed)?)?;
        by_width!(self.field, E => {
            let values = compute(py, length, || {
                let mut values = vec![E::default(); length];
                self.field.expand(&key, &mut values)?;
                Ok(values)
            })?;
            Ok(Out(values).into_pyobject(py)?.into_any())
        })
    }

    /// Shares of a vector: a row for each party.
    #[pyo3(signature = (vector, parties, seed=None))]
    fn share<'py>(
        &self,
        vector: &Bound<'py, PyAny>,
        parties: usize,
        seed: Option<u64>,
    ) -> Elements<'py> {
        let py = vector.py();
        by_width!(self.field, E => {
            let secret = &*self::vector::<E>("vector", vector)?;
            let shares = compute(py, secret.len().saturating_mul(parties), || {
                self.field.share(secret, parties, &mut stream(seed)?)
            })?;
            Ok(shares.into_pyarray(py).reshape([parties, secret.len()])?.into_any())
        })
    }

    /// Seeds for all shares of a vector but the last, and the last, packed.
    #[pyo3(signature = (vector, parties, seed=None))]
    fn share_compressed<'py>(
        &self,
        vector: &Bound<'py, PyAny>,
        parties: usize,
        seed: Option<u64>,
    ) -> Result<CompressedShares<'py>> {
        let py = vector.py();
        let (seeds, packed) = by_width!(self.field, E => {
            let secret = &*self::vector::<E>("vector", vector)?;
            compute(py, secret.len().saturating_mul(parties), || {
                let shares = self.field.share_compressed(secret, parties, &mut stream(seed)?)?;
                Ok((shares.seeds, self.field.pack(&shares.explicit)?))
            })?
        });
        let seeds = seeds.iter().map(|seed| PyBytes::new(py, seed)).collect();
        Ok((seeds, PyBytes::new(py, &packed)))
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
    ) -> Result<OneHotSums<'py>> {
        let py = codes.py();
        let domain = DomainSize::new(domain_size)?;
        let round = core::OneHotSharing::new(self.field, domain, parties, rate)?;
        let round = if compressed { round.compressed() } else { round };
        let codes = &*vector::<u32>("codes", codes)?;
        by_width!(self.field, E => {
            let sums = run(py, || round.run::<E, _, _>(codes, &streams(seed)?))?;
            let shares = OutRows(sums.shares, domain.len()).into_pyobject(py)?.into_any();
            Ok((shares, sums.draws, sums.additions))
        })
    }

    fn __repr__(&self) -> String {
        format!("PrimeField(modulus={})", self.field.modulus())
    }
}

/// The stream of one user: of an index that a vector's own seed does not have.
fn stream(seed: Option<u64>) -> turnout_core::Result<<AesStreams as Streams>::Stream> {
    Ok(streams(seed)?.stream(Purpose::Share, 1))
}

fn pairwise<'py, E: core::Element + numpy::Element>(
    field: core::PrimeField,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    operation: impl Fn(core::PrimeField, &[E], &[E]) -> turnout_core::Result<Vec<E>> + Sync,
) -> Elements<'py> {
    let py = left.py();
    let (left, right) = (&*vector("left", left)?, &*vector("right", right)?);
    let results = compute(py, left.len(), || operation(field, left, right))?;
    Ok(Out(results).into_pyobject(py)?.into_any())
}
