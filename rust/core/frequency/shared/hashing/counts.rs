//! Counts of 32 bits that grow to 64 bits before they overflow.

/// Counts of many cells: fast to add to, and right for any number of reports.
#[derive(Debug, Clone)]
pub struct Counts {
    /// What was added since the last time that `totals` took it.
    lanes: Vec<u32>,
    /// Empty until the lanes could have overflowed.
    totals: Vec<u64>,
    /// No lane is above this.
    most: u64,
}

/// No more reports than this are added at once.
const AT_ONCE: usize = 1 << 16;

/// Reports in pieces that [`Counts::lanes`] makes room for.
pub(in crate::frequency) fn at_once<T>(reports: &[T], width: usize) -> core::slice::Chunks<'_, T> {
    reports.chunks(AT_ONCE * width.max(1))
}

impl Counts {
    /// Zero for every cell.
    pub(in crate::frequency) fn new(cells: usize) -> Self {
        Self { lanes: vec![0; cells], totals: Vec::new(), most: 0 }
    }

    /// The cells, to which `reports` reports will add one each at most; at most 2^16 at once.
    pub(in crate::frequency) fn lanes(&mut self, reports: usize) -> &mut [u32] {
        self.make_room(reports as u64);
        &mut self.lanes
    }

    fn make_room(&mut self, reports: u64) {
        if self.most + reports > u64::from(u32::MAX) {
            self.widen();
        }
        self.most += reports;
    }

    fn widen(&mut self) {
        self.totals.resize(self.lanes.len(), 0);
        for (total, lane) in self.totals.iter_mut().zip(&mut self.lanes) {
            *total += u64::from(core::mem::take(lane));
        }
        self.most = 0;
    }

    pub(in crate::frequency) fn merge(mut self, mut other: Self) -> Self {
        if self.most + other.most > u64::from(u32::MAX) {
            self.widen();
            other.widen();
        }
        self.most += other.most;
        for (sum, term) in self.lanes.iter_mut().zip(&other.lanes) {
            *sum += term;
        }
        if self.totals.is_empty() {
            self.totals = other.totals;
        } else {
            for (sum, term) in self.totals.iter_mut().zip(&other.totals) {
                *sum += term;
            }
        }
        self
    }

    pub(in crate::frequency) fn finish(mut self) -> Vec<u64> {
        self.widen();
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_more_reports_than_a_lane_holds() {
        let nearly = u64::from(u32::MAX) - 10;
        let full = |cell: u32| {
            let mut counts = Counts::new(3);
            counts.make_room(nearly);
            counts.lanes[1] = cell;
            counts
        };
        let mut counts = full(u32::MAX - 10);
        counts.lanes(11)[1] += 11;
        assert_eq!(counts.clone().finish(), [0, u64::from(u32::MAX) + 1, 0]);
        let merged = counts.merge(full(7)).merge(full(u32::MAX - 10)).merge(Counts::new(3));
        assert_eq!(merged.finish(), [0, 2 * u64::from(u32::MAX) - 2, 0]);
        assert_eq!(full(5).merge(Counts::new(3)).finish(), [0, 5, 0]);
        assert_eq!(Counts::new(3).merge(full(5)).merge(full(6)).finish(), [0, 11, 0]);
    }
}
