"""Where the reports in a tally come from, so that no collection counts twice.

Two collections of few people can have equal counts, and the same reports can be counted in two
places, so counts do not tell whether tallies are of the same reports. Each collection therefore has
an identity, 16 bytes of its own: of a file of reports they are made from the file's own, of a set
of messages from those of all of them, and otherwise they come from the operating system. A tally
that is read, copied or pickled keeps them. A sum has those of all its parts, and a sum of two
tallies that have one in common is refused.

Of more than :data:`MOST` collections the :data:`MOST` smallest identities are kept, whatever the
order in which they were added. The same sum added again is found then too, and a sum that holds it;
a single collection among ``n`` that is added again is found with a chance of ``MOST / n``.

Where people keep permanent answers, an origin also says how many nodes are in each round, since
rounds of the same people share noise: see :mod:`turnout.collecting.rounds`.
"""

from __future__ import annotations

import hashlib
import heapq
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from turnout import _arguments, _core
from turnout.collecting.rounds import (
    NONE,
    Rounds,
    of_different_people,
    together,
)
from turnout.errors import InvalidValueError

#: The length of an identity, in bytes.
SIZE: Final = 16

#: The most identities that are kept.
MOST: Final = _core.MOST_IDENTITIES


@dataclass(frozen=True)
class Origin:
    """Which collections reports come from.

    Attributes
    ----------
    identities
        16 bytes for each collection; none where there are no nodes, and in pieces of a collection
        that are still to be added up.
    rounds
        The rounds of permanent answers, and their sizes; none where every report is drawn afresh.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If they are no set of at most :data:`MOST` times 16 bytes.

    Examples
    --------
    >>> one, other = Origin.new(), Origin.new()
    >>> len((one + other).identities)
    2
    """

    identities: frozenset[bytes] = frozenset()
    rounds: Rounds = NONE

    def __post_init__(self) -> None:
        """Check the fields."""
        found = _arguments.instance(
            "identities", self.identities, frozenset, "a frozenset of bytes"
        )
        if len(found) > MOST or not all(type(one) is bytes and len(one) == SIZE for one in found):
            raise InvalidValueError(
                f"identities must be at most {MOST} times {SIZE} bytes, got {len(found)} entries"
            )

    @classmethod
    def new(cls) -> Origin:
        """Make that of a new collection."""
        return cls(frozenset([secrets.token_bytes(SIZE)]))

    @classmethod
    def named(cls, *names: str) -> Origin:
        """Make that of a collection that texts name, and no other.

        Examples
        --------
        >>> Origin.named("file 1") == Origin.named("file 1")
        True
        >>> Origin.named("file 1") == Origin.named("file 1", "DE")
        False
        """
        digest = hashlib.sha256()
        for name in names:
            data = name.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return cls(frozenset([digest.digest()[:SIZE]]))

    @classmethod
    def of_messages(cls, nonces: Iterable[bytes]) -> Origin:
        """Make that of messages: put together again they are the same, whatever their order.

        Examples
        --------
        >>> Origin.of_messages([b"1", b"2"]) == Origin.of_messages([b"2", b"1"])
        True
        """
        return cls.named("turnout-report", *sorted(nonce.hex() for nonce in nonces))

    @classmethod
    def settled(cls, origin: Any, nodes: int, *, fresh: bool = True) -> Origin:
        """Take over that of so many nodes, or make a new one if none is given.

        Parameters
        ----------
        origin
            The origin, or None.
        nodes
            The number of nodes.
        fresh
            Whether every report is drawn afresh, so that rounds do not matter.

        Raises
        ------
        InvalidValueError
            If several rounds have another number of nodes.
        """
        if not nodes:
            return PIECE
        taken: Origin = (
            cls.new() if origin is None else _arguments.instance("origin", origin, cls, "an Origin")
        )
        rounds = NONE if fresh else taken.rounds.settled(taken.identities, nodes)
        return taken.with_rounds(rounds)

    def with_rounds(self, rounds: Rounds) -> Origin:
        """Give the same collections, as those of some rounds."""
        return self if rounds == self.rounds else replace(self, rounds=rounds)

    def __add__(self, other: Origin) -> Origin:
        """Give that of the reports of both."""
        return Origin.of_all([self, other])

    @classmethod
    def of_all(cls, origins: Iterable[Origin]) -> Origin:
        """Give that of the reports of some tallies together."""
        listed = list(origins)
        found: frozenset[bytes] = frozenset().union(*(origin.identities for origin in listed))
        kept = found if len(found) <= MOST else frozenset(heapq.nsmallest(MOST, found))
        return cls(kept, together(origin.rounds for origin in listed))

    @staticmethod
    def of_different_people(origins: Iterable[Origin]) -> list[Origin]:
        """Name the rounds of collections so that their people are different when they are added."""
        listed = list(origins)
        names = of_different_people(origin.rounds for origin in listed)
        return [
            origin.with_rounds(origin.rounds.renamed(each))
            for origin, each in zip(listed, names, strict=True)
        ]

    def refuse_shared(self, other: Origin) -> None:
        """Refuse to add reports that come from a collection of these.

        Raises
        ------
        InvalidValueError
            If any do.
        """
        if not self.identities.isdisjoint(other.identities):
            raise InvalidValueError(
                "other must be of other reports, got some that are counted here already: add each "
                "tally once, and no sum beside one of its parts"
            )


#: Of a piece of a collection, which gets an origin when all its pieces have been added up.
PIECE: Final = Origin()


def refuse_repeats(named: Iterable[tuple[str, Any]]) -> None:
    """Refuse to add up tallies or reports of which two come from one collection, and name them.

    Raises
    ------
    InvalidValueError
        If two do.
    """
    found: dict[bytes, str] = {}
    for name, counted in named:
        for identity in counted.origin.identities:
            same = found.setdefault(identity, name)
            if same is not name:
                raise InvalidValueError(
                    f"{name}: has reports that {same} has too: they would count twice; leave one "
                    "of the two out"
                )
