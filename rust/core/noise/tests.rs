//! Laws of the noise, each against a computation that shares no code with the sampler.

use core::convert::Infallible;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;
use rand::TryRng;
use rayon::ThreadPoolBuilder;

use super::*;
use crate::random::AesStreams;

/// Gives the words of a list, then zeros.
pub(crate) struct Given<'a> {
    words: &'a [u64],
    used: usize,
}

impl<'a> Given<'a> {
    pub(crate) fn new(words: &'a [u64]) -> Self {
        Self { words, used: 0 }
    }

    /// How many words were read.
    pub(crate) fn used(&self) -> usize {
        self.used
    }
}

impl TryRng for Given<'_> {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }
    fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
        let word = self.words.get(self.used).copied().unwrap_or(0);
        self.used += 1;
        Ok(word)
    }
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Infallible> {
        Ok(())
    }
}

/// Chi-square against its quantile at alpha = 1e-6 (Wilson-Hilferty, z = 4.75), rare cells pooled.
pub(crate) fn check_law(observed: &[u64], masses: &[f64]) {
    let draws = observed.iter().sum::<u64>() as f64;
    let (mut statistic, mut cells) = (0.0, 0.0);
    let (mut rest_observed, mut rest_expected) = (0.0, 0.0);
    for (&observed, &mass) in observed.iter().zip(masses) {
        let expected = mass * draws;
        assert!(expected > 0.0 || observed == 0, "something happened that cannot happen");
        if expected < 10.0 {
            rest_observed += observed as f64;
            rest_expected += expected;
        } else {
            statistic += (observed as f64 - expected).powi(2) / expected;
            cells += 1.0;
        }
    }
    if rest_expected > 1.0 {
        statistic += (rest_observed - rest_expected).powi(2) / rest_expected;
        cells += 1.0;
    }
    let freedom = f64::max(cells - 1.0, 1.0);
    let nine = 2.0 / (9.0 * freedom);
    let quantile = freedom * (1.0 - nine + 4.75 * nine.sqrt()).powi(3);
    assert!(statistic < quantile, "{statistic} of {quantile} with {freedom} degrees of freedom");
}

/// Counts of the numbers from `-reach` to `reach`, with those beyond at the ends.
fn histogram(numbers: &[i64], reach: i64) -> Vec<u64> {
    let mut counts = vec![0; usize::try_from(2 * reach + 1).unwrap_or(0)];
    for number in numbers {
        counts[usize::try_from(number.clamp(&-reach, &reach) + reach).unwrap_or(0)] += 1;
    }
    counts
}

/// Masses from `-reach` to `reach` of an unnormalised symmetric law, with the tails at the ends.
fn symmetric(reach: i64, weight: impl Fn(f64) -> f64) -> Vec<f64> {
    let far = 20 * reach;
    let total: f64 = (-far..=far).map(|x| weight(x as f64)).sum();
    let mut masses: Vec<f64> = (-reach..=reach).map(|x| weight(x as f64) / total).collect();
    let tail: f64 = (reach + 1..=far).map(|x| weight(x as f64) / total).sum();
    for end in [0, masses.len() - 1] {
        masses[end] += tail;
    }
    masses
}

/// Masses of the difference of two independent numbers of the same law on 0, 1, 2, ...
fn difference(law: &[f64], reach: i64) -> Vec<f64> {
    let mut masses = vec![0.0; usize::try_from(2 * reach + 1).unwrap_or(0)];
    for (one, p) in (0_i64..).zip(law) {
        for (other, q) in (0_i64..).zip(law) {
            masses[usize::try_from((one - other).clamp(-reach, reach) + reach).unwrap_or(0)] +=
                p * q;
        }
    }
    masses
}

/// Masses of the negative binomial law of shape `1 / parts` and ratio `e^(-1 / scale)`.
fn negative_binomial(scale: f64, parts: f64, length: usize) -> Vec<f64> {
    let ratio = (-1.0 / scale).exp();
    let mut masses = vec![(1.0 - ratio).powf(1.0 / parts)];
    for count in 1..length {
        let shape = (count as f64 - 1.0 + 1.0 / parts) / count as f64;
        masses.push(masses[count - 1] * shape * ratio);
    }
    masses
}

fn streams(seed: u64) -> AesStreams {
    AesStreams::from_seed(seed)
}

#[test]
fn laplace_noise_has_its_law() -> Result<()> {
    for (seed, (scale, reach)) in
        (0..).zip([(0.02, 1), (0.3, 5), (1.0, 20), (2.0, 40), (7.3, 120), (150.0, 2000)])
    {
        let numbers = DiscreteLaplace::new(scale)?.draw_many(2_000_000, &streams(seed))?;
        let masses = symmetric(reach, |x| (-x.abs() / scale).exp());
        check_law(&histogram(&numbers, reach), &masses);
    }
    Ok(())
}

#[test]
fn gaussian_noise_has_its_law() -> Result<()> {
    for (seed, (variance, reach)) in (0..).zip([
        (1e-3, 1),
        (0.1, 3),
        (0.5, 6),
        (1.0, 8),
        (2.0, 12),
        (3.9, 16),
        (27.8, 40),
        (900.0, 200),
        (1.0e5, 2000),
    ]) {
        let numbers = DiscreteGaussian::new(variance)?.draw_many(2_000_000, &streams(seed))?;
        let masses = symmetric(reach, |x| (-x * x / (2.0 * variance)).exp());
        check_law(&histogram(&numbers, reach), &masses);
    }
    Ok(())
}

#[test]
fn large_noise_has_its_variance() -> Result<()> {
    let draws = 300_000;
    let z = |numbers: &[i64], variance: f64, kurtosis: f64| {
        let mean = numbers.iter().map(|&x| x as f64).sum::<f64>() / f64::from(draws);
        let square = numbers.iter().map(|&x| (x as f64).powi(2)).sum::<f64>() / f64::from(draws);
        let errors = f64::from(draws).sqrt();
        assert!(mean.abs() / variance.sqrt() * errors < 5.2, "{mean}");
        let score = (square / variance - 1.0) / (kurtosis - 1.0).sqrt() * errors;
        assert!(score.abs() < 5.2, "{square} instead of {variance}");
    };
    let laplace = DiscreteLaplace::new(1e6)?.draw_many(300_000, &streams(1))?;
    z(&laplace, 2e12, 6.0);
    let piece = DiscreteLaplacePiece::new(1e6, 1)?.draw_many(300_000, &streams(1))?;
    z(&piece, 2e12, 6.0);
    let gaussian = DiscreteGaussian::new(1e10)?.draw_many(300_000, &streams(1))?;
    z(&gaussian, 1e10, 3.0);
    let skellam = Skellam::new(3000.25)?.draw_many(300_000, &streams(1))?;
    z(&skellam, 6000.5, 3.0);
    Ok(())
}

#[test]
fn skellam_noise_has_its_law() -> Result<()> {
    for (seed, (mean, reach)) in
        (0..).zip([(1e-12, 1), (0.003, 3), (0.4, 8), (3.7, 20), (7.99, 30), (8.0, 30), (21.3, 50)])
    {
        let mut poisson = vec![f64::exp(-mean)];
        for count in 1..140 {
            poisson.push(poisson[count - 1] * mean / count as f64);
        }
        let numbers = Skellam::new(mean)?.draw_many(2_000_000, &streams(seed))?;
        check_law(&histogram(&numbers, reach), &difference(&poisson, reach));
    }
    Ok(())
}

#[test]
fn pieces_of_laplace_noise_are_differences_of_negative_binomials() -> Result<()> {
    for (seed, (scale, parts, reach)) in (0..).zip([
        (0.02, 1, 1),
        (0.5, 3, 12),
        (1.0, 1, 20),
        (2.0, 2, 40),
        (2.0, 1000, 20),
        (6.0, 7, 60),
        (40.0, 5, 300),
    ]) {
        let law = negative_binomial(scale, parts as f64, 1500);
        let piece = DiscreteLaplacePiece::new(scale, parts)?;
        let numbers = piece.draw_many(2_000_000, &streams(seed))?;
        check_law(&histogram(&numbers, reach), &difference(&law, reach));
    }
    Ok(())
}

#[test]
fn the_law_of_pieces_convolves_to_the_law_of_the_whole() {
    // The reference of the test above, itself tested: exact convolution of all pieces.
    for (scale, parts) in [(0.5, 3), (2.0, 8), (5.0, 5)] {
        let piece = negative_binomial(scale, f64::from(parts), 400);
        let mut sum = vec![1.0];
        for _ in 0..parts {
            let mut next = vec![0.0; 400];
            for (one, p) in sum.iter().enumerate() {
                for (other, q) in piece.iter().enumerate().take(400 - one) {
                    next[one + other] += p * q;
                }
            }
            sum = next;
        }
        let found = difference(&sum, 40);
        let expected = symmetric(40, |x: f64| (-x.abs() / scale).exp());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }
}

#[test]
fn drawn_pieces_add_up_to_the_whole() -> Result<()> {
    for (seed, (scale, parts, reach)) in (0..).zip([(2.0, 50_u64, 30), (0.4, 3, 6), (9.5, 4, 100)])
    {
        let piece = DiscreteLaplacePiece::new(scale, parts)?;
        let mut sums = vec![0; 400_000];
        for part in 0..parts {
            let numbers = piece.draw_many(sums.len(), &streams(100 * seed + part))?;
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        let masses = symmetric(reach, |x| (-x.abs() / scale).exp());
        check_law(&histogram(&sums, reach), &masses);
    }
    Ok(())
}

#[test]
fn numbers_drawn_one_by_one_have_the_same_law() -> Result<()> {
    let mut rng = streams(4).stream(Purpose::Simulation, 0);
    let (scale, parts) = (3.0, 4);
    let piece = DiscreteLaplacePiece::new(scale, parts)?;
    let numbers: Vec<i64> = (0..500_000).map(|_| piece.draw(&mut rng)).collect();
    let law = negative_binomial(scale, parts as f64, 400);
    check_law(&histogram(&numbers, 40), &difference(&law, 40));
    let skellam = Skellam::new(0.5)?;
    let numbers: Vec<i64> = (0..500_000).map(|_| skellam.draw(&mut rng)).collect();
    let mut poisson = vec![f64::exp(-0.5)];
    for count in 1..40 {
        poisson.push(poisson[count - 1] * 0.5 / count as f64);
    }
    check_law(&histogram(&numbers, 8), &difference(&poisson, 8));
    Ok(())
}

#[test]
fn dummies_have_binomial_counts() -> Result<()> {
    for (seed, (trials, rate)) in
        (0..).zip([(1_u32, 0.3), (5, 0.5), (64, 0.07), (100, 0.908), (130, 1e-3), (7, 1e-300)])
    {
        let dummies = BernoulliCounts::new(trials.into(), rate)?;
        let numbers = dummies.draw_many(1_000_000, &streams(seed))?;
        let mut masses = vec![(1.0 - rate).powi(i32::try_from(trials).unwrap_or(0))];
        for count in 1..=trials {
            let odds = rate / (1.0 - rate) * f64::from(trials + 1 - count) / f64::from(count);
            masses.push(masses[count as usize - 1] * odds);
        }
        let mut observed = vec![0_u64; masses.len()];
        for number in numbers {
            observed[usize::try_from(number).unwrap_or(0)] += 1;
        }
        check_law(&observed, &masses);
    }
    assert_eq!(BernoulliCounts::new(100, 1.0)?.draw_many(2, &streams(0))?, [100, 100]);
    assert_eq!(BernoulliCounts::new(0, 0.5)?.draw_many(2, &streams(0))?, [0, 0]);
    Ok(())
}

#[test]
fn a_coin_compares_its_digits_with_those_of_the_probability() -> Result<()> {
    // 3/8 = 0.011: of the eight leading digits 000 to 111, coin j has those of j.
    let coins = BernoulliCounts::new(8, 0.375)?;
    let digit = |digit: u32| (0..8_u64).map(|coin| ((coin >> (2 - digit)) & 1) << coin).sum();
    assert_eq!(coins.draw(&mut Given::new(&[digit(0), digit(1), digit(2)])), 3);
    // A probability with many digits: coins with all its digits are never below it.
    let rate = 0.1;
    let (mantissa, exponent) = decompose(rate);
    let digits: Vec<u64> = (0..exponent.unsigned_abs())
        .rev()
        .map(|shift| if shift < 64 && (mantissa >> shift) & 1 == 1 { u64::MAX } else { 0 })
        .collect();
    let coins = BernoulliCounts::new(64, rate)?;
    let mut given = Given::new(&digits);
    assert_eq!(coins.draw(&mut given), 0);
    assert_eq!(given.used(), digits.len());
    Ok(())
}

pub(super) fn rational(
    numerator: impl Into<BigInt>,
    denominator: impl Into<BigInt>,
) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

pub(super) fn exact(value: f64) -> BigRational {
    BigRational::from_float(value).unwrap_or_else(BigRational::one)
}

#[test]
fn the_realised_scale_is_the_next_one_at_or_above() -> Result<()> {
    for scale in [0.02, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 7.84, 1234.567, 999_999.9, 1e6] {
        let (numerator, denominator) = DiscreteLaplace::new(scale)?.realized_scale();
        let realized = rational(numerator, denominator);
        assert!(realized >= exact(scale), "{scale}");
        assert!(rational(numerator, denominator + 1) < exact(scale), "{scale}");
        assert!(
            realized <= exact(scale) * rational(100_000_000_000_006_i64, 100_000_000_000_000_i64)
        );
        assert_eq!(DiscreteLaplacePiece::new(scale, 3)?.realized_scale(), (numerator, denominator));
    }
    Ok(())
}

#[test]
fn division_rounds_up_to_the_next_number() -> Result<()> {
    let values = [1.0, 0.1, 26.3, 1e-300, 5e-324, 1e300, f64::MAX, 3.0, 1.0 / 3.0];
    for value in values {
        for parts in [1, 2, 3, 7, 10, 1000, (1 << 53) + 1, u64::MAX] {
            let quotient = divide_up(value, parts)?;
            let product = |quotient: f64| exact(quotient) * BigInt::from(parts);
            assert!(product(quotient) >= exact(value), "{value} / {parts}");
            let below = quotient.next_down();
            assert!(below == 0.0 || product(below) < exact(value), "{value} / {parts}");
        }
    }
    Ok(())
}

#[test]
fn parameters_out_of_range_are_refused() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-13, 1e11] {
        assert!(DiscreteLaplace::new(value).is_err());
        assert!(DiscreteLaplacePiece::new(value, 2).is_err());
        assert!(DiscreteGaussian::new(value).is_err());
        assert!(Skellam::new(value).is_err());
    }
    for rate in [0.0, -0.5, 1.5, f64::NAN] {
        assert!(BernoulliCounts::new(3, rate).is_err());
    }
    assert!(DiscreteLaplacePiece::new(1.0, 0).is_err());
    assert!(divide_up(1.0, 0).is_err());
    assert!(divide_up(0.0, 1).is_err());
    assert!(divide_up(f64::NAN, 1).is_err());
    assert!(DiscreteLaplace::new(1.0).and_then(|n| n.draw_many(usize::MAX, &streams(0))).is_err());
}

#[test]
fn numbers_do_not_depend_on_the_threads() -> Result<()> {
    let run = || -> Result<Vec<Vec<i64>>> {
        let (length, streams) = (3 * CHUNK + 5, streams(9));
        Ok(vec![
            DiscreteLaplace::new(2.0)?.draw_many(length, &streams)?,
            DiscreteLaplacePiece::new(2.0, 3)?.draw_many(length, &streams)?,
            DiscreteGaussian::new(2.0)?.draw_many(length, &streams)?,
            Skellam::new(2.0)?.draw_many(length, &streams)?,
            BernoulliCounts::new(20, 0.3)?.draw_many(length, &streams)?,
        ])
    };
    let expected = run()?;
    for threads in [1, 3] {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
            assert_eq!(pool.install(run)?, expected);
        }
    }
    assert!(expected.windows(2).all(|pair| pair[0] != pair[1]));
    Ok(())
}
