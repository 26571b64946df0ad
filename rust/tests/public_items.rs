//! `rust/public_items.txt` lists what the crate makes public, so that a change of it is seen.
//!
//! What is `pub` in the source can be reached from outside, or the lint `unreachable_pub` refuses it, so
//! the source says it all: each `pub`, the variants of enums and what traits have, with the module that
//! they stand in. `PUBLIC_ITEMS=write cargo test --test public_items` writes the list.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The source files of a folder, without those of tests, in order.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries: io::Result<Vec<_>> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut entries = entries?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, into)?;
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            into.push(path);
        }
    }
    Ok(())
}

/// An item as it is declared: all lines up to its body, its semicolon or the comma after it.
fn declared<'a>(first: &'a str, rest: impl Iterator<Item = &'a str>) -> String {
    let mut text = first.trim().to_owned();
    let mut rest = rest.map(str::trim);
    let open = |text: &str| {
        let count = |brackets: &[char]| text.matches(brackets).count();
        count(&['(', '[', '{']) > count(&[')', ']', '}']) + usize::from(text.ends_with('{'))
    };
    while open(&text) || !text.ends_with([';', ',', '{', '}', ')']) || text.ends_with("->") {
        let Some(line) = rest.next() else { break };
        text.push(if text.ends_with('(') { '\0' } else { ' ' });
        text.push_str(line);
    }
    let text = text.replace('\0', "").replace(", )", ")");
    // The values of constants may change.
    let text = if text.starts_with("pub const ") && !text.starts_with("pub const fn") {
        text.split(" = ").next().unwrap_or_default().to_owned()
    } else {
        text
    };
    text.trim_end_matches([';', ',', '{', '}', ' ']).to_owned()
}

/// What a file makes public, a line for each item.
fn items(source: &str) -> Vec<String> {
    let lines: Vec<&str> =
        source.split("#[cfg(test)]\nmod ").next().unwrap_or_default().lines().collect();
    let mut found = Vec::new();
    // What the lines that are indented belong to, and whether all of it is public.
    let (mut within, mut all, mut variant) = (String::new(), false, String::new());
    for (place, line) in lines.iter().enumerate() {
        let item = || declared(line, lines.iter().skip(place + 1).copied());
        let word = line.trim_start();
        if word.starts_with("pub ") {
            let owner = if line.starts_with(' ') { &*within } else { "" };
            found.push(format!("{owner}{}", item()));
        } else if all && word.starts_with(|first: char| first.is_ascii_alphabetic()) {
            match line.len() - word.len() {
                4 => {
                    found.push(format!("{within}{}", item()));
                    variant = item();
                }
                // What is deeper in a trait is code.
                8 if within.starts_with("enum ") => {
                    found.push(format!("{within}{variant}: {}", item()));
                }
                _ => {}
            }
        }
        if !line.is_empty() && !line.starts_with([' ', '/', '#', '}', ')']) {
            within = format!("{}: ", item().trim_start_matches("pub "));
            all = line.starts_with("pub enum ") || line.starts_with("pub trait ");
        }
    }
    found
}

#[test]
fn the_list_of_public_items_is_up_to_date() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("rust");
    let mut files = Vec::new();
    sources(&root.join("core"), &mut files)?;
    let mut list = String::new();
    for path in files {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let name = name.replace('\\', "/");
        let name = name.trim_end_matches(".rs").trim_end_matches("/mod");
        for item in items(&fs::read_to_string(&path)?.replace("\r\n", "\n")) {
            let _ = writeln!(list, "{name}: {item}");
        }
    }
    let kept = root.join("public_items.txt");
    if env::var_os("PUBLIC_ITEMS").is_some_and(|told| told == "write") {
        fs::write(&kept, &list)?;
    }
    let before = fs::read_to_string(&kept)?.replace("\r\n", "\n");
    let gone: Vec<_> =
        before.lines().filter(|line| !list.lines().any(|new| new == *line)).collect();
    let new: Vec<_> = list.lines().filter(|line| !before.lines().any(|old| old == *line)).collect();
    assert!(
        gone.is_empty() && new.is_empty() && before == list,
        "write rust/public_items.txt with PUBLIC_ITEMS=write; gone: {gone:#?}, new: {new:#?}"
    );
    Ok(())
}

#[test]
fn items_are_found_in_any_place() {
    let source = "
pub const MOST: u64 = 3;
pub(crate) fn hidden() {}
/// Words.
pub struct Plan {
    text: String,
    pub serial: u64,
}
impl Plan {
    pub fn new(
        question: &str,
        serial: u64,
    ) -> Result<Self, Error>
    where
        u64: Sized,
    {
        let pub_ = 1;
    }
    fn own(&self) {}
}
pub enum Kind {
    /// Words.
    One,
    Two {
        /// Words.
        bytes: usize,
    },
}
pub trait Draws {
    fn draw(&mut self) -> u64;
    fn many(&mut self) -> Vec<u64> {
        vec![self.draw()]
    }
}
#[cfg(test)]
mod tests {
    pub fn none() {}
}
";
    let found = items(source);
    assert_eq!(
        found,
        [
            "pub const MOST: u64",
            "pub struct Plan",
            "struct Plan: pub serial: u64",
            "impl Plan: pub fn new(question: &str, serial: u64) -> Result<Self, Error> where u64: Sized",
            "pub enum Kind",
            "enum Kind: One",
            "enum Kind: Two",
            "enum Kind: Two: bytes: usize",
            "pub trait Draws",
            "trait Draws: fn draw(&mut self) -> u64",
            "trait Draws: fn many(&mut self) -> Vec<u64>",
        ]
    );
}
