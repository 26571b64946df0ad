//! Code that all simulated tallies share.

use crate::frequency::Tally;
use crate::parallel;
use crate::parameters::{DomainSize, Probability};
use crate::random::{Purpose, Streams, Words, binomial};
use crate::{Error, Result};

/// Codes that share one stream.
const BLOCK: usize = 128;

/// The first stream of the support: those below draw who takes part.
const SUPPORT: u64 = 1 << 55;

/// The number of nodes of true counts for a simulation.
pub(in crate::frequency) fn nodes(true_counts: &[u64], domain: DomainSize) -> Result<u64> {
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

/// How many nodes of each code take part, and how many in all.
///
/// Uses the streams of [`Purpose::Simulation`] with indices below 2^32.
pub(in crate::frequency) fn take_part<S: Streams>(
    true_counts: &[u64],
    rate: f64,
    streams: &S,
) -> (Vec<u64>, u64) {
    let mut present = vec![0; true_counts.len()];
    let received = parallel::map_chunks(&mut present, BLOCK, |block, present| {
        let mut stream = streams.stream(Purpose::Simulation, block as u64);
        for (present, &count) in present.iter_mut().zip(&true_counts[block * BLOCK..]) {
            *present = binomial(count, rate, &mut stream);
        }
        present.iter().sum::<u64>()
    });
    (present, received.into_iter().sum())
}

/// A tally of nodes of which `true_counts[i]` hold code `i`, each taking part with probability
/// `rate`: given who takes part, the support of a code is one binomial number of the reports that
/// hold it, with probability `own`, and one of the others, with probability `other`.
///
/// # Errors
///
/// [`Error::LengthMismatch`] if there is not one count for each code; [`Error::CountOverflow`] if
/// the counts add up to more than 64 bits hold.
pub(in crate::frequency) fn independent<S: Streams>(
    domain: DomainSize,
    (own, other): (f64, f64),
    true_counts: &[u64],
    rate: Probability,
    streams: &S,
) -> Result<Tally> {
    nodes(true_counts, domain)?;
    let (mut support, received) = take_part(true_counts, rate.get(), streams);
    parallel::for_each_chunk(&mut support, BLOCK, |block, support| {
        let mut stream = streams.stream(Purpose::Simulation, SUPPORT | block as u64);
        for count in support {
            let present = *count;
            *count = binomial(present, own, &mut stream)
                + binomial(received - present, other, &mut stream);
        }
    });
    Ok(Tally { support, received, weighted: None })
}

/// For each code, how many of its nodes take part and report inside what the code supports, and how
/// many take part and report outside.
///
/// Uses the streams of [`Purpose::Simulation`] with indices below 2^32.
pub(in crate::frequency) fn present<S: Streams>(
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
pub(in crate::frequency) fn fair_coins<R: Words>(coins: u64, rng: &mut R) -> u64 {
    match coins {
        0 => 0,
        1..=64 => (rng.next_u64() >> (64 - coins)).count_ones().into(),
        _ => binomial(coins, 0.5, rng),
    }
}
