//! Additive shares of one vector.

use super::elements::Element;
use super::expansion::{SEED_BYTES, draw, fill};
use super::field::PrimeField;
use super::sums::Lanes;
use crate::random::{AesStreams, Purpose, Streams, Words};
use crate::{Error, Result};

/// Shares of a vector; all but the last are seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressedShares<E> {
    /// The shares of all parties but the last: each [expands](PrimeField::expand) to a vector.
    pub seeds: Vec<[u8; SEED_BYTES]>,
    /// The share of the last party.
    pub explicit: Vec<E>,
}

/// The largest number of elements of all parties' shares together.
const MOST_ELEMENTS: usize = 1 << 32;

/// Checks a number of parties for vectors with `length` elements.
pub(super) fn check_parties(parties: usize, length: usize) -> Result<()> {
    let refuse =
        |expected| Err(Error::Integer { argument: "parties", value: parties as u64, expected });
    if parties < 2 {
        return refuse("an integer of at least 2");
    }
    match parties.checked_mul(length.max(1)) {
        Some(elements) if elements <= MOST_ELEMENTS => Ok(()),
        _ => refuse("at most 2^32 divided by the length of the vectors"),
    }
}

impl PrimeField {
    /// Shares a vector among parties. The result is row-major, one row for each party.
    ///
    /// All rows but the last are [uniform](Self::uniform), drawn in one go; the last is the vector
    /// minus their sum. So the rows add up to the vector, and rows of which one is missing reveal
    /// nothing about it.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] for fewer than two parties, or more than 2^32 elements in all;
    /// [`Error::ElementWidth`] and [`Error::OutsideField`] for values that are not elements.
    ///
    /// ```
    /// use turnout_core::random::{AesStreams, Purpose, Streams};
    /// use turnout_core::sharing::PrimeField;
    /// let field = PrimeField::new(11)?;
    /// let mut stream = AesStreams::from_operating_system()?.stream(Purpose::Share, 0);
    /// let shares = field.share(&[0_u32, 1, 0, 10], 5, &mut stream)?;
    /// assert_eq!(shares.len(), 5 * 4);
    /// assert_eq!(field.reconstruct(&shares, 4)?, [0, 1, 0, 10]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn share<E: Element, R: Words>(
        self,
        vector: &[E],
        parties: usize,
        rng: &mut R,
    ) -> Result<Vec<E>> {
        self.check("vector", vector)?;
        check_parties(parties, vector.len())?;
        let length = vector.len();
        let mut shares = vec![E::default(); parties * length];
        let (uniform, last) = shares.split_at_mut((parties - 1) * length);
        fill(self, rng, uniform);
        let mut sum = Lanes::new(self, length);
        for share in uniform.chunks(length.max(1)) {
            sum.make_room();
            sum.add_at(0, share);
        }
        let q = E::cut(self.modulus());
        last.copy_from_slice(vector);
        E::subtract(last, &sum.elements(), q);
        Ok(shares)
    }

    /// Shares a vector among parties, and gives all shares but the last as seeds.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share).
    ///
    /// ```
    /// use turnout_core::random::{AesStreams, Purpose, Streams};
    /// use turnout_core::sharing::PrimeField;
    /// let field = PrimeField::larger_than(1000)?;
    /// let mut stream = AesStreams::from_operating_system()?.stream(Purpose::Share, 0);
    /// let shares = field.share_compressed(&[0_u32, 1, 0], 3, &mut stream)?;
    /// assert_eq!((shares.seeds.len(), shares.explicit.len()), (2, 3));
    /// assert_eq!(field.reconstruct_compressed(&shares)?, [0, 1, 0]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn share_compressed<E: Element, R: Words>(
        self,
        vector: &[E],
        parties: usize,
        rng: &mut R,
    ) -> Result<CompressedShares<E>> {
        self.check("vector", vector)?;
        check_parties(parties, vector.len())?;
        let mut seeds = vec![[0; SEED_BYTES]; parties - 1];
        let mut explicit = vector.to_vec();
        let q = E::cut(self.modulus());
        for seed in &mut seeds {
            rng.fill_bytes(seed);
            let mut stream = AesStreams::from_key(*seed).stream(Purpose::Share, 0);
            draw::<E, _>(self, &mut stream, vector.len(), |start, share| {
                E::subtract(&mut explicit[start..], share, q);
            });
        }
        Ok(CompressedShares { seeds, explicit })
    }

    /// Returns the vector with these shares: the [sum](Self::sum) of the rows, of `length` elements
    /// each, of a row-major matrix.
    ///
    /// # Errors
    ///
    /// Those of [`sum`](Self::sum).
    pub fn reconstruct<E: Element>(self, shares: &[E], length: usize) -> Result<Vec<E>> {
        self.sum(shares, length)
    }

    /// Returns the vector with these compressed shares.
    ///
    /// # Errors
    ///
    /// [`Error::ElementWidth`] and [`Error::OutsideField`] for values that are not elements.
    pub fn reconstruct_compressed<E: Element>(
        self,
        shares: &CompressedShares<E>,
    ) -> Result<Vec<E>> {
        self.check("explicit", &shares.explicit)?;
        let mut sum = Lanes::new(self, shares.explicit.len());
        sum.make_room();
        sum.add_at(0, &shares.explicit);
        for seed in &shares.seeds {
            sum.make_room();
            sum.add_expansion::<E>(0, shares.explicit.len(), seed);
        }
        Ok(sum.elements())
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::fields;
    use super::*;
    use crate::random::uniform_below;

    fn round_trip<E: Element>(field: PrimeField) -> Result<()> {
        let mut stream = AesStreams::from_seed(field.modulus()).stream(Purpose::Share, 0);
        for length in [0, 1, 6, 700] {
            let vector: Vec<E> =
                (0..length).map(|_| E::cut(uniform_below(field.modulus(), &mut stream))).collect();
            for parties in [2, 3, 40] {
                let shares = field.share(&vector, parties, &mut stream)?;
                assert_eq!(shares.len(), parties * length);
                assert_eq!(field.reconstruct(&shares, length)?, vector);
                let shares = field.share_compressed(&vector, parties, &mut stream)?;
                assert_eq!(shares.seeds.len(), parties - 1);
                assert_eq!(field.reconstruct_compressed(&shares)?, vector);
            }
        }
        Ok(())
    }

    #[test]
    fn shares_reconstruct_in_fields_of_every_size() -> Result<()> {
        for field in fields()? {
            if field.width() == 32 {
                round_trip::<u32>(field)?;
            } else {
                round_trip::<u64>(field)?;
            }
        }
        Ok(())
    }

    /// The share vectors of three parties, of any kind.
    fn three(field: PrimeField, vector: &[u32], compressed: bool) -> Result<Vec<Vec<u32>>> {
        let mut stream = AesStreams::from_seed(field.modulus()).stream(Purpose::Share, 1);
        if !compressed {
            let shares = field.share(vector, 3, &mut stream)?;
            return Ok(shares.chunks(vector.len()).map(<[u32]>::to_vec).collect());
        }
        let shares = field.share_compressed(vector, 3, &mut stream)?;
        let mut rows = vec![vec![0; vector.len()]; 2];
        for (row, seed) in rows.iter_mut().zip(&shares.seeds) {
            field.expand(seed, row)?;
        }
        rows.push(shares.explicit);
        Ok(rows)
    }

    #[test]
    fn all_shares_but_one_are_uniform_whatever_the_secret() -> Result<()> {
        // Chi-square at alpha = 1e-6 for all 102 tables together: 1e-8 each, z = 5.62, with the
        // quantile of Wilson and Hilferty (within 1 % there).
        let samples = 40_000;
        for modulus in [2_u32, 3, 5, 7] {
            let field = PrimeField::new(modulus.into())?;
            for secret in 0..modulus {
                for compressed in [false, true] {
                    let rows = three(field, &vec![secret; samples], compressed)?;
                    for left_out in 0..3 {
                        let kept: Vec<&Vec<u32>> =
                            (0..3).filter(|&row| row != left_out).map(|row| &rows[row]).collect();
                        let mut cells = vec![0_u32; (modulus * modulus) as usize];
                        for (one, other) in kept[0].iter().zip(kept[1]) {
                            cells[(one * modulus + other) as usize] += 1;
                        }
                        let mean = samples as f64 / cells.len() as f64;
                        let statistic: f64 =
                            cells.iter().map(|&cell| (f64::from(cell) - mean).powi(2) / mean).sum();
                        let freedom = (cells.len() - 1) as f64;
                        let spread = 2.0 / (9.0 * freedom);
                        let quantile = freedom * (1.0 - spread + 5.62 * spread.sqrt()).powi(3);
                        assert!(
                            statistic < 1.02 * quantile,
                            "q = {modulus}, secret {secret}, without {left_out}: {statistic}"
                        );
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn bad_input_is_refused() -> Result<()> {
        let field = PrimeField::new(11)?;
        let mut stream = AesStreams::from_seed(1).stream(Purpose::Share, 0);
        for parties in [0, 1, usize::MAX, 1 << 32] {
            let plain = field.share(&[1_u32, 2], parties, &mut stream).err();
            let compressed = field.share_compressed(&[1_u32, 2], parties, &mut stream).err();
            for error in [plain, compressed] {
                assert!(matches!(error, Some(Error::Integer { argument: "parties", .. })));
            }
        }
        let outside = Error::OutsideField { argument: "vector", index: 1, modulus: 11 };
        assert_eq!(field.share(&[0_u32, 11], 2, &mut stream), Err(outside.clone()));
        assert_eq!(field.share_compressed(&[0_u32, 11], 2, &mut stream), Err(outside));
        assert!(field.share(&[0_u64], 2, &mut stream).is_err());
        let altered = CompressedShares { seeds: vec![[0; 32]], explicit: vec![11_u32] };
        assert!(field.reconstruct_compressed(&altered).is_err());
        Ok(())
    }
}
