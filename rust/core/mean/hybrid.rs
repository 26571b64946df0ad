//! The hybrid mechanism: the piecewise mechanism most of the time, and Duchi's otherwise.
//!
//! Source: Wang et al., "Collecting and analyzing multidimensional data with local differential
//! privacy" (ICDE 2019), section III.C. The variance of the piecewise mechanism grows with the
//! square of the value, and that of Duchi's mechanism falls with it. Mixed with the right weights,
//! their sum does not depend on the value. Duchi's two answers lie within the range of the
//! piecewise mechanism, so here they are two cells of its grid, mirror images of each other. The
//! mean of a report is linear in the value wherever these cells are. A cell that both mechanisms
//! can give reveals at most as much as the more revealing mechanism.
//!
//! The piecewise mechanism gives a cell that carries no information with probability `M / 2^64`.
//! Duchi's mechanism is used with the same probability, which makes the variance constant; for the
//! continuous mechanism it is the published `e^(-eps/2)`. Up to an epsilon of [`ALONE`], which the
//! paper rounds to .61, Duchi's mechanism alone has a smaller worst-case variance than with any
//! weights.

use super::path::Mechanism;
use super::{Bounds, Dimensions, Duchi, Piecewise, UNIT};
use crate::Result;
use crate::parameters::Epsilon;
use crate::random::Words;

/// The largest epsilon of a coordinate at which Duchi's mechanism alone is used.
///
/// It is the root of `3 (x^2 + 1)^2 = (x + 1)^2 (x + 3)` with `x = e^(eps/2)`, where the variances
/// for a value of zero are equal.
pub const ALONE: f64 = 0.609_352_493;

/// The hybrid mechanism.
///
/// ```
/// use turnout_core::frequency::Selection;
/// use turnout_core::mean::{Bounds, Dimensions, Hybrid, Mechanism};
/// use turnout_core::parameters::Epsilon;
/// use turnout_core::random::AesStreams;
///
/// let hybrid = Hybrid::new(Epsilon::new(2.0)?, Bounds::new(-1.0, 1.0)?, Dimensions::new(1)?)?;
/// assert!(hybrid.realized_epsilon() <= 2.0);
/// let sums = hybrid.collect(&[0.5; 10_000], &Selection::everyone(), &AesStreams::from_seed(1))?;
/// let (first, last) = (sums.coordinates[0].first as f64, (hybrid.cells() - 1) as f64);
/// assert!(((2.0 * first / 10_000.0 - last) * hybrid.scale() - 0.5).abs() < 0.1);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hybrid {
    /// For one coordinate with its share of epsilon, whatever the dimensions.
    duchi: Duchi,
    /// The larger of Duchi's two cells.
    upper: u64,
    piecewise: Piecewise,
    /// Whether Duchi's mechanism is all there is.
    alone: bool,
}

impl Hybrid {
    /// Makes the mechanism for an epsilon and values with some coordinates.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if epsilon is below about 1e-9.
    pub fn new(epsilon: Epsilon, bounds: Bounds, dimensions: Dimensions) -> Result<Self> {
        let piecewise = Piecewise::new(epsilon, bounds, dimensions)?;
        let one = Dimensions::new(1)?;
        let share = piecewise.share();
        if share <= ALONE {
            let duchi = Duchi::new(Epsilon::new(share)?, bounds, one)?;
            return Ok(Self { duchi, upper: 1, piecewise, alone: true });
        }
        // A hair less than the piecewise mechanism has, so that its ratio is that of the mixture.
        let less = piecewise.realized_share() * (1.0 - 1e-14);
        let duchi = Duchi::new(Epsilon::new(less)?, bounds, one)?;
        let last = (piecewise.cells() - 1) as f64;
        let offset = duchi.scale() / piecewise.scale();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in the grid")]
        let upper = libm::round(f64::midpoint(last, offset)).min(last) as u64;
        Ok(Self { duchi, upper, piecewise, alone: false })
    }

    /// `(u, W)`: `u` is the larger of the two cells of Duchi's mechanism, and the other is its
    /// mirror image. `W` is the weight in its [`words`](Duchi::words) for the side away from the
    /// value.
    #[must_use]
    pub const fn ends(&self) -> (u64, u64) {
        (self.upper, self.duchi.words().1)
    }

    /// `(w, M)`: the [law](Piecewise::law) of the piecewise mechanism, if it is used. Duchi's
    /// mechanism is used with probability `M / 2^64`.
    #[must_use]
    pub const fn law(&self) -> Option<(u64, u64)> {
        if self.alone { None } else { Some(self.piecewise.law()) }
    }

    /// The largest likelihood ratio of one reported cell, as numerator and denominator. The ratio
    /// of the whole report is this to the power of [`sampled`](Mechanism::sampled).
    #[must_use]
    pub const fn ratio(&self) -> (u128, u128) {
        let (many, few) = self.duchi.words();
        if self.alone { (many, few as u128) } else { self.piecewise.ratio() }
    }

    /// The realised epsilon of a report, rounded up. It is never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        if self.alone { self.duchi.realized_epsilon() } else { self.piecewise.realized_epsilon() }
    }
}

impl Mechanism for Hybrid {
    fn bounds(&self) -> Bounds {
        self.piecewise.bounds()
    }

    fn dimensions(&self) -> Dimensions {
        self.piecewise.dimensions()
    }

    fn cells(&self) -> u64 {
        if self.alone { 2 } else { self.piecewise.cells() }
    }

    fn sampled(&self) -> usize {
        self.piecewise.sampled()
    }

    fn scale(&self) -> f64 {
        if self.alone {
            return self.duchi.scale();
        }
        let share = self.piecewise.law().1 as f64 / 2.0 / UNIT as f64;
        let offset = (2 * self.upper - (self.cells() - 1)) as f64;
        1.0 / ((1.0 - share) / self.piecewise.scale() + share * offset / self.duchi.scale())
    }

    #[expect(clippy::cast_possible_truncation, reason = "a cell is below 2^32")]
    fn report<R: Words>(
        &self,
        values: &[f64],
        coordinates: &mut [u16],
        cells: &mut [u32],
        rng: &mut R,
    ) {
        if self.sampled() < values.len() {
            self.piecewise.choose(coordinates, rng);
        }
        let ends = [self.cells() - 1 - self.upper, self.upper];
        for (cell, &coordinate) in cells.iter_mut().zip(&*coordinates) {
            if let Some(&value) = values.get(usize::from(coordinate)) {
                let bit = self.alone || rng.next_u64() < self.piecewise.law().1;
                *cell = if bit {
                    ends[usize::from(self.duchi.one(value, rng) == 1)] as u32
                } else {
                    self.piecewise.cell(value, rng)
                };
            }
        }
    }
}
