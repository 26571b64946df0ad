//! Exact Poisson counts, from which other noise is made.

use rand::Rng;

use super::table::{EIGHT, ONE};
use super::trial::ratio_trial;

/// A Poisson count of mean `numerator / denominator`; the denominator is from 1 to 2^127.
pub(super) fn poisson<R: Rng + ?Sized>(numerator: u128, denominator: u128, rng: &mut R) -> u64 {
    let whole = numerator / denominator;
    let fraction = numerator % denominator;
    let mut count = 0;
    for _ in 0..whole / 8 {
        count += EIGHT.draw(rng);
    }
    for _ in 0..whole % 8 {
        count += ONE.draw(rng);
    }
    if fraction > 0 {
        // Each of the points of mean one is kept with the probability that is asked for.
        for _ in 0..ONE.draw(rng) {
            count += u64::from(ratio_trial(fraction, denominator, rng));
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_law;
    use super::*;
    use crate::random::{AesStreams, Purpose, Streams};

    #[test]
    fn counts_fit_the_poisson_law() {
        let mut stream = AesStreams::from_seed(1).stream(Purpose::Skellam, 0);
        for (numerator, denominator) in [(1, 3), (1, 1), (8, 1), (7 << 90, 1 << 91), (83, 4)] {
            let mean = numerator as f64 / denominator as f64;
            let mut masses = vec![(-mean).exp()];
            for count in 1..80 {
                masses.push(masses[count - 1] * mean / count as f64);
            }
            let mut observed = vec![0_u64; masses.len()];
            for _ in 0..1_000_000 {
                let count = poisson(numerator, denominator, &mut stream);
                observed[usize::try_from(count).unwrap_or(0)] += 1;
            }
            check_law(&observed, &masses);
        }
    }
}
