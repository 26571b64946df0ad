//! Criterion benches of secret sharing, beside the `prio` crate (libprio-rs).
//!
//! One user's step is measured from the secret to the shares, its key from the operating system
//! included: ours to the bytes that leave the device, Prio3's before they are encoded. The two are not the same job: Prio3 shares carry a proof that the
//! secret is a valid one-hot (or few-hot) vector, checked by the aggregators, in a field of 128 bits;
//! ours carry none unless the label says so, and a user that cheats is not found out. The throughput is in bytes
//! that leave the device: `benches/core_results.py` reads them from criterion's files.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use prio::codec::Encode;
use prio::vdaf::Client;
use prio::vdaf::prio3::{Prio3, Prio3Histogram, Prio3MultihotCountVec};
use turnout_core::Error;
use turnout_core::parameters::DomainSize;
use turnout_core::random::{AesStreams, Purpose, Streams};
use turnout_core::sharing::{OneHotSharing, PrimeField, ShareSum};
use turnout_core::verified::{self, Measure};

const SIZES: [usize; 3] = [30, 1000, 100_000];

/// The bytes of one user for two aggregators: a seed and packed elements.
fn user(field: PrimeField, secret: &[u32]) -> Result<([u8; 32], Vec<u8>), Error> {
    let mut stream = AesStreams::from_operating_system()?.stream(Purpose::Share, 1);
    let shares = field.share_compressed(secret, 2, &mut stream)?;
    Ok((shares.seeds[0], field.pack(&shares.explicit)?))
}

fn one_user(criterion: &mut Criterion) -> Result<(), Error> {
    let field = PrimeField::larger_than(1000)?;
    let mut group = criterion.benchmark_group("one user, 2 aggregators");
    for size in SIZES {
        let mut secret = vec![0_u32; size];
        secret[size / 2] = 1;
        let bytes = user(field, &secret)?.1.len() + 32;
        println!("turnout, no proof of validity, N = {size}: {bytes} bytes a user");
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::new("turnout, no proof", size), |bencher| {
            bencher.iter(|| user(field, black_box(&secret)));
        });
    }
    for size in SIZES {
        if let Err(error) = with_proof(&mut group, size) {
            eprintln!("{error}");
        }
    }
    for size in SIZES {
        // About the square root, as the crate advises.
        let chunk = size.isqrt();
        match Prio3::new_histogram(2, size, chunk) {
            Ok(histogram) => prio_histogram(&mut group, &histogram, size),
            Err(error) => eprintln!("{error}"),
        }
        match Prio3::new_multihot_count_vec(2, size, 1, chunk) {
            Ok(multihot) => prio_multihot(&mut group, &multihot, size),
            Err(error) => eprintln!("{error}"),
        }
    }
    group.finish();
    Ok(())
}

/// A vote with its proof, to the bytes that leave the device.
fn with_proof(group: &mut Group<'_>, size: usize) -> verified::Result<()> {
    let votes = votes(size)?;
    let mut secret = vec![0; size];
    secret[size / 2] = 1;
    let shard = || votes.shard(b"bench", black_box(&secret), &[0; 16]);
    let report = shard()?;
    let bytes = report.public_share.len() + report.input_shares.iter().map(Vec::len).sum::<usize>();
    println!("turnout, with proof of validity, N = {size}: {bytes} bytes a user");
    group.throughput(Throughput::Bytes(bytes as u64));
    let label = BenchmarkId::new("turnout, with proof", size);
    group.sample_size(10).bench_function(label, |bencher| bencher.iter(shard));
    Ok(())
}

/// One vote or none of so many items, for two aggregators.
fn votes(size: usize) -> verified::Result<verified::Prio3> {
    let length = u32::try_from(size).unwrap_or(u32::MAX);
    verified::Prio3::new(Measure::MultihotCountVec { length, max_weight: 1, chunk_length: None }, 2)
}

type Group<'a> = criterion::BenchmarkGroup<'a, criterion::measurement::WallTime>;

/// The bytes that leave the device.
fn encoded<C: Client<16>>(shares: &(C::PublicShare, Vec<C::InputShare>)) -> Option<usize> {
    let shared = shares.0.encoded_len()?;
    shares.1.iter().try_fold(shared, |total, share| Some(total + share.encoded_len()?))
}

fn prio_histogram(group: &mut Group<'_>, vdaf: &Prio3Histogram, size: usize) {
    let shard = || vdaf.shard(b"bench", black_box(&(size / 2)), &[0; 16]);
    if let Some(bytes) = shard().ok().and_then(|shares| encoded::<Prio3Histogram>(&shares)) {
        println!("Prio3Histogram, with proof of validity, N = {size}: {bytes} bytes a user");
        group.throughput(Throughput::Bytes(bytes as u64));
    }
    let label = BenchmarkId::new("Prio3Histogram, with proof", size);
    group.sample_size(10).bench_function(label, |bencher| bencher.iter(shard));
}

fn prio_multihot(group: &mut Group<'_>, vdaf: &Prio3MultihotCountVec, size: usize) {
    let mut secret = vec![false; size];
    secret[size / 2] = true;
    let shard = || vdaf.shard(b"bench", black_box(&secret), &[0; 16]);
    if let Some(bytes) = shard().ok().and_then(|shares| encoded::<Prio3MultihotCountVec>(&shares)) {
        println!("Prio3MultihotCountVec, with proof of validity, N = {size}: {bytes} bytes a user");
        group.throughput(Throughput::Bytes(bytes as u64));
    }
    let label = BenchmarkId::new("Prio3MultihotCountVec, with proof", size);
    group.sample_size(10).bench_function(label, |bencher| bencher.iter(shard));
}

fn rounds(criterion: &mut Criterion) -> Result<(), Error> {
    let streams = AesStreams::from_operating_system()?;
    let mut group = criterion.benchmark_group("round in memory");
    group.sample_size(10);
    // Users as parties, then aggregators.
    for (users, parties, size) in [(1000_u32, 1000, 30), (20_000, 3, 1000)] {
        let field = PrimeField::larger_than(users.into())?;
        let codes: Vec<u32> = (0..users).map(|user| user % 30).collect();
        let round = OneHotSharing::new(field, DomainSize::new(size)?, parties, 0.5)?;
        let draws = u64::from(users) * (parties as u64 - 1) * size;
        group.throughput(Throughput::Elements(draws));
        let name = format!("{users} users, {parties} parties, N = {size}");
        group.bench_function(BenchmarkId::new("elements", &name), |bencher| {
            bencher.iter(|| round.run::<u32, _, _>(&codes, &streams));
        });
        let round = round.compressed();
        group.bench_function(BenchmarkId::new("seeds", &name), |bencher| {
            bencher.iter(|| round.run::<u32, _, _>(&codes, &streams));
        });
    }
    group.finish();
    Ok(())
}

fn vectors(criterion: &mut Criterion) -> Result<(), Error> {
    let mut stream = AesStreams::from_operating_system()?.stream(Purpose::Share, 0);
    let (length, rows) = (1000, 64);
    let mut group = criterion.benchmark_group("64 vectors of 1000 elements");
    group.throughput(Throughput::Elements(length as u64 * rows));
    for modulus in [1009, 1_000_003, 4_294_967_291] {
        let field = PrimeField::new(modulus)?;
        let mut values = vec![0_u32; length];
        field.uniform(&mut stream, &mut values)?;
        let mut sum = ShareSum::<u32>::new(field, length)?;
        group.bench_function(BenchmarkId::new("sum", modulus), |bencher| {
            bencher.iter(|| (0..rows).try_for_each(|_| sum.add(black_box(&values))));
        });
        let data = field.pack(&values)?;
        group.bench_function(BenchmarkId::new("sum packed", modulus), |bencher| {
            bencher.iter(|| (0..rows).try_for_each(|_| sum.add_packed(black_box(&data))));
        });
        group.bench_function(BenchmarkId::new("sum seeds", modulus), |bencher| {
            bencher.iter(|| (0..rows).for_each(|_| sum.add_seed(black_box(&[7; 32]))));
        });
        group.bench_function(BenchmarkId::new("uniform", modulus), |bencher| {
            bencher.iter(|| {
                (0..rows).try_for_each(|_| field.uniform(&mut stream, black_box(&mut values)))
            });
        });
        group.bench_function(BenchmarkId::new("pack", modulus), |bencher| {
            bencher.iter(|| {
                (0..rows).try_for_each(|_| {
                    field.pack(black_box(&values)).map(|data| drop(black_box(data)))
                })
            });
        });
    }
    group.finish();
    Ok(())
}

fn all(criterion: &mut Criterion) {
    for result in [vectors(criterion), one_user(criterion), rounds(criterion)] {
        if let Err(error) = result {
            eprintln!("{error}");
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
