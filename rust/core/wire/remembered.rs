//! Records of the messages that were read, so that none counts twice.

use sha2::{Digest, Sha256};

/// The number of bytes of a record that identify a message: the beginning of a hash of its nonce.
/// Among 10^9 messages, two have the same bytes with a chance of 10^-11.
pub const NAME_BYTES: usize = 12;

/// The number of bytes of a record: the name, and the beginning of a hash of nonce and content.
pub const RECORD_BYTES: usize = NAME_BYTES + 4;

/// The record of one message. Its first [`NAME_BYTES`] bytes identify the message when it comes
/// again; the others tell a repeat from a contradiction.
///
/// A record reveals the content only to somebody who has the nonce, and nobody can guess its 128
/// bits.
pub type Record = [u8; RECORD_BYTES];

/// Makes the record of a message with this nonce and this content.
///
/// ```
/// use turnout_core::wire::{NAME_BYTES, record};
/// let (one, other) = (record(b"n", b"yes"), record(b"n", b"no"));
/// assert_eq!((one == other, one[..NAME_BYTES] == other[..NAME_BYTES]), (false, true));
/// ```
#[must_use]
pub fn record(nonce: &[u8], content: &[u8]) -> Record {
    let digest = Sha256::new_with_prefix(nonce);
    let name = digest.clone().finalize();
    let said = digest.chain_update(content).finalize();
    let mut record = [0; RECORD_BYTES];
    for (byte, found) in record.iter_mut().zip(name.iter().take(NAME_BYTES).chain(&said)) {
        *byte = *found;
    }
    record
}

/// Keeps the first of the records that have the same name, and orders them by name.
///
/// ```
/// use turnout_core::wire::{first_records, record};
/// let (one, other) = (record(b"n", b"yes"), record(b"n", b"no"));
/// assert_eq!(first_records(&[one, other, one]), [one]);
/// ```
#[must_use]
pub fn first_records(records: &[Record]) -> Vec<Record> {
    let name = |record: &Record| record.first_chunk::<NAME_BYTES>().copied();
    let mut first = records.to_vec();
    // This keeps the order of those that have the same name.
    first.sort_by_key(name);
    first.dedup_by_key(|record| name(record));
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_made_of_the_beginnings_of_two_hashes() {
        let (nonce, content) = ([7_u8; 16], b"yes");
        let made = record(&nonce, content);
        assert_eq!(made[..NAME_BYTES], Sha256::digest(nonce)[..NAME_BYTES]);
        let both: Vec<u8> = nonce.iter().chain(content).copied().collect();
        assert_eq!(made[NAME_BYTES..], Sha256::digest(both)[..RECORD_BYTES - NAME_BYTES]);
    }

    #[test]
    fn the_first_of_each_name_stays() {
        let made: Vec<Record> =
            (0..200_u8).map(|number| record(&[number % 50], &[number])).collect();
        let first = first_records(&made);
        assert_eq!(first.len(), 50);
        assert!(first.is_sorted());
        assert!(made[..50].iter().all(|record| first.contains(record)));
        assert_eq!(first_records(&[]), Vec::<Record>::new());
    }
}
