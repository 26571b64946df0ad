//! What every frequency oracle can do, given how it makes and counts reports.

use rayon::prelude::*;

use super::codes::{all_inside, outside};
use super::{CHUNK, Code, NodeProbabilities, Reports, Selection, Tally, WeightedSums};
use crate::parameters::DomainSize;
use crate::random::{Purpose, Streams, Words};
use crate::{Error, Result};

/// How many reports are made at once, at most.
pub(crate) const BLOCK: usize = 256;

/// How many chunks one counter takes: some counters for each thread, whatever the input's size.
pub(crate) fn stretch(nodes: usize) -> usize {
    (nodes / CHUNK / (8 * rayon::current_num_threads())).max(1)
}

/// The part of an oracle that differs from oracle to oracle: how a report is made, and how reports
/// are counted.
///
/// A report is a row of `width` items. Every oracle here is *pure*: a report supports some codes,
/// the own code with probability `p*` and any other fixed code with probability `q*`.
pub trait Randomizer: Sync {
    /// An element of a report.
    type Item: Copy + Default + Send + Sync + 'static;

    /// What reports add up to before they are turned into the support of each code.
    type Counter: Send;

    /// The number of codes.
    fn domain(&self) -> DomainSize;

    /// How many items a report has.
    fn width(&self) -> usize;

    /// The reports of at most 256 nodes, whose codes were checked.
    ///
    /// The running time must say no more of a code than the report does.
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [Self::Item], rng: &mut R);

    /// Whether the oracle could have made this report.
    fn valid(&self, report: &[Self::Item]) -> bool;

    /// What a report is, for messages: "expected ...".
    fn expected(&self) -> String;

    /// A counter of no reports.
    fn counter(&self) -> Self::Counter;

    /// Counts valid reports.
    fn count(&self, counter: &mut Self::Counter, reports: &[Self::Item]);

    /// Adds two counters up.
    fn merge(&self, counter: Self::Counter, other: Self::Counter) -> Self::Counter;

    /// The number of reports that support each code.
    fn finish(&self, counter: Self::Counter) -> Vec<u64>;

    /// Visits every code that a valid report supports.
    fn supported(&self, report: &[Self::Item], visit: &mut dyn FnMut(usize));

    /// Visits codes with what a valid report adds to their support: one for those that it supports,
    /// unless it holds other numbers.
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
        selection.check_length(codes.len())?;
        if !codes.par_chunks(CHUNK).all(|nodes| all_inside(nodes, self.domain())) {
            return Err(outside("values", codes, self.domain()));
        }
        let width = self.width();
        if selection.is_everyone() {
            let mut reports = vec![Self::Item::default(); codes.len() * width];
            reports
                .par_chunks_mut(CHUNK * width)
                .zip(codes.par_chunks(CHUNK))
                .enumerate()
                .for_each(|(chunk, (reports, nodes))| {
                    let mut stream = streams.stream(Purpose::Report, chunk as u64);
                    let mut buffer = [0; BLOCK];
                    let blocks = nodes.chunks(BLOCK).zip(reports.chunks_mut(BLOCK * width));
                    for (nodes, reports) in blocks {
                        let codes = gather(nodes.iter().copied(), &mut buffer);
                        self.report(codes, reports, &mut stream);
                    }
                });
            return Ok(Reports { codes: reports, probabilities: None });
        }
        let pieces: Vec<(Vec<Self::Item>, Vec<f64>)> = codes
            .par_chunks(CHUNK)
            .enumerate()
            .map_init(Vec::new, |selected, (chunk, nodes)| {
                selection.select(streams, chunk, nodes.len(), selected);
                let mut stream = streams.stream(Purpose::Report, chunk as u64);
                let mut reports = vec![Self::Item::default(); selected.len() * width];
                let mut buffer = [0; BLOCK];
                let blocks = selected.chunks(BLOCK).zip(reports.chunks_mut(BLOCK * width));
                for (selected, reports) in blocks {
                    let nodes = selected.iter().map(|&node| nodes[usize::from(node)]);
                    let codes = gather(nodes, &mut buffer);
                    self.report(codes, reports, &mut stream);
                }
                (reports, rates(selection, chunk, selected))
            })
            .collect();
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
    /// [`Error::Report`] with the first of them; [`Error::LengthMismatch`] if the items are not a
    /// whole number of reports.
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
        let valid = |reports: &[Self::Item]| {
            reports.chunks_exact(width).fold(true, |valid, report| valid & self.valid(report))
        };
        if reports.par_chunks(CHUNK * width).all(valid) {
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
    /// As for [`check`](Self::check); [`Error::LengthMismatch`] if there are not as many
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
        let step = CHUNK * stretch(received);
        let parts: Vec<Part<Self::Counter>> = reports
            .par_chunks(step * width)
            .enumerate()
            .map(|(index, reports)| {
                let mut part = Part::new(self, rates.is_some());
                let rates = rates.map(|rates| &rates[index * step..]);
                part.add(self, reports, rates.unwrap_or_default());
                part
            })
            .collect();
        Ok(Part::finish(self, parts, rates.is_some()))
    }

    /// The tally of [`randomize`](Self::randomize), fused with it: the same streams give the same
    /// counts, and memory does not grow with the number of nodes.
    ///
    /// # Errors
    ///
    /// As for [`randomize`](Self::randomize).
    fn collect<C: Code, S: Streams>(
        &self,
        codes: &[C],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Tally> {
        selection.check_length(codes.len())?;
        let personal = selection.probabilities().is_some();
        let stretch = stretch(codes.len());
        let parts: Option<Vec<Part<Self::Counter>>> = codes
            .par_chunks(CHUNK * stretch)
            .enumerate()
            .map(|(index, nodes)| {
                let mut part = Part::new(self, personal);
                let mut scratch = Scratch::new(self);
                nodes
                    .chunks(CHUNK)
                    .zip(index * stretch..)
                    .all(|(nodes, chunk)| {
                        scratch.collect(self, nodes, selection, streams, chunk, &mut part)
                    })
                    .then_some(part)
            })
            .collect();
        let parts = parts.ok_or_else(|| outside("values", codes, self.domain()))?;
        Ok(Part::finish(self, parts, personal))
    }

    /// Which codes each report supports: one row of `ceil(k / 64)` words for each report, code `i`
    /// in bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    fn supports(&self, reports: &[Self::Item]) -> Result<Vec<u64>> {
        self.check(reports)?;
        let words = self.domain().len().div_ceil(64);
        let width = self.width();
        let mut bits = vec![0; reports.len() / width * words];
        bits.par_chunks_mut(words).zip(reports.par_chunks(width)).for_each(|(bits, report)| {
            self.supported(report, &mut |code| bits[code / 64] |= 1 << (code % 64));
        });
        Ok(bits)
    }
}

impl<T: Randomizer + ?Sized> FrequencyOracle for T {}

/// The codes of at most [`BLOCK`] nodes as numbers.
fn gather<C: Code>(nodes: impl Iterator<Item = C>, buffer: &mut [u64; BLOCK]) -> &[u64] {
    let mut length = 0;
    for (slot, node) in buffer.iter_mut().zip(nodes) {
        *slot = node.index();
        length += 1;
    }
    &buffer[..length]
}

/// The personal probabilities of the selected nodes of a chunk; none if all share one rate.
fn rates(selection: &Selection<'_>, chunk: usize, selected: &[u16]) -> Vec<f64> {
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
            weighted: personal.then(|| WeightedSums::zero(oracle.domain().len())),
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
    fn collect<O, C, S>(
        &mut self,
        oracle: &O,
        nodes: &[C],
        selection: &Selection<'_>,
        streams: &S,
        chunk: usize,
        part: &mut Part<O::Counter>,
    ) -> bool
    where
        O: Randomizer<Item = I> + ?Sized,
        C: Code,
        S: Streams,
    {
        if !all_inside(nodes, oracle.domain()) {
            return false;
        }
        let width = oracle.width();
        let mut stream = streams.stream(Purpose::Report, chunk as u64);
        let mut buffer = [0; BLOCK];
        if selection.is_everyone() {
            for nodes in nodes.chunks(BLOCK) {
                let reports = &mut self.reports[..nodes.len() * width];
                oracle.report(gather(nodes.iter().copied(), &mut buffer), reports, &mut stream);
                part.add(oracle, reports, &[]);
            }
            return true;
        }
        selection.select(streams, chunk, nodes.len(), &mut self.selected);
        for selected in self.selected.chunks(BLOCK) {
            let reports = &mut self.reports[..selected.len() * width];
            let codes = selected.iter().map(|&node| nodes[usize::from(node)]);
            oracle.report(gather(codes, &mut buffer), reports, &mut stream);
            part.add(oracle, reports, &rates(selection, chunk, selected));
        }
        true
    }
}
