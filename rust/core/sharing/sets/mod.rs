//! Draws the items that a user of two-stage sampling reports.

use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};
use rand::Rng;

use crate::frequency::{Code, outside};
use crate::parallel;
use crate::parameters::DomainSize;
use crate::random::{Bernoulli, ExponentialBounds, Purpose, Streams, decompose, uniform_below};
use crate::{Error, Result};

/// Users of one chunk: a chunk has a random stream of its own.
const CHUNK: usize = 256;

/// Draws the set of `M` of `N` items that a user reports in two-stage sampling. Source: Yang,
/// Tjuawinata, Lam, Zhu, Zhao, "Fair and differentially private distributed frequency estimation",
/// definition 3.1.
///
/// A user who does not take part reports a uniform set. With *uniform* reporting, a user who takes
/// part does so too. With *adaptive* reporting, such a user reports a set that holds the own item
/// with a larger probability `p_own` and is uniform otherwise. With `a = M / N`, the sets that hold
/// the item are then `gamma = p_own / (1 - p_own) * (1 - a) / a` times as likely as the others.
///
/// `p_own` is a whole number of 2^-64, rounded down, so that the realised gamma is at most the
/// requested one. All sets are drawn exactly.
///
/// ```
/// use turnout_core::parameters::DomainSize;
/// use turnout_core::random::AesStreams;
/// use turnout_core::sharing::SetSampler;
///
/// let sampler = SetSampler::adaptive(DomainSize::new(30)?, 12, 3.0)?;
/// assert!((sampler.own_probability() - 2.0 / 3.0).abs() < 1e-15);
/// let streams = AesStreams::from_operating_system()?;
/// let (coins, sets) = sampler.draw(&[4_u32, 9, 9], 0.5, &streams)?;
/// assert_eq!((coins.len(), sets.len()), (3, 36));
/// assert!(sets.chunks(12).all(|set| set.is_sorted_by(|one, other| one < other)));
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetSampler {
    domain: DomainSize,
    reported: u64,
    law: Law,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Law {
    /// The set does not depend on the item.
    Uniform,
    /// The words that include the own item.
    Adaptive(u64),
}

impl SetSampler {
    /// Makes a sampler of uniform sets of `reported` items.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if `reported` is not from 1 to the size of the domain.
    pub fn uniform(domain: DomainSize, reported: u64) -> Result<Self> {
        if !(1..=domain.get()).contains(&reported) {
            return Err(Error::Accounting {
                argument: "reported",
                value: reported as f64,
                expected: "an integer from 1 to the size of the domain",
            });
        }
        Ok(Self { domain, reported, law: Law::Uniform })
    }

    /// Makes a sampler of sets that hold the own item more often: they are at most `gamma` times as
    /// likely as others.
    ///
    /// The law is uniform if every item is reported, or if 64-bit words cannot distinguish it from
    /// the uniform law.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if gamma is not a finite number of at least one, or `reported` is not
    /// from 1 to the size of the domain.
    pub fn adaptive(domain: DomainSize, reported: u64, gamma: f64) -> Result<Self> {
        let uniform = Self::uniform(domain, reported)?;
        if !(gamma >= 1.0 && gamma.is_finite()) {
            let expected = "a finite number of at least 1";
            return Err(Error::Accounting { argument: "gamma", value: gamma, expected });
        }
        // 2^64 M gamma / (M gamma + N - M), rounded down
        let (mantissa, exponent) = decompose(gamma);
        let mut with = BigUint::from(reported) * mantissa;
        let mut without = BigUint::from(domain.get() - reported);
        let shift = exponent.unsigned_abs();
        if exponent >= 0 {
            with <<= shift;
        } else {
            without <<= shift;
        }
        let words = (&with << 64_u32) / (with + without);
        // Every word, only where all items are reported.
        let adaptive = words.to_u64().map(|words| Self { law: Law::Adaptive(words), ..uniform });
        Ok(adaptive
            .filter(|sampler| {
                let (numerator, denominator) = sampler.realized_gamma();
                numerator > denominator
            })
            .unwrap_or(uniform))
    }

    /// The number of items.
    #[must_use]
    pub const fn domain_size(&self) -> DomainSize {
        self.domain
    }

    /// How many items a user reports.
    #[must_use]
    pub const fn reported(&self) -> u64 {
        self.reported
    }

    /// The probability that a user who takes part reports the own item, rounded to the nearest
    /// number.
    #[must_use]
    pub fn own_probability(&self) -> f64 {
        match self.law {
            Law::Uniform => self.reported as f64 / self.domain.get() as f64,
            Law::Adaptive(words) => words as f64 / 18_446_744_073_709_551_616.0,
        }
    }

    /// The realised gamma as a numerator and a denominator. If the user takes part, a set that
    /// holds the own item is so many times as likely as one that does not.
    #[must_use]
    pub const fn realized_gamma(&self) -> (u128, u128) {
        match self.law {
            Law::Uniform => (1, 1),
            Law::Adaptive(words) => {
                let others = (self.domain.get() - self.reported) as u128;
                (words as u128 * others, ((1 << 64) - words as u128) * self.reported as u128)
            }
        }
    }

    /// The exact local guarantee towards the server that sees the sets, if users take part with
    /// probability `rate`: the largest `ln(P[A | v] / P[A | v'])`, rounded up.
    ///
    /// It is `ln((p gamma + (1 - p) D) / (p + (1 - p) D))` with `D = a gamma + 1 - a` and the
    /// realised gamma: sets of users who do not take part hide the sets of others. The paper's
    /// `ln(gamma)` (theorem 3.3) is an upper bound.
    ///
    /// # Errors
    ///
    /// [`Error::Probability`] if `rate` is not in (0, 1].
    pub fn realized_local_epsilon(&self, rate: f64) -> Result<f64> {
        let (numerator, denominator) = self.likelihood_ratio(rate)?;
        Ok(logarithm_up(&numerator, &denominator))
    }

    /// The largest `P[A | v] / P[A | v']` as a numerator and a denominator.
    fn likelihood_ratio(&self, rate: f64) -> Result<(BigUint, BigUint)> {
        check_rate(rate)?;
        let (gamma, unit) = self.realized_gamma();
        let (gamma, unit) = (BigUint::from(gamma), BigUint::from(unit));
        // The rate is takes / (takes + rests).
        let (mantissa, exponent) = decompose(rate);
        let takes = BigUint::from(mantissa);
        let rests = (BigUint::from(1_u32) << exponent.unsigned_abs()) - &takes;
        // Everything is multiplied by N, by the denominator of the rate and by that of gamma.
        let size = self.domain.get();
        let mixed = &gamma * self.reported + &unit * (size - self.reported);
        let hidden = rests * mixed;
        Ok((&takes * gamma * size + &hidden, takes * unit * size + hidden))
    }

    /// Tosses the coin of every user and draws the sets. Returns the coins, and the reported items
    /// of each user in ascending order.
    ///
    /// Runs on the current rayon pool. The result depends on `streams` alone.
    ///
    /// # Errors
    ///
    /// [`Error::CodeOutsideDomain`] if a code is outside the domain; [`Error::Probability`] if `rate`
    /// is not in (0, 1]; [`Error::Accounting`] if the sets do not fit in memory.
    pub fn draw<C: Code, S: Streams>(
        &self,
        codes: &[C],
        rate: f64,
        streams: &S,
    ) -> Result<(Vec<u8>, Vec<u32>)> {
        check_rate(rate)?;
        let coin = Bernoulli::new(rate)?;
        if !codes.is_empty() && !C::all_below(codes, self.domain.get()) {
            return Err(outside("values", codes, self.domain));
        }
        let reported = usize::try_from(self.reported).unwrap_or(usize::MAX);
        let mut sets: Vec<u32> = Vec::new();
        let total = codes.len().checked_mul(reported);
        if total.is_none_or(|total| sets.try_reserve_exact(total).is_err()) {
            return Err(Error::Accounting {
                argument: "reported",
                value: self.reported as f64,
                expected: "so small that all sets fit in memory",
            });
        }
        sets.resize(total.unwrap_or(0), 0);
        let mut coins = vec![0; codes.len()];
        let mut chunks: Vec<_> = codes
            .chunks(CHUNK)
            .zip(coins.chunks_mut(CHUNK))
            .zip(sets.chunks_mut(CHUNK * reported))
            .collect();
        parallel::for_each_chunk(&mut chunks, 1, |chunk, chunks| {
            let mut bits = vec![0; self.domain.len().div_ceil(64)];
            let mut rng = streams.stream(Purpose::ItemSets, chunk as u64);
            for ((codes, coins), sets) in chunks {
                let users = codes.iter().zip(&mut **coins).zip(sets.chunks_exact_mut(reported));
                for ((code, shown), set) in users {
                    let active = coin.draw(&mut rng);
                    *shown = u8::from(active);
                    self.draw_set(active.then(|| code.index()), &mut bits, set, &mut rng);
                }
            }
        });
        Ok((coins, sets))
    }

    /// The set of a user who takes part and holds that item, or of one who does not take part.
    /// `bits` are zero before and after.
    fn draw_set<R: Rng>(&self, own: Option<u64>, bits: &mut [u64], set: &mut [u32], rng: &mut R) {
        let size = self.domain.get();
        // The own item, if whether it is in the set is decided apart, and the decision.
        let apart = match (self.law, own) {
            (Law::Adaptive(words), Some(own)) => Some((own, rng.next_u64() < words)),
            _ => None,
        };
        let included = apart.is_some_and(|(_, included)| included);
        let pool = size - u64::from(apart.is_some());
        let count = self.reported - u64::from(included);
        let skipped = apart.map_or(size, |(own, _)| own);
        let item = |position: u64| position + u64::from(position >= skipped);
        if count * SPARSE < bits.len() as u64 {
            let mut slots = set.iter_mut();
            let mut push = |item: u64| {
                if let Some(slot) = slots.next() {
                    *slot = narrow(item);
                }
            };
            choose(pool, count, bits, rng, item, &mut push);
            if included {
                push(skipped);
            }
            set.sort_unstable();
            for &item in &*set {
                bits[item as usize / 64] &= !(1 << (item % 64));
            }
            return;
        }
        if 2 * count <= pool {
            choose(pool, count, bits, rng, item, |_| ());
        } else {
            choose(pool, pool - count, bits, rng, item, |_| ());
            for (word, start) in bits.iter_mut().zip((0..size).step_by(64)) {
                *word ^= u64::MAX >> (64 - (size - start).min(64));
            }
        }
        if let Some((own, included)) = apart {
            let word = &mut bits[narrow(own) as usize / 64];
            *word = *word & !(1 << (own % 64)) | u64::from(included) << (own % 64);
        }
        let mut slots = set.iter_mut();
        for (word, start) in bits.iter_mut().zip((0..=u32::MAX).step_by(64)) {
            while *word != 0 {
                if let Some(slot) = slots.next() {
                    *slot = start + word.trailing_zeros();
                }
                *word &= *word - 1;
            }
        }
    }
}

/// Sets this many times smaller than the words of the domain are sorted.
const SPARSE: u64 = 8;

/// Sets the bits of a uniform choice of `count` of the positions in `0..pool`, where `item` gives
/// the bit of a position: Floyd's algorithm (Bentley, Floyd, "A sample of brilliance", 1987).
fn choose<R: Rng>(
    pool: u64,
    count: u64,
    bits: &mut [u64],
    rng: &mut R,
    item: impl Fn(u64) -> u64,
    mut chosen: impl FnMut(u64),
) {
    for last in pool - count..pool {
        let drawn = item(uniform_below(last + 1, rng));
        let taken = bits[narrow(drawn) as usize / 64] >> (drawn % 64) & 1 == 1;
        let drawn = if taken { item(last) } else { drawn };
        bits[narrow(drawn) as usize / 64] |= 1 << (drawn % 64);
        chosen(drawn);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "items are below 2^32")]
const fn narrow(item: u64) -> u32 {
    item as u32
}

fn check_rate(rate: f64) -> Result<()> {
    if rate > 0.0 && rate <= 1.0 {
        Ok(())
    } else {
        Err(Error::Probability { argument: "rate", value: rate })
    }
}

/// `ln(numerator / denominator)` for a ratio of at least one, rounded up.
fn logarithm_up(numerator: &BigUint, denominator: &BigUint) -> f64 {
    let excess = numerator - denominator;
    if excess.is_zero() {
        return 0.0;
    }
    let gain = ratio_up(&excess, denominator);
    // ln(1 + gain) <= gain, and closer than numbers lie.
    if gain < f64::EPSILON / 2.0 {
        return gain;
    }
    let mut candidate = libm::log1p(gain) * (1.0 - 1e-15);
    while !ExponentialBounds::new(candidate).at_least_ratio(numerator, denominator) {
        candidate = candidate.next_up();
    }
    candidate
}

/// A positive ratio as a floating-point number, rounded up.
fn ratio_up(numerator: &BigUint, denominator: &BigUint) -> f64 {
    // A quotient of 54 to 56 bits times 2^-shift.
    let bits = |number: &BigUint| i32::try_from(number.bits()).unwrap_or(i32::MAX);
    let shift = bits(denominator) + 55 - bits(numerator);
    let quotient = if shift >= 0 {
        (numerator << shift.unsigned_abs()) / denominator
    } else {
        numerator / (denominator << shift.unsigned_abs())
    };
    // Adding one makes it at least the ratio; the conversion to a float may round down.
    let above = (quotient.to_f64().unwrap_or(f64::INFINITY)).next_up();
    libm::ldexp(above, -shift).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests;
