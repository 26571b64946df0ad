//! Randomness: cryptographic streams, and exact decisions drawn from their words.
//!
//! * [`Streams`] splits one key into independent streams by purpose and fixed chunk index, so that
//!   results never depend on the number of threads. [`AesStreams`] is AES-256 in counter mode, or
//!   `ChaCha20` if the processor has no AES instructions and nobody needs the same words again.
//! * [`Threshold`] and [`Bernoulli`] turn a probability into integer comparisons.
//! * [`BiasedBits`] draws many bits of one exact probability at a time.
//! * [`Skips`] selects nodes by exact geometric skips: the cost is proportional to the number
//!   selected.
//! * [`binomial()`], [`negative_binomial()`] and [`multinomial_uniform`] draw counts for simulation.
//! * [`choose`] and [`choose_many`] choose by integer weights, [`uniform_integers`] by equal
//!   weights.
//! * [`ExponentialBounds`] encloses `e^x` so that likelihood ratios are rounded to the safe side.

mod binomial;
mod bits;
mod choice;
mod exponential;
mod geometric;
mod hypergeometric;
mod interval;
mod multinomial;
mod negative_binomial;
mod streams;
mod threshold;
mod uniform;

pub use binomial::binomial;
pub use bits::BiasedBits;
pub use choice::{choose, choose_many, uniform_integers};
pub use exponential::ExponentialBounds;
pub(crate) use exponential::{exponential, logarithm_above};
pub use geometric::{SKIPS_MAXIMUM_LENGTH, Skips};
pub(crate) use hypergeometric::Hypergeometric;
pub(crate) use interval::{Interval, decompose};
pub(crate) use multinomial::divide;
pub use multinomial::multinomial_uniform;
pub use negative_binomial::negative_binomial;
pub use streams::{AesStream, AesStreams, Purpose, Streams, Words};
pub use threshold::{Bernoulli, Rounding, Threshold};
pub use uniform::uniform_below;
