//! Turns a word into a point.
//!
//! Take a code's hyperplane `x` with its pivot in place `m`: there it is one, and below it is zero.
//! The points with `<x, y> = s` follow from their other `t - 1` coordinates `u`: `y_m` is `s` less
//! the product of the coordinates above.
//!
//! * Inside, `s = 0`: take point `c` of the `h(t - 1)` points `u` of one dimension less. The form
//!   of `y` is that of `u` with one more digit, so each `c` gives another point and no point is
//!   missed.
//! * Outside, take number `v` of `r^(t-1)`. The first `r^m` numbers have zeros above the pivot and
//!   a one in it, and the digits below are those of `v`. For the others, let `w = v - r^m`. The
//!   remainder of `w` by `r - 1` is `s - 1`. The quotient is the number of the point `u`, counted
//!   from `h(m)`, the first point that is not zero above the pivot.

use super::{ProjectiveGeometryResponse, ReportCode};
use crate::frequency::oracle::BLOCK;
use crate::random::Words;

/// A number for each node of a block.
type Column = [u64; BLOCK];

impl<O: ReportCode> ProjectiveGeometryResponse<O> {
    /// The reports of at most [`BLOCK`] nodes.
    #[inline]
    pub(super) fn draw<R: Words>(&self, codes: &[u64], reports: &mut [O], rng: &mut R) {
        let mut words: Column = [0; BLOCK];
        let length = codes.len().min(BLOCK);
        rng.fill_words(&mut words[..length]);
        // Zero stands for 2^64: then every word is accepted.
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^64")]
        let last = (self.accepted_words() as u64).wrapping_sub(1);
        for word in &mut words[..length] {
            while *word > last {
                *word = rng.next_u64();
            }
        }
        let mut padded: Column = [0; BLOCK];
        padded[..length].copy_from_slice(&codes[..length]);
        self.points_of(&padded, &mut words);
        for (report, &point) in reports.iter_mut().zip(&words) {
            *report = O::from_index(point);
        }
    }

    /// Replaces accepted words by the points that they make of codes.
    fn points_of(&self, codes: &Column, words: &mut Column) {
        let (space, field) = (&self.space, self.space.field);
        let (by_own, by_other) = self.divisors;
        let own_words = space.hyperplane() * self.words.0;
        let by_less = Small::new(field - 1);
        let by_field = Small::new(field);
        let places = space.dimensions() - 1;

        // The pivot's power r^m, its place m and h(m), and the coordinates of the hyperplane.
        let (mut power, mut pivot) = ([space.powers[places]; BLOCK], [places as u64; BLOCK]);
        let (mut below, mut vector) = ([space.heads[places]; BLOCK], *codes);
        for above in 1..=places {
            let place = places - above;
            for index in 0..BLOCK {
                let reached = codes[index] >= space.heads[above];
                power[index] = choose(reached, space.powers[place], power[index]);
                pivot[index] = choose(reached, place as u64, pivot[index]);
                below[index] = choose(reached, space.heads[place], below[index]);
                vector[index] =
                    choose(reached, codes[index].wrapping_sub(space.heads[above]), vector[index]);
            }
        }

        // The number of u, the product s, and whether all coordinates above the pivot are zero.
        let (mut chosen, mut product, mut first) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
        for index in 0..BLOCK {
            let word = words[index];
            let inside = word < own_words;
            let number = by_own.quotient(word);
            let outside = choose(inside, 0, by_other.quotient(word.wrapping_sub(own_words)));
            let flat = outside < power[index];
            let beyond = choose(flat, 0, outside.wrapping_sub(power[index]));
            let quotient = by_less.quotient(beyond);
            let remainder = beyond - quotient * (field - 1);
            chosen[index] = choose(inside, number, choose(flat, 0, below[index] + quotient));
            product[index] = choose(inside, 0, remainder + 1);
            first[index] = choose(inside, 0, choose(flat, below[index] + outside + 1, 0));
        }

        // The form of u, with the power and the head of its leading place.
        let (mut lead, mut head) = ([1; BLOCK], [0; BLOCK]);
        for place in 1..places {
            for index in 0..BLOCK {
                let reached = chosen[index] >= space.heads[place];
                lead[index] = choose(reached, space.powers[place], lead[index]);
                head[index] = choose(reached, space.heads[place], head[index]);
            }
        }
        let mut form: Column = [0; BLOCK];
        for index in 0..BLOCK {
            form[index] = chosen[index] - head[index] + lead[index];
            vector[index] *= power[index];
        }

        // The product of the coordinates above the pivot, and what is above it.
        let (mut left, mut sum, mut above) = (form, [0; BLOCK], [0; BLOCK]);
        for place in 0..places as u64 {
            for index in 0..BLOCK {
                above[index] |= choose(pivot[index] == place, left[index], 0);
                let (one, other) =
                    (by_field.quotient(vector[index]), by_field.quotient(left[index]));
                sum[index] += (vector[index] - one * field) * (left[index] - other * field);
                (vector[index], left[index]) = (one, other);
            }
        }

        for index in 0..BLOCK {
            let sum = sum[index] - self.by_field.quotient(sum[index]) * field;
            let digit = product[index] + field - sum;
            let digit = digit - choose(digit >= field, field, 0);
            // Every digit above the pivot moves up one place.
            let moved = above[index] * power[index] * (field - 1);
            let longer = above[index] > 0;
            let (lead, head) = (lead[index], head[index]);
            let lead = choose(longer, lead * field, lead);
            let head = choose(longer, head * field + 1, head);
            let point = form[index] + moved + digit * power[index] + head - lead;
            words[index] = choose(first[index] > 0, first[index].wrapping_sub(1), point);
        }
    }
}

/// One of two numbers, without a branch.
#[inline(always)]
const fn choose(condition: bool, yes: u64, no: u64) -> u64 {
    let mask = (condition as u64).wrapping_neg();
    (yes & mask) | (no & !mask)
}

/// A divisor of numbers below 2^31 whose quotients are one multiplication of 32-bit numbers.
///
/// With `2^(l-1) < d <= 2^l` and `m = ceil(2^(31+l) / d)`, which is at most 2^32, the quotient is
/// `floor(n m / 2^(31+l))` (Granlund, Montgomery, "Division by invariant integers using
/// multiplication", 1994, theorem 4.2). For `d` a power of two `m = 2^31`.
#[derive(Debug, Clone, Copy)]
struct Small {
    multiplier: u64,
    shift: u32,
}

impl Small {
    const fn new(divisor: u64) -> Self {
        let shift = 31 + divisor.next_power_of_two().trailing_zeros();
        Self { multiplier: (1_u64 << shift).div_ceil(divisor), shift }
    }

    #[inline(always)]
    const fn quotient(self, number: u64) -> u64 {
        // The masks tell the compiler that 32-bit multiplications do.
        ((number & 0xffff_ffff) * (self.multiplier & 0xffff_ffff)) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Result;
    use crate::parameters::{DomainSize, Epsilon};

    #[test]
    fn quotients_are_those_of_division() {
        for divisor in [1, 2, 3, 4, 5, 7, 11, 101, 46_337, 65_521, 1 << 30, 2_147_483_647] {
            let small = Small::new(divisor);
            assert!(small.multiplier >> 32 == 0);
            for base in [0, 1 << 10, 1 << 30, (1 << 31) - 1] {
                let whole = base / divisor * divisor;
                for number in [0, 1, divisor - 1, divisor, base, whole, whole.saturating_sub(1)] {
                    if number >> 31 == 0 {
                        assert_eq!(small.quotient(number), number / divisor, "{number} {divisor}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_point_is_made_by_its_words_and_by_no_others() -> Result<()> {
        for (epsilon, size, field) in [
            (0.5, 3, 2),
            (0.5, 20, 2),
            (1.0, 13, 3),
            (1.0, 30, 3),
            (1.5, 6, 5),
            (1.5, 40, 5),
            (2.0, 50, 7),
        ] {
            let (epsilon, domain) = (Epsilon::new(epsilon)?, DomainSize::new(size)?);
            let oracle = ProjectiveGeometryResponse::<u32>::new(epsilon, domain, Some(field))?;
            let (own, other) = oracle.words();
            let own_words = own * oracle.hyperplane_points();
            for code in 0..size {
                // The first and the last word of every cell.
                let mut inside: Vec<u64> =
                    (0..oracle.hyperplane_points()).map(|cell| cell * own).collect();
                let outside = oracle.points() - oracle.hyperplane_points();
                inside.extend((0..outside).map(|cell| own_words + cell * other));
                let mut seen = vec![0; inside.len()];
                for (cell, &start) in inside.iter().enumerate() {
                    let width = if start < own_words { own } else { other };
                    let mut words = [0; BLOCK];
                    words[..2].copy_from_slice(&[start, start + (width - 1)]);
                    oracle.points_of(&[code; BLOCK], &mut words);
                    assert_eq!(words[0], words[1], "{size} {field} {code} {cell}");
                    assert_eq!(oracle.space.contains(code, words[0]), start < own_words);
                    seen[super::super::position(words[0])] += 1;
                }
                assert!(seen.iter().all(|&times| times == 1), "{size} {field} {code}: {seen:?}");
            }
        }
        Ok(())
    }
}
