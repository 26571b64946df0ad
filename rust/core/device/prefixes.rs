//! The candidates of a round that searches for frequent values: the values that begin with each of
//! some prefixes, and all other values.

use std::fmt;

use super::error::{Result, refused};
use super::members::Members;
use crate::wire::json::Json;

/// The most candidates of a round.
const MOST: usize = 1 << 20;

/// The most bytes of a text, or characters of an alphabet.
const LONGEST: usize = 512;

/// The values that can be given. Their bits are written as digits here, most significant first.
#[derive(Debug)]
enum Values {
    /// Whole numbers of so many bits.
    Integers { bits: u32 },
    /// Texts of at most so many characters of an alphabet, or bytes of UTF-8 if there is none. The
    /// codes of the characters begin with 1, and 0 fills up.
    Text { length: usize, alphabet: Option<Vec<char>> },
}

impl Values {
    fn read(json: &Json<'_>) -> Result<Self> {
        let mut members = Members::read(json)?;
        let kind: String = members.take("kind")?;
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let found = match kind.as_str() {
            "integers" => Self::Integers {
                bits: u32::try_from(members.take::<u64>("bits")?).unwrap_or(u32::MAX),
            },
            "text" => {
                let alphabet: Option<String> = members.take("alphabet")?;
                let alphabet = alphabet.map(|alphabet| alphabet.chars().collect());
                Self::Text { length: number(members.take("length")?), alphabet }
            }
            _ => return Err(refused("not a kind of values")),
        };
        members.finish()?;
        if found.exist() { Ok(found) } else { Err(refused("not a kind of values")) }
    }

    fn exist(&self) -> bool {
        match self {
            Self::Integers { bits } => (1..=64).contains(bits),
            Self::Text { length, alphabet } => {
                (1..=LONGEST).contains(length)
                    && alphabet.as_ref().is_none_or(|all| {
                        let mut sorted = all.clone();
                        sorted.sort_unstable();
                        sorted.dedup();
                        !all.is_empty() && sorted.len() == all.len() && !all.contains(&'\0')
                    })
            }
        }
    }

    /// How many bits a character takes; a number is one character.
    fn symbol_bits(&self) -> usize {
        match self {
            Self::Integers { bits } => *bits as usize,
            Self::Text { alphabet: None, .. } => 8,
            Self::Text { alphabet: Some(all), .. } => {
                (usize::BITS - all.len().leading_zeros()) as usize
            }
        }
    }

    /// How many bits a value has.
    fn bits(&self) -> usize {
        match self {
            Self::Integers { bits } => *bits as usize,
            Self::Text { length, .. } => length * self.symbol_bits(),
        }
    }

    /// The bits of the value that a text stands for, if it stands for one.
    fn digits(&self, text: &str) -> Option<String> {
        let width = self.symbol_bits();
        let (length, codes): (usize, Vec<u64>) = match self {
            Self::Integers { bits } => {
                let number =
                    text.parse::<u64>().ok().filter(|number| number.to_string() == text)?;
                (number.checked_shr(*bits).unwrap_or(0) == 0).then_some((1, vec![number]))?
            }
            Self::Text { length, alphabet: None } => {
                (*length, text.bytes().map(u64::from).collect())
            }
            Self::Text { length, alphabet: Some(all) } => {
                let code = |character| all.iter().position(|&each| each == character);
                let codes: Option<_> =
                    text.chars().map(|each| Some(code(each)? as u64 + 1)).collect();
                (*length, codes?)
            }
        };
        let ends = !matches!(self, Self::Integers { .. }) && codes.contains(&0);
        if codes.len() > length || ends {
            return None;
        }
        let filled = codes.into_iter().chain(std::iter::repeat(0)).take(length);
        let digits = filled.flat_map(|code| {
            (0..width).rev().map(move |place| if code >> place & 1 == 1 { '1' } else { '0' })
        });
        Some(digits.collect())
    }

    /// Whether some value begins with these bits: nothing follows the end of a text, and its
    /// characters exist.
    fn possible(&self, digits: &str) -> bool {
        let Self::Text { alphabet, .. } = self else {
            return true;
        };
        let size = self.symbol_bits();
        let whole = digits.len() / size;
        // A character that is cut has zeros for what is unknown: the smallest that it can be.
        let code = |cut: &[u8]| {
            let known = cut.iter().fold(0, |code, digit| 2 * code + usize::from(*digit == b'1'));
            known << (size - cut.len())
        };
        let codes: Vec<usize> = digits.as_bytes().chunks(size).map(code).collect();
        let end = codes.iter().take(whole).position(|&code| code == 0);
        if end.is_some_and(|end| codes.iter().skip(end).any(|&code| code != 0)) {
            return false;
        }
        if let Some(all) = alphabet {
            return codes.iter().all(|&code| code <= all.len());
        }
        let text: Vec<u8> = codes
            .iter()
            .take(end.unwrap_or(whole))
            .map(|&code| u8::try_from(code).unwrap_or(u8::MAX))
            .collect();
        let over = end.is_some() || digits.len() == self.bits();
        match std::str::from_utf8(&text) {
            Ok(_) => true,
            // What is missing may still come.
            Err(error) => !over && error.error_len().is_none(),
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integers { bits } => write!(formatter, "whole numbers of {bits} bits"),
            Self::Text { length, alphabet: None } => {
                write!(formatter, "texts of at most {length} bytes of UTF-8")
            }
            Self::Text { length, .. } => {
                write!(formatter, "texts of at most {length} characters of the alphabet")
            }
        }
    }
}

/// The values that have each of some prefixes, and those that have none of them.
#[derive(Debug)]
pub(crate) struct Prefixes {
    values: Values,
    /// The prefixes that are extended, in ascending order, all of one length.
    kept: Vec<String>,
    /// How many bits the candidates have.
    bits: usize,
    /// The code of each kept prefix with each ending, if some value begins so.
    codes: Vec<Option<u32>>,
    /// How many codes there are: the last is that of all other values.
    size: u32,
}

impl Prefixes {
    /// Reads such a domain.
    pub(crate) fn read(domain: &Json<'_>) -> Result<Self> {
        let mut members = Members::read(domain)?;
        let values = Values::read(members.take("values")?)?;
        let kept: Vec<String> = members.take("kept")?;
        let bits = usize::try_from(members.take::<u64>("bits")?).unwrap_or(usize::MAX);
        members.finish()?;
        let known = kept.first().map_or(0, String::len);
        let digits = |prefix: &String| {
            prefix.len() == known && prefix.bytes().all(|digit| matches!(digit, b'0' | b'1'))
        };
        let fits = (known.max(1)..=values.bits()).contains(&bits)
            && bits - known <= MOST.ilog2() as usize
            && kept.len() <= MOST >> (bits - known);
        if kept.is_empty() || !kept.iter().all(digits) || !kept.is_sorted_by(|a, b| a < b) || !fits
        {
            return Err(refused("not a domain of prefixes"));
        }
        let step = bits - known;
        let (mut codes, mut size) = (Vec::new(), 0);
        for prefix in &kept {
            for ending in 0..1_usize << step {
                let ending = if step == 0 { String::new() } else { format!("{ending:0step$b}") };
                let possible = values.possible(&format!("{prefix}{ending}"));
                codes.push(possible.then_some(size));
                size += u32::from(possible);
            }
        }
        if size == 0 {
            return Err(refused("not a domain of prefixes: no value has any"));
        }
        Ok(Self { values, kept, bits, codes, size: size + 1 })
    }

    /// How many codes there are.
    pub(crate) fn size(&self) -> u64 {
        self.size.into()
    }

    /// The code of the value that a text stands for.
    pub(crate) fn find(&self, text: &str) -> Result<u32, String> {
        self.code(text).ok_or_else(|| format!("is not one of the {}", self.values))
    }

    fn code(&self, text: &str) -> Option<u32> {
        let digits = self.values.digits(text)?;
        let (prefix, _) = digits.split_at(self.bits);
        let (known, ending) = prefix.split_at(self.kept.first().map_or(0, String::len));
        let place = self.kept.binary_search_by(|kept| kept.as_str().cmp(known)).ok();
        let code = place.and_then(|place| {
            let ending_code = usize::from_str_radix(ending, 2).unwrap_or(0);
            self.codes.get((place << ending.len()) + ending_code).copied().flatten()
        });
        Some(code.unwrap_or(self.size - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(domain: &str) -> Result<Prefixes> {
        Prefixes::read(&Json::read(domain).map_err(|flaw| refused(flaw.to_string()))?)
    }

    fn codes(domain: &str, texts: &[&str]) -> Result<Vec<Option<u32>>> {
        let prefixes = read(domain)?;
        Ok(texts.iter().map(|text| prefixes.code(text)).collect())
    }

    #[test]
    fn numbers_have_the_prefix_that_they_begin_with() -> Result<()> {
        let domain = r#"{"bits":3,"kept":["01","11"],"values":{"bits":8,"kind":"integers"}}"#;
        let texts = ["95", "64", "255", "192", "0", "128", "256", "-1", "+1", "01", "1.0", ""];
        let [first, second, last, other] = [0, 1, 3, 4].map(Some);
        let expected = [first, first, last, Some(2), other, other];
        assert_eq!(codes(domain, &texts)?.split_at(6).0, expected);
        assert!(codes(domain, texts.split_at(6).1)?.iter().all(Option::is_none));
        assert_eq!(codes(domain, &["96"])?, [second]);
        let whole = r#"{"bits":64,"kept":[""],"values":{"bits":64,"kind":"integers"}}"#;
        assert!(read(whole).is_err());
        Ok(())
    }

    #[test]
    fn texts_end_and_their_characters_exist() -> Result<()> {
        // Two bits for each character: the end, a, b, c; nothing follows the end.
        let domain =
            r#"{"bits":4,"kept":["00","01"],"values":{"alphabet":"abc","kind":"text","length":2}}"#;
        let found = codes(domain, &["", "a", "aa", "ab", "ac", "b", "cc", "abc", "d", "A"])?;
        let expected = [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(5)];
        assert_eq!(found, [&expected[..], &[None; 3]].concat());
        // Of 128 bytes from 0x80 on, 51 begin a character of UTF-8; one may be cut.
        let utf8 = r#"{"bits":8,"kept":["1"],"values":{"alphabet":null,"kind":"text","length":2}}"#;
        assert_eq!(read(utf8)?.size(), 51 + 1);
        assert_eq!(
            codes(utf8, &["\u{e9}", "a", "", "\u{20ac}"])?,
            [Some(1), Some(51), Some(51), None]
        );
        Ok(())
    }

    #[test]
    fn anything_else_is_no_domain_of_prefixes() {
        let integers = r#""values":{"bits":8,"kind":"integers"}"#;
        for (kept, bits, values) in [
            (r"[]", "3", integers),
            (r#"["0","01"]"#, "3", integers),
            (r#"["1","0"]"#, "3", integers),
            (r#"["1","1"]"#, "3", integers),
            (r#"["a"]"#, "3", integers),
            (r#"["01"]"#, "1", integers),
            (r#"[""]"#, "0", integers),
            (r#"["0"]"#, "9", integers),
            (r#"["0"]"#, "3.0", integers),
            (r#"["0"]"#, "3", r#""values":{"bits":0,"kind":"integers"}"#),
            (r#"["0"]"#, "3", r#""values":{"bits":65,"kind":"integers"}"#),
            (r#"["0"]"#, "3", r#""values":{"bits":8,"kind":"integers","more":1}"#),
            (r#"["0"]"#, "3", r#""values":{"kind":"text","length":2}"#),
            (r#"["0"]"#, "3", r#""values":{"alphabet":"","kind":"text","length":9}"#),
            (r#"["0"]"#, "3", r#""values":{"alphabet":"aa","kind":"text","length":9}"#),
            (r#"["0"]"#, "3", r#""values":{"alphabet":"a\u0000","kind":"text","length":9}"#),
            (r#"["0"]"#, "3", r#""values":{"alphabet":null,"kind":"text","length":513}"#),
            (r#"["11"]"#, "3", r#""values":{"alphabet":"ab","kind":"text","length":2}"#),
        ] {
            let text = format!(r#"{{"bits":{bits},"kept":{kept},{values}}}"#);
            assert!(read(&text).is_err(), "{text}");
        }
    }
}
