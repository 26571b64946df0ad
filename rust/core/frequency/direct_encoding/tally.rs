//! Counting the reports that support each code.

use rayon::prelude::*;

use super::DirectEncoding;
use crate::frequency::codes::{all_inside, outside};
use crate::frequency::oracle::stretch;
use crate::frequency::{CHUNK, Code, NodeProbabilities, Tally, WeightedSums};
use crate::parameters::DomainSize;
use crate::{Error, Result};

impl DirectEncoding {
    /// Counts the reports that support each code, and their weights if every node has its own
    /// participation probability.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if a report is outside the domain; [`Error::LengthMismatch`] if
    /// there are not as many probabilities as reports.
    ///
    /// ```
    /// use turnout::frequency::DirectEncoding;
    /// use turnout::parameters::{DomainSize, Epsilon};
    ///
    /// let oracle = DirectEncoding::new(Epsilon::new(2.0)?, DomainSize::new(4)?)?;
    /// assert_eq!(oracle.tally(&[0_u8, 3, 3], None)?.support, [1, 0, 0, 2]);
    /// # Ok::<(), turnout::Error>(())
    /// ```
    pub fn tally<O: Code>(
        &self,
        reports: &[O],
        probabilities: Option<NodeProbabilities<'_>>,
    ) -> Result<Tally> {
        let parts: Option<Vec<Counter>> = reports
            .par_chunks(CHUNK * stretch(reports.len()))
            .map(|reports| {
                let mut counter = Counter::new(self.domain);
                let inside = reports.chunks(CHUNK).all(|chunk| {
                    let inside = all_inside(chunk, self.domain);
                    if inside {
                        counter.add_codes(chunk, |code| position(code.index()));
                    }
                    inside
                });
                inside.then_some(counter)
            })
            .collect();
        let parts = parts.ok_or_else(|| outside("reports", reports, self.domain))?;
        let total =
            parts.into_iter().fold(Counter::new(self.domain), |total, part| total.merge(&part));
        let weighted = match probabilities {
            None => None,
            Some(probabilities) if probabilities.get().len() == reports.len() => {
                let mut sums = WeightedSums::zero(self.domain.len());
                for (report, &probability) in reports.iter().zip(probabilities.get()) {
                    sums.add(probability, |visit| visit(position(report.index()), 1));
                }
                Some(sums)
            }
            Some(probabilities) => {
                return Err(Error::LengthMismatch {
                    left: "probabilities",
                    left_length: probabilities.get().len(),
                    right: "reports",
                    right_length: reports.len(),
                });
            }
        };
        Ok(Tally { support: total.finish(), received: reports.len() as u64, weighted })
    }

    /// Which codes each report supports: its own and no other. One row of `ceil(k / 64)` words for
    /// each report, code `i` in bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if a report is outside the domain.
    pub fn supports<O: Code>(&self, reports: &[O]) -> Result<Vec<u64>> {
        self.check(reports)?;
        let words = self.domain.len().div_ceil(64);
        let mut bits = vec![0; reports.len() * words];
        bits.par_chunks_mut(words).zip(reports.par_iter()).for_each(|(bits, report)| {
            let code = position(report.index());
            bits[code / 64] |= 1 << (code % 64);
        });
        Ok(bits)
    }

    /// Refuses reports that are outside the domain.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if a report is.
    pub fn check<O: Code>(&self, reports: &[O]) -> Result<()> {
        if reports.par_chunks(CHUNK).all(|reports| all_inside(reports, self.domain)) {
            return Ok(());
        }
        Err(outside("reports", reports, self.domain))
    }
}

/// A checked code as a position in a slice.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a code of the domain is below 2^32")]
pub(super) fn position(index: u64) -> usize {
    index as usize
}

/// Counts of codes. Neighbouring codes are counted in different lanes, so that runs of one code do
/// not wait for each other.
pub(super) struct Counter {
    lanes: Vec<u64>,
    size: usize,
}

/// Above this many codes one lane is used: runs are rare and cache is dear.
const MANY: usize = 4096;
const LANES: usize = 4;

impl Counter {
    pub(super) fn new(domain: DomainSize) -> Self {
        let size = domain.len();
        let lanes = if size > MANY { 1 } else { LANES };
        Self { lanes: vec![0; size * lanes], size }
    }

    /// Counts indices that were checked to be in the domain.
    #[inline]
    pub(super) fn add(&mut self, indices: &[u64]) {
        self.add_codes(indices, |&index| position(index));
    }

    #[inline(always)]
    fn add_codes<C>(&mut self, codes: &[C], position: impl Fn(&C) -> usize) {
        if self.size > MANY {
            for code in codes {
                self.lanes[position(code)] += 1;
            }
            return;
        }
        let (zero, rest) = self.lanes.split_at_mut(self.size);
        let (one, rest) = rest.split_at_mut(self.size);
        let (two, three) = rest.split_at_mut(self.size);
        let (quads, rest) = codes.as_chunks::<LANES>();
        for code in rest {
            zero[position(code)] += 1;
        }
        for [a, b, c, d] in quads {
            zero[position(a)] += 1;
            one[position(b)] += 1;
            two[position(c)] += 1;
            three[position(d)] += 1;
        }
    }

    pub(super) fn merge(mut self, other: &Self) -> Self {
        for (sum, term) in self.lanes.iter_mut().zip(&other.lanes) {
            *sum += term;
        }
        self
    }

    pub(super) fn finish(self) -> Vec<u64> {
        let mut counts = self.lanes;
        let (first, rest) = counts.split_at_mut(self.size);
        for lane in rest.chunks_exact(self.size) {
            for (sum, term) in first.iter_mut().zip(lane) {
                *sum += term;
            }
        }
        counts.truncate(self.size);
        counts
    }
}
