//! Counts the reports that support each code.

use super::DirectEncoding;
use crate::frequency::codes::{all_inside, outside};
use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::histogram::position;
use crate::frequency::{CHUNK, Code, Histogram, NodeProbabilities, Tally, WeightedSums};
use crate::parallel::{self, chunk, stretch};
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
    /// use turnout_core::frequency::DirectEncoding;
    /// use turnout_core::parameters::{DomainSize, Epsilon};
    ///
    /// let oracle = DirectEncoding::new(Epsilon::new(2.0)?, DomainSize::new(4)?)?;
    /// assert_eq!(oracle.tally(&[0_u8, 3, 3], None)?.support, [1, 0, 0, 2]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn tally<O: Code>(
        &self,
        reports: &[O],
        probabilities: Option<NodeProbabilities<'_>>,
    ) -> Result<Tally> {
        let length = CHUNK * stretch(reports.len() / CHUNK);
        let parts = parallel::map(reports.len().div_ceil(length), |index| {
            let mut counter = Histogram::new(self.domain.len());
            let mut chunks = reports[chunk(index, length, reports.len())].chunks(CHUNK);
            let inside = chunks.all(|chunk| {
                let inside = all_inside(chunk, self.domain);
                if inside {
                    counter.add(chunk);
                }
                inside
            });
            inside.then_some(counter)
        });
        let parts: Option<Vec<Histogram>> = parts.into_iter().collect();
        let parts = parts.ok_or_else(|| outside("reports", reports, self.domain))?;
        let total = parts
            .into_iter()
            .fold(Histogram::new(self.domain.len()), |total, part| total.merge(&part));
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

    /// Returns which codes each report supports: its own and no other. There is one row of `ceil(k
    /// / 64)` words for each report, with code `i` in bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if a report is outside the domain.
    pub fn supports<O: Code>(&self, reports: &[O]) -> Result<Vec<u64>> {
        self.check(reports)?;
        let words = self.domain.len().div_ceil(64);
        let mut bits = vec![0; reports.len() * words];
        parallel::for_each_chunk(&mut bits, BLOCK * words, |block, bits| {
            for (bits, report) in bits.chunks_mut(words).zip(&reports[block * BLOCK..]) {
                let code = position(report.index());
                bits[code / 64] |= 1 << (code % 64);
            }
        });
        Ok(bits)
    }

    /// Refuses reports that are outside the domain.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if a report is outside the domain.
    pub fn check<O: Code>(&self, reports: &[O]) -> Result<()> {
        let inside = |index| all_inside(&reports[chunk(index, CHUNK, reports.len())], self.domain);
        if parallel::all(reports.len().div_ceil(CHUNK), inside) {
            return Ok(());
        }
        Err(outside("reports", reports, self.domain))
    }
}
