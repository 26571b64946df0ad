//! Draws the tally of any number of nodes at once.
//!
//! With probability `(k p - d) / (k - d)`, the set of a node is its own code and a uniform set of
//! `d - 1` other codes. Otherwise it is a uniform set of `d` of all codes. Together, the own code
//! is in the set with probability `p`, and given whether it is, the rest is uniform. So only the
//! sets of the first kind, called kept here, need to know whose they are.
//!
//! Codes are combined in pairs, these parts in pairs again, and so on up to all codes. The number
//! of members of a uniform set in each half of its codes is hypergeometric. Given these numbers,
//! its members in the halves are independent uniform sets. So all that matters about a part is how
//! many sets have how many members in it. A kept set differs in the parts that contain its own
//! code. It works from the smallest such part up. Given how many members it has in its own half of
//! the next larger part, it draws how many it has in the other half. What remains are uniform sets
//! of parts, which are drawn from the largest part down. Sets with the same numbers are drawn
//! together. Most numbers are close to their means, so about `m` pairs of them occur in the halves
//! of a part of `m` codes. There are about `k log k` draws in all.

use super::SubsetSelection;
use crate::Result;
use crate::frequency::Tally;
use crate::frequency::shared::simulation::{nodes, take_part};
use crate::parallel::{self, chunk};
use crate::parameters::Probability;
use crate::random::{Hypergeometric, Purpose, Streams, binomial};

/// The first stream of those that draw sets; those below draw who takes part.
const SETS: u64 = 1 << 55;

/// Streams of the way up, and of the way down.
const UP: u64 = SETS + (1 << 50);
const DOWN: u64 = SETS + (2 << 50);

/// Codes of parts that share one stream.
const TOGETHER: usize = 256;

/// How many sets have how many members in a part: pairs of members and sets.
type Sets = Vec<(usize, u64)>;

impl SubsetSelection {
    /// Draws a tally with the law of [`collect`](crate::frequency::FrequencyOracle::collect).
    /// `true_counts[i]` nodes hold code `i`, and each takes part with probability `rate`.
    ///
    /// The joint law is exact: the counts add up to `d` for each report. The cost is about `k log
    /// k` binomials, for any number of nodes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if there is not one count for each
    /// code; [`Error::CountOverflow`](crate::Error::CountOverflow) if the counts add up to more than
    /// 64 bits hold.
    ///
    /// ```
    /// use turnout_core::frequency::SubsetSelection;
    /// use turnout_core::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout_core::random::AesStreams;
    ///
    /// let oracle = SubsetSelection::new(Epsilon::new(1.0)?, DomainSize::new(3)?, None)?;
    /// let held = [400_000_000_000, 600_000_000_000, 0];
    /// let tally = oracle.simulate(&held, Probability::ONE, &AesStreams::from_seed(1))?;
    /// assert_eq!(tally.received, 1_000_000_000_000);
    /// assert_eq!(tally.support.iter().sum::<u64>(), oracle.subset_size() * tally.received);
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
        let (mut support, kept) = take_part(true_counts, rate * keep, streams);
        let mut stream = streams.stream(Purpose::Simulation, SETS);
        let uniform = rate * (1.0 - keep) / (1.0 - rate * keep);
        let uniform = binomial(nodes - kept, uniform, &mut stream);
        let received = kept + uniform;

        let parts = Parts { codes: self.domain.len(), members: self.size as usize, streams };
        let single = parts.fall(uniform, parts.rise(&support));
        for (support, sets) in support.iter_mut().zip(single) {
            // With one member each.
            *support += sets.iter().map(|(_, sets)| sets).sum::<u64>();
        }
        Ok(Tally { support, received, weighted: None })
    }

    /// `(k p - d) / (k - d)`
    fn keep_probability(&self) -> f64 {
        let kept = u128::from(self.own) * u128::from(self.domain.get()) - self.expected_words();
        kept as f64 / super::ALL as f64 / (self.domain.get() - u64::from(self.size)) as f64
    }
}

/// Parts of height `h` are `2^h` codes in a row; the last one may have fewer.
struct Parts<'a, S> {
    codes: usize,
    /// How many members a set has: `d`.
    members: usize,
    streams: &'a S,
}

impl<S: Streams> Parts<'_, S> {
    /// The height of the part of all codes.
    const fn top(&self) -> u32 {
        usize::BITS - (self.codes - 1).leading_zeros()
    }

    const fn length(&self, height: u32, part: usize) -> usize {
        let left = self.codes.saturating_sub(part << height);
        if left < 1 << height { left } else { 1 << height }
    }

    /// Does a job for every part of a height: with the lengths of its halves, of which the second
    /// may be empty.
    fn each<T: Send>(
        &self,
        height: u32,
        first_stream: u64,
        job: impl Fn(usize, [usize; 2], &mut Hypergeometric, &mut S::Stream) -> T + Sync,
    ) -> Vec<T> {
        let parts = self.codes.div_ceil(1 << height);
        let together = (TOGETHER >> height).max(1);
        let results = parallel::map(parts.div_ceil(together), |group| {
            let index = first_stream + (u64::from(height) << 40) + group as u64;
            let mut stream = self.streams.stream(Purpose::Simulation, index);
            let mut law = Hypergeometric::default();
            let parts = chunk(group, together, parts);
            parts
                .map(|part| {
                    let halves = [2 * part, 2 * part + 1].map(|half| self.length(height - 1, half));
                    job(part, halves, &mut law, &mut stream)
                })
                .collect::<Vec<T>>()
        });
        results.into_iter().flatten().collect()
    }

    /// The members of kept sets in parts without their own code, of each height: from how many
    /// nodes that hold each code are kept.
    fn rise(&self, kept: &[u64]) -> Vec<Vec<Sets>> {
        let mut own: Vec<Sets> = kept.iter().map(|&kept| vec![(0, kept)]).collect();
        let mut others = Vec::new();
        for height in 1..=self.top() {
            let drawn = self.each(height, UP, |part, halves, law, stream| {
                let mut whole = vec![0; halves[0] + halves[1]];
                let mut beside = halves.map(|length| vec![0; length + 1]);
                for (half, own) in own.iter().skip(2 * part).take(2).enumerate() {
                    for &(members, sets) in own {
                        let left = self.members - 1 - members;
                        law.set(left, halves[1 - half], self.codes - halves[half]);
                        law.spread(sets, stream, |more, sets| {
                            whole[members + more] += sets;
                            beside[1 - half][more] += sets;
                        });
                    }
                }
                (listed(0, &whole), beside.map(|counts| listed(1, &counts)))
            });
            let beside: Vec<[Sets; 2]>;
            (own, beside) = drawn.into_iter().unzip();
            others.push(beside.into_iter().flatten().collect());
        }
        others
    }

    /// The members in each code of so many uniform sets of all codes, and of uniform sets of parts
    /// of each height.
    fn fall(&self, uniform: u64, parts: Vec<Vec<Sets>>) -> Vec<Sets> {
        let mut sets = vec![vec![(self.members, uniform)]];
        for (height, below) in (1..=self.top()).rev().zip(parts.into_iter().rev()) {
            let drawn = self.each(height, DOWN, |part, halves, law, stream| {
                let mut counts = halves.map(|length| vec![0; length + 1]);
                for (half, counts) in counts.iter_mut().enumerate() {
                    for &(members, sets) in &below[2 * part + half] {
                        counts[members] += sets;
                    }
                }
                for &(members, sets) in &sets[part] {
                    law.set(members, halves[0], halves[0] + halves[1]);
                    law.spread(sets, stream, |first, sets| {
                        counts[0][first] += sets;
                        counts[1][members - first] += sets;
                    });
                }
                counts.map(|counts| listed(1, &counts))
            });
            sets = drawn.into_iter().flatten().collect();
        }
        sets
    }
}

/// The numbers of members that occur, from `least` on, with how many sets have so many.
fn listed(least: usize, counts: &[u64]) -> Sets {
    let occurring = || counts.iter().enumerate().skip(least).filter(|(_, sets)| **sets > 0);
    // A list for every code, which is no longer than it must be.
    let mut list = Vec::with_capacity(occurring().count());
    list.extend(occurring().map(|(members, &sets)| (members, sets)));
    list
}
