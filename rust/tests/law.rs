//! Statistical tests of direct encoding at alpha = 1e-6, and its independence of threads.

use rayon::ThreadPoolBuilder;
use turnout_core::Error;
use turnout_core::frequency::{CHUNK, Code, DirectEncoding, NodeProbabilities, Selection};
use turnout_core::parameters::{DomainSize, Epsilon, Probability};
use turnout_core::random::{AesStreams, Purpose, Streams, uniform_below};

/// Two-sided normal quantile at alpha = 1e-6 over up to 50 comparisons.
const Z: f64 = 5.7;

fn oracle(epsilon: f64, size: u64) -> Result<DirectEncoding, Error> {
    DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(size)?)
}

fn codes(nodes: usize, size: u64) -> Vec<u8> {
    let mut stream = AesStreams::from_seed(77).stream(Purpose::Simulation, 0);
    (0..nodes).map(|_| u8::try_from(uniform_below(size, &mut stream)).unwrap_or(0)).collect()
}

#[test]
fn a_report_names_each_code_with_its_probability() -> Result<(), Error> {
    for (case, (epsilon, size)) in [(1.0, 3_u64), (0.2, 2), (3.0, 11)].into_iter().enumerate() {
        let oracle = oracle(epsilon, size)?;
        let (p, q) = oracle.support_probabilities();
        let nodes = 2_000_000;
        let held = 1_u8;
        let streams = AesStreams::from_seed(case as u64);
        let reports =
            oracle.randomize::<u8, u8, _>(&vec![held; nodes], &Selection::everyone(), &streams)?;
        let tally = oracle.tally(&reports.codes, None)?;
        for (code, &count) in (0_u8..).zip(&tally.support) {
            let probability = if code == held { p } else { q };
            let mean = nodes as f64 * probability;
            let deviation = (mean * (1.0 - probability)).sqrt();
            assert!((count as f64 - mean).abs() < Z * deviation, "eps {epsilon}, code {code}");
        }
    }
    Ok(())
}

#[test]
fn collect_is_the_tally_of_randomize() -> Result<(), Error> {
    let (size, nodes) = (37, 3 * CHUNK + 1234);
    let oracle = oracle(1.5, size)?;
    let answers = codes(nodes, size);
    let streams = AesStreams::from_seed(3);
    let personal: Vec<f64> =
        answers.iter().map(|&code| 0.05 + 0.9 * f64::from(code) / 40.0).collect();
    let probabilities = NodeProbabilities::new(&personal)?;
    let mut selections = vec![Selection::everyone(), Selection::personalized(probabilities)];
    for rate in [0.9, 0.3, 0.01, 1e-4] {
        selections.push(Selection::bernoulli(Probability::new(rate)?));
    }
    for selection in &selections {
        let reports = oracle.randomize::<_, u16, _>(&answers, selection, &streams)?;
        let rates = reports.probabilities.as_deref().map(NodeProbabilities::new).transpose()?;
        let tally = oracle.tally(&reports.codes, rates)?;
        assert_eq!(oracle.collect(&answers, selection, &streams)?, tally);
        assert_eq!(tally.received, reports.codes.len() as u64);
    }
    Ok(())
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() -> Result<(), Error> {
    let (size, nodes) = (200, 5 * CHUNK + 17);
    let oracle = oracle(1.0, size)?;
    let answers = codes(nodes, size);
    let streams = AesStreams::from_seed(8);
    let selection = Selection::bernoulli(Probability::new(0.4)?);
    let counts = vec![1_000_000_u64; 200];
    let run = || -> Result<_, Error> {
        Ok((
            oracle.randomize::<_, u8, _>(&answers, &selection, &streams)?,
            oracle.randomize::<_, u8, _>(&answers, &Selection::everyone(), &streams)?,
            oracle.collect(&answers, &selection, &streams)?,
            oracle.simulate(&counts, Probability::new(0.4)?, &streams)?,
        ))
    };
    let mut results = Vec::new();
    for threads in [1, 2, 7] {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
            results.push(pool.install(run)?);
        }
    }
    assert_eq!(results.len(), 3);
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    Ok(())
}

#[test]
fn simulation_has_the_means_and_variances_of_the_node_path() -> Result<(), Error> {
    let held = [3_000_u64, 1_500, 500, 0];
    let oracle = oracle(1.0, 4)?;
    let answers: Vec<u8> = (0_u8..)
        .zip(held)
        .flat_map(|(code, count)| std::iter::repeat_n(code, usize::try_from(count).unwrap_or(0)))
        .collect();
    let (p, q) = oracle.support_probabilities();
    let rate = 0.3;
    let selection = Selection::bernoulli(Probability::new(rate)?);
    let runs = 20_000_u32;
    for simulated in [false, true] {
        let (mut sums, mut squares) = ([0.0; 5], [0.0; 5]);
        let expectation = |code: usize| {
            let own = held[code] as f64;
            let others = 5_000.0 - own;
            let (own_rate, other_rate) = (rate * p, rate * q);
            let mean = own * own_rate + others * other_rate;
            (mean, mean - own * own_rate * own_rate - others * other_rate * other_rate)
        };
        let received = (5_000.0 * rate, 5_000.0 * rate * (1.0 - rate));
        for run in 0..runs {
            let streams = AesStreams::from_seed(u64::from(run));
            let tally = if simulated {
                oracle.simulate(&held, Probability::new(rate)?, &streams)?
            } else {
                oracle.collect(&answers, &selection, &streams)?
            };
            for (cell, &count) in tally.support.iter().chain([&tally.received]).enumerate() {
                let mean = if cell < 4 { expectation(cell).0 } else { received.0 };
                sums[cell] += count as f64 - mean;
                squares[cell] += (count as f64 - mean).powi(2);
            }
        }
        let runs = f64::from(runs);
        for cell in 0..5 {
            let variance = if cell < 4 { expectation(cell).1 } else { received.1 };
            assert!(sums[cell].abs() < Z * (variance * runs).sqrt(), "cell {cell}: {sums:?}");
            let excess = squares[cell] / variance - runs;
            assert!(excess.abs() < Z * (2.1 * runs).sqrt(), "cell {cell}: {squares:?}");
        }
    }
    Ok(())
}

#[test]
fn personal_probabilities_select_at_their_own_rates_and_weigh_by_the_inverse() -> Result<(), Error>
{
    let oracle = oracle(2.0, 2)?;
    let nodes = 400_000_usize;
    let personal: Vec<f64> = (0..nodes).map(|node| [0.02, 0.5, 1.0][node % 3]).collect();
    let answers: Vec<i64> = (0..nodes).map(|node| i64::from(node % 3 == 1)).collect();
    let selection = Selection::personalized(NodeProbabilities::new(&personal)?);
    let streams = AesStreams::from_seed(12);
    let reports = oracle.randomize::<_, u8, _>(&answers, &selection, &streams)?;
    let rates = reports.probabilities.as_deref().unwrap_or_default();
    for rate in [0.02, 0.5, 1.0] {
        let group = (nodes as f64 / 3.0).ceil();
        #[expect(clippy::float_cmp, reason = "copied values")]
        let count = rates.iter().filter(|&&own| own == rate).count() as f64;
        let deviation = (group * rate * (1.0 - rate)).sqrt();
        assert!((count - group * rate).abs() <= Z * deviation + 1.0, "{rate}: {count}");
    }
    let tally = oracle.tally(&reports.codes, Some(NodeProbabilities::new(rates)?))?;
    let weighted = tally.weighted.ok_or(Error::CountOverflow { argument: "weights" })?;
    let unit = 4_294_967_296.0;
    let inverse: f64 = rates.iter().map(|rate| 1.0 / rate).sum();
    let squared: f64 = rates.iter().map(|rate| 1.0 / (rate * rate)).sum();
    let ours = weighted.inverse.iter().sum::<u128>() as f64 / unit;
    let ours_squared = weighted.inverse_squared.iter().sum::<u128>() as f64 / unit;
    assert!((ours / inverse - 1.0).abs() < 1e-9);
    assert!((ours_squared / squared - 1.0).abs() < 1e-9);
    Ok(())
}

#[test]
fn a_code_outside_the_domain_is_refused_even_if_its_node_does_not_report() -> Result<(), Error> {
    fn refused<C: Code>(answers: &[C]) -> Result<(), Error> {
        let oracle = oracle(1.0, 3)?;
        let streams = AesStreams::from_seed(1);
        let rare = Selection::bernoulli(Probability::new(1e-6)?);
        let everyone = Selection::everyone();
        let errors = [
            oracle.collect(answers, &rare, &streams).err(),
            oracle.collect(answers, &everyone, &streams).err(),
            oracle.randomize::<_, u8, _>(answers, &rare, &streams).err(),
            oracle.randomize::<_, u8, _>(answers, &everyone, &streams).err(),
            oracle.tally(answers, None).err(),
        ];
        for error in errors {
            let Some(Error::CodeOutsideDomain { index: 1, offenders: 2, .. }) = error else {
                return Err(error.unwrap_or(Error::CountOverflow { argument: "nothing refused" }));
            };
        }
        Ok(())
    }
    refused(&[0_u8, 3, 200, 1])?;
    refused(&[0_u16, 70, 3, 1])?;
    refused(&[0_u32, u32::MAX, 3, 1])?;
    refused(&[0_i64, -1, i64::MAX, 1])?;
    refused(&[0_i64, i64::MIN, 3, 1])
}
