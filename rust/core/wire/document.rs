//! What all documents share: a format, a version, and a fixed set of members.

use super::error::{Error, Problem, shown};
use super::json::Json;

/// A kind of documents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document {
    /// What messages call one.
    pub(crate) word: &'static str,
    pub(crate) format: &'static str,
    pub(crate) version: u64,
    /// The members that one must have, beside format and version.
    pub(crate) members: &'static [&'static str],
    /// The members that one may have.
    pub(crate) optional: &'static [&'static str],
}

impl Document {
    /// Reads a text.
    pub(crate) fn read<'a>(&self, text: &'a str) -> Result<Json<'a>, Error> {
        let json = Json::read(text).map_err(|flaw| self.malformed(flaw.to_string()))?;
        self.check(&json)?;
        Ok(json)
    }

    /// Checks format, version and the names of all members, in this order: a document of a later
    /// version may have others.
    pub(crate) fn check(&self, json: &Json<'_>) -> Result<(), Error> {
        let format = json.member("format").and_then(Json::text);
        if format.as_deref() != Some(self.format) {
            return Err(self.malformed(format!("its format is not '{}'", self.format)));
        }
        if let Some(version) = json.member("version")
            && version.integer() != Some(self.version.into())
        {
            let found = shown(version.raw());
            return Err(Error::Version { document: self.word, found, expected: self.version });
        }
        let Some(members) = json.members() else {
            return Err(self.malformed("it is no object".to_owned()));
        };
        let known = |name: &str| {
            ["format", "version"]
                .iter()
                .chain(self.members)
                .chain(self.optional)
                .any(|&each| each == name)
        };
        let missing = ["version"].iter().chain(self.members).copied();
        let missing = missing.filter(|&name| !members.contains_key(name));
        let unknown = members.keys().map(|name| &**name).filter(|name| !known(name));
        for (problem, names) in
            [(Problem::Lacks, quoted(missing)), (Problem::Unknown, quoted(unknown))]
        {
            if !names.is_empty() {
                return Err(Error::Members { document: self.word, problem, names });
            }
        }
        Ok(())
    }

    pub(crate) fn malformed(&self, reason: String) -> Error {
        Error::Malformed { document: self.word, reason }
    }

    /// The error for a member that is something else.
    pub(crate) fn value(
        &self,
        name: &'static str,
        expected: &'static str,
        found: Option<&Json<'_>>,
    ) -> Error {
        let found = shown(found.map_or("nothing", Json::raw));
        Error::Value { document: self.word, name, expected, found }
    }
}

/// Names in quotes, the beginning of many.
fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    shown(&names.join(", "))
}
