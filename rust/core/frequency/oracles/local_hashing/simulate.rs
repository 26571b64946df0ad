//! Draws the tally of any number of nodes at once.

use super::LocalHashing;
use crate::Result;
use crate::frequency::Tally;
use crate::frequency::shared::simulation::independent;
use crate::parameters::Probability;
use crate::random::Streams;

impl LocalHashing {
    /// Draws a tally in which every single count, jointly with the number of reports, has the law
    /// of [`collect`](crate::frequency::FrequencyOracle::collect). `true_counts[i]` nodes hold code
    /// `i`, and each takes part with probability `rate`.
    ///
    /// Given who takes part, two binomial numbers add up to the support of a code, exactly: one for
    /// the nodes that hold it, and one for the others. Given that, the counts of different codes
    /// are drawn independently. This is right for two codes of which one is the node's own. But two
    /// other codes are supported together more often than by chance. A line's values at `x - 1` and
    /// `x + 1` lie on both sides of its value at `x`: both near it or both far. How often depends on
    /// all three codes, and there are too many functions to draw how often each is chosen. [A pool](crate::frequency::PooledLocalHashing::simulate) of functions makes all of
    /// it exact. The cost is proportional to the size of the domain, for any number of nodes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if there is not one count for each
    /// code; [`Error::CountOverflow`](crate::Error::CountOverflow) if the counts add up to more than
    /// 64 bits hold.
    ///
    /// ```
    /// use turnout_core::frequency::LocalHashing;
    /// use turnout_core::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout_core::random::AesStreams;
    ///
    /// let oracle = LocalHashing::binary(Epsilon::new(1.0)?, DomainSize::new(2)?)?;
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
        let probabilities = self.support_probabilities();
        independent(self.domain, probabilities, true_counts, rate, streams)
    }
}
