//! The fast Walsh-Hadamard transform in exact integers.

use crate::parallel;

/// Entries that are transformed in one go: they fit the second cache of a core.
const SERIAL: usize = 1 << 14;

/// Replaces `values` by their Walsh-Hadamard transform: entry `x` becomes the sum over `y` of
/// `values[y]`, negated where `x` and `y` have an odd number of set bits in common.
///
/// The length is a power of two; a tail beyond one is left alone. The sums are those modulo 2^64:
/// exact if the magnitudes of all values together are below 2^63. In place, in
/// `length * log2(length)` additions, on the current rayon pool if there are many.
pub(crate) fn walsh_hadamard(values: &mut [i64]) {
    let length = values.len().checked_ilog2().map_or(0, |bits| 1 << bits);
    transform(&mut values[..length]);
}

fn transform(values: &mut [i64]) {
    if values.len() <= SERIAL {
        serial(values);
        return;
    }
    let (low, high) = values.split_at_mut(values.len() / 2);
    let mut pieces: Vec<_> = low.chunks_mut(SERIAL).zip(high.chunks_mut(SERIAL)).collect();
    parallel::for_each_chunk(&mut pieces, 1, |_, pieces| {
        for (low, high) in pieces {
            butterflies(low, high);
        }
    });
    parallel::join(|| transform(low), || transform(high));
}

fn serial(values: &mut [i64]) {
    let (eights, rest) = values.as_chunks_mut();
    for eight in eights {
        *eight = of_eight(*eight);
    }
    if !rest.is_empty() {
        // Fewer than eight values in all.
        let mut distance = 1;
        while distance < rest.len() {
            for pair in rest.chunks_exact_mut(2 * distance) {
                let (low, high) = pair.split_at_mut(distance);
                butterflies(low, high);
            }
            distance *= 2;
        }
        return;
    }
    let mut distance = 8;
    while 4 * distance <= values.len() {
        for quad in values.chunks_exact_mut(4 * distance) {
            quadruple(quad, distance);
        }
        distance *= 4;
    }
    if 2 * distance <= values.len() {
        let (low, high) = values.split_at_mut(distance);
        butterflies(low, high);
    }
}

#[inline(always)]
fn butterflies(low: &mut [i64], high: &mut [i64]) {
    for (low, high) in low.iter_mut().zip(high) {
        (*low, *high) = (low.wrapping_add(*high), low.wrapping_sub(*high));
    }
}

/// Two levels in one pass over the memory.
#[inline(always)]
fn quadruple(values: &mut [i64], distance: usize) {
    let (low, high) = values.split_at_mut(2 * distance);
    let (first, second) = low.split_at_mut(distance);
    let (third, fourth) = high.split_at_mut(distance);
    for (((a, b), c), d) in first.iter_mut().zip(second).zip(third).zip(fourth) {
        let (sum, difference) = (a.wrapping_add(*b), a.wrapping_sub(*b));
        let (other_sum, other_difference) = (c.wrapping_add(*d), c.wrapping_sub(*d));
        *a = sum.wrapping_add(other_sum);
        *b = difference.wrapping_add(other_difference);
        *c = sum.wrapping_sub(other_sum);
        *d = difference.wrapping_sub(other_difference);
    }
}

#[inline(always)]
fn of_eight(mut values: [i64; 8]) -> [i64; 8] {
    let mut distance = 1;
    while distance < 8 {
        for index in 0..8 {
            if index & distance == 0 {
                let (low, high) = (values[index], values[index | distance]);
                values[index] = low.wrapping_add(high);
                values[index | distance] = low.wrapping_sub(high);
            }
        }
        distance *= 2;
    }
    values
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;
    use crate::random::{AesStreams, Purpose, Streams};

    fn signed_sum(values: &[i64], x: usize) -> i64 {
        let sign = |y: usize| 1 - 2 * i64::from((x & y).count_ones() & 1);
        (0..).zip(values).map(|(y, value)| sign(y) * value).sum()
    }

    fn noise(length: usize) -> Vec<i64> {
        let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, length as u64);
        (0..length).map(|_| stream.next_u64().cast_signed() >> 24).collect()
    }

    #[test]
    fn every_entry_is_its_sum_of_signs() {
        for bits in 0..=10 {
            let values = noise(1 << bits);
            let mut transformed = values.clone();
            walsh_hadamard(&mut transformed);
            for (x, &entry) in transformed.iter().enumerate() {
                assert_eq!(entry, signed_sum(&values, x), "{x} of 2^{bits}");
            }
        }
        walsh_hadamard(&mut []);
    }

    #[test]
    fn long_transforms_are_right_and_their_own_inverse() {
        for bits in [14, 15, 17] {
            let values = noise(1 << bits);
            let mut transformed = values.clone();
            walsh_hadamard(&mut transformed);
            for x in [0, 1, 2, 3, 4097, 1 << (bits - 1), (1 << bits) - 1] {
                assert_eq!(transformed[x], signed_sum(&values, x), "{x} of 2^{bits}");
            }
            walsh_hadamard(&mut transformed);
            assert!(transformed.iter().zip(&values).all(|(twice, once)| *twice == once << bits));
        }
    }
}
