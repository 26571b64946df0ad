"""What messages hold: written and read, with everything checked that can be."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from turnout.distributed.field import SEED_BYTES, PrimeField
from turnout.errors import InvalidValueError, MalformedMessageError

if TYPE_CHECKING:
    from turnout.distributed.two_stage import TwoStageSampling

__all__ = [
    "Election",
    "pack_bits",
    "pack_item_shares",
    "pack_packed_share",
    "pack_party_sum",
    "pack_seed_share",
    "roster_digest",
    "unpack_bits",
    "unpack_item_shares",
    "unpack_party_sum",
    "unpack_share",
]

Elements = npt.NDArray[Any]
Bits = npt.NDArray[np.bool_]
Items = npt.NDArray[np.int64]

_SEED, _PACKED = b"\x00", b"\x01"
_DIGEST = 16
_NUMBER = struct.Struct("<I")


# Shares of whole vectors.


def pack_seed_share(seed: bytes) -> bytes:
    """Write a share as a seed."""
    return _SEED + seed


def pack_packed_share(packed: bytes) -> bytes:
    """Write a share as packed elements."""
    return _PACKED + packed


def unpack_share(payload: bytes, field: PrimeField, length: int) -> Elements | bytes:
    """Read a share: elements, or the seed of them."""
    form, content = payload[:1], payload[1:]
    if form == _SEED and len(content) == SEED_BYTES:
        return content
    if form == _PACKED:
        return _elements(field, content, length)
    raise MalformedMessageError(
        f"a share must be a seed of {SEED_BYTES} bytes or {length} packed elements, got "
        f"{len(payload)} bytes of form {form.hex() or 'none'}"
    )


def _elements(field: PrimeField, data: bytes, length: int) -> Elements:
    try:
        return field.unpack(data, length)
    except InvalidValueError as error:
        raise MalformedMessageError(f"elements that are none: {error}") from error


# Rosters and sets.


def pack_bits(bits: Bits) -> bytes:
    """Write truth values, lowest bit first."""
    return np.packbits(bits, bitorder="little").tobytes()


def unpack_bits(payload: bytes, length: int, what: str) -> Bits:
    """Read truth values."""
    if len(payload) != (length + 7) // 8:
        raise MalformedMessageError(
            f"{what} must have {(length + 7) // 8} bytes, got {len(payload)}"
        )
    bits = np.unpackbits(np.frombuffer(payload, np.uint8), bitorder="little")
    if bits[length:].any():
        raise MalformedMessageError(f"{what} must be padded with zero bits")
    return bits[:length].astype(np.bool_)


def roster_digest(roster: Bits) -> bytes:
    """Name a roster, to tell whether two are the same."""
    return hashlib.blake2b(pack_bits(roster), digest_size=_DIGEST).digest()


# Sums.


def pack_party_sum(roster: Bits, field: PrimeField, sums: Elements) -> bytes:
    """Write the sum of an aggregator's shares."""
    return _NUMBER.pack(int(roster.sum())) + roster_digest(roster) + field.pack(sums)


def unpack_party_sum(payload: bytes, field: PrimeField, length: int) -> tuple[int, bytes, Elements]:
    """Read the number of users, the digest of the roster, and the sum."""
    start = _NUMBER.size + _DIGEST
    if len(payload) < start:
        raise MalformedMessageError(f"a sum must have more than {start} bytes, got {len(payload)}")
    (received,) = _NUMBER.unpack_from(payload)
    digest = payload[_NUMBER.size : start]
    return received, digest, _elements(field, payload[start:], length)


def pack_item_shares(items: Items, field: PrimeField, elements: Elements) -> bytes:
    """Write an element for each of some items."""
    listed = np.ascontiguousarray(items, "<u4").tobytes()
    return _NUMBER.pack(len(items)) + listed + field.pack(elements)


def unpack_item_shares(payload: bytes, field: PrimeField, size: int) -> tuple[Items, Elements]:
    """Read an element for each of some items, which are in order."""
    reader = _Reader(payload)
    count = reader.number(size)
    if count == 0:
        raise MalformedMessageError("there must be at least one item")
    items = reader.numbers(count, size)
    if (np.diff(items) <= 0).any():
        raise MalformedMessageError("items must be in order, each once")
    return items, _elements(field, reader.rest(), count)


# Elections.


@dataclass(frozen=True, eq=False)
class Election:
    """Who is elected for which item.

    Attributes
    ----------
    received
        The number of users that reported a set.
    reporters
        The number of users that report each item.
    elected
        The users elected for each item.
    duties
        For each item that the recipient is elected for: its reporters.
    """

    received: int
    reporters: Items
    elected: tuple[Items, ...]
    duties: dict[int, Items]

    def public_part(self) -> bytes:
        """Write what everyone gets."""
        sizes = np.array([len(users) for users in self.elected], np.int64)
        columns = (self.reporters, sizes, *self.elected)
        listed = np.concatenate(columns).astype("<u4").tobytes()
        return _NUMBER.pack(self.received) + listed

    @staticmethod
    def duty_part(duties: Iterable[tuple[int, Items]]) -> bytes:
        """Write what one recipient gets for its own items."""
        parts = [_NUMBER.pack(item) + users.astype("<u4").tobytes() for item, users in duties]
        return b"".join(parts)

    @classmethod
    def unpack(cls, payload: bytes, users: int, size: int, recipient: int | None) -> Election:
        """Read an election.

        Parameters
        ----------
        payload
            The bytes.
        users, size
            The numbers of users and of items.
        recipient
            The user that it is for; None for the server.
        """
        reader = _Reader(payload)
        received = reader.number(users)
        reporters = reader.numbers(size, users + 1)
        sizes = reader.numbers(size, users + 1)
        if (reporters > received).any():
            raise MalformedMessageError("more reporters of an item than users")
        elected = tuple(reader.numbers(int(count), users) for count in sizes)
        for item, members in enumerate(elected):
            if len(np.unique(members)) != len(members):
                raise MalformedMessageError(f"a user is elected twice for item {item}")
        duties: dict[int, Items] = {}
        for item, members in enumerate(elected):
            if recipient is not None and recipient in members:
                if reader.number(size - 1) != item:
                    raise MalformedMessageError(f"the reporters of item {item} are missing")
                duties[item] = reader.numbers(int(reporters[item]), users)
                if (np.diff(duties[item]) <= 0).any():
                    raise MalformedMessageError(
                        f"the reporters of item {item} must be in order, each once"
                    )
        if reader.rest():
            raise MalformedMessageError("an election must end after its last item")
        return cls(received, reporters, elected, duties)

    def check(self, mechanism: TwoStageSampling) -> None:
        """Refuse an election that does not keep to the plan: everyone can see that."""
        least = mechanism.users - mechanism.max_missing_users
        if self.received < least:
            raise MalformedMessageError(
                f"an election must be among at least {least} users, got {self.received}"
            )
        if self.reporters.sum() != self.received * mechanism.reported:
            raise MalformedMessageError(
                f"{self.received} users report {mechanism.reported} items each, got "
                f"{self.reporters.sum()} reports in all"
            )
        for item, (count, members) in enumerate(zip(self.reporters, self.elected, strict=True)):
            expected = min(mechanism.committee_size(int(count)), self.received)
            if len(members) != expected:
                raise MalformedMessageError(
                    f"{expected} users must be elected for item {item}, got {len(members)}"
                )


class _Reader:
    """Numbers from bytes, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, most: int) -> int:
        """Read a number up to a largest one."""
        return int(self.numbers(1, most + 1)[0])

    def numbers(self, count: int, bound: int) -> Items:
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
        """Take what is left."""
        return self._data[self._position :]
