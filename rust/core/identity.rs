//! Pseudonyms of persons: keyed digests of their identifiers.
//!
//! With a secret key the digest (BLAKE3 in its keyed mode, cut to 128 bits) is a pseudo-random
//! function. Equal identifiers have equal digests, and without the key the digests reveal nothing
//! else about the identifiers. Among 2^40 persons, two have the same digest with probability 2^-49.

use blake3::Hasher;

use crate::parallel::{self, chunk};
use crate::{Error, Result};

/// Number of bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Number of bytes of a digest.
pub const DIGEST_BYTES: usize = 16;

/// Entries that one task takes.
const TOGETHER: usize = 1 << 12;

/// Computes the digests of the entries of a column, on the current rayon pool.
///
/// Entry `i` is `data[offsets[i]..offsets[i + 1]]`, as in an Arrow column of variable length.
/// `context` separates the uses of one key: digests of different contexts cannot be compared.
///
/// # Errors
///
/// [`Error::Integer`] if the offsets descend or leave the data.
///
/// ```
/// use turnout_core::identity::keyed_digests;
///
/// let digests = keyed_digests(&[0, 3, 6, 9], b"annbobann", &[7; 32], b"survey of 2026")?;
/// assert_eq!(digests[0], digests[2]);
/// assert_ne!(digests[0], digests[1]);
/// # Ok::<(), turnout_core::Error>(())
/// ```
pub fn keyed_digests(
    offsets: &[i64],
    data: &[u8],
    key: &[u8; KEY_BYTES],
    context: &[u8],
) -> Result<Vec<[u8; DIGEST_BYTES]>> {
    // A key for the context, so that no identifier can be mistaken for a context and another one.
    let key = *blake3::keyed_hash(key, context).as_bytes();
    let entries: Vec<&[i64]> = offsets.windows(2).collect();
    let pieces = parallel::map(entries.len().div_ceil(TOGETHER), |piece| {
        let entries = &entries[chunk(piece, TOGETHER, entries.len())];
        entries.iter().map(|entry| digest(entry, data, &key)).collect()
    });
    pieces.into_iter().collect::<Result<Vec<Vec<_>>>>().map(|pieces| pieces.concat())
}

fn digest(entry: &[i64], data: &[u8], key: &[u8; KEY_BYTES]) -> Result<[u8; DIGEST_BYTES]> {
    let (start, end) = (entry[0], entry[1]);
    let bytes = usize::try_from(start)
        .ok()
        .zip(usize::try_from(end).ok())
        .and_then(|(start, end)| data.get(start..end))
        .ok_or(Error::Integer {
            argument: "offsets",
            value: end.cast_unsigned(),
            expected: "ascending positions within the data",
        })?;
    let mut digest = [0; DIGEST_BYTES];
    Hasher::new_keyed(key).update(bytes).finalize_xof().fill(&mut digest);
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_blake3_keyed_by_a_key_of_the_context() -> Result<()> {
        let (key, context) = ([3; 32], b"context");
        let derived = *blake3::keyed_hash(&key, context).as_bytes();
        for text in [&b""[..], b"a", &[9; 200]] {
            let offsets = [0, i64::try_from(text.len()).unwrap_or(0)];
            let found = keyed_digests(&offsets, text, &key, context)?;
            let whole = blake3::keyed_hash(&derived, text);
            assert_eq!(found, [whole.as_bytes()[..16].to_vec().try_into().unwrap_or([0; 16])]);
        }
        Ok(())
    }

    #[test]
    fn keys_and_contexts_separate() -> Result<()> {
        let digest = |key, context: &[u8]| keyed_digests(&[0, 3], b"ann", &[key; 32], context);
        assert_eq!(digest(1, b"x")?, digest(1, b"x")?);
        assert_ne!(digest(1, b"x")?, digest(2, b"x")?);
        assert_ne!(digest(1, b"x")?, digest(1, b"y")?);
        Ok(())
    }

    #[test]
    fn order_is_kept_over_many_tasks() -> Result<()> {
        let count = 3 * i64::try_from(TOGETHER).unwrap_or(0) + 5;
        let data: Vec<u8> = (0..count).flat_map(i64::to_le_bytes).collect();
        let offsets: Vec<i64> = (0..=count).map(|entry| 8 * entry).collect();
        let all = keyed_digests(&offsets, &data, &[0; 32], b"")?;
        assert_eq!(i64::try_from(all.len()), Ok(count));
        for entry in [0, 1, TOGETHER, 2 * TOGETHER + 7, 3 * TOGETHER + 4] {
            let one = keyed_digests(&offsets[entry..entry + 2], &data, &[0; 32], b"")?;
            assert_eq!(one[0], all[entry]);
        }
        Ok(())
    }

    #[test]
    fn offsets_outside_the_data_are_refused() {
        for offsets in [[0, 4], [2, 1], [-1, 2]] {
            assert!(keyed_digests(&offsets, b"abc", &[0; 32], b"").is_err(), "{offsets:?}");
        }
        assert!(keyed_digests(&[], b"", &[0; 32], b"").is_ok_and(|found| found.is_empty()));
    }
}
