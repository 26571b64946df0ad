//! Tasks, keys and shares; the encodings are tested by `rust/tests/dap`.

#![allow(clippy::unwrap_used)]

use super::*;

fn configuration() -> TaskConfiguration<'static> {
    TaskConfiguration {
        task_info: b"lunch",
        leader_aggregator_endpoint: b"https://leader.example/",
        helper_aggregator_endpoint: b"https://helper.example/",
        time_precision: 3600,
        min_batch_size: 100,
        batch_mode: BatchMode::TimeInterval,
        batch_config: &[],
        vdaf_type: 1,
        vdaf_configuration: &[],
        extensions: Vec::new(),
    }
}

fn task() -> Task {
    Task::of([7; 32], configuration(), Some(Interval::new(100, 10).unwrap())).unwrap()
}

fn new(time: u64) -> NewReport<'static> {
    NewReport { report_id: [3; 16], time, public_share: b"public", input_shares: [b"one", b"two"] }
}

struct Parties {
    leader: HpkeKey,
    helper: HpkeKey,
}

impl Parties {
    fn new() -> Self {
        Self { leader: HpkeKey::generate(1).unwrap(), helper: HpkeKey::generate(2).unwrap() }
    }

    fn upload(&self, reports: &[NewReport<'_>]) -> Vec<u8> {
        let leader = HpkeConfig::decode(self.leader.config()).unwrap();
        let helper = HpkeConfig::decode(self.helper.config()).unwrap();
        task().seal_reports(&leader, &helper, reports).unwrap()
    }
}

#[test]
fn each_aggregator_opens_its_own_share() {
    let parties = Parties::new();
    let upload = parties.upload(&[new(100), new(109)]);
    for report in &UploadRequest::decode(&upload).unwrap().reports {
        for (role, share) in [(Role::Leader, &b"one"[..]), (Role::Helper, b"two")] {
            let keys = [&parties.helper, &parties.leader];
            let found = task().open_input_share(role, &keys, &report.share(role));
            assert_eq!(found.as_deref(), Ok(share));
            let other = if role == Role::Leader { Role::Helper } else { Role::Leader };
            let found = task().open_input_share(other, &keys, &report.share(role));
            assert_eq!(found, Err(ReportError::HpkeDecryptError));
        }
    }
}

#[test]
fn a_share_is_bound_to_all_that_stands_beside_it() {
    let parties = Parties::new();
    let upload = parties.upload(&[new(105)]);
    let report = &UploadRequest::decode(&upload).unwrap().reports[0];
    let keys = [&parties.leader];
    let refused = |task: &Task, share: &ReportShare<'_>| {
        task.open_input_share(Role::Leader, &keys, share).unwrap_err()
    };
    let share = report.share(Role::Leader);
    let mut other = share.clone();
    other.report_metadata.report_id[0] ^= 1;
    assert_eq!(refused(&task(), &other), ReportError::HpkeDecryptError);
    let mut other = share.clone();
    other.report_metadata.time += 1;
    assert_eq!(refused(&task(), &other), ReportError::HpkeDecryptError);
    let mut other = share.clone();
    other.public_share = b"publik";
    assert_eq!(refused(&task(), &other), ReportError::HpkeDecryptError);
    let mut other = share.clone();
    other.encrypted_input_share.config_id = 9;
    assert_eq!(refused(&task(), &other), ReportError::HpkeDecryptError);

    let other = Task::new([8; 32], task().configuration()).unwrap();
    assert_eq!(refused(&other, &share), ReportError::HpkeDecryptError);
    let cheaper = TaskConfiguration { min_batch_size: 99, ..configuration() };
    let other = Task::of([7; 32], cheaper, None).unwrap();
    assert_eq!(refused(&other, &share), ReportError::HpkeDecryptError);
}

#[test]
fn reports_outside_of_the_task_or_with_extensions_are_refused() {
    let parties = Parties::new();
    let refused = |time: u64, extended: bool| {
        let upload = parties.upload(&[new(time)]);
        let mut share = UploadRequest::decode(&upload).unwrap().reports[0].share(Role::Leader);
        if extended {
            let extension = Extension { extension_type: 5, extension_data: b"" };
            share.report_metadata.public_extensions.push(extension);
        }
        task().open_input_share(Role::Leader, &[&parties.leader], &share).unwrap_err()
    };
    assert_eq!(refused(99, false), ReportError::TaskNotStarted);
    assert_eq!(refused(110, false), ReportError::TaskExpired);
    assert_eq!(refused(105, true), ReportError::InvalidMessage);
}

#[test]
fn an_aggregate_share_opens_for_its_request_and_its_sender() {
    let collector = HpkeKey::generate(5).unwrap();
    let config = HpkeConfig::decode(collector.config()).unwrap();
    let query = Query::TimeInterval(Interval::new(100, 5).unwrap());
    let request = CollectionJobReq { query, agg_param: &[], extensions: Vec::new() };
    let sealed = task().seal_aggregate_share(Role::Helper, &config, &request, b"sums").unwrap();
    let sealed = HpkeCiphertext::decode(&sealed).unwrap();
    let open = |role, request: &CollectionJobReq<'_>, key: &HpkeKey| {
        task().open_aggregate_share(role, key, request, &sealed)
    };
    assert_eq!(open(Role::Helper, &request, &collector).as_deref(), Ok(&b"sums"[..]));
    let refused = Err(Error::Sealed { what: "aggregate share" });
    assert_eq!(open(Role::Leader, &request, &collector), refused);
    assert_eq!(open(Role::Helper, &request, &HpkeKey::generate(5).unwrap()), refused);
    let other = CollectionJobReq { agg_param: b"x", ..request.clone() };
    assert_eq!(open(Role::Helper, &other, &collector), refused);
}

#[test]
fn a_task_that_nobody_can_take_part_in_is_refused() {
    let refused = |change: &dyn Fn(&mut TaskConfiguration<'static>)| {
        let mut configuration = configuration();
        change(&mut configuration);
        Task::new([0; 32], &configuration.encode().unwrap()).unwrap_err().to_string()
    };
    let unknown = Extension { extension_type: 2, extension_data: b"" };
    assert!(refused(&|one| one.extensions.push(unknown.clone())).contains("task_interval"));
    assert!(refused(&|one| one.time_precision = 0).contains("at least one second"));
    assert!(refused(&|one| one.helper_aggregator_endpoint = "https://ä/".as_bytes()).contains("ä"));
    assert!(refused(&|one| one.batch_config = b"x").contains("empty"));
    let twice = Extension { extension_type: 1, extension_data: &[0; 16] };
    assert!(refused(&|one| one.extensions = vec![twice.clone(); 2]).contains("order"));
    let endless = Extension { extension_type: 1, extension_data: &[255; 16] };
    assert!(refused(&|one| one.extensions = vec![endless.clone()]).contains("2^64"));
    for empty in [0, 1] {
        let mut configuration = configuration();
        let field = [&mut configuration.task_info, &mut configuration.leader_aggregator_endpoint];
        *field.into_iter().nth(empty).unwrap() = b"";
        assert!(matches!(configuration.encode(), Err(Error::Value { .. })));
    }
}

#[test]
fn nothing_secret_is_shown() {
    let key = HpkeKey::generate(1).unwrap();
    assert_eq!(format!("{key:?}"), "HpkeKey(config_id=1, secret)");
    assert_eq!(format!("{:?}", new(1)), "NewReport(secret)");
    let share = PlaintextInputShare { private_extensions: Vec::new(), payload: b"one" };
    assert_eq!(format!("{share:?}"), "PlaintextInputShare(secret)");
}

#[test]
fn a_batch_answers_only_queries_that_hold_it() {
    let times = |start, duration| Interval::new(start, duration).unwrap();
    let asked = Query::TimeInterval(times(10, 10));
    for (batch, answers) in [
        (times(10, 10), true),
        (times(12, 3), true),
        (times(9, 5), false),
        (times(15, 6), false),
        (times(20, 1), false),
    ] {
        assert_eq!(BatchSelector::TimeInterval(batch).answers(&asked), answers, "{batch:?}");
    }
    let chosen = BatchSelector::LeaderSelected([1; 32]);
    assert!(chosen.answers(&Query::LeaderSelected) && !chosen.answers(&asked));
    assert!(!BatchSelector::TimeInterval(times(10, 10)).answers(&Query::LeaderSelected));
}

#[test]
fn a_checksum_is_the_same_in_any_order() {
    let ids = [[1; 16], [2; 16], [3; 16]];
    let sum = |order: &[usize]| {
        let mut checksum = [0; 32];
        for index in order {
            add_to_checksum(&mut checksum, &ids[*index]);
        }
        checksum
    };
    assert_eq!(sum(&[0, 1, 2]), sum(&[2, 0, 1]));
    assert_eq!(sum(&[0, 1, 1]), sum(&[0]));
    assert_ne!(sum(&[0, 1]), sum(&[0, 2]));
}
