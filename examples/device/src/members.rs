//! The members of an object of JSON, as they stand.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::Refusal;

/// The members of an object, none of which is there twice.
#[derive(Debug)]
pub(crate) struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    /// Reads a description of a part of a question.
    pub(crate) fn read(description: &'a RawValue) -> Result<Self, Refusal> {
        serde_json::from_str(description.get()).map_err(|error| not_a_question(&error))
    }

    /// Takes the text of a member, if it is there.
    pub(crate) fn text(&mut self, name: &str) -> Option<&'a RawValue> {
        self.0.remove(name)
    }

    /// Takes a member of a description, if it is there.
    pub(crate) fn find<T: Deserialize<'a>>(&mut self, name: &str) -> Result<Option<T>, Refusal> {
        let read = |value: &'a RawValue| serde_json::from_str(value.get());
        self.text(name).map(read).transpose().map_err(|error| not_a_question(&error))
    }

    /// Takes a member of a description that must be there.
    pub(crate) fn take<T: Deserialize<'a>>(&mut self, name: &str) -> Result<T, Refusal> {
        self.find(name)?.ok_or_else(|| format!("the question has no {name}"))
    }

    /// Refuses members of a description that nobody took.
    pub(crate) fn finish(&self) -> Result<(), Refusal> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("the question has an unknown member {name}")),
        }
    }
}

fn not_a_question(error: &serde_json::Error) -> Refusal {
    format!("not a question: {error}")
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if found.insert(name, value).is_some() {
                        return Err(A::Error::custom("a member is there twice"));
                    }
                }
                Ok(Members(found))
            }
        }

        given.deserialize_map(Object)
    }
}
