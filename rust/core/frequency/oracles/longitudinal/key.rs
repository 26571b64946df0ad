//! The randomness of permanent answers.

use crate::random::{AesStream, AesStreams, Purpose, Streams, Words};

/// The number of bytes of a node's secret.
pub const SECRET_BYTES: usize = 32;

/// The streams from which a node's permanent answers are made.
///
/// A cascade derives the key of the streams from the node's secret and a context of 32 bytes. Each
/// 7 bytes of the context choose the stream that gives the next key. AES-256 in counter mode is a
/// pseudo-random function, and so is a cascade of them over inputs of one length. So keys of
/// different contexts look unrelated to anybody who does not know the secret. The purposes and the
/// order of the words are a format: if they changed, permanent answers would change too.
///
/// ```
/// use rand::Rng;
/// use turnout_core::frequency::PermanentKey;
///
/// let secret = [7; 32];
/// let again = || PermanentKey::new(&secret, &[1; 32]).stream(5).next_u64();
/// assert_eq!(again(), again());
/// assert_ne!(again(), PermanentKey::new(&secret, &[2; 32]).stream(5).next_u64());
/// assert_ne!(again(), PermanentKey::new(&secret, &[1; 32]).stream(6).next_u64());
/// ```
#[derive(Debug, Clone)]
pub struct PermanentKey(AesStreams);

impl PermanentKey {
    /// Derives the key of a secret in a context.
    #[must_use]
    pub fn new(secret: &[u8; SECRET_BYTES], context: &[u8; 32]) -> Self {
        let mut streams = AesStreams::from_key(*secret);
        for piece in context.chunks(7) {
            let mut index = [0; 8];
            index[..piece.len()].copy_from_slice(piece);
            let mut words = [0; 4];
            let index = u64::from_le_bytes(index);
            streams.stream(Purpose::PermanentKey, index).fill_words(&mut words);
            let mut key = [0; SECRET_BYTES];
            for (bytes, word) in key.chunks_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            streams = AesStreams::from_key(key);
        }
        Self(streams)
    }

    /// Returns the words from which the permanent answer for `code` is made.
    #[must_use]
    pub fn stream(&self, code: u64) -> AesStream {
        self.0.stream(Purpose::PermanentReport, code)
    }
}
