//! Realised likelihood ratios of direct encoding and of the bands of samplers, in exact rational
//! arithmetic.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;
use turnout::frequency::DirectEncoding;
use turnout::parameters::{DomainSize, Epsilon};
use turnout::samplers::Band;

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
-> Result<(), turnout::Error> {
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
-> Result<(), turnout::Error> {
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
fn limits_of_weights_are_the_widest_whole_numbers_within_the_band() -> Result<(), turnout::Error> {
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
