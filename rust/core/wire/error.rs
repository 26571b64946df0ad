//! Why documents from elsewhere are refused.

/// Why a plan, its file or a state is refused.
///
/// If a message is refused, the reason is a [`Refusal`](super::Refusal).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not such a document.
    #[error("not a {document} of turnout: {reason}")]
    Malformed {
        /// What it should be.
        document: &'static str,
        /// What is wrong with it.
        reason: String,
    },

    /// The document has another version.
    #[error("the {document} has version {found}; this release of turnout reads {expected}")]
    Version {
        /// What it is.
        document: &'static str,
        /// The version that it says, as it stands there.
        found: String,
        /// The version that is read.
        expected: u64,
    },

    /// Members are missing or unknown.
    #[error("the {document} {problem} {names}")]
    Members {
        /// What it is.
        document: &'static str,
        /// Which of the two.
        problem: Problem,
        /// The names of the members, in quotes.
        names: String,
    },

    /// A member has an invalid value.
    #[error("the {name} of a {document} must be {expected}, got {found}")]
    Value {
        /// What it stands in.
        document: &'static str,
        /// The name of the member.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What stands there, cut if it is long.
        found: String,
    },

    /// A document is not in its canonical form, the only form in which documents are compared.
    #[error("the {0} is not written in its canonical form: a program formatted the file anew")]
    NotCanonical(&'static str),

    /// The fingerprint or the checksum does not match.
    #[error("the {0} does not match its fingerprint: the file was altered or reformatted")]
    Fingerprint(&'static str),

    /// The bytes do not match their checksum.
    #[error("the {0} is truncated or was altered: its checksum does not fit")]
    Checksum(&'static str),

    /// A signature is needed, and there is none.
    #[error("the plan is not signed; expected a signature by {expected}")]
    Unsigned {
        /// Whose signature there must be.
        expected: String,
    },

    /// Another key made the signature.
    #[error("the plan is signed by {found}, expected {expected}")]
    Signer {
        /// Whose signature there is.
        found: String,
        /// Whose signature there must be.
        expected: String,
    },

    /// The signature does not fit the plan.
    #[error("the signature of the plan is not valid")]
    Signature,

    /// The plan has expired.
    #[error("the plan expired {expires} seconds after the start of 1970")]
    Expired {
        /// When, in seconds since the start of 1970.
        expires: u64,
    },

    /// The plan is older than one that is already known.
    #[error("the plan has {}, expected {least} or a later one", serial(*.found))]
    Serial {
        /// The serial of the plan.
        found: Option<u64>,
        /// The serial that it must have at least.
        least: u64,
    },
}

/// What is wrong with the members of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Some members are missing.
    Lacks,
    /// Some members are unknown.
    Unknown,
}

impl core::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::Lacks => "lacks",
            Self::Unknown => "has unknown members",
        })
    }
}

fn serial(found: Option<u64>) -> String {
    found.map_or_else(|| "no serial".to_owned(), |serial| format!("serial {serial}"))
}

/// What a message shows of a text: the beginning of a long one.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
