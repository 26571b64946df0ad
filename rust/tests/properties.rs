//! Properties that hold for every input.

use core::cmp::Ordering;

use proptest::prelude::*;
use turnout_core::frequency::{DirectEncoding, Selection};
use turnout_core::parameters::{DomainSize, Epsilon, Probability};
use turnout_core::random::{
    AesStreams, ExponentialBounds, Purpose, Skips, Streams, binomial, multinomial_uniform,
    uniform_below,
};
use turnout_core::samplers::{Band, weights};

proptest! {
    #[test]
    fn reports_are_codes_of_the_domain(
        epsilon in 1e-3_f64..42.0,
        size in 2_u64..5_000,
        rate in 1e-3_f64..=1.0,
        answers in prop::collection::vec(any::<u32>(), 0..2_000),
        seed in any::<u64>(),
    ) {
        let oracle = DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(size)?)?;
        let answers: Vec<i64> =
            answers.into_iter().map(|answer| i64::from(answer) % i64::try_from(size).unwrap_or(2)).collect();
        let selection = Selection::bernoulli(Probability::new(rate)?);
        let streams = AesStreams::from_seed(seed);
        let reports = oracle.randomize::<_, u16, _>(&answers, &selection, &streams)?;
        prop_assert!(reports.codes.len() <= answers.len());
        prop_assert!(reports.codes.iter().all(|&code| u64::from(code) < size));
        let tally = oracle.collect(&answers, &selection, &streams)?;
        prop_assert_eq!(tally.support.iter().sum::<u64>(), tally.received);
        prop_assert_eq!(&oracle.tally(&reports.codes, None)?, &tally);
    }

    #[test]
    fn words_realise_at_most_epsilon(epsilon in 1e-6_f64..42.0, size in 2_u64..(1 << 32)) {
        let Ok(oracle) = DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(size)?) else {
            return Ok(());
        };
        let (own, other) = oracle.words();
        prop_assert!(own > other);
        prop_assert!(u128::from(own) + u128::from(size - 1) * u128::from(other) <= 1 << 64);
        // Double precision: exact to 1e-13 here, the rational test is in guarantee.rs.
        prop_assert!(own as f64 / other as f64 <= epsilon.exp() * (1.0 + 1e-13));
    }

    #[test]
    fn exponential_bounds_agree_with_double_precision(x in 0.0_f64..42.0) {
        let scaled = ExponentialBounds::new(x).floor_times(1 << 53) as f64 / (1_u64 << 53) as f64;
        prop_assert!((scaled / x.exp() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn selected_positions_ascend_and_stay_below_the_length(
        rate in 1e-9_f64..1.0, length in 0_usize..70_000, seed in any::<u64>(),
    ) {
        let mut stream = AesStreams::from_seed(seed).stream(Purpose::Participation, 0);
        let mut selected = Vec::new();
        Skips::new(Probability::new(rate)?).select(length, &mut stream, &mut selected);
        prop_assert!(selected.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(selected.last().is_none_or(|&last| usize::from(last) < length));
    }

    #[test]
    fn counts_stay_within_their_trials(
        trials in any::<u64>(), probability in 0.0_f64..=1.0, cells in 1_usize..50, seed in any::<u64>(),
    ) {
        let mut stream = AesStreams::from_seed(seed).stream(Purpose::Simulation, 0);
        prop_assert!(binomial(trials, probability, &mut stream) <= trials);
        prop_assert!(uniform_below(trials.max(1), &mut stream) < trials.max(1));
        let mut counts = vec![0; cells];
        multinomial_uniform(trials, &mut counts, &mut stream);
        prop_assert_eq!(counts.iter().map(|&count| u128::from(count)).sum::<u128>(), u128::from(trials));
    }

    #[test]
    fn weights_stay_within_their_limits_and_keep_the_total(
        entries in prop::collection::vec((prop::num::f64::ANY, -9.0_f64..9.0, 0_u32..50), 1..60),
        wild in any::<bool>(),
        epsilon in 1e-9_f64..=42.0,
        asymmetry in prop::option::of(1e-6_f64..=1.0),
    ) {
        let log_ratios: Vec<f64> =
            entries.iter().enumerate().map(|(i, &(any, tame, _))| if wild && i % 3 == 0 { any } else { tame }).collect();
        let reference: Vec<u64> = entries.iter().map(|&(_, _, power)| (1_u64 << power) + 5).collect();
        let band = match asymmetry {
            None => Band::mollifier(epsilon)?,
            // Somewhat above the least base, so that there is room whatever is rounded.
            Some(share) => Band::from_base(f64::min(1.0, 1.000_001 / (share * epsilon.exp_m1() + 1.0)), epsilon)?,
        };
        let (found, _) = weights(&log_ratios, &reference, &band)?;
        prop_assert_eq!(found.iter().sum::<u64>(), reference.iter().sum::<u64>());
        for ((&weight, &one), &ratio) in found.iter().zip(&reference).zip(&log_ratios) {
            let (low, high) = band.limits(one)?;
            prop_assert!((low..=high).contains(&weight));
            // More density never means less weight for the same reference.
            for ((&other, &same), &lower) in found.iter().zip(&reference).zip(&log_ratios) {
                prop_assert!(same != one || lower.partial_cmp(&ratio) != Some(Ordering::Less) || other <= weight + 1);
            }
        }
    }
}
