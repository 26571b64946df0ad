//! The answers that can be given.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Refusal;
use crate::prefixes::Prefixes;

/// A domain as it stands in a plan.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description<'a> {
    integers: Option<u64>,
    #[serde(borrow)]
    labels: Option<Vec<&'a RawValue>>,
}

/// The labels of a domain and their codes.
#[derive(Debug)]
pub(crate) enum Labels {
    /// The codes are their own labels.
    Integers(u64),
    /// The code of each text; none where one text stands for two labels, as that of `1` and `"1"`.
    Named { codes: HashMap<String, Option<u32>>, size: u64 },
    /// Values are known by what they begin with.
    Prefixes(Prefixes),
}

impl Labels {
    /// Reads a domain. A label that is text is known by this text, any other by its JSON in the plan.
    pub(crate) fn read(domain: &str) -> Result<Self, Refusal> {
        let description: Description =
            serde_json::from_str(domain).map_err(|error| format!("not a domain: {error}"))?;
        match description {
            Description { integers: Some(size), labels: None } => Ok(Self::Integers(size)),
            Description { integers: None, labels: Some(labels) } => Self::named(&labels),
            _ => Err("a domain has either integers or labels".to_owned()),
        }
    }

    fn named(labels: &[&RawValue]) -> Result<Self, Refusal> {
        let mut codes = HashMap::new();
        for (code, label) in (0..).zip(labels) {
            let text = if label.get().starts_with('"') {
                serde_json::from_str(label.get())
                    .map_err(|error| format!("label {code} is no Unicode text: {error}"))?
            } else {
                label.get().to_owned()
            };
            codes.entry(text).and_modify(|known| *known = None).or_insert(Some(code));
        }
        Ok(Self::Named { codes, size: labels.len() as u64 })
    }

    /// How many labels there are.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Integers(size) | Self::Named { size, .. } => *size,
            Self::Prefixes(prefixes) => prefixes.size().into(),
        }
    }

    /// The codes of answers, one a line; `given` says that the answers are codes.
    pub(crate) fn codes(&self, answers: &[&str], given: bool) -> Result<Vec<u32>, Refusal> {
        let one = |(line, answer): (usize, &&str)| {
            let found = match self {
                Self::Named { codes, .. } if !given => match codes.get(*answer) {
                    Some(None) => {
                        return Err(format!(
                            "answer {} is the text of two labels: say its code, with --codes",
                            line + 1
                        ));
                    }
                    found => found.copied().flatten(),
                },
                Self::Prefixes(prefixes) if !given => prefixes.find(answer),
                _ => answer.parse().ok().filter(|&code| u64::from(code) < self.size()),
            };
            // The answer itself may end in a log: it is not shown.
            found.ok_or_else(|| match self {
                Self::Prefixes(values) if !given => {
                    format!("answer {} is none of the {values}", line + 1)
                }
                _ => format!("answer {} is none of the {}", line + 1, self.size()),
            })
        };
        answers.iter().enumerate().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_known_by_their_text() -> Result<(), Refusal> {
        let labels = Labels::read(
            r#"{"labels":["a","\ud83d\ude00 \u00e9\n",1e22,null,{"tuple":["b",1]},"",1,"1"]}"#,
        )?;
        let texts = ["", "null", "1e22", "\u{1f600} \u{e9}\n", r#"{"tuple":["b",1]}"#, "a"];
        assert_eq!(labels.codes(&texts, false)?, [5, 3, 2, 1, 4, 0]);
        assert_eq!(labels.size(), 8);
        assert!(labels.codes(&["1"], false).is_err_and(|reason| reason.contains("two labels")));
        assert_eq!(labels.codes(&["7", "6"], true)?, [7, 6]);
        for (text, given) in [("b", false), ("8", true), ("-1", true), ("a", true), ("A", false)] {
            let refusal = labels.codes(&["a", text], given);
            assert!(refusal.is_err(), "{text}");
        }
        Ok(())
    }

    #[test]
    fn integers_are_their_own_labels() -> Result<(), Refusal> {
        let labels = Labels::read(r#"{"integers":4294967295}"#)?;
        assert_eq!(labels.codes(&["0", "4294967294"], false)?, [0, 4_294_967_294]);
        for text in ["4294967295", "4294967296", "1.0", "", " 1", "0x1"] {
            assert!(labels.codes(&[text], false).is_err(), "{text}");
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
            r#"{"labels":["\ud800","b"]}"#,
        ] {
            assert!(Labels::read(text).is_err(), "{text}");
        }
    }
}
