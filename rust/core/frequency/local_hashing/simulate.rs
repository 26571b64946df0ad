//! Tallies of any number of nodes, drawn at once.

use rayon::prelude::*;

use super::LocalHashing;
use crate::frequency::Tally;
use crate::parameters::{DomainSize, Probability};
use crate::random::{Purpose, Streams, binomial};
use crate::{Error, Result};

/// Codes that share one stream.
const BLOCK: usize = 128;

/// Streams from here on draw the reports of the nodes that are present.
pub(in crate::frequency) const REPORTS: u64 = 1 << 55;

/// Refuses true counts that do not fit.
pub(in crate::frequency) fn check_counts(true_counts: &[u64], domain: DomainSize) -> Result<()> {
    if true_counts.len() != domain.len() {
        return Err(Error::LengthMismatch {
            left: "true_counts",
            left_length: true_counts.len(),
            right: "the domain",
            right_length: domain.len(),
        });
    }
    let nodes = true_counts.iter().try_fold(0_u64, |sum, &count| sum.checked_add(count));
    nodes.map(|_| ()).ok_or(Error::CountOverflow { argument: "true_counts" })
}

/// How many nodes of each code take part.
pub(in crate::frequency) fn present<S: Streams>(
    true_counts: &[u64],
    rate: Probability,
    streams: &S,
) -> Vec<u64> {
    let blocks = true_counts.par_chunks(BLOCK).enumerate();
    let drawn = blocks.flat_map_iter(|(block, counts)| {
        let mut stream = streams.stream(Purpose::Simulation, block as u64);
        counts.iter().map(move |&count| binomial(count, rate.get(), &mut stream))
    });
    drawn.collect()
}

/// A tally in which each count has its law given who is present, but the counts are independent of
/// each other.
fn simulate_independent<S: Streams>(
    true_counts: &[u64],
    rate: Probability,
    (own, other): (f64, f64),
    streams: &S,
) -> Tally {
    let mut support = present(true_counts, rate, streams);
    let received: u64 = support.iter().sum();
    support.par_chunks_mut(BLOCK).enumerate().for_each(|(block, support)| {
        let mut stream = streams.stream(Purpose::Simulation, REPORTS + block as u64);
        for count in support {
            *count = binomial(*count, own, &mut stream)
                + binomial(received - *count, other, &mut stream);
        }
    });
    Tally { support, received, weighted: None }
}

impl LocalHashing {
    /// A tally in which every single count, jointly with the number of reports, has the law of
    /// [`collect`](crate::frequency::FrequencyOracle::collect), for nodes of which `true_counts[i]`
    /// hold code `i`, each taking part with probability `rate`.
    ///
    /// Given who takes part, a code is supported by a binomial number of those that hold it and by
    /// another of those that do not, exactly. Given that, the counts of different codes are drawn
    /// independently, which they are not quite: codes that share a report's bucket are supported
    /// together. The cost is proportional to the size of the domain, for any number of nodes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there is not one count for each code; [`Error::CountOverflow`]
    /// if the counts add up to more than 64 bits hold.
    ///
    /// ```
    /// use turnout::frequency::LocalHashing;
    /// use turnout::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout::random::AesStreams;
    ///
    /// let oracle = LocalHashing::binary(Epsilon::new(1.0)?, DomainSize::new(2)?)?;
    /// let streams = AesStreams::from_seed(1);
    /// let tally = oracle.simulate(&[400_000_000_000, 600_000_000_000], Probability::ONE, &streams)?;
    /// assert_eq!(tally.received, 1_000_000_000_000);
    /// # Ok::<(), turnout::Error>(())
    /// ```
    pub fn simulate<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Result<Tally> {
        check_counts(true_counts, self.domain)?;
        Ok(simulate_independent(true_counts, rate, self.support_probabilities(), streams))
    }
}
