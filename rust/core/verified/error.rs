//! Why parameters, measurements and reports are refused.

/// Why Prio3 refuses something.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is out of range.
    #[error("{argument} must be {expected}, got {value}")]
    Parameter {
        /// The name of the parameter.
        argument: &'static str,
        /// The refused value.
        value: u64,
        /// What is accepted.
        expected: &'static str,
    },

    /// The parameters do not allow this measurement.
    #[error("measurement must be {expected}")]
    Measurement {
        /// What is accepted.
        expected: String,
    },

    /// Bytes have the wrong length.
    #[error("{what} must have {expected} bytes, got {found}")]
    Length {
        /// What the bytes are.
        what: &'static str,
        /// How many there must be.
        expected: usize,
        /// How many there are.
        found: usize,
    },

    /// Bytes are not field elements, or not a message of the protocol.
    #[error("{what} cannot be read: it was altered, or made with other parameters")]
    Encoding {
        /// What the bytes are.
        what: &'static str,
    },

    /// The number of parts differs from the number of aggregators.
    #[error("there must be {expected} {what}, one from each aggregator, got {found}")]
    Parts {
        /// What they are.
        what: &'static str,
        /// How many there must be.
        expected: usize,
        /// How many there are.
        found: usize,
    },

    /// The proof of a report does not hold.
    #[error("the proof does not hold: the report was altered, or is not one valid measurement")]
    Proof,

    /// An earlier report has the same nonce.
    #[error("the nonce is that of a report before: the report was replayed")]
    Replayed,

    /// A sum with its noise may not fit into the field.
    #[error(
        "{reports} reports with noise may not fit into the field: expected fewer reports, smaller \
         measurements or less noise"
    )]
    Wraps {
        /// How many reports are in the sum.
        reports: u64,
    },

    /// The core refuses its input.
    #[error(transparent)]
    Core(#[from] crate::Error),
}

impl Error {
    /// Tells whether bytes could not be read, in contrast to a proof that does not hold.
    #[must_use]
    pub const fn malformed(&self) -> bool {
        matches!(self, Self::Length { .. } | Self::Encoding { .. } | Self::Parts { .. })
    }
}

/// The result of a fallible function of this module.
pub type Result<T, E = Error> = core::result::Result<T, E>;
