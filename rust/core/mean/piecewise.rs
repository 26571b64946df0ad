//! The piecewise mechanism on an integer grid.
//!
//! Source: Wang et al., "Collecting and analyzing multidimensional data with local differential
//! privacy" (ICDE 2019), algorithms 2 and 4. There the report is a real number whose density is
//! high in a window around the value and low elsewhere. Here the report is one of `G` cells, and
//! the window is `w` neighbouring cells. With probability `M / 2^64` a report is uniform over all
//! cells, otherwise over the window. A cell of the window is `1 + (2^64 - M) G / (M w) <= e^eps`
//! times as likely as any other, proven. The window starts at one of `G - w + 1` cells. The value
//! is mapped to a real number in `[0, G - w]`, and rounded at random to a neighbouring whole
//! number. The probabilities are exact, so the mean of a report is linear in the value. `w / G` is
//! next to the optimum `1 / (e^(eps/2) + 1)`.
//!
//! Of `d` coordinates, `k = max(1, min(d, floor(eps / 2.5)))` are chosen at random and reported,
//! each with `eps / k`.

use super::path::Mechanism;
use super::{Bounds, Dimensions, UNIT, informative, logarithm_up, smallest, too_small};
use crate::Result;
use crate::parameters::Epsilon;
use crate::random::{ExponentialBounds, Words, uniform_below};

/// Most cells of the grid for small epsilon.
const GRID: f64 = 65_536.0;
/// Cells of the window for large epsilon, where the grid grows.
const WINDOW: f64 = 32.0;
/// The largest grid: cells are reported in 32 bits.
const LARGEST: f64 = 4_294_967_296.0;

/// The piecewise mechanism.
///
/// ```
/// use turnout_core::frequency::Selection;
/// use turnout_core::mean::{Bounds, Dimensions, Mechanism, Piecewise};
/// use turnout_core::parameters::Epsilon;
/// use turnout_core::random::AesStreams;
///
/// let bounds = Bounds::new(0.0, 10.0)?;
/// let piecewise = Piecewise::new(Epsilon::new(6.0)?, bounds, Dimensions::new(5)?)?;
/// assert_eq!(piecewise.sampled(), 2);
/// assert!(piecewise.realized_epsilon() <= 6.0);
/// let values = [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 4.0, 3.0, 2.0, 1.0];
/// let sums = piecewise.collect(&values, &Selection::everyone(), &AesStreams::from_seed(1))?;
/// assert_eq!(sums.received, 2);
/// assert_eq!(sums.coordinates.iter().map(|sums| sums.seen).sum::<u64>(), 4);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piecewise {
    epsilon: Epsilon,
    bounds: Bounds,
    dimensions: Dimensions,
    sampled: u32,
    /// The epsilon of one coordinate.
    share: f64,
    cells: u64,
    window: u64,
    /// `M`.
    anywhere: u64,
}

impl Piecewise {
    /// Makes the mechanism for an epsilon and values with some coordinates.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if epsilon is below about 1e-9.
    pub fn new(epsilon: Epsilon, bounds: Bounds, dimensions: Dimensions) -> Result<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 16")]
        let sampled = ((epsilon.get() / 2.5) as u64).clamp(1, dimensions.get());
        let mut share = epsilon.get() / sampled as f64;
        // The shares must not add up to more, not by one rounding: the sign of this is exact.
        while share.mul_add(sampled as f64, -epsilon.get()) > 0.0 {
            share = share.next_down();
        }
        let (cells, window) = grid(share);
        let exponential = ExponentialBounds::new(share);
        let anywhere = smallest(u64::MAX, |anywhere| {
            let (inside, outside) = ratio(cells, window, anywhere);
            exponential.at_least(inside, outside)
        })
        .ok_or_else(|| too_small(epsilon.get()))?;
        informative(anywhere.wrapping_neg(), epsilon.get())?;
        let sampled = u32::try_from(sampled).unwrap_or(1);
        Ok(Self { epsilon, bounds, dimensions, sampled, share, cells, window, anywhere })
    }

    /// The epsilon that was requested.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// `(w, M)`: how many cells the window has, and how many of the 2^64 words make a cell uniform
    /// over the whole grid instead.
    #[must_use]
    pub const fn law(&self) -> (u64, u64) {
        (self.window, self.anywhere)
    }

    /// How many times as likely a cell of the window is as any other, as numerator and denominator,
    /// for one coordinate. The ratio of the whole report is this to the power of
    /// [`sampled`](Mechanism::sampled).
    #[must_use]
    pub const fn ratio(&self) -> (u128, u128) {
        ratio(self.cells, self.window, self.anywhere)
    }

    /// The realised epsilon of a report, rounded up. It is never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let one = self.realized_share();
        let all = one * f64::from(self.sampled);
        let up = if one.mul_add(f64::from(self.sampled), -all) > 0.0 { all.next_up() } else { all };
        up.min(self.epsilon.get())
    }

    /// The epsilon of one coordinate.
    pub(super) const fn share(&self) -> f64 {
        self.share
    }

    /// The realised epsilon of one coordinate, rounded up.
    pub(super) fn realized_share(&self) -> f64 {
        let (inside, outside) = self.ratio();
        logarithm_up(inside, outside, self.share)
    }

    /// A cell for a value.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a cell is below 2^32")]
    pub(super) fn cell<R: Words>(&self, value: f64, rng: &mut R) -> u32 {
        let position = u128::from(self.bounds.position(value));
        let place = position * u128::from(self.cells - self.window);
        let rest = place as u64 & (UNIT - 1);
        let start = (place >> 63) as u64 + u64::from(rng.next_u64() >> 1 < rest);
        let anywhere = rng.next_u64() < self.anywhere;
        let (origin, cells) = if anywhere { (0, self.cells) } else { (start, self.window) };
        (origin + uniform_below(cells, rng)) as u32
    }

    /// A random subset of the coordinates, ascending: Floyd's algorithm (Bentley, Floyd, "A sample
    /// of brilliance", 1987).
    #[expect(clippy::cast_possible_truncation, reason = "a coordinate is below 2^16")]
    pub(super) fn choose<R: Words>(&self, coordinates: &mut [u16], rng: &mut R) {
        let first = self.dimensions.get() - u64::from(self.sampled);
        for (chosen, last) in (0..coordinates.len()).zip(first..) {
            let drawn = uniform_below(last + 1, rng) as u16;
            let known = coordinates[..chosen].contains(&drawn);
            coordinates[chosen] = if known { last as u16 } else { drawn };
        }
        coordinates.sort_unstable();
    }
}

/// How many cells, and how many of them the window has.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^32")]
fn grid(epsilon: f64) -> (u64, u64) {
    let inverse_share = libm::exp(epsilon / 2.0) + 1.0;
    let mut window = libm::floor(GRID / inverse_share);
    if window < WINDOW {
        window = libm::floor(LARGEST / inverse_share).clamp(1.0, WINDOW);
    }
    (libm::round(window * inverse_share).min(LARGEST) as u64, window as u64)
}

/// The weights of a cell in the window and outside: `(2^64 - M) G + M w` and `M w`.
const fn ratio(cells: u64, window: u64, anywhere: u64) -> (u128, u128) {
    let outside = anywhere as u128 * window as u128;
    (((1 << 64) - anywhere as u128) * cells as u128 + outside, outside)
}

impl Mechanism for Piecewise {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn dimensions(&self) -> Dimensions {
        self.dimensions
    }

    fn cells(&self) -> u64 {
        self.cells
    }

    fn sampled(&self) -> usize {
        self.sampled as usize
    }

    fn scale(&self) -> f64 {
        let near = self.anywhere.wrapping_neg() as f64 / 2.0 / UNIT as f64;
        1.0 / (near * (self.cells - self.window) as f64)
    }

    fn report<R: Words>(
        &self,
        values: &[f64],
        coordinates: &mut [u16],
        cells: &mut [u32],
        rng: &mut R,
    ) {
        if self.sampled() < values.len() {
            self.choose(coordinates, rng);
        }
        for (cell, &coordinate) in cells.iter_mut().zip(&*coordinates) {
            if let Some(&value) = values.get(usize::from(coordinate)) {
                *cell = self.cell(value, rng);
            }
        }
    }
}
