//! Criterion benches of the core: direct encoding and what it stands on.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use turnout_core::Error;
use turnout_core::frequency::{DirectEncoding, Selection};
use turnout_core::parameters::{DomainSize, Epsilon, Probability};
use turnout_core::random::{AesStreams, Purpose, Skips, Streams, Words, binomial, uniform_below};

const NODES: usize = 4_000_000;
const SIZE: u64 = 100;

fn answers() -> Vec<i64> {
    let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
    (0..NODES).map(|_| uniform_below(SIZE, &mut stream).cast_signed()).collect()
}

fn direct_encoding(criterion: &mut Criterion) -> Result<(), Error> {
    let oracle = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(SIZE)?)?;
    let streams = AesStreams::from_operating_system()?;
    let answers = answers();
    let everyone = Selection::everyone();
    let reports = oracle.randomize::<_, u8, _>(&answers, &everyone, &streams)?.codes;

    let mut group = criterion.benchmark_group("direct_encoding");
    group.throughput(Throughput::Elements(NODES as u64));
    group.bench_function("randomize", |bencher| {
        bencher.iter(|| oracle.randomize::<_, u8, _>(&answers, &everyone, &streams));
    });
    group.bench_function("tally", |bencher| bencher.iter(|| oracle.tally(&reports, None)));
    for rate in [0.001, 0.01, 0.1, 0.5, 1.0] {
        let selection = Selection::bernoulli(Probability::new(rate)?);
        group.bench_function(BenchmarkId::new("collect", rate), |bencher| {
            bencher.iter(|| oracle.collect(&answers, &selection, &streams));
        });
    }
    group.finish();

    let wide = DirectEncoding::new(Epsilon::new(1.0)?, DomainSize::new(1000)?)?;
    let counts = vec![1_000_000_000_u64; 1000];
    let rate = Probability::new(0.1)?;
    criterion.bench_function("simulate/1e12 nodes, 1000 codes", |bencher| {
        bencher.iter(|| wide.simulate(black_box(&counts), rate, &streams));
    });
    criterion.bench_function("new", |bencher| {
        bencher.iter(|| DirectEncoding::new(black_box(Epsilon::new(1.0)?), DomainSize::new(SIZE)?));
    });
    Ok(())
}

fn random(criterion: &mut Criterion) -> Result<(), Error> {
    let streams = AesStreams::from_operating_system()?;
    let mut stream = streams.stream(Purpose::Report, 0);
    let mut words = vec![0; 65_536];
    let mut group = criterion.benchmark_group("words");
    group.throughput(Throughput::Elements(words.len() as u64));
    group.bench_function("fill", |bencher| bencher.iter(|| stream.fill_words(&mut words)));
    group.finish();

    let mut group = criterion.benchmark_group("skips");
    let mut selected = Vec::new();
    for rate in [0.5, 0.1, 0.01, 0.0001] {
        let skips = Skips::new(Probability::new(rate)?);
        group.bench_function(BenchmarkId::new("65536 nodes", rate), |bencher| {
            bencher.iter(|| skips.select(65_536, &mut stream, &mut selected));
        });
    }
    group.finish();
    criterion.bench_function("binomial/1e9 trials", |bencher| {
        bencher.iter(|| binomial(black_box(1_000_000_000), 0.1, &mut stream));
    });
    Ok(())
}

fn all(criterion: &mut Criterion) {
    for result in [direct_encoding(criterion), random(criterion)] {
        if let Err(error) = result {
            eprintln!("{error}");
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
