//! Prime fields: their size, and arithmetic over slices.

use super::elements::Element;
use crate::primality::{is_prime, next_prime};
use crate::{Error, Result};

/// The integers modulo a prime.
///
/// Elements are integers from 0 to `modulus - 1`. They are `u32` if the modulus is at most 2^32 and
/// `u64` if it is larger; functions refuse the other type.
///
/// ```
/// use turnout_core::sharing::PrimeField;
/// let field = PrimeField::larger_than(1000)?;
/// assert_eq!((field.modulus(), field.bits()), (1009, 10));
/// assert_eq!(field.add(&[1000_u32, 5], &[10, 6])?, [1, 11]);
/// assert!(PrimeField::new(1000).is_err());
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrimeField {
    modulus: u64,
}

impl PrimeField {
    /// An upper bound of the modulus: 2^61. The largest prime below it is 2^61 - 1.
    pub const MAXIMUM: u64 = 1 << 61;

    /// Makes the field with that modulus.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if the modulus is not a prime from 2 to [`PrimeField::MAXIMUM`].
    pub fn new(modulus: u64) -> Result<Self> {
        if modulus <= Self::MAXIMUM && is_prime(modulus) {
            Ok(Self { modulus })
        } else {
            let expected = "a prime number of at most 2^61";
            Err(Error::Integer { argument: "modulus", value: modulus, expected })
        }
    }

    /// Makes the field whose modulus is the smallest prime above `bound`.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if that prime is above [`PrimeField::MAXIMUM`].
    pub fn larger_than(bound: u64) -> Result<Self> {
        let expected = "below the largest modulus, 2^61 - 1";
        next_prime(bound, Self::MAXIMUM).map(|modulus| Self { modulus }).ok_or(Error::Integer {
            argument: "bound",
            value: bound,
            expected,
        })
    }

    /// The number of elements.
    #[must_use]
    pub const fn modulus(self) -> u64 {
        self.modulus
    }

    /// How many bits an element needs: log2 of the modulus, rounded up.
    #[must_use]
    pub const fn bits(self) -> u32 {
        u64::BITS - (self.modulus - 1).leading_zeros()
    }

    /// The width of the integers that hold elements: 32 or 64 bits.
    #[must_use]
    pub const fn width(self) -> u32 {
        if self.modulus <= 1 << 32 { 32 } else { 64 }
    }

    /// Adds elements pairwise.
    ///
    /// # Errors
    ///
    /// The same for this and the other operations: [`Error::ElementWidth`] for the wrong integer
    /// type; [`Error::OutsideField`] for a value that is not an element; [`Error::LengthMismatch`]
    /// if two arguments differ in length.
    pub fn add<E: Element>(self, left: &[E], right: &[E]) -> Result<Vec<E>> {
        self.pairwise(left, right, E::plus)
    }

    /// Subtracts elements pairwise.
    ///
    /// # Errors
    ///
    /// Those of [`add`](Self::add).
    pub fn subtract<E: Element>(self, left: &[E], right: &[E]) -> Result<Vec<E>> {
        self.pairwise(left, right, E::minus)
    }

    /// Negates elements: returns the elements that add up to zero with them.
    ///
    /// # Errors
    ///
    /// Those of [`add`](Self::add).
    pub fn negate<E: Element>(self, values: &[E]) -> Result<Vec<E>> {
        self.check("values", values)?;
        let (zero, q) = (E::cut(0), E::cut(self.modulus));
        Ok(values.iter().map(|&value| E::minus(zero, value, q)).collect())
    }

    /// Returns the integers of least absolute value that are equal to the elements modulo q. They
    /// range from -(q - 1)/2 to (q - 1)/2, or are 0 or 1 for q = 2.
    ///
    /// # Errors
    ///
    /// Those of [`add`](Self::add).
    ///
    /// ```
    /// use turnout_core::sharing::PrimeField;
    /// let field = PrimeField::new(7)?;
    /// assert_eq!(field.lift(&[0_u32, 3, 4, 6])?, [0, 3, -3, -1]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn lift<E: Element>(self, values: &[E]) -> Result<Vec<i64>> {
        self.check("values", values)?;
        let (q, half) = (self.modulus.cast_signed(), self.modulus / 2);
        let lift = |value: u64| value.cast_signed() - if value > half { q } else { 0 };
        Ok(values.iter().map(|value| lift(value.value())).collect())
    }

    /// Returns the elements that are equal to integers modulo q.
    ///
    /// # Errors
    ///
    /// [`Error::ElementWidth`] for the wrong integer type.
    ///
    /// ```
    /// use turnout_core::sharing::PrimeField;
    /// assert_eq!(PrimeField::new(7)?.reduce::<u32>(&[-1, 7, 10, i64::MIN])?, [6, 0, 3, 6]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn reduce<E: Element>(self, values: &[i64]) -> Result<Vec<E>> {
        self.expect_width::<E>()?;
        let q = self.modulus.cast_signed();
        let reduce = |value: i64| {
            if (-q..q).contains(&value) {
                value + if value < 0 { q } else { 0 }
            } else {
                value.rem_euclid(q)
            }
        };
        Ok(values.iter().map(|&value| E::cut(reduce(value).cast_unsigned())).collect())
    }

    /// Checks that all values are elements and have the integer type of elements.
    ///
    /// # Errors
    ///
    /// [`Error::ElementWidth`] or [`Error::OutsideField`], with the first offender.
    pub fn check<E: Element>(self, argument: &'static str, values: &[E]) -> Result<()> {
        self.expect_width::<E>()?;
        if E::all_below(values, self.modulus) {
            Ok(())
        } else {
            Err(self.outside(argument, 0, values))
        }
    }

    pub(super) fn expect_width<E: Element>(self) -> Result<()> {
        let (modulus, expected) = (self.modulus, self.width());
        if expected == E::BITS {
            Ok(())
        } else {
            Err(Error::ElementWidth { modulus, expected, found: E::BITS })
        }
    }

    /// The error for values of which some are not elements; the first stands at `start`.
    #[cold]
    pub(super) fn outside<E: Element>(
        self,
        argument: &'static str,
        start: usize,
        values: &[E],
    ) -> Error {
        let modulus = self.modulus;
        let index = values.iter().position(|value| value.value() >= modulus).unwrap_or(0);
        Error::OutsideField { argument, index: start + index, modulus }
    }

    fn pairwise<E: Element>(
        self,
        left: &[E],
        right: &[E],
        operation: impl Fn(E, E, E) -> E,
    ) -> Result<Vec<E>> {
        if left.len() != right.len() {
            return Err(Error::LengthMismatch {
                left: "left",
                left_length: left.len(),
                right: "right",
                right_length: right.len(),
            });
        }
        self.check("left", left)?;
        self.check("right", right)?;
        let q = E::cut(self.modulus);
        Ok(left.iter().zip(right).map(|(&left, &right)| operation(left, right, q)).collect())
    }
}

/// A field of every size from 2 to 61 bits, and one just below each power of two.
#[cfg(test)]
pub(super) fn fields() -> Result<Vec<PrimeField>> {
    let mut fields = Vec::new();
    for bits in 1..=61_u32 {
        if bits > 1 {
            fields.push(PrimeField::larger_than(1 << (bits - 1))?);
        }
        let last = (2..=1_u64 << bits).rev().find(|&candidate| is_prime(candidate));
        fields.push(PrimeField::new(last.unwrap_or(2))?);
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{AesStreams, Purpose, Streams, uniform_below};

    /// Elements at the edges of a field and some between.
    fn sample(field: PrimeField) -> Vec<u64> {
        let q = field.modulus();
        let mut stream = AesStreams::from_seed(q).stream(Purpose::Simulation, 0);
        let mut values = vec![0, 1 % q, q / 2, (q / 2 + 1) % q, q - 1, q.saturating_sub(2) % q];
        values.extend((0..11).map(|_| uniform_below(q, &mut stream)));
        values
    }

    fn arithmetic<E: Element>(field: PrimeField) -> Result<()> {
        let q = i128::from(field.modulus());
        let values = sample(field);
        let elements: Vec<E> = values.iter().map(|&value| E::cut(value)).collect();
        let modulo = |value: i128| E::cut(u64::try_from(value.rem_euclid(q)).unwrap_or(u64::MAX));
        for shift in 0..values.len() {
            let mut other = elements.clone();
            other.rotate_left(shift);
            let pairs = || elements.iter().zip(&other).map(|(a, b)| (a.value(), b.value()));
            let sums: Vec<E> =
                pairs().map(|(a, b)| modulo(i128::from(a) + i128::from(b))).collect();
            let differences: Vec<E> =
                pairs().map(|(a, b)| modulo(i128::from(a) - i128::from(b))).collect();
            assert_eq!(field.add(&elements, &other)?, sums, "{field:?}");
            assert_eq!(field.subtract(&elements, &other)?, differences, "{field:?}");
            assert_eq!(field.sum(&[&elements[..], &other].concat(), values.len())?, sums);
        }
        let zero = vec![E::cut(0); values.len()];
        assert_eq!(field.negate(&elements)?, field.subtract(&zero, &elements)?);

        let lifted = field.lift(&elements)?;
        assert_eq!(field.reduce::<E>(&lifted)?, elements);
        let half = i64::try_from(field.modulus() / 2).unwrap_or(0);
        let least = if field.modulus() == 2 { 0 } else { -half };
        assert!(lifted.iter().all(|value| (least..=half).contains(value)), "{field:?} {lifted:?}");

        let mut integers = vec![i64::MIN, i64::MAX, -1, 0];
        for value in &values {
            integers.extend([-1, 0, 1].map(|times| value.cast_signed() + times * (half * 2 + 1)));
        }
        let expected: Vec<E> = integers.iter().map(|&value| modulo(i128::from(value))).collect();
        assert_eq!(field.reduce::<E>(&integers)?, expected);
        Ok(())
    }

    #[test]
    fn arithmetic_agrees_with_128_bits_in_fields_of_every_size() -> Result<()> {
        for field in fields()? {
            if field.width() == 32 {
                arithmetic::<u32>(field)?;
            } else {
                arithmetic::<u64>(field)?;
            }
        }
        Ok(())
    }

    #[test]
    fn bits_hold_all_elements_and_no_fewer_do() -> Result<()> {
        for field in fields()? {
            let bits = field.bits();
            assert!(field.modulus() - 1 < 1 << bits);
            assert!(field.modulus() > 1 << (bits - 1));
        }
        assert_eq!(PrimeField::new(2)?.bits(), 1);
        assert_eq!(PrimeField::new(4_294_967_291)?.width(), 32);
        assert_eq!(PrimeField::new(4_294_967_311)?.width(), 64);
        Ok(())
    }

    #[test]
    fn moduli_that_are_not_primes_in_range_are_refused() {
        for value in [0, 1, 4, 1001, 1 << 61, (1 << 61) + 15, u64::MAX] {
            let error = PrimeField::new(value).err();
            assert!(
                matches!(error, Some(Error::Integer { argument: "modulus", value: refused, .. })
                if refused == value)
            );
        }
        let largest = (1 << 61) - 1;
        assert_eq!(PrimeField::larger_than(largest - 1).map(PrimeField::modulus), Ok(largest));
        assert_eq!(PrimeField::larger_than(0).map(PrimeField::modulus), Ok(2));
        for bound in [largest, u64::MAX] {
            assert!(matches!(
                PrimeField::larger_than(bound),
                Err(Error::Integer { argument: "bound", .. })
            ));
        }
    }

    #[test]
    fn values_outside_the_field_are_named() -> Result<()> {
        let field = PrimeField::new(5)?;
        let outside = |argument, index| Error::OutsideField { argument, index, modulus: 5 };
        assert_eq!(field.add(&[1_u32, 5], &[0, 0]), Err(outside("left", 1)));
        assert_eq!(field.subtract(&[1_u32, 4], &[0, 9]), Err(outside("right", 1)));
        assert_eq!(field.negate(&[u32::MAX]), Err(outside("values", 0)));
        assert_eq!(field.sum(&[1_u32, 2, 3, 7], 2), Err(outside("rows", 3)));
        assert_eq!(field.lift(&[0_u32, 6]), Err(outside("values", 1)));
        assert!(matches!(
            field.add(&[1_u64], &[1]),
            Err(Error::ElementWidth { modulus: 5, expected: 32, found: 64 })
        ));
        assert!(matches!(field.add(&[1_u32], &[]), Err(Error::LengthMismatch { .. })));
        assert!(matches!(field.sum(&[1_u32, 2, 3], 2), Err(Error::LengthMismatch { .. })));
        let wide = PrimeField::larger_than(1 << 40)?;
        assert!(wide.add(&[1_u32], &[1]).is_err());
        assert!(wide.negate(&[wide.modulus()]).is_err());
        Ok(())
    }
}
