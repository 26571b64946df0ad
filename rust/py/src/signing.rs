//! Ed25519 signatures (RFC 8032), for plan files.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use pyo3::prelude::*;

use crate::errors::Result;
use crate::noise::exactly;

/// The public key of a secret one.
#[pyfunction]
pub(crate) fn ed25519_public_key(secret: &[u8]) -> Result<[u8; 32]> {
    Ok(SigningKey::from_bytes(&exactly("secret", secret)?).verifying_key().to_bytes())
}

/// The signature of a message, which is the same each time.
#[pyfunction]
pub(crate) fn ed25519_sign(secret: &[u8], message: &[u8]) -> Result<[u8; 64]> {
    Ok(SigningKey::from_bytes(&exactly("secret", secret)?).sign(message).to_bytes())
}

/// Whether a signature is that of the message under the public key. A key of small order, under which
/// one signature would fit many messages, has no signatures.
#[pyfunction]
pub(crate) fn ed25519_verify(public_key: &[u8], message: &[u8], signature: &[u8]) -> Result<bool> {
    let public_key = exactly("public_key", public_key)?;
    let signature = Signature::from_bytes(&exactly("signature", signature)?);
    Ok(VerifyingKey::from_bytes(&public_key)
        .is_ok_and(|key| key.verify_strict(message, &signature).is_ok()))
}
