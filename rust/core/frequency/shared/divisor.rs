//! Fast division by a fixed number.

/// A positive divisor of 64-bit numbers whose quotients are one multiplication and one shift.
///
/// Let `2^s <= d < 2^(s+1)`. Rounded up, `m = floor(2^(64+s) / d) + 1` gives the quotient of every
/// 64-bit `n` as `floor(n m / 2^(64+s))` if `m d - 2^(64+s) <= 2^s` (Granlund, Montgomery, "Division
/// by invariant integers using multiplication", 1994, theorem 4.2). Rounded down, `m` gives it as
/// `floor((n + 1) m / 2^(64+s))` if `0 < 2^(64+s) - m d <= 2^s` (Robison, "N-bit unsigned division
/// via N-bit multiply-add", 2005). The two errors add up to `d < 2^(s+1)`, so one of them holds
/// unless `d` is a power of two; then `m = 2^64 - 1` rounds down with error `2^s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::frequency) struct Divisor {
    multiplier: u64,
    /// The multiplier if it is rounded down, else zero.
    addend: u64,
    shift: u32,
}

impl Divisor {
    pub(in crate::frequency) fn new(divisor: u64) -> Self {
        let shift = divisor.checked_ilog2().unwrap_or(0);
        if divisor <= 1 << shift {
            return Self { multiplier: u64::MAX, addend: u64::MAX, shift };
        }
        let power = 1_u128 << (64 + shift);
        let down = power / u128::from(divisor);
        let error = power - down * u128::from(divisor);
        // Below 2^64, since the divisor is above 2^s.
        let down = u64::try_from(down).unwrap_or(u64::MAX);
        if error <= 1 << shift {
            Self { multiplier: down, addend: down, shift }
        } else {
            Self { multiplier: down + 1, addend: 0, shift }
        }
    }

    #[inline(always)]
    pub(in crate::frequency) fn quotient(self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.multiplier) + u128::from(self.addend);
        #[allow(clippy::cast_possible_truncation, reason = "the high half of a product")]
        let high = (product >> 64) as u64;
        high >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_agree_with_division() {
        let powers = (0..63_u32).flat_map(|power| {
            let power = 1_u64 << power;
            [power, power + 1, power.saturating_sub(1).max(1), power + power / 3]
        });
        let spread = (0..2_000_u64)
            .map(|step| step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (1 + step % 60) | 1);
        for value in (1..5_000).chain(powers).chain(spread) {
            let divisor = Divisor::new(value);
            let last = u64::MAX / value;
            for quotient in [0, 1, last / 3, last / 2, last.saturating_sub(1), last] {
                let start = quotient * value;
                for number in [start.saturating_sub(1), start, start.saturating_add(1)] {
                    assert_eq!(divisor.quotient(number), number / value, "{number} / {value}");
                }
            }
            assert_eq!(divisor.quotient(u64::MAX), last);
        }
    }
}
