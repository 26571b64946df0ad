//! Cryptographic streams, split by purpose and by a fixed index.

use core::convert::Infallible;

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes256Enc, Block};
use rand::rngs::{ChaCha20Rng, SysRng};
use rand::{CryptoRng, Rng, SeedableRng, TryCryptoRng, TryRng};

use crate::vectors::widest;
use crate::{Error, Result};

/// What a stream is used for. Streams of different purposes never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Purpose {
    /// Deciding which nodes take part.
    Participation = 1,
    /// Randomizing the answer of a node that takes part.
    Report = 2,
    /// Drawing the counts of all nodes at once.
    Simulation = 3,
    /// Coefficients of public hash functions. This number is part of every plan with a pool of
    /// functions, so it never changes.
    HashPool = 4,
    /// Field elements that hide a secret. This number is part of the wire format of seeds
    /// ([`expand`](crate::sharing::PrimeField::expand)), so it never changes.
    Share = 16,
    /// Discrete Laplace noise.
    DiscreteLaplace = 32,
    /// One user's piece of discrete Laplace noise.
    DiscreteLaplacePiece = 33,
    /// Discrete Gaussian noise.
    DiscreteGaussian = 34,
    /// Skellam noise.
    Skellam = 35,
    /// The coins of dummy users.
    Dummies = 36,
    /// Coins and sets of items of users in two-stage sampling.
    ItemSets = 37,
    /// Shares for the elected users of two-stage sampling.
    ElectedShares = 38,
    /// Uniform numbers from which proposals of a sampler are made.
    Proposal = 48,
    /// Trials that accept a proposal.
    Acceptance = 49,
    /// Choices among weighted proposals or codes.
    Choice = 50,
    /// Keys of the families of parts ([`AesStreams::part`]).
    PartKey = 51,
    /// Gaussian noise on a grid.
    RoundedGaussian = 56,
    /// The permanent answer of a node. This number and the next are part of the format of permanent
    /// answers, which are never drawn again, so they never change.
    PermanentReport = 64,
    /// Deriving the key of a node's permanent answers.
    PermanentKey = 65,
}

/// A source of independent random streams.
///
/// A kernel asks for the stream of a purpose and of a chunk index. One family must give the same
/// stream for the same request, and streams of different requests must be independent.
pub trait Streams: Sync {
    /// The generator of one stream.
    type Stream: CryptoRng + Words;

    /// Returns the stream of `purpose` for chunk `index`, with `index < 2^56`.
    fn stream(&self, purpose: Purpose, index: u64) -> Self::Stream;
}

/// A generator that can give many words at once.
///
/// The words must be those that [`next_u64`](Rng::next_u64) would return, in order.
pub trait Words: Rng {
    /// Fills a slice with uniform words.
    fn fill_words(&mut self, words: &mut [u64]) {
        for word in words {
            *word = self.next_u64();
        }
    }
}

/// AES-256 in counter mode: one key, and 2^64 streams of 2^64 blocks each.
///
/// A block is the encryption of `stream * 2^64 + position`, where `stream` holds the purpose in its
/// top 8 bits and the chunk index below them. No counter is used twice, so the words are those of a
/// pseudo-random permutation. After 2^40 blocks they differ from uniform words with advantage at
/// most 2^-48 (PRP/PRF switching). The program detects the hardware instructions when it runs.
///
/// Without such instructions, AES takes ten times as long as `ChaCha20`. Then a family of the
/// operating system, which nobody can draw again, is `ChaCha20` with the same streams. A seed and a
/// key give AES on every machine.
///
/// ```
/// use rand::Rng;
/// use turnout_core::random::{AesStreams, Purpose, Streams};
///
/// let streams = AesStreams::from_seed(7);
/// let first = streams.stream(Purpose::Report, 0).next_u64();
/// assert_eq!(first, streams.stream(Purpose::Report, 0).next_u64());
/// assert_ne!(first, streams.stream(Purpose::Report, 1).next_u64());
/// assert_ne!(first, streams.stream(Purpose::Participation, 0).next_u64());
/// ```
#[derive(Clone)]
pub struct AesStreams {
    cipher: Cipher,
    first: u64,
}

/// What makes blocks of numbers and a key.
#[derive(Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are the large one, copied for each stream"
)]
enum Cipher {
    Aes(Aes256Enc),
    ChaCha([u8; 32]),
}

impl Cipher {
    fn aes(key: [u8; 32]) -> Self {
        Self::Aes(Aes256Enc::new(&key.into()))
    }

    /// The quicker one on this machine.
    fn quicker(key: [u8; 32]) -> Self {
        if aes::hardware_accelerated() { Self::aes(key) } else { Self::ChaCha(key) }
    }

    /// The blocks from `counter` on: the stream in its upper half, the position in its lower.
    fn fill(&self, counter: u128, blocks: &mut [Block]) {
        #[expect(clippy::cast_possible_truncation, reason = "the position, and the number")]
        let (position, stream) = (counter as u64, (counter >> 64) as u64);
        match self {
            Self::Aes(cipher) => {
                // Positions of a stream are below 2^64: nothing is carried into its number.
                let halves = Array::slice_as_flattened_mut(blocks).as_chunks_mut::<8>().0;
                widest(
                    #[inline(always)]
                    move || {
                        let places = halves.as_chunks_mut::<2>().0.iter_mut();
                        for ([low, high], offset) in places.zip(0..) {
                            *low = position.wrapping_add(offset).to_le_bytes();
                            *high = stream.to_le_bytes();
                        }
                    },
                );
                cipher.encrypt_blocks(blocks);
            }
            Self::ChaCha(key) => {
                let mut words = ChaCha20Rng::from_seed(*key);
                words.set_stream(stream);
                // Words of 32 bits.
                words.set_word_pos(u128::from(position) << 2);
                words.fill_bytes(Array::slice_as_flattened_mut(blocks));
            }
        }
    }
}

impl AesStreams {
    /// Makes a fresh family with a key from the operating system: AES, or `ChaCha20` if the
    /// processor has no instructions for AES.
    ///
    /// Every call takes a new key, so processes that fork never share a stream.
    ///
    /// # Errors
    ///
    /// [`Error::Entropy`] if the operating system gives no random bytes.
    pub fn from_operating_system() -> Result<Self> {
        let mut key = [0_u8; 32];
        SysRng
            .try_fill_bytes(&mut key)
            .map_err(|error| Error::Entropy { reason: error.to_string() })?;
        Ok(Self { cipher: Cipher::quicker(key), first: 0 })
    }

    /// Makes the family of an integer: the same integer gives the same family. Use it for tests and
    /// simulations, never for noise that must protect somebody.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut key = *b"turnout: a seed for tests.......";
        key[24..].copy_from_slice(&seed.to_le_bytes());
        Self::from_key(key)
    }

    /// Makes the family of a key, which must be secret and uniformly random if the streams protect
    /// somebody.
    #[must_use]
    pub fn from_key(key: [u8; 32]) -> Self {
        Self { cipher: Cipher::aes(key), first: 0 }
    }

    /// Returns the same family from chunk `first` on: its chunk `i` has the stream of chunk
    /// `first + i`.
    ///
    /// So a piece of a long column that begins with chunk `first` draws the same as it would within
    /// the whole column.
    ///
    /// ```
    /// use rand::Rng;
    /// use turnout_core::random::{AesStreams, Purpose, Streams};
    ///
    /// let (whole, piece) = (AesStreams::from_seed(7), AesStreams::from_seed(7).starting_at(3));
    /// let word = piece.stream(Purpose::Report, 1).next_u64();
    /// assert_eq!(word, whole.stream(Purpose::Report, 4).next_u64());
    /// ```
    #[must_use]
    pub const fn starting_at(mut self, first: u64) -> Self {
        self.first = self.first.wrapping_add(first);
        self
    }

    /// Returns the family of part `number`, with a key of its own: 32 bytes that this family
    /// reserves for the part. Only the lower 62 bits of the number count.
    ///
    /// So if a draw consists of several draws, each can use the streams of its own part.
    ///
    /// ```
    /// use rand::Rng;
    /// use turnout_core::random::{AesStreams, Purpose, Streams};
    ///
    /// let streams = AesStreams::from_seed(7);
    /// let words = [0, 1].map(|part| streams.part(part).stream(Purpose::Report, 0).next_u64());
    /// assert_ne!(words[0], words[1]);
    /// assert_eq!(words[0], streams.part(0).stream(Purpose::Report, 0).next_u64());
    /// ```
    #[must_use]
    pub fn part(&self, number: u64) -> Self {
        let mut stream = self.stream(Purpose::PartKey, 0);
        // A key is two blocks, and a stream has 2^64 of them.
        stream.counter |= u128::from(number & ((1 << 62) - 1)) << 1;
        let mut key = [0; 32];
        stream.fill_bytes(&mut key);
        let cipher = match self.cipher {
            Cipher::Aes(_) => Cipher::aes(key),
            Cipher::ChaCha(_) => Cipher::ChaCha(key),
        };
        Self { cipher, first: 0 }
    }
}

impl core::fmt::Debug for AesStreams {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("AesStreams { key: hidden }")
    }
}

impl Streams for AesStreams {
    type Stream = AesStream;

    fn stream(&self, purpose: Purpose, index: u64) -> AesStream {
        let index = self.first.wrapping_add(index) & ((1 << 56) - 1);
        let stream = (u64::from(purpose as u8) << 56) | index;
        AesStream {
            cipher: self.cipher.clone(),
            counter: u128::from(stream) << 64,
            blocks: [Array([0; 16]); BLOCKS],
            next: 0,
            end: 0,
        }
    }
}

/// Blocks encrypted at once: enough to fill the pipelines of vector AES instructions.
const BLOCKS: usize = 128;

/// The fewest blocks encrypted at once.
const FEW_BLOCKS: usize = 8;

/// One stream of an [`AesStreams`] family.
#[derive(Clone)]
pub struct AesStream {
    cipher: Cipher,
    counter: u128,
    blocks: [Block; BLOCKS],
    /// The words `next..end` of the blocks are ready.
    next: usize,
    end: usize,
}

impl AesStream {
    /// Makes as many blocks as `words` need, or twice as many as last time: a short stream costs
    /// little, and a long one soon has its blocks made [`BLOCKS`] at a time.
    #[inline(never)]
    fn refill(&mut self, words: usize) {
        let length = words.div_ceil(2).max(self.end).clamp(FEW_BLOCKS, BLOCKS);
        self.cipher.fill(self.counter, &mut self.blocks[..length]);
        self.counter = self.counter.wrapping_add(length as u128);
        (self.next, self.end) = (0, 2 * length);
    }

    /// The words that are ready; at least one. `words` is how many will be needed.
    #[inline(always)]
    fn ready(&mut self, words: usize) -> &[[u8; 8]] {
        if self.next >= self.end {
            self.refill(words);
        }
        &Array::slice_as_flattened(&self.blocks).as_chunks().0[self.next..self.end]
    }

    #[inline(always)]
    fn word(&mut self) -> u64 {
        let word = self.ready(1).first().map_or(0, |&bytes| u64::from_le_bytes(bytes));
        self.next += 1;
        word
    }
}

impl Words for AesStream {
    #[inline]
    fn fill_words(&mut self, words: &mut [u64]) {
        let mut left = words;
        while !left.is_empty() {
            let ready = self.ready(left.len());
            let length = ready.len().min(left.len());
            let (now, later) = left.split_at_mut(length);
            for (word, &bytes) in now.iter_mut().zip(ready) {
                *word = u64::from_le_bytes(bytes);
            }
            self.next += length;
            left = later;
        }
    }
}

impl core::fmt::Debug for AesStream {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("AesStream { state: hidden }")
    }
}

impl TryRng for AesStream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> core::result::Result<u32, Infallible> {
        Ok((self.word() >> 32) as u32)
    }

    #[inline(always)]
    fn try_next_u64(&mut self) -> core::result::Result<u64, Infallible> {
        Ok(self.word())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> core::result::Result<(), Infallible> {
        for piece in bytes.chunks_mut(8) {
            let word = self.word().to_le_bytes();
            piece.copy_from_slice(&word[..piece.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for AesStream {}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn the_words_are_aes_of_the_counter() {
        // Independent of `refill`: one block at a time, through the block interface.
        let cipher = Aes256Enc::new(&[99; 32].into());
        let mut stream = AesStreams::from_key([99; 32]).stream(Purpose::Report, 5);
        // Long enough that blocks are encrypted in every number from the fewest to the most.
        let start = (u128::from(Purpose::Report as u8) << 120) | (5_u128 << 64);
        for position in 0..600_u128 {
            let mut block: Block = Array((start + position).to_le_bytes());
            cipher.encrypt_block(&mut block);
            let expected = u128::from_le_bytes(block.0);
            assert_eq!(u128::from(stream.next_u64()), expected & u128::from(u64::MAX));
            assert_eq!(u128::from(stream.next_u64()), expected >> 64);
        }
    }

    /// Makes the family of a key.
    type Made = fn([u8; 32]) -> AesStreams;

    /// With AES, and with what takes its place where there are no instructions for it.
    const BOTH: [Made; 2] =
        [AesStreams::from_key, |key| AesStreams { cipher: Cipher::ChaCha(key), first: 0 }];

    /// Bytes of hexadecimal digits.
    fn bytes(digits: &str) -> Vec<u8> {
        let digit =
            |letter: u8| u8::try_from(char::from(letter).to_digit(16).unwrap_or(0)).unwrap_or(0);
        digits.as_bytes().chunks(2).map(|pair| 16 * digit(pair[0]) + digit(pair[1])).collect()
    }

    #[test]
    fn the_other_cipher_is_chacha20() {
        // RFC 8439, appendix A.1, test vectors 1 and 2; and a nonce, the number of the stream, that
        // is not zero: draft-agl-tls-chacha20poly1305-04, section 7.
        let cipher = Cipher::ChaCha([0; 32]);
        let mut blocks = [Array([0; 16]); 8];
        cipher.fill(0, &mut blocks);
        let expected = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
                        da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586\
                        9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed\
                        29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f";
        assert_eq!(Array::slice_as_flattened(&blocks), bytes(expected));
        cipher.fill(1 << 64, &mut blocks[..4]);
        let expected = "ef3fdfd6c61578fbf5cf35bd3dd33b8009631634d21e42ac33960bd138e50d32\
                        111e4caf237ee53ca8ad6426194a88545ddc497a0b466e7d6bbdb0041b2f586b";
        assert_eq!(Array::slice_as_flattened(&blocks[..4]), bytes(expected));
        // From any place on.
        let mut later = [Array([0; 16]); 5];
        cipher.fill(0, &mut blocks);
        cipher.fill(3, &mut later);
        assert_eq!(later, blocks[3..]);
    }

    #[test]
    fn only_fresh_families_depend_on_the_machine() -> Result<()> {
        let fresh = AesStreams::from_operating_system()?;
        assert_eq!(matches!(fresh.cipher, Cipher::Aes(_)), aes::hardware_accelerated());
        assert!(matches!(AesStreams::from_seed(1).cipher, Cipher::Aes(_)));
        assert!(matches!(AesStreams::from_key([1; 32]).cipher, Cipher::Aes(_)));
        Ok(())
    }

    #[test]
    fn the_key_of_a_part_is_two_blocks_of_its_own() {
        for made in BOTH {
            let streams = made([3; 32]).starting_at(11);
            let mut keys = streams.stream(Purpose::PartKey, 0);
            for number in 0..5 {
                let mut key = [0; 32];
                keys.fill_bytes(&mut key);
                let mut expected = made(key).stream(Purpose::Report, 2);
                let mut found = streams.part(number).stream(Purpose::Report, 2);
                assert_eq!(found.next_u64(), expected.next_u64());
            }
        }
        let streams = AesStreams::from_seed(3).starting_at(11);
        let mut elsewhere = AesStreams::from_seed(3).part(0).stream(Purpose::Report, 2);
        let mut here = streams.part(0).stream(Purpose::Report, 2);
        assert_ne!(here.next_u64(), elsewhere.next_u64());
    }

    #[test]
    fn the_cipher_is_aes_256() {
        // FIPS 197, appendix C.3.
        let key: [u8; 32] = core::array::from_fn(|i| u8::try_from(i).unwrap_or(0));
        let mut block: Block = Array(core::array::from_fn(|i| 0x11 * u8::try_from(i).unwrap_or(0)));
        Aes256Enc::new(&key.into()).encrypt_block(&mut block);
        let expected = 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089_u128.to_be_bytes();
        assert_eq!(block.0, expected);
    }

    #[test]
    fn fresh_families_differ() -> Result<()> {
        let mut first = AesStreams::from_operating_system()?.stream(Purpose::Report, 0);
        let mut second = AesStreams::from_operating_system()?.stream(Purpose::Report, 0);
        assert_ne!(first.next_u64(), second.next_u64());
        Ok(())
    }

    #[test]
    fn the_words_do_not_depend_on_how_many_are_asked_for_at_once() {
        for made in BOTH {
            let streams = made([7; 32]);
            let mut expected = vec![0; 4096];
            let mut one_by_one = streams.stream(Purpose::Share, 3);
            expected.fill_with(|| one_by_one.next_u64());
            for step in [1, 2, 15, 17, 60, 255, 256, 257, 1000, 4096] {
                let mut found = vec![0; 4096];
                let mut stream = streams.stream(Purpose::Share, 3);
                for piece in found.chunks_mut(step) {
                    stream.fill_words(piece);
                }
                assert_eq!(found, expected, "{step} at once");
            }
        }
    }

    #[test]
    fn bytes_and_words_agree() {
        let streams = AesStreams::from_seed(1);
        let mut bytes = [0_u8; 20];
        streams.stream(Purpose::Simulation, 0).fill_bytes(&mut bytes);
        let mut words = streams.stream(Purpose::Simulation, 0);
        assert_eq!(bytes[..8], words.next_u64().to_le_bytes());
        assert_eq!(bytes[8..16], words.next_u64().to_le_bytes());
        assert_eq!(bytes[16..], words.next_u64().to_le_bytes()[..4]);
    }
}
