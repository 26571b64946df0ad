//! Exact Poisson counts of mean 1 and 8, drawn with tables.

use num_bigint::BigUint;
use num_traits::{One, Zero};
use rand::Rng;

/// Inversion of a Poisson distribution function, cut to 64 bits.
///
/// Entry `j` is `floor(2^64 P[N <= j])`. A word below it, and above the entry before, gives `j`.
/// The cut is no approximation: a word that falls on an entry is followed by further words until
/// the comparison with the true probability is certain, as in [`Skips`](crate::random::Skips).
#[derive(Debug)]
pub(super) struct Table<const LENGTH: usize> {
    mean: u32,
    thresholds: [u64; LENGTH],
    /// For the leading byte of a word, the first entry that it may be compared with.
    guide: [u8; 256],
}

/// Poisson counts of mean 1. Beyond the last entry is less than 2^-64.
pub(super) static ONE: Table<21> = Table::new(1);

/// Poisson counts of mean 8.
pub(super) static EIGHT: Table<46> = Table::new(8);

/// Fractional bits of the numbers that the tables are computed with when the crate is compiled.
const FRACTION: u32 = 100;

/// So many terms of the series that those left out are below the last one.
const TERMS: u128 = 128;

impl<const LENGTH: usize> Table<LENGTH> {
    /// Evaluated by the compiler, which fails if a digit is uncertain or the table too short.
    #[expect(clippy::cast_possible_truncation, reason = "lengths are below 256")]
    const fn new(mean: u32) -> Self {
        // The terms mean^i / i! of e^mean, rounded down and up.
        let (mut low, mut high) = (1_u128 << FRACTION, 1_u128 << FRACTION);
        let mut sums = [(0, 0); LENGTH];
        let (mut sum_low, mut sum_high) = (0, 0);
        let mut index: u128 = 0;
        while index <= TERMS {
            sum_low += low;
            sum_high += high;
            if index < LENGTH as u128 {
                sums[index as usize] = (sum_low, sum_high);
            }
            index += 1;
            low = low * mean as u128 / index;
            high = (high * mean as u128).div_ceil(index);
        }
        sum_high += high;
        let mut thresholds = [0; LENGTH];
        let mut index = 0;
        while index < LENGTH {
            thresholds[index] = digits(sums[index].0, sum_high);
            assert!(thresholds[index] == digits(sums[index].1, sum_low), "an uncertain digit");
            index += 1;
        }
        assert!(thresholds[LENGTH - 1] == u64::MAX, "a table that is too short");
        assert!(thresholds[LENGTH - 2] < u64::MAX, "a table that is too long");
        let mut guide = [0_u8; 256];
        let (mut byte, mut index) = (0, 0);
        while byte < 256 {
            while thresholds[index] < (byte as u64) << 56 {
                index += 1;
            }
            guide[byte] = index as u8;
            byte += 1;
        }
        Self { mean, thresholds, guide }
    }

    /// One count.
    #[inline]
    pub(super) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        let word = rng.next_u64();
        let mut index = usize::from(self.guide[(word >> 56) as usize]);
        while let Some(&threshold) = self.thresholds.get(index) {
            if word < threshold {
                return index as u64;
            }
            if word == threshold {
                break;
            }
            index += 1;
        }
        self.settle(index as u64, word, rng)
    }

    /// The count when the first word falls on an entry.
    #[cold]
    #[inline(never)]
    fn settle<R: Rng + ?Sized>(&self, first: u64, word: u64, rng: &mut R) -> u64 {
        let mut uniform = BigUint::from(word);
        let mut words = 1_u64;
        let mut count = first;
        loop {
            let bits = 64 * words + 128;
            let (low, high) = cumulative(self.mean, count, bits);
            let from = &uniform << (bits - 64 * words);
            let to = (&uniform + 1_u32) << (bits - 64 * words);
            if to <= low {
                return count;
            }
            if from >= high {
                count += 1;
            } else {
                uniform = (uniform << 64_u32) + rng.next_u64();
                words += 1;
            }
        }
    }
}

/// The first 64 binary digits of `numerator / denominator` below one.
const fn digits(numerator: u128, denominator: u128) -> u64 {
    let (mut quotient, mut rest, mut digit) = (0, numerator, 0);
    while digit < 64 {
        quotient *= 2;
        rest *= 2;
        if rest >= denominator {
            rest -= denominator;
            quotient += 1;
        }
        digit += 1;
    }
    quotient
}

/// `2^bits P[N <= count]`, enclosed.
fn cumulative(mean: u32, count: u64, bits: u64) -> (BigUint, BigUint) {
    let mut low = BigUint::one() << bits;
    let mut high = low.clone();
    let mut total = (BigUint::zero(), BigUint::zero());
    let mut sums = total.clone();
    let mut index = 0_u64;
    loop {
        total.0 += &low;
        total.1 += &high;
        if index == count {
            sums = total.clone();
        }
        index += 1;
        low = low * mean / index;
        high = (high * mean + (index - 1)) / index;
        // From here on each term is at most half of the one before: they add up to less than two.
        if high.is_one() && index > count && index >= 2 * u64::from(mean) {
            total.1 += 2_u32;
            return ((sums.0 << bits) / total.1, (sums.1 << bits) / total.0 + 1_u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::ToPrimitive;

    use super::super::tests::Given;
    use super::*;

    /// `floor(2^bits P[N <= count])` by exact rationals: 400 terms of the series of `e^mean`.
    fn exact(mean: u32, count: u64, bits: u32) -> BigInt {
        let mut term = BigRational::one();
        let (mut sum, mut total) = (BigRational::zero(), BigRational::zero());
        for index in 0..400_u64 {
            total += &term;
            if index <= count {
                sum += &term;
            }
            term = term * BigInt::from(mean) / BigInt::from(index + 1);
        }
        (sum * BigRational::from(BigInt::one() << bits) / total).floor().to_integer()
    }

    #[test]
    fn entries_are_the_exact_distribution_function() {
        for (count, &threshold) in (0..).zip(&ONE.thresholds) {
            assert_eq!(BigInt::from(threshold), exact(1, count, 64));
        }
        for (count, &threshold) in (0..).zip(&EIGHT.thresholds) {
            assert_eq!(BigInt::from(threshold), exact(8, count, 64));
        }
    }

    #[test]
    fn words_around_an_entry_give_the_counts_on_its_sides() {
        for (count, &threshold) in (0..).zip(&EIGHT.thresholds) {
            let lower = exact(8, count, 128) & BigInt::from(u64::MAX);
            let lower = lower.to_u64().unwrap_or(0);
            for (words, expected) in [
                (vec![threshold - 1], count),
                (vec![threshold, lower.saturating_sub(1)], count),
                (vec![threshold, lower, 0], count),
                (vec![threshold, lower, u64::MAX], count + 1),
                (vec![threshold, lower.saturating_add(1)], count + 1),
            ] {
                let used = words.len();
                let mut given = Given::new(&words);
                assert_eq!(EIGHT.draw(&mut given), expected, "{words:?}");
                assert!(given.used() <= used, "{words:?}");
            }
            if threshold < u64::MAX {
                assert_eq!(EIGHT.draw(&mut Given::new(&[threshold + 1])), count + 1);
            }
        }
        // Beyond the table.
        assert_eq!(ONE.draw(&mut Given::new(&[u64::MAX; 2])), 33);
    }
}
