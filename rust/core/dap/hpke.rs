//! Hybrid encryption of RFC 9180 in base mode, by the crate `hpke`: suites, keys, and encryption of
//! one message at a time.

use core::fmt;

use hpke::aead::{Aead, AesGcm128, AesGcm256};
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable};
use rand::rngs::{ChaCha20Rng, SysRng};
use rand::{SeedableRng, TryRng};
use zeroize::Zeroizing;

use super::codec::Message;
use super::error::{Error, Result};

type PrivateKey = <X25519HkdfSha256 as Kem>::PrivateKey;
type PublicKey = <X25519HkdfSha256 as Kem>::PublicKey;
type EncappedKey = <X25519HkdfSha256 as Kem>::EncappedKey;

/// DHKEM(X25519, HKDF-SHA256).
const X25519: u16 = 0x0020;
/// HKDF-SHA256.
const SHA256: u16 = 0x0001;
/// AES-128-GCM.
const AES_128: u16 = 0x0001;
/// AES-256-GCM.
const AES_256: u16 = 0x0002;

/// A public key with its algorithms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HpkeConfig<'a> {
    /// Which of its owner's keys this is.
    pub id: u8,
    /// The key encapsulation of RFC 9180, section 7.1.
    pub kem_id: u16,
    /// The key derivation of section 7.2.
    pub kdf_id: u16,
    /// The encryption of section 7.3.
    pub aead_id: u16,
    /// The public key.
    pub public_key: &'a [u8],
}

layout!(HpkeConfig<'a>: id, kem_id, kdf_id, aead_id, public_key as Filled16);

/// The public keys of an aggregator, the best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HpkeConfigList<'a> {
    /// At least one.
    pub configs: Vec<HpkeConfig<'a>>,
}

layout!(HpkeConfigList<'a>: configs as FilledList16);

impl<'a> HpkeConfigList<'a> {
    /// The first key that this crate can encrypt to.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if there is no such key.
    pub fn supported(&self) -> Result<&HpkeConfig<'a>> {
        self.configs.iter().find(|config| config.recipient().is_ok()).ok_or_else(|| {
            let given: Vec<String> = self.configs.iter().map(HpkeConfig::suite).collect();
            Error::Unsupported { given: given.join(", ") }
        })
    }
}

/// An encrypted message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HpkeCiphertext<'a> {
    /// The ID of the key that it is encrypted to.
    pub config_id: u8,
    /// The encapsulated key.
    pub enc: &'a [u8],
    /// The encrypted message itself.
    pub payload: &'a [u8],
}

layout!(HpkeCiphertext<'a>: config_id, enc as Filled16, payload as Filled32);

/// The encryption of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cipher {
    Aes128,
    Aes256,
}

impl HpkeConfig<'_> {
    fn suite(&self) -> String {
        format!("KEM {:#06x}, KDF {:#06x}, AEAD {:#06x}", self.kem_id, self.kdf_id, self.aead_id)
    }

    /// The key and the cipher, if they are known here.
    fn recipient(&self) -> Result<(PublicKey, Cipher)> {
        let cipher = match (self.kem_id, self.kdf_id, self.aead_id) {
            (X25519, SHA256, AES_128) => Cipher::Aes128,
            (X25519, SHA256, AES_256) => Cipher::Aes256,
            _ => return Err(Error::Unsupported { given: self.suite() }),
        };
        let key = PublicKey::from_bytes(self.public_key)
            .map_err(|_| Error::Key { expected: "a public key of 32 bytes" })?;
        Ok((key, cipher))
    }

    /// Encrypts a message to this key. Returns an encoded [`HpkeCiphertext`].
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] or [`Error::Key`] if the key cannot be used; [`Error::Randomness`] if
    /// the operating system gives no random bytes.
    pub fn seal(&self, info: &[u8], aad: &[u8], plaintext: &[u8]) -> Result<Vec<u8>> {
        let mut seed = Zeroizing::new([0; 32]);
        SysRng.try_fill_bytes(&mut *seed).map_err(|_| Error::Randomness)?;
        self.seal_with(&mut ChaCha20Rng::from_seed(*seed), info, aad, plaintext)
    }

    fn seal_with(
        &self,
        random: &mut impl rand::CryptoRng,
        info: &[u8],
        aad: &[u8],
        plaintext: &[u8],
    ) -> Result<Vec<u8>> {
        let (key, cipher) = self.recipient()?;
        let (enc, payload) = match cipher {
            Cipher::Aes128 => sealed::<AesGcm128>(random, &key, info, aad, plaintext),
            Cipher::Aes256 => sealed::<AesGcm256>(random, &key, info, aad, plaintext),
        }
        // All bits zero: the point has a small order.
        .map_err(|_| Error::Key { expected: "a public key of a large order" })?;
        let enc = enc.to_bytes();
        HpkeCiphertext { config_id: self.id, enc: &enc, payload: &payload }.encode()
    }
}

fn sealed<A: Aead>(
    random: &mut impl rand::CryptoRng,
    key: &PublicKey,
    info: &[u8],
    aad: &[u8],
    plaintext: &[u8],
) -> Result<(EncappedKey, Vec<u8>), hpke::HpkeError> {
    hpke::single_shot_seal_with_rng::<A, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        key,
        info,
        plaintext,
        aad,
        random,
    )
}

/// A private key with its configuration. It is never shown, and is overwritten when it is dropped.
pub struct HpkeKey {
    id: u8,
    config: Vec<u8>,
    cipher: Cipher,
    private: PrivateKey,
}

impl HpkeKey {
    /// Generates a key of the suite that everybody supports, from the operating system's
    /// randomness.
    ///
    /// # Errors
    ///
    /// [`Error::Randomness`] if the operating system gives no random bytes.
    pub fn generate(id: u8) -> Result<Self> {
        let mut material = Zeroizing::new([0; 32]);
        SysRng.try_fill_bytes(&mut *material).map_err(|_| Error::Randomness)?;
        let (private, public) = X25519HkdfSha256::derive_keypair(&*material);
        let config = HpkeConfig {
            id,
            kem_id: X25519,
            kdf_id: SHA256,
            aead_id: AES_128,
            public_key: &public.to_bytes(),
        };
        Ok(Self { id, config: config.encode()?, cipher: Cipher::Aes128, private })
    }

    /// Makes the key from an encoded [`HpkeConfig`] and its private key.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`], [`Error::Unsupported`] or [`Error::Key`] if one of them is invalid, or
    /// they do not belong together.
    pub fn new(config: &[u8], private: &[u8]) -> Result<Self> {
        let read = HpkeConfig::decode(config)?;
        let (public, cipher) = read.recipient()?;
        let private = PrivateKey::from_bytes(private)
            .map_err(|_| Error::Key { expected: "a private key of 32 bytes" })?;
        if X25519HkdfSha256::sk_to_pk(&private) != public {
            return Err(Error::Key { expected: "the private key of its configuration" });
        }
        Ok(Self { id: read.id, config: config.to_vec(), cipher, private })
    }

    /// Which of its owner's keys this is.
    #[must_use]
    pub fn id(&self) -> u8 {
        self.id
    }

    /// Its encoded [`HpkeConfig`].
    #[must_use]
    pub fn config(&self) -> &[u8] {
        &self.config
    }

    /// Returns the bytes of the private key, which are overwritten when they are dropped.
    #[must_use]
    pub fn private_key(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.private.to_bytes().to_vec())
    }

    /// Decrypts a message that was encrypted to this key; returns `None` if it was not.
    #[must_use]
    pub fn open(
        &self,
        info: &[u8],
        aad: &[u8],
        ciphertext: &HpkeCiphertext<'_>,
    ) -> Option<Vec<u8>> {
        let enc = EncappedKey::from_bytes(ciphertext.enc).ok()?;
        match self.cipher {
            Cipher::Aes128 => self.opened::<AesGcm128>(&enc, info, aad, ciphertext.payload),
            Cipher::Aes256 => self.opened::<AesGcm256>(&enc, info, aad, ciphertext.payload),
        }
    }

    fn opened<A: Aead>(
        &self,
        enc: &EncappedKey,
        info: &[u8],
        aad: &[u8],
        payload: &[u8],
    ) -> Option<Vec<u8>> {
        hpke::single_shot_open::<A, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &self.private,
            enc,
            info,
            payload,
            aad,
        )
        .ok()
    }
}

impl fmt::Debug for HpkeKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HpkeKey(config_id={}, secret)", self.id)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use core::convert::Infallible;

    use rand::{TryCryptoRng, TryRng};

    use super::*;

    /// The bytes in RFC 9180's vector of this name.
    fn vector(name: &str) -> Vec<u8> {
        let lines = include_str!("../../tests/rfc9180.txt").lines();
        let digits =
            lines.filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name).unwrap().1;
        (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect()
    }

    /// Randomness that is known before.
    struct Known(Vec<u8>);

    impl TryRng for Known {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            unreachable!("keys are drawn as bytes")
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            unreachable!("keys are drawn as bytes")
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.copy_from_slice(&self.0);
            Ok(())
        }
    }

    impl TryCryptoRng for Known {}

    fn config(aead_id: u16, public_key: &[u8]) -> HpkeConfig<'_> {
        HpkeConfig { id: 4, kem_id: X25519, kdf_id: SHA256, aead_id, public_key }
    }

    #[test]
    fn the_vectors_of_the_rfc_open() {
        for aead_id in [AES_128, AES_256] {
            let vector = |name: &str| match name {
                "info" | "aad" | "pt" => vector(name),
                _ => vector(&format!("{aead_id}.{name}")),
            };
            let public_key = vector("pkRm");
            let config = config(aead_id, &public_key).encode().unwrap();
            let key = HpkeKey::new(&config, &vector("skRm")).unwrap();
            let (enc, mut payload) = (vector("enc"), vector("ct"));
            let open = |payload: &[u8]| {
                let ciphertext = HpkeCiphertext { config_id: 4, enc: &enc, payload };
                key.open(&vector("info"), &vector("aad"), &ciphertext)
            };
            assert_eq!(open(&payload), Some(vector("pt")));
            payload[0] ^= 1;
            assert_eq!(open(&payload), None);
            assert_eq!(open(&payload[..15]), None);
        }
    }

    #[test]
    fn the_vector_of_the_rfc_comes_out() {
        let public_key = vector("1.pkRm");
        let sealed = config(AES_128, &public_key).seal_with(
            &mut Known(vector("1.ikmE")),
            &vector("info"),
            &vector("aad"),
            &vector("pt"),
        );
        let (enc, payload) = (vector("1.enc"), vector("1.ct"));
        let expected = HpkeCiphertext { config_id: 4, enc: &enc, payload: &payload };
        assert_eq!(HpkeCiphertext::decode(&sealed.unwrap()), Ok(expected));
    }

    #[test]
    fn a_key_is_kept_with_its_configuration_and_no_other() {
        let key = HpkeKey::generate(9).unwrap();
        let again = HpkeKey::new(key.config(), &key.private_key()).unwrap();
        assert_eq!((again.id(), again.config()), (9, key.config()));
        let other = HpkeKey::generate(9).unwrap();
        let refused = HpkeKey::new(key.config(), &other.private_key());
        assert!(matches!(refused, Err(Error::Key { .. })));
        assert!(matches!(HpkeKey::new(key.config(), &[1; 31]), Err(Error::Key { .. })));
    }

    #[test]
    fn keys_that_nobody_here_knows_are_passed_over() {
        let key = HpkeKey::generate(3).unwrap();
        let known = HpkeConfig::decode(key.config()).unwrap();
        let curve = HpkeConfig { kem_id: 0x0010, id: 1, ..known.clone() };
        let cipher = HpkeConfig { aead_id: 0x0003, id: 2, ..known.clone() };
        let short = HpkeConfig { public_key: &[1; 31], id: 2, ..known.clone() };
        let list = |configs: &[&HpkeConfig<'_>]| {
            HpkeConfigList { configs: configs.iter().copied().cloned().collect() }
                .supported()
                .map(|config| config.id)
        };
        assert_eq!(list(&[&curve, &cipher, &short, &known]), Ok(3));
        let refused = list(&[&curve, &cipher]).unwrap_err().to_string();
        assert!(refused.contains("KEM 0x0010") && refused.contains("AEAD 0x0003"), "{refused}");
    }

    #[test]
    fn a_point_of_small_order_is_no_key() {
        assert!(matches!(config(AES_128, &[0; 32]).seal(b"", b"", b"x"), Err(Error::Key { .. })));
    }
}
