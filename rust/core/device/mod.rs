//! A device: it makes the message to send from a plan and an answer.
//!
//! A [`Device`] answers questions of all kinds that ask for fresh answers. For permanent answers,
//! use a [`PermanentDevice`], whose state the caller stores. An answer leaves them only in
//! randomized form: errors name the position of an answer, never the answer.
//!
//! Kinds that installed Python packages add are unknown here: [`Error::UnknownKind`].

mod answers;
mod coded;
mod columns;
mod error;
mod interval;
mod labels;
mod members;
mod noise;
mod numbers;
mod oracles;
mod padded;
mod parts;
mod permanent;
mod prefixes;
mod question;
mod rounds;

use core::fmt;

use rand::TryRng;
use rand::rngs::SysRng;

pub use answers::{Answers, Written};
pub use error::{Error, Result};
pub use noise::Noise;
pub use permanent::PermanentDevice;

use error::refused;
use question::Question;

use crate::frequency::Selection;
use crate::wire::json::Json;
use crate::wire::{Layout, MessageWriter, NONCE_BYTES, Participation, Plan};

/// Answers a plan.
///
/// ```
/// use turnout_core::device::{Device, Noise, Written};
/// use turnout_core::wire::{MessageReader, Participation, Plan};
///
/// let question = r#"{"domain":{"labels":["no","yes"]},"epsilon":1.0,"name":"direct_encoding"}"#;
/// let plan = Plan::new(question, Participation::Everyone)?;
/// let device = Device::new(&plan)?;
/// let answer = device.answers(["yes"], Written::Labels)?;
/// let message = device.message(&answer, &[], Noise::Fresh)?.expect("everyone takes part");
///
/// let mut report = [9];
/// let reader = MessageReader::new([&plan], device.layout());
/// assert!(reader.read(message.as_bytes(), &mut report, &mut []).is_ok());
/// assert!(report[0] < 2);
/// # Ok::<(), turnout_core::device::Error>(())
/// ```
pub struct Device {
    question: Box<dyn Question>,
    selection: Selection<'static>,
    writer: MessageWriter,
}

impl Device {
    /// Makes the device of a plan. This does not check whether the plan has expired: call
    /// [`Plan::check_current`].
    ///
    /// # Errors
    ///
    /// [`Error::UnknownKind`] for an unknown kind of question; [`Error::Permanent`] for permanent
    /// answers; [`Error::PersonalParticipation`]; [`Error::Question`] or [`Error::Core`] if the
    /// question is invalid.
    pub fn new(plan: &Plan) -> Result<Self> {
        let json = Json::read(plan.question()).map_err(|flaw| refused(flaw.to_string()))?;
        let question = question::read(&json)?;
        let writer = MessageWriter::new(plan, question.layout());
        Ok(Self { question, selection: selection_of(plan)?, writer })
    }

    /// The layout of its reports.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.question.layout()
    }

    /// How many codes or numbers an answer has.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.question.domain().columns()
    }

    /// Reads answers, a line for each person.
    ///
    /// The answer to one question is its label: a text as it is, any other label as the plan writes
    /// it. For several questions, the line is JSON: an object with the answers by name, or a list
    /// in the order of the plan. For numbers, it is a number or a JSON list of numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Answer`] with the first line that is not an answer; [`Error::OtherAnswers`] if
    /// codes are given to a question for numbers.
    pub fn answers<'l>(
        &self,
        lines: impl IntoIterator<Item = &'l str>,
        written: Written,
    ) -> Result<Answers> {
        self.question.domain().read(lines, written)
    }

    /// Makes the reports of those people who take part, in their order. The integers are
    /// little-endian, and each report has [`Layout::bytes`] bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OtherAnswers`], [`Error::Answer`] or [`Error::Core`] if the answers do not fit this
    /// question.
    pub fn reports(&self, answers: &Answers, noise: Noise) -> Result<Vec<u8>> {
        self.question.reports(answers, &self.selection, noise)
    }

    /// Makes the messages of those people who take part, in their order. All are of one group: for
    /// each column of groups, `group` has the index of its value in the plan.
    ///
    /// # Errors
    ///
    /// Those of [`reports`](Self::reports); [`Error::Group`].
    pub fn messages(&self, answers: &Answers, group: &[u32], noise: Noise) -> Result<Vec<String>> {
        let reports = self.reports(answers, noise)?;
        let message =
            |report: &[u8]| self.writer.write(nonce()?, group, report).ok_or(Error::Group);
        reports.chunks(self.writer.layout().bytes().max(1)).map(message).collect()
    }

    /// Makes the message of one person, or `None` if this person does not take part.
    ///
    /// # Errors
    ///
    /// Those of [`messages`](Self::messages); [`Error::OtherAnswers`] if there is not exactly one
    /// answer.
    pub fn message(&self, answer: &Answers, group: &[u32], noise: Noise) -> Result<Option<String>> {
        let values = match answer {
            Answers::Codes(codes) => codes.len(),
            Answers::Numbers(numbers) => numbers.len(),
        };
        if values != self.columns() {
            return Err(Error::OtherAnswers("a message is of one answer"));
        }
        Ok(self.messages(answer, group, noise)?.pop())
    }

    /// The writer of the device's messages.
    #[must_use]
    pub const fn writer(&self) -> &MessageWriter {
        &self.writer
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Device").field("writer", &self.writer).finish_non_exhaustive()
    }
}

/// Who takes part in a plan.
fn selection_of(plan: &Plan) -> Result<Selection<'static>> {
    match plan.participation() {
        Participation::Everyone => Ok(Selection::everyone()),
        Participation::Bernoulli(rate) => Ok(Selection::bernoulli(rate)),
        Participation::Personalized => Err(Error::PersonalParticipation),
    }
}

/// Draws sixteen bytes from the operating system, which identify one message. The seed of the noise
/// does not affect them.
///
/// # Errors
///
/// [`Error::Core`] if the operating system gives none.
pub fn nonce() -> Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    SysRng
        .try_fill_bytes(&mut nonce)
        .map_err(|error| crate::Error::Entropy { reason: error.to_string() })?;
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(question: &str, participation: Participation) -> Result<Device> {
        Device::new(&Plan::new(question, participation)?)
    }

    #[test]
    fn a_message_is_of_one_answer_and_a_group_of_the_plan() -> Result<()> {
        let question = r#"{"domain":{"integers":3},"epsilon":1.0,"name":"direct_encoding"}"#;
        let device = device(question, Participation::Everyone)?;
        let one = Answers::Codes(vec![1]);
        assert!(device.message(&one, &[], Noise::Fresh)?.is_some());
        assert_eq!(device.message(&one, &[0], Noise::Fresh), Err(Error::Group));
        for answers in
            [Answers::Codes(vec![]), Answers::Codes(vec![1, 2]), Answers::Numbers(vec![1.0])]
        {
            let found = device.message(&answers, &[], Noise::Fresh);
            assert!(matches!(found, Err(Error::OtherAnswers(_))), "{answers:?}");
        }
        let outside = device.message(&Answers::Codes(vec![3]), &[], Noise::Fresh);
        assert!(matches!(outside, Err(Error::Core(_))));
        Ok(())
    }

    #[test]
    fn kinds_and_participations_that_are_not_known_are_said() {
        let question =
            |name: &str| format!(r#"{{"domain":{{"integers":3}},"epsilon":1.0,"name":"{name}"}}"#);
        let found = |name, participation| device(&question(name), participation).err();
        assert_eq!(
            found("other", Participation::Everyone),
            Some(Error::UnknownKind("other".to_owned()))
        );
        assert_eq!(found("memoized", Participation::Everyone), Some(Error::Permanent));
        let personal = found("direct_encoding", Participation::Personalized);
        assert_eq!(personal, Some(Error::PersonalParticipation));
    }
}
