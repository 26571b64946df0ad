//! Projective geometry response.
//!
//! A report is a point of the projective space of `t` dimensions over the field of `r` elements,
//! where `r` is a prime. The space has `K = (r^t - 1) / (r - 1)` points. The points of its own
//! hyperplane, `(r^(t-1) - 1) / (r - 1)` of them, support code `x`. A node that holds `x` reports
//! each of these with a weight of `e^eps`, and each other point with a weight of one. Any two
//! hyperplanes meet in `(r^(t-2) - 1) / (r - 1)` points, so every other code is supported with the
//! same probability. Source: Feldman, Nelson, Nguyen, Talwar, "Private frequency estimation via
//! projective geometry" (2022). With `r` near `e^eps + 1`, the variance is close to the least of
//! all oracles.
//!
//! One 64-bit word makes a report. Each point of the hyperplane has `A` words and each other point
//! `W`, and integer bounds of the exponential prove that `A <= e^eps W`. The few words left over
//! are drawn again, whatever the code. The quotient by `A` or `W` is the number of a point within
//! the hyperplane or outside it. The numbering ([`report`]) needs no division in the field, and no
//! branch or address depends on a code.

mod geometry;
mod report;
mod simulate;
mod tally;

use core::marker::PhantomData;

use geometry::Geometry;

use crate::frequency::shared::divisor::Divisor;
use crate::frequency::shared::histogram::{Histogram, position};
use crate::frequency::{Randomizer, ReportCode};
use crate::parameters::{DomainSize, Epsilon};
use crate::primality::is_prime;
use crate::random::{ExponentialBounds, Words, logarithm_above};
use crate::{Error, Result};

/// The randomizer of projective geometry response, with reports of type `O`.
///
/// ```
/// use turnout_core::frequency::ProjectiveGeometryResponse;
/// use turnout_core::parameters::{DomainSize, Epsilon};
///
/// let (epsilon, domain) = (Epsilon::new(1.5)?, DomainSize::new(100)?);
/// let oracle = ProjectiveGeometryResponse::<u8>::new(epsilon, domain, None)?;
/// assert_eq!((oracle.field_size(), oracle.dimensions()), (5, 4));
/// assert_eq!((oracle.points(), oracle.hyperplane_points()), (156, 31));
/// assert!(oracle.realized_epsilon() <= 1.5);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectiveGeometryResponse<O> {
    epsilon: Epsilon,
    domain: DomainSize,
    space: Geometry,
    /// Words for each point of the hyperplane, `A`, and for each other point, `W`.
    words: (u64, u64),
    divisors: (Divisor, Divisor),
    /// Divides by the size of the field.
    by_field: Divisor,
    reports: PhantomData<O>,
}

impl<O: ReportCode> ProjectiveGeometryResponse<O> {
    /// Makes a randomizer for an epsilon and a number of codes, over a field of `field_size`
    /// elements. The default is the field with the smallest variance whose space has at most `2^20`
    /// points or 16 times as many as there are codes.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if the size of the field is not a prime, its space has 2^31 points or
    /// more, or 64-bit words cannot realise epsilon because the size is far below `e^eps`;
    /// [`Error::DomainSize`] if there are 2^31 codes or more, or the points do not fit type `O`;
    /// [`Error::EpsilonUnrealizable`] if epsilon is below about 2^-32.
    pub fn new(epsilon: Epsilon, domain: DomainSize, field_size: Option<u64>) -> Result<Self> {
        let size = domain.get();
        let space = match field_size {
            None => Geometry::best(libm::exp(epsilon.get()), size)
                .ok_or(Error::DomainSize { value: size, maximum: geometry::LIMIT - 1 })?,
            Some(field) if !is_prime(field) => {
                return Err(refused(field, "a prime number"));
            }
            Some(field) => Geometry::new(field, size)
                .ok_or(refused(field, "a prime number whose space has fewer than 2^31 points"))?,
        };
        if space.points() > O::RANGE {
            return Err(Error::DomainSize { value: space.points(), maximum: O::RANGE });
        }
        let words = words(epsilon, &space)
            .ok_or(refused(space.field, "a prime number that is closer to e^epsilon"))?;
        if words.0 - words.1 <= words.1 >> 32 {
            return Err(Error::EpsilonUnrealizable { epsilon: epsilon.get(), domain_size: size });
        }
        Ok(Self {
            epsilon,
            domain,
            words,
            divisors: (Divisor::new(words.0), Divisor::new(words.1)),
            by_field: Divisor::new(space.field),
            space,
            reports: PhantomData,
        })
    }

    /// The epsilon that was requested.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// The number of codes.
    #[must_use]
    pub const fn domain_size(&self) -> DomainSize {
        self.domain
    }

    /// The number of elements of the field, `r`.
    #[must_use]
    pub const fn field_size(&self) -> u64 {
        self.space.field
    }

    /// The number of coordinates, `t`.
    #[must_use]
    pub const fn dimensions(&self) -> usize {
        self.space.dimensions()
    }

    /// The number of points, and so of different reports, `K`.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.space.points()
    }

    /// The number of points that support a code.
    #[must_use]
    pub fn hyperplane_points(&self) -> u64 {
        self.space.hyperplane()
    }

    /// The number of points that support two codes.
    #[must_use]
    pub fn common_points(&self) -> u64 {
        self.space.common()
    }

    /// `(A, W)`: how many words make a node report each point of its hyperplane, and how many each
    /// other point. The realised guarantee is `ln(A / W)`, exactly.
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        self.words
    }

    /// The realised epsilon, rounded up to a floating-point number. It is never below the truth,
    /// and never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        logarithm_above(self.words.0.into(), self.words.1.into(), self.epsilon.get())
    }

    /// `(p*, q*)`: the probabilities that a report supports the node's own code, and any other
    /// fixed code.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        let (own, other) = (u128::from(self.words.0), u128::from(self.words.1));
        let (inside, common) = (self.hyperplane_points(), self.common_points());
        let total = self.accepted_words() as f64;
        let both = u128::from(common) * own + u128::from(inside - common) * other;
        ((u128::from(inside) * own) as f64 / total, both as f64 / total)
    }

    /// The probability that a report is drawn from the hyperplane, rather than from all points.
    fn keep_probability(&self) -> f64 {
        let more = u128::from(self.words.0 - self.words.1);
        (u128::from(self.hyperplane_points()) * more) as f64 / self.accepted_words() as f64
    }

    /// The words that stand for a report; at most 2^64.
    fn accepted_words(&self) -> u128 {
        total(&self.space, self.words.0.into(), self.words.1)
    }
}

/// The largest weights that 64-bit words can give to the points.
fn words(epsilon: Epsilon, space: &Geometry) -> Option<(u64, u64)> {
    let bounds = ExponentialBounds::new(epsilon.get());
    let fits = |cell: u64| total(space, bounds.floor_times(cell), cell) <= 1 << 64;
    let mut cell = 0;
    for bit in (0..64).rev() {
        let larger = cell | 1 << bit;
        if fits(larger) {
            cell = larger;
        }
    }
    let own = u64::try_from(bounds.floor_times(cell)).ok()?;
    (cell > 0).then_some((own, cell))
}

/// The words for all points.
fn total(space: &Geometry, own: u128, other: u64) -> u128 {
    let outside = u128::from(space.points() - space.hyperplane()) * u128::from(other);
    u128::from(space.hyperplane()).saturating_mul(own).saturating_add(outside)
}

fn refused(field: u64, expected: &'static str) -> Error {
    Error::Integer { argument: "field_size", value: field, expected }
}

impl<O: ReportCode> Randomizer for ProjectiveGeometryResponse<O> {
    type Item = O;
    type Counter = Histogram;

    fn domain(&self) -> DomainSize {
        self.domain
    }

    fn width(&self) -> usize {
        1
    }

    #[inline]
    fn report<R: Words>(&self, codes: &[u64], reports: &mut [O], rng: &mut R) {
        self.draw(codes, reports, rng);
    }

    fn valid(&self, report: &[O]) -> bool {
        matches!(report, [report] if report.index() < self.points())
    }

    fn expected(&self) -> String {
        format!("an integer from 0 to {}", self.points() - 1)
    }

    fn counter(&self) -> Histogram {
        Histogram::new(position(self.points()))
    }

    fn count(&self, counter: &mut Histogram, reports: &[O]) {
        counter.add(reports);
    }

    fn merge(&self, counter: Histogram, other: Histogram) -> Histogram {
        counter.merge(&other)
    }

    fn finish(&self, counter: Histogram) -> Vec<u64> {
        self.space.support(&counter.finish(), self.domain.len())
    }

    fn supported(&self, report: &[O], visit: &mut dyn FnMut(usize)) {
        for report in report {
            let codes = 0..self.domain.get();
            let codes = codes.filter(|&code| self.space.contains(code, report.index()));
            codes.for_each(|code| visit(position(code)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle(epsilon: f64, size: u64) -> Result<ProjectiveGeometryResponse<u32>> {
        ProjectiveGeometryResponse::new(Epsilon::new(epsilon)?, DomainSize::new(size)?, None)
    }

    #[test]
    fn the_words_realize_epsilon_and_are_nearly_all_used() -> Result<()> {
        for epsilon in [1e-6, 0.1, 1.0, 3.0_f64.ln(), 5.0, 20.0, 42.0] {
            for size in [2, 3, 4, 100, 1 << 16] {
                let oracle = oracle(epsilon, size)?;
                let (own, other) = oracle.words();
                let bounds = ExponentialBounds::new(epsilon);
                assert!(bounds.at_least(own.into(), other.into()), "{epsilon} {size}");
                assert!(!bounds.at_least(u128::from(own) + 1, other.into()), "{epsilon} {size}");
                assert!(oracle.accepted_words() <= 1 << 64);
                let (p, q) = oracle.support_probabilities();
                let wasted = 1.0 - oracle.accepted_words() as f64 / (1_u128 << 64) as f64;
                assert!(wasted <= 1.0 / other as f64, "{epsilon} {size} {wasted}");
                assert!(0.0 < q && q < p && p <= 1.0, "{epsilon} {size}");
                assert!(oracle.realized_epsilon() <= epsilon);
            }
        }
        Ok(())
    }

    #[test]
    fn what_cannot_be_is_refused() -> Result<()> {
        let (epsilon, domain) = (Epsilon::new(1.0)?, DomainSize::new(100)?);
        for field in [0, 1, 4, 91, 2_147_483_647, u64::MAX] {
            let result = ProjectiveGeometryResponse::<u32>::new(epsilon, domain, Some(field));
            assert!(
                matches!(result, Err(Error::Integer { argument: "field_size", .. })),
                "{field}"
            );
        }
        let small = ProjectiveGeometryResponse::<u8>::new(epsilon, domain, Some(17));
        assert!(matches!(small, Err(Error::DomainSize { value: 307, maximum: 256 })));
        assert!(matches!(oracle(1.0, 1 << 31), Err(Error::DomainSize { .. })));
        assert!(matches!(oracle(1e-12, 100), Err(Error::EpsilonUnrealizable { .. })));
        let large = DomainSize::new(1 << 28)?;
        let result = ProjectiveGeometryResponse::<u32>::new(Epsilon::new(40.0)?, large, Some(2));
        assert!(matches!(result, Err(Error::Integer { argument: "field_size", .. })));
        Ok(())
    }
}
