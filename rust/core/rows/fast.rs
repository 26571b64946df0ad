//! Scans sixty-four bytes at a time with vector instructions, for text without anything unusual.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x64};

use super::{Ends, FEED, QUOTE, RETURN, Rules, Stretch};

const WIDTH: usize = 64;

/// The whole rows, as [`super::scan`] finds them; none where it takes a closer look to tell.
pub(super) fn scan(level: Level, data: &[u8], rules: Rules) -> Option<Stretch> {
    if rules.fields.or(rules.most).is_some() || rules.ends == Ends::Return {
        return None;
    }
    dispatch!(level, simd => lanes(simd, data, rules))
}

/// What carries over from one word to the next.
struct Before {
    /// All ones if a quoted field is open.
    inside: u64,
    /// Where rows ended: the text begins as if after one.
    ended: u64,
    /// The lowest bit is set after a byte after which a quote opens a field.
    opens: u64,
    /// The lowest bit is set after a closing quote.
    closed: u64,
    /// The lowest bit is set after a carriage return.
    returned: u64,
}

#[inline(always)]
fn lanes<S: Simd>(simd: S, data: &[u8], rules: Rules) -> Option<Stretch> {
    simd.vectorize(
        #[inline(always)]
        || {
            let mut before = Before { inside: 0, ended: 1 << 63, opens: 1, closed: 0, returned: 0 };
            let mut found = Stretch { ends: rules.ends, ..Stretch::default() };
            let mut lines = 0;
            let (chunks, rest) = data.as_chunks::<WIDTH>();
            let mut padded = [b' '; WIDTH];
            padded[..rest.len()].copy_from_slice(rest);
            let padded = (!rest.is_empty()).then_some(&padded);
            for (number, chunk) in chunks.iter().chain(padded).enumerate() {
                let valid = match data.len() - number * WIDTH {
                    left @ 0..WIDTH => (1 << left) - 1,
                    _ => u64::MAX,
                };
                let bytes = u8x64::from_slice(simd, chunk);
                let of = |byte: u8| bytes.simd_eq(u8x64::splat(simd, byte)).to_bitmask();
                let (quotes, feeds, returns) = (of(QUOTE), of(FEED), of(RETURN));
                let delimiters = of(rules.delimiter) & valid;
                // Bit by bit whether a quoted field is open after the byte.
                let open = parity(quotes) ^ before.inside;
                let opening = quotes & open;
                let closing = quotes & !open;
                let after_closing = (closing << 1) | before.closed;
                let after_return = (returns << 1) | before.returned;
                let follows = (delimiters | feeds | quotes) << 1 | before.opens;
                let odd = opening & !follows
                    | after_closing & !(delimiters | feeds | returns | quotes)
                    | after_return & !feeds
                    | of(0);
                if odd & valid != 0 {
                    return None;
                }
                let ended = feeds & !open;
                let after_end = (ended << 1) | (before.ended >> 63);
                let twice = (ended << 2) | (before.ended >> 62);
                let empty = ended & (after_end | after_return & twice);
                found.empty += count(empty);
                found.rows += count(ended & !empty);
                if let Some(last) = ended.checked_ilog2() {
                    found.end = number * WIDTH + last as usize + 1;
                    found.lines = lines + count(feeds & (u64::MAX >> (63 - last)));
                    found.ends = Ends::Feed;
                }
                lines += count(feeds);
                before = Before {
                    inside: 0_u64.wrapping_sub(open >> 63),
                    ended,
                    opens: (delimiters | feeds | quotes) >> 63,
                    closed: closing >> 63,
                    returned: returns >> 63,
                };
            }
            if rules.last && found.end < data.len() {
                if before.inside != 0 || data.last() == Some(&RETURN) {
                    return None;
                }
                found.end = data.len();
                found.lines = lines;
                found.rows += 1;
            }
            Some(found)
        },
    )
}

/// Bit by bit the parity of the bits up to it.
#[inline(always)]
fn parity(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].into_iter().fold(bits, |sum, width| sum ^ (sum << width))
}

#[inline(always)]
fn count(bits: u64) -> usize {
    bits.count_ones() as usize
}
