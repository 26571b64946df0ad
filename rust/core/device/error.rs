//! What a device does not do, and why.

use crate::wire;

/// Why a plan is not answered, or an answer not reported.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What the plan asks is no question, or says two things that do not go together.
    #[error("not a question: {0}")]
    Question(String),

    /// The plan asks a question of a kind that this crate does not know.
    #[error("this device does not have the oracle {0}")]
    UnknownKind(String),

    /// The plan asks for permanent answers, which [`PermanentDevice`](super::PermanentDevice) gives.
    #[error("memoized has permanent answers, of which a state must be kept")]
    Permanent,

    /// The plan asks for fresh answers, which [`Device`](super::Device) gives.
    #[error("{0} has fresh answers, of which no state is kept")]
    Fresh(String),

    /// Each person takes part with a probability that the plan does not say.
    #[error("participation is personal: this device does not know its probability")]
    PersonalParticipation,

    /// An answer is none of this question. What was answered is not shown: it may end in a log.
    #[error("answer {} {reason}", .position + 1)]
    Answer {
        /// Which of the answers, from 0.
        position: usize,
        /// What it is not.
        reason: String,
    },

    /// Answers are numbers, and codes were given, or the other way round.
    #[error("{0}")]
    OtherAnswers(&'static str),

    /// The group is none of the plan.
    #[error("the group is none of those that the plan lists")]
    Group,

    /// One more permanent answer would be one too many.
    #[error("this device may use {most} permanent answer(s), and this would be another one")]
    Budget {
        /// How many may be used.
        most: u64,
    },

    /// The state is that of another plan's permanent answers.
    #[error("the state is of permanent answers to another question")]
    OtherState,

    /// The core refuses what it was given.
    #[error(transparent)]
    Core(#[from] crate::Error),

    /// A plan or a state is refused.
    #[error(transparent)]
    Wire(#[from] wire::Error),
}

/// The result of what a device does.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The error for what is no question.
pub(crate) fn refused(reason: impl Into<String>) -> Error {
    Error::Question(reason.into())
}
