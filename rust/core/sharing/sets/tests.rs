//! The law and the guarantee of sets, by enumeration of all sets.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;
use rayon::ThreadPoolBuilder;

use super::*;
use crate::noise::tests::check_law;
use crate::random::AesStreams;

fn sampler(size: u64, reported: u64, gamma: Option<f64>) -> Result<SetSampler> {
    let domain = DomainSize::new(size)?;
    match gamma {
        Some(gamma) => SetSampler::adaptive(domain, reported, gamma),
        None => SetSampler::uniform(domain, reported),
    }
}

fn length(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn rational(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

fn exact(value: f64) -> BigRational {
    BigRational::from_float(value).unwrap_or_else(BigRational::one)
}

fn subsets(size: u64, reported: u64) -> impl Iterator<Item = u32> {
    (0..1_u32 << size).filter(move |set| u64::from(set.count_ones()) == reported)
}

fn binomial(n: u64, k: u64) -> BigInt {
    (0..k).fold(BigInt::one(), |value, i| value * (n - i) / (i + 1))
}

/// `P[A | v]` from the description of the draw, given the words that include the own item.
fn probability(sampler: &SetSampler, rate: f64, set: u32, value: u64) -> BigRational {
    let (n, m) = (sampler.domain.get(), sampler.reported);
    let uniform = rational(1, binomial(n, m));
    let active = match sampler.law {
        Law::Uniform => uniform.clone(),
        Law::Adaptive(words) => {
            let include = rational(words, BigInt::one() << 64);
            if set >> value & 1 == 1 {
                include / rational(binomial(n - 1, m - 1), 1)
            } else {
                (BigRational::one() - include) / rational(binomial(n - 1, m), 1)
            }
        }
    };
    exact(rate) * active + (BigRational::one() - exact(rate)) * uniform
}

#[test]
fn the_realised_gamma_is_the_next_one_below() -> Result<()> {
    for (size, reported) in [(2, 1), (30, 12), (7, 6), (1000, 1), (4_294_967_295, 2)] {
        for gamma in [1.0, 1.0 + f64::EPSILON, 1.5, 3.0, 20.0, 1e9, 1e25, f64::MAX] {
            let sampler = sampler(size, reported, Some(gamma))?;
            let (numerator, denominator) = sampler.realized_gamma();
            let realized = rational(numerator, denominator);
            assert!(realized <= exact(gamma) && realized >= BigRational::one());
            let odds = rational(size - reported, reported);
            let ratio = |words: u128| rational(words, (1 << 64) - words) * &odds;
            if let Law::Adaptive(words) = sampler.law {
                assert_eq!(ratio(words.into()), realized);
                assert!(words == u64::MAX || ratio(u128::from(words) + 1) > exact(gamma));
            } else {
                assert!(gamma < 1.0 + 1e-15);
            }
        }
    }
    Ok(())
}

#[test]
fn the_local_guarantee_is_the_largest_ratio_of_all_sets() -> Result<()> {
    for (size, reported) in [(2, 1), (4, 1), (5, 2), (6, 3), (5, 4), (4, 4)] {
        for gamma in [None, Some(1.0), Some(1.01), Some(3.0), Some(50.0), Some(1e12)] {
            let sampler = sampler(size, reported, gamma)?;
            for rate in [1.0, 0.9, 0.3, 1e-3, 1e-12] {
                let mut most = BigRational::one();
                for set in subsets(size, reported) {
                    for one in 0..size {
                        let of_one = probability(&sampler, rate, set, one);
                        for other in 0..size {
                            let of_other = probability(&sampler, rate, set, other);
                            most = most.max(&of_one / of_other);
                        }
                    }
                }
                let (numerator, denominator) = sampler.likelihood_ratio(rate)?;
                assert_eq!(rational(numerator, denominator), most);
                let epsilon = sampler.realized_local_epsilon(rate)?;
                let (numerator, denominator) = most.into_raw();
                let (numerator, denominator) = (numerator.magnitude(), denominator.magnitude());
                let reaches = |x| ExponentialBounds::new(x).at_least_ratio(numerator, denominator);
                assert!(reaches(epsilon));
                assert!(epsilon == 0.0 || !reaches(epsilon.next_down().next_down()));
                // The paper's bound.
                assert!(epsilon <= gamma.unwrap_or(1.0).ln() + 1e-12);
            }
        }
    }
    Ok(())
}

#[test]
fn tiny_guarantees_are_rounded_up() -> Result<()> {
    let sampler = sampler(10, 3, Some(2.0))?;
    for rate in [1e-15, 1e-17, 1e-20, 1e-100, 1e-300, 5e-324] {
        let epsilon = sampler.realized_local_epsilon(rate)?;
        let (numerator, denominator) = sampler.likelihood_ratio(rate)?;
        let ratio = rational(numerator, denominator);
        // 1 + x <= e^x <= 1 + x + x^2 there.
        let gain = ratio - BigRational::one();
        assert!(exact(epsilon) * (BigRational::one() + exact(epsilon)) >= gain, "{rate}");
        assert!(epsilon <= rate.max(f64::MIN_POSITIVE), "{rate}: {epsilon}");
    }
    Ok(())
}

#[test]
fn sets_have_their_law() -> Result<()> {
    let users = 400_000;
    for (seed, (size, reported, gamma, rate)) in (0..).zip([
        (5, 2, None, 0.5),
        (5, 3, Some(3.0), 1.0),
        (6, 2, Some(8.0), 0.4),
        (6, 5, Some(4.0), 0.7),
        (4, 4, Some(4.0), 0.7),
        (3, 1, Some(2.5), 1.0),
    ]) {
        let sampler = sampler(size, reported, gamma)?;
        let streams = AesStreams::from_seed(seed);
        for value in [0, size - 1] {
            let codes = vec![u32::try_from(value).unwrap_or(0); users];
            let (coins, sets) = sampler.draw(&codes, rate, &streams)?;
            let mut observed = vec![[0_u64; 2]; 1 << size];
            for (coin, set) in coins.iter().zip(sets.chunks(length(reported))) {
                assert!(set.is_sorted_by(|one, other| one < other), "{set:?}");
                let set: u32 = set.iter().map(|item| 1 << item).sum();
                observed[set as usize][usize::from(*coin)] += 1;
            }
            let (mut counts, mut masses) = (Vec::new(), Vec::new());
            for set in subsets(size, reported) {
                let [idle, active] = observed[set as usize];
                let chance = |rate: f64| {
                    probability(&sampler, rate, set, value).to_f64().unwrap_or(f64::NAN)
                };
                let alone = chance(1.0) * rate;
                counts.extend([idle, active]);
                masses.extend([chance(rate) - alone, alone]);
            }
            if rate >= 1.0 {
                masses.iter_mut().step_by(2).for_each(|mass| *mass = 0.0);
            }
            assert_eq!(counts.iter().sum::<u64>(), users as u64);
            check_law(&counts, &masses);
        }
    }
    Ok(())
}

#[test]
fn wide_sets_hold_each_item_equally_often() -> Result<()> {
    // Every way to draw: sorted, dense, by the complement; the own item apart or not.
    for (seed, (size, reported, gamma)) in (0..).zip([
        (3000, 2, Some(500.0)),
        (3000, 3, None),
        (200, 90, Some(3.0)),
        (200, 150, Some(3.0)),
        (130, 128, None),
        (64, 20, Some(2.0)),
    ]) {
        let sampler = sampler(size, reported, gamma)?;
        let users = 60_000_usize;
        let own = 63_u32;
        let streams = AesStreams::from_seed(seed);
        let (_, sets) = sampler.draw(&vec![own; users], 1.0, &streams)?;
        let mut observed = vec![0_u64; length(size)];
        for set in sets.chunks(length(reported)) {
            assert!(set.is_sorted_by(|one, other| one < other));
            for &item in set {
                observed[item as usize] += 1;
            }
        }
        let p = sampler.own_probability();
        let others = (reported as f64 - p) / (size - 1) as f64;
        for (item, count) in (0..).zip(observed) {
            let p = if item == own { p } else { others };
            let deviation = (users as f64 * p * (1.0 - p)).sqrt();
            // Two-sided normal quantile at alpha = 1e-6 over 7,000 comparisons, and a margin for
            // the skewness of rare items.
            let distance = (count as f64 - users as f64 * p).abs();
            assert!(distance < 6.4 * deviation + 4.0, "{size} {reported}: {item} {count}");
        }
    }
    Ok(())
}

#[test]
fn bad_arguments_are_refused_and_threads_do_not_matter() -> Result<()> {
    for (reported, gamma) in
        [(0, None), (4, None), (2, Some(0.99)), (2, Some(f64::NAN)), (2, Some(f64::INFINITY))]
    {
        assert!(sampler(3, reported, gamma).is_err());
    }
    let sampler = sampler(30, 12, Some(3.0))?;
    let streams = AesStreams::from_seed(3);
    for rate in [0.0, 1.5, f64::NAN] {
        assert!(sampler.draw(&[0_u32], rate, &streams).is_err());
        assert!(sampler.realized_local_epsilon(rate).is_err());
    }
    let refused = sampler.draw(&[0_u32, 30], 0.5, &streams);
    assert!(matches!(refused, Err(Error::CodeOutsideDomain { index: 1, .. })));
    assert_eq!(sampler.draw::<u32, _>(&[], 0.5, &streams)?, (vec![], vec![]));
    let codes: Vec<u8> = (0..200).map(|user| user % 30).cycle().take(2000).collect();
    let run = || sampler.draw(&codes, 0.5, &streams);
    let expected = run()?;
    for threads in [1, 3] {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() {
            assert_eq!(pool.install(run)?, expected);
        }
    }
    Ok(())
}
