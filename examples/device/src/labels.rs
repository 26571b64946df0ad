//! The answers that can be given to one question.

use std::collections::HashMap;

use serde_json::value::RawValue;
use turnout_core::frequency::Selection;

use crate::Refusal;
use crate::members::Members;
use crate::noise::Noise;
use crate::oracles::{Nodes, Randomizer};
use crate::question::{Answers, Description, Question};
use crate::reports::Report;

/// A label that is text is known by this text, any other by its JSON in the plan.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Label {
    Text(String),
    Other(String),
}

impl Label {
    fn of(json: &RawValue) -> serde_json::Result<Self> {
        if json.get().starts_with('"') {
            serde_json::from_str(json.get()).map(Self::Text)
        } else {
            Ok(Self::Other(json.get().to_owned()))
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
    pub(crate) fn read(domain: &RawValue) -> Result<Self, Refusal> {
        let mut members = Members::read(domain)?;
        let (integers, labels) = (members.find("integers")?, members.find("labels")?);
        members.finish()?;
        match (integers, labels) {
            (Some(size), None) => Ok(Self::Integers(size)),
            (None, Some(labels)) => Self::named(labels),
            _ => Err("a domain has either integers or labels".to_owned()),
        }
    }

    fn named(labels: Vec<&RawValue>) -> Result<Self, Refusal> {
        let mut codes = HashMap::new();
        for (code, json) in (0..).zip(labels) {
            let label = Label::of(json)
                .map_err(|error| format!("label {code} is no Unicode text: {error}"))?;
            if codes.insert(label, code).is_some() {
                return Err(format!("label {code} is there twice"));
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
    pub(crate) fn find(&self, answer: &str, given: bool) -> Result<u32, Refusal> {
        let found = match self {
            Self::Named(Codes(codes)) if !given => {
                let text = codes.get(&Label::Text(answer.to_owned()));
                let other = codes.get(&Label::Other(answer.to_owned()));
                if text.and(other).is_some() {
                    return Err("is the text of two labels: say its code, with --codes".to_owned());
                }
                text.or(other).copied()
            }
            _ => self.code(answer),
        };
        // The answer itself may end in a log: it is not shown.
        found.ok_or_else(|| format!("is none of the {}", self.size()))
    }

    /// The code of an answer that stands in JSON; `given` says that it is a code.
    pub(crate) fn find_json(&self, answer: &RawValue, given: bool) -> Result<u32, Refusal> {
        let found = match self {
            Self::Named(Codes(codes)) if !given => {
                Label::of(answer).ok().and_then(|label| codes.get(&label).copied())
            }
            _ => self.code(answer.get()),
        };
        found.ok_or_else(|| format!("is none of the {}", self.size()))
    }

    fn code(&self, text: &str) -> Option<u32> {
        text.parse().ok().filter(|&code| u64::from(code) < self.size())
    }
}

/// A question whose answers have codes that one randomizer takes.
pub(crate) struct Coded {
    labels: Labels,
    oracle: Randomizer,
}

impl Coded {
    pub(crate) fn read(asked: Description<'_>) -> Result<Self, Refusal> {
        let labels = Labels::read(asked.domain)?;
        Ok(Self { oracle: Randomizer::read(asked, labels.size())?, labels })
    }
}

impl Question for Coded {
    fn reports(
        &self,
        answers: Answers<'_>,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        let codes = &answers.each(|line| self.labels.find(line, answers.codes))?;
        self.oracle.reports(Nodes { codes, selection, streams: &noise.streams()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(domain: &str) -> Result<Labels, Refusal> {
        Labels::read(serde_json::from_str(domain).map_err(|error| error.to_string())?)
    }

    #[test]
    fn labels_are_known_by_their_text() -> Result<(), Refusal> {
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
    fn in_json_text_and_numbers_differ() -> Result<(), Refusal> {
        let labels = read(r#"{"labels":["a","\u00e9",1,"1",true]}"#)?;
        for (json, code) in [(r#""\u00e9""#, 1), ("1", 2), (r#""1""#, 3), ("true", 4)] {
            let json: &RawValue = serde_json::from_str(json).map_err(|error| error.to_string())?;
            assert_eq!(labels.find_json(json, false), Ok(code));
        }
        for (json, given) in
            [("a", false), ("1.0", false), (r#""2""#, false), (r#""1""#, true), ("5", true)]
        {
            let json: serde_json::Result<&RawValue> = serde_json::from_str(json);
            assert!(json.is_err() || json.is_ok_and(|json| labels.find_json(json, given).is_err()));
        }
        Ok(())
    }

    #[test]
    fn integers_are_their_own_labels() -> Result<(), Refusal> {
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
