//! Clipping against exact rationals, and the same sums in every way.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, Zero};
use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::kernel::{Instructions, Scale, Strip};
use super::passes::{Sums, pass};
use super::rule::Rule;
use super::*;
use crate::random::{AesStreams, Purpose, Streams, Words};

fn exact(value: f64) -> BigRational {
    BigRational::from_float(value).unwrap()
}

fn whole(value: i64) -> BigRational {
    BigRational::from_integer(BigInt::from(value))
}

/// Whether what is left of a row is short enough, and not much shorter than it must be.
fn check(row: &[f64], clip: f64, step: f64) {
    check_part(Part::Double(row), row, clip, step, [1e-13, 1e-15]);
}

/// The same of a row in single precision.
fn check_single(row: &[f32], clip: f64, step: f64) {
    let wide: Vec<f64> = row.iter().map(|&x| x.into()).collect();
    check_part(Part::Single(row), &wide, clip, step, [3e-7, 1.3e-7]);
}

/// The same with tolerances for the clip and for a product.
fn check_part(part: Part<'_>, row: &[f64], clip: f64, step: f64, [near, product]: [f64; 2]) {
    let gradients = Gradients::new(1, vec![(row.len(), part)]).unwrap();
    let integers = gradients.clip_to_grid(clip, step).unwrap();
    let (clip, step) = (exact(clip), exact(step));
    let squared = |value: BigRational| &value * &value;
    let zero = BigRational::zero;
    let length =
        integers.iter().fold(zero(), |sum, &n| sum + squared(whole(n))) * squared(step.clone());
    assert!(length <= squared(clip.clone()), "{row:?}, {clip:?}, {step:?}: {integers:?}");
    let norm = row.iter().fold(zero(), |sum, &x| sum + squared(exact(x)));
    let most = exact(1.0 - near);
    for (&n, &x) in integers.iter().zip(row) {
        let (next, x) = (whole(n.abs() + 1) * &step, exact(x));
        assert!(n == 0 || (n > 0) == x.is_positive());
        assert!(whole(n.abs()) * &step <= x.abs() * exact(1.0 + product));
        if norm <= squared(&clip * &most) {
            assert!(next >= x.abs() * exact(1.0 - product), "not clipped: {n}, {x:?}, {step:?}");
        } else {
            let left = squared(x) * squared(&clip * &most);
            assert!(squared(next) * &norm >= left, "clipped: {n}, {step:?}");
        }
    }
}

/// Finite numbers of every size.
fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()),
        2 => -4.0..4.0_f64,
        1 => prop::sample::select(vec![
            0.0, -0.0, 5e-324, -5e-324, f64::MIN_POSITIVE, f64::MAX, f64::MIN, 1.0, 1e300, 1e-300
        ]),
    ]
}

/// Numbers of about the same size, whatever it is.
fn alike() -> impl Strategy<Value = Vec<f64>> {
    (-1074_i32..1020, prop::collection::vec(-8.0..8.0_f64, 1..40))
        .prop_map(|(exponent, row)| row.into_iter().map(|x| libm::scalbn(x, exponent)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_row_is_longer_than_the_clip(
        row in prop_oneof![prop::collection::vec(finite(), 1..20), alike()],
        clip in finite().prop_map(f64::abs),
        near in any::<bool>(),
        factor in prop_oneof![0.9..1.1_f64, Just(1.0), 1e-4..1e4_f64],
        bits in -3.0..61.9_f64,
    ) {
        // The clip is of any size, or about the norm of the row.
        let largest = row.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let norm = row.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt();
        let clip = if near { (norm * largest * factor).min(f64::MAX) } else { clip };
        let step = clip / bits.exp2();
        prop_assume!(clip > 0.0 && step > 0.0 && step.is_finite() && clip / step < LIMIT);
        check(&row, clip, step);
    }

    #[test]
    fn no_row_in_single_precision_is_longer_than_the_clip(
        row in prop_oneof![
            prop::collection::vec(any::<u32>().prop_map(f32::from_bits), 1..20),
            (-149_i32..127, prop::collection::vec(-2.0..2.0_f64, 1..40)).prop_map(
                |(exponent, row)| row.into_iter().map(|x| narrow(libm::scalbn(x, exponent))).collect()
            ),
        ],
        clip in finite().prop_map(f64::abs),
        near in prop::sample::select(vec![true, true, true, false]),
        factor in prop_oneof![0.9..1.1_f64, Just(1.0), Just(1.0 - 1e-7), 1e-4..1e4_f64],
        bits in prop_oneof![-3.0..27.9_f64, 26.0..61.9_f64],
    ) {
        prop_assume!(row.iter().all(|x| x.is_finite()));
        let norm = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let clip = if near { norm * factor } else { clip };
        let step = clip / bits.exp2();
        prop_assume!(clip > 0.0 && step > 0.0 && step.is_finite() && clip / step < LIMIT);
        check_single(&row, clip, step);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "to single precision")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[test]
fn lost_squares_are_in_the_margin() {
    // Each of the small squares is lost beside the large one before it.
    for (large, small, columns) in [(1.0, -27, 2048), (1.0, -27, 5_000), (1e150, -27, 2048)] {
        let mut row = vec![libm::scalbn(large, small); columns];
        row.chunks_mut(2048).for_each(|strip| strip.iter_mut().take(16).for_each(|x| *x = large));
        let norm = row.iter().map(|x| (x / large).powi(2)).sum::<f64>().sqrt() * large;
        for bits in [24.0_f64, 61.0] {
            for clip in [norm, norm.next_up(), norm / 3.0] {
                check(&row, clip, clip / bits.exp2());
            }
        }
    }
}

#[test]
fn one_parameter_keeps_its_size() {
    for (x, clip, step, expected) in [
        (0.75, 1.0, 0.25, 3),
        (-0.75, 1.0, 0.25, -3),
        (0.99, 1.0, 0.25, 3),
        (0.1, 1.0, 0.25, 0),
        // What is clipped stays below the clip, if only just.
        (1e300, 1.0, 0.25, 3),
        (f64::MAX, 1.0, 0.3, 3),
        (5.0, 2.5, 1.0, 2),
        (f64::MAX, f64::MAX, f64::MAX, 0),
        (5e-324, 5e-324, 5e-324, 0),
        (2e-323, 1e-322, 5e-324, 4),
        (1e-310, 1e-300, 1e-311, 10),
        (1.0, 1e-320, 5e-324, 2023),
        (1.0, 0.5, 1.0, 0),
        (1e300, 1e308, 1e299, 10),
    ] {
        let row = [x];
        let gradients = Gradients::new(1, vec![(1, Part::Double(&row))]).unwrap();
        assert_eq!(gradients.clip_to_grid(clip, step).unwrap(), [expected], "{x}, {clip}, {step}");
    }
}

/// Gradients of any size, of which about half are clipped at one.
fn random(examples: usize, parameters: usize, seed: u64) -> (Vec<f32>, Vec<f64>) {
    let mut stream = AesStreams::from_seed(seed).stream(Purpose::Simulation, 0);
    let mut words = vec![0; examples * parameters];
    stream.fill_words(&mut words);
    let size = 2.0 / (parameters as f64).sqrt();
    let wide: Vec<f64> = words.iter().map(|&word| (word as f64 / power(63) - 1.0) * size).collect();
    #[expect(clippy::cast_possible_truncation, reason = "to single precision")]
    let single = wide.iter().map(|&x| x as f32).collect();
    (single, wide)
}

/// Narrow rows in many spans, wide ones in strips, and rows of several parts.
const SHAPES: [(usize, usize); 6] =
    [(0, 5), (7, 0), (1, 40_000), (301, 1_900), (40_000, 17), (13, 70_001)];

fn split<'a>(single: &'a [f32], wide: &'a [f64], examples: usize) -> Gradients<'a> {
    let columns = |length: usize| length.checked_div(examples).unwrap_or(5);
    let parts = vec![
        (columns(single.len()), Part::Single(single)),
        (columns(wide.len()), Part::Double(wide)),
    ];
    Gradients::new(examples, parts).unwrap()
}

/// What a row is multiplied by, computed in one go.
fn factors(gradients: &Gradients<'_>, clip: f64) -> Vec<f64> {
    let norm = |row: Vec<f64>| row.iter().map(|x| x * x).sum::<f64>().sqrt();
    (0..gradients.examples).map(|row| (clip / norm(gradients.row(row))).min(1.0)).collect()
}

#[test]
fn sums_are_those_of_clipped_rows() {
    for (examples, parameters) in SHAPES {
        let (single, _) = random(examples, parameters, 1);
        let (_, wide) = random(examples, 3, 2);
        let gradients = split(&single, &wide, examples);
        let factors = factors(&gradients, 1.0);
        let (mut sums, mut whole) =
            (vec![0.0; gradients.parameters()], vec![0; gradients.parameters()]);
        let step = power(-20);
        for (row, factor) in factors.iter().enumerate() {
            for (column, x) in gradients.row(row).into_iter().enumerate() {
                sums[column] += x * factor;
                #[expect(clippy::cast_possible_truncation, reason = "toward zero")]
                let integer = (x * factor / step) as i64;
                whole[column] += integer;
            }
        }
        let found = gradients.clip_and_sum(1.0).unwrap();
        assert_eq!(found.len(), sums.len());
        for (found, expected) in found.iter().zip(&sums) {
            assert!((found - expected).abs() <= 1e-11, "{found}, {expected}");
        }
        let found = gradients.clip_to_grid(1.0, step).unwrap();
        assert_eq!(found.len(), whole.len());
        // An entry next to a multiple of the step may fall on the other side of it.
        let differ = found.iter().zip(&whole).filter(|(left, right)| left != right);
        assert!(differ.clone().all(|(left, right)| left.abs_diff(*right) == 1));
        assert!(differ.count() <= 1, "{examples} x {parameters}");
    }
}

#[test]
fn results_do_not_depend_on_the_threads() {
    for (examples, parameters) in SHAPES {
        let (single, _) = random(examples, parameters, 3);
        let (_, wide) = random(examples, 3, 4);
        let gradients = split(&single, &wide, examples);
        let results = [1, 2, 5].map(|threads| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let bits = |sums: Vec<f64>| sums.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            pool.install(|| {
                let sums = gradients.clip_and_sum(0.9).unwrap();
                (bits(sums), gradients.clip_to_grid(0.9, 1e-7).unwrap())
            })
        });
        assert!(results.iter().all(|result| *result == results[0]));
    }
}

#[test]
fn whole_numbers_add_up_the_same_in_every_way() {
    let (single, wide) = random(301, 70, 5);
    let gradients = split(&single, &wide, 301);
    let rule = Rule::new(1.0, power(-24), gradients.strips(), false);
    let integers = pass(&gradients, &rule, Sums::Integers).unwrap().integers;
    for rows in [1, 5, 9, 300, 1 << 28] {
        assert_eq!(pass(&gradients, &rule, Sums::Whole(rows)).unwrap().integers, integers);
    }
    assert!(integers.iter().any(|&sum| sum < 0) && integers.iter().any(|&sum| sum > 1 << 24));
}

#[test]
fn narrow_sums_are_those_of_products_in_single_precision() {
    let ratio = power(20);
    assert_eq!(Sums::whole(ratio, true), Sums::Narrow(2047));
    assert_eq!(Sums::whole(power(27), true), Sums::Whole(1 << 25));
    for (examples, parameters) in SHAPES {
        let (mut single, _) = random(examples, parameters, 9);
        single.iter_mut().take(parameters).for_each(|x| *x = 0.0);
        let parts = vec![(single.len().checked_div(examples).unwrap_or(5), Part::Single(&single))];
        let gradients = Gradients::new(examples, parts).unwrap();
        let rule = Rule::new(0.9, 0.9 / ratio, gradients.strips(), true);
        let mut expected = vec![0; gradients.parameters()];
        let strips = gradients.parameters().div_ceil(2048);
        for row in 0..examples {
            let values = gradients.row(row);
            let norm = values.iter().map(|x| x * x).sum::<f64>().sqrt();
            let least = 1.0 - (147 + strips + 12) as f64 * power(-53) - 3.0 * power(-24);
            let factor = if norm <= 0.9 * least { 1.0 } else { 0.9 / norm * least };
            let factor = if norm > 0.0 { narrow(factor / (0.9 / ratio)) } else { 0.0 };
            for (sum, x) in expected.iter_mut().zip(values) {
                // Exact in double precision, then rounded once.
                let product = narrow(x * f64::from(factor));
                #[expect(clippy::cast_possible_truncation, reason = "toward zero")]
                let integer = product as i64;
                *sum += integer;
            }
        }
        for rows in [1, 5, 9, 300, 2047] {
            let found = pass(&gradients, &rule, Sums::Narrow(rows)).unwrap().integers;
            // The last bit of a factor may be another one if the norm is.
            let differ = found.iter().zip(&expected).filter(|(left, right)| left != right);
            assert!(differ.clone().all(|(left, right)| left.abs_diff(*right) <= 1));
            assert!(differ.count() <= 1 + parameters / 1000, "{examples} x {parameters}");
            assert_eq!(found, gradients.clip_to_grid(0.9, 0.9 / ratio).unwrap());
        }
    }
}

#[test]
fn factors_beyond_single_precision_are_kept() {
    // The factor is too large for single precision, too small, or zero.
    for (x, clip, step) in [
        (1e-40_f32, 1e-35, 1e-41),
        (1e-45, 1e-38, 1e-44),
        (3e38, 3e38, 1e38),
        (3e38, 1e39, 3e38),
        (1e38, 3e38, 2e38),
        (0.0, 1.0, 1e-7),
    ] {
        assert!(matches!(Sums::whole(clip / step, true), Sums::Narrow(_)));
        check_single(&[x, -x], clip, step);
    }
}

#[test]
fn large_sums_are_exact() {
    // Doubles are exact for few of these rows, or for none.
    for (ratio, sums) in [(power(43), Sums::Whole(512)), (power(45), Sums::Integers)] {
        assert_eq!(Sums::whole(ratio, false), sums);
        let row = vec![3.0; 5_000];
        let gradients = Gradients::new(5_000, vec![(1, Part::Double(&row))]).unwrap();
        let step = 3.5 / ratio;
        #[expect(clippy::cast_possible_truncation, reason = "a whole number")]
        let one = (3.0 * (1.0 / step)) as i64;
        assert_eq!(gradients.clip_to_grid(3.5, step).unwrap(), [5_000 * one]);
    }
}

#[test]
fn all_instructions_give_the_same_bits() {
    let (single, wide) = random(11, 300, 6);
    let mut scales: Vec<Scale> =
        (0..11_u8).map(|row| Scale { powers: None, factor: 1e5 / f64::from(row + 3) }).collect();
    scales[5].powers = Some([power(4), power(5)]);
    let bits = |sums: &[f64]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
    for width in [1, 15, 16, 17, 297] {
        let single = Strip { values: &single[3..], stride: 300, width };
        let wide = Strip { values: &wide[3..], stride: 300, width };
        let results = Instructions::all().into_iter().map(|instructions| {
            let mut squares = [vec![0.0; 11], vec![0.0; 11]];
            instructions.squares(single, &mut squares[0]);
            instructions.squares(wide, &mut squares[1]);
            let mut sums = [vec![0.5; width], vec![0.5; width], vec![0.0; width], vec![0.0; width]];
            instructions.add(single, &scales, &mut sums[0]);
            instructions.add(wide, &scales, &mut sums[1]);
            instructions.add_whole(single, &scales, &mut sums[2]);
            instructions.add_whole(wide, &scales, &mut sums[3]);
            let mut narrow = vec![1; width];
            instructions.add_narrow(single, &scales, &mut narrow);
            (squares.map(|all| bits(&all)), sums.map(|all| bits(&all)), narrow)
        });
        let results: Vec<_> = results.collect();
        assert!(results.iter().all(|result| *result == results[0]), "{width}");
    }
}

#[test]
fn the_first_example_that_is_not_finite_is_named() {
    for (examples, parameters) in [(5, 3), (40_000, 17), (13, 70_001)] {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for rows in [&[0][..], &[4, 3], &[examples - 1, examples / 2 + 1]] {
                let (mut single, mut wide) = random(examples, parameters, 7);
                for &row in rows {
                    #[expect(clippy::cast_possible_truncation, reason = "not finite either way")]
                    let narrow = bad as f32;
                    single[row * parameters] = narrow;
                    wide[row * parameters + parameters - 1] = bad;
                }
                let first = *rows.iter().min().unwrap();
                let (_, small) = random(examples, 1, 8);
                for gradients in [split(&single, &small, examples), split(&[], &wide, examples)] {
                    for error in [
                        gradients.clip_and_sum(1.0).unwrap_err(),
                        gradients.clip_to_grid(1.0, 1e-6).unwrap_err(),
                    ] {
                        let Error::NotFinite { example, .. } = error else {
                            panic!("{error}");
                        };
                        assert_eq!(example, first);
                    }
                }
            }
        }
    }
}

#[test]
fn bad_arguments_are_refused() {
    let row = [1.0, 2.0];
    let gradients = Gradients::new(2, vec![(1, Part::Double(&row))]).unwrap();
    for clip in [0.0, -1.0, f64::NAN] {
        assert!(gradients.clip_and_sum(clip).is_err());
    }
    for (clip, step) in [
        (0.0, 1.0),
        (f64::NAN, 1.0),
        (f64::INFINITY, 1.0),
        (1.0, 0.0),
        (1.0, -1.0),
        (1.0, f64::INFINITY),
        (1.0, f64::NAN),
        (1.0, power(-61)),
        (1.0, 5e-324),
    ] {
        assert!(gradients.clip_to_grid(clip, step).is_err(), "{clip}, {step}");
    }
    assert!(gradients.clip_to_grid(1.0, power(-60)).is_ok());
    assert!(Gradients::new(3, vec![(1, Part::Double(&row))]).is_err());
    assert!(Gradients::new(usize::MAX, vec![(2, Part::Double(&row))]).is_err());
}

#[test]
fn huge_and_tiny_rows_keep_their_direction() {
    let row = [3e300, -4e300, 0.0, 3e-300, 4e-300, 0.0, 0.0, 0.0, 0.0];
    let gradients = Gradients::new(3, vec![(3, Part::Double(&row))]).unwrap();
    let sums = gradients.clip_and_sum(1.0).unwrap();
    assert!((sums[0] - 0.6).abs() < 1e-12 && (sums[1] + 0.8).abs() < 1e-12, "{sums:?}");
    let sums = gradients.clip_and_sum(f64::INFINITY).unwrap();
    assert_eq!(sums, [3e300, -4e300, 0.0]);
    let sums = gradients.clip_and_sum(1e-300).unwrap();
    let expected = [1.2e-300, 0.0, 0.0];
    for (sum, expected) in sums.iter().zip(expected) {
        assert!((sum - expected).abs() < 1e-312, "{sums:?}");
    }
}

#[test]
fn no_row_is_longer_than_a_clip_that_is_tiny_beside_it() {
    let clip = power(-1000);
    for exponent in 40..=440 {
        let row = [0.75 * power(exponent), 0.5 * power(exponent - 1)];
        let gradients = Gradients::new(1, vec![(2, Part::Double(&row))]).unwrap();
        let sums = gradients.clip_and_sum(clip).unwrap();
        let norm = (sums[0] / clip).hypot(sums[1] / clip);
        assert!(norm <= 1.0 && norm > 1.0 - 1e-12, "{exponent}: {norm}");
    }
    let gradients = Gradients::new(1, vec![(1, Part::Double(&[1.0]))]).unwrap();
    assert!(gradients.clip_and_sum(power(-1000) / 2.0).is_err());
}
