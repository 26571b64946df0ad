//! What oracles that draw whole numbers of words have in common.

use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{ExponentialBounds, Purpose, Streams, Words, binomial};
use crate::{Error, Result};

/// `ln(own / other)`, rounded up to a floating-point number: never below the truth, and never above
/// `epsilon` if `own <= e^epsilon other` is proven.
pub(super) fn realized_epsilon(epsilon: Epsilon, own: u64, other: u64) -> f64 {
    let gain = (own - other) as f64 / other as f64;
    let mut candidate = libm::log1p(gain) * (1.0 - 1e-15);
    while candidate < epsilon.get() {
        if ExponentialBounds::new(candidate).at_least(own.into(), other.into()) {
            return candidate;
        }
        candidate = candidate.next_up();
    }
    epsilon.get()
}

/// The number of nodes of true counts for a simulation.
pub(super) fn nodes(true_counts: &[u64], domain: DomainSize) -> Result<u64> {
    if true_counts.len() != domain.len() {
        return Err(Error::LengthMismatch {
            left: "true_counts",
            left_length: true_counts.len(),
            right: "the domain",
            right_length: domain.len(),
        });
    }
    true_counts
        .iter()
        .try_fold(0_u64, |sum, &count| sum.checked_add(count))
        .ok_or(Error::CountOverflow { argument: "true_counts" })
}

/// Codes that share one stream.
const BLOCK: usize = 128;

/// For each code, how many of its nodes take part and report inside what the code supports, and how
/// many take part and report outside.
///
/// Uses the streams of [`Purpose::Simulation`] with indices below 2^32.
pub(super) fn present<S: Streams>(
    true_counts: &[u64],
    rate: Probability,
    inside: f64,
    streams: &S,
) -> Vec<[u64; 2]> {
    let mut split = Vec::with_capacity(true_counts.len());
    for (block, counts) in (0..).zip(true_counts.chunks(BLOCK)) {
        let mut stream = streams.stream(Purpose::Simulation, block);
        split.extend(counts.iter().map(|&count| {
            let present = binomial(count, rate.get(), &mut stream);
            let own = binomial(present, inside, &mut stream);
            [own, present - own]
        }));
    }
    split
}

/// How many of some fair coins show heads.
pub(super) fn fair_coins<R: Words>(coins: u64, rng: &mut R) -> u64 {
    match coins {
        0 => 0,
        1..=64 => (rng.next_u64() >> (64 - coins)).count_ones().into(),
        _ => binomial(coins, 0.5, rng),
    }
}
