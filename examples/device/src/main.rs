//! A device that is driven by a plan file alone: it reads the plan, flips the coin of participation,
//! randomizes the answer, and prints the message that it sends, or nothing if it does not take part.
//!
//! The answer leaves this program in no other way: refusals name lines, not answers.

mod arguments;
mod state;

use std::fs;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use turnout_core::device::{Device, Error, Noise, PermanentDevice, Written};
use turnout_core::wire::{Plan, PlanFile, PublicKey};

use crate::arguments::{Arguments, Request, USAGE};

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
    let plan = plan(arguments).map_err(|reason| format!("{name}: {reason}"))?;
    let group = match &arguments.group {
        Some(group) => plan.groups().find(group).ok_or("the plan does not list the group")?,
        None => Vec::new(),
    };
    let answers = match &arguments.answer {
        Some(answer) => answer.clone(),
        None => standard_input()?,
    };
    let lines: Vec<&str> = match &arguments.answer {
        Some(_) => vec![&answers],
        None => answers.lines().collect(),
    };
    let written = if arguments.codes { Written::Codes } else { Written::Labels };
    let noise = arguments.seed.map_or(Noise::Fresh, Noise::Seed);
    let messages = match Device::new(&plan) {
        Ok(device) => {
            let answers = device.answers(lines, written).map_err(|error| error.to_string())?;
            device.messages(&answers, &group, noise).map_err(|error| error.to_string())?
        }
        Err(Error::Permanent) => {
            let path = arguments.state.as_ref().ok_or("permanent answers need --state")?;
            let mut device = match state::read(path)? {
                Some(state) => PermanentDevice::restored(&plan, &state),
                None => PermanentDevice::new(&plan, arguments.max_values.unwrap_or(1)),
            }
            .map_err(|reason| format!("{}: {reason}", path.display()))?;
            let mut messages = Vec::new();
            for line in lines {
                let message = device
                    .answer(line, written)
                    .and_then(|answer| device.message(&answer, &group, noise));
                messages.extend(message.map_err(|error| error.to_string())?);
            }
            // Before any message leaves.
            state::write(path, &device.state())?;
            messages
        }
        Err(error) => return Err(format!("{name}: {error}")),
    };
    let text: String = messages.into_iter().map(|message| message + "\n").collect();
    let mut output = io::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| format!("the message could not be written: {error}"))
}

/// The plan of the file, if it may be answered now.
fn plan(arguments: &Arguments) -> Result<Plan, Refusal> {
    let data = fs::read(&arguments.plan).map_err(|error| error.to_string())?;
    let key = match &arguments.public_key {
        Some(digits) => {
            Some(PublicKey::from_hex(digits).ok_or("--public-key must have 64 hex digits")?)
        }
        None => None,
    };
    let file = PlanFile::read(&data, key.as_ref()).map_err(|error| error.to_string())?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| "the clock of this device stands before 1970")?;
    let plan = file.into_plan();
    plan.check_current(now.as_secs()).map_err(|error| error.to_string())?;
    if let Some(least) = arguments.least_serial {
        plan.check_serial(least).map_err(|error| error.to_string())?;
    }
    Ok(plan)
}

fn standard_input() -> Result<String, Refusal> {
    let mut text = String::new();
    let read = io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| format!("the answer could not be read: {error}"))?;
    Ok(text)
}
