//! Ed25519 signatures (RFC 8032) that show who published a plan.

use core::fmt;

use ed25519_dalek::{Signature, Signer, VerifyingKey};

use super::hex;

/// A public key. It accepts the signatures made with its secret key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Makes the key from 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads the key from 64 hexadecimal digits, in upper or lower case.
    ///
    /// ```
    /// use turnout_core::wire::PublicKey;
    /// assert_eq!(PublicKey::from_hex(&"0F".repeat(32)), Some(PublicKey::from_bytes([15; 32])));
    /// assert_eq!(PublicKey::from_hex("0f"), None);
    /// ```
    #[must_use]
    pub fn from_hex(digits: &str) -> Option<Self> {
        hex::read(&digits.to_ascii_lowercase()).map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Tells whether this key signed the message. A key of small order, under which one signature
    /// would fit many messages, accepts no signature.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = Signature::from_bytes(signature);
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::text(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

/// A secret key. It is never shown, and is overwritten when it is dropped.
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Makes the key from 32 secret bytes.
    #[must_use]
    pub fn from_bytes(secret: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(secret))
    }

    /// Its public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs a message. The same message always gets the same signature.
    ///
    /// ```
    /// use turnout_core::wire::SigningKey;
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// let signature = key.sign(b"a message");
    /// assert!(key.public_key().verifies(b"a message", &signature));
    /// assert!(!key.public_key().verifies(b"another", &signature));
    /// ```
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey(of {})", self.public_key())
    }
}
