//! A deterministic primality test for 64-bit integers.

/// The first twelve primes: as bases of the Miller-Rabin test they decide every integer below
/// 3.18e23 (Sorenson and Webster, "Strong pseudoprimes to twelve prime bases", Mathematics of
/// Computation 86, 2017), so every one of 64 bits.
const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// Whether `candidate` is prime.
pub(crate) fn is_prime(candidate: u64) -> bool {
    if candidate < 2 {
        return false;
    }
    for prime in BASES {
        if candidate.is_multiple_of(prime) {
            return candidate == prime;
        }
    }
    let twos = (candidate - 1).trailing_zeros();
    let odd = (candidate - 1) >> twos;
    BASES.into_iter().all(|base| {
        let mut power = raise(base, odd, candidate);
        if power == 1 || power == candidate - 1 {
            return true;
        }
        (1..twos).any(|_| {
            power = multiply(power, power, candidate);
            power == candidate - 1
        })
    })
}

/// The smallest prime above `bound` and at most `last`.
pub(crate) fn next_prime(bound: u64, last: u64) -> Option<u64> {
    // Gaps between primes of 64 bits are below 1600.
    (bound.checked_add(1)?..=last).find(|&candidate| is_prime(candidate))
}

#[expect(clippy::cast_possible_truncation, reason = "below the modulus")]
fn multiply(left: u64, right: u64, modulus: u64) -> u64 {
    (u128::from(left) * u128::from(right) % u128::from(modulus)) as u64
}

fn raise(base: u64, exponent: u64, modulus: u64) -> u64 {
    let (mut result, mut square, mut left) = (1 % modulus, base % modulus, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = multiply(result, square, modulus);
        }
        square = multiply(square, square, modulus);
        left >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The primes below `length` by the sieve of Eratosthenes.
    fn sieve(length: usize) -> Vec<bool> {
        let mut prime = vec![true; length];
        prime[..2].fill(false);
        for factor in 2..length {
            if prime[factor] {
                for multiple in (factor * factor..length).step_by(factor) {
                    prime[multiple] = false;
                }
            }
        }
        prime
    }

    #[test]
    fn small_integers_agree_with_the_sieve() {
        let primes = sieve(300_000);
        for (candidate, &expected) in (0_u64..).zip(&primes) {
            assert_eq!(is_prime(candidate), expected, "{candidate}");
        }
        let mut next = None;
        for bound in (0..299_000_usize).rev() {
            if primes[bound + 1] {
                next = Some(bound as u64 + 1);
            }
            if bound < 298_000 {
                assert_eq!(next_prime(bound as u64, u64::MAX), next, "above {bound}");
            }
        }
    }

    #[test]
    fn strong_pseudoprimes_are_composite() {
        // The smallest composites that pass for the first 1, 2, ..., 11 prime bases (OEIS A014233),
        // Carmichael numbers, and squares of primes.
        for composite in [
            2_047,
            1_373_653,
            25_326_001,
            3_215_031_751,
            2_152_302_898_747,
            3_474_749_660_383,
            341_550_071_728_321,
            3_825_123_056_546_413_051,
            561,
            1_729,
            9_746_347_772_161,
            41 * 41,
            4_294_967_291 * 4_294_967_291,
            u64::MAX,
        ] {
            assert!(!is_prime(composite), "{composite}");
        }
    }

    #[test]
    fn known_large_primes_are_prime() {
        // The largest below 2^32, 2^61 and 2^64, and 2^31 - 1.
        for prime in [4_294_967_291, (1 << 61) - 1, u64::MAX - 58, (1 << 31) - 1] {
            assert!(is_prime(prime), "{prime}");
            assert_eq!(next_prime(prime - 1, u64::MAX), Some(prime));
        }
        assert_eq!(next_prime(u64::MAX, u64::MAX), None);
        assert_eq!(next_prime(u64::MAX - 58, u64::MAX), None);
    }
}
