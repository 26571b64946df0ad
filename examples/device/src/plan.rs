//! Plan files. Their layout is described in `docs/reference/formats.rst`.

use std::time::Duration;

use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use turnout_core::frequency::Selection;
use turnout_core::parameters::Probability;

use crate::Refusal;
use crate::members::Members;
use crate::noise::Noise;
use crate::question::{self, Answers, Question};
use crate::reports::Report;

/// What is signed comes behind these bytes, so that no other signature of the key can be taken for it.
const SIGNED: &[u8] = b"turnout-plan-file v1\0";

/// The largest serial: what every reader of JSON takes for an integer.
const MOST_SERIAL: u64 = (1 << 53) - 1;

/// The last moment at which a plan can expire: the end of the year 9999, in seconds since 1970.
const MOST_EXPIRES: u64 = 253_402_300_799;

/// What says how the rest is to be read.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
}

/// A plan file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    /// The text as it stands: this is what the fingerprint is of.
    #[serde(borrow)]
    plan: &'a RawValue,
    fingerprint: String,
    #[serde(default, deserialize_with = "present")]
    signature: Option<Signed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    algorithm: String,
    public_key: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<'a> {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    #[serde(borrow)]
    oracle: Members<'a>,
    participation: Participation,
    #[serde(default, deserialize_with = "present")]
    serial: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    expires: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Participation {
    kind: String,
    rate: Option<f64>,
}

/// A plan that was checked.
pub(crate) struct Plan {
    /// The answers that can be given, and how they are reported.
    question: Box<dyn Question>,
    /// The probability of taking part; certain if there is none.
    rate: Option<Probability>,
    serial: Option<u64>,
    expires: Option<u64>,
    fingerprint: String,
}

impl Plan {
    /// Reads the text of a plan file and checks everything that it says; with a public key also that
    /// it is signed by it.
    pub(crate) fn read(text: &str, public_key: Option<&str>) -> Result<Self, Refusal> {
        if !text.is_ascii() {
            return Err("not a plan file: it holds other bytes than ASCII".to_owned());
        }
        check_head(text, "turnout-plan-file")?;
        let file: File =
            serde_json::from_str(text).map_err(|error| format!("not a plan file: {error}"))?;
        let digest: [u8; 32] = Sha256::digest(file.plan.get()).into();
        if bytes(&file.fingerprint) != Some(digest) {
            return Err("the plan is not the one of its fingerprint: the file was altered or \
                 formatted anew"
                .to_owned());
        }
        check_signature(file.signature.as_ref(), &digest, public_key)?;
        Self::of(file.plan.get(), file.fingerprint)
    }

    fn of(text: &str, fingerprint: String) -> Result<Self, Refusal> {
        check_head(text, "turnout-plan")?;
        let Text { oracle, participation, serial, expires, .. } =
            serde_json::from_str(text).map_err(|error| format!("not a plan: {error}"))?;
        if serial.is_some_and(|serial| serial > MOST_SERIAL) {
            return Err(format!("the serial must be at most {MOST_SERIAL}"));
        }
        if expires.is_some_and(|expires| expires > MOST_EXPIRES) {
            return Err(format!("the plan must expire at {MOST_EXPIRES} at the latest"));
        }
        let question = question::read(oracle)?;
        Ok(Self { question, rate: rate(&participation)?, serial, expires, fingerprint })
    }

    /// Refuses a plan that has expired by now, in seconds since 1970, or that is older than one that
    /// is known.
    pub(crate) fn check_current(
        &self,
        now: Duration,
        least_serial: Option<u64>,
    ) -> Result<(), Refusal> {
        if let Some(expires) = self.expires.filter(|&expires| now.as_secs() >= expires) {
            return Err(format!("the plan expired {expires} seconds after the start of 1970"));
        }
        match (self.serial, least_serial) {
            (Some(serial), Some(least)) if serial < least => {
                Err(format!("the plan has serial {serial}, expected {least} or a later one"))
            }
            (None, Some(least)) => {
                Err(format!("the plan has no serial, expected {least} or a later one"))
            }
            _ => Ok(()),
        }
    }

    /// The reports of those nodes that take part, in the order of the nodes.
    pub(crate) fn reports(
        &self,
        answers: Answers<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        let selection = self.rate.map_or_else(Selection::everyone, Selection::bernoulli);
        self.question.reports(answers, &selection, noise)
    }

    /// The line that a device sends; the nonce is the message's own.
    pub(crate) fn message(&self, report: &Report, nonce: [u8; 16]) -> String {
        let plan = &self.fingerprint;
        let nonce = u128::from_be_bytes(nonce);
        format!(
            r#"{{"format":"turnout-report","version":1,"plan":"{plan}","nonce":"{nonce:032x}","report":{report}}}"#
        )
    }
}

/// A member that may be missing, but is not null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    given: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(given).map(Some)
}

fn check_head(text: &str, format: &str) -> Result<(), Refusal> {
    match serde_json::from_str(text) {
        Ok(Head { format: found, version: 1 }) if found == format => Ok(()),
        Ok(Head { format: found, version }) if found == format => {
            Err(format!("{format} of version {version}; this program reads version 1"))
        }
        Ok(Head { .. }) => Err(format!("not a {format}: it says another format")),
        Err(error) => Err(format!("not a {format}: {error}")),
    }
}

fn check_signature(
    signature: Option<&Signed>,
    fingerprint: &[u8; 32],
    public_key: Option<&str>,
) -> Result<(), Refusal> {
    let wanted = public_key
        .map(|key| bytes::<32>(&key.to_lowercase()).ok_or("--public-key must have 64 hex digits"))
        .transpose()?;
    let Some(signature) = signature else {
        return match wanted {
            None => Ok(()),
            Some(_) => Err("the plan is not signed".to_owned()),
        };
    };
    let signer = bytes::<32>(&signature.public_key);
    if wanted.is_some() && wanted != signer {
        return Err(format!("the plan is signed by another key, {}", signature.public_key));
    }
    let message = [SIGNED, fingerprint].concat();
    let valid = signature.algorithm == "ed25519"
        && signer.and_then(|key| VerifyingKey::from_bytes(&key).ok()).is_some_and(|key| {
            bytes::<64>(&signature.value).is_some_and(|value| {
                key.verify_strict(&message, &Signature::from_bytes(&value)).is_ok()
            })
        });
    if valid { Ok(()) } else { Err("the signature of the plan is not valid".to_owned()) }
}

fn rate(participation: &Participation) -> Result<Option<Probability>, Refusal> {
    match (participation.kind.as_str(), participation.rate) {
        ("everyone", None) => Ok(None),
        ("bernoulli", Some(rate)) => {
            Probability::new(rate).map(Some).map_err(|error| error.to_string())
        }
        ("personalized", None) => Err("participation is personal: this device does not know its \
             probability"
            .to_owned()),
        (kind, _) => Err(format!("not a participation: {kind}")),
    }
}

/// The bytes of lower-case hexadecimal digits.
fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut found = [0; N];
    for (byte, &[high, low]) in found.iter_mut().zip(pairs) {
        *byte = (digit(high)? << 4) | digit(low)?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::Layout;

    /// Written by Python, signed by the key of the bytes 0 to 31.
    const FILE: &str = r#"{
  "format": "turnout-plan-file",
  "version": 1,
  "plan": {"format":"turnout-plan","oracle":{"domain":{"labels":["no","yes","\u00e9"]},"epsilon":0.1,"name":"subset_selection","subset_size":2},"participation":{"kind":"bernoulli","rate":1e-07},"version":1},
  "fingerprint": "b74c66b05bd5543048699c3c73f3b8598bd4b0b890b29a2630b86a249702586d",
  "signature": {"algorithm":"ed25519","public_key":"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8","value":"e54be5dc3ff843859e95082433dfad76b96ba5b92a69f0949366749a1092131735d35442382c860ecb84e69561de9a1a30fdceed93585ea66ba95de461684602"}
}
"#;

    const KEY: &str = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";

    fn refused(text: &str, words: &str) {
        assert_ne!(text, FILE);
        let found = Plan::read(text, Some(KEY));
        assert!(found.is_err_and(|reason| reason.contains(words)), "{text}");
    }

    #[test]
    fn a_file_of_python_is_read() -> Result<(), Refusal> {
        for key in [None, Some(KEY), Some(KEY.to_uppercase().as_str())] {
            let plan = Plan::read(FILE, key)?;
            assert_eq!(plan.rate.map(|rate| rate.get().to_bits()), Some(1e-7_f64.to_bits()));
            let answers = |line| Answers { lines: line, codes: false };
            assert_eq!(plan.reports(answers(&["\u{e9}"]), Noise::Seed(1)), Ok(Vec::new()));
            assert!(plan.reports(answers(&["e"]), Noise::Fresh).is_err());
            let mut nonce = [0; 16];
            nonce[1] = 0xab;
            let layout = Layout { bytes: 1, width: None };
            let report = Report { words: vec![5], layout };
            let ending = r#"586d","nonce":"00ab0000000000000000000000000000","report":5}"#;
            assert!(plan.message(&report, nonce).ends_with(ending));
            assert_eq!((plan.serial, plan.expires), (None, None));
            assert_eq!(plan.check_current(Duration::MAX, None), Ok(()));
            assert!(plan.check_current(Duration::ZERO, Some(0)).is_err());
        }
        Ok(())
    }

    #[test]
    fn a_plan_has_its_time() -> Result<(), Refusal> {
        let text = |serial: &str, expires: &str| {
            let changed = format!(r#""serial":{serial},"expires":{expires},"version":1}}"#);
            let start = FILE.find(r#"{"format":"turnout-plan","#).unwrap_or(0);
            let end = FILE.find(",\n  \"fingerprint").unwrap_or(0);
            FILE.get(start..end).unwrap_or("").replace(r#""version":1}"#, &changed)
        };
        let plan = Plan::of(&text("7", "1000"), String::new())?;
        for (now, least, fine) in [
            (999_999, None, true),
            (999_999, Some(7), true),
            (0, Some(8), false),
            (1_000_000, None, false),
            (2_000_000, Some(7), false),
        ] {
            let found = plan.check_current(Duration::from_millis(now), least);
            assert_eq!(found.is_ok(), fine, "{now} {least:?}");
        }
        assert!(Plan::of(&text("9007199254740991", "253402300799"), String::new()).is_ok());
        for (serial, expires) in [
            ("9007199254740992", "1"),
            ("1", "253402300800"),
            ("-1", "1"),
            ("1", "-1"),
            ("null", "1"),
            ("1", "null"),
            ("1.0", "1"),
            ("\"1\"", "1"),
        ] {
            assert!(Plan::of(&text(serial, expires), String::new()).is_err(), "{serial} {expires}");
        }
        Ok(())
    }

    #[test]
    fn what_was_altered_is_refused() {
        refused(&FILE.replace("0.1,", "9.1,"), "altered or formatted anew");
        refused(&FILE.replace("0.1,", "0.10,"), "altered or formatted anew");
        refused(&FILE.replace("\"b74c", "\"B74C"), "altered or formatted anew");
        refused(&FILE.replace("\"version\": 1", "\"version\": 2"), "of version 2");
        refused(&FILE.replace("-file\"", "-document\""), "says another format");
        refused(&FILE.replace("\"fingerprint\"", "\"finger\""), "unknown field");
        refused(
            &FILE.replace("\"signature\": {", "\"signature\": null, \"x\": {"),
            "not a plan file",
        );
        refused(&FILE.replace("e54be5dc", "e54be5dd"), "signature of the plan is not valid");
        refused(&FILE.replace("\"ed25519\"", "\"ed448\""), "signature of the plan is not valid");
        refused(&FILE.replace("\"03a1", "\"03a2"), "signed by another key");
        refused(&FILE.replace("\"version\": 1,", "\"version\": 1, \"version\": 1,"), "duplicate");
        refused(&format!("{FILE}{FILE}"), "not a turnout-plan-file");
        let (unsigned, _) = FILE.split_at(FILE.find(",\n  \"signature").unwrap_or(0));
        refused(&format!("{unsigned}}}"), "not signed");
        assert!(Plan::read(&format!("{unsigned}}}"), None).is_ok());
    }

    #[test]
    fn numbers_are_read_to_the_last_bit() -> Result<(), serde_json::Error> {
        // A generator of bit patterns; text of the shortest digits, and of all of them.
        let mut state = 1_u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = f64::from_bits(state);
            if number.is_finite() {
                for text in [format!("{number:?}"), format!("{number:.25e}")] {
                    let found: f64 = serde_json::from_str(&text)?;
                    assert_eq!(found.to_bits(), number.to_bits(), "{text}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn hexadecimal_digits_are_lower_case_and_of_the_right_number() {
        assert_eq!(bytes("00ff1a"), Some([0, 255, 26]));
        for digits in ["00ff1", "00ff1a0", "00fF1a", "00ff1g", "00 f1a", ""] {
            assert_eq!(bytes::<3>(digits), None, "{digits}");
        }
    }
}
