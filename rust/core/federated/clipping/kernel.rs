//! Strips of gradients in vector instructions.
//!
//! Every sum has a fixed order, and products are rounded before they are added, so the results are
//! the same on every machine.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};

/// Columns of a strip: its sums stay in the cache that is nearest.
pub(super) const WIDTH: usize = 2048;

/// Sums of squares that are kept side by side.
const LANES: usize = 16;

/// Roundings on the way of a square through its strip: itself, its lane, and the sum of the lanes.
pub(super) const ROUNDINGS: usize = 1 + WIDTH / LANES + 1 + LANES;

/// Rows that are added together, so that sums are loaded once for all of them.
pub(super) const GROUP: usize = 4;

/// A floating-point number.
pub(super) trait Number: Copy + Sync {
    fn wide(self) -> f64;
}

impl Number for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

/// What a row is multiplied by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// Powers of two that bring numbers into the middle of the range, if they need to be.
    pub(super) powers: Option<[f64; 2]>,
    pub(super) factor: f64,
}

impl Scale {
    #[inline(always)]
    fn apply(self, value: f64) -> f64 {
        let [first, second] = self.powers.unwrap_or([1.0; 2]);
        value * first * second * self.factor
    }

    /// The factor in single precision, if a product with it is rounded to nearest, or is zero.
    #[inline(always)]
    fn single(self) -> Option<f32> {
        let normal = (f32::MIN_POSITIVE.into()..=f32::MAX.into()).contains(&self.factor);
        #[expect(clippy::cast_possible_truncation, reason = "to single precision, as meant")]
        let factor = self.factor as f32;
        (self.powers.is_none() && (normal || self.factor <= 0.0)).then_some(factor)
    }
}

/// Some columns of some rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strip<'a, T> {
    /// The rows, from the first of these columns on.
    pub(super) values: &'a [T],
    /// From one row to the next.
    pub(super) stride: usize,
    /// The number of columns, at most [`WIDTH`].
    pub(super) width: usize,
}

impl<'a, T> Strip<'a, T> {
    #[inline(always)]
    fn row(&self, row: usize) -> &'a [T] {
        &self.values[row * self.stride..][..self.width]
    }
}

/// The vector instructions to use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instructions(Level);

impl Instructions {
    /// The widest of this machine.
    pub(super) fn best() -> Self {
        Self(Level::new())
    }

    /// Every kind that this machine has and that has a kernel of its own.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self(Level::baseline()), Self::best()];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Level::new().as_sse4_2().map(|lanes| Self(Level::Sse4_2(lanes))));
            all.extend(Level::new().as_avx2().map(|lanes| Self(Level::Avx2(lanes))));
        }
        all
    }

    /// The sums of the squares of rows.
    pub(super) fn squares<T: Number>(self, strip: Strip<'_, T>, out: &mut [f64]) {
        dispatch!(self.0, simd => squares(simd, strip, out));
    }

    /// Adds scaled rows to sums.
    pub(super) fn add<T: Number>(self, strip: Strip<'_, T>, scales: &[Scale], sums: &mut [f64]) {
        dispatch!(self.0, simd => add(simd, strip, scales, sums, |value| value));
    }

    /// Adds scaled rows, rounded toward zero, to sums.
    pub(super) fn add_whole<T: Number>(
        self,
        strip: Strip<'_, T>,
        scales: &[Scale],
        sums: &mut [f64],
    ) {
        dispatch!(self.0, simd => add(simd, strip, scales, sums, f64::trunc));
    }

    /// Adds scaled rows to integers that have room for them. Products are rounded to single
    /// precision, and then toward zero.
    pub(super) fn add_narrow(self, strip: Strip<'_, f32>, scales: &[Scale], sums: &mut [i32]) {
        dispatch!(self.0, simd => add_narrow(simd, strip, scales, sums));
    }
}

/// Adds scaled rows, rounded toward zero, to integers.
pub(super) fn add_integers<T: Number>(strip: Strip<'_, T>, scales: &[Scale], sums: &mut [i64]) {
    for (row, &scale) in scales.iter().enumerate() {
        for (sum, &value) in sums.iter_mut().zip(strip.row(row)) {
            #[expect(clippy::cast_possible_truncation, reason = "toward zero, as meant")]
            let whole = scale.apply(value.wide()) as i64;
            *sum += whole;
        }
    }
}

#[inline(always)]
fn squares<S: Simd, T: Number>(simd: S, strip: Strip<'_, T>, out: &mut [f64]) {
    simd.vectorize(
        #[inline(always)]
        || {
            for (row, out) in out.iter_mut().enumerate() {
                let mut sums = [0.0; LANES];
                let (chunks, rest) = strip.row(row).as_chunks::<LANES>();
                for chunk in chunks {
                    for (sum, &value) in sums.iter_mut().zip(chunk) {
                        let value = value.wide();
                        *sum += value * value;
                    }
                }
                for (sum, &value) in sums.iter_mut().zip(rest) {
                    let value = value.wide();
                    *sum += value * value;
                }
                *out = sums.iter().sum();
            }
        },
    );
}

/// Rows are added one after the other, whether they are loaded together or not.
#[inline(always)]
fn add<S: Simd, T: Number>(
    simd: S,
    strip: Strip<'_, T>,
    scales: &[Scale],
    sums: &mut [f64],
    round: impl Fn(f64) -> f64,
) {
    simd.vectorize(
        #[inline(always)]
        || {
            for (group, scales) in scales.chunks(GROUP).enumerate() {
                let first = group * GROUP;
                if let [
                    Scale { powers: None, factor: a },
                    Scale { powers: None, factor: b },
                    Scale { powers: None, factor: c },
                    Scale { powers: None, factor: d },
                ] = *scales
                {
                    let rows = strip.row(first).iter().zip(strip.row(first + 1));
                    let others = strip.row(first + 2).iter().zip(strip.row(first + 3));
                    for (sum, ((&w, &x), (&y, &z))) in sums.iter_mut().zip(rows.zip(others)) {
                        let mut total = *sum;
                        total += round(w.wide() * a);
                        total += round(x.wide() * b);
                        total += round(y.wide() * c);
                        total += round(z.wide() * d);
                        *sum = total;
                    }
                } else {
                    for (row, scale) in scales.iter().enumerate() {
                        let row = strip.row(first + row);
                        if let Scale { powers: None, factor } = *scale {
                            for (sum, &value) in sums.iter_mut().zip(row) {
                                *sum += round(value.wide() * factor);
                            }
                        } else {
                            for (sum, &value) in sums.iter_mut().zip(row) {
                                *sum += round(scale.apply(value.wide()));
                            }
                        }
                    }
                }
            }
        },
    );
}

#[inline(always)]
fn add_narrow<S: Simd>(simd: S, strip: Strip<'_, f32>, scales: &[Scale], sums: &mut [i32]) {
    simd.vectorize(
        #[inline(always)]
        || {
            for (group, scales) in scales.chunks(GROUP).enumerate() {
                let first = group * GROUP;
                if let [a, b, c, d] = *scales
                    && let [Some(a), Some(b), Some(c), Some(d)] = [a, b, c, d].map(Scale::single)
                {
                    let rows = [0, 1, 2, 3].map(|row| strip.row(first + row));
                    add_singles(simd, rows, [a, b, c, d], sums);
                    continue;
                }
                for (row, scale) in scales.iter().enumerate() {
                    let row = strip.row(first + row);
                    if let Some(factor) = scale.single() {
                        add_singles(simd, [row], [factor], sums);
                    } else {
                        for (sum, &value) in sums.iter_mut().zip(row) {
                            *sum += toward_zero(scale.apply(value.wide()));
                        }
                    }
                }
            }
        },
    );
}

/// Adds up several rows, each times its factor.
#[inline(always)]
fn add_singles<S: Simd, const ROWS: usize>(
    simd: S,
    rows: [&[f32]; ROWS],
    factors: [f32; ROWS],
    sums: &mut [i32],
) {
    let lanes = S::f32s::LEN;
    let wide = factors.map(|factor| S::f32s::splat(simd, factor));
    let (vectors, rest) = sums.split_at_mut(sums.len() / lanes * lanes);
    for (index, sums) in vectors.chunks_exact_mut(lanes).enumerate() {
        let mut total = S::i32s::from_slice(simd, sums);
        for (row, factor) in rows.iter().zip(wide) {
            let values = S::f32s::from_slice(simd, &row[index * lanes..][..lanes]);
            total += (values * factor).to_int::<S::i32s>();
        }
        total.store_slice(sums);
    }
    for (sum, column) in rest.iter_mut().zip(vectors.len()..) {
        for (row, factor) in rows.iter().zip(factors) {
            *sum += toward_zero((row[column] * factor).into());
        }
    }
}

/// A number that 32 bits hold, rounded toward zero.
#[expect(clippy::cast_possible_truncation, reason = "toward zero, as meant")]
#[inline(always)]
fn toward_zero(value: f64) -> i32 {
    value as i32
}
