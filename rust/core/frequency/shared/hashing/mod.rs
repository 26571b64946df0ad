//! Hash functions of codes with exactly known collision probabilities.
//!
//! A function maps a code `x` below a prime `P` to a residue `u = h(x) mod P`, and the residue to
//! one of `g` buckets. The buckets are the intervals `[ceil(j P / g), ceil((j + 1) P / g))`, whose
//! lengths differ by at most one. Let the coefficients of a polynomial `h` of degree `d - 1` be
//! uniform on `0..P`. Then the residues of any `d` different codes are exactly uniform and
//! independent, since a polynomial through `d` points is unique. That is, the family is strongly
//! universal (Carter, Wegman, "Universal classes of hash functions", 1979). So the buckets are
//! independent too. For intervals of `n_j` residues, two codes collide with probability `c = sum_j
//! (n_j / P)^2`, which differs from `1 / g` by less than `g / P^2`.
//!
//! * Reports with a function of their own use lines, `d = 2`: how a report supports one code
//!   depends on collisions of two codes only.
//! * Functions that many reports share ([`HashPool`]) are parabolas, `d = 3`. Then the collisions
//!   of two codes with a third are independent too. So there is an exact formula for the error that
//!   the choice of the functions adds. With lines there is none: codes at equal distances on both
//!   sides of a third one collide with it together.

mod counts;
mod pool;
mod vectors;

pub(in crate::frequency) use counts::{Counts, at_once};
pub(in crate::frequency) use pool::HashPool;
pub(in crate::frequency) use vectors::{Instructions, Walk};

use crate::primality::is_prime;

/// A prime below 2^31, and arithmetic modulo it that takes the same time for all numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::frequency) struct Modulus {
    prime: u64,
    /// `floor(2^64 / prime)`
    reciprocal: u64,
}

impl Modulus {
    /// Primes are below 2 to this power.
    pub(in crate::frequency) const BITS: u32 = 31;

    /// The largest prime below `2^bits`, for 2 to [`Self::BITS`] bits.
    pub(in crate::frequency) fn below_power(bits: u32) -> Self {
        let prime = |candidate: &u64| is_prime(*candidate);
        let bits = bits.clamp(2, Self::BITS);
        // There is one: 3.
        let prime = (3..1_u64 << bits).rev().find(prime).unwrap_or(3);
        Self { prime, reciprocal: u64::MAX / prime }
    }

    /// The prime.
    pub(in crate::frequency) const fn get(self) -> u64 {
        self.prime
    }

    /// The remainder of any number: the estimate of the quotient is too small by one at most.
    #[inline(always)]
    pub(in crate::frequency) fn reduce(self, number: u64) -> u64 {
        let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        self.once(number - quotient * self.prime)
    }

    /// The remainder of a number below twice the prime.
    #[inline(always)]
    pub(in crate::frequency) fn once(self, number: u64) -> u64 {
        number.min(number.wrapping_sub(self.prime))
    }
}

/// The buckets: intervals of residues, as even as can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::frequency) struct Buckets {
    modulus: Modulus,
    count: u64,
    /// `floor(2^64 count / P) + 1`
    scale: u64,
}

impl Buckets {
    /// `count` buckets; fewer than there are residues.
    #[expect(clippy::cast_possible_truncation, reason = "count / P < 1, and P < 2^31")]
    pub(in crate::frequency) fn new(modulus: Modulus, count: u64) -> Self {
        let scale = (u128::from(count) << 64) / u128::from(modulus.prime);
        Self { modulus, count, scale: scale as u64 + 1 }
    }

    /// The modulus of the residues.
    pub(in crate::frequency) const fn modulus(self) -> Modulus {
        self.modulus
    }

    /// How many there are.
    pub(in crate::frequency) const fn count(self) -> u64 {
        self.count
    }

    /// The bucket of a residue: `floor(u count / P)`.
    ///
    /// The product is above `2^64 u count / P` by at most `u < 2^31`, and a quotient that is no
    /// whole number is below the next one by at least `1 / P > 2^31 / 2^64`.
    #[inline(always)]
    pub(in crate::frequency) fn of(self, residue: u64) -> u64 {
        ((u128::from(residue) * u128::from(self.scale)) >> 64) as u64
    }

    /// The first residue of a bucket, or `P` after the last bucket.
    pub(in crate::frequency) fn start(self, bucket: u64) -> u64 {
        (bucket * self.modulus.prime).div_ceil(self.count)
    }

    /// The probability that two codes are in one bucket, and that three are (for parabolas).
    pub(in crate::frequency) fn collisions(self) -> (f64, f64) {
        let (short, long) = (self.modulus.prime / self.count, self.modulus.prime % self.count);
        // At most P^3 < 2^93.
        let power = |exponent| {
            u128::from(long) * u128::from(short + 1).pow(exponent)
                + u128::from(self.count - long) * u128::from(short).pow(exponent)
        };
        let share = |exponent: u32| {
            power(exponent) as f64 / u128::from(self.modulus.prime).pow(exponent) as f64
        };
        (share(2), share(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All primes below 2^7, to enumerate families over.
    fn small() -> Vec<Modulus> {
        (2..=7).map(Modulus::below_power).collect()
    }

    #[test]
    fn the_primes_are_the_largest() {
        let found: Vec<u64> = small().iter().map(|modulus| modulus.get()).collect();
        assert_eq!(found, [3, 7, 13, 31, 61, 127]);
        assert_eq!(Modulus::below_power(31).get(), (1 << 31) - 1);
        assert_eq!(Modulus::below_power(30).get(), (1 << 30) - 35);
        assert_eq!(Modulus::below_power(22).get(), (1 << 22) - 3);
    }

    #[test]
    fn remainders_agree_with_division() {
        for modulus in (2..=31).map(Modulus::below_power) {
            let prime = modulus.get();
            let spread = (0..3_000_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let multiples = (0..64).flat_map(|shift| {
                let multiple = (u64::MAX >> shift) / prime * prime;
                [multiple.saturating_sub(1), multiple, multiple.saturating_add(1)]
            });
            for number in spread.chain(multiples).chain([0, 1, u64::MAX]) {
                assert_eq!(modulus.reduce(number), number % prime, "{number} mod {prime}");
            }
        }
    }

    #[test]
    fn buckets_are_the_intervals_and_as_even_as_can_be() {
        for modulus in small() {
            let prime = modulus.get();
            for count in 1..prime {
                let buckets = Buckets::new(modulus, count);
                let mut sizes = vec![0_u64; usize::try_from(count).unwrap_or(0)];
                for residue in 0..prime {
                    let bucket = buckets.of(residue);
                    assert_eq!(bucket, residue * count / prime);
                    assert!(buckets.start(bucket) <= residue);
                    assert!(residue < buckets.start(bucket + 1));
                    sizes[usize::try_from(bucket).unwrap_or(usize::MAX)] += 1;
                }
                let (least, most) = (sizes.iter().min(), sizes.iter().max());
                assert!(most.unwrap_or(&9) - least.unwrap_or(&0) <= 1);
                let power = |exponent: i32| -> f64 {
                    sizes.iter().map(|&size| (size as f64 / prime as f64).powi(exponent)).sum()
                };
                let (two, three) = buckets.collisions();
                assert!((two - power(2)).abs() < 1e-15 && (three - power(3)).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn the_ends_of_buckets_are_right_for_large_primes() {
        for bits in [21, 22, 26, 30, 31] {
            let modulus = Modulus::below_power(bits);
            for count in [2, 3, 4, 5, 7, 1000, 1023, 1024, 65_537, 1 << 20] {
                let buckets = Buckets::new(modulus, count);
                for bucket in [0, 1, 2, count / 3, count / 2, count - 2, count - 1] {
                    let (start, end) = (buckets.start(bucket), buckets.start(bucket + 1));
                    assert_eq!(buckets.of(start), bucket);
                    assert_eq!(buckets.of(end - 1), bucket);
                    if end < modulus.get() {
                        assert_eq!(buckets.of(end), bucket + 1);
                    }
                }
            }
        }
    }

    #[test]
    fn lines_are_exactly_pairwise_uniform_and_parabolas_exactly_uniform_on_triples() {
        let modulus = Modulus::below_power(3);
        let prime = modulus.get();
        let residues = 0..prime;
        for (x, y) in residues.clone().flat_map(|x| (0..x).map(move |y| (x, y))) {
            let mut seen = [0; 49];
            for (a, b) in residues.clone().flat_map(|a| (0..7).map(move |b| (a, b))) {
                let line = |code: u64| modulus.reduce(a * code + b);
                seen[usize::try_from(7 * line(x) + line(y)).unwrap_or(usize::MAX)] += 1;
            }
            assert!(seen.iter().all(|&times| times == 1));
            for z in 0..y {
                let mut seen = vec![0; 343];
                for index in 0..343 {
                    let function = pool::Parabola([index / 49, index / 7 % 7, index % 7]);
                    let place = [x, y, z]
                        .iter()
                        .fold(0, |place, &code| 7 * place + function.at(modulus, code));
                    seen[usize::try_from(place).unwrap_or(usize::MAX)] += 1;
                }
                assert!(seen.iter().all(|&times| times == 1));
            }
        }
    }
}
