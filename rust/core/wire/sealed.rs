//! Documents with a checksum: the SHA-256 of the same canonical text without it. It finds accidents
//! only: anybody who can write the text can also compute the checksum.

use sha2::{Digest, Sha256};

use super::canonical::{canonical, canonical_without};
use super::document::Document;
use super::error::Error;
use super::hex;
use super::json::Json;

/// The member that holds the checksum.
const CHECKSUM: &str = "sha256";

/// Writes an object, which is given by its text, with its checksum; none if it is no object.
pub(crate) fn sealed(text: &str) -> Option<String> {
    let json = Json::read(text).ok().filter(|json| json.members().is_some())?;
    let digest = hex::text(&Sha256::digest(canonical(&json)));
    let inner = json.raw().strip_suffix('}')?;
    let comma = if json.members()?.is_empty() { "" } else { "," };
    let whole = format!(r#"{inner}{comma}"{CHECKSUM}":"{digest}"}}"#);
    Some(canonical(&Json::read(&whole).ok()?))
}

/// Reads a document with a checksum, which must be one of its members.
pub(crate) fn unsealed<'a>(document: &Document, text: &'a str) -> Result<Json<'a>, Error> {
    let json = document.read(text)?;
    let fine = || -> Option<bool> {
        let stated = json.member(CHECKSUM)?.text()?;
        let digest = hex::text(&Sha256::digest(canonical_without(&json, CHECKSUM)?));
        Some(stated == digest && canonical(&json) == text)
    };
    if fine() == Some(true) { Ok(json) } else { Err(Error::Fingerprint(document.word)) }
}
