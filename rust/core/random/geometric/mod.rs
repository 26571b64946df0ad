//! Exact Bernoulli selection by geometric skips.
//!
//! The gap before the next selected node has `P[G >= g] = r^g` with `r = 1 - p`. A table of the
//! cumulative distribution, cut to 64 bits, turns half a random word into a gap. The cut is not an
//! approximation. If the half equals the upper half of a boundary (once in 2^32 draws for each
//! boundary), it gets another half. If that word equals the boundary itself, further words and
//! interval arithmetic of growing precision compare the infinite binary expansion with the true
//! probability. For small `p` the gap is drawn as `256 a + b`. The quotient and remainder of a
//! geometric variable are independent. `a` is geometric with ratio `r^256`, and `b` is geometric
//! with ratio `r`, cut to 0..256.

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use rand::Rng;

use super::Words;
use super::interval::{Interval, decompose};
use crate::parameters::Probability;

/// The longest run of nodes that [`Skips::select`] handles: positions fit in 16 bits.
pub const SKIPS_MAXIMUM_LENGTH: usize = 1 << 16;

/// Entries of one table.
const SPAN: usize = 256;

/// Below this rate the gap is drawn in two digits.
const TWO_DIGITS_BELOW: f64 = 1.0 / 64.0;

/// Precision that settles every table entry but those that are short binary fractions.
const FIRST_BITS: u64 = 256;

/// Selects nodes, each with the same probability, independently and exactly.
///
/// ```
/// use turnout_core::parameters::Probability;
/// use turnout_core::random::{AesStreams, Purpose, Skips, Streams};
///
/// let skips = Skips::new(Probability::new(0.01)?);
/// let mut stream = AesStreams::from_seed(1).stream(Purpose::Participation, 0);
/// let mut selected = Vec::new();
/// skips.select(65_536, &mut stream, &mut selected);
/// assert!(selected.is_sorted() && (400..1000).contains(&selected.len()));
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Skips {
    rate: Probability,
    digits: Digits,
}

#[derive(Debug, Clone)]
enum Digits {
    /// No gaps: every node is selected.
    None,
    /// A gap below the length of the table, or the table's length and another draw.
    One(Table),
    /// The high digit likewise, and the low digit within its span.
    Two { high: Table, low: Table },
}

impl Skips {
    /// Prepares the selection of nodes with probability `rate` each.
    ///
    /// It costs some hundred multiplications of 256-bit numbers (more for rates below 1e-15).
    #[must_use]
    pub fn new(rate: Probability) -> Self {
        let stay = |bits| stay_probability(rate, bits);
        let digits = if rate == Probability::ONE {
            Digits::None
        } else if rate.get() < TWO_DIGITS_BELOW {
            Digits::Two {
                high: Table::new(Distribution { stride: SPAN as u64, span: None }, SPAN, stay),
                low: Table::new(
                    Distribution { stride: 1, span: Some(SPAN as u64) },
                    SPAN - 1,
                    stay,
                ),
            }
        } else {
            // Enough entries that a second draw is rare.
            let reach = 30.0 / -libm::log1p(-rate.get());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let length = (reach as usize).clamp(1, SPAN);
            Digits::One(Table::new(Distribution { stride: 1, span: None }, length, stay))
        };
        Self { rate, digits }
    }

    /// The probability of each node.
    #[must_use]
    pub const fn rate(&self) -> Probability {
        self.rate
    }

    /// Replaces the content of `selected` with the selected positions in `0..length`, in ascending
    /// order.
    ///
    /// `length` is cut to [`SKIPS_MAXIMUM_LENGTH`]. Words are drawn in groups, and unused words are
    /// dropped.
    #[inline]
    pub fn select<R: Words>(&self, length: usize, rng: &mut R, selected: &mut Vec<u16>) {
        selected.clear();
        let length = length.min(SKIPS_MAXIMUM_LENGTH);
        let mut walk = Walk { rate: self.rate, length, position: 0, picked: [0; PICKS], found: 0 };
        let mut buffer = [0; DRAWN];
        loop {
            // Never by the length: a shorter one gives the same positions, as far as it goes.
            let left = SKIPS_MAXIMUM_LENGTH - walk.position;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
            let expected = (left as f64 * self.rate.get()) as usize;
            let done = match &self.digits {
                Digits::None => {
                    #[expect(clippy::cast_possible_truncation, reason = "length <= 2^16")]
                    selected.extend((0..length).map(|position| position as u16));
                    return;
                }
                Digits::One(table) => {
                    let words = &mut buffer[..(expected / 2 + 8).min(DRAWN)];
                    rng.fill_words(words);
                    words.iter().any(|&word| {
                        walk.step(table, word & LOW, rng) || walk.step(table, word >> 32, rng)
                    })
                }
                Digits::Two { high, low } => {
                    let words = &mut buffer[..(expected + 4).min(DRAWN)];
                    rng.fill_words(words);
                    words.iter().any(|&word| walk.leap(high, low, word, rng))
                }
            };
            selected.extend_from_slice(&walk.picked[..walk.found]);
            walk.found = 0;
            if done {
                return;
            }
        }
    }
}

/// The low 32 bits.
const LOW: u64 = u32::MAX as u64;

/// Words drawn at once, at most.
const DRAWN: usize = 128;

/// Positions found in the words drawn at once, at most.
const PICKS: usize = 2 * DRAWN;

/// A way through the nodes.
struct Walk {
    rate: Probability,
    length: usize,
    /// The first node that is not decided.
    position: usize,
    picked: [u16; PICKS],
    found: usize,
}

impl Walk {
    /// One gap, from one half of a word. Says whether the end is reached.
    #[inline(always)]
    fn step<R: Rng>(&mut self, table: &Table, half: u64, rng: &mut R) -> bool {
        let gap = table.draw(half, rng, |bits| stay_probability(self.rate, bits));
        self.position += gap;
        if self.position >= self.length {
            return true;
        }
        if gap < table.length() {
            self.pick();
        }
        false
    }

    /// One gap, its high digit from the high half of a word and its low digit from the low half.
    #[inline(always)]
    fn leap<R: Rng>(&mut self, high: &Table, low: &Table, word: u64, rng: &mut R) -> bool {
        let stay = |bits| stay_probability(self.rate, bits);
        let digit = high.draw(word >> 32, rng, stay);
        self.position += SPAN * digit;
        if self.position >= self.length {
            return true;
        }
        if digit < high.length() {
            self.position += low.draw(word & LOW, rng, stay);
            if self.position >= self.length {
                return true;
            }
            self.pick();
        }
        false
    }

    #[inline(always)]
    fn pick(&mut self) {
        #[expect(clippy::cast_possible_truncation, reason = "below SKIPS_MAXIMUM_LENGTH = 2^16")]
        let position = self.position as u16;
        self.picked[self.found % PICKS] = position;
        self.found += 1;
        self.position += 1;
    }
}

/// `1 - rate`, enclosed.
fn stay_probability(rate: Probability, bits: u64) -> Interval {
    let (mantissa, exponent) = decompose(rate.get());
    Interval::from_binary(mantissa, exponent, bits).complement()
}

/// The distribution of one digit: `P[digit <= j] = (1 - s^(j+1)) / (1 - s^span)` with
/// `s = r^stride`, and the divisor one if there is no span.
#[derive(Debug, Clone, Copy)]
struct Distribution {
    stride: u64,
    span: Option<u64>,
}

impl Distribution {
    fn cumulative(power: &Interval, full: Option<&Interval>) -> Option<Interval> {
        match full {
            None => Some(power.complement()),
            Some(full) => power.complement().over(&full.complement()),
        }
    }

    /// `P[digit <= index]` at a given precision, or nothing if the precision does not do.
    fn at(self, index: usize, stay: &Interval) -> Option<Interval> {
        let step = stay.power(self.stride);
        let full = self.span.map(|span| step.power(span));
        Self::cumulative(&step.power(index as u64 + 1), full.as_ref())
    }

    /// The first `length` cumulative probabilities as whole numbers of 2^-64, rounded down.
    fn thresholds(self, length: usize, stay: &Interval) -> Option<Vec<u64>> {
        let step = stay.power(self.stride);
        let full = self.span.map(|span| step.power(span));
        let mut power = step.clone();
        let mut thresholds = Vec::with_capacity(length);
        for _ in 0..length {
            let cumulative = Self::cumulative(&power, full.as_ref())?;
            thresholds.push(cumulative.scaled_floor()?.to_u64()?);
            power = power.times(&step);
        }
        Some(thresholds)
    }
}

/// Leading bits of a word that index the guide: most cells then hold no boundary.
const GUIDE_BITS: u32 = 12;

/// In the guide: a boundary is in this cell, or the digit is this or more.
const CLOSER: u8 = u8::MAX;

/// Inversion of one digit's distribution, with a guide table on the leading bits of the word.
#[derive(Debug, Clone)]
struct Table {
    distribution: Distribution,
    thresholds: Vec<u64>,
    guide: Box<[u8; 1 << GUIDE_BITS]>,
}

impl Table {
    fn new(distribution: Distribution, length: usize, stay: impl Fn(u64) -> Interval) -> Self {
        let mut bits = FIRST_BITS;
        let thresholds = loop {
            if let Some(thresholds) = distribution.thresholds(length, &stay(bits)) {
                break thresholds;
            }
            bits *= 2;
        };
        let cell = |threshold: u64| threshold >> (64 - GUIDE_BITS);
        let mut guide = Box::new([CLOSER; 1 << GUIDE_BITS]);
        for (place, entry) in (0_u64..).zip(guide.iter_mut()) {
            let index = thresholds.partition_point(|&threshold| cell(threshold) < place);
            if thresholds.get(index).is_none_or(|&threshold| cell(threshold) > place) {
                *entry = u8::try_from(index).unwrap_or(CLOSER);
            }
        }
        Self { distribution, thresholds, guide }
    }

    /// The number of digits that the table tells apart; the draw of this number means "beyond".
    fn length(&self) -> usize {
        self.thresholds.len()
    }

    /// The digit of a word of which `half` is the upper half.
    #[inline(always)]
    fn draw<R: Rng>(&self, half: u64, rng: &mut R, stay: impl Fn(u64) -> Interval) -> usize {
        let place = (half >> (32 - GUIDE_BITS)) as usize % self.guide.len();
        match self.guide[place] {
            CLOSER => self.look_closer(half, rng, &stay),
            digit => digit.into(),
        }
    }

    /// The digit, by the boundaries: the lower half is drawn if it decides.
    #[inline(never)]
    fn look_closer<R: Rng>(
        &self,
        half: u64,
        rng: &mut R,
        stay: &impl Fn(u64) -> Interval,
    ) -> usize {
        let mut index = self.thresholds.partition_point(|&threshold| threshold >> 32 < half);
        if self.thresholds.get(index).is_some_and(|&threshold| threshold >> 32 == half) {
            let word = (half << 32) | (rng.next_u64() >> 32);
            while let Some(&threshold) = self.thresholds.get(index) {
                if word < threshold {
                    return index;
                }
                if word == threshold {
                    return self.settle(index, word, rng, stay);
                }
                index += 1;
            }
        }
        index
    }

    /// The digit when the first word falls on a boundary: reads words until the comparison with
    /// the true probability is certain.
    #[cold]
    #[inline(never)]
    fn settle<R: Rng>(
        &self,
        first: usize,
        word: u64,
        rng: &mut R,
        stay: &impl Fn(u64) -> Interval,
    ) -> usize {
        let mut uniform = BigUint::from(word);
        let mut words = 1_u64;
        let mut index = first;
        while self.thresholds.get(index) == Some(&word) {
            let bits = 64 * words + FIRST_BITS;
            if let Some(cumulative) = self.distribution.at(index, &stay(bits)) {
                let low = &uniform << (bits - 64 * words);
                let high = (&uniform + 1_u32) << (bits - 64 * words);
                if high <= cumulative.low {
                    return index;
                }
                if low >= cumulative.high {
                    index += 1;
                    continue;
                }
            }
            uniform = (uniform << 64_u32) + rng.next_u64();
            words += 1;
        }
        index
    }
}

#[cfg(test)]
mod tests;
