//! Everything that a frequency oracle can do, given how it makes and counts reports.

use super::{CHUNK, Code, Codes, NodeProbabilities, Reports, Selection, Tally, WeightedSums};
use crate::parallel::{self, chunk, stretch};
use crate::parameters::DomainSize;
use crate::random::{Purpose, Streams, Words};
use crate::{Error, Result};

/// How many reports are made at once, at most.
pub(crate) const BLOCK: usize = 256;

/// The part that differs between oracles: how to make a report, and how to count reports.
///
/// A report is a row of `width` items. Every oracle here except the square wave is *pure*. That is,
/// a report supports the own code with probability `p*`, and any other fixed code with probability
/// `q*`.
pub trait Randomizer: Sync {
    /// An element of a report.
    type Item: Copy + Default + Send + Sync + 'static;

    /// The intermediate sums of reports, from which the support of each code is computed.
    type Counter: Send;

    /// The domain of the codes.
    fn domain(&self) -> DomainSize;

    /// How many counts a tally has: one for each code, unless it counts something else.
    fn counts(&self) -> usize {
        self.domain().len()
    }

    /// The number of items of a report.
    fn width(&self) -> usize;

    /// Makes the reports of at most 256 nodes, whose codes were checked.
    ///
    /// The running time must reveal no more about a code than the report does.
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [Self::Item], rng: &mut R);

    /// Tells whether the oracle could have made this report.
    fn valid(&self, report: &[Self::Item]) -> bool;

    /// Describes a report for messages: "expected ...".
    fn expected(&self) -> String;

    /// A counter without reports.
    fn counter(&self) -> Self::Counter;

    /// Adds valid reports to a counter.
    fn count(&self, counter: &mut Self::Counter, reports: &[Self::Item]);

    /// Adds two counters.
    fn merge(&self, counter: Self::Counter, other: Self::Counter) -> Self::Counter;

    /// Computes the number of reports that support each code.
    fn finish(&self, counter: Self::Counter) -> Vec<u64>;

    /// Visits every code that a valid report supports.
    fn supported(&self, report: &[Self::Item], visit: &mut dyn FnMut(usize));

    /// Visits counts with the number that a valid report adds to them. A report adds one to each
    /// code that it supports, unless it holds other numbers.
    fn scores(&self, report: &[Self::Item], visit: &mut dyn FnMut(usize, i64)) {
        self.supported(report, &mut |code| visit(code, 1));
    }
}

/// A frequency oracle: randomizes the codes of the nodes that take part and counts the reports.
///
/// Everything runs on the current rayon pool; the results depend on the streams alone, not on the
/// number of threads.
pub trait FrequencyOracle: Randomizer {
    /// Randomizes the code of every node that takes part.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if any node's code is outside the domain, whether it takes part
    /// or not; [`Error::LengthMismatch`] if there are not as many personal probabilities as codes.
    fn randomize<C: Code, S: Streams>(
        &self,
        codes: &[C],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Reports<Self::Item>> {
        self.randomize_codes(C::codes(codes), selection, streams)
    }

    /// Like [`randomize`](Self::randomize), for codes whose type is known only at run time.
    ///
    /// # Errors
    ///
    /// Those of [`randomize`](Self::randomize).
    fn randomize_codes<S: Streams>(
        &self,
        codes: Codes<'_>,
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Reports<Self::Item>> {
        selection.check_length(codes.len())?;
        let (width, nodes) = (self.width(), codes.len());
        let chunks = nodes.div_ceil(CHUNK);
        if !parallel::all(chunks, |index| codes.inside(chunk(index, CHUNK, nodes), self.domain())) {
            return Err(codes.outside("values", self.domain()));
        }
        if selection.is_everyone() {
            let mut reports = vec![Self::Item::default(); nodes * width];
            parallel::for_each_chunk(&mut reports, CHUNK * width, |index, reports| {
                let mut stream = streams.stream(Purpose::Report, index as u64);
                let mut buffer = [0; BLOCK];
                let mut first = index * CHUNK;
                for reports in reports.chunks_mut(BLOCK * width) {
                    let end = nodes.min(first + BLOCK);
                    self.report(codes.gather(first..end, &mut buffer), reports, &mut stream);
                    first = end;
                }
            });
            return Ok(Reports { codes: reports, probabilities: None });
        }
        let pieces = parallel::map_with(chunks, Vec::new, |selected, index| {
            let nodes = chunk(index, CHUNK, nodes);
            selection.select(streams, index, nodes.len(), selected);
            let mut stream = streams.stream(Purpose::Report, index as u64);
            let mut reports = vec![Self::Item::default(); selected.len() * width];
            let mut buffer = [0; BLOCK];
            let blocks = selected.chunks(BLOCK).zip(reports.chunks_mut(BLOCK * width));
            for (selected, reports) in blocks {
                let codes = codes.gather_at(nodes.start, selected, &mut buffer);
                self.report(codes, reports, &mut stream);
            }
            (reports, rates(selection, index, selected))
        });
        let (reports, rates): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
        Ok(Reports {
            codes: reports.concat(),
            probabilities: selection.probabilities().map(|_| rates.concat()),
        })
    }

    /// Refuses reports that the oracle cannot have made.
    ///
    /// # Errors
    ///
    /// [`Error::Report`] with the first such report; [`Error::LengthMismatch`] if the items are not
    /// a whole number of reports.
    fn check(&self, reports: &[Self::Item]) -> Result<()> {
        let width = self.width();
        if !reports.len().is_multiple_of(width) {
            return Err(Error::LengthMismatch {
                left: "reports",
                left_length: reports.len(),
                right: "whole reports",
                right_length: reports.len().next_multiple_of(width),
            });
        }
        // No early exit within a piece, so that the compiler may look at many reports at once.
        let valid = |index: usize| {
            let reports = &reports[chunk(index, CHUNK * width, reports.len())];
            reports.chunks_exact(width).fold(true, |valid, report| valid & self.valid(report))
        };
        if parallel::all(reports.len().div_ceil(CHUNK * width), valid) {
            return Ok(());
        }
        let first = reports.chunks_exact(width).position(|report| !self.valid(report));
        Err(Error::Report { index: first.unwrap_or(0), expected: self.expected() })
    }

    /// Counts the reports that support each code, and their weights if every node has its own
    /// participation probability.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check); [`Error::LengthMismatch`] if there are not as many
    /// probabilities as reports.
    fn tally(
        &self,
        reports: &[Self::Item],
        probabilities: Option<NodeProbabilities<'_>>,
    ) -> Result<Tally> {
        self.check(reports)?;
        let width = self.width();
        let received = reports.len() / width;
        let rates = probabilities.map(NodeProbabilities::get);
        if let Some(rates) = rates
            && rates.len() != received
        {
            return Err(Error::LengthMismatch {
                left: "probabilities",
                left_length: rates.len(),
                right: "reports",
                right_length: received,
            });
        }
        let step = CHUNK * stretch(received / CHUNK);
        let parts = parallel::map(received.div_ceil(step), |index| {
            let mut part = Part::new(self, rates.is_some());
            let rates = rates.map(|rates| &rates[index * step..]);
            let reports = &reports[chunk(index, step * width, reports.len())];
            part.add(self, reports, rates.unwrap_or_default());
            part
        });
        Ok(Part::finish(self, parts, rates.is_some()))
    }

    /// Randomizes and tallies in one step. The same streams give the same counts as
    /// [`randomize`](Self::randomize) and [`tally`](Self::tally), and memory does not grow with the
    /// number of nodes.
    ///
    /// # Errors
    ///
    /// Those of [`randomize`](Self::randomize).
    fn collect<C: Code, S: Streams>(
        &self,
        codes: &[C],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Tally> {
        self.collect_codes(C::codes(codes), selection, streams)
    }

    /// Like [`collect`](Self::collect), for codes whose type is known only at run time.
    ///
    /// # Errors
    ///
    /// Those of [`randomize`](Self::randomize).
    fn collect_codes<S: Streams>(
        &self,
        codes: Codes<'_>,
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Tally> {
        selection.check_length(codes.len())?;
        let personal = selection.probabilities().is_some();
        let chunks = codes.len().div_ceil(CHUNK);
        let stretch = stretch(chunks);
        let parts = parallel::map(chunks.div_ceil(stretch), |index| {
            let mut part = Part::new(self, personal);
            let mut scratch = Scratch::new(self);
            chunk(index, stretch, chunks)
                .all(|chunk| scratch.collect(self, codes, selection, streams, chunk, &mut part))
                .then_some(part)
        });
        let parts: Option<Vec<Part<Self::Counter>>> = parts.into_iter().collect();
        let parts = parts.ok_or_else(|| codes.outside("values", self.domain()))?;
        Ok(Part::finish(self, parts, personal))
    }

    /// Returns which codes each report supports: one row of `ceil(k / 64)` words for each report,
    /// with code `i` in bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check).
    fn supports(&self, reports: &[Self::Item]) -> Result<Vec<u64>> {
        self.check(reports)?;
        let words = self.domain().len().div_ceil(64);
        let width = self.width();
        let mut bits = vec![0; reports.len() / width * words];
        parallel::for_each_chunk(&mut bits, BLOCK * words, |block, bits| {
            let reports = reports[block * BLOCK * width..].chunks_exact(width);
            for (bits, report) in bits.chunks_mut(words).zip(reports) {
                self.supported(report, &mut |code| bits[code / 64] |= 1 << (code % 64));
            }
        });
        Ok(bits)
    }
}

impl<T: Randomizer + ?Sized> FrequencyOracle for T {}

/// The personal probabilities of the selected nodes of a chunk; none if all share one rate.
pub(crate) fn rates(selection: &Selection<'_>, chunk: usize, selected: &[u16]) -> Vec<f64> {
    selection.probabilities().map_or_else(Vec::new, |probabilities| {
        let rates = &probabilities.get()[chunk * CHUNK..];
        selected.iter().map(|&node| rates[usize::from(node)]).collect()
    })
}

/// What some of the reports add up to.
struct Part<C> {
    counter: C,
    received: u64,
    weighted: Option<WeightedSums>,
}

impl<C: Send> Part<C> {
    fn new<O: Randomizer<Counter = C> + ?Sized>(oracle: &O, personal: bool) -> Self {
        Self {
            counter: oracle.counter(),
            received: 0,
            weighted: personal.then(|| WeightedSums::zero(oracle.counts())),
        }
    }

    fn add<O: Randomizer<Counter = C> + ?Sized>(
        &mut self,
        oracle: &O,
        reports: &[O::Item],
        rates: &[f64],
    ) {
        let width = oracle.width();
        oracle.count(&mut self.counter, reports);
        self.received += (reports.len() / width) as u64;
        if let Some(sums) = &mut self.weighted {
            for (report, &rate) in reports.chunks_exact(width).zip(rates) {
                sums.add(rate, |visit| oracle.scores(report, visit));
            }
        }
    }

    fn finish<O: Randomizer<Counter = C> + ?Sized>(
        oracle: &O,
        parts: Vec<Self>,
        personal: bool,
    ) -> Tally {
        let total = parts.into_iter().fold(Self::new(oracle, personal), |total, part| Self {
            counter: oracle.merge(total.counter, part.counter),
            received: total.received + part.received,
            weighted: match (total.weighted, part.weighted) {
                (Some(one), Some(other)) => Some(one.merge(&other)),
                (one, other) => one.or(other),
            },
        });
        Tally {
            support: oracle.finish(total.counter),
            received: total.received,
            weighted: total.weighted,
        }
    }
}

/// Buffers that are used for one chunk after the other.
struct Scratch<I> {
    selected: Vec<u16>,
    reports: Vec<I>,
}

impl<I: Copy + Default> Scratch<I> {
    fn new<O: Randomizer<Item = I> + ?Sized>(oracle: &O) -> Self {
        Self { selected: Vec::new(), reports: vec![I::default(); BLOCK * oracle.width()] }
    }

    /// Adds one chunk; says no if a code is outside the domain.
    fn collect<O, S>(
        &mut self,
        oracle: &O,
        codes: Codes<'_>,
        selection: &Selection<'_>,
        streams: &S,
        chunk: usize,
        part: &mut Part<O::Counter>,
    ) -> bool
    where
        O: Randomizer<Item = I> + ?Sized,
        S: Streams,
    {
        let nodes = parallel::chunk(chunk, CHUNK, codes.len());
        if !codes.inside(nodes.clone(), oracle.domain()) {
            return false;
        }
        let width = oracle.width();
        let mut stream = streams.stream(Purpose::Report, chunk as u64);
        let mut buffer = [0; BLOCK];
        if selection.is_everyone() {
            for first in nodes.clone().step_by(BLOCK) {
                let end = nodes.end.min(first + BLOCK);
                let reports = &mut self.reports[..(end - first) * width];
                oracle.report(codes.gather(first..end, &mut buffer), reports, &mut stream);
                part.add(oracle, reports, &[]);
            }
            return true;
        }
        selection.select(streams, chunk, nodes.len(), &mut self.selected);
        for selected in self.selected.chunks(BLOCK) {
            let reports = &mut self.reports[..selected.len() * width];
            let codes = codes.gather_at(nodes.start, selected, &mut buffer);
            oracle.report(codes, reports, &mut stream);
            part.add(oracle, reports, &rates(selection, chunk, selected));
        }
        true
    }
}
