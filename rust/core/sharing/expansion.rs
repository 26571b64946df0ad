//! Exactly uniform elements, and seeds that stand for vectors of them.

use super::elements::Element;
use super::field::PrimeField;
use crate::Result;
use crate::random::{AesStreams, Purpose, Streams, Words};

/// The number of bytes of a seed.
pub const SEED_BYTES: usize = 32;

/// Words drawn at once.
const BLOCK: usize = 256;

impl PrimeField {
    /// Fills a slice with uniform elements, exactly and independently.
    ///
    /// The method is multiply-and-reject: Lemire, "Fast random integer generation in an interval",
    /// ACM TOMACS 29 (2019). If the modulus q is at most 2^32, each 64-bit word gives two 32-bit
    /// numbers, the low one first; otherwise it gives one 64-bit number. A number `w` of `b` bits
    /// is accepted if `w q mod 2^b` is at least `2^b mod q`, and then gives the element `floor(w q
    /// / 2^b)`. If the last word gives a number that is not needed, it is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::ElementWidth`](crate::Error::ElementWidth) for the wrong integer type.
    ///
    /// ```
    /// use turnout_core::random::{AesStreams, Purpose, Streams};
    /// use turnout_core::sharing::PrimeField;
    /// let field = PrimeField::new(5)?;
    /// let mut stream = AesStreams::from_operating_system()?.stream(Purpose::Share, 0);
    /// let mut values = [9_u32; 100];
    /// field.uniform(&mut stream, &mut values)?;
    /// assert!(values.iter().all(|&value| value < 5));
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn uniform<E: Element, R: Words>(self, rng: &mut R, values: &mut [E]) -> Result<()> {
        self.expect_width::<E>()?;
        fill(self, rng, values);
        Ok(())
    }

    /// Expands a seed to the vector of uniform elements that it stands for.
    ///
    /// The format: block `i = 0, 1, ...` is an AES-256 encryption with the seed as key. It encrypts
    /// 16 bytes: `i` as a little-endian 64-bit integer, then the byte 0 seven times and the byte 16
    /// (0x10). The blocks one after the other are little-endian 64-bit words, and
    /// [`uniform`](Self::uniform) says how words become elements.
    ///
    /// A seed must be uniformly random and secret. Then its vector differs from uniform elements
    /// only as far as AES-256 differs from a random permutation.
    ///
    /// # Errors
    ///
    /// [`Error::ElementWidth`](crate::Error::ElementWidth) for the wrong integer type.
    ///
    /// ```
    /// use turnout_core::sharing::PrimeField;
    /// let mut values = [0_u32; 3];
    /// PrimeField::new(1009)?.expand(&[0; 32], &mut values)?;
    /// assert_eq!(values, [357, 745, 896]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn expand<E: Element>(self, seed: &[u8; SEED_BYTES], values: &mut [E]) -> Result<()> {
        self.uniform(&mut AesStreams::from_key(*seed).stream(Purpose::Share, 0), values)
    }
}

/// Fills a slice of the right type with uniform elements.
pub(super) fn fill<E: Element, R: Words>(field: PrimeField, rng: &mut R, values: &mut [E]) {
    draw::<E, R>(field, rng, values.len(), |start, drawn| {
        values[start..start + drawn.len()].copy_from_slice(drawn);
    });
}

/// Draws `length` uniform elements and gives them out in pieces, each with the index of its first.
///
/// The elements are the accepted ones, in order, and the words used are those up to the last of
/// them. Neither depends on the blocks in which this works.
#[inline(always)]
pub(super) fn draw<E: Element, R: Words>(
    field: PrimeField,
    rng: &mut R,
    length: usize,
    mut give: impl FnMut(usize, &[E]),
) {
    let q = field.modulus();
    // 2^b modulo q.
    let threshold = (u64::MAX >> (u64::BITS - E::BITS)) % q + 1;
    let threshold = if threshold == q { 0 } else { threshold };
    let mut words = [0; BLOCK];
    let mut values = [E::default(); 2 * BLOCK];
    let mut done = 0;
    while done < length {
        // Every word of the block is needed, even if all its numbers are accepted.
        let wanted = (length - done).min(BLOCK * E::CANDIDATES);
        let words = &mut words[..wanted.div_ceil(E::CANDIDATES)];
        let values = &mut values[..words.len() * E::CANDIDATES];
        rng.fill_words(words);
        let number = if E::candidates(words, q, threshold, values) {
            E::accepted(words, q, threshold, values).min(wanted)
        } else {
            wanted
        };
        give(done, &values[..number]);
        done += number;
    }
}

#[cfg(test)]
mod tests {
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    use rand::Rng;

    use super::super::field::fields;
    use super::*;
    use crate::Error;

    /// What one number of `E::BITS` bits gives.
    fn element<E: Element>(q: u64, number: u64, threshold: u64) -> Option<u64> {
        let mut values = [E::default(); 2];
        // A second number that is always accepted, in the high half of a word of two.
        let word = if E::BITS == 32 { number | u64::from(u32::MAX) << 32 } else { number };
        let values = &mut values[..E::CANDIDATES];
        let accepted = E::accepted(&[word], q, threshold, values) == E::CANDIDATES;
        let first = values[0].value();
        // All candidates are the elements unless one is rejected, and then it says so.
        assert_eq!(E::candidates(&[word], q, threshold, values), !accepted);
        assert!(!accepted || values[0].value() == first);
        accepted.then_some(first)
    }

    /// Every element has equally many numbers: those that give `v` run from `ceil(v 2^b / q)` to just
    /// below `ceil((v + 1) 2^b / q)`, and of each run `floor(2^b / q)` must be accepted.
    fn equally_many<E: Element>(field: PrimeField, elements: impl Iterator<Item = u64>) {
        let (q, numbers) = (u128::from(field.modulus()), 1_u128 << E::BITS);
        let threshold = u64::try_from(numbers % q).unwrap_or(u64::MAX);
        let low = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        for element_ in elements {
            let start = (u128::from(element_) * numbers).div_ceil(q);
            let end = ((u128::from(element_) + 1) * numbers).div_ceil(q);
            let at = |number| element::<E>(field.modulus(), low(number), threshold);
            // Only the first of a run can be rejected: the low half grows by q > threshold.
            let accepted = end - start - u128::from(at(start).is_none());
            assert_eq!(accepted, numbers / q, "{field:?}, element {element_}");
            for number in [start, start + 1, end - 1] {
                if number > start && number < end {
                    assert_eq!(at(number), Some(element_), "{field:?}, number {number}");
                }
            }
        }
    }

    #[test]
    fn every_element_has_equally_many_numbers() -> Result<()> {
        for field in fields()? {
            let q = field.modulus();
            let step = usize::try_from(q / 1000 + 1).unwrap_or(1);
            let elements = (0..q).step_by(step).take(2000).chain([q / 2, q - 1]);
            if field.width() == 32 {
                equally_many::<u32>(field, elements);
            } else {
                equally_many::<u64>(field, elements);
            }
        }
        Ok(())
    }

    /// Elements one by one: AES through the block interface, and the rule as it is written down.
    fn one_by_one(field: PrimeField, seed: &[u8; 32], length: usize) -> Vec<u64> {
        let cipher = aes::Aes256::new(&(*seed).into());
        let (q, width) = (u128::from(field.modulus()), field.width());
        let mut elements = Vec::new();
        for index in 0_u64.. {
            let mut block = Array([0; 16]);
            block[..8].copy_from_slice(&index.to_le_bytes());
            block[15] = 0x10;
            cipher.encrypt_block(&mut block);
            for bytes in block.chunks(width as usize / 8) {
                let number =
                    bytes.iter().rfold(0, |number, &byte| (number << 8) | u128::from(byte));
                if (number * q) % (1 << width) >= (1 << width) % q && elements.len() < length {
                    elements.push(u64::try_from((number * q) >> width).unwrap_or(u64::MAX));
                }
            }
            if elements.len() == length {
                break;
            }
        }
        elements
    }

    fn format<E: Element>(field: PrimeField) -> Result<()> {
        let seed: [u8; 32] = core::array::from_fn(|index| u8::try_from(index * 7).unwrap_or(0));
        let expected = one_by_one(field, &seed, 2500);
        for length in [0, 1, 2, 3, 30, 255, 256, 257, 511, 512, 513, 1024, 2500] {
            let mut values = vec![E::default(); length];
            field.expand(&seed, &mut values)?;
            assert!(
                values.iter().map(|value| value.value()).eq(expected[..length].iter().copied())
            );
        }
        Ok(())
    }

    #[test]
    fn expansion_follows_the_format_in_fields_of_every_size() -> Result<()> {
        // The fields just above a power of two reject up to half of all numbers.
        for field in fields()? {
            if field.width() == 32 { format::<u32>(field)? } else { format::<u64>(field)? }
        }
        Ok(())
    }

    #[test]
    fn no_word_is_used_that_is_not_needed() -> Result<()> {
        // With 3/4 of the numbers accepted, blocks end everywhere.
        for field in [PrimeField::larger_than(3 << 29)?, PrimeField::new(5)?] {
            let streams = AesStreams::from_seed(3);
            for length in [1, 2, 7, 512, 1500] {
                let mut stream = streams.stream(Purpose::Share, length as u64);
                let mut again = stream.clone();
                let mut values = vec![0_u32; length];
                field.uniform(&mut stream, &mut values)?;
                let (mut accepted, q) = (0, field.modulus());
                while accepted < length {
                    let word = again.next_u64();
                    for number in [word & 0xffff_ffff, word >> 32] {
                        accepted += usize::from((number * q) % (1 << 32) >= (1 << 32) % q);
                    }
                }
                assert_eq!(stream.next_u64(), again.next_u64());
            }
        }
        Ok(())
    }

    #[test]
    fn the_wrong_integer_type_is_refused() -> Result<()> {
        let narrow = PrimeField::new(5)?.expand(&[0; 32], &mut [0_u64; 2]);
        assert!(matches!(narrow, Err(Error::ElementWidth { .. })));
        let wide = PrimeField::larger_than(1 << 32)?.expand(&[0; 32], &mut [0_u32; 2]);
        assert!(matches!(wide, Err(Error::ElementWidth { .. })));
        Ok(())
    }
}
