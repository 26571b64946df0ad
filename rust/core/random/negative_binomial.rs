//! Negative binomial counts in constant expected time.

use core::f64::consts::LN_2;

use rand::Rng;

use super::binomial::Mass;
use super::uniform_below;

/// Draws a negative binomial count: the number of failures before `successes` successes, in trials
/// of probability `probability`.
///
/// It rejects from a hat of blocks, like [`binomial`](super::binomial()). The mass is log-concave,
/// and at `x` it is `n / (n + x)` times the binomial mass of `n` successes in `n + x` trials. Only
/// simulation uses this: no privacy guarantee depends on it.
///
/// The expected count must be below 2^61. `probability` is clamped to [2^-60, 1]; a NaN counts as
/// one. For zero successes the count is zero.
///
/// ```
/// use turnout_core::random::{AesStreams, Purpose, Streams, negative_binomial};
/// let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
/// assert_eq!(negative_binomial(10, 1.0, &mut stream), 0);
/// let failures = negative_binomial(1_000_000, 0.5, &mut stream);
/// assert!(failures.abs_diff(1_000_000) < 10_000);
/// ```
pub fn negative_binomial<R: Rng>(successes: u64, probability: f64, rng: &mut R) -> u64 {
    if successes == 0 || probability.is_nan() || probability >= 1.0 {
        return 0;
    }
    let probability = probability.max(0.5_f64.powi(60));
    let n = successes as f64;
    let logarithm = |count: u64| {
        let trials = successes.saturating_add(count);
        libm::log(n / trials as f64) + Mass::new(trials, probability).logarithm(successes)
    };
    let odds = (1.0 - probability) / probability;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
    let (mode, mut width) =
        (((n - 1.0) * odds) as u64, (1.18 * (n * odds / probability).sqrt()) as u64 + 1);
    let at_mode = logarithm(mode);
    // The margin is far above the evaluation error, so the hat stays above the mass.
    let half = at_mode - LN_2 - 1e-6;
    let halved = |count: Option<u64>| count.is_none_or(|count| logarithm(count) <= half);
    while !(halved(mode.checked_add(width)) && halved(mode.checked_sub(width))) {
        width += width / 16 + 1;
    }
    // The mode is off by one at most where rounding decides: the hat must cover its neighbours.
    let top = at_mode.max(logarithm(mode + 1)).max(logarithm(mode.saturating_sub(1)));
    loop {
        let word = rng.next_u64();
        // The low bit is the side, the leading zeros of the rest the block.
        let block = (word | 1).leading_zeros();
        let position = u64::from(block)
            .checked_mul(width)
            .and_then(|start| start.checked_add(uniform_below(width, rng)));
        let count = if word & 1 == 0 {
            position.and_then(|position| mode.checked_add(position))
        } else {
            position.and_then(|position| mode.checked_sub(position)?.checked_sub(1))
        };
        let Some(count) = count.filter(|&count| count < 1 << 63) else { continue };
        // The middle of a cell of width 2^-53: never zero.
        let uniform = ((rng.next_u64() >> 11) as f64 + 0.5) * (0.5 * f64::EPSILON);
        let height = top - f64::from(block) * LN_2;
        if libm::log(uniform) <= logarithm(count) - height {
            return count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::tests::check_law;
    use crate::random::{AesStreams, Purpose, Streams};

    #[test]
    fn counts_have_the_law_that_the_recurrence_gives() {
        for (seed, (successes, probability)) in
            [(1_u64, 0.5), (1, 0.05), (2, 0.9), (7, 0.3), (40, 0.6), (300, 0.2)]
                .into_iter()
                .enumerate()
        {
            let mut stream = AesStreams::from_seed(seed as u64).stream(Purpose::Simulation, 0);
            let mut observed = vec![0; 4000];
            for _ in 0..400_000 {
                let count = negative_binomial(successes, probability, &mut stream);
                observed[usize::try_from(count).unwrap_or(0).min(3999)] += 1;
            }
            let mut mass = probability.powf(successes as f64);
            let masses: Vec<f64> = (0..4000)
                .map(|count| {
                    let this = mass;
                    let ratio = (successes + count) as f64 / (count + 1) as f64;
                    mass *= ratio * (1.0 - probability);
                    this
                })
                .collect();
            check_law(&observed, &masses);
        }
    }

    #[test]
    fn large_counts_have_their_mean_and_variance() {
        let (successes, probability, runs) = (1_000_000_000_000_u64, 1e-5, 20_000_u32);
        let mut stream = AesStreams::from_seed(3).stream(Purpose::Simulation, 0);
        let mean = successes as f64 * (1.0 - probability) / probability;
        let deviation = (mean / probability).sqrt();
        let (mut sum, mut square) = (0.0, 0.0);
        for _ in 0..runs {
            let score =
                (negative_binomial(successes, probability, &mut stream) as f64 - mean) / deviation;
            sum += score;
            square += score * score;
        }
        let runs = f64::from(runs);
        assert!((sum / runs).abs() < 5.0 / runs.sqrt(), "{}", sum / runs);
        assert!((square / runs - 1.0).abs() < 5.0 * (2.0 / runs).sqrt(), "{}", square / runs);
    }
}
