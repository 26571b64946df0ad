"""Permanent answers against a derivation that shares no code with the library's."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

import turnout as tn
from turnout.frequency.longitudinal import Memoized

ciphers = pytest.importorskip("cryptography.hazmat.primitives.ciphers")

PERMANENT, KEY = 64, 65


def words(key: bytes, purpose: int, index: int, number: int) -> list[int]:
    """AES-256 of a counter of 128 bits, little-endian: the stream above, the position below."""
    cipher = ciphers.Cipher(ciphers.algorithms.AES(key), ciphers.modes.ECB()).encryptor()
    stream = (purpose << 56) | index
    blocks = b"".join(
        cipher.update(((stream << 64) | position).to_bytes(16, "little"))
        for position in range(-(-number // 2))
    )
    return np.frombuffer(blocks, "<u8").tolist()[:number]


def answer_words(secret: bytes, context: bytes, code: int, number: int) -> list[int]:
    key = secret
    for start in range(0, 32, 7):
        index = int.from_bytes(context[start : start + 7], "little")
        key = np.array(words(key, KEY, index, 4), "<u8").tobytes()
    return words(key, PERMANENT, code, number)


SECRETS = np.random.default_rng(5).integers(0, 256, (200, 32), np.uint8)
CODES = np.arange(200) % 7


def test_the_context_is_a_hash_of_the_permanent_stage() -> None:
    memoized = Memoized(tn.DirectEncoding(2.0, 7), first_epsilon=1.0, question="colour")
    what = {
        "domain": memoized.domain.fingerprint,
        "format": "turnout-permanent-answer",
        "permanent": "direct_encoding",
        "question": "colour",
        "version": 1,
        "words": [str(word) for word in memoized._core.words[0]],
    }
    text = json.dumps(what, separators=(",", ":"))
    assert memoized.context == hashlib.sha256(text.encode()).digest()


def test_direct_encoding() -> None:
    memoized = Memoized(tn.DirectEncoding(2.0, 7), first_epsilon=1.0)
    own, other = memoized._core.words[0]
    keep = own - other
    expected = []
    for secret, code in zip(SECRETS, CODES.tolist(), strict=True):
        drawn = answer_words(secret.tobytes(), memoized.context, code, 8)
        # The low half of the first word is the high half of the one that decides; then come the low
        # half, in the second, and whole words.
        drawn = [(drawn[0] & (2**32 - 1)) << 32 | drawn[1] >> 32, *drawn[2:]]
        word = next(word for word in drawn if word < keep + 7 * other)
        expected.append(code if word < keep else (word - keep) // other)
    assert memoized.permanent_answers(CODES, SECRETS).tolist() == expected
    assert expected != CODES.tolist()


@pytest.mark.parametrize("size", [7, 64, 130])
def test_unary_encoding(size: int) -> None:
    memoized = Memoized(2.0, size, first_epsilon=1.0, permanent="optimized_unary_encoding")
    one, zero = memoized._core.words[0]
    answers = memoized.permanent_answers(CODES, SECRETS)
    for row, secret, code in zip(answers, SECRETS, CODES.tolist(), strict=True):
        drawn = answer_words(secret.tobytes(), memoized.context, code, size)
        bits = [word < (one if bit == code else zero) for bit, word in enumerate(drawn)]
        made = sum(int(bit) << position for position, bit in enumerate(bits))
        assert sum(int(word) << (64 * index) for index, word in enumerate(row)) == made
