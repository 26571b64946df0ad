//! The test vectors of the draft, step by step.

use std::fs;
use std::path::Path;

use super::*;
use crate::wire::hex;
use crate::wire::json::Json;

type Bytes = Vec<u8>;

fn member<'a, 'b>(value: &'b Json<'a>, name: &str) -> &'b Json<'a> {
    value.member(name).unwrap_or_else(|| panic!("no {name}"))
}

fn bytes(value: &Json<'_>) -> Bytes {
    let text = value.text().unwrap();
    let mut bytes = vec![0; text.len() / 2];
    assert!(hex::read_into(text.as_bytes(), &mut bytes));
    bytes
}

fn many(value: &Json<'_>) -> Vec<Bytes> {
    value.list().unwrap().iter().map(bytes).collect()
}

fn number<N: core::str::FromStr>(value: &Json<'_>, name: &str) -> N {
    member(value, name).unsigned().unwrap_or_else(|| panic!("no {name}"))
}

fn measure(name: &str, vector: &Json<'_>) -> Measure {
    let chunk_length = vector.member("chunk_length").and_then(Json::unsigned);
    if name.starts_with("Prio3Count") {
        Measure::Count
    } else if name.starts_with("Prio3SumVec") {
        let (max_measurement, length) =
            (number(vector, "max_measurement"), number(vector, "length"));
        Measure::SumVec { max_measurement, length, chunk_length }
    } else if name.starts_with("Prio3Sum") {
        Measure::Sum { max_measurement: number(vector, "max_measurement") }
    } else if name.starts_with("Prio3Histogram") {
        Measure::Histogram { length: number(vector, "length"), chunk_length }
    } else {
        let (length, max_weight) = (number(vector, "length"), number(vector, "max_weight"));
        Measure::MultihotCountVec { length, max_weight, chunk_length }
    }
}

/// Does what the vector says, and compares all that is made; gives how many steps there were.
fn follow(name: &str, vector: &Json<'_>) -> usize {
    let vdaf = Prio3::new(measure(name, vector), number(vector, "shares")).unwrap();
    let key: [u8; VERIFY_KEY_SIZE] = bytes(member(vector, "verify_key")).try_into().unwrap();
    let context = bytes(member(vector, "ctx"));
    let reports = member(vector, "reports").list().unwrap();
    let mut states = vec![vec![Bytes::new(); vdaf.aggregators().into()]; reports.len()];
    let steps = member(vector, "operations").list().unwrap();
    for step in steps {
        let aggregator = step.member("aggregator_id").and_then(Json::unsigned).unwrap_or(0_u8);
        let index: usize = step.member("report_index").and_then(Json::unsigned).unwrap_or(0);
        let report = &reports[index];
        let shares = || many(&member(report, "verifier_shares").list().unwrap()[0]);
        let message = || many(member(report, "verifier_messages"))[0].clone();
        let mine = usize::from(aggregator);
        let (result, expected) = match &*member(step, "operation").text().unwrap() {
            // Prio draws the randomness of a client.
            "shard" => continue,
            "verify_init" => {
                let incoming = Incoming {
                    nonce: &bytes(member(report, "nonce")).try_into().unwrap(),
                    public_share: &bytes(member(report, "public_share")),
                    input_share: &many(member(report, "input_shares"))[mine],
                };
                let begun = vdaf.verify_init(&key, &context, aggregator, incoming);
                let begun = begun.map(|begun| {
                    states[index][mine] = begun.state;
                    begun.message
                });
                (begun, shares().get(mine).cloned())
            }
            "verifier_shares_to_message" => {
                let made = vdaf.verifier_message(&context, &slices(&shares()));
                let expected = member(report, "verifier_messages").list().unwrap();
                (made, expected.first().map(bytes))
            }
            "verify_next" => {
                let output =
                    vdaf.verify_next(&context, aggregator, &states[index][mine], &message());
                let expected = member(report, "out_shares").list().unwrap().get(mine);
                // A vector of elements, each on its own, or all of them in one.
                let joined = |share: &Json<'_>| match share.list() {
                    Some(_) => many(share).concat(),
                    None => bytes(share),
                };
                (output, expected.map(joined))
            }
            "aggregate" => {
                let outputs: Vec<Bytes> = reports
                    .iter()
                    .map(|report| {
                        let share = &member(report, "out_shares").list().unwrap()[mine];
                        share.list().map_or_else(|| bytes(share), |_| many(share).concat())
                    })
                    .collect();
                let sum = vdaf.aggregate(&vdaf.aggregate_init(), &slices(&outputs));
                (sum, Some(many(member(vector, "agg_shares"))[mine].clone()))
            }
            "unshard" => {
                let sums = vdaf.unshard(&slices(&many(member(vector, "agg_shares")))).unwrap();
                let expected = member(vector, "agg_result");
                let expected = expected.list().map_or_else(
                    || vec![expected.integer().unwrap()],
                    |sums| sums.iter().map(|sum| sum.integer().unwrap()).collect(),
                );
                assert_eq!(sums, expected, "{name}");
                continue;
            }
            other => panic!("{name}: {other}"),
        };
        let succeeds = format!("{:?}", member(step, "success")).contains("Truth(true)");
        assert_eq!(result.is_ok(), succeeds, "{name}");
        if let Ok(made) = result {
            assert_eq!(made, expected.unwrap_or_default(), "{name}");
        }
    }
    steps.len()
}

#[test]
fn the_vectors_of_the_draft_come_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rust/tests/vectors/vdaf");
    let mut files = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let vector = Json::read(&text).unwrap();
        assert!(follow(&name, &vector) > 1, "{name}");
        files += 1;
    }
    assert_eq!(files, 21);
}
