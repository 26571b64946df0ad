"""An election of two-stage sampling: who adds up what is shared of which item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from turnout._types import Integers
from turnout.distributed.elected import Elected
from turnout.distributed.payloads import NUMBER, Reader
from turnout.errors import MalformedMessageError


def largest_election(mechanism: Elected, with_duties: bool) -> int:
    """Count the bytes of the largest election that keeps to the plan.

    It is the one of which a few items are reported by everyone, and the others by nobody: the more
    unequal they are, the more users are elected.
    """
    users, size, reported = mechanism.users, mechanism.domain.size, mechanism.reported
    most, least = mechanism._committee_size(users), mechanism._committee_size(0)
    elected = reported * most + (size - reported) * least
    duties = size + reported * users if with_duties else 0
    return NUMBER.size * (1 + 2 * size + elected + duties)


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
    reporters: Integers
    elected: tuple[Integers, ...]
    duties: dict[int, Integers]

    def public_part(self) -> bytes:
        """Write what everyone gets."""
        sizes = np.array([len(users) for users in self.elected], np.int64)
        columns = (self.reporters, sizes, *self.elected)
        listed = np.concatenate(columns).astype("<u4").tobytes()
        return NUMBER.pack(self.received) + listed

    @staticmethod
    def duty_part(duties: Iterable[tuple[int, Integers]]) -> bytes:
        """Write what one recipient gets for its own items."""
        parts = [NUMBER.pack(item) + users.astype("<u4").tobytes() for item, users in duties]
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
        reader = Reader(payload)
        received = reader.number(users)
        reporters = reader.numbers(size, users + 1)
        sizes = reader.numbers(size, users + 1)
        if (reporters > received).any():
            raise MalformedMessageError("more reporters of an item than users")
        members = reader.numbers(int(sizes.sum()), users)
        # All items at once: there may be millions.
        item_of = np.repeat(np.arange(size), sizes)
        pairs = np.sort(item_of * users + members)
        twice = pairs[:-1][np.diff(pairs) == 0]
        if twice.size:
            raise MalformedMessageError(f"a user is elected twice for item {twice[0] // users}")
        elected = tuple(np.split(members, np.cumsum(sizes)[:-1]))
        mine = item_of[members == recipient] if recipient is not None else item_of[:0]
        duties = cls._unpack_duties(reader, users, mine, reporters[mine])
        if reader.rest():
            raise MalformedMessageError("an election must end after its last item")
        return cls(received, reporters, elected, duties)

    @staticmethod
    def _unpack_duties(
        reader: Reader, users: int, items: Integers, counts: Integers
    ) -> dict[int, Integers]:
        """Read, for each of some items, its number and its reporters."""
        ends = np.cumsum(counts + 1)
        words = reader.numbers(int(counts.sum()) + len(items), 2**32)
        starts = ends - counts - 1
        wrong = words[starts] != items
        if wrong.any():
            raise MalformedMessageError(f"the reporters of item {items[wrong][0]} are missing")
        reporters = np.delete(words, starts)
        if (reporters >= users).any():
            raise MalformedMessageError(
                f"a reporter must be below {users}, got {int(reporters.max())}"
            )
        item_of = np.repeat(items, counts)
        wrong = np.diff(item_of * users + reporters) <= 0
        if wrong.any():
            raise MalformedMessageError(
                f"the reporters of item {item_of[1:][wrong][0]} must be in order, each once"
            )
        return dict(zip(items.tolist(), np.split(reporters, np.cumsum(counts)[:-1]), strict=False))

    def duties_of_all(self) -> dict[int, list[int]]:
        """Give the items that each elected user is elected for, in order."""
        duties: dict[int, list[int]] = {}
        for item, users in enumerate(self.elected):
            for user in users.tolist():
                duties.setdefault(user, []).append(item)
        return duties

    def check(self, mechanism: Elected) -> None:
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
            expected = min(mechanism._committee_size(int(count)), self.received)
            if len(members) != expected:
                raise MalformedMessageError(
                    f"{expected} users must be elected for item {item}, got {len(members)}"
                )
