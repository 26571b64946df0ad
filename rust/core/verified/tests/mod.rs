//! Honest reports count once, whatever else a client sends is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lying;
#[cfg(feature = "wire")]
mod vectors;

use super::*;
use crate::random::AesStreams;

pub(super) const KEY: [u8; VERIFY_KEY_SIZE] = [7; VERIFY_KEY_SIZE];
pub(super) const CONTEXT: &[u8] = b"a poll";

pub(super) const VOTE: Measure =
    Measure::MultihotCountVec { length: 4, max_weight: 1, chunk_length: None };

fn measures() -> Vec<(Measure, Vec<Vec<u64>>)> {
    let (chunk_length, length) = (None, 4);
    vec![
        (Measure::Count, vec![vec![0], vec![1]]),
        (Measure::Sum { max_measurement: 300 }, vec![vec![0], vec![299], vec![300]]),
        (
            Measure::SumVec { max_measurement: 9, length, chunk_length },
            vec![vec![0, 9, 3, 4], vec![9, 9, 9, 9]],
        ),
        (Measure::Histogram { length, chunk_length }, vec![vec![0], vec![3], vec![3]]),
        (VOTE, vec![vec![0, 0, 0, 0], vec![0, 1, 0, 0], vec![0, 0, 0, 1]]),
    ]
}

pub(super) fn nonce(number: u8) -> [u8; NONCE_SIZE] {
    [number; NONCE_SIZE]
}

pub(super) fn slices(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

/// Verifies a report as all aggregators, with what they send as bytes.
pub(super) fn verified(
    vdaf: &Prio3,
    key: &[u8; VERIFY_KEY_SIZE],
    context: &[u8],
    nonce: &[u8; NONCE_SIZE],
    report: &Report,
) -> Result<Vec<Vec<u8>>> {
    let public_share = &report.public_share;
    let begun: Vec<Started> = (0..vdaf.aggregators())
        .zip(&report.input_shares)
        .map(|(aggregator, input_share)| {
            let incoming = Incoming { nonce, public_share, input_share };
            vdaf.verify_init(key, context, aggregator, incoming)
        })
        .collect::<Result<_>>()?;
    let shares: Vec<&[u8]> = begun.iter().map(|begun| begun.message.as_slice()).collect();
    let message = vdaf.verifier_message(context, &shares)?;
    (0..vdaf.aggregators())
        .zip(&begun)
        .map(|(aggregator, begun)| vdaf.verify_next(context, aggregator, &begun.state, &message))
        .collect()
}

/// The same as a leader and a helper.
pub(super) fn exchanged(
    vdaf: &Prio3,
    nonce: &[u8; NONCE_SIZE],
    report: &Report,
) -> Result<Vec<Vec<u8>>> {
    let [leader, helper] = [0, 1].map(|index| Incoming {
        nonce,
        public_share: &report.public_share,
        input_share: &report.input_shares[index],
    });
    let begun = vdaf.leader_initialized(&KEY, CONTEXT, leader)?;
    let answer = vdaf.helper_initialized(&KEY, CONTEXT, helper, &begun.message)?;
    let output = vdaf.leader_continued(CONTEXT, &begun.state, &answer.message)?;
    Ok(vec![output, answer.output_share])
}

#[test]
fn every_measurement_is_added_up_by_any_number_of_aggregators() {
    for aggregators in [2, 3, 5] {
        for (measure, measurements) in measures() {
            let vdaf = Prio3::new(measure, aggregators).unwrap();
            let mut sums = vec![vdaf.aggregate_init(); aggregators.into()];
            let mut expected = vec![0; vdaf.output_length()];
            for (number, measurement) in (0..).zip(&measurements) {
                let report = vdaf.shard(CONTEXT, measurement, &nonce(number)).unwrap();
                assert_eq!(report.public_share.len(), vdaf.public_share_length());
                for (index, share) in (0..).zip(&report.input_shares) {
                    assert_eq!(share.len(), vdaf.input_share_length(index));
                }
                let outputs = verified(&vdaf, &KEY, CONTEXT, &nonce(number), &report).unwrap();
                if aggregators == 2 {
                    assert_eq!(exchanged(&vdaf, &nonce(number), &report).unwrap(), outputs);
                }
                for (sum, output) in sums.iter_mut().zip(&outputs) {
                    *sum = vdaf.aggregate(sum, &[output]).unwrap();
                }
                if let Measure::Histogram { .. } = measure {
                    expected[usize::try_from(measurement[0]).unwrap()] += 1;
                } else {
                    let numbers = measurement.iter().map(|number| i128::from(*number));
                    expected.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
                }
            }
            assert_eq!(vdaf.unshard(&slices(&sums)).unwrap(), expected, "{measure:?}");
        }
    }
}

#[test]
fn what_is_no_measurement_is_refused() {
    let four = || Measure::SumVec { max_measurement: 9, length: 4, chunk_length: None };
    let weight = Measure::MultihotCountVec { length: 4, max_weight: 2, chunk_length: Some(3) };
    let cases: Vec<(Measure, Vec<u64>)> = vec![
        (Measure::Count, vec![2]),
        (Measure::Count, vec![]),
        (Measure::Sum { max_measurement: 300 }, vec![301]),
        (four(), vec![1, 2, 3]),
        (four(), vec![1, 2, 3, 10]),
        (Measure::Histogram { length: 4, chunk_length: None }, vec![4]),
        (VOTE, vec![1, 1, 0, 0]),
        (VOTE, vec![2, 0, 0, 0]),
        (VOTE, vec![1, 0, 0]),
        (weight, vec![1, 1, 1, 0]),
    ];
    for (measure, measurement) in cases {
        let refused = Prio3::new(measure, 2).unwrap().shard(CONTEXT, &measurement, &nonce(0));
        assert!(matches!(refused, Err(Error::Measurement { .. })), "{measure:?} {measurement:?}");
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let multihot = |length, max_weight, chunk_length| Measure::MultihotCountVec {
        length,
        max_weight,
        chunk_length,
    };
    let cases = [
        (Measure::Count, 1),
        (Measure::Count, 0),
        (Measure::Count, 255),
        (Measure::Sum { max_measurement: 0 }, 2),
        (Measure::Sum { max_measurement: 1 << 62 }, 2),
        (Measure::SumVec { max_measurement: 1 << 40, length: 1 << 20, chunk_length: None }, 2),
        (Measure::Histogram { length: 0, chunk_length: None }, 2),
        (Measure::Histogram { length: 4, chunk_length: Some(0) }, 2),
        (Measure::Histogram { length: u32::MAX, chunk_length: None }, 2),
        (multihot(4, 0, None), 2),
        (multihot(4, 5, None), 2),
        (multihot(4, 1, Some(u32::MAX)), 2),
    ];
    for (measure, aggregators) in cases {
        let refused = Prio3::new(measure, aggregators).map(|_| ());
        assert!(matches!(refused, Err(Error::Parameter { .. })), "{measure:?} {aggregators}");
    }
}

#[test]
fn a_report_of_another_setting_is_refused() {
    let vdaf = Prio3::new(VOTE, 2).unwrap();
    let report = vdaf.shard(CONTEXT, &[0, 1, 0, 0], &nonce(1)).unwrap();
    assert!(verified(&vdaf, &KEY, CONTEXT, &nonce(1), &report).is_ok());
    assert_eq!(verified(&vdaf, &KEY, b"another poll", &nonce(1), &report), Err(Error::Proof));
    assert_eq!(verified(&vdaf, &KEY, CONTEXT, &nonce(2), &report), Err(Error::Proof));
    let swapped = Report {
        public_share: report.public_share.clone(),
        input_shares: vdaf.shard(CONTEXT, &[0, 1, 0, 0], &nonce(1)).unwrap().input_shares,
    };
    assert_eq!(verified(&vdaf, &KEY, CONTEXT, &nonce(1), &swapped), Err(Error::Proof));
    // A leader that has another key: the two run different checks.
    let incoming = |index: usize| Incoming {
        nonce: &[1; NONCE_SIZE],
        public_share: &report.public_share,
        input_share: &report.input_shares[index],
    };
    let begun = vdaf.leader_initialized(&[8; VERIFY_KEY_SIZE], CONTEXT, incoming(0)).unwrap();
    let answer = vdaf.helper_initialized(&KEY, CONTEXT, incoming(1), &begun.message);
    assert!(matches!(answer, Err(Error::Proof)));
}

#[test]
fn every_altered_bit_and_every_other_length_is_refused() {
    for measure in [VOTE, Measure::Sum { max_measurement: 5 }] {
        let vdaf = Prio3::new(measure, 2).unwrap();
        let measurement = if measure == VOTE { vec![0, 1, 0, 0] } else { vec![4] };
        let report = vdaf.shard(CONTEXT, &measurement, &nonce(1)).unwrap();
        let parts = |report: &mut Report, part: usize| match part {
            0 => core::mem::take(&mut report.public_share),
            part => core::mem::take(&mut report.input_shares[part - 1]),
        };
        let with = |part: usize, bytes: Vec<u8>| {
            let mut altered = report.clone();
            match part {
                0 => altered.public_share = bytes,
                part => altered.input_shares[part - 1] = bytes,
            }
            altered
        };
        for part in 0..3 {
            let whole = parts(&mut report.clone(), part);
            for place in 0..whole.len() * 8 {
                let mut bytes = whole.clone();
                bytes[place / 8] ^= 1 << (place % 8);
                let altered = with(part, bytes);
                let plain = verified(&vdaf, &KEY, CONTEXT, &nonce(1), &altered).unwrap_err();
                assert!(plain == Error::Proof || plain.malformed(), "{plain}");
                assert!(exchanged(&vdaf, &nonce(1), &altered).is_err(), "{part} {place}");
            }
            let longer = [whole.as_slice(), &[0]].concat();
            let mut lengths = vec![longer];
            if !whole.is_empty() {
                lengths.push(whole[1..].to_vec());
                lengths.push(vec![]);
            }
            for bytes in lengths {
                let error = exchanged(&vdaf, &nonce(1), &with(part, bytes)).unwrap_err();
                assert!(matches!(error, Error::Length { .. }), "{error}");
            }
        }
    }
}

#[test]
fn messages_of_the_wrong_kind_are_refused() {
    let vdaf = Prio3::new(VOTE, 2).unwrap();
    let report = vdaf.shard(CONTEXT, &[0, 1, 0, 0], &nonce(1)).unwrap();
    let incoming = |index: usize| Incoming {
        nonce: &[1; NONCE_SIZE],
        public_share: &report.public_share,
        input_share: &report.input_shares[index],
    };
    let begun = vdaf.leader_initialized(&KEY, CONTEXT, incoming(0)).unwrap();
    for kind in [1, 2, 3, 255] {
        let mut message = begun.message.clone();
        message[0] = kind;
        let refused = vdaf.helper_initialized(&KEY, CONTEXT, incoming(1), &message);
        assert!(refused.is_err_and(|error| error.malformed()), "{kind}");
    }
    let answer = vdaf.helper_initialized(&KEY, CONTEXT, incoming(1), &begun.message).unwrap();
    for kind in [0, 1, 3] {
        let mut message = answer.message.clone();
        message[0] = kind;
        let refused = vdaf.leader_continued(CONTEXT, &begun.state, &message);
        assert!(refused.is_err_and(|error| error.malformed()), "{kind}");
    }
    let three = Prio3::new(VOTE, 3).unwrap();
    let refused = three.leader_initialized(&KEY, CONTEXT, incoming(0));
    assert!(matches!(refused, Err(Error::Parameter { argument: "aggregators", .. })));
    let refused = vdaf.verify_init(&KEY, CONTEXT, 2, incoming(0));
    assert!(matches!(refused, Err(Error::Parameter { argument: "aggregator", .. })));
}

#[test]
fn batches_are_as_reports_one_by_one_and_a_replay_counts_once() {
    let vdaf = Prio3::new(VOTE, 3).unwrap();
    let votes: Vec<i64> = (0..100).map(|index| index % 5 - 1).collect();
    let nonces: Vec<_> = (0..100).map(nonce).collect();
    let reports = vdaf.shard_votes(CONTEXT, &votes, &nonces).unwrap();
    let shares: Vec<_> = reports.iter().map(|report| slices(&report.input_shares)).collect();
    let mut entire: Vec<_> = (0..100)
        .map(|index| Entire {
            nonce: &nonces[index],
            public_share: &reports[index].public_share,
            input_shares: &shares[index],
        })
        .collect();
    // One to the wrong nonce, one a second time, one without a share.
    entire[9].nonce = &[200; NONCE_SIZE];
    entire.push(entire[11]);
    entire[12].input_shares = &shares[12][..2];
    let together = vdaf.verify_together(&KEY, CONTEXT, &entire).unwrap();
    for (index, outcome) in together.refused.iter().enumerate() {
        match index {
            9 => assert_eq!(*outcome, Some(Error::Proof)),
            12 => assert!(matches!(outcome, Some(Error::Parts { .. }))),
            100 => assert_eq!(*outcome, Some(Error::Replayed)),
            _ => assert_eq!(*outcome, None),
        }
    }
    let counted = vdaf.unshard(&slices(&together.aggregate_shares)).unwrap();
    // The one that was refused at 9 is a vote for 3, at 12 one for 1.
    assert_eq!(counted, [20, 19, 20, 19]);
    let alone = vdaf.verify_together(&KEY, CONTEXT, &[]).unwrap();
    assert_eq!(vdaf.unshard(&slices(&alone.aggregate_shares)).unwrap(), [0; 4]);
    assert!(vdaf.shard_votes(CONTEXT, &[4], &nonces[..1]).is_err());
    assert!(vdaf.shard_votes(CONTEXT, &[1, 2], &nonces[..1]).is_err());
    assert!(vdaf.shard_numbers(CONTEXT, &[1, 0, 0, 0], &nonces[..1]).is_err());
    let histogram = Measure::Histogram { length: 4, chunk_length: None };
    let histogram = Prio3::new(histogram, 2).unwrap();
    let reports = histogram.shard_votes(CONTEXT, &[0, -1], &nonces[..2]).unwrap();
    let shares: Vec<_> = (0..2)
        .map(|index| {
            let outputs =
                (0..2).map(|report| exchanged(&histogram, &nonces[report], &reports[report]));
            let outputs: Vec<_> = outputs.map(|outputs| outputs.unwrap()[index].clone()).collect();
            histogram.aggregate(&histogram.aggregate_init(), &slices(&outputs)).unwrap()
        })
        .collect();
    assert_eq!(histogram.unshard(&slices(&shares)).unwrap(), [1, 0, 0, 1]);
}

#[test]
fn noise_is_that_of_the_core_and_may_be_below_zero() {
    for measure in [Measure::Count, VOTE] {
        let vdaf = Prio3::new(measure, 2).unwrap();
        for noise in
            [Noise::DiscreteLaplace { scale: 50.0 }, Noise::DiscreteGaussian { variance: 2500.0 }]
        {
            let zero = vdaf.aggregate_init();
            let shares = [1, 2]
                .map(|seed| vdaf.add_noise(&zero, noise, 0, &AesStreams::from_seed(seed)).unwrap());
            let drawn = [1, 2].map(|seed| {
                noise.draw(vdaf.output_length(), &AesStreams::from_seed(seed)).unwrap()
            });
            let expected: Vec<_> = drawn[0]
                .iter()
                .zip(&drawn[1])
                .map(|(one, other)| i128::from(*one) + i128::from(*other))
                .collect();
            assert_eq!(vdaf.unshard(&slices(&shares)).unwrap(), expected);
        }
    }
    let vdaf = Prio3::new(VOTE, 2).unwrap();
    let below = vdaf.engine.shift(&vdaf.aggregate_init(), &[-1, i64::MIN, 0, i64::MAX]).unwrap();
    let lifted = vdaf.unshard(&[&below, &vdaf.aggregate_init()]).unwrap();
    assert_eq!(lifted, [-1, i64::MIN.into(), 0, i64::MAX.into()]);
}

#[test]
fn noise_that_may_wrap_is_refused() {
    let sum = Prio3::new(Measure::Sum { max_measurement: (1 << 62) - 1 }, 2).unwrap();
    let (noise, streams) = (Noise::DiscreteLaplace { scale: 1.0 }, AesStreams::from_seed(1));
    let zero = sum.aggregate_init();
    assert!(sum.add_noise(&zero, noise, 1, &streams).is_ok());
    assert_eq!(sum.check_noise(noise, 1), Ok(()));
    let refused = sum.add_noise(&zero, noise, 2, &streams);
    assert_eq!(refused, Err(Error::Wraps { reports: 2 }));
    assert_eq!(sum.check_noise(noise, 2), Err(Error::Wraps { reports: 2 }));
    for out in [Noise::DiscreteLaplace { scale: 0.0 }, Noise::DiscreteGaussian { variance: 1e300 }]
    {
        assert!(matches!(sum.add_noise(&zero, out, 1, &streams), Err(Error::Core(_))));
        assert!(matches!(sum.check_noise(out, 1), Err(Error::Core(_))));
    }
    // 2^64 - 2^32 + 1, and the one of 128 bits in the draft.
    assert_eq!(sum.modulus(), 18_446_744_069_414_584_321);
    let field = 340_282_366_920_938_462_946_865_773_367_900_766_209;
    assert_eq!(Prio3::new(VOTE, 2).unwrap().modulus(), field);
}

#[test]
fn numbers_of_many_reports_are_added_up_together() {
    let nonces: Vec<[u8; NONCE_SIZE]> = (0..3).map(|index| [index; NONCE_SIZE]).collect();
    let single = Measure::Sum { max_measurement: 100 };
    let several = Measure::SumVec { max_measurement: 100, length: 2, chunk_length: None };
    let cases = [
        (Measure::Count, vec![1, 0, 1], vec![2]),
        (single, vec![100, 0, 31], vec![131]),
        (several, vec![100, 1, 0, 2, 31, 3], vec![131, 6]),
    ];
    for (measure, numbers, sums) in cases {
        let vdaf = Prio3::new(measure, 2).unwrap();
        let reports = vdaf.shard_numbers(CONTEXT, &numbers, &nonces).unwrap();
        let shares: Vec<Vec<&[u8]>> =
            reports.iter().map(|report| slices(&report.input_shares)).collect();
        let entire: Vec<_> = (0..3)
            .map(|index| Entire {
                nonce: &nonces[index],
                public_share: &reports[index].public_share,
                input_shares: &shares[index],
            })
            .collect();
        let together = vdaf.verify_together(&KEY, CONTEXT, &entire).unwrap();
        assert_eq!(together.refused, [None, None, None]);
        assert_eq!(vdaf.unshard(&slices(&together.aggregate_shares)).unwrap(), sums);
        assert!(vdaf.shard_numbers(CONTEXT, &numbers[1..], &nonces).is_err());
        assert!(vdaf.shard_numbers(CONTEXT, &vec![101; numbers.len()], &nonces).is_err());
    }
}
