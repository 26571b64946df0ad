//! Permanent answers: the person's side of a repeated collection, with a stored state.

use core::fmt;

use rand::TryRng;
use rand::rngs::SysRng;
use sha2::{Digest, Sha256};

use super::answers::{Answers, Domain, Written};
use super::coded::check;
use super::error::{Error, Result, refused};
use super::labels::Labels;
use super::members::Members;
use super::noise::Noise;
use super::oracles::{Word, bytes};
use super::question::{Description, Reports};
use super::{nonce, selection_of};
use crate::frequency::{
    BitStage, Codes, Memoized, MemoizedDirect, MemoizedUnary, SECRET_BYTES, Selection,
};
use crate::parameters::{DomainSize, Epsilon};
use crate::wire::canonical::write_text;
use crate::wire::document::Document;
use crate::wire::json::Json;
use crate::wire::sealed::{sealed, unsealed};
use crate::wire::{Layout, MessageWriter, Plan, hex};

/// The most phases that a person may have.
const MOST_PHASES: u64 = 1_000_000;

const STATE: Document = Document {
    word: "state of a client",
    format: "turnout-client",
    version: 1,
    members: &["context", "secret", "max_values", "given", "sha256"],
    optional: &[],
};

/// Answers a plan that asks for permanent answers, round after round, and limits how many are used.
///
/// The [`state`](Self::state) holds a secret and the answers that were given. Store it only where
/// you would keep the answers themselves. It changes only when a permanent answer is used for the
/// first time; store it before you send the message of that answer. If it is lost, permanent
/// answers are drawn anew, and the budget of the old ones is spent again. Python's `MemoizedClient`
/// reads and writes the same states.
///
/// ```
/// use turnout_core::device::{Noise, PermanentDevice, Written};
/// use turnout_core::wire::{Participation, Plan};
///
/// let question = r#"{"domain":{"integers":3},"epsilon":4.0,"first_epsilon":1.0,
///     "instantaneous":"direct_encoding","name":"memoized","permanent":"direct_encoding",
///     "permanent_per":"answer","question":""}"#;
/// let plan = Plan::new(question, Participation::Everyone)?;
/// let mut device = PermanentDevice::new(&plan, 1)?;
/// let answer = device.answer("2", Written::Labels)?;
/// assert!(device.message(&answer, &[], Noise::Fresh)?.is_some());
///
/// let mut again = PermanentDevice::restored(&plan, &device.state())?;
/// assert!(again.message(&answer, &[], Noise::Fresh)?.is_some());
/// let other = again.answer("1", Written::Labels)?;
/// assert!(again.message(&other, &[], Noise::Fresh).is_err());
/// # Ok::<(), turnout_core::device::Error>(())
/// ```
pub struct PermanentDevice {
    question: Question,
    selection: Selection<'static>,
    writer: MessageWriter,
    secret: [u8; SECRET_BYTES],
    most: u64,
    /// The answers that were given: of phases in their order, and otherwise by their codes.
    given: Vec<u32>,
}

/// What a permanent answer is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Per {
    /// Each different answer.
    Answer,
    /// Each time between two changes of the answer.
    Phase,
}

/// The randomizer of a plan.
struct Question {
    domain: Domain,
    size: u64,
    chain: Chain,
    per: Per,
    /// What permanent answers depend on, beside the secret and the answer.
    context: [u8; 32],
}

enum Chain {
    Direct(MemoizedDirect),
    Unary(MemoizedUnary),
}

impl Question {
    fn read(plan: &Plan) -> Result<Self> {
        let json = Json::read(plan.question()).map_err(|flaw| refused(flaw.to_string()))?;
        let mut asked = Description::read(Members::read(&json)?)?;
        if asked.name != "memoized" {
            return Err(Error::Fresh(asked.name));
        }
        let first = Epsilon::new(asked.rest.take("first_epsilon")?)?;
        let [permanent, instantaneous, per, word] =
            ["permanent", "instantaneous", "permanent_per", "question"]
                .map(|name| asked.rest.take::<String>(name));
        let (permanent, instantaneous, per, word) = (permanent?, instantaneous?, per?, word?);
        asked.rest.finish()?;
        let labels = Labels::read(asked.domain)?;
        let size = labels.size();
        let (lifetime, domain) = (Epsilon::new(asked.epsilon)?, DomainSize::new(size)?);
        let stage = |name: &str| match name {
            "symmetric_unary_encoding" => Some(BitStage::Symmetric),
            "optimized_unary_encoding" => Some(BitStage::Optimized),
            _ => None,
        };
        let direct = ["direct_encoding"; 2];
        let chain = match [&*permanent, &*instantaneous] {
            names if names == direct => {
                Chain::Direct(MemoizedDirect::new(domain, lifetime, first)?)
            }
            [one, other] => {
                let stages = stage(one).zip(stage(other));
                let (one, other) =
                    stages.ok_or_else(|| refused("the stages do not go together"))?;
                Chain::Unary(MemoizedUnary::new(domain, lifetime, first, [one, other])?)
            }
        };
        let per = match per.as_str() {
            "answer" => Per::Answer,
            "phase" => Per::Phase,
            _ => return Err(refused("permanent_per is neither answer nor phase")),
        };
        let context = context(&permanent, &chain, asked.domain.raw(), &word, per);
        Ok(Self { domain: Domain::Labels(labels), size, chain, per, context })
    }

    fn layout(&self) -> Layout {
        match &self.chain {
            Chain::Direct(_) => Layout::one(u32::INTEGER),
            Chain::Unary(chain) => {
                Layout::row(u64::INTEGER, crate::frequency::Randomizer::width(chain))
            }
        }
    }

    /// The most permanent answers that a person may be allowed.
    const fn limit(&self) -> u64 {
        match self.per {
            Per::Answer => self.size,
            Per::Phase => MOST_PHASES,
        }
    }

    /// What was given after one more report.
    fn after(&self, given: &[u32], code: u32) -> Vec<u32> {
        let mut after = given.to_vec();
        match self.per {
            Per::Phase if given.last() != Some(&code) => after.push(code),
            Per::Answer => {
                if let Err(place) = given.binary_search(&code) {
                    after.insert(place, code);
                }
            }
            Per::Phase => {}
        }
        after
    }

    /// Whether a person who is allowed so many answers can have given these.
    fn possible(&self, given: &[u32], most: u64) -> bool {
        (given.len().max(1) as u64..=self.limit()).contains(&most)
            && given.iter().all(|&code| u64::from(code) < self.size)
            && given.windows(2).all(|pair| match (self.per, pair) {
                (Per::Answer, [before, after]) => before < after,
                (Per::Phase, [before, after]) => before != after,
                _ => true,
            })
    }

    /// A report of the permanent answer for a code, of the phase of that number.
    fn report(
        &self,
        code: u32,
        secret: &[u8; SECRET_BYTES],
        phase: u64,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Reports> {
        let context = match self.per {
            Per::Answer => self.context,
            Per::Phase => Sha256::new()
                .chain_update(self.context)
                .chain_update(phase.to_le_bytes())
                .finalize()
                .into(),
        };
        let (codes, streams) = (Codes::U32(core::slice::from_ref(&code)), noise.streams()?);
        let secrets = core::slice::from_ref(secret);
        match &self.chain {
            Chain::Direct(chain) => {
                let answer = chain.permanent(codes, secrets, &context)?;
                let reports = chain.instantaneous(&answer, selection, &streams)?;
                Ok(bytes(&reports.codes, self.layout()))
            }
            Chain::Unary(chain) => {
                let answer = chain.permanent(codes, secrets, &context)?;
                let reports = chain.instantaneous(&answer, selection, &streams)?;
                Ok(bytes(&reports.codes, self.layout()))
            }
        }
    }
}

/// SHA-256 of what makes a permanent answer: neither what a report adds nor its budget is among it.
fn context(permanent: &str, chain: &Chain, domain: &str, question: &str, per: Per) -> [u8; 32] {
    let (own, other) = match chain {
        Chain::Direct(chain) => chain.words()[0],
        Chain::Unary(chain) => chain.words()[0],
    };
    let domain = hex::text(&Sha256::digest(domain));
    let per = if per == Per::Phase { r#""permanent_per":"phase","# } else { "" };
    let mut word = String::new();
    write_text(question, &mut word);
    let text = format!(
        r#"{{"domain":"{domain}","format":"turnout-permanent-answer","permanent":"{permanent}",{per}"question":{word},"version":1,"words":["{own}","{other}"]}}"#
    );
    Sha256::digest(text).into()
}

impl PermanentDevice {
    /// Makes a device with a fresh secret. It may use at most `most` permanent answers in its life:
    /// different answers, or phases.
    ///
    /// # Errors
    ///
    /// [`Error::Fresh`] for a plan of fresh answers; [`Error::PersonalParticipation`];
    /// [`Error::Question`] if the plan asks an unknown question or `most` is out of range.
    pub fn new(plan: &Plan, most: u64) -> Result<Self> {
        let mut secret = [0; SECRET_BYTES];
        SysRng
            .try_fill_bytes(&mut secret)
            .map_err(|error| crate::Error::Entropy { reason: error.to_string() })?;
        Self::with_secret(plan, secret, most)
    }

    /// Like [`new`](Self::new), with 32 bytes that only this device knows.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn with_secret(plan: &Plan, secret: [u8; SECRET_BYTES], most: u64) -> Result<Self> {
        let question = Question::read(plan)?;
        if !question.possible(&[], most) {
            return Err(refused(format!(
                "a device may use from 1 to {} permanent answers",
                question.limit()
            )));
        }
        let selection = selection_of(plan)?;
        let writer = MessageWriter::new(plan, question.layout());
        Ok(Self { question, selection, writer, secret, most, given: Vec::new() })
    }

    /// Restores the device with this [`state`](Self::state), under a plan of the same permanent
    /// answers.
    ///
    /// # Errors
    ///
    /// [`Error::OtherState`] if the plan has other permanent answers; [`Error::Wire`] if `state` is
    /// not a state or was altered; those of [`new`](Self::new).
    pub fn restored(plan: &Plan, state: &str) -> Result<Self> {
        let json = unsealed(&STATE, state)?;
        // Nothing of it is shown: it holds a secret.
        let none = || STATE.malformed("it is not what a client writes".to_owned());
        let text = |name: &str| json.member(name).and_then(Json::text);
        let secret = text("secret").and_then(|digits| hex::read(&digits)).ok_or_else(none)?;
        let context = text("context").and_then(|digits| hex::read(&digits)).ok_or_else(none)?;
        let most = json.member("max_values").and_then(Json::integer);
        let most = most.and_then(|most| u64::try_from(most).ok()).ok_or_else(none)?;
        let given = json.member("given").and_then(Json::list).and_then(|given| {
            given.iter().map(|code| u32::try_from(code.integer()?).ok()).collect()
        });
        let given: Vec<u32> = given.ok_or_else(none)?;
        let question = Question::read(plan)?;
        if question.context != context {
            return Err(Error::OtherState);
        }
        if !question.possible(&given, most) {
            return Err(none().into());
        }
        let selection = selection_of(plan)?;
        let writer = MessageWriter::new(plan, question.layout());
        Ok(Self { question, selection, writer, secret, most, given })
    }

    /// Returns the state: the secret, the limit and the answers given, with a checksum. Keep it as
    /// secret as the answers.
    #[must_use]
    pub fn state(&self) -> String {
        let (format, version) = (STATE.format, STATE.version);
        let (context, secret) = (hex::text(&self.question.context), hex::text(&self.secret));
        let given: Vec<String> = self.given.iter().map(u32::to_string).collect();
        let text = format!(
            r#"{{"format":"{format}","version":{version},"context":"{context}","secret":"{secret}","max_values":{},"given":[{}]}}"#,
            self.most,
            given.join(",")
        );
        // It is an object.
        sealed(&text).unwrap_or_default()
    }

    /// How many permanent answers have been used so far: different answers, or phases.
    #[must_use]
    pub fn values_given(&self) -> u64 {
        self.given.len() as u64
    }

    /// How many permanent answers may be used.
    #[must_use]
    pub const fn most_values(&self) -> u64 {
        self.most
    }

    /// Reads the answer of a line.
    ///
    /// # Errors
    ///
    /// [`Error::Answer`] if the line is not an answer to the question.
    pub fn answer(&self, line: &str, written: Written) -> Result<Answers> {
        self.question.domain.read([line], written)
    }

    /// Makes the message of this round, or `None` if this person does not take part; then nothing
    /// is spent. This does not check whether the plan has expired: call [`Plan::check_current`].
    ///
    /// # Errors
    ///
    /// [`Error::Budget`] if the answer would exceed the limit of different answers, whether the
    /// person takes part or not; [`Error::Answer`] if it does not fit the question;
    /// [`Error::Group`]. After an error nothing is spent.
    pub fn message(
        &mut self,
        answer: &Answers,
        group: &[u32],
        noise: Noise,
    ) -> Result<Option<String>> {
        let codes = answer.codes()?;
        let &[code] = codes else {
            return Err(Error::OtherAnswers("a message is of one answer"));
        };
        check(codes, self.question.size)?;
        let after = self.question.after(&self.given, code);
        let used = after.len() as u64;
        if used > self.most {
            return Err(Error::Budget { most: self.most });
        }
        let phase = used.saturating_sub(1);
        let report = self.question.report(code, &self.secret, phase, &self.selection, noise)?;
        if report.is_empty() {
            return Ok(None);
        }
        let message = self.writer.write(nonce()?, group, &report).ok_or(Error::Group)?;
        self.given = after;
        Ok(Some(message))
    }
}

/// Neither the secret nor the answers.
impl fmt::Debug for PermanentDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PermanentDevice({} of {} answers given)", self.given.len(), self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Participation;

    fn plan(per: &str, stages: [&str; 2]) -> Result<Plan> {
        let [permanent, instantaneous] = stages;
        let question = format!(
            r#"{{"domain":{{"labels":["a","b","c"]}},"epsilon":4.0,"first_epsilon":1.0,"instantaneous":"{instantaneous}","name":"memoized","permanent":"{permanent}","permanent_per":"{per}","question":"\u00e9"}}"#
        );
        Ok(Plan::new(&question, Participation::Everyone)?)
    }

    const DIRECT: [&str; 2] = ["direct_encoding"; 2];
    const UNARY: [&str; 2] = ["symmetric_unary_encoding", "optimized_unary_encoding"];

    #[test]
    fn a_state_is_written_and_read() -> Result<()> {
        for (per, stages) in [("answer", DIRECT), ("answer", UNARY), ("phase", DIRECT)] {
            let plan = plan(per, stages)?;
            let mut device = PermanentDevice::with_secret(&plan, [7; 32], 2)?;
            for (line, given) in [("c", 1), ("c", 1), ("a", 2), ("a", 2)] {
                let answer = device.answer(line, Written::Labels)?;
                assert!(device.message(&answer, &[], Noise::Fresh)?.is_some());
                assert_eq!(device.values_given(), given);
            }
            let again = PermanentDevice::restored(&plan, &device.state())?;
            assert_eq!((again.state(), again.most_values()), (device.state(), 2));
            let back = device.answer("c", Written::Labels)?;
            let found = device.message(&back, &[], Noise::Fresh);
            if per == "phase" {
                assert_eq!(found, Err(Error::Budget { most: 2 }));
            } else {
                assert!(found?.is_some());
            }
            assert_eq!(device.state(), again.state());
        }
        Ok(())
    }

    #[test]
    fn a_permanent_answer_is_that_of_the_secret() -> Result<()> {
        let plan = plan("answer", DIRECT)?;
        let message = |secret| -> Result<Vec<String>> {
            let mut device = PermanentDevice::with_secret(&plan, [secret; 32], 1)?;
            let answer = device.answer("b", Written::Labels)?;
            let made = (0..20).map(|seed| device.message(&answer, &[], Noise::Seed(seed)));
            let ending =
                |message: String| message.split_once("\"report\"").map(|(_, end)| end.to_owned());
            Ok(made.filter_map(|made| made.ok().flatten().and_then(ending)).collect())
        };
        assert_eq!(message(1)?.len(), 20);
        assert_eq!(message(1)?, message(1)?);
        let all: Vec<_> = (0..=u8::MAX).map(message).collect::<Result<_>>()?;
        assert!(all.iter().any(|other| *other != all[0]));
        Ok(())
    }

    #[test]
    fn other_states_and_plans_are_refused() -> Result<()> {
        let mine = plan("answer", DIRECT)?;
        let state = PermanentDevice::with_secret(&mine, [7; 32], 2)?.state();
        for (old, new) in [
            ("\"max_values\":2", "\"max_values\":3"),
            ("\"given\":[]", "\"given\":[1]"),
            ("turnout-client", "turnout-plan"),
            ("{", "[{"),
            ("0707", "0807"),
            (":", ": "),
        ] {
            let found = PermanentDevice::restored(&mine, &state.replacen(old, new, 1));
            let error = found.map_or_else(|error| error.to_string(), |_| String::new());
            assert!(!error.is_empty() && !error.contains("0707"), "{new}: {error}");
        }
        for other in [plan("phase", DIRECT)?, plan("answer", UNARY)?] {
            assert!(matches!(PermanentDevice::restored(&other, &state), Err(Error::OtherState)));
        }
        for given in ["[3]", "[1,0]", "[0,0]", "[0,1,2]", "[-1]", "[\"0\"]"] {
            let fair = sealed(&format!(
                r#"{{"context":"{}","format":"turnout-client","given":{given},"max_values":2,"secret":"{}","version":1}}"#,
                hex::text(&Question::read(&mine)?.context),
                "07".repeat(32)
            ));
            assert!(
                PermanentDevice::restored(&mine, &fair.unwrap_or_default()).is_err(),
                "{given}"
            );
        }
        for (stages, per) in [
            (["direct_encoding", "symmetric_unary_encoding"], "answer"),
            (["subset_selection"; 2], "answer"),
            (DIRECT, "day"),
        ] {
            assert!(PermanentDevice::new(&plan(per, stages)?, 1).is_err());
        }
        for most in [0, 4] {
            assert!(PermanentDevice::new(&mine, most).is_err());
        }
        Ok(())
    }
}
