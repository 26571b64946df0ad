//! Plan files. Their layout is described in `docs/formats.rst`.

use std::collections::BTreeMap;

use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use turnout::frequency::Selection;
use turnout::parameters::Probability;
use turnout::random::AesStreams;

use crate::Refusal;
use crate::labels::Labels;
use crate::oracles::{self, Description, Nodes, Parameters, Report};

/// What is signed comes behind these bytes, so that no other signature of the key can be taken for it.
const SIGNED: &[u8] = b"turnout-plan-file v1\0";

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
    oracle: BTreeMap<String, &'a RawValue>,
    participation: Participation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Participation {
    kind: String,
    rate: Option<f64>,
}

/// A plan that was checked.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The answers that can be given.
    pub(crate) labels: Labels,
    oracle: Description,
    /// The probability of taking part; certain if there is none.
    rate: Option<Probability>,
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
        let Text { mut oracle, participation, .. } =
            serde_json::from_str(text).map_err(|error| format!("not a plan: {error}"))?;
        let mut member = |name: &str| {
            oracle
                .remove(name)
                .map(RawValue::get)
                .ok_or_else(|| format!("the oracle has no {name}"))
        };
        let wrong = |error: serde_json::Error| format!("not an oracle: {error}");
        let name: String = serde_json::from_str(member("name")?).map_err(wrong)?;
        let epsilon = serde_json::from_str(member("epsilon")?).map_err(wrong)?;
        let labels = Labels::read(member("domain")?)?;
        let parameters: Result<BTreeMap<String, u64>, Refusal> = oracle
            .into_iter()
            .map(|(parameter, value)| match serde_json::from_str(value.get()) {
                Ok(value) => Ok((parameter, value)),
                Err(_) => Err(format!("this device does not have the {parameter} of {name}")),
            })
            .collect();
        let oracle = Description { name, epsilon, parameters: Parameters(parameters?) };
        Ok(Self { labels, oracle, rate: rate(&participation)?, fingerprint })
    }

    /// The reports of those nodes that take part, in the order of the nodes.
    pub(crate) fn reports(
        &self,
        codes: &[u32],
        streams: &AesStreams,
    ) -> Result<Vec<Report>, Refusal> {
        let selection = self.rate.map_or_else(Selection::everyone, Selection::bernoulli);
        let nodes = Nodes { codes, selection: &selection, streams };
        oracles::reports(&self.oracle, self.labels.size(), nodes)
    }

    /// The line that a device sends.
    pub(crate) fn message(&self, report: &Report) -> String {
        let plan = &self.fingerprint;
        format!(r#"{{"format":"turnout-report","version":1,"plan":"{plan}","report":{report}}}"#)
    }
}

/// A member that may be missing, but is not null.
fn present<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Signed>, D::Error> {
    Signed::deserialize(given).map(Some)
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
