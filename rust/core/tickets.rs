//! Tickets: blind signatures that let each invited person send one message, without telling who
//! sent it.
//!
//! A server signs a ticket without seeing it, once for each invitation. The person who has the
//! ticket sends it with a message. The server recognises its own signature, but cannot tell to
//! which invitation it belongs, because the number that it signed was blinded. The scheme is
//! RSABSSA-SHA384-PSS-Randomized of RFC 9474, section 5. Only the crate `rsa`, which blinds its own
//! arithmetic, uses the secret key. The code of a device (sections 4.2 and 4.4) handles only the
//! device's own numbers.
//!
//! ```
//! use turnout_core::tickets::{Ticket, TicketKey};
//!
//! # fn main() -> Result<(), turnout_core::tickets::TicketError> {
//! let server = TicketKey::generate()?;
//! let public = server.public_key();
//!
//! let request = public.request()?; // in the browser of an invited person
//! let answer = server.sign(request.blinded())?; // on the server, for an unused invitation
//! let ticket = request.finish(&answer)?; // in the browser again
//!
//! let sent = Ticket::from_bytes(&ticket.to_bytes())?;
//! assert!(public.verifies(&sent));
//! # Ok(())
//! # }
//! ```

use core::fmt;

use num_bigint::BigUint;
use rand::TryRng;
use rand::rngs::SysRng;
use rsa::hazmat::rsa_decrypt_and_check;
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use rsa::traits::PublicKeyParts;
use rsa::{BoxedUint, PrivateKey, PublicKey};
use sha2::{Digest, Sha384};
use zeroize::Zeroizing;

/// The number of bits of the modulus of a generated key. RSA-2048 is about as secure as 112 bits. A
/// ticket must stay secure as long as its collection runs, not for decades.
pub const MODULUS_BITS: usize = 2048;

/// The longest modulus that is accepted, in bits.
const LARGEST_MODULUS_BITS: usize = 4096;

/// The bytes of a ticket's own number, and of the number that randomises what is signed.
const NUMBER_BYTES: usize = 32;

/// Why tickets, or their keys, are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// The bytes are not an RSA key in PKCS 8 or SPKI that RFC 9474 allows.
    #[error("a key of tickets must be an RSA key of 2048 to 4096 bits, in DER (PKCS 8 or SPKI)")]
    Key,
    /// A blinded number, a signature or a ticket has a length that does not fit the key.
    #[error("{what} must have {expected} bytes, got {given}")]
    Length {
        /// What it is.
        what: &'static str,
        /// How many bytes it should have.
        expected: usize,
        /// How many bytes it has.
        given: usize,
    },
    /// The number to be signed is not below the modulus.
    #[error("a blinded ticket must be a number below the modulus of the key")]
    Blinded,
    /// The server's answer is not a signature of the number sent to it.
    #[error("the answer of the server is not a signature of this ticket")]
    Answer,
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    Randomness,
}

/// The bytes of a hash and of a salt.
const HASH_BYTES: usize = 48;

/// The secret key of a server that signs tickets. It is never shown, and is overwritten when it is
/// dropped.
pub struct TicketKey(PrivateKey);

impl TicketKey {
    /// Generates a key of [`MODULUS_BITS`] bits, from the operating system's randomness. This takes
    /// some tenths of a second.
    ///
    /// # Errors
    ///
    /// [`TicketError::Randomness`] if no key could be made.
    pub fn generate() -> Result<Self, TicketError> {
        let mut key =
            PrivateKey::new(&mut SysRng, MODULUS_BITS).map_err(|_| TicketError::Randomness)?;
        key.precompute().map_err(|_| TicketError::Key)?;
        Ok(Self(key))
    }

    /// Reads a key from DER, PKCS 8.
    ///
    /// # Errors
    ///
    /// [`TicketError::Key`] if `der` is not such a key.
    pub fn from_der(der: &[u8]) -> Result<Self, TicketError> {
        let mut key = PrivateKey::from_pkcs8_der(der).map_err(|_| TicketError::Key)?;
        key.validate().map_err(|_| TicketError::Key)?;
        key.precompute().map_err(|_| TicketError::Key)?;
        allowed(&key)?;
        Ok(Self(key))
    }

    /// Returns the key in DER, PKCS 8. The bytes are overwritten when they are dropped.
    ///
    /// # Errors
    ///
    /// [`TicketError::Key`] if the key cannot be written.
    pub fn to_der(&self) -> Result<Zeroizing<Vec<u8>>, TicketError> {
        let der = self.0.to_pkcs8_der().map_err(|_| TicketError::Key)?;
        Ok(Zeroizing::new(der.as_bytes().to_vec()))
    }

    /// Returns its public key.
    #[must_use]
    pub fn public_key(&self) -> TicketPublicKey {
        TicketPublicKey(self.0.to_public_key())
    }

    /// Signs a blinded ticket (RFC 9474, section 4.3). The same blinded ticket always gets the same
    /// signature.
    ///
    /// # Errors
    ///
    /// [`TicketError::Length`] or [`TicketError::Blinded`] if it is not a number below the modulus.
    pub fn sign(&self, blinded: &[u8]) -> Result<Vec<u8>, TicketError> {
        exactly("a blinded ticket", self.0.size(), blinded)?;
        let precision = self.0.n().bits_precision();
        let number =
            BoxedUint::from_be_slice(blinded, precision).map_err(|_| TicketError::Blinded)?;
        // It checks its result against the public key, so that a fault of the machine gives nothing away.
        let signed = rsa_decrypt_and_check(&self.0, Some(&mut SysRng), &number)
            .map_err(|_| TicketError::Blinded)?;
        Ok(of_length(&BigUint::from_bytes_be(&signed.to_be_bytes()), self.0.size()))
    }
}

impl fmt::Debug for TicketKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TicketKey(secret)")
    }
}

/// The public key, with which everybody checks tickets. Everybody must use the same key: a key
/// given to one person alone would identify that person's ticket.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketPublicKey(PublicKey);

impl TicketPublicKey {
    /// Reads a key from DER, SPKI.
    ///
    /// # Errors
    ///
    /// [`TicketError::Key`] if `der` is not such a key.
    pub fn from_der(der: &[u8]) -> Result<Self, TicketError> {
        let key = PublicKey::from_public_key_der(der).map_err(|_| TicketError::Key)?;
        allowed(&key)?;
        Ok(Self(key))
    }

    /// Returns the key in DER, SPKI, the form that browsers import.
    ///
    /// # Errors
    ///
    /// [`TicketError::Key`] if the key cannot be written.
    pub fn to_der(&self) -> Result<Vec<u8>, TicketError> {
        let der = self.0.to_public_key_der().map_err(|_| TicketError::Key)?;
        Ok(der.as_bytes().to_vec())
    }

    /// Returns the number of bytes of its modulus; blinded tickets and signatures have the same.
    #[must_use]
    pub fn modulus_bytes(&self) -> usize {
        self.0.size()
    }

    /// Makes a new ticket and blinds it, ready to be signed (RFC 9474, sections 4.1 and 4.2).
    ///
    /// # Errors
    ///
    /// [`TicketError::Randomness`] if the operating system gives no random bytes.
    pub fn request(&self) -> Result<TicketRequest, TicketError> {
        let (number, randomizer) = (random()?, random()?);
        let salt = random()?;
        let modulus = self.modulus();
        loop {
            let mut factor = Zeroizing::new(vec![0; self.modulus_bytes()]);
            SysRng.try_fill_bytes(&mut factor).map_err(|_| TicketError::Randomness)?;
            let factor = BigUint::from_bytes_be(&factor);
            if factor >= modulus {
                continue;
            }
            let prepared = hash(&[&randomizer, &number]);
            // Almost every number has an inverse; one that has none would factor the modulus.
            if let Some((blinded, inverse)) = self.blinded(&prepared, &salt, &factor) {
                return Ok(TicketRequest {
                    key: self.clone(),
                    number,
                    randomizer,
                    blinded,
                    inverse,
                });
            }
        }
    }

    /// What the server signs, and what undoes the factor in its answer; none if the factor has no inverse.
    fn blinded(
        &self,
        prepared: &[u8; HASH_BYTES],
        salt: &[u8; HASH_BYTES],
        factor: &BigUint,
    ) -> Option<(Vec<u8>, BigUint)> {
        let modulus = self.modulus();
        let inverse = factor.modinv(&modulus)?;
        let encoded = BigUint::from_bytes_be(&encoded(prepared, salt, 8 * self.0.size() - 1));
        let exponent = BigUint::from_bytes_be(&self.0.e().to_be_bytes());
        let blinded = encoded * factor.modpow(&exponent, &modulus) % &modulus;
        Some((of_length(&blinded, self.modulus_bytes()), inverse))
    }

    fn unblinded(&self, answer: &[u8], inverse: &BigUint) -> Vec<u8> {
        let signature = BigUint::from_bytes_be(answer) * inverse % self.modulus();
        of_length(&signature, self.modulus_bytes())
    }

    fn modulus(&self) -> BigUint {
        BigUint::from_bytes_be(&self.0.n().as_ref().to_be_bytes())
    }

    /// Tells whether this key signed the ticket (RFC 9474, section 4.5).
    #[must_use]
    pub fn verifies(&self, ticket: &Ticket) -> bool {
        let hash = hash(&[&ticket.randomizer, &ticket.number]);
        self.0.pss_verify_prehash::<Sha384>(&hash, &ticket.signature).is_ok()
    }
}

impl fmt::Debug for TicketPublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TicketPublicKey({} bits)", self.0.n().bit_width())
    }
}

/// A ticket that waits for its signature. It is never shown, because with it the server could link
/// the ticket.
pub struct TicketRequest {
    key: TicketPublicKey,
    number: [u8; NUMBER_BYTES],
    randomizer: [u8; NUMBER_BYTES],
    blinded: Vec<u8>,
    inverse: BigUint,
}

impl TicketRequest {
    /// The number to send to the server. It reveals nothing about the ticket.
    #[must_use]
    pub fn blinded(&self) -> &[u8] {
        &self.blinded
    }

    /// Makes the ticket from the server's answer (RFC 9474, section 4.4).
    ///
    /// # Errors
    ///
    /// [`TicketError::Length`] or [`TicketError::Answer`] if the answer is not a signature of this
    /// ticket.
    pub fn finish(&self, answer: &[u8]) -> Result<Ticket, TicketError> {
        exactly("the answer of the server", self.key.modulus_bytes(), answer)?;
        let signature = self.key.unblinded(answer, &self.inverse);
        let ticket = Ticket { number: self.number, randomizer: self.randomizer, signature };
        if self.key.verifies(&ticket) { Ok(ticket) } else { Err(TicketError::Answer) }
    }
}

impl fmt::Debug for TicketRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TicketRequest(secret)")
    }
}

/// A signed ticket: its own number, the number that randomised the signed message, and the
/// signature.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    number: [u8; NUMBER_BYTES],
    randomizer: [u8; NUMBER_BYTES],
    signature: Vec<u8>,
}

impl Ticket {
    /// Reads a ticket: 32 bytes of its number, 32 of the randomizer, and the signature.
    ///
    /// # Errors
    ///
    /// [`TicketError::Length`] if there are too few or too many bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TicketError> {
        let wrong = TicketError::Length {
            what: "a ticket",
            expected: 2 * NUMBER_BYTES + MODULUS_BITS / 8,
            given: bytes.len(),
        };
        let (number, rest) = bytes.split_first_chunk().ok_or(wrong)?;
        let (randomizer, signature) = rest.split_first_chunk().ok_or(wrong)?;
        if !(MODULUS_BITS / 8..=LARGEST_MODULUS_BITS / 8).contains(&signature.len()) {
            return Err(wrong);
        }
        Ok(Self { number: *number, randomizer: *randomizer, signature: signature.to_vec() })
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.number[..], &self.randomizer[..], &self.signature[..]].concat()
    }

    /// Its own number, by which a server recognises a ticket that is sent twice.
    #[must_use]
    pub fn number(&self) -> &[u8; NUMBER_BYTES] {
        &self.number
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Ticket(secret)")
    }
}

/// Refuse keys that are too short to be safe, or so long that a check of them takes long.
fn allowed(key: &impl PublicKeyParts) -> Result<(), TicketError> {
    let bits = usize::try_from(key.n().bit_width()).map_err(|_| TicketError::Key)?;
    if (MODULUS_BITS..=LARGEST_MODULUS_BITS).contains(&bits) && bits.is_multiple_of(8) {
        Ok(())
    } else {
        Err(TicketError::Key)
    }
}

fn exactly(what: &'static str, expected: usize, bytes: &[u8]) -> Result<(), TicketError> {
    if bytes.len() == expected {
        Ok(())
    } else {
        Err(TicketError::Length { what, expected, given: bytes.len() })
    }
}

fn random<const N: usize>() -> Result<[u8; N], TicketError> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).map_err(|_| TicketError::Randomness)?;
    Ok(bytes)
}

/// The number in big-endian bytes, with zeros in front.
fn of_length(number: &BigUint, length: usize) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    let mut padded = vec![0; length.saturating_sub(bytes.len())];
    padded.extend_from_slice(&bytes);
    padded
}

fn hash(parts: &[&[u8]]) -> [u8; HASH_BYTES] {
    let mut hasher = Sha384::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// EMSA-PSS-ENCODE of RFC 8017, section 9.1.1, with SHA-384 and MGF1.
fn encoded(message_hash: &[u8; HASH_BYTES], salt: &[u8; HASH_BYTES], bits: usize) -> Vec<u8> {
    let length = bits.div_ceil(8);
    let second = hash(&[&[0; 8], message_hash, salt]);
    let mut block = vec![0; length - HASH_BYTES - 1];
    let salt_at = block.len() - HASH_BYTES;
    block[salt_at - 1] = 1;
    block[salt_at..].copy_from_slice(salt);
    for (counter, piece) in (0_u32..).zip(block.chunks_mut(HASH_BYTES)) {
        let mask = hash(&[&second, &counter.to_be_bytes()]);
        for (byte, mask) in piece.iter_mut().zip(mask) {
            *byte ^= mask;
        }
    }
    block[0] &= 0xff >> (8 * length - bits);
    block.extend_from_slice(&second);
    block.push(0xbc);
    block
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The number in RFC 9474's vector of this name.
    fn vector(name: &str) -> Vec<u8> {
        let lines = include_str!("../tests/rfc9474.txt").lines();
        let digits =
            lines.filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name).unwrap().1;
        (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn the_vector_of_the_rfc_comes_out() {
        let number = |name: &str| BoxedUint::from_be_slice_vartime(&vector(name));
        let factors = vec![number("p"), number("q")];
        let key =
            PrivateKey::from_components(number("n"), number("e"), number("d"), factors).unwrap();
        let key = TicketKey(key);
        let public = key.public_key();

        let message = vector("msg"); // its length is not that of our numbers, so each step is called by hand
        let salt = vector("salt").try_into().unwrap();
        let prepared = hash(&[&vector("msg_prefix"), &message]);
        let inverse = BigUint::from_bytes_be(&vector("inv"));
        let factor = inverse.modinv(&public.modulus()).unwrap();
        let (blinded, again) = public.blinded(&prepared, &salt, &factor).unwrap();
        assert_eq!((blinded, again), (vector("blinded_msg"), inverse.clone()));

        let answer = key.sign(&vector("blinded_msg")).unwrap();
        assert_eq!(answer, vector("blind_sig"));
        assert_eq!(public.unblinded(&answer, &inverse), vector("sig"));
        public.0.pss_verify_prehash::<Sha384>(&prepared, &vector("sig")).unwrap();
    }

    #[test]
    fn a_ticket_is_the_keys_own_and_no_other() {
        let server = TicketKey::generate().unwrap();
        let public = TicketPublicKey::from_der(&server.public_key().to_der().unwrap()).unwrap();
        let request = public.request().unwrap();
        let server = TicketKey::from_der(&server.to_der().unwrap()).unwrap();
        let answer = server.sign(request.blinded()).unwrap();
        assert_eq!(answer, server.sign(request.blinded()).unwrap());
        let bytes = request.finish(&answer).unwrap().to_bytes();
        assert!(public.verifies(&Ticket::from_bytes(&bytes).unwrap()));
        for at in [0, 31, 32, 63, 64, bytes.len() - 1] {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            assert!(!public.verifies(&Ticket::from_bytes(&altered).unwrap()), "byte {at}");
        }
        assert!(
            !TicketKey::generate()
                .unwrap()
                .public_key()
                .verifies(&Ticket::from_bytes(&bytes).unwrap())
        );
        let mut wrong = answer;
        wrong[7] ^= 1;
        assert_eq!(request.finish(&wrong), Err(TicketError::Answer));
        assert!(matches!(server.sign(&[0; 255]), Err(TicketError::Length { .. })));
        assert_eq!(server.sign(&[255; 256]), Err(TicketError::Blinded));
        assert!(matches!(Ticket::from_bytes(&bytes[..319]), Err(TicketError::Length { .. })));
        assert_eq!(TicketKey::from_der(&[1, 2, 3]).map(|_| ()), Err(TicketError::Key));
        assert!(!format!("{server:?} {request:?}").contains(char::is_numeric));
    }
}
