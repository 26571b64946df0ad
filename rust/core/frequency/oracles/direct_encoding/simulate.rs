//! The tally of any number of nodes, drawn at once.

use super::DirectEncoding;
use crate::Result;
use crate::frequency::Tally;
use crate::frequency::shared::simulation::nodes;
use crate::parallel;
use crate::parameters::Probability;
use crate::random::{Purpose, Streams, binomial, multinomial_uniform};

/// Codes that share one stream.
const BLOCK: usize = 128;

/// The stream that spreads the replaced reports.
const SPREAD: u64 = (1 << 56) - 1;

impl DirectEncoding {
    /// A tally with the law of [`collect`](Self::collect) for nodes of which `true_counts[i]` hold
    /// code `i`, each taking part with probability `rate`.
    ///
    /// Of the nodes that hold `i` a binomial number takes part; of those a binomial number keeps
    /// its code; all others report uniformly over the domain, so that their counts are one
    /// multinomial. The cost is proportional to the size of the domain, for any number of nodes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if there is not one count for each
    /// code; [`Error::CountOverflow`](crate::Error::CountOverflow) if the counts add up to more than
    /// 64 bits hold.
    ///
    /// ```
    /// use turnout::frequency::DirectEncoding;
    /// use turnout::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout::random::AesStreams;
    ///
    /// let oracle = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(2)?)?;
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
        nodes(true_counts, self.domain)?;
        let keep = self.keep_probability();
        let mut support = vec![0; self.domain.len()];
        let replaced = parallel::map_chunks(&mut support, BLOCK, |block, support| {
            let mut stream = streams.stream(Purpose::Simulation, block as u64);
            let mut replaced = 0;
            for (kept, &count) in support.iter_mut().zip(&true_counts[block * BLOCK..]) {
                let present = binomial(count, rate.get(), &mut stream);
                *kept = binomial(present, keep, &mut stream);
                replaced += present - *kept;
            }
            replaced
        });
        let mut stream = streams.stream(Purpose::Simulation, SPREAD);
        multinomial_uniform(replaced.into_iter().sum(), &mut support, &mut stream);
        Ok(Tally { received: support.iter().sum(), support, weighted: None })
    }
}
