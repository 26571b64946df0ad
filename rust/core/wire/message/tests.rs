use super::*;
use crate::wire::{Integer, Participation};

const NONCE: [u8; 16] = [0xab; 16];

fn plans() -> Result<[Plan; 3], Error> {
    let plan = Plan::new(r#"{"name":"any"}"#, Participation::Everyone)?;
    let groups = Groups::read(
        r#"[{"column":"region","values":["n","s"]},{"column":"year","values":[2025,2026]}]"#,
    );
    let other = plan.clone().with_serial(1)?;
    Ok([plan.clone(), other, plan.with_groups(groups.unwrap_or_default())?])
}

/// The width of integers, and whether they are signed.
type Kind = (usize, bool);

/// Texts of reports, their bytes, the kind of their integers, and how many there are.
const WRITTEN: [(&str, &[u8], Kind, Option<usize>); 8] = [
    ("0", &[0], (1, false), None),
    ("255", &[255], (1, false), None),
    ("-1", &[255], (1, true), None),
    ("-32768", &[0, 128], (2, true), None),
    ("18446744073709551615", &[255; 8], (8, false), None),
    ("-9223372036854775808", &[0, 0, 0, 0, 0, 0, 0, 128], (8, true), None),
    (r#""01abff""#, &[1, 0xab, 255], (1, false), Some(3)),
    (r#""""#, &[], (4, false), Some(0)),
];

fn layout((bytes, signed): (usize, bool), width: Option<usize>) -> Layout {
    let integer = Integer::new(bytes, signed).unwrap_or(Integer::narrowest(1));
    width.map_or(Layout::one(integer), |width| Layout::row(integer, width))
}

#[test]
fn what_is_written_is_read() -> Result<(), Error> {
    let plans = plans()?;
    for (text, bytes, integer, width) in WRITTEN {
        let layout = layout(integer, width);
        let reader = MessageReader::new(&plans, layout);
        for (place, plan) in plans.iter().enumerate() {
            let writer = MessageWriter::new(plan, layout);
            let group: &[u32] = if place == 2 { &[1, 0] } else { &[] };
            let message = writer.write(NONCE, group, bytes).unwrap_or_default();
            assert!(message.ends_with(&format!(r#""report":{text}}}"#)), "{message}");
            let (mut report, mut found) = (vec![9; bytes.len()], [9; 2]);
            let envelope = reader.read(message.as_bytes(), &mut report, &mut found);
            assert_eq!(envelope, Ok(Envelope { plan: place, nonce: NONCE }));
            assert_eq!((&report[..], &found[..group.len()]), (bytes, group));
        }
    }
    Ok(())
}

#[test]
fn what_is_read_as_written_is_read_in_any_form_too() -> Result<(), Error> {
    let plans = plans()?;
    let mut fast = 0;
    for (_, bytes, integer, width) in WRITTEN {
        let layout = layout(integer, width);
        let reader = MessageReader::new(&plans, layout);
        let message = MessageWriter::new(&plans[0], layout).write(NONCE, &[], bytes);
        let message = message.unwrap_or_default().into_bytes();
        for place in 0..=message.len() {
            for other in [&b""[..], b"0", b"1", b"-", b"+", b"f", b"F", b"\"", b"}", b" ", b"\xff"]
            {
                for gone in 0..=1 {
                    let end = message.get(place + gone..).unwrap_or_default();
                    let text = [&message[..place], other, end].concat();
                    let (mut report, mut again) = (vec![0; bytes.len()], vec![0; bytes.len()]);
                    if let Some(envelope) = reader.read_written(&text, &mut report) {
                        let any = reader.read_any(&text, &mut again, &mut [0; 2]);
                        assert_eq!((Ok(envelope), &report), (any, &again));
                        fast += 1;
                    }
                }
            }
        }
    }
    // What is written is, and what has other digits.
    assert!(fast > 1000, "{fast}");
    Ok(())
}

#[test]
fn other_messages_are_refused_by_their_kind() -> Result<(), Error> {
    let plans = plans()?;
    let layout = layout((1, false), None);
    let plain = MessageWriter::new(&plans[0], layout).write(NONCE, &[], &[7]).unwrap_or_default();
    let grouped =
        MessageWriter::new(&plans[2], layout).write(NONCE, &[0, 1], &[7]).unwrap_or_default();
    assert!(grouped.contains(r#""group":["n",2026]"#), "{grouped}");
    let reader = MessageReader::new([&plans[0], &plans[2]], layout);
    let read = |text: &str| reader.read(text.as_bytes(), &mut [0], &mut [0; 2]);
    assert!(read(&plain).is_ok() && read(&format!(" {} \n", plain.replace(',', " , "))).is_ok());
    for (message, old, new, kind) in [
        (&plain, "{", "[", RefusalKind::Malformed),
        (&plain, "turnout-report", "turnout-plan", RefusalKind::Malformed),
        (&plain, "\"version\":1", "\"version\":2,\"more\":1", RefusalKind::OtherVersion),
        (&plain, "\"version\":1", "\"version\":1.0", RefusalKind::OtherVersion),
        (&plain, "\"version\":1,", "", RefusalKind::Malformed),
        (&plain, "\"plan\"", "\"more\":1,\"plan\"", RefusalKind::Malformed),
        (&plain, "\"plan\":\"", "\"plan\":\"0", RefusalKind::OtherPlan),
        (&plain, "\"nonce\":\"ab", "\"nonce\":\"aB", RefusalKind::Malformed),
        (&plain, "\"nonce\":\"ab", "\"nonce\":\"", RefusalKind::Malformed),
        (&plain, "\"report\":7", "\"report\":256", RefusalKind::Malformed),
        (&plain, "\"report\":7", "\"report\":-1", RefusalKind::Malformed),
        (&plain, "\"report\":7", "\"report\":7.0", RefusalKind::Malformed),
        (&plain, "\"report\":7", "\"report\":\"7\"", RefusalKind::Malformed),
        (&plain, "\"report\":7", "\"report\":7,\"report\":7", RefusalKind::Malformed),
        (&plain, "\"report\":7", "\"group\":[\"n\",2026],\"report\":7", RefusalKind::Malformed),
        (&grouped, "\"group\":[\"n\",2026],", "", RefusalKind::Malformed),
        (&grouped, "\"n\"", "\"w\"", RefusalKind::Malformed),
        (&grouped, "[\"n\",2026]", "[\"n\"]", RefusalKind::Malformed),
    ] {
        let text = message.replacen(old, new, 1);
        assert_ne!(&text, message);
        assert_eq!(read(&text).map_err(|refusal| refusal.kind()), Err(kind), "{text}");
    }
    let other = MessageWriter::new(&plans[1], layout).write(NONCE, &[], &[7]).unwrap_or_default();
    assert!(matches!(read(&other), Err(Refusal::Plan(_))));
    assert_eq!(reader.read(b"\xff", &mut [0], &mut [0; 2]), Err(Refusal::NoMessage { bytes: 1 }));
    assert!(reader.read(plain.as_bytes(), &mut [0; 2], &mut []).is_err());
    Ok(())
}

#[test]
fn a_writer_wants_a_whole_report_and_a_group_of_the_plan() -> Result<(), Error> {
    let plans = plans()?;
    let layout = layout((2, false), Some(2));
    let [plain, _, grouped] = plans.each_ref().map(|plan| MessageWriter::new(plan, layout));
    assert!(plain.write(NONCE, &[], &[0; 4]).is_some());
    assert!(plain.write(NONCE, &[], &[0; 3]).is_none());
    assert!(plain.write(NONCE, &[0], &[0; 4]).is_none());
    assert!(grouped.write(NONCE, &[1, 1], &[0; 4]).is_some());
    assert!(grouped.write(NONCE, &[1], &[0; 4]).is_none());
    assert!(grouped.write(NONCE, &[2, 1], &[0; 4]).is_none());
    Ok(())
}
