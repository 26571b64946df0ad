//! Integer noise added to counts.

mod linear_loss;
mod skellam;
mod summed;
mod tabulated;

use self::linear_loss::{LinearLoss, weight_of_odd};
use self::skellam::skellam;
use self::summed::{SMOOTH, summed};
use self::tabulated::Tabulated;
use super::HockeyStick;
use super::double::Double;
use super::normal::UNIT;
use crate::{Error, Result};

/// Integer noise of a symmetric law, added to each coordinate of a vector of counts.
///
/// It computes two divergences. `single` is that of one coordinate shifted by one, when a person is
/// added or removed: `sum over x of [P(x) - a P(x - 1)]_+` with `a = e^epsilon`. `replace` is that
/// of two coordinates shifted by one in opposite directions, when a person changes item: `sum over
/// x, y of [P(x) P(y) - a P(x - 1) P(y - 1)]_+`. The laws are symmetric, so the direction of a
/// shift does not matter.
///
/// The laws are log-concave: the ratio `rho(x) = P(x) / P(x - 1)` falls, and events are tails.
/// Every divergence is a sum of positive terms, with distances to the threshold at twice the
/// working precision, so nothing cancels:
///
/// * discrete Laplace: the privacy loss takes three values, so there are closed forms;
/// * discrete Gaussian (Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy",
///   2020): the loss is linear in x, or in x + y. The law of x + y is a discrete Gaussian for each
///   parity;
/// * Skellam (Agarwal, Kairouz, Liu, "The Skellam Mechanism for Differentially Private Federated
///   Learning", 2021): the ratios come from the backward recurrence `1/rho(x) = x/mu + rho(x + 1)`
///   of Bessel functions. `replace` is a sum over x of what is left to y, in a single pass.
///
/// The bound is never below the exact value. It is above it by at most `350 * 2^-53` of it plus
/// 1e-300. For Skellam noise with a mean above 1.4e9, the table is cut off at a probability, which
/// adds at most 2e-49. A table is built once. One epsilon then takes constant time, except
/// `replace` with Skellam noise, which takes time proportional to the standard deviation.
///
/// ```
/// use turnout_core::accounting::IntegerNoise;
/// let noise = IntegerNoise::discrete_gaussian(5.28)?;
/// assert!(noise.replace(1.0).delta < 1e-5);
/// // Losses of discrete Laplace noise are bounded.
/// assert!(IntegerNoise::discrete_laplace(2.0)?.replace(1.0).delta == 0.0);
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct IntegerNoise {
    law: Law,
}

#[derive(Debug, Clone)]
enum Law {
    Laplace {
        scale: f64,
    },
    Gaussian {
        single: LinearLoss,
        replace: LinearLoss,
    },
    Table(Tabulated),
    /// Noise that is 0 but for a probability below 1e-40.
    None,
}

impl IntegerNoise {
    /// The smallest scale of any law. With it, no intermediate number is out of range.
    pub const SMALLEST_SCALE: f64 = 1e-100;

    /// The largest scale of discrete Laplace and discrete Gaussian noise.
    pub const LARGEST_SCALE: f64 = 1e6;

    /// The largest mean of each of the two Poisson counts whose difference is Skellam noise.
    pub const LARGEST_MEAN: f64 = 1e10;

    /// The largest sum of the variances of discrete Gaussians.
    pub const LARGEST_VARIANCE: f64 = 1e12;

    /// The largest number of discrete Gaussians that are added up.
    pub const LARGEST_PIECES: u32 = 10_000_000;

    /// Noise with `P(x)` proportional to `e^(-|x| / scale)`.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the scale is not from [`IntegerNoise::SMALLEST_SCALE`] to
    /// [`IntegerNoise::LARGEST_SCALE`].
    pub fn discrete_laplace(scale: f64) -> Result<Self> {
        let scale = check(scale, Self::LARGEST_SCALE, "from 1e-100 to 1e6")?;
        Ok(Self { law: Law::Laplace { scale } })
    }

    /// Noise with `P(x)` proportional to `e^(-x^2 / (2 sigma^2))`.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if sigma is not from [`IntegerNoise::SMALLEST_SCALE`] to
    /// [`IntegerNoise::LARGEST_SCALE`].
    pub fn discrete_gaussian(sigma: f64) -> Result<Self> {
        let sigma = check(sigma, Self::LARGEST_SCALE, "from 1e-100 to 1e6")?;
        Ok(Self::gaussian(Double::product(sigma, sigma)))
    }

    fn gaussian(variance: Double) -> Self {
        let single = LinearLoss::new(variance, variance, 1, 1.0);
        // The sum n of two is e^(-n^2 / (4 sigma^2)) times a sum over x - n/2, which depends on the
        // parity of n.
        let replace = LinearLoss::new(variance, variance * 2.0, 2, weight_of_odd(variance));
        Self { law: Law::Gaussian { single, replace } }
    }

    /// Noise that is the sum of independent discrete Gaussians, each with `P(x)` proportional to
    /// `e^(-x^2 / (2 variance))`.
    ///
    /// The sum is not a discrete Gaussian: its law is computed, however small the variance of a
    /// piece.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the variance is not from [`IntegerNoise::SMALLEST_SCALE`] to
    /// [`IntegerNoise::LARGEST_VARIANCE`], the number of pieces is not from 1 to
    /// [`IntegerNoise::LARGEST_PIECES`], or their product is above
    /// [`IntegerNoise::LARGEST_VARIANCE`].
    pub fn summed_discrete_gaussian(variance: f64, pieces: u32) -> Result<Self> {
        let error =
            |argument, value, expected| Err(Error::Accounting { argument, value, expected });
        if !(1..=Self::LARGEST_PIECES).contains(&pieces) {
            return error("pieces", f64::from(pieces), "from 1 to 10^7");
        }
        let total = Double::product(variance, f64::from(pieces));
        if !(Self::SMALLEST_SCALE..=Self::LARGEST_VARIANCE).contains(&variance)
            || total.value() > Self::LARGEST_VARIANCE
        {
            let expected = "from 1e-100 to 1e12, also times the number of pieces";
            return error("variance", variance, expected);
        }
        // All but a part of this of one piece is 0, from below by half at the most.
        let away = libm::exp(-0.5 / variance) * f64::from(pieces);
        let law = if pieces == 1 || variance >= SMOOTH {
            return Ok(Self::gaussian(total));
        } else if variance < 1.0 && away < 1e-41 {
            Law::None
        } else {
            Law::Table(summed(variance, pieces))
        };
        Ok(Self { law })
    }

    /// Noise that is the difference of two independent Poisson counts with this mean. Its variance
    /// is twice the mean.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the mean is not from [`IntegerNoise::SMALLEST_SCALE`] to
    /// [`IntegerNoise::LARGEST_MEAN`].
    pub fn skellam(mean: f64) -> Result<Self> {
        let mean = check(mean, Self::LARGEST_MEAN, "from 1e-100 to 1e10")?;
        Ok(Self { law: Law::Table(skellam(mean)) })
    }

    /// The divergence for two coordinates shifted by one in opposite directions, at a finite
    /// epsilon of at least 0.
    #[must_use]
    pub fn replace(&self, epsilon: f64) -> HockeyStick {
        match &self.law {
            Law::Laplace { scale } => laplace(*scale, epsilon, 2),
            Law::Gaussian { replace, .. } => replace.divergence(epsilon),
            Law::Table(table) => table.replace(epsilon),
            Law::None => TOLD,
        }
    }

    /// The divergence for one coordinate shifted by one, at a finite epsilon of at least 0.
    #[must_use]
    pub fn single(&self, epsilon: f64) -> HockeyStick {
        match &self.law {
            Law::Laplace { scale } => laplace(*scale, epsilon, 1),
            Law::Gaussian { single, .. } => single.divergence(epsilon),
            Law::Table(table) => table.single(epsilon),
            Law::None => TOLD,
        }
    }
}

/// The divergence where there is no noise.
const TOLD: HockeyStick = HockeyStick { delta: 1.0, p: 1.0, q: 0.0 };

/// The smallest positive number, which bounds what one operation loses by underflow.
const LOST: f64 = f64::from_bits(1);

fn check(scale: f64, largest: f64, expected: &'static str) -> Result<f64> {
    if (IntegerNoise::SMALLEST_SCALE..=largest).contains(&scale) {
        Ok(scale)
    } else {
        Err(Error::Accounting { argument: "scale", value: scale, expected })
    }
}

/// Discrete Laplace noise on `shifts` shifted coordinates, one or two.
///
/// A coordinate has `rho = e^(1/b)` for x <= 0, of probability `1 / (1 + r)` with `r = e^(-1/b)`,
/// and `1 / rho` otherwise. So only all coordinates at their larger ratio are beyond an epsilon
/// from 0 to `shifts / b`. At most ten roundings.
fn laplace(scale: f64, epsilon: f64, shifts: i32) -> HockeyStick {
    // One rounding, and so of the right sign: epsilon b - shifts.
    let beyond = epsilon.mul_add(scale, -f64::from(shifts)) / scale;
    if beyond >= 0.0 {
        return HockeyStick::NONE;
    }
    let ratio = libm::exp(-1.0 / scale);
    let p = (1.0 / (1.0 + ratio)).powi(shifts);
    let delta = (-libm::expm1(beyond) * p * (1.0 + 16.0 * UNIT)).min(1.0);
    HockeyStick { delta, p, q: ratio.powi(shifts) * p }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `e^-x` for a pair, within 2^-94.
    fn negative_exponential(x: Double) -> Double {
        Double::ONE / (Double::exp(x.high) * (Double::ONE + Double::from(x.low)))
    }

    /// A law on `-L..=L` from its weights on `0..=L`, at twice the working precision.
    fn law(weights: &[Double]) -> Vec<Double> {
        let half = weights[1..].iter().fold(Double::ZERO, |sum, &weight| sum + weight);
        let total = half * 2.0 + weights[0];
        let mirrored = weights[1..].iter().rev().chain(weights);
        mirrored.map(|&weight| weight / total).collect()
    }

    fn laplace_law(scale: f64) -> Vec<Double> {
        let weight = |x: u32| negative_exponential(Double::from(f64::from(x)) / scale);
        law(&(0..100_000).map(weight).take_while(|x| x.high > 1e-150).collect::<Vec<_>>())
    }

    fn gaussian_law(sigma: f64) -> Vec<Double> {
        let twice_variance = Double::product(sigma, sigma) * 2.0;
        let square = |x: u32| Double::from(f64::from(x) * f64::from(x));
        let argument = |x: u32| square(x) / twice_variance;
        let inside = (0..100_000).map(argument).take_while(|y| y.high < 640.0);
        law(&inside.map(negative_exponential).collect::<Vec<_>>())
    }

    /// The convolution of two Poisson laws.
    fn skellam_law(mean: f64) -> Vec<Double> {
        let mut poisson = vec![Double::ONE];
        for k in 1..2_000_u32 {
            poisson.push(poisson[poisson.len() - 1] * mean / f64::from(k));
        }
        let weight = |x: usize| {
            let pairs = poisson.iter().zip(&poisson[x..]);
            pairs.fold(Double::ZERO, |sum, (&k, &other)| sum + k * other)
        };
        let largest = weight(0).high;
        law(&(0..1_000).map(weight).take_while(|x| x.high > 1e-250 * largest).collect::<Vec<_>>())
    }

    /// Delta, P and Q by their definition: [one shifted coordinate, two].
    fn by_definition(law: &[Double], epsilon: f64) -> [[Double; 3]; 2] {
        let ratio = Double::exp(epsilon);
        let mut sums = [[Double::ZERO; 3]; 2];
        let mut add = |which: usize, p: Double, q: Double| {
            let gain = p - ratio * q;
            // Ties are not in the event.
            if gain.high > 1e-28 * p.high {
                let [delta, of_p, of_q] = sums[which];
                sums[which] = [delta + gain, of_p + p, of_q + q];
            }
        };
        for x in 0..law.len() {
            let before = if x > 0 { law[x - 1] } else { Double::ZERO };
            add(0, law[x], before);
            for y in 1..law.len() {
                add(1, law[x] * law[y], before * law[y - 1]);
            }
            add(1, law[x] * law[0], Double::ZERO);
        }
        sums
    }

    fn agrees(ours: HockeyStick, exact: [Double; 3], cut: f64, context: &str) {
        let [delta, p, q] = exact;
        // What the enumeration cuts off, and its own rounding.
        let above = (Double::from(ours.delta) - delta).value();
        assert!(above >= -1e-25 * delta.high - cut, "{context}: {ours:?} below {delta:?}");
        assert!(above <= 110.0 * UNIT * delta.high + cut, "{context}: {ours:?} above {delta:?}");
        for (ours, exact) in [(ours.p, p), (ours.q, q)] {
            let difference = (Double::from(ours) - exact).value().abs();
            assert!(difference <= 1e-14 * exact.high + cut, "{context}: {ours} {exact:?}");
        }
    }

    fn agrees_with_definition(noise: &IntegerNoise, law: &[Double], context: &str) {
        // Beyond the enumeration's ends.
        let cut = 1e-200_f64.max(4.0 * law[0].high);
        for epsilon in [0.0, 1e-3, 0.05, 0.3, 1.0, 2.5, 7.0, 20.0, 90.0] {
            let [single, replace] = by_definition(law, epsilon);
            let context = format!("{context}, epsilon {epsilon}");
            agrees(noise.single(epsilon), single, cut, &format!("{context}, single"));
            agrees(noise.replace(epsilon), replace, cut, &format!("{context}, replace"));
        }
    }

    #[test]
    fn discrete_laplace_agrees_with_the_definition() -> Result<()> {
        for scale in [0.01, 0.1, 0.37, 1.0, 2.0] {
            let noise = IntegerNoise::discrete_laplace(scale)?;
            agrees_with_definition(&noise, &laplace_law(scale), &format!("scale {scale}"));
        }
        Ok(())
    }

    #[test]
    fn discrete_gaussian_agrees_with_the_definition() -> Result<()> {
        for sigma in [0.03, 0.1, 0.3, 0.5, 0.81, 1.0, 1.7, 2.12, 2.13, 5.28, 13.7] {
            let noise = IntegerNoise::discrete_gaussian(sigma)?;
            agrees_with_definition(&noise, &gaussian_law(sigma), &format!("sigma {sigma}"));
        }
        Ok(())
    }

    #[test]
    fn skellam_agrees_with_the_definition() -> Result<()> {
        for mean in [1e-5, 0.01, 0.3, 1.0, 2.7, 13.15, 80.0] {
            let noise = IntegerNoise::skellam(mean)?;
            agrees_with_definition(&noise, &skellam_law(mean), &format!("mean {mean}"));
        }
        Ok(())
    }

    /// The law of the sum of some discrete Gaussians, by plain repeated convolution.
    fn summed_law(variance: f64, pieces: u32) -> Vec<Double> {
        let piece = gaussian_law(libm::sqrt(variance));
        let mut sum = piece.clone();
        for _ in 1..pieces {
            let mut next = vec![Double::ZERO; sum.len() + piece.len() - 1];
            for (x, &p) in sum.iter().enumerate() {
                for (y, &q) in piece.iter().enumerate() {
                    next[x + y] = next[x + y] + p * q;
                }
            }
            // What is cut is below 1e-250 of what stays.
            let start = next.iter().position(|mass| mass.high > 1e-250).unwrap_or(0);
            sum = next[start..next.len() - start].to_vec();
        }
        sum
    }

    #[test]
    fn summed_gaussians_agree_with_the_definition() -> Result<()> {
        // Numbers whose squares are exact, so that both have the same variance.
        for (sigma, pieces) in [
            (0.125, 2),
            (0.25, 100),
            (0.375, 40),
            (0.5, 3),
            (0.5, 75),
            (1.5, 2),
            (2.25, 9),
            (3.5, 5),
        ] {
            let variance = sigma * sigma;
            let noise = IntegerNoise::summed_discrete_gaussian(variance, pieces)?;
            let law = summed_law(variance, pieces);
            for epsilon in [0.0, 1e-3, 0.05, 0.3, 1.0, 2.5, 7.0] {
                let [single, replace] = by_definition(&law, epsilon);
                let context = format!("{sigma} {pieces} {epsilon}");
                agrees(noise.single(epsilon), single, 1e-50, &format!("{context}, single"));
                agrees(noise.replace(epsilon), replace, 1e-50, &format!("{context}, replace"));
            }
        }
        Ok(())
    }

    #[test]
    fn one_piece_and_wide_pieces_are_one_discrete_gaussian() -> Result<()> {
        for (sigma, pieces) in [(0.25, 1), (30.0, 1), (8.0, 4), (5.0, 1 << 10)] {
            let whole = IntegerNoise::discrete_gaussian(sigma * f64::from(pieces).sqrt())?;
            let sum = IntegerNoise::summed_discrete_gaussian(sigma * sigma, pieces)?;
            for epsilon in [0.0, 0.01, 0.1] {
                assert_eq!(whole.replace(epsilon), sum.replace(epsilon));
                assert_eq!(whole.single(epsilon), sum.single(epsilon));
            }
        }
        Ok(())
    }

    #[test]
    fn variances_for_one_and_a_hundred_thousandth_are_known() -> Result<()> {
        // The variance per coordinate at which `replace` gives delta = 1e-5 at epsilon = 1.
        let bounds = |low: IntegerNoise, high: IntegerNoise| {
            low.replace(1.0).delta > 1e-5 && high.replace(1.0).delta < 1e-5
        };
        let gaussian = |variance: f64| IntegerNoise::discrete_gaussian(variance.sqrt());
        assert!(bounds(gaussian(27.75)?, gaussian(27.85)?));
        let skellam = |variance: f64| IntegerNoise::skellam(0.5 * variance);
        assert!(bounds(skellam(26.25)?, skellam(26.35)?));
        // Pure from a scale of 2 / epsilon on.
        assert_eq!(IntegerNoise::discrete_laplace(2.0)?.replace(1.0), HockeyStick::NONE);
        assert!(IntegerNoise::discrete_laplace(2.0_f64.next_down())?.replace(1.0).delta > 0.0);
        Ok(())
    }

    #[test]
    fn deltas_fall_with_epsilon_and_events_attain_them() -> Result<()> {
        type Make = fn(f64) -> Result<IntegerNoise>;
        let makes: [Make; 3] = [
            IntegerNoise::discrete_laplace,
            IntegerNoise::discrete_gaussian,
            IntegerNoise::skellam,
        ];
        for make in makes {
            for scale in [0.1, 0.7, 2.0, 30.0, 400.0] {
                let noise = make(scale)?;
                let mut before = [1.0; 2];
                for step in 0..80_i32 {
                    let epsilon = 1e-5 * 1.25_f64.powi(step);
                    let values = [noise.single(epsilon), noise.replace(epsilon)];
                    for which in 0..2 {
                        let HockeyStick { delta, p, q } = values[which];
                        assert!((0.0..=1.0).contains(&delta));
                        assert!(delta <= before[which] * (1.0 + 400.0 * UNIT) + 1e-300);
                        let gap = p - libm::exp(epsilon.min(600.0)) * q;
                        assert!((gap - delta).abs() <= 1e-13 * p + 1e-300, "{gap} {delta}");
                        before[which] = delta;
                    }
                    assert!(values[0].delta <= values[1].delta * (1.0 + 400.0 * UNIT) + 1e-300);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn the_smallest_scales_hide_nothing_and_large_epsilons_cost_nothing() -> Result<()> {
        let smallest = IntegerNoise::SMALLEST_SCALE;
        for noise in [
            IntegerNoise::discrete_laplace(smallest)?,
            IntegerNoise::discrete_gaussian(smallest)?,
            IntegerNoise::skellam(smallest)?,
            IntegerNoise::skellam(1e-20)?,
        ] {
            for epsilon in [0.0, 1.0, 5.0] {
                let (single, replace) = (noise.single(epsilon), noise.replace(epsilon));
                assert!(single.delta > 1.0 - 1e-15 && single.p > 1.0 - 1e-15 && single.q < 1e-15);
                assert!(replace.delta > 1.0 - 1e-15 && replace.p > 1.0 - 1e-15);
            }
        }
        for noise in [
            IntegerNoise::discrete_laplace(1.0)?,
            IntegerNoise::discrete_gaussian(1.0)?,
            IntegerNoise::skellam(1.0)?,
            IntegerNoise::skellam(1e4)?,
        ] {
            for epsilon in [800.0, 1e300, f64::MAX] {
                assert!(noise.single(epsilon).delta < 1e-300);
                assert!(noise.replace(epsilon).delta < 1e-300);
            }
        }
        Ok(())
    }

    #[test]
    fn bad_scales_are_named() {
        let largest = IntegerNoise::LARGEST_SCALE;
        for scale in [0.0, -1.0, 1e-105, f64::NAN, f64::INFINITY, 2.0 * largest] {
            for error in [
                IntegerNoise::discrete_laplace(scale).err(),
                IntegerNoise::discrete_gaussian(scale).err(),
                IntegerNoise::skellam(scale * 1e4).err(),
            ] {
                assert!(matches!(error, Some(Error::Accounting { argument: "scale", .. })));
            }
        }
    }
}
