//! Makes one report for each node that takes part.

use super::{DirectEncoding, Room};
use crate::frequency::codes::{all_inside, outside};
use crate::frequency::oracle::{BLOCK, rates};
use crate::frequency::{CHUNK, Code, ReportCode, Reports, Selection};
use crate::parallel::{self, chunk};
use crate::random::{Purpose, Streams};
use crate::{Error, Result};

impl DirectEncoding {
    /// Randomizes the code of every node that takes part.
    ///
    /// It runs on the current rayon pool. The result depends on `streams` alone, not on the number
    /// of threads.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if any node's code is outside the domain, whether it takes part
    /// or not; [`Error::LengthMismatch`] if there are not as many personal probabilities as codes;
    /// [`Error::DomainSize`] if the codes of the domain do not fit the type of the reports.
    ///
    /// ```
    /// use turnout_core::frequency::{DirectEncoding, Selection};
    /// use turnout_core::parameters::{DomainSize, Epsilon};
    /// use turnout_core::random::AesStreams;
    ///
    /// let oracle = DirectEncoding::new(Epsilon::new(2.0)?, DomainSize::new(4)?)?;
    /// let streams = AesStreams::from_operating_system()?;
    /// let reports = oracle.randomize::<u8, u8, _>(&[0, 1, 2, 3], &Selection::everyone(), &streams)?;
    /// assert_eq!(reports.codes.len(), 4);
    /// # Ok::<(), turnout_core::Error>(())
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
        let chunks = codes.len().div_ceil(CHUNK);
        let pieces = parallel::map_with(chunks, Vec::new, |selected, index| {
            let nodes = &codes[chunk(index, CHUNK, codes.len())];
            all_inside(nodes, self.domain).then(|| {
                selection.select(streams, index, nodes.len(), selected);
                let mut stream = streams.stream(Purpose::Report, index as u64);
                let mut reports = vec![O::default(); selected.len()];
                let mut room = Room::new();
                for (selected, reports) in selected.chunks(BLOCK).zip(reports.chunks_mut(BLOCK)) {
                    let codes = selected.iter().map(|&node| nodes[usize::from(node)].index());
                    self.report_in(&mut room, codes, reports, &mut stream, O::from_index);
                }
                (reports, rates(selection, index, selected))
            })
        });
        let pieces: Option<Vec<_>> = pieces.into_iter().collect();
        let pieces = pieces.ok_or_else(|| outside("values", codes, self.domain))?;
        let (reports, rates): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
        Ok(Reports {
            codes: reports.concat(),
            probabilities: selection.probabilities().map(|_| rates.concat()),
        })
    }

    fn randomize_everyone<C: Code, O: ReportCode, S: Streams>(
        &self,
        codes: &[C],
        streams: &S,
    ) -> Result<Reports<O>> {
        let mut reports = vec![O::default(); codes.len()];
        let inside = parallel::map_chunks(&mut reports, CHUNK, |chunk, reports| {
            let mut stream = streams.stream(Purpose::Report, chunk as u64);
            let mut room = Room::new();
            let blocks = codes[chunk * CHUNK..].chunks(BLOCK).zip(reports.chunks_mut(BLOCK));
            blocks.fold(true, |inside, (nodes, reports)| {
                let codes = nodes.iter().map(|node| node.index());
                self.report_in(&mut room, codes, reports, &mut stream, O::from_index);
                inside & all_inside(nodes, self.domain)
            })
        });
        if inside.into_iter().all(|inside| inside) {
            Ok(Reports { codes: reports, probabilities: None })
        } else {
            Err(outside("values", codes, self.domain))
        }
    }
}
