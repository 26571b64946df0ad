//! Groups: public columns that messages carry, with the values that the plan lists.

use core::fmt;
use std::collections::{HashMap, HashSet};

use super::canonical::canonical;
use super::json::{Json, Kind};
use super::plan::quoted;

/// Public columns, and the values that each column may have.
///
/// ```
/// use turnout_core::wire::Groups;
/// let groups = Groups::read(
///     r#"[{"column":"region","values":["north","south"]},{"column":"year","values":[2025,2026]}]"#,
/// );
/// let groups = groups.expect("different columns with different values");
/// assert_eq!(groups.find(r#"["south",2025]"#), Some(vec![1, 0]));
/// assert_eq!(groups.find(r#"["west",2025]"#), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups(Vec<Column>);

/// A column: its name, and its values as canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    values: Vec<String>,
    /// The number of each value.
    numbers: HashMap<String, u32>,
}

impl Groups {
    /// Reads a list of columns, as a plan states it.
    ///
    /// Returns `None` if the text is not such a list. That includes a duplicated column or value, a
    /// column without a value, and a value that is not a text, number, truth, null, date or time.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Self::of(&Json::read(text).ok()?)
    }

    /// Those that a plan describes.
    pub(super) fn of(json: &Json<'_>) -> Option<Self> {
        let column = |described: &Json<'_>| {
            let members = described.members().filter(|members| members.len() == 2)?;
            let name = members.get("column")?.text()?;
            let values = members.get("values")?.list()?.iter().map(value_of);
            Column::checked(name.into_owned(), values.collect::<Option<_>>()?)
        };
        let columns: Vec<Column> = json.list()?.iter().map(column).collect::<Option<_>>()?;
        Self::checked(columns).filter(|groups| !groups.is_empty())
    }

    fn checked(columns: Vec<Column>) -> Option<Self> {
        let mut names = HashSet::new();
        let different = columns.iter().all(|column| names.insert(column.name.as_str()));
        different.then_some(Self(columns))
    }

    /// Tells whether there are no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Finds the index of the value of each column in a group, which is given as a JSON list.
    /// Returns `None` if a value is not listed.
    #[must_use]
    pub fn find(&self, group: &str) -> Option<Vec<u32>> {
        let mut found = vec![0; self.len()];
        self.find_in(&Json::read(group).ok()?, &mut found).then_some(found)
    }

    /// Writes the numbers of the values of a group; says no if one is not listed.
    pub(super) fn find_in(&self, group: &Json<'_>, found: &mut [u32]) -> bool {
        let Some(values) = group.list().filter(|values| values.len() == self.len()) else {
            return false;
        };
        self.0.iter().zip(values).zip(found).all(|((column, value), found)| {
            let number = value_of(value).and_then(|value| column.numbers.get(&value));
            *found = number.copied().unwrap_or(0);
            number.is_some()
        })
    }

    /// Returns the group with these indices of values, as a message states it.
    #[must_use]
    pub fn text(&self, numbers: &[u32]) -> Option<String> {
        let mut values = Vec::with_capacity(numbers.len());
        for (column, &number) in self.0.iter().zip(numbers) {
            values.push(column.values.get(usize::try_from(number).ok()?)?.as_str());
        }
        (numbers.len() == self.len()).then(|| format!("[{}]", values.join(",")))
    }
}

/// As they stand in a plan.
impl fmt::Display for Groups {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = |column: &Column| {
            let (name, values) = (quoted(&column.name), column.values.join(","));
            format!(r#"{{"column":{name},"values":[{values}]}}"#)
        };
        write!(formatter, "[{}]", self.0.iter().map(column).collect::<Vec<_>>().join(","))
    }
}

/// The values of a group, one for each public column: a JSON list in its canonical text.
///
/// ```
/// use turnout_core::wire::Key;
/// let key = Key::read(r#"["DE", {"date": "2026-01-31"}]"#).expect("a list of values");
/// assert_eq!((key.text(), key.len()), (r#"["DE",{"date":"2026-01-31"}]"#, 2));
/// assert_eq!(Key::read("[[]]"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    text: String,
    len: usize,
}

impl Key {
    /// Reads a list of texts, numbers, truths, nulls, dates and times. Returns `None` if the text
    /// is not such a list.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Self::of(&Json::read(text).ok()?)
    }

    pub(super) fn of(json: &Json<'_>) -> Option<Self> {
        let values: Vec<String> = json.list()?.iter().map(value_of).collect::<Option<_>>()?;
        Some(Self { text: format!("[{}]", values.join(",")), len: values.len() })
    }

    /// Its canonical text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Tells whether there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Column {
    fn checked(name: String, values: Vec<String>) -> Option<Self> {
        let numbers: HashMap<String, u32> = values.iter().cloned().zip(0..).collect();
        let different = numbers.len() == values.len();
        (different && !values.is_empty()).then_some(Self { name, values, numbers })
    }
}

/// The canonical text of a value that a column may have.
fn value_of(json: &Json<'_>) -> Option<String> {
    let fine = match json.kind() {
        Kind::List(_) => false,
        Kind::Object(members) => {
            members.len() == 1
                && ["date", "time", "datetime"]
                    .iter()
                    .any(|&word| members.get(word).is_some_and(|text| text.text().is_some()))
        }
        _ => true,
    };
    fine.then(|| canonical(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_known_by_their_canonical_text() {
        let listed = r#"[{"column":"when","values":[{"date":"2026-01-31"},null]},{"column":"a","values":[1,1.0,true,"1","\u00e9"]}]"#;
        let groups = Groups::read(listed).unwrap_or_default();
        assert_eq!(groups.to_string(), listed);
        for (group, found) in [
            ("[null,1]", [1, 0]),
            ("[ null , 1e0 ]", [1, 1]),
            (r#"[{"date":"2026-01-31"},true]"#, [0, 2]),
            (r#"[null,"\u0031"]"#, [1, 3]),
            ("[null,\"\u{e9}\"]", [1, 4]),
        ] {
            assert_eq!(groups.find(group), Some(found.to_vec()), "{group}");
            let text = groups.text(&found).unwrap_or_default();
            assert_eq!(groups.find(&text), Some(found.to_vec()), "{text}");
        }
        for group in [
            "[]",
            "[null]",
            "[null,1,1]",
            "[null,2]",
            "null",
            r#"{"when":null,"a":1}"#,
            "[null,[1]]",
        ] {
            assert_eq!(groups.find(group), None, "{group}");
        }
        assert_eq!(groups.text(&[0]), None);
        assert_eq!(groups.text(&[0, 9]), None);
    }

    #[test]
    fn other_columns_are_none() {
        for text in [
            "{}",
            "[]",
            "[1]",
            r#"[{"column":"a","values":[]}]"#,
            r#"[{"column":"a","values":[1,1]}]"#,
            r#"[{"column":"a","values":[[1]]}]"#,
            r#"[{"column":"a","values":[{"tuple":[1]}]}]"#,
            r#"[{"column":1,"values":[1]}]"#,
            r#"[{"column":"a","values":[1],"more":1}]"#,
            r#"[{"column":"a","values":[1]},{"column":"a","values":[2]}]"#,
        ] {
            assert_eq!(Groups::read(text), None, "{text}");
        }
    }
}
