//! Simulated tallies of oracles that support codes independently.

use rayon::prelude::*;

use super::Tally;
use crate::parameters::{DomainSize, Probability};
use crate::random::{Purpose, Streams, binomial};
use crate::{Error, Result};

/// Codes that share one stream.
const BLOCK: usize = 128;

/// The first stream of the support: those below draw who takes part.
const SUPPORT: u64 = 1 << 55;

/// A tally of nodes of which `true_counts[i]` hold code `i`, each taking part with probability
/// `rate`: given who takes part, the support of a code is one binomial number of the reports that
/// hold it, with probability `own`, and one of the others, with probability `other`.
///
/// # Errors
///
/// [`Error::LengthMismatch`] if there is not one count for each code; [`Error::CountOverflow`] if
/// the counts add up to more than 64 bits hold.
pub(super) fn simulate<S: Streams>(
    domain: DomainSize,
    (own, other): (f64, f64),
    true_counts: &[u64],
    rate: Probability,
    streams: &S,
) -> Result<Tally> {
    if true_counts.len() != domain.len() {
        return Err(Error::LengthMismatch {
            left: "true_counts",
            left_length: true_counts.len(),
            right: "the domain",
            right_length: domain.len(),
        });
    }
    let nodes = true_counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
    if nodes.is_none() {
        return Err(Error::CountOverflow { argument: "true_counts" });
    }
    let mut support = vec![0; domain.len()];
    let received: u64 = support
        .par_chunks_mut(BLOCK)
        .zip(true_counts.par_chunks(BLOCK))
        .enumerate()
        .map(|(block, (present, counts))| {
            let mut stream = streams.stream(Purpose::Simulation, block as u64);
            for (present, &count) in present.iter_mut().zip(counts) {
                *present = binomial(count, rate.get(), &mut stream);
            }
            present.iter().sum::<u64>()
        })
        .sum();
    support.par_chunks_mut(BLOCK).enumerate().for_each(|(block, support)| {
        let mut stream = streams.stream(Purpose::Simulation, SUPPORT | block as u64);
        for count in support {
            let present = *count;
            *count = binomial(present, own, &mut stream)
                + binomial(received - present, other, &mut stream);
        }
    });
    Ok(Tally { support, received, weighted: None })
}
