//! From values to sums: selection, randomization, addition.

use super::{Bounds, Dimensions, MeanSums};
use crate::frequency::{CHUNK, NodeProbabilities, ReportCode, Selection};
use crate::parallel::{self, chunk, stretch};
use crate::random::{Purpose, Streams, Words};
use crate::{Error, Result};

/// The reports of the nodes that took part, in the order of the nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanReports<O> {
    /// The cells, [`Mechanism::sampled`] for each report.
    pub cells: Vec<O>,
    /// The coordinate of each cell, in ascending order within a report, unless all coordinates are
    /// reported.
    pub coordinates: Option<Vec<u16>>,
    /// The participation probability of each reporting node, if every node has its own.
    pub probabilities: Option<Vec<f64>>,
}

/// How a mechanism for means randomizes the values of one node, and what follows for all nodes.
///
/// Values of `n` nodes with `d` coordinates are a slice of `n d` numbers, node by node. Everything
/// runs on the current rayon pool. The results depend on the streams alone, not on the number of
/// threads.
pub trait Mechanism: Sync {
    /// The bounds of the values.
    fn bounds(&self) -> Bounds;

    /// How many numbers a node holds.
    fn dimensions(&self) -> Dimensions;

    /// The number of cells of the grid, at most 2^32.
    fn cells(&self) -> u64;

    /// How many coordinates a report covers.
    fn sampled(&self) -> usize;

    /// The factor that makes `2 cell - (cells - 1)` an unbiased estimate of a reported coordinate,
    /// on the scale where the bounds are -1 and 1.
    fn scale(&self) -> f64;

    /// Makes the report of one node: a cell for each of [`sampled`](Self::sampled) coordinates.
    ///
    /// `coordinates` holds `0, 1, ...` if all are reported; otherwise it is filled.
    fn report<R: Words>(
        &self,
        values: &[f64],
        coordinates: &mut [u16],
        cells: &mut [u32],
        rng: &mut R,
    );

    /// Randomizes the values of every node that takes part.
    ///
    /// # Errors
    ///
    /// [`Error::OutsideBounds`] if a value of any node is outside the bounds, whether the node
    /// takes part or not; [`Error::LengthMismatch`] if values or probabilities have the wrong
    /// length; [`Error::DomainSize`] if the cells do not fit the type of the reports.
    fn randomize<O: ReportCode, S: Streams>(
        &self,
        values: &[f64],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<MeanReports<O>> {
        if self.cells() > O::RANGE {
            return Err(Error::DomainSize { value: self.cells(), maximum: O::RANGE });
        }
        check_length(self, values, selection)?;
        let sampling = self.sampled() < self.dimensions().len();
        let length = CHUNK * self.dimensions().len();
        let pieces = parallel::map(values.len().div_ceil(length), |index| {
            let (mut all, mut places) = (Vec::new(), Vec::new());
            let mut rates = Vec::new();
            let nodes = &values[chunk(index, length, values.len())];
            let inside =
                visit(self, nodes, selection, streams, index, |coordinates, cells, rate| {
                    all.extend(cells.iter().map(|&cell| O::from_index(cell.into())));
                    if sampling {
                        places.extend_from_slice(coordinates);
                    }
                    rates.extend(rate);
                });
            inside.then_some((all, places, rates))
        });
        let pieces: Option<Vec<_>> = pieces.into_iter().collect();
        let pieces = pieces.ok_or_else(|| self.bounds().outside(values, self.dimensions()))?;
        let mut reports = MeanReports {
            cells: Vec::new(),
            coordinates: sampling.then(Vec::new),
            probabilities: selection.probabilities().map(|_| Vec::new()),
        };
        for (cells, places, rates) in pieces {
            reports.cells.extend(cells);
            reports.coordinates.iter_mut().for_each(|all| all.extend(&places));
            reports.probabilities.iter_mut().for_each(|all| all.extend(&rates));
        }
        Ok(reports)
    }

    /// Randomizes and adds up in one step. The same streams give the same sums as
    /// [`randomize`](Self::randomize) and [`tally`](Self::tally), and memory does not grow with the
    /// number of nodes.
    ///
    /// # Errors
    ///
    /// Those of [`randomize`](Self::randomize).
    fn collect<S: Streams>(
        &self,
        values: &[f64],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<MeanSums> {
        check_length(self, values, selection)?;
        let weighted = selection.probabilities().is_some();
        let zero = || MeanSums::zero(self.dimensions().len(), weighted);
        let length = CHUNK * self.dimensions().len();
        let chunks = values.len().div_ceil(length);
        let stretch = stretch(chunks);
        let parts = parallel::map(chunks.div_ceil(stretch), |index| {
            let mut sums = zero();
            chunk(index, stretch, chunks)
                .all(|index| {
                    let add = |coordinates: &[u16], cells: &[u32], rate| {
                        let places = coordinates.iter().map(|&place| usize::from(place));
                        sums.add(places.zip(cells.iter().map(|&cell| cell.into())), rate);
                    };
                    let nodes = &values[chunk(index, length, values.len())];
                    visit(self, nodes, selection, streams, index, add)
                })
                .then_some(sums)
        });
        // The sums are whole numbers: the order does not matter.
        let merge = |one: MeanSums, other: Option<MeanSums>| Some(one.merge(&other?));
        parts
            .into_iter()
            .try_fold(zero(), merge)
            .ok_or_else(|| self.bounds().outside(values, self.dimensions()))
    }

    /// Adds up reports.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if a cell or a coordinate does not exist;
    /// [`Error::LengthMismatch`] if the lengths of cells, coordinates and probabilities do not fit
    /// together; [`Error::Accounting`] if the coordinates of a report do not ascend.
    fn tally<O: ReportCode>(
        &self,
        cells: &[O],
        coordinates: Option<&[u16]>,
        probabilities: Option<NodeProbabilities<'_>>,
    ) -> Result<MeanSums> {
        let (d, k) = (self.dimensions().len(), self.sampled());
        let all: Vec<u16> = (0..=u16::MAX).take(d).collect();
        check_reports(self, cells, coordinates, probabilities)?;
        // Where all coordinates are reported, none may be named: no list is an empty one.
        let coordinates = coordinates.filter(|places| !places.is_empty());
        let weighted = probabilities.is_some();
        let zero = || MeanSums::zero(d, weighted);
        let step = CHUNK * stretch(cells.len() / k / CHUNK);
        let parts = parallel::map(cells.len().div_ceil(step * k), |part| {
            let mut sums = zero();
            let cells = cells[chunk(part, step * k, cells.len())].chunks(k);
            for (index, cells) in (part * step..).zip(cells) {
                let places = coordinates.map_or(&*all, |places| &places[index * k..][..k]);
                let places = places.iter().map(|&place| usize::from(place));
                let rate = probabilities.map(|rates| rates.get()[index]);
                sums.add(places.zip(cells.iter().map(|cell| cell.index())), rate);
            }
            sums
        });
        Ok(parts.into_iter().fold(zero(), |one, other| one.merge(&other)))
    }
}

/// Checks that values are those of whole nodes, as many as there are probabilities.
fn check_length<M: Mechanism + ?Sized>(
    mechanism: &M,
    values: &[f64],
    selection: &Selection<'_>,
) -> Result<()> {
    let d = mechanism.dimensions().len();
    if !values.len().is_multiple_of(d) {
        return Err(Error::LengthMismatch {
            left: "values",
            left_length: values.len(),
            right: "whole nodes",
            right_length: values.len() / d * d,
        });
    }
    selection.check_length(values.len() / d)
}

/// Randomizes the nodes of one chunk that take part; says no if a value is outside the bounds.
fn visit<M: Mechanism + ?Sized, S: Streams>(
    mechanism: &M,
    nodes: &[f64],
    selection: &Selection<'_>,
    streams: &S,
    chunk: usize,
    mut take: impl FnMut(&[u16], &[u32], Option<f64>),
) -> bool {
    if !mechanism.bounds().enclose(nodes) {
        return false;
    }
    let d = mechanism.dimensions().len();
    let mut selected = Vec::new();
    selection.select(streams, chunk, nodes.len() / d, &mut selected);
    let rates = selection.probabilities().map(|rates| &rates.get()[chunk * CHUNK..]);
    let mut stream = streams.stream(Purpose::Report, chunk as u64);
    let mut cells = vec![0; mechanism.sampled()];
    let mut coordinates: Vec<u16> = (0..=u16::MAX).take(mechanism.sampled()).collect();
    for node in selected.into_iter().map(usize::from) {
        let values = &nodes[node * d..][..d];
        mechanism.report(values, &mut coordinates, &mut cells, &mut stream);
        take(&coordinates, &cells, rates.map(|rates| rates[node]));
    }
    true
}

/// Checks reports that arrived from elsewhere.
fn check_reports<M: Mechanism + ?Sized, O: ReportCode>(
    mechanism: &M,
    cells: &[O],
    coordinates: Option<&[u16]>,
    probabilities: Option<NodeProbabilities<'_>>,
) -> Result<()> {
    let (d, k) = (mechanism.dimensions().len(), mechanism.sampled());
    let mismatch = |left, left_length, right_length| Error::LengthMismatch {
        left,
        left_length,
        right: "cells",
        right_length,
    };
    let expected = if k < d { cells.len() } else { 0 };
    let places = coordinates.unwrap_or_default();
    if places.len() != expected {
        return Err(mismatch("coordinates", places.len(), expected));
    }
    let reports = cells.len() / k;
    if reports * k != cells.len() || probabilities.is_some_and(|all| all.get().len() != reports) {
        let length = probabilities.map_or(reports, |all| all.get().len());
        return Err(mismatch("probabilities", length * k, cells.len()));
    }
    check_codes("cells", cells, mechanism.cells())?;
    check_codes("coordinates", places, d as u64)?;
    for (report, own) in places.chunks(k).enumerate() {
        if let Some(first) = own.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(Error::Entry {
                argument: "coordinates",
                index: report * k + first + 1,
                expected: "above the one before it in its report",
            });
        }
    }
    Ok(())
}

fn check_codes<O: ReportCode>(argument: &'static str, codes: &[O], size: u64) -> Result<()> {
    let outside = |code: &O| code.index() >= size;
    match codes.iter().position(outside) {
        None => Ok(()),
        Some(index) => Err(Error::CodeOutsideDomain {
            argument,
            index,
            domain_size: size,
            offenders: codes.iter().filter(|code| outside(code)).count(),
        }),
    }
}
