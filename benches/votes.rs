//! Criterion benches of votes with proofs, beside the `prio` crate alone: 30 items, two aggregators.
//!
//! Ours begins and ends with bytes, as they leave a device and arrive at a server. Prio's own functions are
//! called one report after another, on as many threads, and never encode or decode. So ours does all that
//! prio does, and more. `benches/core_results.py` reads the best times from criterion's files.

use std::hint::black_box;
use std::thread;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use prio::vdaf::prio3::{Prio3, Prio3InputShare, Prio3MultihotCountVec, Prio3PublicShare};
use prio::vdaf::{Aggregatable, Aggregator, Client, VdafError, VerifyTransition};
use turnout_core::verified::{self, Entire, Measure};

const ITEMS: u32 = 30;
const KEY: [u8; 32] = [7; 32];
const CONTEXT: &[u8] = b"bench";

/// Of a call that shares, and of one that verifies.
const SHARED: usize = 10_000;
const VERIFIED: usize = 100_000;

type Field = prio::field::Field128;
type Shared = (Prio3PublicShare<32>, Vec<Prio3InputShare<Field, 32>>);

fn nonces(count: usize) -> Vec<[u8; 16]> {
    (0..count as u128).map(u128::to_le_bytes).collect()
}

/// Item after item.
fn codes(count: usize) -> Vec<i64> {
    (0..i64::from(ITEMS)).cycle().take(count).collect()
}

/// Calls a function with parts of a slice, each on a thread of its own.
fn spread<T: Sync>(all: &[T], work: impl Fn(&[T]) -> bool + Sync) -> bool {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let parts = all.chunks(all.len().div_ceil(threads));
        let started: Vec<_> = parts.map(|part| scope.spawn(|| work(part))).collect();
        started.into_iter().all(|each| each.join().unwrap_or(false))
    })
}

fn shared(vdaf: &Prio3MultihotCountVec, nonce: &[u8; 16], code: i64) -> Result<Shared, VdafError> {
    let vote: Vec<bool> = (0..i64::from(ITEMS)).map(|item| item == code).collect();
    vdaf.shard(CONTEXT, &vote, nonce)
}

fn sharing(
    criterion: &mut Criterion,
    ours: &verified::Prio3,
    theirs: &Prio3MultihotCountVec,
) -> verified::Result<()> {
    let mut group = criterion.benchmark_group("votes shared");
    group.sample_size(10).throughput(Throughput::Elements(1));
    let mut vote = vec![0; ITEMS as usize];
    vote[3] = 1;
    group.bench_function(BenchmarkId::new("turnout", "one"), |bencher| {
        bencher.iter(|| ours.shard(CONTEXT, black_box(&vote), &[0; 16]));
    });
    group.bench_function(BenchmarkId::new("prio", "one"), |bencher| {
        bencher.iter(|| shared(theirs, &[0; 16], black_box(3)));
    });
    group.throughput(Throughput::Elements(SHARED as u64));
    let (nonces, codes) = (nonces(SHARED), codes(SHARED));
    ours.shard_votes(CONTEXT, &codes, &nonces)?;
    group.bench_function(BenchmarkId::new("turnout", "many"), |bencher| {
        bencher.iter(|| ours.shard_votes(CONTEXT, black_box(&codes), &nonces));
    });
    let votes: Vec<_> = nonces.iter().zip(codes).collect();
    group.bench_function(BenchmarkId::new("prio", "many"), |bencher| {
        bencher.iter(|| {
            spread(black_box(&votes), |part| {
                let made: Result<Vec<_>, _> =
                    part.iter().map(|(nonce, code)| shared(theirs, nonce, *code)).collect();
                made.is_ok()
            })
        });
    });
    group.finish();
    Ok(())
}

fn verification(
    criterion: &mut Criterion,
    ours: &verified::Prio3,
    theirs: &Prio3MultihotCountVec,
) -> verified::Result<()> {
    let mut group = criterion.benchmark_group("votes verified");
    group.sample_size(10).throughput(Throughput::Elements(VERIFIED as u64));
    let (nonces, codes) = (nonces(VERIFIED), codes(VERIFIED));
    let reports = ours.shard_votes(CONTEXT, &codes, &nonces)?;
    let shares: Vec<Vec<&[u8]>> = reports
        .iter()
        .map(|report| report.input_shares.iter().map(Vec::as_slice).collect())
        .collect();
    let entire: Vec<Entire<'_>> = (0..VERIFIED)
        .map(|index| Entire {
            nonce: &nonces[index],
            public_share: &reports[index].public_share,
            input_shares: &shares[index],
        })
        .collect();
    group.bench_function(BenchmarkId::new("turnout", "many"), |bencher| {
        bencher.iter(|| ours.verify_together(&KEY, CONTEXT, black_box(&entire)));
    });
    drop(entire);
    drop(shares);
    drop(reports);
    let reports: Result<Vec<_>, VdafError> = nonces
        .iter()
        .zip(codes)
        .map(|(nonce, code)| Ok((nonce, shared(theirs, nonce, code)?)))
        .collect();
    match reports {
        Ok(reports) => {
            group.bench_function(BenchmarkId::new("prio", "many"), |bencher| {
                bencher.iter(|| {
                    spread(black_box(&reports), |part| verified_by_prio(theirs, part).is_ok())
                });
            });
        }
        Err(error) => eprintln!("{error}"),
    }
    group.finish();
    Ok(())
}

/// Verifies reports one after another, and adds up.
fn verified_by_prio(
    vdaf: &Prio3MultihotCountVec,
    reports: &[(&[u8; 16], Shared)],
) -> Result<[impl Aggregatable; 2], VdafError> {
    let mut sums = [vdaf.aggregate_init(&()), vdaf.aggregate_init(&())];
    for (nonce, (public, inputs)) in reports {
        let (mut states, mut shares) = (Vec::new(), Vec::new());
        for (aggregator, input) in inputs.iter().enumerate() {
            let (state, share) =
                vdaf.verify_init(&KEY, CONTEXT, aggregator, &(), nonce, public, input)?;
            states.push(state);
            shares.push(share);
        }
        let message = vdaf.verifier_shares_to_message(CONTEXT, &(), shares)?;
        for (sum, state) in sums.iter_mut().zip(states) {
            match vdaf.verify_next(CONTEXT, state, message.clone())? {
                VerifyTransition::Finish(share) => sum.accumulate(&share)?,
                VerifyTransition::Continue(..) => {
                    return Err(VdafError::Uncategorized("there is one round".into()));
                }
            }
        }
    }
    Ok(sums)
}

fn all(criterion: &mut Criterion) {
    let measure = Measure::MultihotCountVec { length: ITEMS, max_weight: 1, chunk_length: None };
    let ours = verified::Prio3::new(measure, 2);
    let Ok(ours) = ours.inspect_err(|error| eprintln!("{error}")) else { return };
    let Measure::MultihotCountVec { chunk_length: Some(chunk), .. } = ours.measure() else {
        return;
    };
    let theirs = Prio3::new_multihot_count_vec(2, ITEMS as usize, 1, chunk as usize);
    let Ok(theirs) = theirs.inspect_err(|error| eprintln!("{error}")) else { return };
    let length: usize = (0..2).map(|each| ours.input_share_length(each)).sum();
    println!("{} bytes a report", 2 * ours.public_share_length() + length);
    for result in [sharing(criterion, &ours, &theirs), verification(criterion, &ours, &theirs)] {
        if let Err(error) = result {
            eprintln!("{error}");
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
