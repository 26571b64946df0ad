//! Uniform numbers whose digits are drawn when they are needed.

use core::cmp::Ordering;

use num_bigint::BigUint;
use rand::Rng;

/// A number, uniform on the unit interval, of which as many digits of 64 bits are known as were
/// asked for.
#[derive(Debug, Clone)]
pub(super) struct Lazy {
    first: u64,
    rest: Vec<u64>,
}

impl Lazy {
    /// A number with one known digit.
    pub(super) fn new<R: Rng + ?Sized>(rng: &mut R) -> Self {
        Self { first: rng.next_u64(), rest: Vec::new() }
    }

    /// The first digit.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Whether this number is below the other. They are equal with probability zero: then the
    /// digits never end.
    pub(super) fn below<R: Rng + ?Sized>(&mut self, other: &mut Self, rng: &mut R) -> bool {
        let mut order = self.first.cmp(&other.first);
        let mut index = 0;
        while order == Ordering::Equal {
            order = self.digit(index, rng).cmp(&other.digit(index, rng));
            index += 1;
        }
        order == Ordering::Less
    }

    /// The number times `2^(64 digits)`, rounded down, for at least one digit.
    pub(super) fn scaled<R: Rng + ?Sized>(&mut self, digits: usize, rng: &mut R) -> BigUint {
        (1..digits).fold(self.first.into(), |sum: BigUint, index| {
            (sum << 64_u32) + self.digit(index - 1, rng)
        })
    }

    /// The digits after the first.
    fn digit<R: Rng + ?Sized>(&mut self, index: usize, rng: &mut R) -> u64 {
        while self.rest.len() <= index {
            self.rest.push(rng.next_u64());
        }
        self.rest[index]
    }
}
