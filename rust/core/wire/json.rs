//! Reads untrusted JSON once, in memory and time proportional to the text.
//!
//! It accepts what the Python reader of turnout accepts. Members must not be duplicated, numbers
//! have at most [`MOST_DIGITS`] characters and fit floating point, and values are nested at most
//! [`MOST_DEPTH`] deep.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// How deep lists and objects may stand within each other.
pub(crate) const MOST_DEPTH: usize = 64;

/// The most characters of a number.
pub(crate) const MOST_DIGITS: usize = 1000;

/// A value, and the text that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Json<'a> {
    raw: &'a str,
    kind: Kind<'a>,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind<'a> {
    Null,
    Truth(bool),
    /// An integer, however large.
    Integer,
    /// A number with a point or an exponent.
    Float(f64),
    /// A text, with or without backslashes.
    Text {
        escaped: bool,
    },
    List(Vec<Json<'a>>),
    /// Members by their names, in the order of code points.
    Object(BTreeMap<Cow<'a, str>, Json<'a>>),
}

/// Why a text is no JSON that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flaw {
    what: &'static str,
    /// At which byte it was seen.
    place: usize,
}

impl fmt::Display for Flaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at byte {}", self.what, self.place)
    }
}

impl<'a> Json<'a> {
    /// Reads a text that is one value, with white space around it or not. A byte order mark at its
    /// beginning, which some editors write, is no part of it.
    pub(crate) fn read(text: &'a str) -> Result<Self, Flaw> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader { text, place: 0 };
        let value = reader.value(MOST_DEPTH)?;
        reader.space();
        if reader.place < text.len() { Err(reader.flaw("more text")) } else { Ok(value) }
    }

    /// The text of the value.
    pub(crate) const fn raw(&self) -> &'a str {
        self.raw
    }

    /// What it is.
    pub(crate) const fn kind(&self) -> &Kind<'a> {
        &self.kind
    }

    /// The text that it is; none where it is something else, or half of a surrogate pair stands in it.
    pub(crate) fn text(&self) -> Option<Cow<'a, str>> {
        let Kind::Text { escaped } = self.kind else { return None };
        let inner = self.raw.get(1..self.raw.len().checked_sub(1)?)?;
        if escaped {
            String::from_utf16(&units(inner)?).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// The units of UTF-16 of the text that it is, in which halves of surrogate pairs may stand.
    pub(crate) fn units(&self) -> Option<Vec<u16>> {
        matches!(self.kind, Kind::Text { .. })
            .then(|| units(self.raw.get(1..self.raw.len().checked_sub(1)?)?))?
    }

    /// Whether no half of a surrogate pair stands in any text of it.
    pub(crate) fn is_unicode(&self) -> bool {
        match &self.kind {
            Kind::Text { escaped } => !escaped || self.text().is_some(),
            Kind::List(values) => values.iter().all(Self::is_unicode),
            Kind::Object(members) => members.values().all(Self::is_unicode),
            _ => true,
        }
    }

    /// The integer that it is, of at most 127 bits.
    pub(crate) fn integer(&self) -> Option<i128> {
        matches!(self.kind, Kind::Integer).then(|| self.raw.parse().ok())?
    }

    /// The integer that it is, if it is at least 0 and fits.
    pub(crate) fn unsigned<N: FromStr>(&self) -> Option<N> {
        let plain = matches!(self.kind, Kind::Integer) && !self.raw.starts_with('-');
        plain.then(|| self.raw.parse().ok())?
    }

    /// The truth that it is.
    pub(crate) const fn truth(&self) -> Option<bool> {
        if let Kind::Truth(truth) = self.kind { Some(truth) } else { None }
    }

    /// The number that it is, rounded to the nearest.
    pub(crate) fn number(&self) -> Option<f64> {
        match self.kind {
            Kind::Integer => self.raw.parse().ok().filter(|number: &f64| number.is_finite()),
            Kind::Float(number) => Some(number),
            _ => None,
        }
    }

    /// The values that it lists.
    pub(crate) fn list(&self) -> Option<&[Self]> {
        if let Kind::List(values) = &self.kind { Some(values) } else { None }
    }

    /// The members that it has.
    pub(crate) const fn members(&self) -> Option<&BTreeMap<Cow<'a, str>, Self>> {
        if let Kind::Object(members) = &self.kind { Some(members) } else { None }
    }

    /// Whether it is an object with these members, perhaps some optional ones, and no others.
    pub(crate) fn has_only(&self, members: &[&str], optional: &[&str]) -> bool {
        self.members().is_some_and(|found| {
            let there = |name: &&&str| found.contains_key(**name);
            members.iter().all(|name| there(&name))
                && members.len() + optional.iter().filter(there).count() == found.len()
        })
    }

    /// The member of a name.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.members()?.get(name)
    }
}

struct Reader<'a> {
    text: &'a str,
    place: usize,
}

impl<'a> Reader<'a> {
    fn flaw(&self, what: &'static str) -> Flaw {
        Flaw { what, place: self.place }
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.place).copied()
    }

    /// Goes past a byte, if it is the next one.
    fn skip(&mut self, byte: u8) -> bool {
        let found = self.next() == Some(byte);
        self.place += usize::from(found);
        found
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.next() {
            self.place += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, Flaw> {
        self.space();
        let start = self.place;
        let kind = match self.next() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Kind::Text { escaped: self.string()? },
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Kind::Truth(true))?,
            Some(b'f') => self.word("false", Kind::Truth(false))?,
            Some(b'n') => self.word("null", Kind::Null)?,
            _ => return Err(self.flaw("no value")),
        };
        // The reader stops between characters: all that it looks for is ASCII.
        Ok(Json { raw: self.text.get(start..self.place).unwrap_or_default(), kind })
    }

    fn word(&mut self, word: &str, kind: Kind<'a>) -> Result<Kind<'a>, Flaw> {
        let rest = self.text.as_bytes().get(self.place..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.place += word.len();
            Ok(kind)
        } else {
            Err(self.flaw("no value"))
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, Flaw> {
        depth.checked_sub(1).ok_or_else(|| self.flaw("nested too deep"))
    }

    fn list(&mut self, depth: usize) -> Result<Kind<'a>, Flaw> {
        let depth = self.deeper(depth)?;
        self.place += 1;
        let mut values = Vec::new();
        self.space();
        if self.skip(b']') {
            return Ok(Kind::List(values));
        }
        loop {
            values.push(self.value(depth)?);
            self.space();
            if self.skip(b']') {
                return Ok(Kind::List(values));
            }
            if !self.skip(b',') {
                return Err(self.flaw("no comma"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind<'a>, Flaw> {
        let depth = self.deeper(depth)?;
        self.place += 1;
        let mut members = BTreeMap::new();
        self.space();
        if self.skip(b'}') {
            return Ok(Kind::Object(members));
        }
        loop {
            self.space();
            let start = self.place;
            if self.next() != Some(b'"') {
                return Err(self.flaw("no name of a member"));
            }
            let kind = Kind::Text { escaped: self.string()? };
            let name = Json { raw: self.text.get(start..self.place).unwrap_or_default(), kind };
            let name = name.text().ok_or_else(|| self.flaw("no Unicode text"))?;
            self.space();
            if !self.skip(b':') {
                return Err(self.flaw("no colon"));
            }
            let value = self.value(depth)?;
            if members.insert(name, value).is_some() {
                return Err(self.flaw("a member is duplicated"));
            }
            self.space();
            if self.skip(b'}') {
                return Ok(Kind::Object(members));
            }
            if !self.skip(b',') {
                return Err(self.flaw("no comma"));
            }
        }
    }

    /// Goes past a text, and says whether there are backslashes in it.
    fn string(&mut self) -> Result<bool, Flaw> {
        self.place += 1;
        let mut escaped = false;
        loop {
            match self.next() {
                Some(b'"') => {
                    self.place += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.place += 1;
                    match self.next() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.place += 1;
                        }
                        Some(b'u') => {
                            self.place += 1;
                            for _ in 0..4 {
                                if !self.next().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return Err(self.flaw("no hexadecimal digit"));
                                }
                                self.place += 1;
                            }
                        }
                        _ => return Err(self.flaw("an unknown escape")),
                    }
                }
                Some(0..=0x1f) => return Err(self.flaw("a control character")),
                Some(_) => self.place += 1,
                None => return Err(self.flaw("a text without end")),
            }
        }
    }

    fn digits(&mut self) -> Result<(), Flaw> {
        let start = self.place;
        while self.next().is_some_and(|byte| byte.is_ascii_digit()) {
            self.place += 1;
        }
        if self.place == start { Err(self.flaw("no digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Kind<'a>, Flaw> {
        let start = self.place;
        let mut integer = true;
        self.skip(b'-');
        if !self.skip(b'0') {
            self.digits()?;
        }
        if self.skip(b'.') {
            integer = false;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.next() {
            integer = false;
            self.place += 1;
            let _ = self.skip(b'+') || self.skip(b'-');
            self.digits()?;
        }
        let raw = self.text.get(start..self.place).unwrap_or_default();
        if raw.len() > MOST_DIGITS {
            return Err(self.flaw("a number of too many digits"));
        }
        if integer {
            return Ok(Kind::Integer);
        }
        match raw.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Kind::Float(number)),
            _ => Err(self.flaw("a number out of the range of floating point")),
        }
    }
}

/// What a text with backslashes stands for, in units of UTF-16.
fn units(inner: &str) -> Option<Vec<u16>> {
    let mut made = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, after)) = rest.split_once('\\') {
        made.extend(before.encode_utf16());
        let (unit, skipped) = match after.chars().next()? {
            'b' => (0x8, 1),
            'f' => (0xc, 1),
            'n' => (0xa, 1),
            'r' => (0xd, 1),
            't' => (0x9, 1),
            'u' => (u16::from_str_radix(after.get(1..5)?, 16).ok()?, 5),
            other => (u16::try_from(u32::from(other)).ok()?, 1),
        };
        made.push(unit);
        rest = after.get(skipped..)?;
    }
    made.extend(rest.encode_utf16());
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_text() -> Result<(), Flaw> {
        let text = r#" {"b": [1, -2.50, "x\u00e9\ud83d\ude00\n"], "a" :{ }, "é":null,"t":true} "#;
        let json = Json::read(text)?;
        assert_eq!(json.raw(), text.trim());
        let list = json.member("b").and_then(Json::list).unwrap_or_default();
        assert_eq!(list.iter().map(Json::raw).collect::<Vec<_>>()[..2], ["1", "-2.50"]);
        assert_eq!(list.iter().map(Json::integer).collect::<Vec<_>>(), [Some(1), None, None]);
        assert_eq!(list[1].number(), Some(-2.5));
        assert_eq!(list[2].text().as_deref(), Some("x\u{e9}\u{1f600}\n"));
        assert_eq!(json.member("a").map(Json::raw), Some("{ }"));
        let names: Vec<&str> = json
            .members()
            .into_iter()
            .flat_map(|members| members.keys())
            .map(|name| &**name)
            .collect();
        assert_eq!(names, ["a", "b", "t", "é"]);
        Ok(())
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[",
            "[1",
            "[1,]",
            "[,1]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "{1:2}",
            "tru",
            "nul",
            "True",
            "NaN",
            "Infinity",
            "-Infinity",
            "-",
            "01",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "0x1",
            "1 2",
            "\"",
            "\"\\\"",
            r#""\x""#,
            r#""\u12g4""#,
            r#""\u12""#,
            "\"\n\"",
            "'a'",
            "\u{feff}\u{feff}1",
            "1\u{feff}",
            "1\u{a0}",
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            "1e999",
            "-1e999",
            r#"{"\ud800":1}"#,
        ] {
            assert!(Json::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_and_nesting_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Json::read(&nested(MOST_DEPTH)).is_ok());
        assert!(Json::read(&nested(MOST_DEPTH + 1)).is_err());
        assert!(Json::read(&"[".repeat(1 << 20)).is_err());
        assert!(Json::read(&r#"{"a":"#.repeat(1 << 20)).is_err());
        assert!(Json::read(&"1".repeat(MOST_DIGITS)).is_ok());
        assert!(Json::read(&"1".repeat(MOST_DIGITS + 1)).is_err());
        assert!(Json::read(&format!("0.{}", "1".repeat(MOST_DIGITS))).is_err());
        let huge = "9".repeat(400);
        assert!(Json::read(&huge).is_ok_and(|json| json.number().is_none()));
    }

    #[test]
    fn halves_of_surrogate_pairs_are_no_text() -> Result<(), Flaw> {
        for text in
            [r#""\ud800""#, r#""\udc00""#, r#""\ud800a""#, r#""\ud800\ud800""#, r#""\udc00\ud800""#]
        {
            assert_eq!(Json::read(text)?.text(), None, "{text}");
        }
        assert_eq!(Json::read(r#""\/\"\\""#)?.text().as_deref(), Some("/\"\\"));
        Ok(())
    }
}
