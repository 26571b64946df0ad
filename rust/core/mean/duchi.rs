//! Duchi's mechanism: one of two cells for every coordinate.
//!
//! Source: Duchi, Jordan, Wainwright, "Minimax optimal procedures for locally private estimation"
//! (2018). In one dimension it is algorithm 1 of Wang et al., "Collecting and analyzing
//! multidimensional data with local differential privacy" (ICDE 2019). The upper cell has a
//! probability between `W / 2^64` and `A / 2^64`, linear in the value, where `A + W = 2^64` and `A
//! <= e^eps W`, proven.
//!
//! In `d` dimensions every coordinate is first rounded at random to a corner `v` of the cube. The
//! report is a corner `t`. Its weight is `A` if it agrees with `v` in more than half of the
//! coordinates, and `W` otherwise. **Ties count as disagreement.** For even `d`, some corners agree
//! in exactly half of the coordinates. As printed (algorithm 3 of Wang et al.), these belong to
//! both sides. Then a tie is `e^eps + 1` times as likely as a corner on the other side. That is
//! above the promised `e^eps`, as the tests show by enumeration. The rule here is that of Nguyen et
//! al., "Collecting and analyzing data from smart device users with local differential privacy"
//! (2015), and so is the factor that makes it unbiased.

use super::path::Mechanism;
use super::{Bounds, Dimensions, UNIT, informative, logarithm_up, smallest, too_small};
use crate::Result;
use crate::parameters::Epsilon;
use crate::random::{ExponentialBounds, Words};

/// Duchi's mechanism.
///
/// ```
/// use turnout_core::frequency::Selection;
/// use turnout_core::mean::{Bounds, Dimensions, Duchi, Mechanism};
/// use turnout_core::parameters::Epsilon;
/// use turnout_core::random::AesStreams;
///
/// let bounds = Bounds::new(-1.0, 1.0)?;
/// let duchi = Duchi::new(Epsilon::new(1.0)?, bounds, Dimensions::new(1)?)?;
/// assert!(duchi.realized_epsilon() <= 1.0);
/// let sums = duchi.collect(&[0.5; 10_000], &Selection::everyone(), &AesStreams::from_seed(1))?;
/// let ups = sums.coordinates[0].first as f64 / 10_000.0;
/// assert!(((2.0 * ups - 1.0) * duchi.scale() - 0.5).abs() < 0.2);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duchi {
    epsilon: Epsilon,
    bounds: Bounds,
    dimensions: Dimensions,
    /// `W`, at most 2^63.
    few: u64,
}

impl Duchi {
    /// Makes the mechanism for an epsilon and values with some coordinates.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`](crate::Error::Accounting) if epsilon is below about 1e-9.
    pub fn new(epsilon: Epsilon, bounds: Bounds, dimensions: Dimensions) -> Result<Self> {
        let exponential = ExponentialBounds::new(epsilon.get());
        let few = smallest(UNIT, |few| exponential.at_least(complement(few), few.into()))
            .ok_or_else(|| too_small(epsilon.get()))?;
        informative((UNIT - few).saturating_mul(2), epsilon.get())?;
        Ok(Self { epsilon, bounds, dimensions, few })
    }

    /// The epsilon that was requested.
    #[must_use]
    pub const fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// `(A, W)`: the weights of a report on the side of the value, and of any other report. Their
    /// sum is 2^64; the guarantee is `ln(A / W)`, exactly.
    #[must_use]
    pub const fn words(&self) -> (u128, u64) {
        (complement(self.few), self.few)
    }

    /// The realised epsilon `ln(A / W)`, rounded up. It is never above the requested epsilon.
    #[must_use]
    pub fn realized_epsilon(&self) -> f64 {
        let (many, few) = self.words();
        logarithm_up(many, few.into(), self.epsilon.get())
    }

    /// One coordinate, one word.
    #[inline]
    pub(super) fn one<R: Words>(&self, value: f64, rng: &mut R) -> u32 {
        let position = u128::from(self.bounds.position(value));
        // At most 2^63 * 2^64 / 2^63, and `few` words below 2^64 at least are left.
        let more = (position * (complement(self.few) - u128::from(self.few))) >> 63;
        u32::from(u128::from(rng.next_u64()) < u128::from(self.few) + more)
    }

    /// Which coordinates agree with the corner: as many as it takes, whatever the corner.
    fn agreement<R: Words>(&self, cells: &mut [u32], rng: &mut R) {
        loop {
            let mut agreeing = 0;
            for piece in cells.chunks_mut(64) {
                let word = rng.next_u64();
                for (bit, cell) in (0_u32..).zip(piece) {
                    *cell = u32::from((word >> bit) & 1 == 1);
                    agreeing += *cell as usize;
                }
            }
            let word = u128::from(rng.next_u64());
            let twice = 2 * agreeing;
            if twice == cells.len() {
                // A corner and its opposite weigh A + W, two ties 2 W.
                if word < 2 * u128::from(self.few) {
                    return;
                }
            } else {
                let majority = word >= u128::from(self.few);
                let flip = u32::from((twice > cells.len()) != majority);
                for cell in cells {
                    *cell ^= flip;
                }
                return;
            }
        }
    }
}

/// `2^64 - few`.
const fn complement(few: u64) -> u128 {
    (1 << 64) - few as u128
}

impl Mechanism for Duchi {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn dimensions(&self) -> Dimensions {
        self.dimensions
    }

    fn cells(&self) -> u64 {
        2
    }

    fn sampled(&self) -> usize {
        self.dimensions.len()
    }

    fn scale(&self) -> f64 {
        let d = self.dimensions.len();
        // The central binomial coefficient over 2^d (d even) or 2^(d-1) (d odd).
        let central =
            (1..=d / 2).fold(1.0, |share, i| share * ((2 * i - 1) as f64 / (2 * i) as f64));
        let unit = 2.0 * UNIT as f64;
        let few = self.few as f64 / unit;
        let gap = (complement(self.few) - u128::from(self.few)) as f64 / unit;
        // The majority's share of corners, and the mean of (2 agreeing - d) / d over all corners,
        // of those in the majority: C(d-1, floor(d/2)) / 2^d = `central / 2` in both cases.
        let majority = if d.is_multiple_of(2) { (1.0 - central) / 2.0 } else { 0.5 };
        (few + gap * majority) / (gap * central / 2.0)
    }

    fn report<R: Words>(&self, values: &[f64], _: &mut [u16], cells: &mut [u32], rng: &mut R) {
        if let ([value], [cell]) = (values, &mut *cells) {
            *cell = self.one(*value, rng);
            return;
        }
        self.agreement(cells, rng);
        for (cell, &value) in cells.iter_mut().zip(values) {
            let corner = u32::from(rng.next_u64() >> 1 < self.bounds.position(value));
            *cell = u32::from(*cell == corner);
        }
    }
}
