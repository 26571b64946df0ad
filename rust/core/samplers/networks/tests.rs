use super::*;
use crate::random::{AesStreams, Purpose, Streams, Words};
use rand::Rng;

/// A number in (-1, 1).
fn number(stream: &mut impl Rng) -> f64 {
    (stream.next_u64() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

fn numbers(stream: &mut impl Words, length: usize, size: f64) -> Vec<f64> {
    (0..length).map(|_| size * number(stream)).collect()
}

fn network(
    stream: &mut impl Words,
    activation: Activation,
    sizes: &[usize],
) -> Result<DenseNetwork> {
    let (inputs, needed) = needed(sizes)?;
    let shift = numbers(stream, inputs, 3.0);
    let scale: Vec<f64> = numbers(stream, inputs, 0.9).iter().map(|s| 1.0 + s).collect();
    DenseNetwork::new(activation, &shift, &scale, sizes, &numbers(stream, needed, 1.0))
}

/// One point at a time, from the parameters as they are given, with the library's functions.
fn plain(activation: Activation, sizes: &[usize], parameters: &[f64], point: &[f64]) -> f64 {
    let mut values = point.to_vec();
    let mut rest = parameters;
    for (index, pair) in sizes.windows(2).enumerate() {
        let (weights, later) = rest.split_at(pair[0] * pair[1]);
        let (biases, later) = later.split_at(pair[1]);
        rest = later;
        values = (0..pair[1])
            .map(|unit| {
                let products =
                    values.iter().enumerate().map(|(i, v)| v * weights[i * pair[1] + unit]);
                let sum = products.sum::<f64>() + biases[unit];
                match activation {
                    _ if index + 2 == sizes.len() => sum,
                    Activation::Identity => sum,
                    Activation::Tanh => sum.tanh(),
                    Activation::Logistic => 1.0 / (1.0 + (-sum).exp()),
                    Activation::Relu => sum.max(0.0),
                }
            })
            .collect();
    }
    values[0]
}

#[test]
fn tanh_is_that_of_the_library() {
    let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
    for lanes in Lanes::all() {
        for size in [1e-300, 1e-8, 1e-3, 0.1, 1.0, 5.0, 25.0, 1e4, 1e300] {
            for _ in 0..2000 {
                let values = core::array::from_fn(|_| size * number(&mut stream));
                for (found, value) in lanes.tanh(&values).into_iter().zip(values) {
                    let expected = libm::tanh(value);
                    assert!(
                        (found - expected).abs() <= 1e-14 * expected.abs(),
                        "{lanes:?}: tanh({value:e}) = {found:e}, expected {expected:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn tanh_of_the_extremes() {
    let mut values = [0.0; kernel::TILE];
    let extremes = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 20.0, -20.0];
    values[..8].copy_from_slice(&extremes);
    values[8] = f64::NAN;
    values[9] = -f64::NAN;
    for lanes in Lanes::all() {
        let found = lanes.tanh(&values);
        assert_eq!(found[..8], [0.0, 0.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0], "{lanes:?}");
        assert!(found[8].is_nan() && found[9].is_nan(), "{lanes:?}");
    }
}

#[test]
fn networks_are_those_of_one_point_at_a_time() -> Result<()> {
    let mut stream = AesStreams::from_seed(2).stream(Purpose::Simulation, 0);
    let activations =
        [Activation::Identity, Activation::Tanh, Activation::Logistic, Activation::Relu];
    for sizes in [&[1, 1][..], &[2, 25, 25, 25, 1], &[3, 4, 8, 1], &[5, 3, 1], &[1, 70, 2, 9, 1]] {
        for activation in activations {
            let (inputs, needed) = needed(sizes)?;
            let parameters = numbers(&mut stream, needed, 0.7);
            let shift = numbers(&mut stream, inputs, 3.0);
            let scale: Vec<f64> = shift.iter().map(|s| 4.0 + s).collect();
            let network = DenseNetwork::new(activation, &shift, &scale, sizes, &parameters)?;
            for number in [0, 1, 63, 64, 65, 300, 1000] {
                let points = numbers(&mut stream, number * inputs, 5.0);
                let expected: Vec<f64> = points
                    .chunks(inputs)
                    .map(|point| {
                        let standard: Vec<f64> =
                            (0..inputs).map(|i| (point[i] - shift[i]) / scale[i]).collect();
                        plain(activation, sizes, &parameters, &standard)
                    })
                    .collect();
                let found = network.logits(&points)?;
                assert_eq!(found.len(), number);
                for (found, expected) in found.iter().zip(&expected) {
                    let close = (found - expected).abs() <= 1e-12 * (1.0 + expected.abs());
                    assert!(close, "{sizes:?} {activation:?}: {found} is not {expected}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn sums_are_clipped_whatever_the_instructions() -> Result<()> {
    let mut stream = AesStreams::from_seed(3).stream(Purpose::Simulation, 0);
    let sizes = [2, 25, 25, 1];
    let networks: Vec<_> =
        (0..5).map(|_| network(&mut stream, Activation::Tanh, &sizes)).collect::<Result<_>>()?;
    let weights = numbers(&mut stream, 5, 1.0);
    let points = numbers(&mut stream, 2 * 777, 4.0);
    let mut expected = vec![0.0; 777];
    for (network, weight) in networks.iter().zip(&weights) {
        for (sum, logit) in expected.iter_mut().zip(network.logits(&points)?) {
            *sum += weight * logit.clamp(-0.5, 0.5);
        }
    }
    let sum = NetworkSum::new(networks, weights.clone(), 0.5)?;
    let most = 0.5 * weights.iter().map(|w| w.abs()).sum::<f64>();
    for lanes in Lanes::all() {
        for (found, expected) in sum.scores_with(lanes, &points)?.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-12 && found.abs() <= most * (1.0 + 1e-15));
        }
    }
    Ok(())
}

#[test]
fn the_same_on_any_number_of_threads() -> Result<()> {
    let mut stream = AesStreams::from_seed(4).stream(Purpose::Simulation, 0);
    let networks = vec![network(&mut stream, Activation::Tanh, &[1, 25, 25, 25, 1])?];
    let sum = NetworkSum::new(networks, vec![1.0], 0.7)?;
    let points = numbers(&mut stream, 5000, 4.0);
    let expected = sum.scores(&points)?;
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        assert_eq!(
            pool.map(|pool| pool.install(|| sum.scores(&points))).ok(),
            Some(Ok(expected.clone()))
        );
    }
    // Nor does a point's score depend on the points around it.
    for start in [1, 30, 64, 100] {
        assert_eq!(sum.scores(&points[start..start + 70])?, expected[start..start + 70]);
    }
    Ok(())
}

#[test]
fn networks_that_lie_stay_within_the_clip() -> Result<()> {
    let points: Vec<f64> = (0..200).map(|i| f64::from(i) - 100.0).collect();
    for weight in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 0.0] {
        for activation in
            [Activation::Identity, Activation::Tanh, Activation::Logistic, Activation::Relu]
        {
            let network = DenseNetwork::new(activation, &[0.0], &[1.0], &[1, 9, 1], &[weight; 28])?;
            let sum = NetworkSum::new(vec![network.clone()], vec![2.0], 0.25)?;
            for (score, logit) in sum.scores(&points)?.into_iter().zip(network.logits(&points)?) {
                let expected = if logit.is_nan() { 0.0 } else { 2.0 * logit.clamp(-0.25, 0.25) };
                assert!((score - expected).abs() <= 1e-15);
            }
        }
    }
    let nan = DenseNetwork::new(Activation::Relu, &[0.0], &[1.0], &[1, 1], &[1.0, f64::NAN])?;
    assert!(nan.logits(&points)?.iter().all(|logit| logit.is_nan()));
    Ok(())
}

#[test]
fn what_cannot_be_a_network_is_refused() -> Result<()> {
    let new = |shift: &[f64], scale: &[f64], sizes: &[usize], parameters: &[f64]| {
        DenseNetwork::new(Activation::Tanh, shift, scale, sizes, parameters)
    };
    assert!(new(&[0.0], &[1.0], &[1, 1], &[1.0, 0.0]).is_ok());
    for (shift, scale, sizes, parameters) in [
        (0.0, 1.0, &[][..], &[][..]),
        (0.0, 1.0, &[1], &[]),
        (0.0, 1.0, &[1, 2], &[0.0; 4]),
        (0.0, 1.0, &[1, 0, 1], &[0.0]),
        (0.0, 1.0, &[0, 1], &[0.0]),
        (0.0, 1.0, &[2, 1], &[0.0; 3]),
        (0.0, 1.0, &[1, 1], &[0.0; 3]),
        (0.0, 1.0, &[1, usize::MAX, 1], &[0.0; 3]),
        (f64::NAN, 1.0, &[1, 1], &[0.0; 2]),
        (f64::INFINITY, 1.0, &[1, 1], &[0.0; 2]),
        (0.0, 0.0, &[1, 1], &[0.0; 2]),
        (0.0, -1.0, &[1, 1], &[0.0; 2]),
        (0.0, f64::NAN, &[1, 1], &[0.0; 2]),
    ] {
        assert!(new(&[shift], &[scale], sizes, parameters).is_err(), "{sizes:?} {shift} {scale}");
    }
    let one = new(&[0.0], &[1.0], &[1, 1], &[1.0, 0.0])?;
    let two = new(&[0.0; 2], &[1.0; 2], &[2, 1], &[1.0; 3])?;
    assert!(two.logits(&[1.0; 3]).is_err());
    assert!(NetworkSum::new(vec![], vec![], 1.0).is_err());
    assert!(NetworkSum::new(vec![one.clone()], vec![1.0, 2.0], 1.0).is_err());
    assert!(NetworkSum::new(vec![one.clone(), two], vec![1.0, 2.0], 1.0).is_err());
    for (weight, clip) in [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (1.0, 0.0), (1.0, f64::NAN)] {
        assert!(NetworkSum::new(vec![one.clone()], vec![weight], clip).is_err());
    }
    Ok(())
}
