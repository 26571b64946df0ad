//! Counts reports that are one integer.

use crate::frequency::Code;

/// Above this many kinds of report one lane is used: runs are rare and cache is dear.
const MANY: usize = 4096;
const LANES: usize = 4;

/// The number of reports of each kind. Neighbouring reports are counted in different lanes, so that
/// runs of one kind do not wait for each other.
#[derive(Debug)]
pub struct Histogram {
    lanes: Vec<u64>,
    size: usize,
}

impl Histogram {
    /// A histogram of no reports.
    pub(in crate::frequency) fn new(size: usize) -> Self {
        let lanes = if size > MANY { 1 } else { LANES };
        Self { lanes: vec![0; size * lanes], size }
    }

    /// Counts reports that were checked to be below the size.
    #[inline]
    pub(in crate::frequency) fn add<C: Code>(&mut self, reports: &[C]) {
        if self.size > MANY {
            for report in reports {
                self.lanes[position(report.index())] += 1;
            }
            return;
        }
        let (zero, rest) = self.lanes.split_at_mut(self.size);
        let (one, rest) = rest.split_at_mut(self.size);
        let (two, three) = rest.split_at_mut(self.size);
        let (quads, rest) = reports.as_chunks::<LANES>();
        for report in rest {
            zero[position(report.index())] += 1;
        }
        for [a, b, c, d] in quads {
            zero[position(a.index())] += 1;
            one[position(b.index())] += 1;
            two[position(c.index())] += 1;
            three[position(d.index())] += 1;
        }
    }

    pub(in crate::frequency) fn merge(mut self, other: &Self) -> Self {
        for (sum, term) in self.lanes.iter_mut().zip(&other.lanes) {
            *sum += term;
        }
        self
    }

    pub(in crate::frequency) fn finish(self) -> Vec<u64> {
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

/// A checked report as a position in a slice.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a report is below 2^32")]
pub(in crate::frequency) fn position(index: u64) -> usize {
    index as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_add_up() {
        for size in [3, MANY, MANY + 1] {
            let mut parts = [Histogram::new(size), Histogram::new(size)];
            let reports: Vec<u32> = (0..1001).map(|index| index * index % 3).collect();
            parts[0].add(&reports[..500]);
            parts[1].add(&reports[500..]);
            let [one, other] = parts;
            let counts = one.merge(&other).finish();
            assert_eq!(counts.len(), size);
            assert_eq!(counts[..3], [334, 667, 0]);
        }
    }
}
