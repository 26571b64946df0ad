//! The one error type of the core.

/// An error of the core: what it refuses, and why.
///
/// Each variant says what was expected and where, so that a caller need not parse a message. An
/// error about a parameter also holds the refused value. An error about data of a person (codes,
/// values, gradients, shares, coins) holds only the position, because messages end up in logs.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Epsilon is not a finite number within the range that 64-bit words can realise.
    #[error("epsilon must be a finite number above 0 and at most {maximum}, got {value:?}")]
    Epsilon {
        /// The refused value.
        value: f64,
        /// The largest value that is accepted.
        maximum: f64,
    },

    /// Epsilon is so small that reports would carry no information.
    #[error(
        "epsilon = {epsilon:?} is too small for a domain of {domain_size} codes: \
         every code would be as good as equally likely and reports would say nothing"
    )]
    EpsilonUnrealizable {
        /// The refused value.
        epsilon: f64,
        /// The size of the domain.
        domain_size: u64,
    },

    /// A probability is outside the range that its use needs.
    #[error("{argument} must be a probability in (0, 1], got {value}")]
    Probability {
        /// The name of the argument.
        argument: &'static str,
        /// The refused value.
        value: f64,
    },

    /// One of several participation probabilities is out of range.
    #[error("probabilities[{index}] must be in [2^-30, 1], got {value}")]
    NodeProbability {
        /// The position of the first refused value.
        index: usize,
        /// The refused value.
        value: f64,
    },

    /// The size of a domain is out of range.
    #[error("domain_size must be an integer from 2 to {maximum}, got {value}")]
    DomainSize {
        /// The refused value.
        value: u64,
        /// The largest size that is accepted.
        maximum: u64,
    },

    /// A domain has more codes than the hash functions of reports can tell apart.
    #[error(
        "domain_size must be at most {maximum} for local hashing with {buckets} buckets, got \
         {value}: take fewer buckets, a seed pool or CountMeanSketch (up to 2^31 - 1 codes)"
    )]
    HashedDomain {
        /// The refused size.
        value: u64,
        /// The largest size that is accepted.
        maximum: u64,
        /// The number of buckets.
        buckets: u64,
    },

    /// Some codes are outside the domain.
    #[error(
        "{argument}[{index}] is not a code of the domain: expected an integer from 0 to {} \
         ({offenders} such value(s) in all)", .domain_size - 1
    )]
    CodeOutsideDomain {
        /// The name of the argument.
        argument: &'static str,
        /// The position of the first offender.
        index: usize,
        /// The size of the domain.
        domain_size: u64,
        /// How many codes are outside.
        offenders: usize,
    },

    /// A report is one that the oracle cannot have made.
    #[error("reports[{index}] is not a report of this oracle: expected {expected}")]
    Report {
        /// The position of the first offender.
        index: usize,
        /// What is expected.
        expected: String,
    },

    /// Two arguments that belong together have different lengths.
    #[error("{left} and {right} must have the same length, got {left_length} and {right_length}")]
    LengthMismatch {
        /// The name of the first argument.
        left: &'static str,
        /// Its length.
        left_length: usize,
        /// The name of the second argument.
        right: &'static str,
        /// Its length.
        right_length: usize,
    },

    /// An integer argument is out of range.
    #[error("{argument} must be {expected}, got {value}")]
    Integer {
        /// The name of the argument.
        argument: &'static str,
        /// The refused value.
        value: u64,
        /// What is accepted.
        expected: &'static str,
    },

    /// A number is not an element of the field.
    #[error(
        "{argument}[{index}] is not an element of the field: expected an integer from 0 to {}",
        .modulus - 1
    )]
    OutsideField {
        /// The name of the argument.
        argument: &'static str,
        /// The position of the first offender.
        index: usize,
        /// The modulus of the field.
        modulus: u64,
    },

    /// The integer type of the elements is not the one that the field uses.
    #[error("elements modulo {modulus} are integers of {expected} bits, got {found} bits")]
    ElementWidth {
        /// The modulus of the field.
        modulus: u64,
        /// The width of its elements.
        expected: u32,
        /// The width that was given.
        found: u32,
    },

    /// Two sums belong to different fields.
    #[error("sums must be over the same field, got the moduli {left} and {right}")]
    FieldMismatch {
        /// The modulus of the one.
        left: u64,
        /// The modulus of the other.
        right: u64,
    },

    /// Packed elements have the wrong length.
    #[error("{argument} must have {expected} bytes for {length} elements, got {found}")]
    PackedLength {
        /// The name of the argument.
        argument: &'static str,
        /// How many elements are expected.
        length: usize,
        /// How many bytes they take.
        expected: usize,
        /// How many bytes there are.
        found: usize,
    },

    /// The unused bits of the last byte of packed elements are not zero.
    #[error("{argument} must end in zero bits, got {value:#04x} as its last byte")]
    PackedPadding {
        /// The name of the argument.
        argument: &'static str,
        /// The last byte.
        value: u8,
    },

    /// The counts add up to more than 64 bits hold.
    #[error("{argument} adds up to more than 2^64 - 1")]
    CountOverflow {
        /// The name of the argument.
        argument: &'static str,
    },

    /// A parameter of a mechanism or of its accounting is out of range.
    #[error("{argument} must be {expected}, got {value}")]
    Accounting {
        /// The name of the argument.
        argument: &'static str,
        /// The refused value.
        value: f64,
        /// What is accepted.
        expected: &'static str,
    },

    /// An entry of an array of integers does not fit the other arguments.
    #[error("{argument}[{index}] must be {expected}")]
    Entry {
        /// The name of the argument.
        argument: &'static str,
        /// The position of the first refused entry.
        index: usize,
        /// What is accepted.
        expected: &'static str,
    },

    /// An item is reported, but no user is elected to receive its shares.
    #[error("item {item} is reported by {reporters} user(s), but no user is elected for it")]
    NobodyElected {
        /// The item.
        item: usize,
        /// How many users report it.
        reporters: usize,
    },

    /// The bounds of the values are invalid.
    #[error(
        "bounds must be two finite numbers, the lower before the upper and 1e-100 to 1e100 apart, \
         got ({low:?}, {high:?})"
    )]
    Bounds {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },

    /// The number of coordinates is out of range.
    #[error("dimensions must be an integer from 1 to {maximum}, got {value}")]
    Dimensions {
        /// The refused value.
        value: u64,
        /// The largest number that is accepted.
        maximum: u64,
    },

    /// Some values are outside their bounds.
    #[error(
        "values[{}] is not within the bounds ({low:?}, {high:?}) ({offenders} such value(s) in \
         all)", place(*.node, *.coordinate, *.dimensions)
    )]
    OutsideBounds {
        /// The node of the first offender.
        node: usize,
        /// Its coordinate.
        coordinate: usize,
        /// How many coordinates there are.
        dimensions: usize,
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
        /// How many values are outside.
        offenders: usize,
    },

    /// An example has an entry that is not a finite number.
    #[error("{argument} of example {example} must be finite numbers")]
    NotFinite {
        /// The name of the argument.
        argument: &'static str,
        /// The position of the first such example.
        example: usize,
    },

    /// The operating system gave no entropy.
    #[error("the operating system gave no random seed: {reason}")]
    Entropy {
        /// What the operating system said.
        reason: String,
    },
}

/// The result of a fallible function of the core.
pub type Result<T> = core::result::Result<T, Error>;

/// The position of a number, with its coordinate if there are several.
fn place(node: usize, coordinate: usize, dimensions: usize) -> String {
    if dimensions > 1 { format!("{node}, {coordinate}") } else { node.to_string() }
}
