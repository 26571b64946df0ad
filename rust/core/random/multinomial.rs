//! Multinomial counts over equally likely cells.

use rand::Rng;

use super::{binomial, uniform_below};

/// Adds `trials` balls, thrown uniformly and independently, to the cells of `counts`.
///
/// It splits the cells in halves, and the balls between them with [`binomial()`], until a part has
/// few balls; those are thrown one by one. The cost is at most proportional to the number of cells.
/// If there are no cells, it does nothing.
///
/// ```
/// use turnout_core::random::{AesStreams, Purpose, Streams, multinomial_uniform};
/// let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
/// let mut counts = [0; 10];
/// multinomial_uniform(1_000_000, &mut counts, &mut stream);
/// assert_eq!(counts.iter().sum::<u64>(), 1_000_000);
/// ```
pub fn multinomial_uniform<R: Rng>(trials: u64, counts: &mut [u64], rng: &mut R) {
    let cells = counts.len();
    if trials == 0 || cells == 0 {
        return;
    }
    if cells == 1 {
        counts[0] = counts[0].saturating_add(trials);
        return;
    }
    // Throwing a ball costs about a tenth of splitting.
    if trials <= 8 * cells as u64 {
        for _ in 0..trials {
            let cell = uniform_below(cells as u64, rng);
            if let Some(count) = usize::try_from(cell).ok().and_then(|cell| counts.get_mut(cell)) {
                *count = count.saturating_add(1);
            }
        }
        return;
    }
    let (left, right) = counts.split_at_mut(cells / 2);
    let share = left.len() as f64 / cells as f64;
    let to_left = binomial(trials, share, rng);
    multinomial_uniform(to_left, left, rng);
    multinomial_uniform(trials - to_left, right, rng);
}

/// How many of `trials` balls, thrown uniformly and independently at `cells` cells, fall into each
/// part of `length` cells, the last of which may be smaller.
///
/// [`multinomial_uniform`] spreads them within the parts, which have streams of their own.
pub(crate) fn divide<R: Rng>(trials: u64, cells: usize, length: usize, rng: &mut R) -> Vec<u64> {
    let mut parts = vec![0; cells.div_ceil(length)];
    halve(trials, cells, length, &mut parts, rng);
    parts
}

fn halve<R: Rng>(trials: u64, cells: usize, length: usize, parts: &mut [u64], rng: &mut R) {
    if let [] | [_] = parts {
        parts.fill(trials);
        return;
    }
    let (left, right) = parts.split_at_mut(parts.len() / 2);
    let to_left = binomial(trials, (left.len() * length) as f64 / cells as f64, rng);
    halve(to_left, left.len() * length, length, left, rng);
    halve(trials - to_left, cells - left.len() * length, length, right, rng);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{AesStreams, Purpose, Streams};

    /// Checks at alpha = 1e-6, over 42 comparisons (z = 5.7), that counts in seven cells have the
    /// moments of a multinomial.
    fn multinomial(trials: u64, mut draw: impl FnMut() -> [u64; 7]) {
        let runs = 60_000;
        let mean = trials as f64 / 7.0;
        let variance = mean * 6.0 / 7.0;
        let mut sums = [0.0; 7];
        let mut squares = [0.0; 7];
        let mut products = [0.0; 7];
        for _ in 0..runs {
            let counts = draw();
            assert_eq!(counts.iter().sum::<u64>(), trials);
            let scores = counts.map(|count| (count as f64 - mean) / variance.sqrt());
            for cell in 0..7 {
                sums[cell] += scores[cell];
                squares[cell] += scores[cell] * scores[cell] - 1.0;
                products[cell] += scores[cell] * scores[(cell + 1) % 7] + 1.0 / 6.0;
            }
        }
        let runs = f64::from(runs);
        for cell in 0..7 {
            assert!(sums[cell].abs() < 5.7 * runs.sqrt());
            assert!(squares[cell].abs() < 5.7 * (2.5 * runs).sqrt());
            assert!(products[cell].abs() < 5.7 * (1.3 * runs).sqrt());
        }
    }

    #[test]
    fn counts_have_multinomial_means_variances_and_covariances() {
        for (case, trials) in [20, 10_000].into_iter().enumerate() {
            let mut stream = AesStreams::from_seed(3).stream(Purpose::Simulation, case as u64);
            multinomial(trials, || {
                let mut counts = [0; 7];
                multinomial_uniform(trials, &mut counts, &mut stream);
                counts
            });
        }
    }

    #[test]
    fn so_have_counts_that_are_spread_within_parts() {
        let mut stream = AesStreams::from_seed(4).stream(Purpose::Simulation, 0);
        multinomial(10_000, || {
            let mut counts = [0; 7];
            let parts = divide(10_000, 7, 2, &mut stream);
            assert_eq!(parts.len(), 4);
            for (cells, part) in counts.chunks_mut(2).zip(parts) {
                multinomial_uniform(part, cells, &mut stream);
            }
            counts
        });
        assert_eq!(divide(5, 0, 2, &mut stream), []);
    }
}
