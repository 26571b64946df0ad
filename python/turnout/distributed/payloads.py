"""The payloads of messages: writing, and reading with every possible check."""

from __future__ import annotations

import hashlib
import secrets
import struct

import numpy as np

from turnout._types import Array, Integers, Truths, Unsigned
from turnout.distributed.field import SEED_BYTES, PrimeField
from turnout.errors import InvalidValueError, MalformedMessageError

_SEED, _PACKED = b"\x00", b"\x01"
#: The bytes of the digest of a roster.
ROSTER_DIGEST = 16
NUMBER = struct.Struct("<I")
_REPORT = struct.Struct("<Q")

#: The bytes of a share's payload beside the share.
SHARE_OVERHEAD = _REPORT.size + 1


# Shares of whole vectors.


def new_report() -> int:
    """Draw the number in all shares of one report; it is never 0."""
    return secrets.randbelow(2**64 - 1) + 1


def pack_share(report: int, share: bytes, seeded: bool) -> bytes:
    """Write a share: a seed, or packed elements."""
    return _REPORT.pack(report) + (_SEED if seeded else _PACKED) + share


def share_size(field: PrimeField, length: int, seeded: bool) -> int:
    """Count the bytes of a share: a seed, or packed elements."""
    return SHARE_OVERHEAD + (SEED_BYTES if seeded else field._packed_size(length))


def unpack_share(payload: bytes, field: PrimeField, length: int) -> tuple[int, Array | bytes]:
    """Read a share and the number of its report: elements, or the seed of them."""
    if len(payload) > _REPORT.size:
        (report,) = _REPORT.unpack_from(payload)
        form, content = payload[_REPORT.size : SHARE_OVERHEAD], payload[SHARE_OVERHEAD:]
        if report == 0:
            raise MalformedMessageError("the number of a report must not be 0")
        if form == _SEED and len(content) == SEED_BYTES:
            return report, content
        if form == _PACKED:
            return report, _elements(field, content, length)
    raise MalformedMessageError(
        f"a share must be {_REPORT.size} bytes, a form, and a seed of {SEED_BYTES} bytes or "
        f"{length} packed elements, got {len(payload)} bytes: {payload[:SHARE_OVERHEAD].hex()}..."
    )


def _elements(field: PrimeField, data: bytes, length: int) -> Array:
    try:
        return field._unpack(data, length)
    except InvalidValueError as error:
        raise MalformedMessageError(f"invalid elements: {error}") from error


# Rosters and sets.


def bits_size(length: int) -> int:
    """Count the bytes of truth values."""
    return (length + 7) // 8


def pack_bits(bits: Truths) -> bytes:
    """Write truth values, lowest bit first."""
    return np.packbits(bits, bitorder="little").tobytes()


def unpack_bits(payload: bytes, length: int, what: str) -> Truths:
    """Read truth values."""
    if len(payload) != bits_size(length):
        raise MalformedMessageError(
            f"{what} must have {bits_size(length)} bytes, got {len(payload)}"
        )
    bits = np.unpackbits(np.frombuffer(payload, np.uint8), bitorder="little")
    if bits[length:].any():
        raise MalformedMessageError(f"{what} must be padded with zero bits")
    return bits[:length].astype(np.bool_)


def roster_size(users: int) -> int:
    """Count the bytes of a roster of all users."""
    return bits_size(users) + _REPORT.size * users


def pack_roster(reports: Unsigned) -> bytes:
    """Write which users' shares arrived, and the number of each report; 0 for a missing one."""
    present = np.ascontiguousarray(reports[reports != 0], "<u8")
    return pack_bits(reports != 0) + bytes(present.tobytes())


def unpack_roster(payload: bytes, users: int) -> Unsigned:
    """Read a roster."""
    start = bits_size(users)
    present = unpack_bits(payload[:start], users, "a roster")
    if len(payload) != start + _REPORT.size * int(present.sum()):
        raise MalformedMessageError(
            f"a roster of {present.sum()} users must have "
            f"{start + _REPORT.size * int(present.sum())} bytes, got {len(payload)}"
        )
    reports = np.zeros(users, np.uint64)
    reports[present] = np.frombuffer(payload, "<u8", offset=start)
    if (reports[present] == 0).any():
        raise MalformedMessageError("the number of a report must not be 0")
    return reports


def check_roster(payload: bytes, users: int, digest: bool) -> None:
    """Refuse a payload that is not a roster, or not a digest of one."""
    if not digest:
        unpack_roster(payload, users)
    elif len(payload) != ROSTER_DIGEST:
        raise MalformedMessageError(
            f"the digest of a roster must have {ROSTER_DIGEST} bytes, got {len(payload)}"
        )


def roster_digest(reports: Unsigned) -> bytes:
    """Return a digest of a roster, to compare rosters."""
    return hashlib.blake2b(pack_roster(reports), digest_size=ROSTER_DIGEST).digest()


# Sums.


def party_sum_size(field: PrimeField, length: int) -> int:
    """Count the bytes of the sum of an aggregator's shares."""
    return NUMBER.size + ROSTER_DIGEST + field._packed_size(length)


def pack_party_sum(reports: Unsigned, field: PrimeField, sums: Array) -> bytes:
    """Write the sum of an aggregator's shares."""
    received = int((reports != 0).sum())
    return NUMBER.pack(received) + roster_digest(reports) + field._pack(sums)


def unpack_party_sum(payload: bytes, field: PrimeField, length: int) -> tuple[int, bytes, Array]:
    """Read the number of users, the digest of the roster, and the sum."""
    start = NUMBER.size + ROSTER_DIGEST
    if len(payload) < start:
        raise MalformedMessageError(f"a sum must have more than {start} bytes, got {len(payload)}")
    (received,) = NUMBER.unpack_from(payload)
    digest = payload[NUMBER.size : start]
    return received, digest, _elements(field, payload[start:], length)


def item_shares_size(field: PrimeField, count: int) -> int:
    """Count the bytes of an element for each of some items."""
    return NUMBER.size * (1 + count) + field._packed_size(count)


def pack_item_shares(items: Integers, field: PrimeField, elements: Array) -> bytes:
    """Write an element for each of some items."""
    listed = np.ascontiguousarray(items, "<u4").tobytes()
    return NUMBER.pack(len(items)) + listed + field._pack(elements)


def unpack_item_shares(payload: bytes, field: PrimeField, size: int) -> tuple[Integers, Array]:
    """Read an element for each of some items, which are in order."""
    reader = Reader(payload)
    count = reader.number(size)
    if count == 0:
        raise MalformedMessageError("expected at least one item")
    items = reader.numbers(count, size)
    if (np.diff(items) <= 0).any():
        raise MalformedMessageError("items must be in order, without duplicates")
    return items, _elements(field, reader.rest(), count)


class Reader:
    """A reader of consecutive numbers from bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, most: int) -> int:
        """Read a number that is at most a given one."""
        return int(self.numbers(1, most + 1)[0])

    def numbers(self, count: int, bound: int) -> Integers:
        """Read numbers below a bound."""
        end = self._position + 4 * count
        if end > len(self._data):
            raise MalformedMessageError(
                f"a payload must have at least {end} bytes, got {len(self._data)}"
            )
        found = np.frombuffer(self._data, "<u4", count, self._position).astype(np.int64)
        self._position = end
        if (found >= bound).any():
            raise MalformedMessageError(
                f"a number of a payload must be below {bound}, got {int(found.max())}"
            )
        return found

    def rest(self) -> bytes:
        """Return the remaining bytes."""
        return self._data[self._position :]
