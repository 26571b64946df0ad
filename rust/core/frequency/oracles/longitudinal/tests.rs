use num_bigint::BigInt;
use num_rational::BigRational;

use super::*;
use crate::frequency::{DirectEncoding, FrequencyOracle};
use crate::parameters::{DomainSize, Epsilon};
use crate::random::AesStreams;

const EPSILONS: [(f64, f64); 6] =
    [(0.5, 0.1), (1.0, 0.5), (2.0, 1.0), (4.0, 1.0), (8.0, 2.0), (20.0, 3.0)];

const STAGES: [BitStage; 2] = [BitStage::Symmetric, BitStage::Optimized];

fn rational(words: u64) -> BigRational {
    BigRational::new(words.into(), BigInt::from(1_u128 << 64))
}

/// `e^x` from below and above, from its series.
fn exponential(x: f64) -> Option<(BigRational, BigRational)> {
    let x = BigRational::from_float(x)?;
    let (mut term, mut sum) =
        (BigRational::from_integer(1.into()), BigRational::from_integer(1.into()));
    for index in 1..200_u32 {
        term = term * &x / BigInt::from(index);
        sum += &term;
    }
    Some((sum.clone(), sum + term))
}

/// Checks that a ratio is at most `e^epsilon`, and hardly below.
fn check(ratio: &BigRational, epsilon: f64, what: &str) {
    let Some((low, _)) = exponential(epsilon) else { return };
    assert!(*ratio <= low, "{what}");
    let slack = BigRational::new(1.into(), 1_000_000_000.into());
    assert!(ratio + &slack * &low > low, "{what} leaves something over");
}

#[test]
fn unary_reports_have_the_ratios_that_were_asked_for_in_rationals() -> Result<()> {
    for (lifetime, first) in EPSILONS {
        for (permanent, instantaneous) in
            STAGES.into_iter().flat_map(|one| STAGES.map(|other| (one, other)))
        {
            let made = BitChain::new(
                Epsilon::new(lifetime)?,
                Epsilon::new(first)?,
                permanent,
                instantaneous,
            )?;
            let [(a, b), (c, d)] = made.words().map(|(one, zero)| (rational(one), rational(zero)));
            let whole = BigRational::from_integer(1.into());
            let odds = |one: &BigRational, zero: &BigRational| {
                (one / zero) * (&whole - zero) / (&whole - one)
            };
            let through = |one: &BigRational| one * &c + (&whole - one) * &d;
            let what = format!("{lifetime} {first} {permanent:?} {instantaneous:?}");
            check(&odds(&a, &b), lifetime, &what);
            check(&odds(&through(&a), &through(&b)), first, &what);
            assert!(made.lifetime_epsilon() <= lifetime && made.first_epsilon() <= first);
            let up = exponential(made.first_epsilon());
            assert!(up.is_some_and(|(_, high)| odds(&through(&a), &through(&b)) <= high));
        }
    }
    Ok(())
}

#[test]
fn direct_reports_have_the_ratios_that_were_asked_for_by_enumeration() -> Result<()> {
    for (lifetime, first) in EPSILONS {
        for size in [2, 3, 7] {
            let domain = DomainSize::new(size)?;
            let made = MemoizedDirect::new(domain, Epsilon::new(lifetime)?, Epsilon::new(first)?)?;
            let [one, two] = made.words();
            let stage = |(own, other): (u64, u64), from: u64, to: u64| {
                let total = u128::from(own) + u128::from(other) * u128::from(size - 1);
                BigRational::new(if from == to { own } else { other }.into(), total.into())
            };
            let report = |code: u64, named: u64| -> BigRational {
                (0..size).map(|middle| stage(one, code, middle) * stage(two, middle, named)).sum()
            };
            let total: BigRational = (0..size).map(|named| report(0, named)).sum();
            assert_eq!(total, BigRational::from_integer(1.into()));
            let what = format!("{lifetime} {first} {size}");
            check(&(report(0, 0) / report(1, 0)), first, &what);
            check(&(stage(one, 0, 0) / stage(one, 1, 0)), lifetime, &what);
            let (p, q) = made.support_probabilities();
            let close = |exact: BigRational, float: f64| {
                BigRational::from_float(float).is_some_and(|float| {
                    let gap = exact - float;
                    gap.clone() * &gap < BigRational::new(1.into(), BigInt::from(10_u64.pow(18)))
                })
            };
            assert!(close(report(0, 0), p) && close(report(1, 0), q), "{what}");
            assert!(made.realized_epsilon() <= first && made.lifetime_epsilon() <= lifetime);
        }
    }
    Ok(())
}

#[test]
fn a_first_epsilon_out_of_reach_is_refused() -> Result<()> {
    let domain = DomainSize::new(4)?;
    for (lifetime, first) in [(1.0, 1.0), (1.0, 2.0)] {
        let (lifetime, first) = (Epsilon::new(lifetime)?, Epsilon::new(first)?);
        assert!(MemoizedDirect::new(domain, lifetime, first).is_err());
        for stage in STAGES {
            assert!(BitChain::new(lifetime, first, stage, stage).is_err());
        }
    }
    // An optimised stage drops half of the ones, and cannot come as close as that.
    let close = BitChain::new(
        Epsilon::new(1.0)?,
        Epsilon::new(0.99)?,
        BitStage::Optimized,
        BitStage::Optimized,
    );
    assert!(matches!(close, Err(Error::Accounting { argument: "first_epsilon", .. })));
    Ok(())
}

#[test]
fn permanent_answers_never_change() -> Result<()> {
    // Pinned: a change of these would draw the permanent answers of every deployed client again.
    let secrets: Vec<[u8; 32]> = (0..8).map(|node| [node; 32]).collect();
    let codes = [0_u8, 1, 2, 3, 4, 5, 6, 7];
    let (lifetime, first) = (Epsilon::new(2.0)?, Epsilon::new(1.0)?);
    let direct = MemoizedDirect::new(DomainSize::new(8)?, lifetime, first)?;
    assert_eq!(direct.permanent(Codes::U8(&codes), &secrets, &[9; 32])?, DIRECT);
    let stages = [BitStage::Symmetric; 2];
    let unary = MemoizedUnary::new(DomainSize::new(40)?, lifetime, first, stages)?;
    assert_eq!(unary.permanent(Codes::U8(&codes), &secrets, &[9; 32])?, UNARY);
    Ok(())
}

const DIRECT: [u32; 8] = [0, 7, 1, 3, 1, 6, 6, 4];
const UNARY: [u64; 8] = [
    0x0020_5032_002F,
    0x0008_2100_122A,
    0x0052_84C0_1168,
    0x0060_0EB6_401A,
    0x0003_0104_26E2,
    0x0080_E18E_A431,
    0x0006_1205_A204,
    0x0020_8058_C1C9,
];

#[test]
fn permanent_answers_have_the_law_of_direct_encoding() -> Result<()> {
    // Over many secrets, 8 counts of 80,000 nodes: within 6 standard deviations of the mean.
    let nodes = 80_000_u32;
    let secrets: Vec<[u8; 32]> = (0..nodes)
        .map(|node| {
            let mut secret = [3; 32];
            secret[..4].copy_from_slice(&node.to_le_bytes());
            secret
        })
        .collect();
    let (lifetime, first) = (Epsilon::new(1.5)?, Epsilon::new(1.0)?);
    let domain = DomainSize::new(8)?;
    let chain = MemoizedDirect::new(domain, lifetime, first)?;
    let answers = chain.permanent(Codes::U8(&vec![5; nodes as usize]), &secrets, &[0; 32])?;
    let (p, q) = DirectEncoding::new(lifetime, domain)?.support_probabilities();
    for code in 0..8 {
        let expected = f64::from(nodes) * if code == 5 { p } else { q };
        let found = answers.iter().filter(|&&answer| answer == code).count() as f64;
        assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{code}: {found} {expected}");
    }
    Ok(())
}

#[test]
fn rounds_differ_and_the_rows_that_take_part_are_the_selected_ones() -> Result<()> {
    let domain = DomainSize::new(70)?;
    let (lifetime, first) = (Epsilon::new(40.0)?, Epsilon::new(30.0)?);
    // Hardly any noise: reports show whose they are.
    let chain = MemoizedUnary::new(domain, lifetime, first, [BitStage::Symmetric; 2])?;
    let codes: Vec<u8> = (0..70).collect();
    let secrets = vec![[1; 32]; 70];
    let rows = chain.permanent(Codes::U8(&codes), &secrets, &[0; 32])?;
    let everyone = Selection::everyone();
    let reports = chain.instantaneous(&rows, &everyone, &AesStreams::from_seed(1))?;
    assert_eq!(reports.codes, rows);
    let half = Selection::bernoulli(crate::parameters::Probability::new(0.5)?);
    let some = chain.instantaneous(&rows, &half, &AesStreams::from_seed(1))?;
    assert!(
        some.codes.len() < rows.len()
            && some.codes.chunks(2).all(|row| rows.chunks(2).any(|one| one == row))
    );
    // With noise, two rounds differ.
    let chain = MemoizedUnary::new(
        domain,
        Epsilon::new(2.0)?,
        Epsilon::new(1.0)?,
        [BitStage::Optimized; 2],
    )?;
    let rows = chain.permanent(Codes::U8(&codes), &secrets, &[0; 32])?;
    let round = |seed| chain.instantaneous(&rows, &everyone, &AesStreams::from_seed(seed));
    assert_eq!(round(1)?, round(1)?);
    assert_ne!(round(1)?, round(2)?);
    let first = round(1)?.codes;
    let tally = chain.tally(&first, None)?;
    assert_eq!(tally.received, 70);
    let ones: u64 = first.iter().map(|word| u64::from(word.count_ones())).sum();
    assert_eq!(tally.support.iter().sum::<u64>(), ones);
    assert!(!chain.valid(&[0, 1 << 6]) && chain.valid(&[u64::MAX, 63]));
    assert!(chain.instantaneous(&[0, 1 << 6], &everyone, &AesStreams::from_seed(1)).is_err());
    Ok(())
}
