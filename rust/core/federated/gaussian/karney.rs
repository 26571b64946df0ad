//! Karney's sampler of the normal law.
//!
//! C. F. F. Karney, "Sampling exactly from the normal distribution", ACM Transactions on
//! Mathematical Software 42 (2016), algorithm N. No floating-point number is involved.

use rand::Rng;

use super::lazy::Lazy;
use crate::random::uniform_below;

/// A magnitude of the standard normal law: its whole part and its fraction.
pub(super) fn magnitude<R: Rng + ?Sized>(rng: &mut R) -> (u64, Lazy) {
    loop {
        // N1: k with probability e^(-k/2) (1 - e^(-1/2)).
        let mut whole = 0;
        while half(rng) {
            whole += 1;
        }
        // N2: kept with probability e^(-k (k - 1) / 2).
        if !(0..whole * u64::saturating_sub(whole, 1)).all(|_| half(rng)) {
            continue;
        }
        // N3, N4: kept with probability e^(-x (2k + x) / 2), by k + 1 equal parts.
        let mut fraction = Lazy::new(rng);
        if (0..=whole).all(|_| part(whole, &mut fraction, rng)) {
            return (whole, fraction);
        }
    }
}

/// A trial of probability `e^(-1/2)`: the length of the descent below 1/2 is even.
fn half<R: Rng + ?Sized>(rng: &mut R) -> bool {
    let mut last = Lazy::new(rng);
    if last.first() >> 63 == 1 {
        return true;
    }
    let mut even = false;
    loop {
        let mut next = Lazy::new(rng);
        if !next.below(&mut last, rng) {
            return even;
        }
        (last, even) = (next, !even);
    }
}

/// Algorithm B: a trial of probability `e^(-x (2k + x) / (2k + 2))`.
fn part<R: Rng + ?Sized>(whole: u64, fraction: &mut Lazy, rng: &mut R) -> bool {
    let mut even = true;
    let mut last: Option<Lazy> = None;
    loop {
        let mut next = Lazy::new(rng);
        if !next.below(last.as_mut().unwrap_or(fraction), rng) {
            return even;
        }
        // Goes on with probability (2k + x) / (2k + 2).
        let on = match uniform_below(2 * whole + 2, rng) {
            0 => false,
            1 => Lazy::new(rng).below(fraction, rng),
            _ => true,
        };
        if !on {
            return even;
        }
        (last, even) = (Some(next), !even);
    }
}
