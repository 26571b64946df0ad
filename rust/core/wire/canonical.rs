//! The canonical form in which documents are written and compared.

use std::borrow::Cow;
use std::fmt::Write;

use super::json::{Json, Kind};

/// Writes a value as Python's canonical text: members in the order of their names, no spaces, ASCII
/// only, numbers as Python writes them.
pub(crate) fn canonical(value: &Json<'_>) -> String {
    let mut text = String::with_capacity(value.raw().len());
    write(value, &mut text);
    text
}

/// Writes an object without one of its members.
pub(crate) fn canonical_without(value: &Json<'_>, left_out: &str) -> Option<String> {
    let members = value.members()?.iter().filter(|(name, _)| name != &left_out);
    let mut text = String::with_capacity(value.raw().len());
    write_members(members, &mut text);
    Some(text)
}

fn write(value: &Json<'_>, into: &mut String) {
    match value.kind() {
        Kind::Integer if value.raw() == "-0" => into.push('0'),
        Kind::Null | Kind::Truth(_) | Kind::Integer => into.push_str(value.raw()),
        Kind::Float(number) => write_number(*number, into),
        Kind::Text { .. } => match value.text() {
            Some(text) => write_text(&text, into),
            None => write_units(value.units().unwrap_or_default(), into),
        },
        Kind::List(values) => {
            into.push('[');
            for (place, value) in values.iter().enumerate() {
                separate(place, into);
                write(value, into);
            }
            into.push(']');
        }
        Kind::Object(members) => write_members(members, into),
    }
}

fn write_members<'j, 'a: 'j>(
    members: impl IntoIterator<Item = (&'j Cow<'a, str>, &'j Json<'a>)>,
    into: &mut String,
) {
    into.push('{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        separate(place, into);
        write_text(name, into);
        into.push(':');
        write(value, into);
    }
    into.push('}');
}

fn separate(place: usize, into: &mut String) {
    if place > 0 {
        into.push(',');
    }
}

/// Writes a text in quotes.
pub(crate) fn write_text(text: &str, into: &mut String) {
    into.push('"');
    text.chars().for_each(|character| write_character(character, into));
    into.push('"');
}

/// Writes a text in quotes in which halves of surrogate pairs stand.
fn write_units(units: Vec<u16>, into: &mut String) {
    into.push('"');
    for found in char::decode_utf16(units) {
        match found {
            Ok(character) => write_character(character, into),
            Err(half) => write_unit(half.unpaired_surrogate(), into),
        }
    }
    into.push('"');
}

fn write_character(character: char, into: &mut String) {
    match character {
        '"' => into.push_str("\\\""),
        '\\' => into.push_str("\\\\"),
        '\n' => into.push_str("\\n"),
        '\r' => into.push_str("\\r"),
        '\t' => into.push_str("\\t"),
        '\u{8}' => into.push_str("\\b"),
        '\u{c}' => into.push_str("\\f"),
        ' '..='~' => into.push(character),
        _ => {
            for &mut unit in character.encode_utf16(&mut [0; 2]) {
                write_unit(unit, into);
            }
        }
    }
}

fn write_unit(unit: u16, into: &mut String) {
    // Nothing can go wrong when a text is written to.
    let _ = write!(into, "\\u{unit:04x}");
}

/// Writes a number with the fewest digits that give it back, with an exponent from 1e16 on and below
/// 1e-4.
fn write_number(number: f64, into: &mut String) {
    let digits = format!("{number:e}");
    let (digits, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        into.push_str(&plain);
        if !plain.contains('.') {
            into.push_str(".0");
        }
    } else {
        into.push_str(digits);
        // Nothing can go wrong when a text is written to.
        let _ = write!(into, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<String> {
        Some(canonical(&Json::read(text).ok()?))
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (text, expected) in [
            ("0.0", "0.0"),
            ("-0.0", "-0.0"),
            ("-0", "0"),
            ("1.50", "1.5"),
            ("1e0", "1.0"),
            ("1E+2", "100.0"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("1e15", "1000000000000000.0"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1e16", "1e+16"),
            ("12345678901234567890.0", "1.2345678901234567e+19"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.5e-7", "1.5e-07"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.1", "0.1"),
            ("0.30000000000000004", "0.30000000000000004"),
        ] {
            assert_eq!(written(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn texts_are_ascii_and_members_sorted() {
        let text = "{\"\u{ff5e}\": 1, \"\\ud83d\\ude00\":[true , null], \"a\\/\": \"\u{7f}\\u0001\\t\u{e9}\"}";
        let expected = r#"{"a/":"\u007f\u0001\t\u00e9","\uff5e":1,"\ud83d\ude00":[true,null]}"#;
        assert_eq!(written(text).as_deref(), Some(expected));
        let halves = r#""\udc00\ud800a\ud83d\ude00\n\ud800""#;
        assert_eq!(written(halves).as_deref(), Some(halves));
        assert_eq!(written("[ ]").as_deref(), Some("[]"));
    }
}
