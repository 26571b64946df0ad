//! The factor at which clipped numbers add up to a target.

/// Numbers `p` that are scaled by a common factor and clipped to limits.
pub(super) struct Clipped {
    /// Positive, finite.
    pub(super) numbers: Vec<f64>,
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
}

impl Clipped {
    /// One number, scaled and clipped. A product that overflows is clipped like any other.
    #[inline]
    pub(super) fn at(&self, index: usize, factor: f64) -> f64 {
        (self.numbers[index] * factor).max(self.low[index]).min(self.high[index])
    }

    /// The sum of the numbers, scaled and clipped, and its slope in the factor.
    pub(super) fn sum(&self, factor: f64) -> (f64, f64) {
        let (mut sum, mut slope) = (0.0, 0.0);
        let limits = self.low.iter().zip(&self.high);
        for (&number, (&low, &high)) in self.numbers.iter().zip(limits) {
            let scaled = number * factor;
            sum += scaled.max(low).min(high);
            slope += if scaled > low && scaled < high { number } else { 0.0 };
        }
        (sum, slope)
    }

    /// The factor at which the sum is `target`, between two positive factors of which the first
    /// gives no more and the second no less.
    ///
    /// The sum grows piecewise linearly with the factor, so Newton's step is exact once it is on
    /// the right piece. Every third step halves the bracket in the logarithm, so it always closes.
    #[expect(clippy::float_cmp, reason = "nothing is left to find")]
    pub(super) fn factor(&self, target: f64, (mut below, mut above): (f64, f64)) -> f64 {
        let mut factor = 1.0_f64.clamp(below, above);
        for step in 0..300 {
            let (sum, slope) = self.sum(factor);
            if sum == target {
                return factor;
            }
            if sum < target {
                below = factor;
            } else {
                above = factor;
            }
            let newton = factor + (target - sum) / slope;
            if (newton - factor).abs() <= 4.0 * f64::EPSILON * factor {
                return newton;
            }
            let inside = newton > below && newton < above;
            factor = if inside && step % 3 != 2 { newton } else { below.sqrt() * above.sqrt() };
            if !(factor > below && factor < above) {
                return above;
            }
        }
        above
    }
}
