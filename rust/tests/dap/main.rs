//! Encodings of DAP beside those of `vectors.txt`, which says who else writes them so.

#![expect(clippy::expect_used, reason = "a test says what is missing")]

use turnout_core::dap::{
    AggregateShare, AggregateShareAad, AggregateShareReq, AggregationJobContinueReq,
    AggregationJobInitReq, AggregationJobResp, BatchMode, BatchSelector, CollectionJobReq,
    CollectionJobResp, Dialect, Error, Extension, HistogramConfig, HpkeCiphertext, HpkeConfig,
    HpkeConfigList, InputShareAad, Interval, Message, MultihotCountVecConfig, PlaintextInputShare,
    Query, Report, ReportError, ReportMetadata, ReportShare, ReportUploadStatus, SumConfig,
    SumVecConfig, Task, TaskConfiguration, UploadErrors, UploadRequest, VdafConfiguration,
    VerifyContinue, VerifyInit, VerifyResp, VerifyStep,
};

/// A message of the verification, as of the ping-pong topology of VDAF: its first one.
const INITIALIZE: &[u8] = b"\x00\x00\x00\x00\x0501234";
/// Its last one.
const FINISH: &[u8] = b"\x02\x00\x00\x00\x03567";

/// The bytes of the vector of this name.
fn vector(name: &str) -> Vec<u8> {
    let mut lines = include_str!("vectors.txt").lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let digits: String = found.expect(name).split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The message is written as the vector of this name and read from it.
macro_rules! check {
    ($name:literal, $message:expr) => {{
        let (bytes, message) = (vector($name), $message);
        assert_eq!(message.encode().as_ref(), Ok(&bytes), $name);
        assert_eq!(Message::decode(&bytes), Ok(message), $name);
    }};
    ($dialect:expr, $name:literal, $type:ident, $message:expr) => {{
        let (bytes, message) = (vector($name), $message);
        assert_eq!(message.clone().encode_as($dialect).as_ref(), Ok(&bytes), $name);
        assert_eq!($type::decode_as($dialect, &bytes), Ok(message), $name);
    }};
}

fn configuration() -> TaskConfiguration<'static> {
    TaskConfiguration {
        task_info: b"foobar",
        leader_aggregator_endpoint: b"https://example.com/",
        helper_aggregator_endpoint: b"https://another.example.com/",
        time_precision: 3600,
        min_batch_size: 10_000,
        batch_mode: BatchMode::TimeInterval,
        batch_config: &[],
        vdaf_type: 5,
        vdaf_configuration: b"\0\0\0\x1e\0\0\0\x06\0\0\0\0\0\0\0\x01",
        extensions: vec![Extension {
            extension_type: 1,
            extension_data: b"\0\0\0\0\0\0\xd4\x31\0\0\0\0\0\0\0\x18",
        }],
    }
}

fn metadata(first: u8) -> ReportMetadata<'static> {
    let report_id = core::array::from_fn(|place| first + u8::try_from(place).unwrap_or(0));
    ReportMetadata { report_id, time: 54_321, public_extensions: Vec::new() }
}

const LEADERS: HpkeCiphertext<'_> =
    HpkeCiphertext { config_id: 42, enc: b"012345", payload: b"543210" };
const HELPERS: HpkeCiphertext<'_> =
    HpkeCiphertext { config_id: 13, enc: b"abce", payload: b"abfd" };

fn report() -> Report<'static> {
    Report {
        report_metadata: metadata(1),
        public_share: b"0123",
        leader_encrypted_input_share: LEADERS,
        helper_encrypted_input_share: HELPERS,
    }
}

fn inits() -> Vec<VerifyInit<'static>> {
    let bare = Report { report_metadata: metadata(16), public_share: b"", ..report() };
    let init = |one: &Report<'static>, payload| VerifyInit {
        report_share: ReportShare {
            report_metadata: one.report_metadata.clone(),
            public_share: one.public_share,
            encrypted_input_share: one.helper_encrypted_input_share.clone(),
        },
        payload,
    };
    vec![init(&report(), INITIALIZE), init(&bare, FINISH)]
}

fn times() -> Interval {
    Interval::new(54_321, 12).expect("an interval")
}

fn asked(query: Query) -> CollectionJobReq<'static> {
    CollectionJobReq { query, agg_param: b"", extensions: Vec::new() }
}

#[test]
fn keys_and_ciphertexts() {
    let config = HpkeConfig {
        id: 12,
        kem_id: 0x0020,
        kdf_id: 0x0001,
        aead_id: 0x0001,
        public_key: b"0123456789",
    };
    let other = HpkeConfig { id: 194, kem_id: 0x0010, aead_id: 0x0003, ..config.clone() };
    check!("HpkeConfig", config.clone());
    check!("HpkeConfigList", HpkeConfigList { configs: vec![config, other] });
    check!("HpkeCiphertext", LEADERS);
}

#[test]
fn tasks() {
    check!("TaskConfiguration time_interval", configuration());
    let bare = TaskConfiguration {
        batch_mode: BatchMode::LeaderSelected,
        vdaf_type: 1,
        vdaf_configuration: &[],
        extensions: Vec::new(),
        ..configuration()
    };
    check!("TaskConfiguration leader_selected", bare.clone());
    check!(
        "InputShareAad",
        InputShareAad {
            task_id: [12; 32],
            task_configuration: configuration(),
            report_metadata: metadata(1),
            public_share: b"0123",
        }
    );
    let task = Task::of(
        [12; 32],
        TaskConfiguration { extensions: Vec::new(), ..configuration() },
        Interval::new(54_321, 24).ok(),
    );
    let bytes = vector("TaskConfiguration time_interval");
    assert_eq!(task.as_ref().map(Task::configuration), Ok(&bytes[..]));
    assert_eq!(Task::new([12; 32], &bytes), task);
}

#[test]
fn parameters_of_vdafs() {
    for (name, configuration) in [
        ("Prio3Count", VdafConfiguration::Count),
        ("Prio3Sum", VdafConfiguration::Sum(SumConfig { max_measurement: 4096 })),
        (
            "Prio3SumVec",
            VdafConfiguration::SumVec(SumVecConfig {
                length: 12,
                max_measurement: 255,
                chunk_length: 4,
            }),
        ),
        (
            "Prio3Histogram",
            VdafConfiguration::Histogram(HistogramConfig { length: 10, chunk_length: 3 }),
        ),
        (
            "Prio3MultihotCountVec",
            VdafConfiguration::MultihotCountVec(MultihotCountVecConfig {
                length: 30,
                chunk_length: 6,
                max_weight: 1,
            }),
        ),
        ("Poplar1", VdafConfiguration::Other { vdaf_type: 6, configuration: &[0, 8] }),
    ] {
        let bytes = vector(name);
        assert_eq!(configuration.encode().as_ref(), Ok(&bytes), "{name}");
        let read = VdafConfiguration::of(configuration.vdaf_type(), &bytes);
        assert_eq!(read, Ok(configuration), "{name}");
    }
    let refused = VdafConfiguration::of(1, b"x").map_err(|error| error.to_string());
    assert!(refused.is_err_and(|message| message.contains("left over")));
}

#[test]
fn uploads() {
    let extended = ReportMetadata {
        public_extensions: vec![
            Extension { extension_type: 23, extension_data: b"" },
            Extension { extension_type: 0xff00, extension_data: b"0123" },
        ],
        ..metadata(1)
    };
    check!("ReportMetadata", extended);
    check!("Report", report());
    check!(
        "UploadRequest",
        UploadRequest {
            reports: vec![report(), Report { report_metadata: metadata(16), ..report() }],
        }
    );
    check!(
        "PlaintextInputShare",
        PlaintextInputShare {
            private_extensions: vec![Extension { extension_type: 1, extension_data: b"0123" }],
            payload: b"4567",
        }
    );
    let status = |first, error| ReportUploadStatus { id: metadata(first).report_id, error };
    check!(
        "UploadErrors",
        UploadErrors {
            status: vec![
                status(1, ReportError::ReportReplayed),
                status(16, ReportError::ReportDropped),
            ],
        }
    );
}

#[test]
fn aggregation_jobs() {
    let batch: [u8; 32] = [2; 32];
    let request = AggregationJobInitReq {
        verification_key_id: 7,
        agg_param: b"012345",
        extensions: vec![Extension { extension_type: 1, extension_data: &batch }],
        verify_inits: inits(),
    };
    let timed = AggregationJobInitReq { extensions: Vec::new(), ..request.clone() };
    check!("AggregationJobInitReq leader_selected", request.clone());
    check!("AggregationJobInitReq time_interval", timed.clone());
    let janus = Dialect::Janus;
    check!(
        janus,
        "Janus AggregationJobInitReq leader_selected",
        AggregationJobInitReq,
        request.clone()
    );
    check!(janus, "Janus AggregationJobInitReq time_interval", AggregationJobInitReq, timed);
    assert_eq!(request.batch_id(), Some(&batch[..]));
    let unknown = AggregationJobInitReq {
        extensions: vec![Extension { extension_type: 2, extension_data: &[] }],
        ..request
    };
    assert!(matches!(unknown.encode_as(janus), Err(Error::Value { .. })));

    let result = |first, result| VerifyResp { report_id: metadata(first).report_id, result };
    let answer = AggregationJobResp {
        verify_resps: vec![
            result(1, VerifyStep::Continue(INITIALIZE)),
            result(16, VerifyStep::Finish),
            result(32, VerifyStep::Reject(ReportError::VdafVerifyError)),
        ],
    };
    check!("AggregationJobResp", answer.clone());
    check!(janus, "Janus AggregationJobResp", AggregationJobResp, answer);

    let report = VerifyContinue { report_id: metadata(1).report_id, payload: INITIALIZE };
    let more = AggregationJobContinueReq { step: 42_405, verify_continues: vec![report] };
    check!("AggregationJobContinueReq", more.clone());
    check!(janus, "Janus AggregationJobContinueReq", AggregationJobContinueReq, more);
}

#[test]
fn collection_jobs() {
    check!("Query time_interval", Query::TimeInterval(times()));
    check!("Query leader_selected", Query::LeaderSelected);
    check!("BatchSelector time_interval", BatchSelector::TimeInterval(times()));
    check!("BatchSelector leader_selected", BatchSelector::LeaderSelected([2; 32]));
    check!(
        "CollectionJobReq time_interval",
        CollectionJobReq {
            extensions: vec![Extension { extension_type: 23, extension_data: b"012" }],
            agg_param: b"012345",
            ..asked(Query::TimeInterval(times()))
        }
    );
    check!("CollectionJobReq leader_selected", asked(Query::LeaderSelected));
    check!(
        "CollectionJobResp",
        CollectionJobResp {
            report_count: 1729,
            interval: times(),
            leader_encrypted_agg_share: LEADERS,
            helper_encrypted_agg_share: HELPERS,
        }
    );
    check!(
        "AggregateShareReq time_interval",
        AggregateShareReq {
            collection_job_req: asked(Query::TimeInterval(times())),
            batch_selector: BatchSelector::TimeInterval(times()),
            report_count: 439,
            checksum: [0; 32],
        }
    );
    check!(
        "AggregateShareReq leader_selected",
        AggregateShareReq {
            collection_job_req: asked(Query::LeaderSelected),
            batch_selector: BatchSelector::LeaderSelected([12; 32]),
            report_count: 8725,
            checksum: [255; 32],
        }
    );
    check!("AggregateShare", AggregateShare { encrypted_aggregate_share: LEADERS });
    check!(
        "AggregateShareAad",
        AggregateShareAad {
            task_id: [12; 32],
            task_configuration: configuration(),
            collection_job_req: asked(Query::TimeInterval(times())),
        }
    );
}
