//! Plan files: a plan, its fingerprint, and who signed it. `docs/reference/formats.rst` has the layout.

use super::canonical::canonical;
use super::document::Document;
use super::error::{Error, shown};
use super::hex;
use super::json::Json;
use super::plan::{Fingerprint, Plan};
use super::signing::{PublicKey, SigningKey};

/// What is signed comes behind these bytes, so that no other signature of the key can be taken for it.
const SIGNED: &[u8; 21] = b"turnout-plan-file v1\0";

const FILE: Document = Document {
    word: "plan file",
    format: "turnout-plan-file",
    version: 1,
    members: &["fingerprint", "plan"],
    optional: &["signature"],
};

const ALGORITHM: &str = "ed25519";

/// The file that a server publishes for its devices: a plan, and who signed it.
///
/// ```
/// use turnout_core::wire::{Participation, Plan, PlanFile, SigningKey};
///
/// let question = r#"{"domain":{"integers":3},"epsilon":1.0,"name":"direct_encoding"}"#;
/// let plan = Plan::new(question, Participation::Everyone)?;
/// let key = SigningKey::from_bytes(&[7; 32]);
/// let text = PlanFile::write(&plan, Some(&key))?;
/// let file = PlanFile::read(text.as_bytes(), Some(&key.public_key()))?;
/// assert_eq!((file.plan(), file.signer()), (&plan, Some(key.public_key())));
/// assert!(PlanFile::read(text.replace("1.0", "9.0").as_bytes(), None).is_err());
/// # Ok::<(), turnout_core::wire::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PlanFile {
    plan: Plan,
    signer: Option<PublicKey>,
}

impl PlanFile {
    /// The JSON Schema (draft 2020-12) of a plan file.
    ///
    /// The schema leaves `#/$defs/oracle`, the questions, to programs that know them.
    /// [`read`](Self::read) refuses everything that the schema refuses, and more.
    pub const SCHEMA: &'static str = include_str!("plan_file.schema.json");

    /// Writes the file of a plan, and signs it if a key is given.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if the plan contains half of a surrogate pair, which not every device can
    /// read.
    pub fn write(plan: &Plan, key: Option<&SigningKey>) -> Result<String, Error> {
        let signature = |key: &SigningKey| (key.public_key(), key.sign(&Self::to_sign(plan)));
        Self::write_signed(plan, key.map(signature))
    }

    /// Returns the bytes that a signature of a plan signs, for a key that is kept elsewhere.
    #[must_use]
    pub fn to_sign(plan: &Plan) -> [u8; 53] {
        signed(plan.fingerprint())
    }

    /// Writes the file of a plan with a public key and a signature that was made elsewhere.
    ///
    /// # Errors
    ///
    /// Those of [`PlanFile::write`].
    pub fn write_signed(
        plan: &Plan,
        signature: Option<(PublicKey, [u8; 64])>,
    ) -> Result<String, Error> {
        unicode(&plan.json()?)?;
        let fingerprint = plan.fingerprint();
        let signature = signature.map_or_else(String::new, |(public_key, value)| {
            let value = hex::text(&value);
            format!(
                r#",
  "signature": {{"algorithm":"{ALGORITHM}","public_key":"{public_key}","value":"{value}"}}"#
            )
        });
        Ok(format!(
            r#"{{
  "format": "{}",
  "version": {},
  "plan": {},
  "fingerprint": "{fingerprint}"{signature}
}}
"#,
            FILE.format,
            FILE.version,
            plan.text()
        ))
    }

    /// Reads a file and checks everything in it. With a public key, it also checks that this key
    /// signed the file.
    ///
    /// Without a public key, it accepts any valid signature, or no signature. It also reads a plan
    /// that has expired.
    ///
    /// # Errors
    ///
    /// [`Error::Version`] for a later version of the file or of its plan; [`Error::Unsigned`],
    /// [`Error::Signer`] or [`Error::Signature`] if the signature is missing, made by another key,
    /// or invalid. The other errors if `data` is not a plan file or was altered.
    pub fn read(data: &[u8], public_key: Option<&PublicKey>) -> Result<Self, Error> {
        let ascii = || FILE.malformed("it holds other bytes than ASCII".to_owned());
        let text =
            core::str::from_utf8(data).ok().filter(|text| text.is_ascii()).ok_or_else(ascii)?;
        let json = FILE.read(text)?;
        let fingerprint = json.member("fingerprint");
        let stated =
            fingerprint.and_then(Json::text).and_then(|digits| Fingerprint::from_hex(&digits));
        let Some(stated) = stated else {
            return Err(FILE.value("fingerprint", "64 hexadecimal digits", fingerprint));
        };
        let Some(plan) = json.member("plan") else {
            return Err(FILE.value("plan", "a plan", None));
        };
        if canonical(plan) != plan.raw() {
            return Err(Error::NotCanonical("plan"));
        }
        unicode(plan)?;
        if Fingerprint::of(plan.raw()) != stated {
            return Err(Error::Fingerprint("plan"));
        }
        let signer = signer(json.member("signature"), stated, public_key)?;
        Ok(Self { plan: Plan::of(plan)?, signer })
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The key whose signature was checked, if there is one.
    #[must_use]
    pub const fn signer(&self) -> Option<PublicKey> {
        self.signer
    }

    /// Returns only the plan.
    #[must_use]
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}

/// Refuses halves of surrogate pairs.
fn unicode(plan: &Json<'_>) -> Result<(), Error> {
    let expected = "Unicode text, without half of a surrogate pair";
    if plan.is_unicode() { Ok(()) } else { Err(FILE.value("plan", expected, Some(plan))) }
}

/// What is signed for a plan.
fn signed(fingerprint: Fingerprint) -> [u8; 53] {
    let mut message = [0; 53];
    let (domain, rest) = message.split_at_mut(SIGNED.len());
    domain.copy_from_slice(SIGNED);
    rest.copy_from_slice(&fingerprint.to_bytes());
    message
}

fn signer(
    signature: Option<&Json<'_>>,
    fingerprint: Fingerprint,
    wanted: Option<&PublicKey>,
) -> Result<Option<PublicKey>, Error> {
    let Some(signature) = signature else {
        return wanted.map_or(Ok(None), |key| Err(Error::Unsigned { expected: key.to_string() }));
    };
    let text = |name| signature.member(name).and_then(Json::text);
    let known = signature.members().is_some_and(|members| members.len() == 3);
    let key = text("public_key").and_then(|digits| hex::read(&digits)).map(PublicKey::from_bytes);
    let value = text("value").and_then(|digits| hex::read(&digits));
    let (Some(key), Some(value), true, Some(ALGORITHM)) =
        (key, value, known, text("algorithm").as_deref())
    else {
        let reason = shown(signature.raw());
        return Err(Error::Malformed { document: "signature of a plan", reason });
    };
    if let Some(wanted) = wanted.filter(|&wanted| *wanted != key) {
        return Err(Error::Signer { found: key.to_string(), expected: wanted.to_string() });
    }
    if key.verifies(&signed(fingerprint), &value) { Ok(Some(key)) } else { Err(Error::Signature) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by Python, signed by the key of the bytes 0 to 31.
    const WRITTEN: &str = r#"{
  "format": "turnout-plan-file",
  "version": 1,
  "plan": {"format":"turnout-plan","oracle":{"domain":{"labels":["no","yes","\u00e9"]},"epsilon":0.1,"name":"subset_selection","subset_size":2},"participation":{"kind":"bernoulli","rate":1e-07},"version":1},
  "fingerprint": "b74c66b05bd5543048699c3c73f3b8598bd4b0b890b29a2630b86a249702586d",
  "signature": {"algorithm":"ed25519","public_key":"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8","value":"e54be5dc3ff843859e95082433dfad76b96ba5b92a69f0949366749a1092131735d35442382c860ecb84e69561de9a1a30fdceed93585ea66ba95de461684602"}
}
"#;

    fn key() -> SigningKey {
        SigningKey::from_bytes(&std::array::from_fn(|place| u8::try_from(place).unwrap_or(0)))
    }

    fn read(text: &str) -> Result<PlanFile, Error> {
        PlanFile::read(text.as_bytes(), Some(&key().public_key()))
    }

    #[test]
    fn a_file_of_python_is_read_and_written() -> Result<(), Error> {
        let file = read(WRITTEN)?;
        assert_eq!(file, PlanFile::read(WRITTEN.as_bytes(), None)?);
        let text = r#"{"kind":"bernoulli","rate":1e-7}"#;
        assert_eq!(file.plan().participation().to_string(), text);
        assert_eq!(PlanFile::write(file.plan(), Some(&key()))?, WRITTEN);
        let unsigned = PlanFile::write(file.plan(), None)?;
        assert_eq!(PlanFile::read(unsigned.as_bytes(), None)?.signer(), None);
        assert!(matches!(read(&unsigned), Err(Error::Unsigned { .. })));
        Ok(())
    }

    #[test]
    fn halves_of_surrogate_pairs_stand_in_no_file() -> Result<(), Error> {
        let question = r#"{"domain":{"labels":["\ud800","b"]},"epsilon":1.0,"name":"any"}"#;
        let plan = Plan::new(question, crate::wire::Participation::Everyone)?;
        assert_eq!(Plan::read(plan.text())?, plan);
        let whole = Plan::new(&question.replace("ud800", "u00e9"), plan.participation())?;
        let file = PlanFile::write(&whole, None)?;
        assert!(PlanFile::write(&plan, None).is_err());
        let altered = file
            .replace(whole.text(), plan.text())
            .replace(&whole.fingerprint().to_string(), &plan.fingerprint().to_string());
        let found = PlanFile::read(altered.as_bytes(), None).map_err(|error| error.to_string());
        assert!(found.is_err_and(|error| error.contains("half of a surrogate pair")));
        Ok(())
    }

    #[test]
    fn what_was_altered_is_refused() {
        for (old, new, words) in [
            ("0.1,", "9.1,", "altered or reformatted"),
            ("0.1,", "0.10,", "canonical"),
            ("\"b74c", "\"B74C", "the fingerprint of a plan file must be 64"),
            ("\"version\": 1", "\"version\": 2", "the plan file has version 2"),
            ("-file\"", "-document\"", "its format is not"),
            ("\"fingerprint\"", "\"finger\"", "lacks 'fingerprint'"),
            ("\"signature\": {", "\"signature\": null, \"x\": {", "unknown members 'x'"),
            ("\"signature\": {", "\"signature\": {\"x\":1,", "not a signature of a plan"),
            ("e54be5dc", "e54be5dd", "signature of the plan is not valid"),
            ("\"ed25519\"", "\"ed448\"", "not a signature of a plan"),
            ("\"03a1", "\"03a2", "is signed by 03a2"),
            ("\"version\": 1,", "\"version\": 1, \"version\": 1,", "duplicated"),
            ("\n}\n", "\n} {", "more text"),
            ("turnout-plan\"", "turnout-plan\u{e9}\"", "ASCII"),
        ] {
            let text = WRITTEN.replacen(old, new, 1);
            assert_ne!(text, WRITTEN);
            let found = read(&text).map_err(|error| error.to_string());
            assert!(found.is_err_and(|error| error.contains(words)), "{new}");
        }
    }
}
