//! What Prio3 reads that comes from elsewhere, on any bytes: shares, messages, states, sums.

#![expect(clippy::expect_used, reason = "a target panics where the core breaks its word")]

use turnout_core::random::AesStreams;
use turnout_core::verified::{Entire, Error, Incoming, Measure, Noise, Prio3};

use super::bodies::Target;

/// All targets by their names.
pub(crate) const TARGETS: [(&str, Target); 1] = [("verified", verified)];

const KEY: [u8; 32] = [7; 32];
const NONCE: [u8; 16] = [9; 16];
const CONTEXT: &[u8] = b"fuzz";

fn measure(number: u8) -> Measure {
    let (length, chunk_length) = (3, Some(2));
    match number % 5 {
        0 => Measure::Count,
        1 => Measure::Sum { max_measurement: 5 },
        2 => Measure::SumVec { max_measurement: 5, length: 2, chunk_length },
        3 => Measure::Histogram { length, chunk_length },
        _ => Measure::MultihotCountVec { length, max_weight: 1, chunk_length },
    }
}

/// The first byte says what is measured, the second what is read; the rest is that.
pub(crate) fn verified(data: &[u8]) {
    let [first, second, rest @ ..] = data else { return };
    let prio3 = Prio3::new(measure(*first), 2).expect("parameters that are allowed");
    let public = vec![0; prio3.public_share_length()];
    let (what, aggregator) = (second & 127, second >> 7);
    let report = Incoming { nonce: &NONCE, public_share: &public, input_share: rest };
    match what % 9 {
        0 => {
            if let Ok(begun) = prio3.verify_init(&KEY, CONTEXT, aggregator, report) {
                assert_eq!(rest.len(), prio3.input_share_length(aggregator));
                // What an aggregator keeps and sends is read again; the proof is another matter.
                let message = vec![0; if public.is_empty() { 0 } else { 32 }];
                let next = prio3.verify_next(CONTEXT, aggregator, &begun.state, &message);
                assert!(matches!(next, Ok(_) | Err(Error::Proof)));
                let shares: [&[u8]; 2] = [&begun.message, &begun.message];
                let together = prio3.verifier_message(CONTEXT, &shares);
                assert!(matches!(together, Ok(_) | Err(Error::Proof)));
            }
        }
        1 => {
            let (one, other) = rest.split_at(rest.len() / 2);
            let _ = prio3.verifier_message(CONTEXT, &[one, other]);
            let _ = prio3.verify_next(CONTEXT, aggregator, one, other);
        }
        2 => {
            let seed = vec![1; prio3.input_share_length(1)];
            let report = Incoming { input_share: &seed, ..report };
            if let Ok(done) = prio3.helper_initialized(&KEY, CONTEXT, report, rest) {
                assert_eq!(done.output_share.len(), prio3.aggregate_share_length());
            }
        }
        3 => {
            let leader = vec![0; prio3.input_share_length(0)];
            let report = Incoming { input_share: &leader, ..report };
            let begun = prio3.leader_initialized(&KEY, CONTEXT, report);
            let begun = begun.expect("zeros are elements");
            if let Ok(share) = prio3.leader_continued(CONTEXT, &begun.state, rest) {
                assert_eq!(share.len(), prio3.aggregate_share_length());
            }
            let _ = prio3.leader_continued(CONTEXT, rest, rest);
        }
        4 => {
            if let Ok(sum) = prio3.aggregate(&prio3.aggregate_init(), &[rest]) {
                assert_eq!(sum, rest);
            }
        }
        5 => {
            let zero = prio3.aggregate_init();
            if let Ok(sums) = prio3.unshard(&[rest, &zero]) {
                assert_eq!(sums.len(), prio3.output_length());
                assert!(sums.iter().all(|sum| sum.unsigned_abs() <= prio3.modulus() / 2));
            }
        }
        6 => {
            let (share, shares) = (vec![1; prio3.input_share_length(1)], rest);
            let reports =
                [Entire { nonce: &NONCE, public_share: &public, input_shares: &[shares, &share] }];
            let together = prio3.verify_together(&KEY, CONTEXT, &reports).expect("readable sums");
            assert!(together.refused[0].is_some(), "no honest proof is found by chance");
        }
        7 => {
            // All that a client sends to both aggregators.
            let (public_share, shares) = rest.split_at(rest.len().min(public.len()));
            let (leader, helper) = shares.split_at(shares.len().min(prio3.input_share_length(0)));
            let inputs: [&[u8]; 2] = [leader, helper];
            let reports =
                inputs.map(|input_share| Incoming { nonce: &NONCE, public_share, input_share });
            if let Ok(begun) = prio3.leader_initialized(&KEY, CONTEXT, reports[0]) {
                let _ = prio3.helper_initialized(&KEY, CONTEXT, reports[1], &begun.message);
            }
            let entire = [Entire { nonce: &NONCE, public_share, input_shares: &inputs }];
            let together = prio3.verify_together(&KEY, CONTEXT, &entire).expect("readable sums");
            if together.refused[0].is_none() {
                // What is honest, as the corpus has it: it counts as one.
                let shares: Vec<&[u8]> =
                    together.aggregate_shares.iter().map(Vec::as_slice).collect();
                let sums = prio3.unshard(&shares).expect("readable sums");
                let most = i128::from(prio3.measure().largest());
                assert!(sums.iter().all(|sum| (0..=most).contains(sum)), "{sums:?}");
                assert!(most > 1 || sums.iter().sum::<i128>() <= 1, "{sums:?}");
            }
        }
        _ => {
            let streams = AesStreams::from_key([3; 32]);
            let noise = Noise::DiscreteLaplace { scale: 0.5 };
            if let Ok(noised) = prio3.add_noise(rest, noise, 1, &streams) {
                assert_eq!(noised.len(), rest.len());
                assert!(prio3.unshard(&[&noised, &prio3.aggregate_init()]).is_ok());
            }
        }
    }
}
