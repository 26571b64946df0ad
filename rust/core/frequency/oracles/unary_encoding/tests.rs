use rayon::ThreadPoolBuilder;

use super::*;
use crate::frequency::{CHUNK, FrequencyOracle, NodeProbabilities, Selection};
use crate::noise::tests::check_law;
use crate::random::AesStreams;

type Constructor = fn(Epsilon, DomainSize) -> Result<UnaryEncoding>;

const CONSTRUCTORS: [Constructor; 3] =
    [UnaryEncoding::symmetric, UnaryEncoding::optimized, UnaryEncoding::threshold_histogram];

fn build(constructor: Constructor, epsilon: f64, size: u64) -> Result<UnaryEncoding> {
    constructor(Epsilon::new(epsilon)?, DomainSize::new(size)?)
}

#[test]
fn every_pattern_of_bits_has_its_probability() -> Result<()> {
    for (seed, constructor) in (0..).zip(CONSTRUCTORS) {
        // Three codes, and the three last of 66 on both sides of a border of words.
        for size in [3_u64, 66] {
            let oracle = build(constructor, 1.3, size)?;
            let (p, q) = oracle.support_probabilities();
            for held in size - 3..size {
                let streams = AesStreams::from_seed(seed);
                let codes = vec![u8::try_from(held).unwrap_or(0); 200_000];
                let reports = oracle.randomize(&codes, &Selection::everyone(), &streams)?;
                let mut observed = [0; 8];
                for report in reports.codes.chunks_exact(oracle.width()) {
                    let bit = |code: u64| (report[(code / 64) as usize] >> (code % 64)) & 1;
                    let pattern = bit(size - 3) | bit(size - 2) << 1 | bit(size - 1) << 2;
                    observed[(pattern & 7) as usize] += 1;
                }
                let masses: Vec<f64> = (0..8_u64)
                    .map(|pattern| {
                        (0..3)
                            .map(|bit| {
                                let one = if bit + size - 3 == held { p } else { q };
                                if (pattern >> bit) & 1 == 1 { one } else { 1.0 - one }
                            })
                            .product()
                    })
                    .collect();
                check_law(&observed, &masses);
            }
        }
    }
    Ok(())
}

#[test]
fn counts_do_not_depend_on_the_way_or_on_the_number_of_threads() -> Result<()> {
    let answers: Vec<u8> = (0..100).cycle().take(CHUNK + 1000).collect();
    let personal: Vec<f64> = answers.iter().map(|&code| 0.05 + f64::from(code) / 110.0).collect();
    let selections = [
        Selection::everyone(),
        Selection::bernoulli(Probability::new(0.2)?),
        Selection::personalized(NodeProbabilities::new(&personal)?),
    ];
    let oracle = build(UnaryEncoding::optimized, 1.0, 100)?;
    let streams = AesStreams::from_seed(3);
    let run = || -> Result<Vec<_>> {
        selections
            .iter()
            .map(|selection| {
                let reports = oracle.randomize(&answers, selection, &streams)?;
                let rates = reports.probabilities.as_deref().map(NodeProbabilities::new);
                let tally = oracle.tally(&reports.codes, rates.transpose()?)?;
                assert_eq!(oracle.collect(&answers, selection, &streams)?, tally);
                assert_eq!(tally.received, reports.codes.len() as u64 / 2);
                Ok(reports)
            })
            .collect()
    };
    let expected = run()?;
    for threads in [1, 3] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        if let Ok(pool) = pool {
            assert_eq!(pool.install(run)?, expected);
        }
    }
    Ok(())
}

#[test]
fn simulated_counts_have_the_moments_of_counted_ones() -> Result<()> {
    let oracle = build(UnaryEncoding::threshold_histogram, 2.0, 3)?;
    let (p, q) = oracle.support_probabilities();
    let (counts, rate, runs) = ([400_u64, 0, 600], 0.3, 20_000_u32);
    let (mut sum, mut square, mut product) = (0.0, 0.0, 0.0);
    for seed in 0..runs {
        let streams = AesStreams::from_seed(seed.into());
        let tally = oracle.simulate(&counts, Probability::new(rate)?, &streams)?;
        let (support, received) = (tally.support[0] as f64, tally.received as f64);
        sum += support;
        square += support * support;
        product += support * received;
    }
    let runs = f64::from(runs);
    let (n, held) = (1000.0, 400.0);
    let mean = rate * (held * p + (n - held) * q);
    let variance = held * rate * p * (1.0 - rate * p) + (n - held) * rate * q * (1.0 - rate * q);
    // A node contributes rate (1 - rate) p to the covariance of the support and the reports.
    let covariance = (1.0 - rate) * mean;
    let deviation = (variance / runs).sqrt();
    assert!((sum / runs - mean).abs() < 5.0 * deviation);
    let found = square / runs - (sum / runs).powi(2);
    assert!((found / variance - 1.0).abs() < 5.0 * (2.0 / runs).sqrt());
    let found = product / runs - sum / runs * rate * n;
    let spread = (variance * n * rate * (1.0 - rate) + covariance.powi(2)) / runs;
    assert!((found - covariance).abs() < 6.0 * spread.sqrt(), "{found}, {covariance}");
    Ok(())
}

#[test]
fn the_histogram_threshold_is_the_best_of_a_grid() -> Result<()> {
    for epsilon in [1e-6, 0.01, 0.5, 1.0, 2.0, 5.0, 10.0, 42.0] {
        let found = UnaryEncoding::histogram_threshold(Epsilon::new(epsilon)?);
        let variance = |threshold: f64| {
            let (p, q) = (
                1.0 - 0.5 * (0.5 * epsilon * (threshold - 1.0)).exp(),
                0.5 * (-0.5 * epsilon * threshold).exp(),
            );
            q * (1.0 - q) / (p - q).powi(2)
        };
        let best = (0..=10_000)
            .map(|step| variance(0.5 + f64::from(step) / 20_000.0))
            .fold(1e300, f64::min);
        assert!((0.5..=1.0).contains(&found));
        // At the smallest epsilon the grid's own rounding is about 1e-9.
        assert!(variance(found) <= best * (1.0 + 1e-7), "{epsilon}: {found}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_done_is_refused() -> Result<()> {
    for constructor in CONSTRUCTORS {
        for epsilon in [1e-19, 5e-324] {
            let refused = build(constructor, epsilon, 10);
            assert!(matches!(refused, Err(Error::EpsilonUnrealizable { .. })), "{refused:?}");
        }
        assert!(build(constructor, 42.0, 1 << 20)?.realized_epsilon() > 20.0);
        let refused = build(constructor, 1.0, (1 << 20) + 1);
        assert!(matches!(refused, Err(Error::DomainSize { .. })), "{refused:?}");
        let oracle = build(constructor, 1.0, 70)?;
        assert!(matches!(oracle.check(&[0, 1 << 6, 5, 0]), Err(Error::Report { index: 0, .. })));
        assert!(oracle.check(&[u64::MAX, 63, 0, 0]).is_ok());
        assert!(matches!(oracle.check(&[0; 3]), Err(Error::LengthMismatch { .. })));
        assert_eq!(oracle.supports(&[1 << 63, 0b10_0001])?, [1 << 63, 0b10_0001]);
        let streams = AesStreams::from_seed(1);
        assert!(oracle.simulate(&[1; 69], Probability::ONE, &streams).is_err());
        assert!(oracle.simulate(&[u64::MAX; 70], Probability::ONE, &streams).is_err());
    }
    Ok(())
}
