//! What a device refuses, and why.

use crate::wire;

/// Why a device refuses a plan or an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The question of the plan is invalid, or its parts contradict each other.
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

    /// Each person takes part with a probability of their own, which the plan does not state.
    #[error("participation is personal: this device does not know its probability")]
    PersonalParticipation,

    /// An answer does not fit this question. The error does not show the answer, because it may end
    /// up in a log.
    #[error("answer {} {reason}", .position + 1)]
    Answer {
        /// Which of the answers, from 0.
        position: usize,
        /// What it is not.
        reason: String,
    },

    /// The question asks for numbers, and codes were given, or the other way round.
    #[error("{0}")]
    OtherAnswers(&'static str),

    /// The group is not one of the plan.
    #[error("the group is not one of those that the plan lists")]
    Group,

    /// One more permanent answer would exceed the limit.
    #[error("this device may use {most} permanent answer(s), and this would be another one")]
    Budget {
        /// How many may be used.
        most: u64,
    },

    /// The state belongs to another plan's permanent answers.
    #[error("the state is of permanent answers to another question")]
    OtherState,

    /// The core refuses its input.
    #[error(transparent)]
    Core(#[from] crate::Error),

    /// A plan or a state is refused.
    #[error(transparent)]
    Wire(#[from] wire::Error),
}

/// The result of a fallible function of a device.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The error for what is no question.
pub(crate) fn refused(reason: impl Into<String>) -> Error {
    Error::Question(reason.into())
}
