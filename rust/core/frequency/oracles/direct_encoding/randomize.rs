//! One report for each node that takes part.

use rayon::prelude::*;

use super::DirectEncoding;
use crate::frequency::codes::{all_inside, outside};
use crate::frequency::oracle::BLOCK;
use crate::frequency::{CHUNK, Code, ReportCode, Reports, Selection};
use crate::random::{Purpose, Streams};
use crate::{Error, Result};

impl DirectEncoding {
    /// Randomizes the code of every node that takes part.
    ///
    /// Runs on the current rayon pool. The result depends on `streams` alone, not on the number of
    /// threads.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if any node's code is outside the domain, whether it takes part
    /// or not; [`Error::LengthMismatch`] if there are not as many personal probabilities as codes;
    /// [`Error::DomainSize`] if the codes of the domain do not fit the type of the reports.
    ///
    /// ```
    /// use turnout::frequency::{DirectEncoding, Selection};
    /// use turnout::parameters::{DomainSize, Epsilon};
    /// use turnout::random::AesStreams;
    ///
    /// let oracle = DirectEncoding::new(Epsilon::new(2.0)?, DomainSize::new(4)?)?;
    /// let streams = AesStreams::from_operating_system()?;
    /// let reports = oracle.randomize::<u8, u8, _>(&[0, 1, 2, 3], &Selection::everyone(), &streams)?;
    /// assert_eq!(reports.codes.len(), 4);
    /// # Ok::<(), turnout::Error>(())
    /// ```
    pub fn randomize<C: Code, O: ReportCode, S: Streams>(
        &self,
        codes: &[C],
        selection: &Selection<'_>,
        streams: &S,
    ) -> Result<Reports<O>> {
        selection.check_length(codes.len())?;
        if self.domain.get() > O::RANGE {
            return Err(Error::DomainSize { value: self.domain.get(), maximum: O::RANGE });
        }
        if selection.is_everyone() {
            return self.randomize_everyone(codes, streams);
        }
        let pieces: Option<Vec<Vec<O>>> = codes
            .par_chunks(CHUNK)
            .enumerate()
            .map_init(Vec::new, |selected, (chunk, nodes)| {
                all_inside(nodes, self.domain).then(|| {
                    selection.select(streams, chunk, nodes.len(), selected);
                    let mut stream = streams.stream(Purpose::Report, chunk as u64);
                    let mut reports = vec![O::default(); selected.len()];
                    for (selected, reports) in selected.chunks(BLOCK).zip(reports.chunks_mut(BLOCK))
                    {
                        let codes = selected.iter().map(|&node| nodes[usize::from(node)].index());
                        self.report(codes, reports, &mut stream, O::from_index);
                    }
                    reports
                })
            })
            .collect();
        let pieces = pieces.ok_or_else(|| outside("values", codes, self.domain))?;
        let probabilities = selection.probabilities().map(|probabilities| {
            let chosen: Vec<Vec<f64>> = probabilities
                .get()
                .par_chunks(CHUNK)
                .enumerate()
                .map_init(Vec::new, |selected, (chunk, nodes)| {
                    // The same stream as above, so the same nodes.
                    selection.select(streams, chunk, nodes.len(), selected);
                    selected.iter().map(|&position| nodes[usize::from(position)]).collect()
                })
                .collect();
            chosen.concat()
        });
        Ok(Reports { codes: pieces.concat(), probabilities })
    }

    fn randomize_everyone<C: Code, O: ReportCode, S: Streams>(
        &self,
        codes: &[C],
        streams: &S,
    ) -> Result<Reports<O>> {
        let mut reports = vec![O::default(); codes.len()];
        let inside = reports
            .par_chunks_mut(CHUNK)
            .zip(codes.par_chunks(CHUNK))
            .enumerate()
            .map(|(chunk, (reports, nodes))| {
                let mut stream = streams.stream(Purpose::Report, chunk as u64);
                let blocks = nodes.chunks(BLOCK).zip(reports.chunks_mut(BLOCK));
                blocks.fold(true, |inside, (nodes, reports)| {
                    let codes = nodes.iter().map(|node| node.index());
                    self.report(codes, reports, &mut stream, O::from_index);
                    inside & all_inside(nodes, self.domain)
                })
            })
            .reduce(|| true, |one, other| one & other);
        if inside {
            Ok(Reports { codes: reports, probabilities: None })
        } else {
            Err(outside("values", codes, self.domain))
        }
    }
}
