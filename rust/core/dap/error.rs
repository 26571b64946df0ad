//! Why DAP messages, tasks and keys are refused.

/// Why a message, a task or a key of DAP is refused. No error shows a plaintext or a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes from elsewhere are not such a message.
    #[error("not a valid {message}: {reason} (at byte {place})")]
    Malformed {
        /// What they should be, in the draft's words.
        message: &'static str,
        /// What is wrong.
        reason: &'static str,
        /// How many bytes were read before.
        place: usize,
    },
    /// A value has no encoding in a message.
    #[error("{what} must be {expected}, got {given}")]
    Value {
        /// What it is.
        what: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is instead.
        given: String,
    },
    /// This crate cannot encrypt to this HPKE configuration.
    #[error(
        "no supported HPKE configuration; expected DHKEM(X25519, HKDF-SHA256) (0x0020) with HKDF-SHA256 \
         (0x0001) and AES-128-GCM (0x0001) or AES-256-GCM (0x0002), got {given}"
    )]
    Unsupported {
        /// The numbers of what was offered.
        given: String,
    },
    /// The public key of an HPKE configuration is invalid, or does not belong to the private key.
    #[error("an HPKE key must be {expected}")]
    Key {
        /// What it must be.
        expected: &'static str,
    },
    /// A ciphertext cannot be decrypted.
    #[error("the {what} does not open: it is for another key or task, or was altered")]
    Sealed {
        /// What was encrypted.
        what: &'static str,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    Randomness,
}

/// The result of a fallible function of this module.
pub type Result<T, E = Error> = core::result::Result<T, E>;
