//! Sums of many vectors, reduced as late as possible.

use super::elements::Element;
use super::expansion::{SEED_BYTES, draw};
use super::field::PrimeField;
use super::packing::unpack_into;
use crate::random::{AesStreams, Purpose, Streams, Words};
use crate::{Error, Result};

/// Rows that 32-bit lanes must hold before they need reduction; fields in which they hold fewer are
/// summed in 64-bit lanes.
const FEW_ROWS: u64 = 32;

/// Sums of elements, in integers that hold many of them without reduction.
#[derive(Debug, Clone)]
pub(super) struct Lanes {
    field: PrimeField,
    kind: Kind,
    /// How many elements a lane can hold.
    capacity: u64,
    /// A lane is at most the sum of this many elements.
    rows: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Lanes {
    pub(super) fn new(field: PrimeField, length: usize) -> Self {
        let last = field.modulus() - 1;
        let narrow = u64::from(u32::MAX) / last;
        let (kind, capacity) = if narrow >= FEW_ROWS {
            (Kind::Narrow(vec![0; length]), narrow)
        } else {
            // At least 8 elements.
            (Kind::Wide(vec![0; length]), u64::MAX / last)
        };
        Self { field, kind, capacity, rows: 0 }
    }

    pub(super) fn length(&self) -> usize {
        match &self.kind {
            Kind::Narrow(lanes) => lanes.len(),
            Kind::Wide(lanes) => lanes.len(),
        }
    }

    /// Makes room for one more element in every lane.
    pub(super) fn make_room(&mut self) {
        if self.rows >= self.capacity {
            self.reduce();
        }
        self.rows += 1;
    }

    /// Adds elements to the lanes from `offset` on, where there must be room.
    #[inline(always)]
    pub(super) fn add_at<E: Element>(&mut self, offset: usize, values: &[E]) {
        match &mut self.kind {
            #[expect(clippy::cast_possible_truncation, reason = "elements of a narrow field")]
            Kind::Narrow(lanes) => {
                for (lane, value) in lanes[offset..].iter_mut().zip(values) {
                    *lane = lane.wrapping_add(value.value() as u32);
                }
            }
            Kind::Wide(lanes) => {
                for (lane, value) in lanes[offset..].iter_mut().zip(values) {
                    *lane = lane.wrapping_add(value.value());
                }
            }
        }
    }

    /// Adds values to all lanes, where there must be room; says no, and adds nothing, if one of them
    /// is not an element.
    fn add_checked<E: Element>(&mut self, values: &[E]) -> bool {
        let last = self.field.modulus() - 1;
        // The sign of value or of last - value is set exactly if value > last: last is far below
        // the sign of a lane.
        let inside = match &mut self.kind {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "checked, and undone if it is not so"
            )]
            Kind::Narrow(lanes) => {
                let last = last as u32;
                let mut signs = 0;
                for (lane, value) in lanes.iter_mut().zip(values) {
                    let value = value.value() as u32;
                    signs |= value | last.wrapping_sub(value);
                    *lane = lane.wrapping_add(value);
                }
                signs >> 31 == 0
            }
            Kind::Wide(lanes) => {
                let mut signs = 0;
                for (lane, value) in lanes.iter_mut().zip(values) {
                    let value = value.value();
                    signs |= value | last.wrapping_sub(value);
                    *lane = lane.wrapping_add(value);
                }
                signs >> 63 == 0
            }
        };
        if !inside {
            self.take_back(values);
        }
        inside
    }

    /// Undoes an addition: wrapping arithmetic loses nothing.
    #[cold]
    fn take_back<E: Element>(&mut self, values: &[E]) {
        match &mut self.kind {
            #[expect(clippy::cast_possible_truncation, reason = "as they were added")]
            Kind::Narrow(lanes) => {
                for (lane, value) in lanes.iter_mut().zip(values) {
                    *lane = lane.wrapping_sub(value.value() as u32);
                }
            }
            Kind::Wide(lanes) => {
                for (lane, value) in lanes.iter_mut().zip(values) {
                    *lane = lane.wrapping_sub(value.value());
                }
            }
        }
    }

    #[cold]
    fn reduce(&mut self) {
        match &mut self.kind {
            #[expect(clippy::cast_possible_truncation, reason = "narrow fields have 27 bits")]
            Kind::Narrow(lanes) => {
                let q = self.field.modulus() as u32;
                for lane in lanes {
                    *lane %= q;
                }
            }
            Kind::Wide(lanes) => {
                let q = self.field.modulus();
                for lane in lanes {
                    *lane %= q;
                }
            }
        }
        self.rows = self.rows.min(1);
    }

    /// The sums as elements.
    pub(super) fn elements<E: Element>(&self) -> Vec<E> {
        let q = self.field.modulus();
        match &self.kind {
            Kind::Narrow(lanes) => lanes.iter().map(|&lane| E::cut(u64::from(lane) % q)).collect(),
            Kind::Wide(lanes) => lanes.iter().map(|&lane| E::cut(lane % q)).collect(),
        }
    }

    /// Adds uniform elements to the lanes from `offset` on, where there must be room.
    #[inline]
    pub(super) fn add_uniform<E: Element, R: Words>(
        &mut self,
        offset: usize,
        length: usize,
        rng: &mut R,
    ) {
        draw::<E, R>(self.field, rng, length, |start, values| self.add_at(offset + start, values));
    }

    /// Adds the elements that a seed expands to.
    #[inline]
    pub(super) fn add_expansion<E: Element>(
        &mut self,
        offset: usize,
        length: usize,
        seed: &[u8; SEED_BYTES],
    ) {
        let mut stream = AesStreams::from_key(*seed).stream(Purpose::Share, 0);
        self.add_uniform::<E, _>(offset, length, &mut stream);
    }
}

/// A running sum of shares: what a party keeps of the users' vectors.
///
/// If it refuses a vector, the sum does not change.
///
/// ```
/// use turnout_core::sharing::{PrimeField, ShareSum};
/// let field = PrimeField::new(1009)?;
/// let mut sum = ShareSum::<u32>::new(field, 3)?;
/// sum.add(&[1000, 1, 2])?;
/// sum.add_packed(&field.pack(&[10_u32, 20, 30])?)?;
/// assert!(sum.add(&[0, 0, 1009]).is_err());
/// assert_eq!((sum.count(), sum.finish()), (2, vec![1, 21, 32]));
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ShareSum<E> {
    field: PrimeField,
    lanes: Lanes,
    count: u64,
    /// Reused by `add_packed`.
    unpacked: Vec<E>,
}

impl<E: Element> ShareSum<E> {
    /// Makes the empty sum of vectors with `length` elements of a field.
    ///
    /// # Errors
    ///
    /// [`Error::ElementWidth`] if elements of the field are not of type `E`.
    pub fn new(field: PrimeField, length: usize) -> Result<Self> {
        field.expect_width::<E>()?;
        let lanes = Lanes::new(field, length);
        Ok(Self { field, lanes, count: 0, unpacked: Vec::new() })
    }

    /// The field.
    #[must_use]
    pub const fn field(&self) -> PrimeField {
        self.field
    }

    /// The number of elements of each vector.
    #[must_use]
    pub fn length(&self) -> usize {
        self.lanes.length()
    }

    /// How many vectors were added.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Adds a vector.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for a vector of another length; [`Error::OutsideField`] with the
    /// first value that is not an element.
    pub fn add(&mut self, values: &[E]) -> Result<()> {
        self.add_named("values", 0, values)
    }

    /// Adds a vector; `argument` is its name in errors and `start` the index of its first element.
    fn add_named(&mut self, argument: &'static str, start: usize, values: &[E]) -> Result<()> {
        if values.len() != self.length() {
            return Err(self.mismatch(argument, values.len()));
        }
        self.lanes.make_room();
        if self.lanes.add_checked(values) {
            self.count += 1;
            Ok(())
        } else {
            Err(self.field.outside(argument, start, values))
        }
    }

    /// Adds a [packed](PrimeField::pack) vector.
    ///
    /// # Errors
    ///
    /// Those of [`unpack`](PrimeField::unpack).
    pub fn add_packed(&mut self, data: &[u8]) -> Result<()> {
        self.unpacked.resize(self.lanes.length(), E::default());
        unpack_into(self.field, data, &mut self.unpacked)?;
        self.lanes.make_room();
        self.lanes.add_at(0, &self.unpacked);
        self.count += 1;
        Ok(())
    }

    /// Adds the vector that a seed [expands](PrimeField::expand) to.
    pub fn add_seed(&mut self, seed: &[u8; SEED_BYTES]) {
        self.lanes.make_room();
        self.lanes.add_expansion::<E>(0, self.lanes.length(), seed);
        self.count += 1;
    }

    /// Adds all vectors of another sum.
    ///
    /// # Errors
    ///
    /// [`Error::FieldMismatch`] or [`Error::LengthMismatch`] if the fields or the lengths of the
    /// vectors differ.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if other.field != self.field {
            let (left, right) = (self.field.modulus(), other.field.modulus());
            return Err(Error::FieldMismatch { left, right });
        }
        if other.length() != self.length() {
            return Err(self.mismatch("other", other.length()));
        }
        self.lanes.make_room();
        self.lanes.add_at(0, &other.sum());
        self.count += other.count;
        Ok(())
    }

    /// The sum so far.
    #[must_use]
    pub fn sum(&self) -> Vec<E> {
        self.lanes.elements()
    }

    /// Ends the sum and returns it.
    #[must_use]
    pub fn finish(self) -> Vec<E> {
        self.sum()
    }

    fn mismatch(&self, argument: &'static str, found: usize) -> Error {
        Error::LengthMismatch {
            left: argument,
            left_length: found,
            right: "the sum",
            right_length: self.length(),
        }
    }
}

/// Sums of rows.
impl PrimeField {
    /// Adds up the rows, of `length` elements each, of a matrix in row-major order.
    ///
    /// # Errors
    ///
    /// Those of [`add`](PrimeField::add); [`Error::LengthMismatch`] if the last row is not full.
    ///
    /// ```
    /// use turnout_core::sharing::PrimeField;
    /// let field = PrimeField::new(7)?;
    /// assert_eq!(field.sum(&[1_u32, 2, 3, 4, 5, 6], 2)?, [2, 5]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn sum<E: Element>(self, rows: &[E], length: usize) -> Result<Vec<E>> {
        let mut sum = ShareSum::new(self, length)?;
        if length > 0 {
            for (row, values) in rows.chunks(length).enumerate() {
                sum.add_named("rows", row * length, values)?;
            }
        }
        Ok(sum.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::fields;
    use super::*;
    use crate::random::uniform_below;

    /// Rows of every kind against sums in 128 bits.
    fn sums<E: Element>(field: PrimeField, rows: usize) -> Result<()> {
        let (length, q) = (5, field.modulus());
        let mut stream = AesStreams::from_seed(q).stream(Purpose::Simulation, 0);
        let mut sum = ShareSum::<E>::new(field, length)?;
        let mut other = sum.clone();
        let mut expected = [0_u128; 5];
        for row in 0..rows {
            // The first lane always gets the largest element, which fills it as fast as can be.
            let mut values: Vec<E> =
                (0..length).map(|_| E::cut(uniform_below(q, &mut stream))).collect();
            values[0] = E::cut(q - 1);
            match row % 16 {
                3 => sum.add_packed(&field.pack(&values)?)?,
                7 => {
                    let mut seed = [0; 32];
                    seed[..8].copy_from_slice(&(row as u64).to_le_bytes());
                    sum.add_seed(&seed);
                    field.expand(&seed, &mut values)?;
                }
                11 => other.add(&values)?,
                _ => sum.add(&values)?,
            }
            for (total, value) in expected.iter_mut().zip(&values) {
                *total += u128::from(value.value());
            }
        }
        let apart = other.count();
        sum.merge(&other)?;
        assert_eq!((sum.count(), apart), (rows as u64, (rows as u64 + 4) / 16));
        let expected: Vec<u128> = expected.iter().map(|total| total % u128::from(q)).collect();
        let found: Vec<u128> = sum.finish().iter().map(|value| u128::from(value.value())).collect();
        assert_eq!(found, expected, "{field:?}");
        Ok(())
    }

    #[test]
    fn sums_are_right_in_fields_of_every_size() -> Result<()> {
        for field in fields()? {
            if field.width() == 32 {
                sums::<u32>(field, 300)?;
            } else {
                sums::<u64>(field, 300)?;
            }
        }
        Ok(())
    }

    #[test]
    fn lanes_never_overflow() -> Result<()> {
        // Rows enough to fill 32-bit lanes more than twice.
        for modulus in [65_537, 1_000_003, 134_217_689, 134_217_757] {
            let field = PrimeField::new(modulus)?;
            let rows = usize::try_from(2 * (u64::from(u32::MAX) / (modulus - 1)) + 40).unwrap_or(0);
            sums::<u32>(field, rows)?;
        }
        Ok(())
    }

    #[test]
    fn a_vector_that_is_refused_leaves_the_sum_as_it_was() -> Result<()> {
        for modulus in [1009_u64, 2_147_483_659, 4_294_967_291] {
            let field = PrimeField::new(modulus)?;
            let q = u32::try_from(modulus).unwrap_or(0);
            let mut sum = ShareSum::<u32>::new(field, 3)?;
            sum.add(&[q - 1, 1, 2])?;
            for value in [q, q + 1, 1 << 31, u32::MAX - 1, u32::MAX] {
                if value < q {
                    continue;
                }
                assert_eq!(
                    sum.add(&[5, value, value]),
                    Err(Error::OutsideField { argument: "values", index: 1, modulus })
                );
            }
            assert!(matches!(sum.add(&[1, 2]), Err(Error::LengthMismatch { .. })));
            assert!(matches!(sum.add_packed(&[1, 2]), Err(Error::PackedLength { .. })));
            let ones = vec![0xff; field.packed_bytes(3)];
            assert!(sum.add_packed(&ones).is_err());
            let other = ShareSum::<u32>::new(PrimeField::new(7)?, 3)?;
            assert!(matches!(sum.merge(&other), Err(Error::FieldMismatch { right: 7, .. })));
            assert!(sum.merge(&ShareSum::new(field, 4)?).is_err());
            assert_eq!((sum.count(), sum.sum()), (1, vec![q - 1, 1, 2]));
        }
        let field = PrimeField::new((1 << 61) - 1)?;
        let mut sum = ShareSum::<u64>::new(field, 2)?;
        for value in [field.modulus(), 1 << 61, 1 << 63, u64::MAX] {
            assert!(sum.add(&[0, value]).is_err());
        }
        assert_eq!((sum.count(), sum.sum()), (0, vec![0, 0]));
        assert!(ShareSum::<u32>::new(field, 2).is_err());
        Ok(())
    }
}
