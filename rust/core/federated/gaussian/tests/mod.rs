//! The tables are proven piece by piece, decisions compared with exact rationals, and the law of
//! the numbers with the error function and with Karney's sampler.

mod decisions;
mod law;
mod pieces;
mod tables;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;
use rayon::ThreadPoolBuilder;

use super::*;
use crate::random::{AesStream, AesStreams};

fn stream(index: u64) -> AesStream {
    AesStreams::from_seed(17).stream(Purpose::Simulation, index)
}

fn cell(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The integral of `e^(-x^2 / 2)` from `low` to `high`.
fn area(low: f64, high: f64) -> f64 {
    let tail = |x: f64| libm::erfc(x * core::f64::consts::FRAC_1_SQRT_2);
    // Near zero by the error function: no digits cancel.
    let between = if high < 0.5 {
        let body = |x: f64| libm::erf(x * core::f64::consts::FRAC_1_SQRT_2);
        body(high) - body(low)
    } else {
        tail(low) - tail(high)
    };
    between * (core::f64::consts::PI / 2.0).sqrt()
}

/// `e^-x` within `2^-300`, by the alternating series in exact rationals, for `x = numerator / 2^17`.
fn decay(numerator: u64) -> BigRational {
    let x = BigRational::new(numerator.into(), BigInt::from(1 << 17));
    let (mut term, mut sum) = (BigRational::one(), BigRational::one());
    for index in 1..340_u32 {
        term = -term * &x / BigInt::from(index);
        sum += &term;
    }
    sum
}

#[test]
fn magnitudes_are_rounded_to_the_nearest() {
    // 0.5 and 1.5 are rounded up, and so is what is above; what is below is rounded down.
    let unit = 1_u64 << FRACTION;
    for (digits, bits, expected) in [
        (unit / 2 - 1, 0, 0),
        (unit / 2, 0, 1),
        (3 * unit / 2 - 1, 0, 1),
        (3 * unit / 2, 0, 2),
        (1, 52, 1),
        (2, 52, 1),
        (3, 52, 2),
        (unit + unit / 8, 2, 5),
        (unit + unit / 8 - 1, 2, 4),
        (1000 * unit, 52, 1000 << 52),
    ] {
        assert_eq!(nearest(digits, BITS - bits), expected);
    }
}

#[test]
fn fewer_bits_are_the_leading_bits() -> Result<()> {
    // The same words give the same real numbers, whatever is kept of them.
    let streams = AesStreams::from_seed(3);
    for (fine, coarse) in [(24_u32, [0, 1, 7, 8, 23]), (52, [25, 26, 40, 50, 51])] {
        let reference = rounded_gaussian(30_000, fine, &streams)?;
        for bits in coarse {
            let numbers = rounded_gaussian(30_000, bits, &streams)?;
            for (&number, &reference) in numbers.iter().zip(&reference) {
                let rounded = number << (fine - bits);
                let half = 1_u64 << (fine - bits - 1);
                assert!(rounded.abs_diff(reference) <= half, "{bits} of {fine}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_number_of_threads_does_not_matter() -> Result<()> {
    let length = 5 * GAUSSIAN_CHUNK + 17;
    for bits in [3, 24, 30] {
        let draw = || rounded_gaussian(length, bits, &AesStreams::from_seed(4));
        let one = ThreadPoolBuilder::new().num_threads(1).build();
        let two = ThreadPoolBuilder::new().num_threads(2).build();
        let (Ok(one), Ok(two)) = (one, two) else { continue };
        let numbers = one.install(draw)?;
        assert_eq!(numbers, two.install(draw)?);
        // Chunks have streams of their own.
        assert_ne!(numbers[..100], numbers[GAUSSIAN_CHUNK..GAUSSIAN_CHUNK + 100]);
    }
    Ok(())
}

#[test]
fn lengths_and_bits_out_of_range_are_refused() -> Result<()> {
    let streams = AesStreams::from_seed(1);
    assert!(rounded_gaussian(0, 24, &streams)?.is_empty());
    assert!(matches!(
        rounded_gaussian(1, 53, &streams),
        Err(Error::Integer { argument: "bits", value: 53, .. })
    ));
    assert!(matches!(
        rounded_gaussian(usize::MAX, 24, &streams),
        Err(Error::Accounting { argument: "length", .. })
    ));
    Ok(())
}
