//! The thresholds of two stages of randomised bits.

use num_bigint::BigUint;

use super::{first_out_of_reach, logarithm_up};
use crate::parameters::Epsilon;
use crate::random::ExponentialBounds;
use crate::{Error, Result};

const HALF: u64 = 1 << 63;

/// How a bit is randomised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitStage {
    /// A one stays one as often as a zero stays zero (basic RAPPOR).
    Symmetric,
    /// A one stays one half of the time, so that zeros stay zero more often (Wang, Blocki, Li, Jha,
    /// 2017).
    Optimized,
}

impl BitStage {
    /// The words out of 2^64 that make a one of a one, if `zero` of them make a one of a zero.
    const fn one(self, zero: u64) -> u64 {
        match self {
            Self::Symmetric => zero.wrapping_neg(),
            Self::Optimized => HALF,
        }
    }
}

/// Two stages of randomised bits, each given as how many of the 2^64 words make a one.
///
/// A unary report has one bit for each code; the bit of the own code is one before it is
/// randomised. Two answers differ in two bits. So the likelihood ratio of a report has two factors.
/// One is the ratio of a one under a one and under a zero; the other is that of a zero under a zero
/// and under a one. The thresholds give the smallest noise whose exact ratio is within `e^epsilon`.
/// Bisection in integers finds them, and [`ExponentialBounds`] proves them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BitChain {
    lifetime: Epsilon,
    first: Epsilon,
    /// Of the permanent answer: words for a one that is one, and for a zero.
    permanent: (u64, u64),
    /// Of each report, given the permanent answer.
    instantaneous: (u64, u64),
}

impl BitChain {
    /// Finds the stages with which the permanent answer is `lifetime`-private and one report is
    /// `first`-private.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if `first` cannot be reached below `lifetime`;
    /// [`Error::EpsilonUnrealizable`] if an epsilon is so small that reports would carry no
    /// information.
    pub fn new(
        lifetime: Epsilon,
        first: Epsilon,
        permanent: BitStage,
        instantaneous: BitStage,
    ) -> Result<Self> {
        if first >= lifetime {
            return Err(first_out_of_reach(first.get(), lifetime.get()));
        }
        let zero = least_noise(lifetime, |zero| ratio(permanent.one(zero), zero));
        let permanent = (permanent.one(zero), zero);
        let report = |zero| chained(permanent, (instantaneous.one(zero), zero));
        let zero = least_noise(first, report);
        if zero <= 1 {
            return Err(first_out_of_reach(first.get(), lifetime.get()));
        }
        for (epsilon, noise) in [(lifetime, permanent.1), (first, zero)] {
            // Half of the digits at least must be left for the difference.
            if HALF - noise < 1 << 31 {
                return Err(Error::EpsilonUnrealizable { epsilon: epsilon.get(), domain_size: 2 });
            }
        }
        let instantaneous = (instantaneous.one(zero), zero);
        Ok(Self { lifetime, first, permanent, instantaneous })
    }

    /// The words of the permanent answer, and of a report: how many make a one of a one, and how
    /// many of a zero.
    #[must_use]
    pub const fn words(&self) -> [(u64, u64); 2] {
        [self.permanent, self.instantaneous]
    }

    /// The realised epsilon of the permanent answer, rounded up.
    #[must_use]
    pub fn lifetime_epsilon(&self) -> f64 {
        let (above, below) = ratio(self.permanent.0, self.permanent.1);
        logarithm_up(&above, &below, self.lifetime.get())
    }

    /// The realised epsilon of one report, rounded up.
    #[must_use]
    pub fn first_epsilon(&self) -> f64 {
        let (above, below) = chained(self.permanent, self.instantaneous);
        logarithm_up(&above, &below, self.first.get())
    }

    /// The probabilities that a bit of a report is one, for the own code and for another.
    #[must_use]
    pub fn support_probabilities(&self) -> (f64, f64) {
        let share = |words: u64| words as f64 / 18_446_744_073_709_551_616.0;
        let (one, zero) = (share(self.instantaneous.0), share(self.instantaneous.1));
        let through = |words| share(words) * one + (1.0 - share(words)) * zero;
        (through(self.permanent.0), through(self.permanent.1))
    }
}

/// `one (1 - zero)` and `zero (1 - one)` for numbers out of `2^64`.
fn ratio(one: u64, zero: u64) -> (BigUint, BigUint) {
    odds(&one.into(), &zero.into(), 64)
}

/// The same for bits that go through two stages.
fn chained(first: (u64, u64), second: (u64, u64)) -> (BigUint, BigUint) {
    let through = |ones: u64| {
        let zeros = (1_u128 << 64) - u128::from(ones);
        BigUint::from(ones) * second.0 + BigUint::from(zeros) * second.1
    };
    odds(&through(first.0), &through(first.1), 128)
}

fn odds(one: &BigUint, zero: &BigUint, bits: u32) -> (BigUint, BigUint) {
    let whole = BigUint::from(1_u32) << bits;
    (one * (&whole - zero), zero * (&whole - one))
}

/// The least words for a one that was zero, whose ratio is at most `e^epsilon`.
fn least_noise(epsilon: Epsilon, ratio: impl Fn(u64) -> (BigUint, BigUint)) -> u64 {
    let bounds = ExponentialBounds::new(epsilon.get());
    // The ratio falls from the first to the last, where it is one.
    let (mut low, mut high) = (1, HALF);
    while low < high {
        let middle = low + (high - low) / 2;
        let (above, below) = ratio(middle);
        if bounds.at_least_ratio(&above, &below) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}
