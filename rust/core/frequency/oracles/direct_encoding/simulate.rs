//! Draws the tally of any number of nodes at once.

use super::DirectEncoding;
use crate::Result;
use crate::frequency::Tally;
use crate::frequency::shared::simulation::nodes;
use crate::parallel;
use crate::parameters::Probability;
use crate::random::{Purpose, Streams, binomial, divide, multinomial_uniform};

/// Codes that share one stream: they take no longer than another thread takes to wake up.
const BLOCK: usize = 2048;

/// The first stream of those that spread the replaced reports.
const SPREAD: u64 = 1 << 55;

impl DirectEncoding {
    /// The largest domain that the calling thread simulates alone.
    pub const SIMULATED_AT_ONCE: usize = BLOCK;

    /// Draws a tally with the law of [`collect`](Self::collect). `true_counts[i]` nodes hold code
    /// `i`, and each takes part with probability `rate`.
    ///
    /// Of the nodes that hold `i`, a binomial number takes part and keeps its code. All other nodes
    /// take part with one probability, whatever they hold, and then report uniformly over the
    /// domain. Their number is binomial, and a multinomial spreads it over the codes. The cost is
    /// proportional to the size of the domain, for any number of nodes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if there is not one count for each
    /// code; [`Error::CountOverflow`](crate::Error::CountOverflow) if the counts add up to more than
    /// 64 bits hold.
    ///
    /// ```
    /// use turnout_core::frequency::DirectEncoding;
    /// use turnout_core::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout_core::random::AesStreams;
    ///
    /// let oracle = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(2)?)?;
    /// let streams = AesStreams::from_seed(1);
    /// let tally = oracle.simulate(&[400_000_000_000, 600_000_000_000], Probability::ONE, &streams)?;
    /// assert_eq!(tally.received, 1_000_000_000_000);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn simulate<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Result<Tally> {
        let nodes = nodes(true_counts, self.domain)?;
        let (rate, keep) = (rate.get(), self.keep_probability());
        let kept = rate * keep;
        let mut support = vec![0; self.domain.len()];
        let sums = parallel::map_chunks(&mut support, BLOCK, |block, support| {
            let mut stream = streams.stream(Purpose::Simulation, block as u64);
            for (support, &count) in support.iter_mut().zip(&true_counts[block * BLOCK..]) {
                *support = binomial(count, kept, &mut stream);
            }
            support.iter().sum::<u64>()
        });
        let others = nodes - sums.into_iter().sum::<u64>();
        let mut stream = streams.stream(Purpose::Simulation, SPREAD);
        let replaced = binomial(others, rate * (1.0 - keep) / (1.0 - kept), &mut stream);
        let parts = divide(replaced, support.len(), BLOCK, &mut stream);
        parallel::for_each_chunk(&mut support, BLOCK, |block, support| {
            let mut stream = streams.stream(Purpose::Simulation, SPREAD + 1 + block as u64);
            multinomial_uniform(parts[block], support, &mut stream);
        });
        Ok(Tally { received: support.iter().sum(), support, weighted: None })
    }
}
