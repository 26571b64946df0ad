"""Keys that sign plans: the vectors of RFC 8032, another implementation, and files of keys."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from turnout import _core
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.signing import SigningKey, verify

#: RFC 8032, section 7.1: secret key, public key, message, signature.
VECTORS = {
    "TEST 1": (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        b"",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e3970"
        "1cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    "TEST 2": (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        b"\x72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613"
        "d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    "TEST 3": (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        b"\xaf\x82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760"
        "984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    "TEST SHA(abc)": (
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").digest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c6"
        "6431e0303dca179c138ac17ad9bef1177331a704",
    ),
}

#: The order of the group: numbers that differ by it are one number to a careless verifier.
ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())
def test_keys_and_signatures_are_those_of_the_standard(vector: tuple[str, str, bytes, str]) -> None:
    secret, public_key, message, signature = vector
    key = SigningKey(bytes.fromhex(secret))
    assert key.public_key == public_key
    assert key.sign(message).hex() == signature
    assert verify(public_key, message, bytes.fromhex(signature))
    assert verify(public_key.upper(), message, bytes.fromhex(signature))


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 127, 128, 129, 5000])
def test_another_implementation_agrees(length: int) -> None:
    secret = hashlib.sha256(f"key {length}".encode()).digest()
    message = hashlib.shake_128(secret).digest(length)
    key, other = SigningKey(secret), ed25519.Ed25519PrivateKey.from_private_bytes(secret)
    raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
    assert key.public_key == other.public_key().public_bytes(*raw).hex()
    assert key.sign(message) == other.sign(message)
    assert verify(key.public_key, message, other.sign(message))
    other.public_key().verify(key.sign(message), message)
    with pytest.raises(InvalidSignature):
        other.public_key().verify(key.sign(message), message + b"x")


def test_nothing_else_is_a_signature() -> None:
    key, message = SigningKey(bytes(range(32))), b"turnout"
    signature = key.sign(message)
    for place in range(512):
        altered = bytearray(signature)
        altered[place // 8] ^= 1 << place % 8
        assert not verify(key.public_key, message, bytes(altered)), place
    for place in range(256):
        public = bytearray.fromhex(key.public_key)
        public[place // 8] ^= 1 << place % 8
        assert not verify(public.hex(), message, signature), place
    assert not verify(SigningKey.generate().public_key, message, signature)
    assert not verify(key.public_key, message + b"\0", signature)


def test_a_signature_has_one_form_and_a_weak_key_none() -> None:
    key, message = SigningKey(bytes(range(32))), b"turnout"
    signature = key.sign(message)
    larger = int.from_bytes(signature[32:], "little") + ORDER
    assert not verify(key.public_key, message, signature[:32] + larger.to_bytes(32, "little"))
    # The neutral element: with it one signature would fit all messages.
    neutral = (1).to_bytes(32, "little")
    assert not verify(neutral.hex(), message, neutral + bytes(32))


def test_new_keys_differ_and_show_nothing() -> None:
    keys = [SigningKey.generate() for _ in range(20)]
    assert len({key.public_key for key in keys}) == len(set(keys)) == 20
    key = keys[0]
    assert key == SigningKey(key._secret)
    assert key != keys[1]
    assert key != key.public_key
    for shown in (repr(key), str(key), repr([key])):
        assert key.public_key in shown
        assert key._secret.hex() not in shown
        assert repr(key._secret) not in shown


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33)])
def test_a_secret_has_32_bytes(secret: bytes) -> None:
    with pytest.raises(InvalidValueError, match=f"secret must be 32 bytes, got {len(secret)}"):
        SigningKey(secret)
    with pytest.raises(InvalidValueError, match="secret must have 32 bytes, got"):
        _core.ed25519_sign(secret, b"")
    with pytest.raises(InvalidValueError, match="secret must have 32 bytes, got"):
        _core.ed25519_public_key(secret)


def test_a_wrong_secret_is_not_shown() -> None:
    with pytest.raises(InvalidTypeError, match="secret must be 32 bytes, got a str") as caught:
        SigningKey("hidden" * 5)  # type: ignore[arg-type]
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "0" * 63, "0" * 65, "g" * 64, " " + "0" * 63, "0" * 64 + "\n"])
def test_a_public_key_has_64_digits(key: str) -> None:
    with pytest.raises(InvalidValueError, match="public_key must be a public key of 64 hexadec"):
        verify(key, b"", bytes(64))


def test_other_arguments_are_refused() -> None:
    public_key = SigningKey.generate().public_key
    with pytest.raises(InvalidTypeError, match="public_key must be a public key of 64"):
        verify(bytes(32), b"", bytes(64))  # type: ignore[arg-type]
    for use in (
        SigningKey.generate().sign,
        lambda message: verify(public_key, message, bytes(64)),
    ):
        with pytest.raises(InvalidTypeError, match="message must be bytes, got 'text'"):
            use("text")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="signature must be 64 bytes"):
        verify(public_key, b"", "00" * 64)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="signature must have 64 bytes, got 63"):
        verify(public_key, b"", bytes(63))


def test_a_key_comes_back_from_its_file(tmp_path: Path) -> None:
    key, path = SigningKey.generate(), tmp_path / "plans.key"
    before = os.umask(0)
    try:
        key.write(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    back = SigningKey.read(path)
    assert back == key
    assert back.sign(b"x") == key.sign(b"x")


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "plans.key"
    key = SigningKey.generate()
    key.write(path)
    with pytest.raises(FileExistsError):
        SigningKey.generate().write(path)
    assert SigningKey.read(path) == key
    target = tmp_path / "elsewhere"
    link = tmp_path / "link.key"
    link.symlink_to(target)
    with pytest.raises(FileExistsError):
        key.write(link)
    assert not target.exists()


def test_a_failure_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        SigningKey.generate().write(tmp_path / "plans.key")
    assert list(tmp_path.iterdir()) == []


def written(path: Path, **changes: Any) -> Path:
    SigningKey(bytes(range(32))).write(path)
    record = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in record.items() if value != "DROP"}))
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "turnout-key"},
        {"version": 2},
        {"algorithm": "ed448"},
        {"more": 1},
        {"secret": "DROP"},
        {"secret": bytes(range(32)).hex()[:-1]},
        {"secret": 12},
        {"public_key": None},
    ],
    ids=str,
)
def test_other_files_are_no_keys_and_are_not_shown(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = written(tmp_path / "plans.key", **changes)
    with pytest.raises(CorruptDataError, match="not a signing key of turnout, of version 1") as got:
        SigningKey.read(path)
    assert str(path) in str(got.value)
    assert bytes(range(31)).hex() not in str(got.value)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"null"])
def test_what_is_no_record_is_no_key(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "plans.key"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(CorruptDataError, match="not a signing key of turnout"):
        SigningKey.read(path)


def test_halves_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "plans.key", secret=bytes(32).hex())
    with pytest.raises(CorruptDataError, match="the public key does not belong to the secret key"):
        SigningKey.read(path)


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604, 0o601])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "plans.key"
    SigningKey.generate().write(path)
    path.chmod(mode)
    with pytest.raises(InvalidValueError, match="other users can read this key: run chmod 600"):
        SigningKey.read(path)
    path.chmod(0o400)
    SigningKey.read(path)


def test_a_key_is_not_pickled() -> None:
    key = SigningKey.generate()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(InvalidTypeError, match="a SigningKey cannot be pickled"):
            pickle.dumps(key, protocol)


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SigningKey.read(tmp_path / "none.key")
