//! Realised likelihood ratios of the oracles and of the bands of samplers, in exact rational
//! arithmetic.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;
use turnout_core::Error;
use turnout_core::frequency::{
    BitStage, CountMeanSketch, DirectEncoding, HadamardCountMeanSketch, HadamardResponse,
    LocalHashing, Memoized, MemoizedDirect, MemoizedUnary, PooledLocalHashing,
    ProjectiveGeometryResponse, SubsetSelection, SummationHistogram, UnaryEncoding,
};
use turnout_core::parameters::{DomainSize, Epsilon};
use turnout_core::samplers::Band;

/// Partial sums of the exponential series: a lower bound of `e^x`, and an upper bound by the
/// geometric bound of the rest. Nothing here is shared with the library's own bounds.
fn exponential(x: f64) -> Option<(BigRational, BigRational)> {
    let x = BigRational::from_float(x)?;
    let terms = 200_u32;
    // Horner's scheme over one common denominator: 1 + x (1 + x/2 (1 + x/3 (...))).
    let (numerator, denominator) = (x.numer(), x.denom());
    let (mut above, mut below) = (BigInt::one(), BigInt::one());
    for index in (1..=terms).rev() {
        // 1 + x/index * above/below
        let scaled = denominator * BigInt::from(index) * &below;
        above = &scaled + numerator * above;
        below = scaled;
    }
    let sum = BigRational::new_raw(above, below);
    // The last term is below 44^200 / 200! < 2^-150, and the rest falls by at least 44/201 a term.
    let rest = BigRational::new(BigInt::one(), BigInt::one() << 148_u32);
    Some((sum.clone(), sum + rest))
}

fn sizes() -> impl Iterator<Item = u64> {
    (1..=20)
        .flat_map(|power| [1_u64 << power, (1 << power) + 1, 3 << (power - 1)])
        .filter(|&k| k <= 1 << 20)
}

#[test]
fn the_likelihood_ratio_is_at_most_e_to_the_epsilon_and_within_1e_minus_9_of_it()
-> Result<(), turnout_core::Error> {
    let epsilons = [
        1e-6,
        1e-4,
        0.01,
        0.1,
        0.25,
        0.5,
        std::f64::consts::LN_2,
        1.0,
        1.1,
        2.0,
        2.5,
        3.0,
        4.0,
        5.0,
        6.5,
        8.0,
        10.0,
        13.7,
        16.0,
        20.0,
        25.0,
        30.0,
        36.0,
        40.0,
        42.0,
    ];
    for epsilon in epsilons {
        let Some((low, high)) = exponential(epsilon) else { continue };
        let tolerance = BigRational::new(BigInt::one(), BigInt::from(1_000_000_000_u64));
        let nearly = &high * (BigRational::one() - tolerance);
        for size in sizes() {
            let oracle = DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(size)?)?;
            let (own, other) = oracle.words();
            let (own, other) = (BigInt::from(own), BigInt::from(other));
            // own / other against the bounds, without reducing fractions.
            assert!(&own * low.denom() <= &other * low.numer(), "eps {epsilon}, k {size}: above");
            assert!(
                &own * nearly.denom() >= &other * nearly.numer(),
                "eps {epsilon}, k {size}: loose"
            );
            // The words of all reports fit into 64 bits, so no report is ever more likely.
            let total = &own + (BigInt::from(size) - 1) * &other;
            assert!(total <= BigInt::one() << 64_u32);
        }
    }
    Ok(())
}

#[test]
fn the_realised_epsilon_is_rounded_up_but_never_above_the_one_asked_for()
-> Result<(), turnout_core::Error> {
    for epsilon in [1e-6, 0.1, 1.0, 3.3, 12.0, 30.0, 42.0] {
        for size in [2, 3, 100, 1 << 16, 1 << 20] {
            let oracle = DirectEncoding::new(Epsilon::new(epsilon)?, DomainSize::new(size)?)?;
            let realized = oracle.realized_epsilon();
            assert!(realized <= epsilon);
            assert!(epsilon - realized <= 1e-9);
            let Some((_, high)) = exponential(realized) else { continue };
            let (own, other) = oracle.words();
            assert!(BigRational::new(own.into(), other.into()) <= high);
        }
    }
    Ok(())
}

#[test]
fn limits_of_weights_are_the_widest_whole_numbers_within_the_band()
-> Result<(), turnout_core::Error> {
    for epsilon in [1e-9, 1e-3, 0.1, 0.5, 1.0, 2.0, 3.7, 5.0, 10.0, 21.0, 42.0] {
        let (Some((half_low, half_high)), Some((low, high))) =
            (exponential(0.5 * epsilon), exponential(epsilon))
        else {
            continue;
        };
        let references = (0..=61_u32)
            .step_by(6)
            .flat_map(|power| [1_u64 << power, (1 << power) + 1, (1 << power) * 5 / 3]);
        for reference in references.chain([1 << 62]) {
            let exact = BigRational::from_integer(reference.into());
            let (least, most) = Band::mollifier(epsilon)?.limits(reference)?;
            let (least, most) = (BigInt::from(least), BigInt::from(most));
            assert!(most == u64::MAX.into() || &exact * &half_high < BigRational::from(&most + 1));
            assert!(BigRational::from(most.clone()) <= &exact * &half_low);
            assert!(BigRational::from(least.clone()) * &half_low >= exact);
            assert!(BigRational::from(&least - 1) * &half_high < exact);
            assert!(BigRational::from(most) <= BigRational::from(least) * &low);
            for base in [1.0, 0.3, 1.0 / (0.25 * f64::exp_m1(epsilon) + 1.0), 1e-18] {
                let Some(floor) = BigRational::from_float(base) else { continue };
                let (least, most) = Band::from_base(base, epsilon)?.limits(reference)?;
                let (least, most) = (BigInt::from(least), BigInt::from(most));
                assert_eq!(least, (&exact * floor).ceil().to_integer());
                assert!(BigRational::from(most.clone()) <= BigRational::from(least.clone()) * &low);
                assert!(
                    most == u64::MAX.into()
                        || BigRational::from(most + 1) > BigRational::from(least) * &high
                );
            }
        }
    }
    Ok(())
}

/// The largest likelihood ratio of an oracle, and what it says of it.
struct Realized {
    name: &'static str,
    own: BigInt,
    other: BigInt,
    epsilon: f64,
    /// Whether one word more for the own code, or one less for another, would be too much.
    tight: bool,
}

impl Realized {
    fn of_words(name: &'static str, (own, other): (u64, u64), epsilon: f64) -> Self {
        Self { name, own: own.into(), other: other.into(), epsilon, tight: false }
    }

    /// Of bits that are one with `one` and `zero` words out of `2^bits`.
    fn of_bits(name: &'static str, (one, zero): (BigInt, BigInt), bits: u32, epsilon: f64) -> Self {
        let all = BigInt::one() << bits;
        let (own, other) = (&one * (&all - &zero), (all - one) * zero);
        Self { name, own, other, epsilon, tight: false }
    }

    const fn tight(mut self) -> Self {
        self.tight = true;
        self
    }
}

/// Every oracle for an epsilon and a number of codes; those that refuse are left out.
fn realized(epsilon: f64, size: u64) -> Result<Vec<Realized>, Error> {
    let (eps, domain) = (Epsilon::new(epsilon)?, DomainSize::new(size)?);
    let all = BigInt::one() << 64_u32;
    let mut found = Vec::new();
    if let Ok(oracle) = HadamardResponse::<u32>::new(eps, domain) {
        let (own, other) = oracle.words();
        assert_eq!(BigInt::from(own) + other, &all / oracle.report_count());
        found.push(Realized::of_words("HR", (own, other), oracle.realized_epsilon()));
    }
    for field in [None, Some(2), Some(3), Some(7)] {
        if let Ok(oracle) = ProjectiveGeometryResponse::<u32>::new(eps, domain, field) {
            let (own, other) = oracle.words();
            let inside = oracle.hyperplane_points();
            let words = BigInt::from(inside) * own + BigInt::from(oracle.points() - inside) * other;
            // The words of all reports fit into 64 bits, so no report is ever more likely.
            assert!(words <= all);
            found.push(Realized::of_words("PGR", (own, other), oracle.realized_epsilon()));
        }
    }
    let hashed = [LocalHashing::optimized(eps, domain), LocalHashing::binary(eps, domain)];
    for oracle in hashed.into_iter().flatten() {
        let (own, other) = oracle.words();
        assert!(BigInt::from(oracle.buckets() - 1) * other + own <= all);
        found.push(Realized::of_words("LH", (own, other), oracle.realized_epsilon()).tight());
    }
    if let Ok(oracle) = PooledLocalHashing::optimized(eps, domain, 16, 1) {
        found.push(Realized::of_words("pool", oracle.words(), oracle.realized_epsilon()).tight());
    }
    if let Ok(oracle) = HadamardCountMeanSketch::new(eps, domain, 16, 128, 1) {
        let (own, other) = oracle.words();
        assert!(BigInt::from(own) + other <= all);
        found.push(Realized::of_words("HCMS", (own, other), oracle.realized_epsilon()).tight());
    }
    if let Ok(oracle) = CountMeanSketch::new(eps, domain, 16, 128, 1) {
        let flip = BigInt::from(oracle.flip_words());
        let realized = oracle.realized_epsilon();
        found.push(Realized::of_bits("CMS", (&all - &flip, flip), 64, realized).tight());
    }
    for (name, oracle) in [
        ("SUE", UnaryEncoding::symmetric(eps, domain)),
        ("OUE", UnaryEncoding::optimized(eps, domain)),
        ("THE", UnaryEncoding::threshold_histogram(eps, domain)),
    ] {
        if let Ok(oracle) = oracle {
            let (one, zero) = oracle.words();
            let bits = (one.into(), zero.into());
            let realized = Realized::of_bits(name, bits, 64, oracle.realized_epsilon());
            found.push(if name == "THE" { realized } else { realized.tight() });
        }
    }
    for subset in [None, Some(1), Some(size / 2), Some(size - 1)] {
        if let Ok(oracle) = SubsetSelection::new(eps, domain, subset) {
            let (own, chosen) = (BigInt::from(oracle.own_words()), oracle.subset_size());
            let other = (&all - &own) * chosen;
            let (own, epsilon) = (own * (size - chosen), oracle.realized_epsilon());
            found.push(Realized { name: "SS", own, other, epsilon, tight: false });
        }
    }
    // The permanent answer, and the first report of it.
    for share in [0.2, 0.7] {
        let first = Epsilon::new(epsilon * share)?;
        if let Ok(oracle) = MemoizedDirect::new(domain, eps, first) {
            let [(own, other), (kept, changed)] = oracle.words();
            found.push(Realized::of_words("L-GRR", (own, other), oracle.lifetime_epsilon()));
            let [own, other, kept, changed] = [own, other, kept, changed].map(BigInt::from);
            let named = &own * &kept + &other * &changed * (size - 1);
            let rest = &other * kept + (own + other * (size - 2)) * changed;
            assert!(
                exponential(epsilon * share)
                    .is_some_and(|(low, _)| { &named * low.denom() <= &rest * low.numer() })
            );
            let epsilon = oracle.realized_epsilon();
            found.push(Realized {
                name: "one L-GRR",
                own: named,
                other: rest,
                epsilon,
                tight: false,
            });
        }
        for stages in [
            [BitStage::Symmetric, BitStage::Symmetric],
            [BitStage::Symmetric, BitStage::Optimized],
            [BitStage::Optimized, BitStage::Symmetric],
            [BitStage::Optimized, BitStage::Optimized],
        ] {
            if let Ok(oracle) = MemoizedUnary::new(domain, eps, first, stages) {
                let [(one, zero), (kept, raised)] = oracle.words();
                let lifetime = oracle.lifetime_epsilon();
                let bits = (one.into(), zero.into());
                found.push(Realized::of_bits("RAPPOR", bits, 64, lifetime).tight());
                let through =
                    |ones: u64| BigInt::from(ones) * kept + (&all - BigInt::from(ones)) * raised;
                let bits = (through(one), through(zero));
                let epsilon = oracle.realized_epsilon();
                assert!(epsilon <= first.get());
                found.push(Realized::of_bits("one RAPPOR", bits, 128, epsilon));
            }
        }
    }
    Ok(found)
}

#[test]
fn the_likelihood_ratio_of_every_oracle_is_at_most_e_to_its_realised_epsilon() -> Result<(), Error>
{
    let tolerance = BigRational::new(BigInt::one(), BigInt::from(100_000_000_u64));
    let mut names = std::collections::BTreeSet::new();
    for epsilon in [1e-6, 1e-3, std::f64::consts::LN_2, 1.0, 2.5, 9.3, 16.0, 42.0] {
        let Some((low, _)) = exponential(epsilon) else { continue };
        for size in [2, 3, 100, 1 << 12] {
            for case in realized(epsilon, size)? {
                let Realized { name, own, other, epsilon: realized, tight } = case;
                names.insert(name);
                let place = format!("{name}, eps {epsilon}, k {size}: realised {realized}");
                assert!(own > other, "{place}");
                // The guarantee that was asked for, and the one that is told, rounded up.
                assert!(&own * low.denom() <= &other * low.numer(), "{place}");
                assert!(realized <= epsilon, "{place}");
                let Some((_, told)) = exponential(realized) else { continue };
                assert!(&own * told.denom() <= &other * told.numer(), "{place}");
                // Told is what there is but for the last digits.
                let Some((nearly, _)) = exponential(realized * (1.0 - 1e-12) - 1e-14) else {
                    continue;
                };
                assert!(&own * nearly.denom() >= &other * nearly.numer(), "{place}: told too much");
                if tight && epsilon < 20.0 {
                    let least = &low * (BigRational::one() - &tolerance);
                    assert!(&own * least.denom() >= &other * least.numer(), "{place}: loose");
                }
            }
        }
    }
    assert_eq!(names.len(), 14, "{names:?}");
    Ok(())
}

#[test]
fn the_rate_of_noisy_histograms_is_at_most_half_of_epsilon() -> Result<(), Error> {
    for epsilon in [3e-6, 1e-3, 0.1, 1.0 / 3.0, 1.0, 2.5, 7.7, 42.0] {
        let oracle = SummationHistogram::new(Epsilon::new(epsilon)?, DomainSize::new(3)?)?;
        let exact = BigRational::new(BigInt::from(oracle.rate()), BigInt::one() << 63_u32);
        let (asked, told) =
            (BigRational::from_float(epsilon), BigRational::from_float(oracle.realized_epsilon()));
        assert!(asked.is_some_and(|asked| exact <= asked), "{epsilon}");
        assert!(told.is_some_and(|told| exact <= told), "{epsilon}");
        assert!(oracle.realized_epsilon() <= epsilon);
        assert!(oracle.realized_epsilon() > epsilon * (1.0 - 1e-6), "{epsilon}");
    }
    Ok(())
}
