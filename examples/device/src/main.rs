//! A device that is driven by a plan file alone: it reads the plan, flips the coin of participation,
//! randomizes the answer, and prints the message that it sends, or nothing if it does not take part.
//!
//! The answer leaves this program in no other way: refusals name lines, not answers.

mod arguments;
mod columns;
mod labels;
mod members;
mod noise;
mod numbers;
mod oracles;
mod padded;
mod parts;
mod plan;
mod prefixes;
mod question;
mod reports;
mod rounds;

use std::fs;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use rand::TryRng;
use rand::rngs::SysRng;

use crate::arguments::{Arguments, Request, USAGE};
use crate::noise::Noise;
use crate::plan::Plan;
use crate::question::Answers;

/// Why the program does not do what it was asked for: one line for people.
type Refusal = String;

/// It was refused: the plan, the answer, or a file.
const REFUSED: u8 = 1;

/// It was called in another way than its usage says.
const USED_WRONGLY: u8 = 2;

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args_os().skip(1)) {
        Ok(Request::Run(arguments)) => arguments,
        Ok(Request::Help) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(reason) => {
            eprintln!("error: {reason}\n{USAGE}");
            return ExitCode::from(USED_WRONGLY);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::from(REFUSED)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Refusal> {
    let name = arguments.plan.display();
    let text = fs::read_to_string(&arguments.plan).map_err(|error| format!("{name}: {error}"))?;
    let plan = Plan::read(&text, arguments.public_key.as_deref())
        .map_err(|reason| format!("{name}: {reason}"))?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| "the clock of this device stands before 1970")?;
    plan.check_current(now, arguments.least_serial)
        .map_err(|reason| format!("{name}: {reason}"))?;
    let answers = match &arguments.answer {
        Some(answer) => answer.clone(),
        None => standard_input()?,
    };
    let lines: Vec<&str> = match &arguments.answer {
        Some(_) => vec![&answers],
        None => answers.lines().collect(),
    };
    let answers = Answers { lines: &lines, codes: arguments.codes };
    let noise = arguments.seed.map_or(Noise::Fresh, Noise::Seed);
    let mut messages = String::new();
    for report in plan.reports(answers, noise)? {
        messages.push_str(&plan.message(&report, nonce()?));
        messages.push('\n');
    }
    let mut output = io::stdout().lock();
    let written = output.write_all(messages.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| format!("the message could not be written: {error}"))
}

/// 16 bytes of the operating system's, whatever the seed.
fn nonce() -> Result<[u8; 16], Refusal> {
    let mut nonce = [0; 16];
    SysRng.try_fill_bytes(&mut nonce).map_err(|error| format!("no randomness: {error}"))?;
    Ok(nonce)
}

fn standard_input() -> Result<String, Refusal> {
    let mut text = String::new();
    let read = io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| format!("the answer could not be read: {error}"))?;
    Ok(text)
}
