//! What DAP reads that comes from elsewhere, on any bytes: every message, and what is encrypted.

#![expect(clippy::expect_used, reason = "a target panics where the core breaks its word")]

use core::fmt::Debug;
use std::sync::OnceLock;

use turnout_core::dap::{
    AggregateShare, AggregateShareAad, AggregateShareReq, AggregationJobContinueReq,
    AggregationJobInitReq, AggregationJobResp, BatchMode, CollectionJobReq, CollectionJobResp,
    Dialect, HpkeCiphertext, HpkeConfig, HpkeConfigList, HpkeKey, InputShareAad, Message,
    PlaintextInputShare, Query, ReportError, ReportMetadata, ReportShare, Role, Task,
    TaskConfiguration, UploadErrors, UploadRequest, VERSION, VdafConfiguration, increasing,
};

use super::bodies::Target;

/// All targets by their names.
pub(crate) const TARGETS: [(&str, Target); 1] = [("dap", dap)];

/// What is read is written as the same.
fn same<'a, M: Message<'a> + Debug>(data: &'a [u8]) {
    if let Ok(message) = M::decode(data) {
        assert_eq!(message.encode().as_deref(), Ok(data), "{message:?}");
    }
}

/// Any message, and a task, a key or reports of which it may be the encoding.
pub(crate) fn dap(data: &[u8]) {
    same::<AggregateShare<'_>>(data);
    same::<AggregateShareAad<'_>>(data);
    same::<AggregateShareReq<'_>>(data);
    same::<CollectionJobReq<'_>>(data);
    same::<CollectionJobResp<'_>>(data);
    same::<HpkeConfigList<'_>>(data);
    same::<InputShareAad<'_>>(data);
    same::<PlaintextInputShare<'_>>(data);
    same::<TaskConfiguration<'_>>(data);
    same::<UploadErrors>(data);
    jobs(data);
    for vdaf_type in 0..7 {
        if let Ok(configuration) = VdafConfiguration::of(vdaf_type, data) {
            assert_eq!(configuration.vdaf_type(), vdaf_type);
            assert_eq!(configuration.encode().as_deref(), Ok(data));
        }
    }
    if let Ok(task) = Task::new([1; 32], data) {
        let parameters = task.parameters().expect("it was read");
        assert!(increasing(&parameters.extensions));
        assert_eq!(Task::of([1; 32], parameters, task.interval()), Ok(task));
    }
    keys(data);
    shares(data);
}

/// The messages of aggregation jobs in both dialects.
fn jobs(data: &[u8]) {
    for dialect in [Dialect::Draft, Dialect::Janus] {
        if let Ok(request) = AggregationJobInitReq::decode_as(dialect, data) {
            let batch = request.check().is_ok().then(|| request.batch_id()).flatten();
            assert!(batch.is_none_or(|batch| batch.len() == 32));
            assert_eq!(request.encode_as(dialect).as_deref(), Ok(data));
        }
        if let Ok(request) = AggregationJobContinueReq::decode_as(dialect, data) {
            assert_eq!(request.encode_as(dialect).as_deref(), Ok(data));
        }
        if let Ok(answer) = AggregationJobResp::decode_as(dialect, data) {
            assert_eq!(answer.encode_as(dialect).as_deref(), Ok(data));
        }
    }
}

/// A key that never changes.
fn key() -> &'static HpkeKey {
    static KEY: OnceLock<HpkeKey> = OnceLock::new();
    KEY.get_or_init(|| HpkeKey::generate(42).expect("a key"))
}

/// A public key, which can be encrypted to or not.
fn keys(data: &[u8]) {
    same::<HpkeConfig<'_>>(data);
    if let Ok(list) = HpkeConfigList::decode(data)
        && let Ok(chosen) = list.supported()
    {
        assert!(chosen.seal(b"info", b"aad", b"text").is_ok(), "{chosen:?}");
    }
    let Ok(config) = HpkeConfig::decode(data) else { return };
    if let Ok(sealed) = config.seal(b"info", b"aad", b"text") {
        assert_eq!(HpkeCiphertext::decode(&sealed).map(|sealed| sealed.config_id), Ok(config.id));
    }
    assert!(HpkeKey::new(data, &key().private_key()).is_err());
}

/// Reports, whose shares nobody here can open.
fn shares(data: &[u8]) {
    same::<UploadRequest<'_>>(data);
    same::<HpkeCiphertext<'_>>(data);
    if let Ok(ciphertext) = HpkeCiphertext::decode(data) {
        assert!(key().open(b"info", b"aad", &ciphertext).is_none());
    }
    opened(data);
    let Ok(upload) = UploadRequest::decode(data) else { return };
    let task = task();
    for report in upload.reports.iter().take(3) {
        let share = report.share(Role::Leader);
        assert_eq!(share.report_metadata, report.report_metadata);
        assert!(task.open_input_share(Role::Leader, &[key()], &share).is_err());
    }
}

/// A task that never changes.
fn task() -> Task {
    let configuration = TaskConfiguration {
        task_info: b"fuzz",
        leader_aggregator_endpoint: b"https://leader.example/",
        helper_aggregator_endpoint: b"https://helper.example/",
        time_precision: 1,
        min_batch_size: 1,
        batch_mode: BatchMode::TimeInterval,
        batch_config: &[],
        vdaf_type: 1,
        vdaf_configuration: &[],
        extensions: Vec::new(),
    };
    Task::of([1; 32], configuration, None).expect("a task")
}

/// Whoever knows a public key encrypts what it likes, and it is opened: only then it is read.
fn opened(data: &[u8]) {
    // Encryption takes long: what cannot be read is not worth it.
    let Ok(read) = PlaintextInputShare::decode(data) else { return };
    let task = task();
    let to = HpkeConfig::decode(key().config()).expect("a configuration");
    let report_metadata =
        ReportMetadata { report_id: [5; 16], time: 7, public_extensions: Vec::new() };
    let aad = InputShareAad {
        task_id: *task.id(),
        task_configuration: task.parameters().expect("it was read"),
        report_metadata: report_metadata.clone(),
        public_share: b"public",
    };
    let aad = aad.encode().expect("it is short");
    let mut info = format!("{VERSION} input share").into_bytes();
    info.extend([Role::Client.code(), Role::Leader.code()]);
    let sealed = to.seal(&info, &aad, data).expect("any bytes can be sealed");
    let encrypted_input_share = HpkeCiphertext::decode(&sealed).expect("it was written");
    let share = ReportShare { report_metadata, public_share: b"public", encrypted_input_share };
    match task.open_input_share(Role::Leader, &[key()], &share) {
        Ok(payload) => assert!(read.private_extensions.is_empty() && payload == read.payload),
        Err(error) => {
            assert!(!read.private_extensions.is_empty());
            assert_eq!(error, ReportError::InvalidMessage);
        }
    }
    let asked =
        CollectionJobReq { query: Query::LeaderSelected, agg_param: &[], extensions: Vec::new() };
    let sealed = task.seal_aggregate_share(Role::Helper, &to, &asked, data).expect("any bytes");
    let sealed = HpkeCiphertext::decode(&sealed).expect("it was written");
    let share = task.open_aggregate_share(Role::Helper, key(), &asked, &sealed);
    assert_eq!(share.as_deref(), Ok(data));
    assert!(task.open_aggregate_share(Role::Leader, key(), &asked, &sealed).is_err());
}
