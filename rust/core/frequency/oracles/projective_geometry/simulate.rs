//! Draws the tally of any number of nodes at once.
//!
//! It runs the tally's dynamic programme backwards. Where the programme adds up the reports of many
//! points, multinomial draws spread nodes over the points, together if they have the same left to
//! draw.

use super::geometry::Geometry;
use super::{ProjectiveGeometryResponse, ReportCode, position};
use crate::Result;
use crate::frequency::Tally;
use crate::frequency::shared::simulation::{nodes, present};
use crate::parallel;
use crate::parameters::Probability;
use crate::random::{Purpose, Streams, Words, binomial, multinomial_uniform};

/// Streams of what follows the draw of who takes part, one for each group of each pivot.
const SPREAD: u64 = 1 << 40;

/// In how many parts the nodes of one pivot are drawn.
const GROUPS: usize = 8;

impl<O: ReportCode> ProjectiveGeometryResponse<O> {
    /// Draws a tally with the law of [`collect`](crate::frequency::FrequencyOracle::collect).
    /// `true_counts[i]` nodes hold code `i`, and each takes part with probability `rate`.
    ///
    /// The joint law is exact. Of the nodes that hold `i`, a binomial number takes part. Of those,
    /// a binomial number reports a uniform point of the hyperplane, and all others report a uniform
    /// point of the space. The points are then drawn place by place; nodes that need the same in
    /// the remaining places go on together. That takes about `K r t` draws at most, for any number
    /// of nodes.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if there is not one count for each
    /// code; [`Error::CountOverflow`](crate::Error::CountOverflow) if the counts add up to more than
    /// 64 bits hold.
    ///
    /// ```
    /// use turnout_core::frequency::ProjectiveGeometryResponse;
    /// use turnout_core::parameters::{DomainSize, Epsilon, Probability};
    /// use turnout_core::random::AesStreams;
    ///
    /// let (epsilon, domain) = (Epsilon::new(1.0)?, DomainSize::new(3)?);
    /// let oracle = ProjectiveGeometryResponse::<u8>::new(epsilon, domain, None)?;
    /// let held = [400_000_000_000, 600_000_000_000, 0];
    /// let tally = oracle.simulate(&held, Probability::ONE, &AesStreams::from_seed(1))?;
    /// assert_eq!(tally.received, 1_000_000_000_000);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn simulate<S: Streams>(
        &self,
        true_counts: &[u64],
        rate: Probability,
        streams: &S,
    ) -> Result<Tally> {
        nodes(true_counts, self.domain)?;
        let drawn = present(true_counts, rate, self.keep_probability(), streams);
        let received = drawn.iter().flatten().sum();
        let histogram = self.space.histogram(&drawn, streams);
        let support = self.space.support(&histogram, self.domain.len());
        Ok(Tally { support, received, weighted: None })
    }
}

impl Geometry {
    /// The number of reports of each point, given how many nodes of each code report a uniform point
    /// of the hyperplane, and how many a uniform point of the space.
    fn histogram<S: Streams>(&self, drawn: &[[u64; 2]], streams: &S) -> Vec<u64> {
        let (dimensions, r) = (self.dimensions(), position(self.field));
        let mut stream = streams.stream(Purpose::Simulation, SPREAD);
        // Reports that are zero in all places from the current one up, uniform over the others.
        let mut flat: u64 = drawn.iter().map(|[_, everywhere]| everywhere).sum();
        let mut prefixes: Vec<u64> = Vec::new();
        for pivot in (0..dimensions).rev() {
            // One place lower: every report draws its coordinate there.
            let leading = ratio(self.powers[pivot], self.heads[pivot + 1]);
            let starting = binomial(flat, leading, &mut stream);
            flat -= starting;
            let mut longer = vec![starting; 1];
            longer.resize(position(self.heads[dimensions - pivot]), 0);
            for (cells, &reports) in longer[1..].chunks_exact_mut(r).zip(&prefixes) {
                multinomial_uniform(reports, cells, &mut stream);
            }
            prefixes = longer;
            // And those whose hyperplane has its pivot there join them.
            let above = dimensions - 1 - pivot;
            let start = position(self.heads[above]).min(drawn.len());
            let end = position(self.heads[above + 1]).min(drawn.len());
            let all_flat = ratio(self.heads[pivot], self.hyperplane());
            let mut rest = Vec::with_capacity(end - start);
            for [own, _] in &drawn[start..end] {
                let below = binomial(*own, all_flat, &mut stream);
                flat += below;
                rest.push(own - below);
            }
            if above > 0 {
                self.join(&rest, above, &mut prefixes[1..], streams, pivot as u64);
            }
        }
        prefixes
    }

    /// Adds the nodes of one pivot, in parallel.
    fn join<S: Streams>(
        &self,
        counts: &[u64],
        places: usize,
        table: &mut [u64],
        streams: &S,
        pivot: u64,
    ) {
        let r = position(self.field);
        let groups = if table.len() > 1 << 12 { GROUPS.min(r) } else { 1 };
        let parts = parallel::map(groups, |group| {
            let index = SPREAD + ((pivot + 1) << 8) + group as u64;
            let mut stream = streams.stream(Purpose::Simulation, index);
            let mut part = vec![0; table.len()];
            let values = (group..r).step_by(groups);
            self.spread(counts, places, &mut part, values, &mut stream);
            part
        });
        for part in parts {
            table.iter_mut().zip(part).for_each(|(sum, term)| *sum += term);
        }
    }

    /// Draws the `places` coordinates above the pivot and with them the pivot's own, for nodes that
    /// are not zero in all of them: `counts` by the coordinates of their hyperplanes, of which the
    /// lowest is one of `values`. Adds to a table with a row for each point and a cell for each value
    /// of the pivot's coordinate.
    fn spread<R: Words>(
        &self,
        counts: &[u64],
        places: usize,
        table: &mut [u64],
        values: impl Iterator<Item = usize>,
        rng: &mut R,
    ) {
        let r = position(self.field);
        let alone = ratio(1, self.heads[places]);
        let mut cells = vec![0; r];
        for value in values {
            let mut rest: Vec<u64> = counts.iter().skip(value).step_by(r).copied().collect();
            // Those that are zero in all higher places have a one in the lowest.
            for count in &mut rest {
                let only = binomial(*count, alone, rng);
                table[(r - value) % r] += only;
                *count -= only;
            }
            if rest.iter().all(|&count| count == 0) {
                continue;
            }
            let mut higher = vec![0; (table.len() - r) / r];
            self.spread(&rest, places - 1, &mut higher, 0..r, rng);
            let rows = table[r..].chunks_exact_mut(r * r).zip(higher.chunks_exact(r));
            for (rows, higher) in rows {
                for (wanted, &reports) in higher.iter().enumerate().filter(|(_, count)| **count > 0)
                {
                    cells.fill(0);
                    multinomial_uniform(reports, &mut cells, rng);
                    for (b, (row, &cell)) in rows.chunks_exact_mut(r).zip(&cells).enumerate() {
                        row[(wanted + r - value * b % r) % r] += cell;
                    }
                }
            }
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::random::AesStreams;

    #[test]
    fn the_points_of_a_hyperplane_are_equally_likely_and_no_others_occur() -> Result<()> {
        for (field, size) in
            [(2, 7), (2, 31), (3, 13), (3, 40), (5, 6), (5, 31), (5, 156), (17, 307)]
        {
            let space =
                Geometry::new(field, size).ok_or(Error::CountOverflow { argument: "points" })?;
            for code in [0, 1, 2, size / 2, size - 1] {
                let mut drawn = vec![[0; 2]; position(size)];
                let each = 1_000_000_u64;
                drawn[position(code)][0] = each * space.hyperplane();
                let histogram = space.histogram(&drawn, &AesStreams::from_seed(code));
                for (point, &count) in (0..).zip(&histogram) {
                    if space.contains(code, point) {
                        // 6.5 standard deviations.
                        assert!(count.abs_diff(each) < 6500, "{field} {code} {point}: {count}");
                    } else {
                        assert_eq!(count, 0, "{field} {code} {point}");
                    }
                }
            }
            let drawn = vec![[0, 1_000_000]; position(size)];
            let histogram = space.histogram(&drawn, &AesStreams::from_seed(1));
            let each = 1e6 * size as f64 / space.points() as f64;
            let far =
                histogram.iter().any(|&count| (count as f64 - each).abs() > 6.5 * each.sqrt());
            assert!(!far, "{field}: {histogram:?}");
        }
        Ok(())
    }
}
