//! Binomial counts in constant expected time.

use core::f64::consts::LN_2;

use rand::Rng;

use super::uniform_below;
use crate::stirling::stirling_error;

/// Draws a binomial count: the number of successes in `trials` trials of probability `probability`.
///
/// If the expected numbers of successes and of failures are both at least 10, it uses transformed
/// rejection with a squeeze. Source: Hoermann, "The generation of binomial random variates", J.
/// Stat. Comput. Simul. 46 (1993), algorithm BTRS. Four of five draws need no mass, and nearly all
/// others need only an enclosure of it by three terms of a series. Otherwise it rejects from a hat
/// of blocks. Let `m` be the mode, and `s` a width at which the mass has at least halved on both
/// sides. The binomial mass is log-concave, so `j` widths away it is at most `2^-j` of the mode's.
/// Blocks of width `s`, chosen by the leading zeros of a random word, cover it. About half of the
/// draws are accepted, for any number of trials. Compare Bringmann, Kuhn, Panagiotou, Peter,
/// Thomas, "Internal DLA: efficient simulation of a physical growth model", ICALP 2014.
///
/// It uses no normal approximation. The acceptance probability is evaluated in double precision
/// through Loader's saddle-point form. Its relative error stays below 1e-9 up to 10^15 trials (a
/// test compares it with exact rationals), so the law is exact to that precision. Only simulation
/// uses this: no privacy guarantee depends on it.
///
/// `probability` is clamped to [0, 1]; a NaN counts as zero.
///
/// ```
/// use turnout_core::random::{AesStreams, Purpose, Streams, binomial};
/// let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
/// assert_eq!(binomial(10, 1.0, &mut stream), 10);
/// let heads = binomial(1_000_000_000_000, 0.5, &mut stream);
/// assert!(heads.abs_diff(500_000_000_000) < 5_000_000);
/// ```
pub fn binomial<R: Rng>(trials: u64, probability: f64, rng: &mut R) -> u64 {
    if trials == 0 || probability.is_nan() || probability <= 0.0 {
        return 0;
    }
    if probability >= 1.0 {
        return trials;
    }
    if probability > 0.5 {
        // Exact: 1 - p is a floating-point number for p in [1/2, 1].
        return trials - at_most_half(trials, 1.0 - probability, rng);
    }
    at_most_half(trials, probability, rng)
}

fn at_most_half<R: Rng>(trials: u64, probability: f64, rng: &mut R) -> u64 {
    let mean = trials as f64 * probability;
    if mean >= Transformed::LEAST_MEAN && trials <= Transformed::MOST_TRIALS {
        Transformed::new(trials, probability, mean).draw(rng)
    } else {
        Hat::new(trials, probability).draw(rng)
    }
}

/// The middle of a cell of width 2^-53: never zero.
pub(super) fn uniform<R: Rng>(rng: &mut R) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) * (0.5 * f64::EPSILON)
}

/// Uniform numbers `u` in (-1/2, 1/2), bent to `G(u) = (2 a / (1/2 - |u|) + b) u + c`: the count is
/// `floor(G(u))`, accepted with probability `f(count) G'(u) / (f(mode) alpha)`, which is at least
/// `squeeze` in the middle (a test looks at all of it).
struct Transformed {
    trials: u64,
    probability: f64,
    mean: f64,
    deviation: f64,
    a: f64,
    b: f64,
    /// `c` as a whole number and what is beyond it.
    centre: (u64, f64),
    squeeze: f64,
}

impl Transformed {
    const LEAST_MEAN: f64 = 10.0;

    /// Above, a mean in floating point may be off by a trial.
    const MOST_TRIALS: u64 = 1 << 53;

    /// The least `1/2 - |u|` of the middle.
    const MIDDLE: f64 = 0.07;

    fn new(trials: u64, probability: f64, mean: f64) -> Self {
        let deviation = (mean * (1.0 - probability)).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let centre = mean + 0.5;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let whole = centre as u64;
        Self {
            trials,
            probability,
            mean,
            deviation,
            a: -0.0873 + 0.0248 * b + 0.01 * probability,
            b,
            centre: (whole, centre - whole as f64),
            squeeze: 0.92 - 4.2 / b,
        }
    }

    #[inline]
    fn draw<R: Rng>(&self, rng: &mut R) -> u64 {
        loop {
            let (bent, height) = (uniform(rng) - 0.5, uniform(rng));
            let left = 0.5 - bent.abs();
            let Some(count) = self.count(bent, left) else { continue };
            if left >= Self::MIDDLE && height <= self.squeeze || self.accepts(count, left, height) {
                return count;
            }
        }
    }

    /// `floor(G(u))`, if it is a count.
    #[inline]
    fn count(&self, bent: f64, left: f64) -> Option<u64> {
        let (whole, beyond) = self.centre;
        let distance = ((2.0 * self.a / left + self.b) * bent + beyond).floor();
        #[expect(clippy::cast_possible_truncation, reason = "what is too large stays too large")]
        whole.checked_add_signed(distance as i64).filter(|&count| count <= self.trials)
    }

    fn accepts(&self, count: u64, left: f64, height: f64) -> bool {
        let needed = libm::log(height / self.slope(left));
        let (logarithm, error) = self.near_mode(count);
        if (needed - logarithm).abs() > error {
            return needed < logarithm;
        }
        let mass = Mass::new(self.trials, self.probability);
        needed <= mass.logarithm(count) - mass.logarithm(self.mode())
    }

    /// `G'(u) / alpha`.
    fn slope(&self, left: f64) -> f64 {
        let alpha = (2.83 + 5.1 / self.b) * self.deviation;
        (self.a / (left * left) + self.b) / alpha
    }

    fn mode(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let mode = (self.mean + self.probability) as u64;
        mode.min(self.trials)
    }

    /// The logarithm of `f(count) / f(mode)`, and how far off it may be.
    ///
    /// With `P = (n + 1) p`, `Q = (n + 1) (1 - p)` and `y = j - P`, neighbouring masses are
    /// `f(j) / f(j - 1) = (1 - y / Q) / (1 + y / P)`. Of each logarithm the first two terms of its
    /// series are added up over all `j` between the mode and the count, `d` of them; what is left out
    /// is at most `|y|^3 / 3 (1 / P^3 + 1 / Q^3) / (1 - |y| / P)` for each, as `P <= Q`, and the `|y|^3`
    /// add up to at most `(d (d + 1) / 2)^2`.
    fn near_mode(&self, count: u64) -> (f64, f64) {
        let (n, p) = (self.trials as f64, self.probability);
        let mode = self.mode();
        // P less the mode: n p as it is, and not rounded.
        let beyond = n.mul_add(p, -self.mean) + (self.mean - mode as f64) + p;
        let distance = count.abs_diff(mode) as f64;
        let signed = if count < mode { -distance } else { distance };
        let (inverse, inverse_of_rest) = (1.0 / (self.mean + p), 1.0 / ((n + 1.0) * (1.0 - p)));
        let close = 1.0 - distance * inverse;
        if close < 0.25 {
            return (0.0, f64::INFINITY);
        }
        let after = signed + 1.0;
        let first = signed * (after - 2.0 * beyond) / 2.0;
        let second =
            signed * (after * (2.0 * signed + 1.0) / 6.0 - beyond * after + beyond * beyond);
        let sum = inverse + inverse_of_rest;
        let logarithm = sum * (0.5 * second * (inverse - inverse_of_rest) - first);
        let cubes =
            inverse * inverse * inverse + inverse_of_rest * inverse_of_rest * inverse_of_rest;
        let all = distance * (distance + 1.0);
        // And what is rounded: of terms that are at most some hundreds, in units of 2^-53.
        (logarithm, all * all * cubes / (12.0 * close) + 1e-12)
    }
}

/// Blocks of geometrically falling height that cover the mass.
struct Hat {
    mass: Mass,
    mode: u64,
    width: u64,
    at_mode: f64,
}

impl Hat {
    fn new(trials: u64, probability: f64) -> Self {
        let mass = Mass::new(trials, probability);
        let mean = trials as f64 * probability;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let mode = ((mean + probability) as u64).min(trials);
        let at_mode = mass.logarithm(mode);
        // The margin is far above the evaluation error, so the hat stays above the mass.
        let half = at_mode - LN_2 - 1e-6;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let mut width = (1.18 * (mean * (1.0 - probability)).sqrt()) as u64 + 1;
        let halved = |count: Option<u64>| {
            count.filter(|&count| count <= trials).is_none_or(|count| mass.logarithm(count) <= half)
        };
        while !(halved(mode.checked_add(width)) && halved(mode.checked_sub(width))) {
            width += width / 16 + 1;
        }
        Self { mass, mode, width, at_mode }
    }

    fn draw<R: Rng>(&self, rng: &mut R) -> u64 {
        loop {
            let word = rng.next_u64();
            // The low bit is the side, the leading zeros of the rest the block.
            let block = (word | 1).leading_zeros();
            let position = u64::from(block)
                .checked_mul(self.width)
                .and_then(|start| start.checked_add(uniform_below(self.width, rng)));
            let count = if word & 1 == 0 {
                position.and_then(|position| self.mode.checked_add(position))
            } else {
                position.and_then(|position| self.mode.checked_sub(position)?.checked_sub(1))
            };
            let Some(count) = count.filter(|&count| count <= self.mass.trials) else { continue };
            let height = self.at_mode - f64::from(block) * LN_2;
            if libm::log(uniform(rng)) <= self.mass.logarithm(count) - height {
                return count;
            }
        }
    }
}

/// The binomial mass function, by the saddle-point form of Loader, "Fast and accurate computation
/// of binomial probabilities" (2000).
pub(super) struct Mass {
    trials: u64,
    probability: f64,
    /// The terms that do not depend on the count.
    constant: f64,
    /// `n p` and `n (1 - p)` as unevaluated sums of two numbers.
    mean: (f64, f64),
    mean_of_rest: (f64, f64),
}

impl Mass {
    pub(super) fn new(trials: u64, probability: f64) -> Self {
        let n = trials as f64;
        let mean = n * probability;
        let correction = n.mul_add(probability, -mean);
        let rest = n - mean;
        let lost = if mean <= rest { (n - rest) - mean } else { n - (rest + mean) };
        Self {
            trials,
            probability,
            constant: stirling_error(trials) + 0.5 * libm::log(n / core::f64::consts::TAU),
            mean: (mean, correction),
            mean_of_rest: (rest, lost - correction),
        }
    }

    /// The logarithm of the mass at `count <= trials`.
    pub(super) fn logarithm(&self, count: u64) -> f64 {
        let n = self.trials as f64;
        if count == 0 {
            return n * libm::log1p(-self.probability);
        }
        if count == self.trials {
            return n * libm::log(self.probability);
        }
        let rest = self.trials - count;
        let (k, l) = (count as f64, rest as f64);
        self.constant
            - stirling_error(count)
            - stirling_error(rest)
            - deviance(k, self.mean)
            - deviance(l, self.mean_of_rest)
            - 0.5 * libm::log(k * l)
    }
}

/// `x ln(x / m) + m - x` without cancellation, for `m` given as a sum of two numbers.
fn deviance(x: f64, (m, correction): (f64, f64)) -> f64 {
    let t = ((m - x) + correction) / x;
    let excess = if t.abs() < 0.01 {
        // t - ln(1 + t) by its series: the terms left out are below 1e-17 of the sum.
        let tail = t * (1.0 / 7.0 - t * (1.0 / 8.0 - t * (1.0 / 9.0 - t / 10.0)));
        let series = t * (1.0 / 3.0 - t * (0.25 - t * (0.2 - t * (1.0 / 6.0 - tail))));
        t * t * (0.5 - series)
    } else {
        t - libm::log1p(t)
    };
    x * excess
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::{One, ToPrimitive};

    use super::*;
    use crate::random::{AesStreams, Purpose, Streams};

    /// All masses of a binomial, by exact rationals.
    fn exact_masses(trials: u32, probability: f64) -> Vec<BigRational> {
        let p = BigRational::from_float(probability).unwrap_or_else(BigRational::one);
        let q = BigRational::one() - &p;
        let mut mass = q.pow(i32::try_from(trials).unwrap_or(0));
        let odds = p / q;
        let mut masses = vec![mass.clone()];
        for count in 0..trials {
            mass *= BigRational::new(BigInt::from(trials - count), BigInt::from(count + 1));
            mass *= &odds;
            masses.push(mass.clone());
        }
        masses
    }

    #[test]
    fn the_logarithm_of_the_mass_agrees_with_exact_rationals() {
        for (trials, probability) in [(1, 0.3), (2, 0.5), (17, 0.01), (60, 0.4), (200, 0.125)] {
            let mass = Mass::new(trials, probability);
            let exact = exact_masses(u32::try_from(trials).unwrap_or(0), probability);
            for (count, exact) in (0..).zip(exact) {
                let ours = mass.logarithm(count).exp();
                let exact = exact.to_f64().unwrap_or(f64::NAN);
                assert!((ours - exact).abs() <= 1e-11 * exact, "{trials} {probability} {count}");
            }
        }
    }

    #[test]
    fn ratios_to_the_mode_are_exact_for_a_hundred_trillion_trials() {
        // f(k) / f(mode) as a product of exact ratios of neighbours, summed as logarithms near 0.
        let (trials, probability) = (100_000_000_000_000_u64, 0.1);
        let mode = 10_000_000_000_000_u64;
        let mass = Mass::new(trials, probability);
        let (n, p) = (trials as f64, probability);
        // 0.1 as a floating-point number is 3602879701896397 / 2^55, so n p is 10^13 + 0.000555...
        let beyond = 5.551_115_123_125_783e-4;
        let mut sum = 0.0;
        for step in 0..15_000_000_u32 {
            let shift = f64::from(step) - beyond;
            sum += (-shift / (n * (1.0 - p))).ln_1p() - ((shift + 1.0) / (n * p)).ln_1p();
        }
        let ours = mass.logarithm(mode + 15_000_000) - mass.logarithm(mode);
        assert!((ours - sum).abs() < 2e-10, "{ours} against {sum}");
    }

    #[test]
    fn the_hat_covers_the_mass() {
        for (trials, probability) in [(1, 0.4), (9, 0.5), (100, 0.02), (3_000, 0.3), (5_000, 1e-3)]
        {
            let hat = Hat::new(trials, probability);
            for count in 0..=trials {
                let distance =
                    if count >= hat.mode { count - hat.mode } else { hat.mode - count - 1 };
                let height = hat.at_mode - (distance / hat.width) as f64 * LN_2;
                assert!(
                    hat.mass.logarithm(count) <= height + 1e-12,
                    "{trials} {probability} {count}"
                );
            }
        }
    }

    #[test]
    fn no_acceptance_is_above_one_or_below_the_squeeze_or_far_from_its_series() {
        for trials in [20, 21, 40, 100, 333, 1000, 12_345, 1_000_000, 1_000_000_000, 1 << 53] {
            for mean in [10.0, 10.4, 11.0, 13.3, 20.0, 57.0, 200.0, 1e4, 1e8, 1e15] {
                let Some(probability) = Some(mean / trials as f64).filter(|&p| p <= 0.5) else {
                    continue;
                };
                let mean = trials as f64 * probability;
                let law = Transformed::new(trials, probability, mean);
                let mass = Mass::new(trials, probability);
                let at_mode = mass.logarithm(law.mode());
                for step in -4999..5000_i32 {
                    let bent = f64::from(step) / 10_000.0;
                    let left = 0.5 - bent.abs();
                    let Some(count) = law.count(bent, left) else { continue };
                    let exact = mass.logarithm(count) - at_mode;
                    let logarithm = exact + law.slope(left).ln();
                    let label = format!("{trials} {probability} {bent}: {}", logarithm.exp());
                    let (near, error) = law.near_mode(count);
                    // No word is so small that a logarithm below -100 accepts.
                    assert!((near - exact).abs() <= error + 1e-9 || exact < -100.0, "{label}");
                    assert!(logarithm <= 0.0, "{label}");
                    assert!(
                        left < Transformed::MIDDLE || logarithm.exp() >= law.squeeze,
                        "{label}"
                    );
                }
            }
        }
    }

    #[test]
    fn small_binomials_fit_their_masses() {
        // Chi-square with k - 1 degrees of freedom against its quantile at alpha = 1e-6
        // (Wilson-Hilferty, z = 4.75).
        let streams = AesStreams::from_seed(5);
        for (case, (trials, probability)) in
            [(1_u32, 0.3), (6, 0.5), (12, 0.9), (30, 0.04), (24, 0.45), (90, 0.86)]
                .into_iter()
                .enumerate()
        {
            let mut stream = streams.stream(Purpose::Simulation, case as u64);
            let draws = 400_000_u32;
            let mut observed = vec![0_u32; trials as usize + 1];
            for _ in 0..draws {
                let count = binomial(trials.into(), probability, &mut stream);
                observed[usize::try_from(count).unwrap_or(0)] += 1;
            }
            let exact = exact_masses(trials, probability);
            let (mut statistic, mut cells) = (0.0, 0.0);
            let (mut rest_observed, mut rest_expected) = (0.0, 0.0);
            for (observed, exact) in observed.iter().zip(exact) {
                let expected = exact.to_f64().unwrap_or(f64::NAN) * f64::from(draws);
                if expected < 10.0 {
                    rest_observed += f64::from(*observed);
                    rest_expected += expected;
                } else {
                    statistic += (f64::from(*observed) - expected).powi(2) / expected;
                    cells += 1.0;
                }
            }
            if rest_expected > 1.0 {
                statistic += (rest_observed - rest_expected).powi(2) / rest_expected;
                cells += 1.0;
            }
            let freedom: f64 = cells - 1.0;
            let nine = 2.0 / (9.0 * freedom);
            let quantile = freedom * (1.0 - nine + 4.75 * nine.sqrt()).powi(3);
            assert!(statistic < quantile, "{trials} {probability}: {statistic} of {quantile}");
        }
    }

    #[test]
    fn large_binomials_have_the_right_mean_variance_and_skewness() {
        let streams = AesStreams::from_seed(6);
        for (case, (trials, probability)) in
            [(1_000_000_000_000_u64, 0.1), (1_000_000, 3e-5), (u64::from(u32::MAX), 0.75)]
                .into_iter()
                .enumerate()
        {
            let mut stream = streams.stream(Purpose::Simulation, case as u64);
            let draws = 300_000;
            let (n, p) = (trials as f64, probability);
            let deviation = (n * p * (1.0 - p)).sqrt();
            let mut sums = [0.0; 3];
            for _ in 0..draws {
                let z = (binomial(trials, probability, &mut stream) as f64 - n * p) / deviation;
                sums = [sums[0] + z, sums[1] + z * z, sums[2] + z * z * z];
            }
            let draws = f64::from(draws);
            let skewness = (1.0 - 2.0 * p) / deviation;
            // Standard deviations of z, z^2 and z^3 for a near-normal z: 1, sqrt 2, sqrt 15.
            let expected = [0.0, 1.0, skewness];
            for ((sum, expected), deviation) in sums.into_iter().zip(expected).zip([1.0, 1.5, 4.2])
            {
                let score = (sum / draws - expected) * draws.sqrt() / deviation;
                assert!(score.abs() < 5.2, "{trials} {probability}: {sums:?}");
            }
        }
    }

    #[test]
    fn degenerate_counts_are_certain() {
        let mut stream = AesStreams::from_seed(5).stream(Purpose::Simulation, 9);
        assert_eq!(binomial(0, 0.5, &mut stream), 0);
        assert_eq!(binomial(7, 0.0, &mut stream), 0);
        assert_eq!(binomial(7, 1.0, &mut stream), 7);
        assert_eq!(binomial(7, f64::NAN, &mut stream), 0);
        assert!(binomial(u64::MAX, 0.5, &mut stream) > 1 << 62);
    }
}
