//! Points and hyperplanes of a projective space over a prime field, as integers.
//!
//! A point is a vector up to a factor. Its *form* is the multiple whose highest non-zero coordinate
//! is one, read as a number in base `r`. Forms with this one in place `e` are the numbers from
//! `r^e` to `2 r^e - 1`. Points are numbered in the order of their forms, so those with the one in
//! place `e` start at `h(e) = (r^e - 1) / (r - 1)`. So the points that are zero in all but the
//! lowest `e` places are the first `h(e)`. The points that agree with point `i` in all but the
//! lowest place are `r i + 1` to `r i + r`.
//!
//! A hyperplane is a vector up to a factor too, but its *lowest* non-zero coordinate is one. For
//! hyperplane `x` with `h(p) <= x < h(p + 1)`, this one is in place `t - 1 - p`, the pivot. The `p`
//! coordinates above it are the digits of `x - h(p)`. Then a point's coordinate in the pivot
//! follows from its other coordinates without a division.

use crate::primality::is_prime;

/// The projective space of `h(t)` points over the field of `r` elements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Geometry {
    /// The size of the field: `r`.
    pub(super) field: u64,
    /// The powers of `r`, from 0 to `t`.
    pub(super) powers: Vec<u64>,
    /// `h`, from 0 to `t`.
    pub(super) heads: Vec<u64>,
}

/// Spaces have fewer points than this.
pub(super) const LIMIT: u64 = 1 << 31;

impl Geometry {
    /// The smallest space of at least two dimensions with `size` points or more over a field, if it
    /// has fewer than [`LIMIT`].
    pub(super) fn new(field: u64, size: u64) -> Option<Self> {
        let mut powers = vec![1];
        let mut heads = vec![0];
        let (mut power, mut head) = (1_u64, 0_u64);
        while heads.len() < 3 || head < size {
            head = head.checked_add(power)?;
            if head >= LIMIT {
                return None;
            }
            power = power.checked_mul(field)?;
            powers.push(power);
            heads.push(head);
        }
        Some(Self { field, powers, heads })
    }

    /// The number of coordinates: `t`.
    pub(super) const fn dimensions(&self) -> usize {
        self.heads.len() - 1
    }

    /// The number of points: `K = h(t)`.
    pub(super) fn points(&self) -> u64 {
        self.heads[self.dimensions()]
    }

    /// The number of points of a hyperplane: `h(t - 1)`.
    pub(super) fn hyperplane(&self) -> u64 {
        self.heads[self.dimensions() - 1]
    }

    /// The number of points that two hyperplanes have in common: `h(t - 2)`.
    pub(super) fn common(&self) -> u64 {
        self.heads[self.dimensions() - 2]
    }

    /// `p` with `h(p) <= index < h(p + 1)`.
    fn places(&self, index: u64) -> usize {
        self.heads.iter().filter(|&&head| head <= index).count() - 1
    }

    /// Whether hyperplane `code` contains `point`.
    pub(super) fn contains(&self, code: u64, point: u64) -> bool {
        let (above, lead) = (self.places(code), self.places(point));
        let mut vector = (code - self.heads[above]) * self.field + 1;
        let mut form = point - self.heads[lead] + self.powers[lead];
        form /= self.powers[self.dimensions() - 1 - above];
        let mut product = 0;
        while vector > 0 && form > 0 {
            product += (vector % self.field) * (form % self.field);
            vector /= self.field;
            form /= self.field;
        }
        product.is_multiple_of(self.field)
    }

    /// `n (p - q)^2` times the variance of the estimate of a rare code's frequency, over `q (1 -
    /// q)`, for a likelihood ratio of `ratio`: what a choice of the field is judged by.
    fn variance(&self, ratio: f64) -> f64 {
        let (points, hyperplane) = (self.points() as f64, self.hyperplane() as f64);
        let common = self.common() as f64;
        let total = hyperplane * ratio + points - hyperplane;
        let own = hyperplane * ratio / total;
        let other = (common * ratio + hyperplane - common) / total;
        other * (1.0 - other) / ((own - other) * (own - other))
    }

    /// The space with the smallest variance for a likelihood ratio, of those with at least `size`
    /// points and at most `2^20` or 16 times `size`, whichever is more; the smaller one of equals.
    pub(super) fn best(ratio: f64, size: u64) -> Option<Self> {
        let most = size.saturating_mul(16).max(1 << 20);
        // A plane over a larger field has too many points, and of the lines the shortest is best.
        let line = (size.max(3) - 1..LIMIT).find(|&field| is_prime(field));
        let fields = (2..=most.isqrt()).filter(|&field| is_prime(field)).chain(line);
        let mut best: Option<(f64, Self)> = None;
        for space in fields.filter_map(|field| Self::new(field, size)) {
            let variance = space.variance(ratio);
            let better = best.as_ref().is_none_or(|(least, _)| variance < *least);
            if better && space.points() <= most {
                best = Some((variance, space));
            }
        }
        best.map(|(_, space)| space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Result};

    #[test]
    fn hyperplanes_have_as_many_points_as_they_must_and_any_two_meet_in_as_many() -> Result<()> {
        for (field, size) in [(2, 2), (2, 7), (2, 8), (3, 13), (3, 40), (5, 6), (5, 31), (7, 57)] {
            let space =
                Geometry::new(field, size).ok_or(Error::CountOverflow { argument: "points" })?;
            assert!(space.points() >= size);
            let planes: Vec<Vec<bool>> = (0..space.points())
                .map(|code| (0..space.points()).map(|point| space.contains(code, point)).collect())
                .collect();
            for (code, plane) in planes.iter().enumerate() {
                let points = plane.iter().filter(|&&inside| inside).count() as u64;
                assert_eq!(points, space.hyperplane());
                for other in &planes[..code] {
                    let common = plane.iter().zip(other).filter(|(one, two)| **one && **two);
                    assert_eq!(common.count() as u64, space.common());
                }
            }
        }
        Ok(())
    }

    #[test]
    fn the_best_field_is_next_to_e_to_the_epsilon_and_one_for_large_domains() {
        for (epsilon, size, fields) in [
            (0.5_f64, 1000, vec![2, 3]),
            (1.0, 1000, vec![3, 5]),
            (2.0, 100_000, vec![7]),
            (4.0, 1000, vec![53, 59]),
            (8.0, 100, vec![101]),
            (42.0, 100_000, vec![100_003]),
        ] {
            let space = Geometry::best(epsilon.exp(), size);
            let field = space.map_or(0, |space| space.field);
            assert!(fields.contains(&field), "{epsilon} {size}: {field}");
        }
        assert!(Geometry::best(3.0, LIMIT - 1).is_some_and(|space| space.points() == LIMIT - 1));
        assert!(Geometry::best(3.0, LIMIT).is_none());
        assert_eq!(Geometry::best(2.0, 2).map(|space| space.points()), Some(3));
    }
}
