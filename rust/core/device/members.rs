//! The members of a description, taken one by one, so that none stays unread.

use std::collections::BTreeMap;

use super::error::{Result, refused};
use crate::wire::json::{Json, Kind};

/// Members that were not taken yet.
#[derive(Debug)]
pub(crate) struct Members<'j, 'a>(BTreeMap<&'j str, &'j Json<'a>>);

/// What a member can be read as.
pub(crate) trait Member<'j, 'a>: Sized {
    /// What it is, for messages.
    const WORD: &'static str;

    /// Reads it.
    fn of(json: &'j Json<'a>) -> Option<Self>;
}

impl<'j, 'a> Members<'j, 'a> {
    /// Those of an object.
    pub(crate) fn read(json: &'j Json<'a>) -> Result<Self> {
        Self::of(json).ok_or_else(|| refused("a description is no object"))
    }

    /// Takes a member, if it is there.
    pub(crate) fn find<T: Member<'j, 'a>>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(json) = self.0.remove(name) else { return Ok(None) };
        let wrong = || refused(format!("the member {name} is not {}", T::WORD));
        T::of(json).map(Some).ok_or_else(wrong)
    }

    /// Takes a member that must be there.
    pub(crate) fn take<T: Member<'j, 'a>>(&mut self, name: &str) -> Result<T> {
        self.find(name)?.ok_or_else(|| refused(format!("there is no member {name}")))
    }

    /// Refuses members that nobody took.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(refused(format!("there is an unknown member {name}"))),
        }
    }
}

impl<'j, 'a> Member<'j, 'a> for Members<'j, 'a> {
    const WORD: &'static str = "an object";

    fn of(json: &'j Json<'a>) -> Option<Self> {
        let members = json.members()?.iter();
        Some(Self(members.map(|(name, value)| (&**name, value)).collect()))
    }
}

impl<'j, 'a> Member<'j, 'a> for &'j Json<'a> {
    const WORD: &'static str = "anything";

    fn of(json: &'j Json<'a>) -> Option<Self> {
        Some(json)
    }
}

impl<'j, 'a> Member<'j, 'a> for u64 {
    const WORD: &'static str = "an integer from 0 to 2^64 - 1";

    fn of(json: &'j Json<'a>) -> Option<Self> {
        json.integer()?.try_into().ok()
    }
}

impl<'j, 'a> Member<'j, 'a> for f64 {
    const WORD: &'static str = "a number";

    fn of(json: &'j Json<'a>) -> Option<Self> {
        json.number()
    }
}

impl<'j, 'a> Member<'j, 'a> for String {
    const WORD: &'static str = "a text";

    fn of(json: &'j Json<'a>) -> Option<Self> {
        json.text().map(Into::into)
    }
}

/// Null gives `None`; a missing member does not.
impl<'j, 'a, T: Member<'j, 'a>> Member<'j, 'a> for Option<T> {
    const WORD: &'static str = T::WORD;

    fn of(json: &'j Json<'a>) -> Option<Self> {
        if let Kind::Null = json.kind() { Some(None) } else { T::of(json).map(Some) }
    }
}

impl<'j, 'a, T: Member<'j, 'a>> Member<'j, 'a> for Vec<T> {
    const WORD: &'static str = "a list of what belongs there";

    fn of(json: &'j Json<'a>) -> Option<Self> {
        json.list()?.iter().map(T::of).collect()
    }
}

impl<'j, 'a, T: Member<'j, 'a>, const N: usize> Member<'j, 'a> for [T; N] {
    const WORD: &'static str = "a list of that length";

    fn of(json: &'j Json<'a>) -> Option<Self> {
        Vec::of(json)?.try_into().ok()
    }
}
