//! The integer types of field elements.

use core::fmt::Debug;

use crate::vectors::widest;

/// An integer type that holds the elements of a [`PrimeField`](super::PrimeField): `u32` if the
/// modulus is at most 2^32, `u64` above.
pub trait Element: Kernel + Copy + Default + Eq + Ord + Debug + Send + Sync + 'static {
    /// The number of its bits.
    const BITS: u32;

    /// The element as an integer.
    fn value(self) -> u64;
}

/// The arithmetic of the field. All methods take the modulus `q` as an element, and elements below
/// it.
pub trait Kernel: Sized {
    /// The low bits of a number.
    fn cut(value: u64) -> Self;

    /// Whether all values are below the modulus.
    fn all_below(values: &[Self], q: u64) -> bool;

    /// `left + right` modulo `q`.
    fn plus(left: Self, right: Self, q: Self) -> Self;

    /// `left - right` modulo `q`.
    fn minus(left: Self, right: Self, q: Self) -> Self;

    /// Subtracts values pairwise, up to the shorter length.
    fn subtract(left: &mut [Self], right: &[Self], q: Self);

    /// The number of candidates in a 64-bit word.
    const CANDIDATES: usize;

    /// Computes the candidates of each word: `high(w q)` for each piece `w` of [`Element::BITS`]
    /// bits, the low piece first. Tells whether some `low(w q)` is below `threshold`, that is,
    /// whether some candidate must be rejected.
    fn candidates(words: &[u64], q: u64, threshold: u64, values: &mut [Self]) -> bool;

    /// Computes the candidates that are accepted, in order, and their number.
    fn accepted(words: &[u64], q: u64, threshold: u64, values: &mut [Self]) -> usize;
}

impl Element for u32 {
    const BITS: u32 = 32;

    #[inline(always)]
    fn value(self) -> u64 {
        u64::from(self)
    }
}

impl Element for u64 {
    const BITS: u32 = 64;

    #[inline(always)]
    fn value(self) -> u64 {
        self
    }
}

macro_rules! modular {
    ($integer:ty) => {
        #[inline(always)]
        #[allow(clippy::cast_possible_truncation, trivial_numeric_casts)]
        fn cut(value: u64) -> Self {
            value as $integer
        }

        #[inline(always)]
        fn plus(left: Self, right: Self, q: Self) -> Self {
            // left - (q - right), which borrows exactly if left + right < q.
            Self::minus(left, q.wrapping_sub(right), q)
        }

        #[inline(always)]
        fn minus(left: Self, right: Self, q: Self) -> Self {
            left.wrapping_sub(right).wrapping_add(if left < right { q } else { 0 })
        }

        fn subtract(left: &mut [Self], right: &[Self], q: Self) {
            widest(
                #[inline(always)]
                move || {
                    for (left, &right) in left.iter_mut().zip(right) {
                        *left = Self::minus(*left, right, q);
                    }
                },
            );
        }
    };
}

/// The low 32 bits.
const LOW: u64 = u32::MAX as u64;

impl Kernel for u32 {
    modular!(u32);

    fn all_below(values: &[Self], q: u64) -> bool {
        let most = widest(
            #[inline(always)]
            || values.iter().fold(0, |most, &value| most.max(value)),
        );
        u64::from(most) < q
    }

    const CANDIDATES: usize = 2;

    fn candidates(words: &[u64], q: u64, threshold: u64, values: &mut [Self]) -> bool {
        widest(
            #[inline(always)]
            move || {
                let mut borrowed = 0;
                for (word, pair) in words.iter().zip(values.as_chunks_mut::<2>().0) {
                    // 32 by 32 bits to 64 bits, in 64-bit lanes.
                    let (low, high) = ((word & LOW) * (q & LOW), (word >> 32) * (q & LOW));
                    borrowed |=
                        (low & LOW).wrapping_sub(threshold) | (high & LOW).wrapping_sub(threshold);
                    *pair = [Self::cut(low >> 32), Self::cut(high >> 32)];
                }
                borrowed >> 63 == 1
            },
        )
    }

    #[inline(always)]
    fn accepted(words: &[u64], q: u64, threshold: u64, values: &mut [Self]) -> usize {
        let mut number = 0;
        for piece in words.iter().flat_map(|word| [word & LOW, word >> 32]) {
            let product = piece * q;
            if let Some(value) = values.get_mut(number) {
                *value = Self::cut(product >> 32);
            }
            number += usize::from(product & LOW >= threshold);
        }
        number
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low and the high half of a product")]
impl Kernel for u64 {
    modular!(u64);

    #[inline]
    fn all_below(values: &[Self], q: u64) -> bool {
        // As for 32 bits; no modulus is above 2^61.
        let sign = |signs, &value: &Self| signs | value | (q - 1).wrapping_sub(value);
        values.iter().fold(0, sign) >> 63 == 0
    }

    const CANDIDATES: usize = 1;

    #[inline(always)]
    fn candidates(words: &[u64], q: u64, threshold: u64, values: &mut [Self]) -> bool {
        let mut least = Self::MAX;
        for (&word, value) in words.iter().zip(values) {
            let product = u128::from(word) * u128::from(q);
            least = least.min(product as u64);
            *value = (product >> 64) as u64;
        }
        least < threshold
    }

    #[inline(always)]
    fn accepted(words: &[u64], q: u64, threshold: u64, values: &mut [Self]) -> usize {
        let mut number = 0;
        for &word in words {
            let product = u128::from(word) * u128::from(q);
            if let Some(value) = values.get_mut(number) {
                *value = (product >> 64) as u64;
            }
            number += usize::from(product as u64 >= threshold);
        }
        number
    }
}
