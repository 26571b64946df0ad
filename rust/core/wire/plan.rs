//! Plans: what is asked, who takes part, and until when.

use core::fmt::{self, Write as _};

use sha2::{Digest, Sha256};

use super::canonical::{canonical, write_text};
use super::document::Document;
use super::error::Error;
use super::groups::Groups;
use super::hex;
use super::json::Json;
use crate::parameters::Probability;

/// The largest serial: every JSON reader takes this for an integer.
pub const MOST_SERIAL: u64 = (1 << 53) - 1;

/// The latest moment at which a plan can expire: the end of the year 9999, in seconds since 1970.
pub const MOST_EXPIRES: u64 = 253_402_300_799;

const PLAN: Document = Document {
    word: "plan",
    format: "turnout-plan",
    version: 1,
    members: &["oracle", "participation"],
    optional: &["serial", "expires", "groups"],
};

/// SHA-256 of the text of a plan. Messages and files name their plan by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a text.
    pub(crate) fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Reads the fingerprint from 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn from_hex(digits: &str) -> Option<Self> {
        hex::read(digits).map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}

/// 64 lower-case hexadecimal digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::text(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fingerprint({self})")
    }
}

/// How the people who are asked take part.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Participation {
    /// All of them take part.
    Everyone,
    /// Each takes part with this probability, whatever the answer.
    Bernoulli(Probability),
    /// Each takes part with a probability of their own, which the plan does not state.
    Personalized,
}

impl Participation {
    /// Reads the participation of a plan. Returns `None` if the text is not one.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Self::of(&Json::read(text).ok()?)
    }

    fn of(json: &Json<'_>) -> Option<Self> {
        let members = json.members()?;
        let rate = members.get("rate");
        let kind = members.get("kind")?.text()?;
        let found = match (&*kind, rate) {
            ("everyone", None) => Self::Everyone,
            ("personalized", None) => Self::Personalized,
            ("bernoulli", Some(rate)) => Self::Bernoulli(Probability::new(rate.number()?).ok()?),
            _ => return None,
        };
        (members.len() == 1 + usize::from(rate.is_some())).then_some(found)
    }
}

impl fmt::Display for Participation {
    /// As it stands in a plan.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => formatter.write_str(r#"{"kind":"everyone"}"#),
            Self::Personalized => formatter.write_str(r#"{"kind":"personalized"}"#),
            Self::Bernoulli(rate) => {
                write!(formatter, r#"{{"kind":"bernoulli","rate":{:?}}}"#, rate.get())
            }
        }
    }
}

/// A plan. Its question stays a text here: only the programs that answer or count know the kinds of
/// questions.
///
/// ```
/// use turnout_core::wire::{Participation, Plan};
///
/// let question = r#"{"domain":{"integers":3},"epsilon":1.0,"name":"direct_encoding"}"#;
/// let plan = Plan::new(question, Participation::Everyone)?.with_serial(7)?;
/// assert_eq!(Plan::read(plan.text())?, plan);
/// assert_eq!((plan.question(), plan.serial()), (question, Some(7)));
/// # Ok::<(), turnout_core::wire::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    text: String,
    fingerprint: Fingerprint,
    question: String,
    participation: Participation,
    serial: Option<u64>,
    expires: Option<u64>,
    groups: Groups,
}

impl Plan {
    /// Makes a plan with a question, which is given by its description in JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the description is not JSON.
    pub fn new(question: &str, participation: Participation) -> Result<Self, Error> {
        Self {
            text: String::new(),
            fingerprint: Fingerprint([0; 32]),
            question: question.to_owned(),
            participation,
            serial: None,
            expires: None,
            groups: Groups::default(),
        }
        .written()
    }

    /// Returns the same plan with a serial, which must grow each time the plan of a collection is
    /// published anew.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if the serial is above [`MOST_SERIAL`].
    pub fn with_serial(self, serial: u64) -> Result<Self, Error> {
        Self { serial: Some(serial), ..self }.written()
    }

    /// Returns the same plan with an end, in seconds since the start of 1970. From then on nobody
    /// reports.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if the end is after [`MOST_EXPIRES`].
    pub fn with_expires(self, expires: u64) -> Result<Self, Error> {
        Self { expires: Some(expires), ..self }.written()
    }

    /// Returns the same plan with public columns that each message carries.
    ///
    /// # Errors
    ///
    /// No error: groups are already checked.
    pub fn with_groups(self, groups: Groups) -> Result<Self, Error> {
        Self { groups, ..self }.written()
    }

    /// Writes its text, and reads it as anybody would.
    fn written(self) -> Result<Self, Error> {
        let mut text = format!(
            r#"{{"format":"{}","oracle":{},"participation":{},"version":{}"#,
            PLAN.format, self.question, self.participation, PLAN.version
        );
        // Nothing can go wrong when a text is written to.
        let _ = self.serial.map(|serial| write!(text, r#","serial":{serial}"#));
        let _ = self.expires.map(|expires| write!(text, r#","expires":{expires}"#));
        if !self.groups.is_empty() {
            let _ = write!(text, r#","groups":{}"#, self.groups);
        }
        text.push('}');
        let json = PLAN.read(&text)?;
        Self::read(&canonical(&json))
    }

    /// Reads the text of a plan, which must be its canonical text.
    ///
    /// # Errors
    ///
    /// [`Error::Version`] for a later version; [`Error::NotCanonical`] for another text of the same
    /// plan; [`Error::Malformed`], [`Error::Members`] or [`Error::Value`] if the text is not a
    /// plan.
    pub fn read(text: &str) -> Result<Self, Error> {
        Self::of(&PLAN.read(text)?)
    }

    /// Reads a plan from any JSON text that describes it.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::read`], except [`Error::NotCanonical`].
    pub fn described(text: &str) -> Result<Self, Error> {
        Self::described_by(&PLAN.read(text)?)
    }

    pub(super) fn described_by(json: &Json<'_>) -> Result<Self, Error> {
        Self::read(&canonical(json))
    }

    /// Its text as a value.
    pub(super) fn json(&self) -> Result<Json<'_>, Error> {
        PLAN.read(&self.text)
    }

    /// The plan that a value describes.
    pub(super) fn of(json: &Json<'_>) -> Result<Self, Error> {
        PLAN.check(json)?;
        if canonical(json) != json.raw() {
            return Err(Error::NotCanonical("plan"));
        }
        let participation = json.member("participation");
        let Some(taking_part) = participation.and_then(Participation::of) else {
            return Err(PLAN.value("participation", "one that is known", participation));
        };
        let number = |name, most: u64, expected| match json.member(name) {
            None => Ok(None),
            Some(found) => found
                .integer()
                .and_then(|number| u64::try_from(number).ok())
                .filter(|&number| number <= most)
                .map(Some)
                .ok_or_else(|| PLAN.value(name, expected, Some(found))),
        };
        let groups = json.member("groups");
        let found = groups.map_or_else(|| Some(Groups::default()), Groups::of);
        Ok(Self {
            text: json.raw().to_owned(),
            fingerprint: Fingerprint::of(json.raw()),
            question: json.member("oracle").map_or("", Json::raw).to_owned(),
            participation: taking_part,
            serial: number("serial", MOST_SERIAL, "an integer from 0 to 9007199254740991")?,
            expires: number("expires", MOST_EXPIRES, "an integer from 0 to 253402300799")?,
            groups: found.ok_or_else(|| {
                PLAN.value("groups", "a list of different columns with different values", groups)
            })?,
        })
    }

    /// Its canonical text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of its text.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The description of the question, in JSON.
    #[must_use]
    pub fn question(&self) -> &str {
        &self.question
    }

    /// Who takes part.
    #[must_use]
    pub const fn participation(&self) -> Participation {
        self.participation
    }

    /// Its serial within its collection, if it has one.
    #[must_use]
    pub const fn serial(&self) -> Option<u64> {
        self.serial
    }

    /// When it expires, in seconds since the start of 1970.
    #[must_use]
    pub const fn expires(&self) -> Option<u64> {
        self.expires
    }

    /// The public columns that each message carries.
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Refuses a plan that has expired at `moment`, in seconds since the start of 1970.
    ///
    /// # Errors
    ///
    /// [`Error::Expired`] if it has expired.
    pub fn check_current(&self, moment: u64) -> Result<(), Error> {
        match self.expires {
            Some(expires) if moment >= expires => Err(Error::Expired { expires }),
            _ => Ok(()),
        }
    }

    /// Refuses a plan that is older than the plan with serial `least`.
    ///
    /// # Errors
    ///
    /// [`Error::Serial`] if its serial is smaller or missing.
    pub fn check_serial(&self, least: u64) -> Result<(), Error> {
        match self.serial {
            Some(serial) if serial >= least => Ok(()),
            found => Err(Error::Serial { found, least }),
        }
    }
}

/// A text in quotes, as canonical texts have it.
pub(super) fn quoted(text: &str) -> String {
    let mut written = String::new();
    write_text(text, &mut written);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = r#"{"domain":{"labels":["no","yes"]},"epsilon":0.1,"name":"any"}"#;

    fn plan() -> Result<Plan, Error> {
        let rate = Probability::new(1e-7).map_err(|_| Error::Signature)?;
        Plan::new(QUESTION, Participation::Bernoulli(rate))
    }

    #[test]
    fn a_plan_has_one_text() -> Result<(), Error> {
        let plan = plan()?.with_expires(1000)?.with_serial(3)?;
        let expected = format!(
            r#"{{"expires":1000,"format":"turnout-plan","oracle":{QUESTION},"participation":{{"kind":"bernoulli","rate":1e-07}},"serial":3,"version":1}}"#
        );
        assert_eq!(plan.text(), expected);
        assert_eq!(plan.question(), QUESTION);
        for (old, new) in
            [("1000", "1e3"), ("1000", "01000"), (",", ", "), ("1e-07", "1e-7"), ("no", "\\u006eo")]
        {
            assert!(Plan::read(&expected.replacen(old, new, 1)).is_err(), "{new}");
        }
        Ok(())
    }

    #[test]
    fn a_plan_has_its_time() -> Result<(), Error> {
        let plan = plan()?;
        assert_eq!(plan.check_current(u64::MAX), Ok(()));
        assert!(plan.check_serial(0).is_err());
        let plan = plan.with_serial(7)?.with_expires(1000)?;
        assert_eq!((plan.check_current(999), plan.check_serial(7)), (Ok(()), Ok(())));
        assert_eq!(plan.check_current(1000), Err(Error::Expired { expires: 1000 }));
        assert_eq!(plan.check_serial(8), Err(Error::Serial { found: Some(7), least: 8 }));
        assert!(plan.clone().with_serial(MOST_SERIAL)?.with_expires(MOST_EXPIRES).is_ok());
        assert!(plan.clone().with_serial(MOST_SERIAL + 1).is_err());
        assert!(plan.with_expires(MOST_EXPIRES + 1).is_err());
        Ok(())
    }

    #[test]
    fn anything_else_is_no_plan() -> Result<(), Error> {
        let plan = plan()?.with_serial(7)?;
        for (old, new, words) in [
            (r#""version":1"#, r#""version":2"#, "has version 2"),
            (r#""version":1"#, r#""version":true"#, "has version true"),
            ("turnout-plan", "turnout-file", "its format is not"),
            (r#""serial":7"#, r#""serial":null"#, "the serial of a plan must be an integer"),
            (r#""serial":7"#, r#""serial":7.0"#, "the serial of a plan must be an integer"),
            (r#""serial":7"#, r#""serial":-7"#, "the serial of a plan must be an integer"),
            (r#""serial":7"#, r#""seriel":7"#, "has unknown members 'seriel'"),
            (r#""oracle""#, r#""orakle""#, "lacks 'oracle'"),
            ("1e-07", "1.5", "the participation of a plan"),
            ("bernoulli", "everyone", "the participation of a plan"),
        ] {
            let text = plan.text().replacen(old, new, 1);
            let found = Plan::read(&text).map_err(|error| error.to_string());
            assert!(found.is_err_and(|error| error.contains(words)), "{new}");
        }
        Ok(())
    }
}
