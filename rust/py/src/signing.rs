//! Ed25519 signatures (RFC 8032), for plan files.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use pyo3::prelude::*;

use crate::errors::invalid_value;

/// The public key of a secret one.
#[pyfunction]
pub(crate) fn ed25519_public_key(py: Python<'_>, secret: &[u8]) -> PyResult<[u8; 32]> {
    Ok(signing_key(py, secret)?.verifying_key().to_bytes())
}

/// The signature of a message, which is the same each time.
#[pyfunction]
pub(crate) fn ed25519_sign(py: Python<'_>, secret: &[u8], message: &[u8]) -> PyResult<[u8; 64]> {
    Ok(signing_key(py, secret)?.sign(message).to_bytes())
}

/// Whether a signature is that of the message under the public key. A key of small order, under which
/// one signature would fit many messages, has no signatures.
#[pyfunction]
pub(crate) fn ed25519_verify(
    py: Python<'_>,
    public_key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> PyResult<bool> {
    let public_key: [u8; 32] = exactly(py, "public_key", public_key)?;
    let signature = Signature::from_bytes(&exactly(py, "signature", signature)?);
    Ok(VerifyingKey::from_bytes(&public_key)
        .is_ok_and(|key| key.verify_strict(message, &signature).is_ok()))
}

fn signing_key(py: Python<'_>, secret: &[u8]) -> PyResult<SigningKey> {
    Ok(SigningKey::from_bytes(&exactly(py, "secret", secret)?))
}

fn exactly<const N: usize>(py: Python<'_>, argument: &str, bytes: &[u8]) -> PyResult<[u8; N]> {
    bytes.try_into().map_err(|_| {
        invalid_value(py, format!("{argument} must have {N} bytes, got {}", bytes.len()))
    })
}
