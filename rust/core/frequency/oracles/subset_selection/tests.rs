use core::convert::Infallible;

use rand::TryRng;
use rayon::ThreadPoolBuilder;

use super::draw::uniform_numbers;
use super::*;
use crate::frequency::{CHUNK, FrequencyOracle, NodeProbabilities, Selection};
use crate::noise::tests::check_law;
use crate::parameters::Probability;
use crate::random::AesStreams;

fn build(epsilon: f64, size: u64, subset_size: Option<u64>) -> Result<SubsetSelection> {
    SubsetSelection::new(Epsilon::new(epsilon)?, DomainSize::new(size)?, subset_size)
}

#[test]
fn every_set_has_its_probability() -> Result<()> {
    for (size, subset_size) in [(2_u64, 1), (5, 1), (5, 2), (5, 3), (5, 4), (8, 4), (9, 3)] {
        let oracle = build(1.1, size, Some(subset_size))?;
        let (p, _) = oracle.support_probabilities();
        for held in 0..size {
            let codes = vec![u8::try_from(held).unwrap_or(0); 300_000];
            let streams = AesStreams::from_seed(held);
            let reports = oracle.randomize(&codes, &Selection::everyone(), &streams)?;
            let mut observed = vec![0; 1 << size];
            for &report in &reports.codes {
                observed[(report & 0x1ff) as usize] += 1;
            }
            let is_set = |pattern: u64| u64::from(pattern.count_ones()) == subset_size;
            let with = (0..1 << size).filter(|&x| is_set(x) && (x >> held) & 1 == 1).count();
            let without = (0..1 << size).filter(|&x| is_set(x) && (x >> held) & 1 == 0).count();
            let masses: Vec<f64> = (0..1 << size)
                .map(|pattern| match (is_set(pattern), (pattern >> held) & 1) {
                    (false, _) => 0.0,
                    (true, 1) => p / with as f64,
                    (true, _) => (1.0 - p) / without as f64,
                })
                .collect();
            check_law(&observed, &masses);
        }
    }
    Ok(())
}

#[test]
fn sets_of_large_domains_hold_each_code_and_pair_with_its_probability() -> Result<()> {
    for (size, subset_size) in [(70, None), (200, Some(150)), (300, None), (1000, Some(3))] {
        let oracle = build(1.0, size, subset_size)?;
        let (p, q) = oracle.support_probabilities();
        for held in [0, 63, size / 2, size - 1] {
            let nodes = 100_000_u32;
            let codes = vec![u16::try_from(held).unwrap_or(0); nodes as usize];
            let streams = AesStreams::from_seed(held);
            let reports = oracle.randomize(&codes, &Selection::everyone(), &streams)?;
            assert!(oracle.check(&reports.codes).is_ok());
            // Neighbours, of which one may stand for the other while a set is drawn.
            let (d, others) = (oracle.subset_size() as f64, (size - 1) as f64);
            let mut counts = vec![0_u32; oracle.domain.len()];
            let mut pairs = vec![0_u32; oracle.domain.len() - 1];
            for report in reports.codes.chunks_exact(oracle.width()) {
                let mut previous = usize::MAX;
                bit_rows::visit_bits(report, &mut |code| {
                    counts[code] += 1;
                    if previous.wrapping_add(1) == code && code > 0 {
                        pairs[previous] += 1;
                    }
                    previous = code;
                });
            }
            let near = |count: u32, probability: f64| {
                let mean = f64::from(nodes) * probability;
                (f64::from(count) - mean).abs() < 6.5 * (mean * (1.0 - probability)).sqrt() + 6.5
            };
            for (code, &count) in (0..).zip(&counts) {
                assert!(near(count, if code == held { p } else { q }), "{size}, {held}: {code}");
            }
            for (code, &count) in (0..).zip(&pairs) {
                let probability = if code == held || code + 1 == held {
                    p * (d - 1.0) / others
                } else {
                    (p * (d - 1.0) * (d - 2.0) + (1.0 - p) * d * (d - 1.0))
                        / (others * (others - 1.0))
                };
                assert!(near(count, probability), "{size}, {held}: pair {code}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_size_of_the_set_is_the_best_of_all() -> Result<()> {
    for epsilon in [1e-6, 0.1, 0.5, 1.0, 1.7, 2.0, 3.0, 5.0, 20.0] {
        for size in [2, 3, 4, 5, 7, 10, 33, 100, 257] {
            let found = build(epsilon, size, None)?;
            for other in 1..size {
                let other = build(epsilon, size, Some(other))?;
                assert!(!other.better_than(&found), "eps {epsilon}, k {size}: {other:?}");
                let variance = |oracle: &SubsetSelection| {
                    let (p, q) = oracle.support_probabilities();
                    q * (1.0 - q) / (p - q).powi(2)
                };
                assert!(epsilon < 0.1 || variance(&found) <= variance(&other) * (1.0 + 1e-9));
            }
        }
    }
    Ok(())
}

/// Gives the words of a list, then zeros.
struct Given<'a>(&'a [u64]);

impl TryRng for Given<'_> {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }
    fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(&word, rest)| (word, rest));
        self.0 = rest;
        Ok(first)
    }
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> core::result::Result<(), Infallible> {
        Ok(())
    }
}

impl Words for Given<'_> {}

#[test]
fn numbers_are_products_and_the_surplus_is_drawn_again() {
    // 2^32 = 3 * 1431655765 + 1: the product zero is rejected, and one half makes each number.
    let third = 1_431_655_765_u64;
    let words = [third << 32, third + 1, 0, (2 * third + 1) << 32];
    let mut numbers = [9; 3];
    // Halves 0 (rejected: then 0 again, then the number two), `third` and `third + 1`.
    uniform_numbers(3, &mut numbers, &mut Given(&words));
    assert_eq!(numbers, [2, 0, 1]);
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
    let oracle = build(2.0, 100, None)?;
    let streams = AesStreams::from_seed(3);
    let run = || -> Result<Vec<_>> {
        selections
            .iter()
            .map(|selection| {
                let reports = oracle.randomize(&answers, selection, &streams)?;
                let rates = reports.probabilities.as_deref().map(NodeProbabilities::new);
                let tally = oracle.tally(&reports.codes, rates.transpose()?)?;
                assert_eq!(oracle.collect(&answers, selection, &streams)?, tally);
                let total: u64 = tally.support.iter().sum();
                assert_eq!(total, oracle.subset_size() * tally.received);
                Ok(reports)
            })
            .collect()
    };
    let expected = run()?;
    for threads in [1, 3] {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
            assert_eq!(pool.install(run)?, expected);
        }
    }
    Ok(())
}

#[test]
fn simulated_sets_do_not_depend_on_the_number_of_threads_and_add_up() -> Result<()> {
    // Parts of several streams, and one that is shorter than the others.
    for (size, subset_size) in [(1000, None), (700, Some(3)), (513, Some(500))] {
        let oracle = build(1.0, size, subset_size)?;
        let held: Vec<u64> = (0..size).map(|code| code % 7 * 1_000_003).collect();
        let streams = AesStreams::from_seed(size);
        let run = || oracle.simulate(&held, Probability::new(0.4)?, &streams);
        let expected = run()?;
        assert_eq!(expected.support.iter().sum::<u64>(), oracle.subset_size() * expected.received);
        for threads in [1, 3] {
            if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
                assert_eq!(pool.install(run)?, expected);
            }
        }
    }
    Ok(())
}

#[test]
fn simulated_sets_have_the_variances_of_the_node_path() -> Result<()> {
    let (size, nodes) = (9_u64, 1000_u64);
    let oracle = build(1.3, size, Some(4))?;
    let codes: Vec<u8> = (0..nodes).map(|node| [0, 1, 4, 2][(node % 4) as usize]).collect();
    let mut held = vec![0; 9];
    for &code in &codes {
        held[usize::from(code)] += 1;
    }
    let rate = Probability::new(0.7)?;
    let runs = 20_000;
    // Sums of products of the counts of two codes, and of their squares.
    let mut sums = [[[0.0; 9]; 9]; 2];
    let mut squares = [[[0.0; 9]; 9]; 2];
    let (p, q) = oracle.support_probabilities();
    for run in 0..runs {
        let streams = AesStreams::from_seed(run);
        let tallies = [
            oracle.collect(&codes, &Selection::bernoulli(rate), &streams)?,
            oracle.simulate(&held, rate, &streams)?,
        ];
        for (way, tally) in tallies.iter().enumerate() {
            let deviations: Vec<f64> = tally
                .support
                .iter()
                .zip(&held)
                .map(|(&count, &held)| {
                    let mean = 0.7 * (held as f64 * p + (nodes - held) as f64 * q);
                    (count as f64 - mean) / (nodes as f64).sqrt()
                })
                .collect();
            for (one, left) in deviations.iter().enumerate() {
                for (other, right) in deviations.iter().enumerate() {
                    sums[way][one][other] += left * right;
                    squares[way][one][other] += (left * right).powi(2);
                }
            }
        }
    }
    for (one, other) in (0..9).flat_map(|one| (0..=one).map(move |other| (one, other))) {
        let [nodes, counts] = sums.map(|sums| sums[one][other]);
        let deviation = (squares[0][one][other] + squares[1][one][other]).sqrt();
        // 45 comparisons at alpha = 1e-6 in all.
        assert!((nodes - counts).abs() < 5.7 * deviation, "{one} {other}: {nodes} {counts}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_done_is_refused() -> Result<()> {
    for epsilon in [1e-19, 5e-324] {
        let refused = build(epsilon, 1000, None);
        assert!(matches!(refused, Err(Error::EpsilonUnrealizable { .. })), "{refused:?}");
    }
    for value in [0, 10, 11, 1 << 40] {
        assert!(matches!(build(1.0, 10, Some(value)), Err(Error::Integer { .. })));
    }
    let refused = build(1.0, (1 << 20) + 1, None);
    assert!(matches!(refused, Err(Error::DomainSize { .. })), "{refused:?}");
    let oracle = build(1.0, 70, Some(2))?;
    for report in [[0, 0], [1, 0], [7, 0], [1, 1 << 6]] {
        assert!(matches!(oracle.check(&report), Err(Error::Report { index: 0, .. })));
    }
    assert!(oracle.check(&[1, 1 << 5, 3, 0]).is_ok());
    let largest = build(1.0, 1 << 20, None)?;
    let reports =
        largest.randomize(&[5_u8, 6], &Selection::everyone(), &AesStreams::from_seed(1))?;
    assert!(largest.check(&reports.codes).is_ok());
    Ok(())
}
