//! Criterion benches of the oracles: making reports, counting them, and simulated tallies.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use turnout_core::Error;
use turnout_core::frequency::{
    CountMeanSketch, FrequencyOracle, HadamardCountMeanSketch, HadamardResponse, LocalHashing,
    PooledLocalHashing, ProjectiveGeometryResponse, Selection, SubsetSelection, SummationHistogram,
    UnaryEncoding,
};
use turnout_core::parameters::{DomainSize, Epsilon, Probability};
use turnout_core::random::{AesStreams, Purpose, Streams, uniform_below};

const SIZE: u64 = 100;

fn answers(nodes: usize, size: u64) -> Vec<i64> {
    let mut stream = AesStreams::from_seed(1).stream(Purpose::Simulation, 0);
    (0..nodes).map(|_| uniform_below(size, &mut stream).cast_signed()).collect()
}

/// `randomize` and `tally` of as many reports as take about 20 ms.
fn reports<O: FrequencyOracle>(
    criterion: &mut Criterion,
    name: &str,
    oracle: &O,
    nodes: usize,
) -> Result<(), Error> {
    let answers = answers(nodes, oracle.domain().get());
    let streams = AesStreams::from_operating_system()?;
    let everyone = Selection::everyone();
    let reports = oracle.randomize(&answers, &everyone, &streams)?.codes;
    for (action, tallies) in [("randomize", false), ("tally", true)] {
        let mut group = criterion.benchmark_group(action);
        group.throughput(Throughput::Elements(nodes as u64));
        let parameter = format!("{} codes", oracle.domain().get());
        group.bench_function(BenchmarkId::new(name, parameter), |bencher| {
            if tallies {
                bencher.iter(|| oracle.tally(&reports, None));
            } else {
                bencher.iter(|| oracle.randomize(&answers, &everyone, &streams));
            }
        });
        group.finish();
    }
    Ok(())
}

fn every_oracle(criterion: &mut Criterion) -> Result<(), Error> {
    let (epsilon, domain) = (Epsilon::new(1.0)?, DomainSize::new(SIZE)?);
    let million = 1 << 20;
    let hadamard = HadamardResponse::<u8>::new(epsilon, domain)?;
    reports(criterion, "hadamard_response", &hadamard, 4 * million)?;
    let projective = ProjectiveGeometryResponse::<u8>::new(epsilon, domain, None)?;
    reports(criterion, "projective_geometry", &projective, million)?;
    let symmetric = UnaryEncoding::symmetric(epsilon, domain)?;
    reports(criterion, "symmetric_unary", &symmetric, million)?;
    let optimized = UnaryEncoding::optimized(epsilon, domain)?;
    reports(criterion, "optimized_unary", &optimized, million)?;
    let threshold = UnaryEncoding::threshold_histogram(epsilon, domain)?;
    reports(criterion, "threshold_histogram", &threshold, million)?;
    reports(criterion, "subset_selection", &SubsetSelection::new(epsilon, domain, None)?, million)?;
    reports(criterion, "summation", &SummationHistogram::new(epsilon, domain)?, 10_000)?;
    reports(criterion, "binary_hashing", &LocalHashing::binary(epsilon, domain)?, million)?;
    reports(criterion, "optimal_hashing", &LocalHashing::optimized(epsilon, domain)?, million)?;
    let thousand = LocalHashing::optimized(epsilon, DomainSize::new(1000)?)?;
    reports(criterion, "optimal_hashing", &thousand, 100_000)?;
    let pooled = PooledLocalHashing::optimized(epsilon, domain, 1000, 0)?;
    reports(criterion, "pooled_hashing", &pooled, million)?;
    let sketch = CountMeanSketch::new(epsilon, domain, CountMeanSketch::HASHES, 256, 0)?;
    reports(criterion, "count_mean_sketch", &sketch, 100_000)?;
    let (hashes, width) = (HadamardCountMeanSketch::HASHES, HadamardCountMeanSketch::WIDTH);
    let sketch = HadamardCountMeanSketch::new(epsilon, domain, hashes, width, 0)?;
    reports(criterion, "hadamard_count_mean_sketch", &sketch, million)
}

/// What a tally does after the reports are counted, where that is the larger part of it.
fn large_domains(criterion: &mut Criterion) -> Result<(), Error> {
    fn few<O: FrequencyOracle>(
        criterion: &mut Criterion,
        name: &str,
        oracle: &O,
    ) -> Result<(), Error> {
        let answers = answers(1000, oracle.domain().get());
        let streams = AesStreams::from_operating_system()?;
        let reports = oracle.randomize(&answers, &Selection::everyone(), &streams)?.codes;
        let mut group = criterion.benchmark_group("support of 10^6 codes");
        group.sample_size(10);
        group.bench_function(name, |bencher| bencher.iter(|| oracle.tally(&reports, None)));
        group.finish();
        Ok(())
    }
    let (epsilon, domain) = (Epsilon::new(1.0)?, DomainSize::new(1_000_000)?);
    let hadamard = HadamardResponse::<u32>::new(epsilon, domain)?;
    few(criterion, "hadamard_response", &hadamard)?;
    let projective = ProjectiveGeometryResponse::<u32>::new(epsilon, domain, None)?;
    few(criterion, "projective_geometry", &projective)?;
    let pooled = PooledLocalHashing::optimized(epsilon, domain, 1000, 0)?;
    few(criterion, "pooled_hashing", &pooled)?;
    let hashes = CountMeanSketch::HASHES;
    let sketch = CountMeanSketch::new(epsilon, domain, hashes, 256, 0)?;
    few(criterion, "count_mean_sketch", &sketch)?;
    let (hashes, width) = (HadamardCountMeanSketch::HASHES, HadamardCountMeanSketch::WIDTH);
    let sketch = HadamardCountMeanSketch::new(epsilon, domain, hashes, width, 0)?;
    few(criterion, "hadamard_count_mean_sketch", &sketch)
}

/// Tallies of 10^12 nodes, drawn at once.
fn simulations(criterion: &mut Criterion) -> Result<(), Error> {
    let (epsilon, domain) = (Epsilon::new(1.0)?, DomainSize::new(SIZE)?);
    let streams = AesStreams::from_operating_system()?;
    let counts = vec![10_000_000_000_u64; domain.len()];
    let rate = Probability::new(0.1)?;
    let mut group = criterion.benchmark_group("simulate 10^12 nodes");
    macro_rules! simulate {
        ($($name:literal: $oracle:expr),* $(,)?) => {$(
            let oracle = $oracle;
            group.bench_function($name, |bencher| {
                bencher.iter(|| oracle.simulate(black_box(&counts), rate, &streams));
            });
        )*};
    }
    simulate! {
        "hadamard_response": HadamardResponse::<u8>::new(epsilon, domain)?,
        "projective_geometry": ProjectiveGeometryResponse::<u8>::new(epsilon, domain, None)?,
        "optimized_unary": UnaryEncoding::optimized(epsilon, domain)?,
        "subset_selection": SubsetSelection::new(epsilon, domain, None)?,
        "summation": SummationHistogram::new(epsilon, domain)?,
        "optimal_hashing": LocalHashing::optimized(epsilon, domain)?,
        "pooled_hashing": PooledLocalHashing::optimized(epsilon, domain, 1000, 0)?,
        "count_mean_sketch": CountMeanSketch::new(epsilon, domain, 1000, 256, 0)?,
        "hadamard_count_mean_sketch": HadamardCountMeanSketch::new(epsilon, domain, 1000, 128, 0)?,
    }
    group.finish();
    Ok(())
}

fn all(criterion: &mut Criterion) {
    for result in [every_oracle(criterion), large_domains(criterion), simulations(criterion)] {
        if let Err(error) = result {
            eprintln!("{error}");
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
