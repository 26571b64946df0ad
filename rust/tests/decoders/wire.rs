//! What the wire and a device read that comes from elsewhere, on any bytes: plans, messages, states.

#![expect(clippy::expect_used, reason = "a target panics where the core breaks its word")]

use sha2::{Digest, Sha256};
use turnout_core::device::{Device, Noise, PermanentDevice, Written};
use turnout_core::wire::{
    Fingerprint, Groups, Integer, Layout, MessageReader, MessageWriter, Participation, Plan,
    PlanFile, ReportHeader, SEAL, SigningKey, StoredGroups, StoredTally,
};

use super::bodies::Target;

/// All targets by their names.
pub(crate) const TARGETS: [(&str, Target); 5] = [
    ("plans", plans),
    ("messages", messages),
    ("headers", headers),
    ("tallies", tallies),
    ("states", states),
];

/// The longest report that is made here.
const LONGEST: usize = 1 << 16;

/// A plan file, a plan, or a question; and what a device makes of it.
pub(crate) fn plans(data: &[u8]) {
    if let Ok(file) = PlanFile::read(data, None) {
        assert!(data.is_ascii());
        check_plan(file.plan());
    }
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(plan) = Plan::read(text) {
        assert_eq!(plan.text(), text);
        check_plan(&plan);
    }
    if let Ok(plan) = Plan::new(text, Participation::Everyone) {
        check_plan(&plan);
        // Halves of surrogate pairs are no text of a file.
        if let Ok(signed) = PlanFile::write(&plan, Some(&SigningKey::from_bytes(&[7; 32]))) {
            let read = PlanFile::read(signed.as_bytes(), None).map(PlanFile::into_plan);
            assert_eq!(read, Ok(plan));
        }
    }
}

/// A plan is read as what it was written as, and answered or refused.
fn check_plan(plan: &Plan) {
    assert_eq!(Plan::read(plan.text()).as_ref(), Ok(plan));
    let group: Vec<u32> = vec![0; plan.groups().len()];
    if let Ok(device) = Device::new(plan) {
        let layout = device.layout();
        if layout.bytes() > LONGEST || device.columns() > LONGEST {
            return;
        }
        let zeros = format!("[{}]", vec!["0"; device.columns()].join(","));
        for (line, written) in [
            ("0", Written::Codes),
            ("0", Written::Labels),
            (&*zeros, Written::Codes),
            (&*zeros, Written::Labels),
        ] {
            let Ok(answer) = device.answers([line], written) else { continue };
            let seeded = |answer| device.reports(answer, Noise::Seed(7));
            let report = seeded(&answer).unwrap_or_default();
            assert!(report.is_empty() || report.len() == layout.bytes());
            assert_eq!(seeded(&answer).as_ref(), Ok(&report));
            let message = device.message(&answer, &group, Noise::Seed(7));
            let made = message.expect("a report was made");
            assert_eq!(made.is_none(), report.is_empty());
            let Some(message) = made else { continue };
            let mut found = vec![0; layout.bytes()];
            let reader = MessageReader::new([plan], layout);
            let read = reader.read(message.as_bytes(), &mut found, &mut group.clone());
            assert!(read.is_ok() && found == report, "{message}");
        }
    }
    if let Ok(mut device) = PermanentDevice::new(plan, 1)
        && let Ok(answer) = device.answer("0", Written::Codes)
    {
        assert!(device.message(&answer, &group, Noise::Fresh).is_ok());
        let state = device.state();
        assert_eq!(PermanentDevice::restored(plan, &state).map(|again| again.state()), Ok(state));
    }
}

/// A message for readers of every width; what is read is written as the same.
pub(crate) fn messages(data: &[u8]) {
    let groups = r#"[{"column":"a","values":["n",null,1.5]},{"column":"b","values":[1,2]}]"#;
    let groups = Groups::read(groups).unwrap_or_default();
    let plans = ["0".repeat(64), "f".repeat(64)]
        .map(|digits| Fingerprint::from_hex(&digits).expect("64 digits"));
    let each = [(plans[0], Groups::default()), (plans[1], groups)];
    for bytes in [1, 2, 4, 8] {
        for signed in [false, true] {
            let integer = Integer::new(bytes, signed).expect("a width");
            for layout in [Layout::one(integer), Layout::row(integer, 3)] {
                let reader = MessageReader::of(each.clone(), layout);
                let (mut report, mut group) = (vec![0; layout.bytes()], vec![0; reader.columns()]);
                let Ok(envelope) = reader.read(data, &mut report, &mut group) else { continue };
                let (plan, groups) = each[envelope.plan].clone();
                group.truncate(groups.len());
                let writer = MessageWriter::of(plan, groups, layout);
                let written = writer.write(envelope.nonce, &group, &report).expect("it was read");
                let (mut again, mut place) = (vec![0; layout.bytes()], vec![0; reader.columns()]);
                let read = reader.read(written.as_bytes(), &mut again, &mut place);
                assert!(read == Ok(envelope) && again == report && place.starts_with(&group));
            }
        }
    }
}

/// The header of a report file.
pub(crate) fn headers(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(header) = ReportHeader::read(text) else { return };
    let written = header.text();
    assert!(!written.contains(SEAL), "{written}");
    assert_eq!(ReportHeader::read(&written), Ok(header));
}

/// A stored tally, or one by groups. What is given is its beginning, without the checksum, which nobody
/// finds by chance.
pub(crate) fn tallies(data: &[u8]) {
    let sealed = [data, &Sha256::digest(data)].concat();
    if let Ok(tally) = StoredTally::read(&sealed) {
        let written = tally.to_bytes().expect("it was read");
        assert_eq!(StoredTally::read(&written), Ok(tally));
    }
    if let Ok(tally) = StoredGroups::read(&sealed) {
        let written = tally.to_bytes().expect("it was read");
        assert_eq!(StoredGroups::read(&written), Ok(tally));
    }
}

/// The state of permanent answers.
pub(crate) fn states(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    for per in ["answer", "phase"] {
        let question = format!(
            r#"{{"domain":{{"integers":5}},"epsilon":4.0,"first_epsilon":1.0,"instantaneous":"direct_encoding","name":"memoized","permanent":"direct_encoding","permanent_per":"{per}","question":""}}"#
        );
        let plan = Plan::new(&question, Participation::Everyone).expect("a plan");
        let Ok(device) = PermanentDevice::restored(&plan, text) else { continue };
        assert_eq!(device.state(), text);
        assert!(device.values_given() <= device.most_values());
    }
}
