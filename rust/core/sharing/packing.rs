//! Packs elements into bits.
//!
//! The format: element `i` takes the bits `i b` to `(i + 1) b - 1`, its lowest bit first. Here `b`
//! is the [bits](PrimeField::bits) of the field. Bit `j` is bit `j mod 8`, counted from the lowest,
//! of byte `floor(j / 8)`. The unused bits of the last byte are zero.

use super::elements::Element;
use super::field::PrimeField;
use crate::vectors::widest;
use crate::{Error, Result};

impl PrimeField {
    /// The number of bytes that `length` packed elements take; [`usize::MAX`] if it is larger.
    #[must_use]
    pub fn packed_bytes(self, length: usize) -> usize {
        // In two steps: the number of bits may not fit where the number of bytes does.
        let bits = self.bits() as usize;
        let whole = (length / 8).saturating_mul(bits);
        whole.saturating_add((length % 8 * bits).div_ceil(8))
    }

    /// Packs elements, each as [bits](Self::bits) bits, little-endian, with zeros up to a whole
    /// byte.
    ///
    /// Element `i` takes the bits `i b` to `(i + 1) b - 1`, its lowest bit first; bit `j` is bit
    /// `j mod 8`, counted from the lowest, of byte `floor(j / 8)`.
    ///
    /// # Errors
    ///
    /// [`Error::ElementWidth`] for the wrong integer type, [`Error::OutsideField`] for a value that
    /// is not an element.
    ///
    /// ```
    /// use turnout_core::sharing::PrimeField;
    /// let field = PrimeField::new(7)?;
    /// let data = field.pack(&[1_u32, 2, 6])?;
    /// assert_eq!(data, [0b10_010_001, 0b1]);
    /// assert_eq!(field.unpack::<u32>(&data, 3)?, [1, 2, 6]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn pack<E: Element>(self, values: &[E]) -> Result<Vec<u8>> {
        self.check("values", values)?;
        let bits = self.bits();
        let length = self.packed_bytes(values.len());
        let mut packer = Packer { out: vec![0; length + 8], place: 0, carry: 0, fill: 0 };
        match bits {
            1..=16 => packer.eights(values, bits),
            17..=19 => packer.groups::<E, 3>(values, bits),
            20..=28 => packer.groups::<E, 2>(values, bits),
            _ => packer.groups::<E, 1>(values, bits),
        }
        packer.out.truncate(length);
        Ok(packer.out)
    }

    /// Reads `length` [packed](Self::pack) elements.
    ///
    /// # Errors
    ///
    /// [`Error::ElementWidth`] for the wrong integer type; [`Error::PackedLength`] if there are
    /// more or fewer bytes than so many elements take; [`Error::PackedPadding`] if an unused bit is
    /// set; [`Error::OutsideField`] for a value that is not an element.
    pub fn unpack<E: Element>(self, data: &[u8], length: usize) -> Result<Vec<E>> {
        self.expect_width::<E>()?;
        check_length(self, data, length)?;
        let mut values = vec![E::default(); length];
        unpack_into(self, data, &mut values)?;
        Ok(values)
    }
}

fn check_length(field: PrimeField, data: &[u8], length: usize) -> Result<()> {
    let (expected, found) = (field.packed_bytes(length), data.len());
    if found == expected {
        Ok(())
    } else {
        Err(Error::PackedLength { argument: "data", length, expected, found })
    }
}

/// [`PrimeField::unpack`] into a slice of the right type.
pub(super) fn unpack_into<E: Element>(
    field: PrimeField,
    data: &[u8],
    values: &mut [E],
) -> Result<()> {
    check_length(field, data, values.len())?;
    let bits = field.bits();
    let used = values.len() % 8 * bits as usize % 8;
    if let Some(&value) = data.last()
        && used > 0
        && value >> used != 0
    {
        return Err(Error::PackedPadding { argument: "data", value });
    }
    match bits {
        1..=7 => unpack_groups::<E, 8>(data, bits, values),
        8..=9 => unpack_groups::<E, 6>(data, bits, values),
        10..=11 => unpack_groups::<E, 5>(data, bits, values),
        12..=14 => unpack_groups::<E, 4>(data, bits, values),
        15..=19 => unpack_groups::<E, 3>(data, bits, values),
        20..=28 => unpack_groups::<E, 2>(data, bits, values),
        _ => unpack_groups::<E, 1>(data, bits, values),
    }
    field.check("data", values)
}

/// The most bits that go in and out at once: seven more may stand before them in a 64-bit word.
const AT_ONCE: u32 = u64::BITS - 7;

struct Packer {
    /// The bytes, and eight more.
    out: Vec<u8>,
    /// The first byte that is not full.
    place: usize,
    /// Its bits, and how many there are: at most seven.
    carry: u64,
    fill: u32,
}

impl Packer {
    /// Packs elements of at most 16 bits: four of them fit into a word, and eight take whole bytes.
    fn eights<E: Element>(&mut self, values: &[E], bits: u32) {
        let (eights, rest) = values.as_chunks::<8>();
        let bytes = bits as usize;
        let out = self.out.as_mut_slice();
        widest(
            #[inline(always)]
            move || {
                // Of an odd number of bits four elements take half a byte more.
                let half = bits % 2 * 4;
                let pair = |low: E, high: E| low.value() | high.value() << bits;
                for (index, &[a, b, c, d, e, f, g, h]) in eights.iter().enumerate() {
                    let low = pair(a, b) | pair(c, d) << (2 * bits);
                    let high = pair(e, f) | pair(g, h) << (2 * bits);
                    let shared = low >> (4 * bits - 4) >> (4 - half);
                    put(out, index * bytes, low);
                    put(out, index * bytes + bytes / 2, high << half | shared);
                }
            },
        );
        self.place = eights.len() * bytes;
        for value in rest {
            self.push(value.value(), bits);
        }
    }

    /// Packs `K` elements at once, which take at most [`AT_ONCE`] bits if `K > 1`.
    #[inline(always)]
    fn groups<E: Element, const K: usize>(&mut self, values: &[E], bits: u32) {
        let (groups, rest) = values.as_chunks::<K>();
        if bits > AT_ONCE {
            for value in values {
                self.push(value.value() & u64::from(u32::MAX), 32);
                self.push(value.value() >> 32, bits - 32);
            }
            return;
        }
        let mut places = [0; K];
        let mut width = 0;
        for place in &mut places {
            *place = width;
            width += bits;
        }
        for group in groups {
            let word = group
                .iter()
                .zip(places)
                .fold(0, |word, (value, place)| word | (value.value() << place));
            self.push(word, width);
        }
        for value in rest {
            self.push(value.value(), bits);
        }
    }

    /// Appends the `width` bits of a word: from 1 to [`AT_ONCE`].
    #[inline(always)]
    fn push(&mut self, word: u64, width: u32) {
        let word = self.carry | word << self.fill;
        put(&mut self.out, self.place, word);
        let bits = self.fill + width;
        self.place += (bits / 8) as usize;
        self.carry = word.checked_shr(bits & !7).unwrap_or(0);
        self.fill = bits % 8;
    }
}

/// Writes a word; what stands after the bytes that are meant is written over later.
#[inline(always)]
fn put(out: &mut [u8], place: usize, word: u64) {
    if let Some(bytes) = out[place..].first_chunk_mut() {
        *bytes = word.to_le_bytes();
    }
}

#[inline(always)]
fn unpack_groups<E: Element, const K: usize>(data: &[u8], bits: u32, values: &mut [E]) {
    let mask = u64::MAX >> (u64::BITS - bits);
    let mut position = 0;
    let (groups, rest) = values.as_chunks_mut::<K>();
    if bits > AT_ONCE {
        for value in groups.as_flattened_mut() {
            let low = word_at(data, position) & u64::from(u32::MAX);
            let high = word_at(data, position + 32) & (mask >> 32);
            *value = E::cut(low | high << 32);
            position += bits as usize;
        }
        return;
    }
    for group in groups {
        let mut word = word_at(data, position);
        for value in group {
            *value = E::cut(word & mask);
            word >>= bits;
        }
        position += bits as usize * K;
    }
    for value in rest {
        *value = E::cut(word_at(data, position) & mask);
        position += bits as usize;
    }
}

/// The bits from `position` on, at least [`AT_ONCE`] of them, with zeros after the end.
#[inline(always)]
fn word_at(data: &[u8], position: usize) -> u64 {
    let rest = data.get(position / 8..).unwrap_or_default();
    let word = match rest.first_chunk() {
        Some(&bytes) => u64::from_le_bytes(bytes),
        None => rest.iter().rfold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    word >> (position % 8)
}

#[cfg(test)]
mod tests {
    use super::super::field::fields;
    use super::*;
    use crate::random::{AesStreams, Purpose, Streams, uniform_below};

    /// The format bit by bit.
    fn bit_by_bit(values: &[u64], bits: u32) -> Vec<u8> {
        let mut data = vec![0_u8; (values.len() * bits as usize).div_ceil(8)];
        for (index, value) in values.iter().enumerate() {
            for bit in 0..bits as usize {
                let place = index * bits as usize + bit;
                data[place / 8] |= u8::from(value >> bit & 1 == 1) << (place % 8);
            }
        }
        data
    }

    fn round_trip<E: Element>(field: PrimeField) -> Result<()> {
        let mut stream = AesStreams::from_seed(field.modulus()).stream(Purpose::Simulation, 0);
        for length in (0..40).chain([511, 512]) {
            let mut numbers: Vec<u64> =
                (0..length).map(|_| uniform_below(field.modulus(), &mut stream)).collect();
            if let Some(last) = numbers.last_mut() {
                *last = field.modulus() - 1;
            }
            let values: Vec<E> = numbers.iter().map(|&number| E::cut(number)).collect();
            let data = field.pack(&values)?;
            assert_eq!(data, bit_by_bit(&numbers, field.bits()), "{field:?}, {length} elements");
            assert_eq!(data.len(), field.packed_bytes(values.len()));
            assert_eq!(field.unpack::<E>(&data, values.len())?, values);

            let longer = [&data[..], &[0]].concat();
            assert!(matches!(
                field.unpack::<E>(&longer, values.len()),
                Err(Error::PackedLength { .. })
            ));
            if let Some((_, shorter)) = data.split_last() {
                assert!(field.unpack::<E>(shorter, values.len()).is_err());
            }
            for bit in (values.len() * field.bits() as usize)..(8 * data.len()) {
                let mut altered = data.clone();
                altered[bit / 8] |= 1 << (bit % 8);
                assert!(matches!(
                    field.unpack::<E>(&altered, values.len()),
                    Err(Error::PackedPadding { .. })
                ));
            }
            if field.modulus() > 2 && length > 0 {
                // All bits set is never an element of an odd field.
                let last = values.len() - 1;
                let mut altered = numbers.clone();
                altered[last] = (1 << field.bits()) - 1;
                let value = altered[last];
                if value >= field.modulus() {
                    assert_eq!(
                        field.unpack::<E>(&bit_by_bit(&altered, field.bits()), values.len()),
                        Err(Error::OutsideField {
                            argument: "data",
                            index: last,
                            modulus: field.modulus(),
                        })
                    );
                }
            }
        }
        Ok(())
    }

    #[test]
    fn packing_follows_the_format_in_fields_of_every_size() -> Result<()> {
        for field in fields()? {
            if field.width() == 32 {
                round_trip::<u32>(field)?;
            } else {
                round_trip::<u64>(field)?;
            }
        }
        Ok(())
    }

    #[test]
    fn absurd_lengths_are_refused() -> Result<()> {
        let field = PrimeField::larger_than(1 << 60)?;
        assert!(field.unpack::<u64>(&[1, 2, 3], usize::MAX).is_err());
        assert!(PrimeField::new(2)?.unpack::<u32>(&[1, 2, 3], usize::MAX / 2).is_err());
        Ok(())
    }
}
