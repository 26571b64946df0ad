//! Exactly uniform integers.

use rand::Rng;

/// Draws an integer that is exactly uniform on `0..bound`.
///
/// The method is multiply-and-reject: Lemire, "Fast random integer generation in an interval", ACM
/// TOMACS 29 (2019), algorithm 5. A bound of zero stands for 2^64.
///
/// ```
/// use turnout_core::random::{AesStreams, Purpose, Streams, uniform_below};
/// let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
/// assert!(uniform_below(10, &mut stream) < 10);
/// ```
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low and the high half of a product")]
pub fn uniform_below<R: Rng + ?Sized>(bound: u64, rng: &mut R) -> u64 {
    if bound == 0 {
        return rng.next_u64();
    }
    let mut product = u128::from(rng.next_u64()) * u128::from(bound);
    if (product as u64) < bound {
        let floor = bound.wrapping_neg() % bound;
        while (product as u64) < floor {
            product = u128::from(rng.next_u64()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}
