//! Criterion benches of the networks that boosted samplers evaluate.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use turnout_core::Error;
use turnout_core::random::{AesStreams, Purpose, Streams, uniform_below};
use turnout_core::samplers::{Activation, DenseNetwork, NetworkSum};

const ROUNDS: usize = 10;
const HIDDEN: usize = 25;

fn numbers(length: usize) -> Vec<f64> {
    let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
    (0..length).map(|_| uniform_below(2001, &mut stream) as f64 / 1000.0 - 1.0).collect()
}

fn networks(criterion: &mut Criterion) -> Result<(), Error> {
    let activations = [Activation::Tanh, Activation::Logistic, Activation::Relu];
    let mut group = criterion.benchmark_group("10 networks 25-25-25");
    for inputs in [1, 2] {
        let sizes = [inputs, HIDDEN, HIDDEN, HIDDEN, 1];
        let parameters = numbers(sizes.windows(2).map(|pair| (pair[0] + 1) * pair[1]).sum());
        for activation in activations {
            let (shift, scale) = (vec![0.0; inputs], vec![1.0; inputs]);
            let network = DenseNetwork::new(activation, &shift, &scale, &sizes, &parameters)?;
            let sum = NetworkSum::new(vec![network; ROUNDS], vec![0.5; ROUNDS], 0.7)?;
            for number in [200, 1_000_000] {
                let points = numbers(number * inputs);
                group.throughput(Throughput::Elements(number as u64)).sample_size(10);
                let name = format!("{activation:?}, d = {inputs}");
                group.bench_function(BenchmarkId::new(name, number), |bencher| {
                    bencher.iter(|| sum.scores(black_box(&points)));
                });
            }
        }
    }
    group.finish();
    Ok(())
}

fn all(criterion: &mut Criterion) {
    if let Err(error) = networks(criterion) {
        eprintln!("{error}");
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
