//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Refusal;

/// How the program is called.
pub(crate) const USAGE: &str = "\
usage: turnout-device PLAN [ANSWER] [options]

PLAN is a plan file (plan.json). Without ANSWER, which other programs of the machine can see, answers
are read from standard input, a line each for as many devices.

  --public-key HEX  refuse a plan that is not signed by this key
  --least-serial N  refuse a plan with a smaller serial, or none
  --codes           answers are codes: 0 for the first label
  --group JSON      the group, where the plan has groups: a list of values
  --state FILE      where permanent answers are asked for: what is kept of them; lines are rounds
  --max-values N    how many permanent answers a new state allows: 1
  --seed N          for tests only: whoever knows the seed can undo the noise
  --help            print this

Exit codes: 0 a message was printed, or this device does not take part; 1 refused; 2 wrong usage.";

/// What is asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Run(Arguments),
    Help,
}

/// What a run is made with.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) plan: PathBuf,
    pub(crate) answer: Option<String>,
    pub(crate) public_key: Option<String>,
    pub(crate) least_serial: Option<u64>,
    pub(crate) codes: bool,
    pub(crate) group: Option<String>,
    pub(crate) state: Option<PathBuf>,
    pub(crate) max_values: Option<u64>,
    pub(crate) seed: Option<u64>,
}

impl Arguments {
    /// Reads the command line, without the name of the program.
    pub(crate) fn parse(given: impl Iterator<Item = OsString>) -> Result<Request, Refusal> {
        let mut found = Self::default();
        let mut places = Vec::new();
        let mut given = given;
        let mut options = true;
        while let Some(argument) = given.next() {
            let text = argument.to_str().filter(|text| options && text.starts_with("--"));
            match text {
                Some("--") => options = false,
                Some("--help") => return Ok(Request::Help),
                Some("--codes") => found.codes = true,
                Some("--public-key") => found.public_key = Some(value("--public-key", &mut given)?),
                Some("--group") => found.group = Some(value("--group", &mut given)?),
                Some("--state") => found.state = Some(path("--state", &mut given)?),
                Some(name @ "--max-values") => found.max_values = Some(number(name, &mut given)?),
                Some(name @ "--seed") => found.seed = Some(number(name, &mut given)?),
                Some(name @ "--least-serial") => {
                    found.least_serial = Some(number(name, &mut given)?);
                }
                Some(other) => return Err(format!("unknown option {other}")),
                None => places.push(argument),
            }
        }
        let mut places = places.into_iter();
        found.plan = places.next().ok_or("PLAN is missing")?.into();
        found.answer = places.next().map(text).transpose()?;
        match places.next() {
            None => Ok(Request::Run(found)),
            Some(_) => Err("there is more than PLAN and ANSWER".to_owned()),
        }
    }
}

fn value(option: &str, given: &mut impl Iterator<Item = OsString>) -> Result<String, Refusal> {
    text(given.next().ok_or_else(|| format!("{option} needs a value"))?)
}

fn path(option: &str, given: &mut impl Iterator<Item = OsString>) -> Result<PathBuf, Refusal> {
    Ok(given.next().ok_or_else(|| format!("{option} needs a value"))?.into())
}

fn number(option: &str, given: &mut impl Iterator<Item = OsString>) -> Result<u64, Refusal> {
    value(option, given)?.parse().map_err(|_| format!("{option} must be below 2^64"))
}

fn text(argument: OsString) -> Result<String, Refusal> {
    argument.into_string().map_err(|_| "an argument is not UTF-8 text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request, Refusal> {
        Arguments::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_stand_anywhere() {
        let expected = Arguments {
            plan: "plan.json".into(),
            answer: Some("yes".to_owned()),
            public_key: Some("ab".to_owned()),
            least_serial: Some(3),
            codes: true,
            group: Some("[1]".to_owned()),
            state: Some("s.json".into()),
            max_values: Some(2),
            seed: Some(7),
        };
        for line in [
            "plan.json yes --codes --seed 7 --public-key ab --least-serial 3 --group [1] --state \
             s.json --max-values 2",
            "--least-serial 3 --seed 7 --max-values 2 --state s.json --group [1] --public-key ab \
             plan.json --codes -- yes",
        ] {
            assert_eq!(parse(line), Ok(Request::Run(expected.clone())));
        }
        let dashes = parse("plan.json -- --help");
        let answer = Some("--help".to_owned());
        let expected = Arguments { plan: "plan.json".into(), answer, ..Arguments::default() };
        assert_eq!(dashes, Ok(Request::Run(expected)));
        assert_eq!(parse("--help"), Ok(Request::Help));
    }

    #[test]
    fn other_usage_is_refused() {
        for line in [
            "",
            "a b c",
            "a --seed",
            "a --seed -1",
            "a --seed x",
            "a --what",
            "a --least-serial -1",
            "a --state",
            "a --group",
            "a --max-values -1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
