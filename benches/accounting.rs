//! Criterion benches of the core: what privacy accounting costs.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use turnout_core::Error;
use turnout_core::accounting::{
    CountSampling, IntegerNoise, RandomParticipation, Shuffle, ShuffleLaw, evaluate,
};

const EPSILON: f64 = 0.015;
/// Values on each side of the grid.
const SIDE: u32 = 100;

fn participation(criterion: &mut Criterion) -> Result<(), Error> {
    let mut group = criterion.benchmark_group("random_participation");
    for (sample_rate, local_size, noise) in
        [(0.1, 30, 2.49), (0.1, 100_000, 7.66), (0.001, 100_000, 7.66)]
    {
        let round = RandomParticipation::new(0.001, sample_rate, local_size, noise)?;
        let name = BenchmarkId::new("delta", format!("d = {local_size}, q = {sample_rate}"));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let epsilon = black_box(EPSILON);
                round.remove(epsilon).delta.max(round.add(epsilon).delta)
            });
        });
    }

    let spread = |first: f64, last: f64, index: u32| {
        first * (last / first).powf(f64::from(index) / f64::from(SIDE - 1))
    };
    let points = (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column)));
    let (epsilons, noises): (Vec<f64>, Vec<f64>) =
        points.map(|(row, column)| (spread(0.005, 0.5, row), spread(1.0, 10.0, column))).unzip();
    group.throughput(Throughput::Elements(epsilons.len() as u64));
    for local_size in [30, 100_000] {
        group.bench_function(BenchmarkId::new("grid", format!("d = {local_size}")), |bencher| {
            bencher.iter(|| {
                evaluate(
                    &epsilons,
                    |index| RandomParticipation::new(0.001, 0.1, local_size, noises[index]),
                    |round, epsilon| [round.remove(epsilon), round.add(epsilon)],
                )
            });
        });
    }
    group.finish();
    Ok(())
}

fn counts(criterion: &mut Criterion) -> Result<(), Error> {
    let mut group = criterion.benchmark_group("count_sampling");
    for floor in [1_000, 10_000_000] {
        group.bench_function(BenchmarkId::new("table", floor), |bencher| {
            bencher.iter(|| CountSampling::new(black_box(0.5), floor));
        });
        let sampling = CountSampling::new(0.5, floor)?;
        // A few standard deviations of the privacy loss.
        let epsilon = 6.0 / (floor as f64).sqrt();
        group.bench_function(BenchmarkId::new("replace", floor), |bencher| {
            bencher.iter(|| sampling.replace(black_box(epsilon)));
        });
    }
    group.finish();
    Ok(())
}

fn shuffle(criterion: &mut Criterion) -> Result<(), Error> {
    // Direct encoding at a local epsilon of 1 over 100 answers.
    let (ratio, size) = (1.0_f64.exp(), 100.0);
    let total = ratio + size - 1.0;
    let (own, other) = (ratio / total, 1.0 / total);
    let mut group = criterion.benchmark_group("shuffle");
    for (nodes, epsilon) in [(1_000_000, 0.02), (1_000_000_000, 0.0006)] {
        let law = ShuffleLaw {
            own,
            other,
            gap: (ratio - 1.0) / total,
            neither: 8.0 * other,
            common: other,
            blanket: 10.0 * other,
        };
        let shuffle = Shuffle::new(nodes, law)?;
        group.bench_function(BenchmarkId::new("replace", nodes), |bencher| {
            bencher.iter(|| shuffle.replace(black_box(epsilon)));
        });
    }
    group.finish();
    Ok(())
}

fn integer_noise(criterion: &mut Criterion) -> Result<(), Error> {
    let mut group = criterion.benchmark_group("discrete_gaussian");
    for sigma in [5.28, 1000.0] {
        group.bench_function(BenchmarkId::new("table", sigma), |bencher| {
            bencher.iter(|| IntegerNoise::discrete_gaussian(black_box(sigma)));
        });
        let noise = IntegerNoise::discrete_gaussian(sigma)?;
        let epsilon = 5.28 / sigma;
        group.bench_function(BenchmarkId::new("replace", sigma), |bencher| {
            bencher.iter(|| noise.replace(black_box(epsilon)));
        });
    }
    group.finish();
    Ok(())
}

fn all(criterion: &mut Criterion) {
    for bench in [participation, counts, shuffle, integer_noise] {
        if let Err(error) = bench(criterion) {
            eprintln!("{error}");
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
