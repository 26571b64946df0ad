//! The factor by which a row is shortened.

use super::kernel::{Instructions, ROUNDINGS, Scale, Strip, WIDTH};
use super::power;

/// How rows are shortened, and in which unit they are given.
///
/// # Why no row on the grid is longer than the clip
///
/// Let `u = 2^-53`, `C` the clip, `g` the step, `x` a row and `n` its integers. What is to be
/// proven is `g |n| <= C` for the Euclidean norm `|n|`, with the doubles `C` and `g` as they are.
///
/// A sum of squares `q` is computed from products and sums of numbers that are not negative. On its
/// way a square is rounded at most `k` times: as a product, in its strip and in the sum over the
/// strips (`k` = [`ROUNDINGS`] and the number of strips). Each rounding makes it smaller by at most
/// a factor `1 - u`; squares that underflow lose at most `2^-1075` each, which is nothing beside
/// `q >= 2^-900`: in all less than `2^-100 q`. So with the computed root `N`,
///
/// `|x| <= N (1 + 2^-100) / (1 - u)^(k/2 + 1)`.
///
/// *Clipped rows* have the integers `n_j = trunc(fl(x_j s))`, `s = fl(fl(fl(C / g) / N) m)`. None
/// of the four roundings underflows unless the result is below one, of which nothing is left on the
/// grid, and each enlarges by at most `1 + u`. (Where the sums are doubles, `g = 1`, a row whose
/// factor underflows is rescaled as below, and `C >= 2^-1000`, beside which entries that underflow
/// are nothing.) So
///
/// `g |n| <= g s |x| (1 + u) <= C m (1 + u)^4 (1 + 2^-100) / (1 - u)^(k/2 + 1)`,
///
/// which is at most `C` if `m <= 1 - (k/2 + 6) u`, by Bernoulli's inequality.
///
/// *Rows that are not clipped* have `N <= fl(C m)` and `s = fl(1 / g)`: two roundings of `s` and of
/// products, and one of the bound, so that `g |n| <= |x| (1 + u)^2 <= C m (1 + u)^3 (1 + 2^-100) /
/// (1 - u)^(k/2 + 1)`, which is at most `C` all the more.
///
/// The margin `m` is `1 - (k + 12) u`, which is a double. It is the only factor by which rows of a
/// norm near the clip are shortened in vain: by less than `4e-14` for up to 10^5 parameters and
/// `6e-13` for 10^7. Rows below it keep their length.
///
/// *Products in single precision*: let `v = 2^-24`. A row in single precision may be multiplied by
/// `fl(s)`, a normal number of single precision. The product is rounded to single precision.
/// Neither rounding enlarges by more than `1 + v`; a product that underflows is below one. The
/// margin is then `1 - (k + 12) u - 3 v`, which is a double too. It is enough, because for `A = (k +
/// 12) u` we have `(1 - A - 3 v)(1 + v)^2 <= 1 - A`, and the rest is as above. Rows near the clip
/// are then shortened in vain by less than `2e-7`.
///
/// *Squares that overflow or underflow* (`q` not in `[2^-900, 2^900]`, only in double precision):
/// the row is brought to a largest entry in `[1, 2)` by a power of two `p`, which is exact but for
/// entries that underflow, too small to be seen on the grid. Then the above holds for `p x`, `p C`
/// and `p g`; `C / g` is computed from `C` and `g`. If `p C` underflows, the row is clipped; if
/// `p C` or `p g` overflows, it is not clipped, or nothing is left of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    clip: f64,
    step: f64,
    /// `clip / step`.
    ratio: f64,
    /// `m` above.
    margin: f64,
}

impl Rule {
    /// For rows of so many strips, with products in single precision or in double.
    pub(super) fn new(clip: f64, step: f64, strips: usize, single: bool) -> Self {
        let products = if single { 3.0 * power(-24) } else { 0.0 };
        let margin = 1.0 - (ROUNDINGS + strips + 12) as f64 * power(-53) - products;
        Self { clip, step, ratio: clip / step, margin }
    }

    /// What a row is multiplied by that has a sum of squares. `None` if it is not finite.
    pub(super) fn scale(&self, squares: f64, row: impl FnOnce() -> Vec<f64>) -> Option<Scale> {
        if (power(-900)..=power(900)).contains(&squares) {
            let norm = squares.sqrt();
            let factor = if norm <= self.clip * self.margin {
                1.0 / self.step
            } else {
                self.ratio / norm * self.margin
            };
            // A factor that underflows may be twice as large as it should be.
            if factor >= f64::MIN_POSITIVE {
                return Some(Scale { powers: None, factor });
            }
        }
        self.rescaled(row())
    }

    /// The same for a row of which the squares overflow or underflow.
    fn rescaled(&self, mut row: Vec<f64>) -> Option<Scale> {
        if row.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let largest = row.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        if largest == 0.0 {
            return Some(Scale { powers: None, factor: 0.0 });
        }
        let exponent = -libm::ilogb(largest);
        let powers = [power(exponent / 2), power(exponent - exponent / 2)];
        let scaled = |value: f64| value * powers[0] * powers[1];
        for value in &mut row {
            *value = scaled(*value);
        }
        let squares = row.chunks(WIDTH).fold(0.0, |sum, values| {
            let strip = Strip { values, stride: values.len(), width: values.len() };
            let mut squares = [0.0];
            Instructions::best().squares(strip, &mut squares);
            sum + squares[0]
        });
        let norm = squares.sqrt();
        Some(if norm > scaled(self.clip) * self.margin {
            Scale { powers: Some(powers), factor: self.ratio / norm * self.margin }
        } else if self.step.total_cmp(&1.0).is_eq() {
            Scale { powers: None, factor: 1.0 }
        } else {
            Scale { powers: Some(powers), factor: 1.0 / scaled(self.step) }
        })
    }
}
