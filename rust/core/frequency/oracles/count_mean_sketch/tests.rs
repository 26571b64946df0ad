use super::*;
use crate::frequency::{FrequencyOracle, Randomizer, Selection, Tally};
use crate::parameters::{DomainSize, Epsilon, Probability};
use crate::random::{AesStreams, ExponentialBounds};

fn codes_of<O: Randomizer>(oracle: &O, report: &[O::Item]) -> Vec<usize> {
    let mut codes = Vec::new();
    oracle.supported(report, &mut |code| codes.push(code));
    codes
}

/// Checks tally, collect and supported against each other; gives how many reports support the own
/// code, and how many supports of other codes there are.
fn agree<O: FrequencyOracle>(oracle: &O, nodes: usize) -> Result<(f64, f64)> {
    let size = oracle.domain().len();
    let codes: Vec<u32> =
        (0..nodes).map(|node| u32::try_from(node * 31 % size).unwrap_or(0)).collect();
    let streams = AesStreams::from_seed(7);
    let reports = oracle.randomize(&codes, &Selection::everyone(), &streams)?.codes;
    let mut expected = vec![0; size];
    let (mut own, mut all) = (0, 0);
    for (report, &code) in reports.chunks(oracle.width()).zip(&codes) {
        assert!(oracle.valid(report));
        let supported = codes_of(oracle, report);
        assert_eq!(oracle.tally(report, None)?.support.iter().sum::<u64>(), supported.len() as u64);
        all += supported.len();
        own += usize::from(supported.contains(&(code as usize)));
        for code in supported {
            expected[code] += 1;
        }
    }
    assert_eq!(oracle.tally(&reports, None)?.support, expected);
    assert_eq!(oracle.collect(&codes, &Selection::everyone(), &streams)?.support, expected);
    Ok((own as f64, (all - own) as f64))
}

#[test]
fn counts_are_those_of_the_codes_that_reports_support() -> Result<()> {
    let (epsilon, domain) = (Epsilon::new(1.5)?, DomainSize::new(60)?);
    let nodes = 600;
    for width in [2, 3, 64, 65, 200] {
        let oracle = CountMeanSketch::new(epsilon, domain, 8, width, 1)?;
        let (p, _) = oracle.support_probabilities();
        let (own, _) = agree(&oracle, nodes)?;
        let deviation = (nodes as f64 * p * (1.0 - p)).sqrt();
        assert!((own - nodes as f64 * p).abs() < 5.0 * deviation, "{width}: {own}");
    }
    for width in [2, 4, 256] {
        let oracle = HadamardCountMeanSketch::new(epsilon, domain, 8, width, 1)?;
        let (p, _) = oracle.support_probabilities();
        let (own, _) = agree(&oracle, nodes)?;
        let deviation = (nodes as f64 * p * (1.0 - p)).sqrt();
        assert!((own - nodes as f64 * p).abs() < 5.0 * deviation, "{width}: {own}");
    }
    Ok(())
}

#[test]
fn the_threshold_is_the_least_that_keeps_the_guarantee() -> Result<()> {
    for epsilon in [1e-4, 0.3, 1.0, 4.0, 17.0, 42.0] {
        let oracle = CountMeanSketch::new(Epsilon::new(epsilon)?, DomainSize::new(10)?, 2, 8, 0)?;
        let flips = u128::from(oracle.flip_words());
        let half = ExponentialBounds::new(epsilon / 2.0);
        assert!(half.at_least((1 << 64) - flips, flips));
        assert!(!half.at_least((1 << 64) - flips + 1, flips - 1));
        let realized = oracle.realized_epsilon();
        assert!(realized <= epsilon && realized > epsilon - 1e-7);
        assert!(ExponentialBounds::new(realized / 2.0).at_least((1 << 64) - flips, flips));
        let (p, q) = oracle.support_probabilities();
        assert!((p - 1.0 / (1.0 + (-epsilon / 2.0).exp())).abs() < 1e-12 && q < p);
    }
    let refused = CountMeanSketch::new(Epsilon::new(1e-12)?, DomainSize::new(10)?, 2, 8, 0);
    assert!(matches!(refused, Err(Error::EpsilonUnrealizable { .. })));
    Ok(())
}

#[test]
fn rows_that_cannot_be_are_refused() -> Result<()> {
    let (epsilon, domain) = (Epsilon::new(1.0)?, DomainSize::new(10)?);
    let oracle = CountMeanSketch::new(epsilon, domain, 4, 70, 0)?;
    assert_eq!(oracle.width(), 3);
    for (report, valid) in [
        ([0, 0, 0], true),
        ([3, u64::MAX, 63], true),
        ([4, 0, 0], false),
        ([u64::MAX, 0, 0], false),
        ([0, 0, 64], false),
        ([0, 0, 1 << 63], false),
    ] {
        assert_eq!(oracle.valid(&report), valid, "{report:?}");
    }
    assert!(matches!(oracle.tally(&[0; 4], None), Err(Error::LengthMismatch { .. })));
    let hadamard = HadamardCountMeanSketch::new(epsilon, domain, 4, 64, 0)?;
    assert!(hadamard.valid(&[511]) && !hadamard.valid(&[512]));
    for width in [0, 1, 65_537] {
        assert!(CountMeanSketch::new(epsilon, domain, 4, width, 0).is_err());
    }
    for width in [0, 1, 3, 100, 131_072] {
        assert!(HadamardCountMeanSketch::new(epsilon, domain, 4, width, 0).is_err());
    }
    for hashes in [0, (1 << 20) + 1, 1 << 16] {
        assert!(CountMeanSketch::new(epsilon, domain, hashes, 8192, 0).is_err());
    }
    let large = DomainSize::new(1 << 31)?;
    assert!(matches!(
        CountMeanSketch::new(epsilon, large, 4, 64, 0),
        Err(Error::DomainSize { .. })
    ));
    Ok(())
}

#[test]
fn the_default_width_grows_with_epsilon() -> Result<()> {
    for (epsilon, width) in [(0.1, 256), (4.0, 256), (8.0, 2048), (12.0, 4096), (42.0, 4096)] {
        assert_eq!(CountMeanSketch::default_width(Epsilon::new(epsilon)?), width);
    }
    Ok(())
}

/// Sums of counts and of their squares over runs.
fn moments(runs: u32, mut draw: impl FnMut(u64) -> Result<Tally>) -> Result<Vec<(f64, f64)>> {
    let mut sums = Vec::new();
    for run in 0..runs {
        let support = draw(u64::from(run))?.support;
        sums.resize(support.len(), (0.0, 0.0));
        for (sum, count) in sums.iter_mut().zip(support) {
            sum.0 += count as f64 / f64::from(runs);
            sum.1 += (count as f64).powi(2) / f64::from(runs);
        }
    }
    Ok(sums)
}

fn simulation_agrees<O: FrequencyOracle>(
    oracle: &O,
    simulate: impl Fn(&[u64], Probability, &AesStreams) -> Result<Tally>,
) -> Result<()> {
    let held = [300_u64, 150, 0, 50, 2];
    let codes: Vec<u8> = (0..).zip(held).flat_map(|(code, n)| (0..n).map(move |_| code)).collect();
    let rate = Probability::new(0.6)?;
    let runs = 8_000;
    let nodes = moments(runs, |run| {
        oracle.collect(&codes, &Selection::bernoulli(rate), &AesStreams::from_seed(run))
    })?;
    let drawn = moments(runs, |run| simulate(&held, rate, &AesStreams::from_seed(run)))?;
    for (code, (one, other)) in nodes.into_iter().zip(drawn).enumerate() {
        let variances = [one.1 - one.0 * one.0, other.1 - other.0 * other.0];
        let runs = f64::from(runs);
        // z = 5.5 for ten comparisons at alpha = 1e-6; the variance of a variance is 2 v^2 / n.
        let deviation = ((variances[0] + variances[1]) / runs).sqrt();
        assert!((one.0 - other.0).abs() < 5.5 * deviation, "{code}: {} {}", one.0, other.0);
        let spread = 2.0 * variances[0] * (1.1 / runs).sqrt();
        assert!((variances[0] - variances[1]).abs() < 5.5 * spread, "{code}: {variances:?}");
    }
    Ok(())
}

#[test]
fn simulated_tallies_have_the_moments_of_collected_ones_with_the_same_functions() -> Result<()> {
    use crate::frequency::{LocalHashing, PooledLocalHashing};
    let (epsilon, domain) = (Epsilon::new(1.0)?, DomainSize::new(5)?);
    let oracle = CountMeanSketch::new(epsilon, domain, 3, 4, 11)?;
    simulation_agrees(&oracle, |counts, rate, streams| oracle.simulate(counts, rate, streams))?;
    let oracle = HadamardCountMeanSketch::new(epsilon, domain, 3, 4, 11)?;
    simulation_agrees(&oracle, |counts, rate, streams| oracle.simulate(counts, rate, streams))?;
    let oracle = PooledLocalHashing::new(epsilon, domain, 3, 5, 11)?;
    simulation_agrees(&oracle, |counts, rate, streams| oracle.simulate(counts, rate, streams))?;
    let oracle = LocalHashing::optimized(epsilon, domain)?;
    simulation_agrees(&oracle, |counts, rate, streams| oracle.simulate(counts, rate, streams))
}
