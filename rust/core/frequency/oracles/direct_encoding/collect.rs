//! Selects, randomizes and tallies in one pass, without reports in memory.

use super::{DirectEncoding, Room};
use crate::Result;
use crate::frequency::codes::{all_inside, outside};
use crate::frequency::oracle::BLOCK;
use crate::frequency::shared::histogram::position;
use crate::frequency::{CHUNK, Code, Histogram, ReportCode, Selection, Tally, WeightedSums};
use crate::parallel::{self, chunk, stretch};
use crate::random::{Purpose, Streams};

impl DirectEncoding {
    /// Randomizes and tallies in one step. The same streams give the same counts as
    /// [`randomize`](Self::randomize) and [`tally`](Self::tally), and memory does not grow with the
    /// number of nodes.
    ///
    /// # Errors
    ///
    /// Those of [`randomize`](Self::randomize).
    ///
    /// ```
    /// use turnout_core::frequency::{DirectEncoding, Selection};
    /// use turnout_core::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout_core::random::AesStreams;
    ///
    /// let oracle = DirectEncoding::new(Epsilon::new(2.0)?, DomainSize::new(4)?)?;
    /// let tenth = Selection::bernoulli(Probability::new(0.1)?);
    /// let tally = oracle.collect(&[2_u8; 10_000], &tenth, &AesStreams::from_seed(1))?;
    /// assert_eq!(tally.support.iter().sum::<u64>(), tally.received);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn collect<C: Code, S: Streams>(
        &self,
        codes: &[C],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Tally> {
        selection.check_length(codes.len())?;
        let stretch = stretch(codes.len() / CHUNK);
        let length = CHUNK * stretch;
        let parts = parallel::map(codes.len().div_ceil(length), |index| {
            let mut part = Part::new(self, selection);
            codes[chunk(index, length, codes.len())]
                .chunks(CHUNK)
                .zip(index * stretch..)
                .all(|(nodes, chunk)| part.add(self, nodes, selection, streams, chunk))
                .then_some(part)
        });
        let parts: Option<Vec<Part>> = parts.into_iter().collect();
        let parts = parts.ok_or_else(|| outside("values", codes, self.domain))?;
        let total = parts.into_iter().fold(Part::new(self, selection), Part::merge);
        let support = total.counter.finish();
        Ok(Tally { received: support.iter().sum(), support, weighted: total.weighted })
    }
}

/// What one stretch of chunks adds up to.
struct Part {
    counter: Histogram,
    weighted: Option<WeightedSums>,
    selected: Vec<u16>,
}

impl Part {
    fn new(oracle: &DirectEncoding, selection: &Selection<'_>) -> Self {
        Self {
            counter: Histogram::new(oracle.domain.len()),
            weighted: selection.probabilities().map(|_| WeightedSums::zero(oracle.domain.len())),
            selected: Vec::new(),
        }
    }

    /// Adds one chunk; says no if a code is outside the domain.
    fn add<C: Code, S: Streams>(
        &mut self,
        oracle: &DirectEncoding,
        nodes: &[C],
        selection: &Selection<'_>,
        streams: &S,
        chunk: usize,
    ) -> bool {
        let mut stream = streams.stream(Purpose::Report, chunk as u64);
        let (mut room, mut buffer) = (Room::new(), [0_u32; BLOCK]);
        if selection.is_everyone() {
            // Block by block, so that every code is fetched from memory once.
            for nodes in nodes.chunks(BLOCK) {
                if !all_inside(nodes, oracle.domain) {
                    return false;
                }
                let reports = &mut buffer[..nodes.len()];
                let codes = nodes.iter().map(|node| node.index());
                oracle.report_in(&mut room, codes, reports, &mut stream, u32::from_index);
                self.counter.add(reports);
            }
            return true;
        }
        if !all_inside(nodes, oracle.domain) {
            return false;
        }
        selection.select(streams, chunk, nodes.len(), &mut self.selected);
        for selected in self.selected.chunks(BLOCK) {
            let reports = &mut buffer[..selected.len()];
            let codes = selected.iter().map(|&node| nodes[usize::from(node)].index());
            oracle.report_in(&mut room, codes, reports, &mut stream, u32::from_index);
            self.counter.add(reports);
            if let (Some(sums), Some(rates)) = (&mut self.weighted, selection.probabilities()) {
                let rates = &rates.get()[chunk * CHUNK..];
                for (&report, &node) in reports.iter().zip(selected) {
                    sums.add(rates[usize::from(node)], |visit| visit(position(report.index()), 1));
                }
            }
        }
        true
    }

    fn merge(self, other: Self) -> Self {
        let weighted = match (self.weighted, other.weighted) {
            (Some(one), Some(other)) => Some(one.merge(&other)),
            (one, other) => one.or(other),
        };
        Self { counter: self.counter.merge(&other.counter), weighted, ..other }
    }
}
