//! What the core makes of plans, answers and seeds: messages that other programs compare theirs with.
//!
//! `cases.tsv` has a name, a plan and answers on each line; `messages.jsonl` the messages. Words are those
//! of AES-256 in counter mode under a seed, as `turnout_core::random::AesStreams` says.

use std::fmt::Write as _;
use std::path::PathBuf;

use turnout_core::device::{Device, Error, Noise, PermanentDevice, Written};
use turnout_core::wire::Plan;

/// A failure, in words.
type Failure = Box<dyn std::error::Error>;

const NONCE: [u8; 16] = [0; 16];

/// Each answer is given to so many devices, of different seeds.
const SEEDS: u64 = 3;

fn place(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("rust/tests/vectors").join(name)
}

/// The line that an answer in JSON stands for: a text is written without its quotes.
fn line_of(answer: &str) -> Result<&str, Failure> {
    match answer.strip_prefix('"') {
        None => Ok(answer),
        Some(_) if answer.contains('\\') => Err("texts of cases have no backslashes".into()),
        Some(rest) => Ok(rest.strip_suffix('"').unwrap_or(rest)),
    }
}

/// The messages of answers, with a nonce of zeros: of each answer one for each seed, or null.
fn fresh(plan: &Plan, answers: &[&str]) -> Result<Vec<Option<String>>, Failure> {
    let device = Device::new(plan)?;
    let mut made = Vec::new();
    for (number, answer) in (0..).zip(answers) {
        let answer = device.answers([line_of(answer)?], Written::Labels)?;
        for seed in 0..SEEDS {
            let report = device.reports(&answer, Noise::Seed(SEEDS * number + seed))?;
            made.push(if report.is_empty() {
                None
            } else {
                Some(device.writer().write(NONCE, &[], &report).ok_or("no report")?)
            });
        }
    }
    Ok(made)
}

/// The messages of a person's permanent answers, and the state after the last.
fn permanent(plan: &Plan, answers: &[&str]) -> Result<(Vec<Option<String>>, String), Failure> {
    let secret = std::array::from_fn(|byte| u8::try_from(byte).unwrap_or(0));
    let mut device = PermanentDevice::with_secret(plan, secret, 3)?;
    let mut made = Vec::new();
    for (number, answer) in (0..).zip(answers) {
        let answer = device.answer(line_of(answer)?, Written::Labels)?;
        for seed in 0..SEEDS {
            let message = device.message(&answer, &[], Noise::Seed(SEEDS * number + seed))?;
            made.push(message.map(|message| with_zeros(&message)).transpose()?);
        }
    }
    Ok((made, device.state()))
}

/// A message with a nonce of zeros.
fn with_zeros(message: &str) -> Result<String, Failure> {
    let (head, rest) = message.split_once(r#""nonce":""#).ok_or("no nonce")?;
    let (_, rest) = rest.split_at_checked(32).ok_or("a short nonce")?;
    Ok(format!(r#"{head}"nonce":"{}{rest}"#, "0".repeat(32)))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

/// The line of JSON of a case.
fn written(case: &str) -> Result<String, Failure> {
    let mut parts = case.split('\t');
    let (name, text) = (parts.next().ok_or("no name")?, parts.next().ok_or("no plan")?);
    let answers: Vec<&str> = parts.collect();
    let plan = Plan::read(text)?;
    let (messages, state) = match fresh(&plan, &answers) {
        Err(error) if error.downcast_ref() == Some(&Error::Permanent) => {
            let (messages, state) = permanent(&plan, &answers)?;
            (messages, Some(state))
        }
        found => (found?, None),
    };
    let messages: Vec<String> = messages
        .iter()
        .map(|message| message.as_deref().map_or_else(|| "null".to_owned(), quoted))
        .collect();
    let mut line = format!(
        r#"{{"name":"{name}","plan":{text},"seeds":{SEEDS},"answers":[{}],"messages":[{}]"#,
        answers.join(","),
        messages.join(",")
    );
    if let Some(state) = state {
        write!(line, r#","state":{}"#, quoted(&state))?;
    }
    line.push('}');
    Ok(line)
}

#[test]
fn messages_of_plans_answers_and_seeds_stay_what_they_are() -> Result<(), Failure> {
    let cases = std::fs::read_to_string(place("cases.tsv"))?;
    let mut all = String::new();
    for case in cases.lines() {
        let line = written(case).map_err(|error| format!("{case}: {error}"))?;
        all.push_str(&line);
        all.push('\n');
    }
    if std::env::var_os("WRITE_VECTORS").is_some() {
        std::fs::write(place("messages.jsonl"), &all)?;
    }
    let kept = std::fs::read_to_string(place("messages.jsonl"))?;
    for (made, kept) in all.lines().zip(kept.lines()) {
        assert_eq!(made, kept, "the core makes other messages: see the top of this file");
    }
    assert_eq!(all.len(), kept.len());
    Ok(())
}
