//! Draws the tally of any number of nodes at once.

use super::{HadamardResponse, ReportCode};
use crate::frequency::Tally;
use crate::frequency::shared::simulation::{fair_coins, nodes, present};
use crate::parallel;
use crate::parameters::Probability;
use crate::random::{Purpose, Streams, Words};
use crate::{Error, Result};

/// Nodes with the same remaining bits of `x + 1`: how many want an even number of common bits
/// there, and how many an odd one.
type Wanted = [u64; 2];

/// Streams of the recursion, beside those of the codes.
const SPREAD: u64 = 1 << 40;

/// Steps with fewer remaining classes stay on one thread and one stream.
const SMALL: usize = 256;

impl<O: ReportCode> HadamardResponse<O> {
    /// Draws a tally with the law of [`collect`](crate::frequency::FrequencyOracle::collect).
    /// `true_counts[i]` nodes hold code `i`, and each takes part with probability `rate`.
    ///
    /// The joint law is exact. Of the nodes that hold `i`, a binomial number takes part, and of
    /// those a binomial number reports in the own half. The bits of the reports are then drawn from
    /// the highest down. A bit is a fair coin unless it is the last one that the code looks at.
    /// Nodes whose codes agree in the lower bits and need the same result of them go on together.
    /// The cost is `K log K` binomials, for any number of nodes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there is not one count for each code; [`Error::CountOverflow`]
    /// if the counts add up to more than 64 bits hold; [`Error::Integer`] if they add up to 2^63 or
    /// more.
    ///
    /// ```
    /// use turnout_core::frequency::HadamardResponse;
    /// use turnout_core::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout_core::random::AesStreams;
    ///
    /// let oracle = HadamardResponse::<u8>::new(Epsilon::new(1.0)?, DomainSize::new(2)?)?;
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
        if nodes > i64::MAX.unsigned_abs() {
            let expected = "below 2^63 in all";
            return Err(Error::Integer { argument: "true_counts", value: nodes, expected });
        }
        let (inside, _) = self.support_probabilities();
        let mut wanted = vec![[0; 2]; 1 << self.bits];
        let drawn = present(true_counts, rate, inside, streams);
        for (wanted, drawn) in wanted.iter_mut().skip(1).zip(drawn) {
            *wanted = drawn;
        }
        let received = wanted.iter().flatten().sum();
        let mut histogram = vec![0; wanted.len()];
        spread(&wanted, &mut histogram, streams, 1);
        Ok(Tally { support: self.support_of(histogram), received, weighted: None })
    }
}

/// Draws the remaining bits of all reports, with a stream of its own for the step `step`: the first
/// is step 1, and those after step `i` are `2 i` and `2 i + 1`.
fn spread<S: Streams>(wanted: &[Wanted], histogram: &mut [u64], streams: &S, step: u64) {
    let mut stream = streams.stream(Purpose::Simulation, SPREAD + step);
    if wanted.len() <= SMALL {
        spread_small(wanted, histogram, &mut stream);
        return;
    }
    let (zero, one) = split(wanted, &mut stream);
    let (low, high) = histogram.split_at_mut(wanted.len() / 2);
    parallel::join(
        || spread(&zero, low, streams, 2 * step),
        || spread(&one, high, streams, 2 * step + 1),
    );
}

fn spread_small<R: Words>(wanted: &[Wanted], histogram: &mut [u64], rng: &mut R) {
    if let ([[reports, _]], [cell]) = (wanted, &mut *histogram) {
        *cell = *reports;
        return;
    }
    let (zero, one) = split(wanted, rng);
    let (low, high) = histogram.split_at_mut(wanted.len() / 2);
    spread_small(&zero, low, rng);
    spread_small(&one, high, rng);
}

/// Draws the highest remaining bit of all reports: what those want that drew zero, and one.
fn split<R: Words>(wanted: &[Wanted], rng: &mut R) -> (Vec<Wanted>, Vec<Wanted>) {
    let half = wanted.len() / 2;
    let (ignoring, looking) = wanted.split_at(half);
    let (mut zero, mut one) = (vec![[0; 2]; half], vec![[0; 2]; half]);
    for (rest, (ignoring, looking)) in ignoring.iter().zip(looking).enumerate() {
        for want in 0..2 {
            let heads = fair_coins(ignoring[want], rng);
            one[rest][want] += heads;
            zero[rest][want] += ignoring[want] - heads;
        }
        if rest == 0 {
            // No bit is left to look at after this one.
            zero[0][0] += looking[0];
            one[0][0] += looking[1];
            continue;
        }
        for want in 0..2 {
            let heads = fair_coins(looking[want], rng);
            one[rest][1 - want] += heads;
            zero[rest][want] += looking[want] - heads;
        }
    }
    (zero, one)
}
