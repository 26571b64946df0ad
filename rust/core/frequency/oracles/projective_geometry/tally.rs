//! Counts how many reports each hyperplane contains.
//!
//! The dynamic programme of the paper computes sums over hyperplanes from numbers of reports. Here
//! it uses exact integers, in the order of the numbering. A hyperplane with its pivot in place `m`
//! does not look below `m`, so reports that agree from there up are added first. Of the places
//! above the pivot, one after the other is summed away. For each coordinate `a` that the hyperplane
//! may have there, reports with coordinate `b` move on to the remaining target less `a b`. All
//! hyperplanes together cost about `K r t` additions; one by one they would cost `K^2 / r`.

use super::geometry::Geometry;
use super::position;
use crate::parallel;

/// Work that is worth a thread of its own, in additions.
const WORTH: usize = 1 << 15;

impl Geometry {
    /// The number of reports that support each of the first `size` codes, from the number of reports
    /// of each point.
    pub(super) fn support(&self, histogram: &[u64], size: usize) -> Vec<u64> {
        let mut support = vec![0; size];
        let mut prefixes = histogram.to_vec();
        let mut flat = 0;
        for pivot in 0..self.dimensions() {
            let above = self.dimensions() - 1 - pivot;
            let start = position(self.heads[above]).min(size);
            let end = position(self.heads[above + 1]).min(size);
            if start < end {
                let sums = self.sums(&prefixes[1..], above, flat, end - start);
                support[start..end].copy_from_slice(&sums);
            }
            // The next pivot is one place higher: what differs below it only goes together.
            flat += prefixes[0];
            let r = position(self.field);
            prefixes = prefixes[1..].chunks(r).map(|same| same.iter().sum()).collect();
        }
        support
    }

    /// The sums for the hyperplanes with the first `count` values of the `places` coordinates above
    /// the pivot.
    ///
    /// `table` has a row for each point of `places` coordinates and in it, for each value of the
    /// pivot's coordinate, the number of reports; `constant` reports are in all hyperplanes.
    fn sums(&self, table: &[u64], places: usize, constant: u64, count: usize) -> Vec<u64> {
        let r = position(self.field);
        if places == 0 {
            return vec![constant; count.min(1)];
        }
        let first = |value: usize| constant + table[(r - value) % r];
        if places == 1 {
            return (0..count.min(r)).map(first).collect();
        }
        if places == 2 && count < r * r / 8 {
            // Few of the last values are needed: one by one.
            let one = |code: usize| {
                let (value, last) = (code % r, code / r);
                let rows = table[r..].chunks_exact(r).enumerate();
                let cells = rows.map(|(b, row)| row[(2 * r * r - last - value * b) % r]);
                first(value) + cells.sum::<u64>()
            };
            let mut sums = vec![0; count];
            let length = (WORTH / r).max(1);
            parallel::for_each_chunk(&mut sums, length, |piece, sums| {
                for (code, sum) in (piece * length..).zip(sums) {
                    *sum = one(code);
                }
            });
            return sums;
        }
        let child = |value: usize| {
            let left = (count + r - 1 - value) / r;
            if left == 0 {
                return Vec::new();
            }
            let mut sums = vec![0; (table.len() - r) / r];
            for (sums, rows) in sums.chunks_exact_mut(r).zip(table[r..].chunks_exact(r * r)) {
                for (b, row) in rows.chunks_exact(r).enumerate() {
                    let (start, end) = row.split_at(r - value * b % r);
                    let (low, high) = sums.split_at_mut(end.len());
                    low.iter_mut().zip(end).for_each(|(sum, term)| *sum += term);
                    high.iter_mut().zip(start).for_each(|(sum, term)| *sum += term);
                }
            }
            self.sums(&sums, places - 1, first(value), left)
        };
        let children: Vec<Vec<u64>> = if table.len() >= WORTH {
            parallel::map(r, child)
        } else {
            (0..r).map(child).collect()
        };
        (0..count).map(|code| children[code % r][code / r]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Result};

    #[test]
    fn sums_are_those_over_the_points_of_each_hyperplane() -> Result<()> {
        for (field, size) in [
            (2, 3),
            (2, 30),
            (2, 127),
            (3, 4),
            (3, 40),
            (3, 300),
            (5, 6),
            (5, 31),
            (5, 100),
            (5, 150),
            (7, 300),
            (11, 12),
            (11, 100),
            (11, 133),
            (31, 100),
            (31, 900),
        ] {
            let space =
                Geometry::new(field, size).ok_or(Error::CountOverflow { argument: "points" })?;
            let histogram: Vec<u64> = (0..space.points()).map(|point| point * point % 91).collect();
            let support = space.support(&histogram, position(size));
            for (code, &support) in (0..size).zip(&support) {
                let points =
                    (0..).zip(&histogram).filter(|&(point, _)| space.contains(code, point));
                let expected: u64 = points.map(|(_, count)| count).sum();
                assert_eq!(support, expected, "{field} {size} {code}");
            }
        }
        Ok(())
    }
}
