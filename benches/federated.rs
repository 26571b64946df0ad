//! Criterion benches of federated training: who takes part, and exact noise on a grid.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use turnout_core::Error;
use turnout_core::federated::{BernoulliSelection, rounded_gaussian};
use turnout_core::random::AesStreams;

const DRAWS: usize = 1_000_000;

/// Participants of each selection.
const SELECTED: f64 = 1000.0;

fn noise(criterion: &mut Criterion) -> Result<(), Error> {
    let streams = AesStreams::from_operating_system()?;
    let mut group = criterion.benchmark_group("rounded_gaussian");
    group.throughput(Throughput::Elements(DRAWS as u64));
    for bits in [8, 24, 52] {
        group.bench_function(BenchmarkId::new("bits", bits), |bencher| {
            bencher.iter(|| rounded_gaussian(black_box(DRAWS), bits, &streams));
        });
    }
    group.finish();
    Ok(())
}

fn selection(criterion: &mut Criterion) -> Result<(), Error> {
    let streams = AesStreams::from_operating_system()?;
    let mut group = criterion.benchmark_group("a thousand selected");
    for rate in [0.5, 0.01, 1e-4, 1e-7] {
        let selection = BernoulliSelection::new(rate)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let size = (SELECTED / rate) as u64;
        group.bench_function(BenchmarkId::new("rate", rate), |bencher| {
            bencher.iter(|| selection.select(black_box(size), &streams));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("preparing a selection");
    for rate in [0.5, 0.01, 1e-4] {
        group.bench_function(BenchmarkId::new("rate", rate), |bencher| {
            bencher.iter(|| BernoulliSelection::new(black_box(rate)));
        });
    }
    group.finish();
    Ok(())
}

fn all(criterion: &mut Criterion) {
    for job in [noise, selection] {
        if let Err(error) = job(criterion) {
            eprintln!("{error}");
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
