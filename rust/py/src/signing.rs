//! Binding of `wire::signing`: Ed25519 signatures (RFC 8032), for plan files.

use pyo3::prelude::*;
use turnout_core::wire::{PublicKey, SigningKey};

use crate::errors::Result;
use crate::noise::exactly;

/// The public key of a secret one.
#[pyfunction]
pub(crate) fn ed25519_public_key(secret: &[u8]) -> Result<[u8; 32]> {
    Ok(SigningKey::from_bytes(&exactly("secret", secret)?).public_key().to_bytes())
}

/// The signature of a message, which is the same each time.
#[pyfunction]
pub(crate) fn ed25519_sign(secret: &[u8], message: &[u8]) -> Result<[u8; 64]> {
    Ok(SigningKey::from_bytes(&exactly("secret", secret)?).sign(message))
}

/// Whether a signature is that of the message under the public key. A key of small order, under which
/// one signature would fit many messages, has no signatures.
#[pyfunction]
pub(crate) fn ed25519_verify(public_key: &[u8], message: &[u8], signature: &[u8]) -> Result<bool> {
    let public_key = PublicKey::from_bytes(exactly("public_key", public_key)?);
    Ok(public_key.verifies(message, &exactly("signature", signature)?))
}
