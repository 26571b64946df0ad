"""Elections of two-stage sampling: which users add up the shares of which item."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from turnout._types import Integers
from turnout.distributed.elected import Elected
from turnout.distributed.payloads import NUMBER, Reader
from turnout.errors import MalformedMessageError


def largest_election(mechanism: Elected, with_duties: bool) -> int:
    """Return the size in bytes of the largest election that follows the plan.

    It is the one of which a few items are reported by everyone, and the others by nobody: the more
    unequal they are, the more users are elected.
    """
    users, size, reported = mechanism.users, mechanism.domain.size, mechanism.reported
    most, least = mechanism._committee_size(users), mechanism._committee_size(0)
    elected = reported * most + (size - reported) * least
    duties = size + reported * users if with_duties else 0
    return NUMBER.size * (2 + 2 * size + elected + duties)


@dataclass(frozen=True, eq=False)
class Election:
    """The users who are elected for each item.

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
    number
        Which election of the round this is, from 0; a later one takes the place of those before.
    """

    received: int
    reporters: Integers
    elected: tuple[Integers, ...]
    duties: dict[int, Integers]
    number: int = 0

    def public_part(self) -> bytes:
        """Write the part that everyone receives."""
        sizes = np.array([len(users) for users in self.elected], np.int64)
        columns = (self.reporters, sizes, *self.elected)
        listed = np.concatenate(columns).astype("<u4").tobytes()
        return NUMBER.pack(self.number) + NUMBER.pack(self.received) + listed

    @staticmethod
    def duty_part(duties: Iterable[tuple[int, Integers]]) -> bytes:
        """Write the part that one recipient receives about its own items."""
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
        number, received = reader.number(users), reader.number(users)
        reporters = reader.numbers(size, users + 1)
        sizes = reader.numbers(size, users + 1)
        if (reporters > received).any():
            raise MalformedMessageError("an item has more reporters than there are users")
        members = reader.numbers(int(sizes.sum()), users)
        # All items at once: there may be millions.
        item_of = np.repeat(np.arange(size), sizes)
        pairs = np.sort(item_of * users + members)
        twice = pairs[:-1][np.diff(pairs) == 0]
        if twice.size:
            raise MalformedMessageError(
                f"a user is elected more than once for item {twice[0] // users}"
            )
        elected = tuple(np.split(members, np.cumsum(sizes)[:-1]))
        mine = item_of[members == recipient] if recipient is not None else item_of[:0]
        duties = cls._unpack_duties(reader, users, mine, reporters[mine])
        if reader.rest():
            raise MalformedMessageError("an election must end after its last item")
        return cls(received, reporters, elected, duties, number)

    @staticmethod
    def _unpack_duties(
        reader: Reader, users: int, items: Integers, counts: Integers
    ) -> dict[int, Integers]:
        """Read the number and the reporters of each of some items."""
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
                f"the reporters of item {item_of[1:][wrong][0]} must be in order, without "
                "duplicates"
            )
        return dict(zip(items.tolist(), np.split(reporters, np.cumsum(counts)[:-1]), strict=False))

    def duties_of_all(self) -> dict[int, list[int]]:
        """Return the items of each elected user, in order."""
        duties: dict[int, list[int]] = {}
        for item, users in enumerate(self.elected):
            for user in users.tolist():
                duties.setdefault(user, []).append(item)
        return duties

    def check(self, mechanism: Elected) -> None:
        """Refuse an election that does not follow the plan: everyone can check that."""
        least = mechanism.users - mechanism.max_missing_users
        # Every further election is held because somebody was lost.
        most = mechanism.users - self.number
        if not least <= self.received <= most:
            raise MalformedMessageError(
                f"election {self.number} must be among {least} to {most} users, got {self.received}"
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


# What the reporting server and those who are elected tell each other: rosters.


class Word(enum.IntEnum):
    """An instruction of the reporting server to a user in an election."""

    #: Say from whom nothing has come.
    ANSWER = 0
    #: Everything has come everywhere: add up.
    ADD_UP = 1
    #: The round goes on without this user.
    WITHOUT_YOU = 2


#: The bytes of what the reporting server says.
WORD_SIZE = NUMBER.size + 1


def pack_word(number: int, word: Word) -> bytes:
    """Write an instruction of the reporting server about an election."""
    return NUMBER.pack(number) + bytes([word])


def unpack_word(payload: bytes) -> tuple[int, Word]:
    """Read the number of an election, and the instruction about it."""
    reader = Reader(payload)
    number, rest = reader.number(2**32 - 1), reader.rest()
    if len(rest) != 1 or rest[0] not in list(Word):
        raise MalformedMessageError(
            f"a roster of the reporting server must be a number and one of {len(Word)} words, got "
            f"{len(payload)} bytes"
        )
    return number, Word(rest[0])


def largest_roster(mechanism: Elected) -> int:
    """Return the size in bytes of the largest roster, if more users are missing than allowed."""
    return NUMBER.size * (2 + mechanism.max_missing_users)


def pack_missing(mechanism: Elected, number: int, users: Iterable[int]) -> bytes:
    """Write the users whose elements an elected user lacks, as far as it matters."""
    listed = np.array(sorted(users)[: mechanism.max_missing_users + 1], "<u4")
    return NUMBER.pack(number) + listed.tobytes()


def unpack_missing(mechanism: Elected, payload: bytes) -> tuple[int, Integers]:
    """Read the number of an election, and the users whose elements are missing."""
    reader = Reader(payload)
    number = reader.number(2**32 - 1)
    if len(payload) % NUMBER.size or len(payload) > largest_roster(mechanism):
        raise MalformedMessageError(
            f"a roster must be of at most {largest_roster(mechanism) // NUMBER.size} numbers, got "
            f"{len(payload)} bytes"
        )
    missing = reader.numbers(len(payload) // NUMBER.size - 1, mechanism.users)
    if (np.diff(missing) <= 0).any():
        raise MalformedMessageError("the users of a roster must be in order, each once")
    return number, missing


def lost_users(silent: Collection[int], rosters: Mapping[int, Integers]) -> set[int]:
    """Return the lost users, from the reports of elected users about missing elements.

    Parameters
    ----------
    silent
        Those who were asked and did not answer: they are lost.
    rosters
        For each who answered: from whom nothing came to it.

    Returns
    -------
    set of int
        So many that nobody who is left misses anybody who is left. If two disagree, the one goes
        about whom more do. If nobody else is concerned, both go: so a user who lies, of another or
        to it, takes one other with it at most.

    Examples
    --------
    >>> lost_users([5], {0: np.array([5, 3]), 1: np.array([3]), 2: np.array([], np.int64)})
    {3, 5}
    """
    lost = set(silent)
    disagree: dict[int, set[int]] = {}
    for one, missing in rosters.items():
        for two in missing.tolist():
            if one not in lost and two not in lost:
                disagree.setdefault(one, set()).add(two)
                disagree.setdefault(two, set()).add(one)
    while disagree:
        worst = min(disagree, key=lambda user: (-len(disagree[user]), user))
        others = disagree.pop(worst)
        lost.add(worst)
        if len(others) == 1:
            lost |= others
        for other in others:
            disagree[other].discard(worst)
            if not disagree[other]:
                del disagree[other]
    return lost
