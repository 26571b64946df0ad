//! The possible answers to one question.

use std::collections::HashMap;

use super::error::{Result, refused};
use super::members::Members;
use crate::wire::json::{Json, Kind};

/// A label that is text is known by this text, any other by its JSON in the plan.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Label {
    Text(String),
    Other(String),
}

impl Label {
    fn of(json: &Json<'_>) -> Option<Self> {
        match json.kind() {
            Kind::Text { .. } => json.text().map(|text| Self::Text(text.into())),
            _ => Some(Self::Other(json.raw().to_owned())),
        }
    }
}

/// The labels of a domain and their codes.
#[derive(Debug)]
pub(crate) enum Labels {
    /// The codes are their own labels.
    Integers(u64),
    Named(Codes),
}

/// The code of each label.
#[derive(Debug)]
pub(crate) struct Codes(HashMap<Label, u32>);

impl Labels {
    /// Reads a domain.
    pub(crate) fn read(domain: &Json<'_>) -> Result<Self> {
        let mut members = Members::read(domain)?;
        let (integers, labels) = (members.find("integers")?, members.find::<Vec<_>>("labels")?);
        members.finish()?;
        match (integers, labels) {
            (Some(size), None) => Ok(Self::Integers(size)),
            (None, Some(labels)) => Self::named(&labels),
            _ => Err(refused("a domain has either integers or labels")),
        }
    }

    /// Whether a domain is that of so many plain codes.
    pub(crate) fn are_codes(domain: &Json<'_>, size: u64) -> Result<bool> {
        Ok(matches!(Self::read(domain)?, Self::Integers(found) if found == size))
    }

    fn named(labels: &[&Json<'_>]) -> Result<Self> {
        let mut codes = HashMap::new();
        for (code, json) in (0..).zip(labels) {
            let no_text = || refused(format!("label {code} is no Unicode text"));
            if codes.insert(Label::of(json).ok_or_else(no_text)?, code).is_some() {
                return Err(refused(format!("label {code} is duplicated")));
            }
        }
        Ok(Self::Named(Codes(codes)))
    }

    /// How many labels there are.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Integers(size) => *size,
            Self::Named(Codes(codes)) => codes.len() as u64,
        }
    }

    /// The code of an answer that is a line; `given` says that it is a code.
    pub(crate) fn find(&self, answer: &str, given: bool) -> Result<u32, String> {
        let found = match self {
            Self::Named(Codes(codes)) if !given => {
                let text = codes.get(&Label::Text(answer.to_owned()));
                let other = codes.get(&Label::Other(answer.to_owned()));
                if text.and(other).is_some() {
                    return Err("is the text of two labels: say its code".to_owned());
                }
                text.or(other).copied()
            }
            _ => self.code(answer),
        };
        found.ok_or_else(|| format!("is not one of the {}", self.size()))
    }

    /// The code of an answer that stands in JSON; `given` says that it is a code.
    pub(crate) fn find_json(&self, answer: &Json<'_>, given: bool) -> Result<u32, String> {
        let found = match self {
            Self::Named(Codes(codes)) if !given => {
                Label::of(answer).and_then(|label| codes.get(&label).copied())
            }
            _ => self.code(answer.raw()),
        };
        found.ok_or_else(|| format!("is not one of the {}", self.size()))
    }

    fn code(&self, text: &str) -> Option<u32> {
        text.parse().ok().filter(|&code| u64::from(code) < self.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(domain: &str) -> Result<Labels> {
        Labels::read(&Json::read(domain).map_err(|flaw| refused(flaw.to_string()))?)
    }

    #[test]
    fn labels_are_known_by_their_text() -> Result<()> {
        let labels = read(
            r#"{"labels":["a","\ud83d\ude00 \u00e9\n",1e22,null,{"tuple":["b",1]},"",1,"1"]}"#,
        )?;
        let texts = ["", "null", "1e22", "\u{1f600} \u{e9}\n", r#"{"tuple":["b",1]}"#, "a"];
        for (text, code) in texts.into_iter().zip([5, 3, 2, 1, 4, 0]) {
            assert_eq!(labels.find(text, false), Ok(code));
        }
        assert_eq!(labels.size(), 8);
        assert!(labels.find("1", false).is_err_and(|reason| reason.contains("two labels")));
        assert_eq!((labels.find("7", true), labels.find("6", true)), (Ok(7), Ok(6)));
        for (text, given) in [("b", false), ("8", true), ("-1", true), ("a", true), ("A", false)] {
            assert!(labels.find(text, given).is_err(), "{text}");
        }
        Ok(())
    }

    #[test]
    fn in_json_text_and_numbers_differ() -> Result<()> {
        let labels = read(r#"{"labels":["a","\u00e9",1,"1",true]}"#)?;
        for (json, code) in [(r#""\u00e9""#, 1), ("1", 2), (r#""1""#, 3), ("true", 4)] {
            let found = Json::read(json).map(|json| labels.find_json(&json, false));
            assert_eq!(found, Ok(Ok(code)));
        }
        for (json, given) in
            [("a", false), ("1.0", false), (r#""2""#, false), (r#""1""#, true), ("5", true)]
        {
            let found = Json::read(json).map(|json| labels.find_json(&json, given));
            assert!(!matches!(found, Ok(Ok(_))), "{json}");
        }
        Ok(())
    }

    #[test]
    fn integers_are_their_own_labels() -> Result<()> {
        let labels = read(r#"{"integers":4294967295}"#)?;
        assert_eq!(labels.find("0", false), Ok(0));
        assert_eq!(labels.find("4294967294", false), Ok(4_294_967_294));
        for text in ["4294967295", "4294967296", "1.0", "", " 1", "0x1"] {
            assert!(labels.find(text, false).is_err(), "{text}");
        }
        Ok(())
    }

    #[test]
    fn anything_else_is_no_domain() {
        for text in [
            "{}",
            "[]",
            r#"{"integers":2,"labels":["a","b"]}"#,
            r#"{"integers":-1}"#,
            r#"{"integers":2.0}"#,
            r#"{"integers":2,"more":1}"#,
            r#"{"labels":"ab"}"#,
            r#"{"labels":["a","a"]}"#,
            r#"{"labels":["\ud800","b"]}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
