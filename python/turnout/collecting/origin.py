"""The origin of the reports in a tally, so that no collection counts twice.

Two collections of few people can have equal counts, and the same reports can be counted in two
places. So counts do not tell whether tallies have the same reports. Each collection therefore has
an identity of 16 bytes. For a file of reports it is derived from the file's own identity, for a set
of messages from all their nonces. Otherwise it comes from the operating system. A tally that is
read, copied or pickled keeps its identities. A sum has the identities of all its parts. Adding two
tallies with a common identity is refused.

Of more than :data:`MOST` collections the :data:`MOST` smallest identities are kept, whatever the
order of the additions. Adding the same sum again, or a sum that contains it, is then still
detected. Adding a single one of ``n`` collections again is detected with probability ``MOST / n``.

Where people keep permanent answers, an origin also holds the number of nodes in each round, since
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
    """The collections that reports come from.

    Attributes
    ----------
    identities
        16 bytes for each collection. Empty if there are no nodes, and in pieces of a collection
        that are not added up yet.
    rounds
        The rounds of permanent answers, and their sizes; empty if every report is drawn afresh.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If they are not a set of at most :data:`MOST` identities of 16 bytes.

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
        """Create the origin of a new collection."""
        return cls(frozenset([secrets.token_bytes(SIZE)]))

    @classmethod
    def named(cls, *names: str) -> Origin:
        """Create the origin of a collection that texts identify.

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
        """Create the origin of a set of messages, whatever their order.

        Examples
        --------
        >>> Origin.of_messages([b"1", b"2"]) == Origin.of_messages([b"2", b"1"])
        True
        """
        return cls.named("turnout-report", *sorted(nonce.hex() for nonce in nonces))

    @classmethod
    def settled(cls, origin: Any, nodes: int, *, fresh: bool = True) -> Origin:
        """Return the origin for a number of nodes, a new one if none is given.

        Parameters
        ----------
        origin
            The origin, or None.
        nodes
            The number of nodes.
        fresh
            Whether every report is drawn afresh; then rounds do not matter.

        Raises
        ------
        InvalidValueError
            If several rounds have a different number of nodes in total.
        """
        if not nodes:
            return PIECE
        taken: Origin = (
            cls.new() if origin is None else _arguments.instance("origin", origin, cls, "an Origin")
        )
        rounds = NONE if fresh else taken.rounds.settled(taken.identities, nodes)
        return taken.with_rounds(rounds)

    def with_rounds(self, rounds: Rounds) -> Origin:
        """Return the same collections with other rounds."""
        return self if rounds == self.rounds else replace(self, rounds=rounds)

    def __add__(self, other: Origin) -> Origin:
        """Return the origin of the reports of both."""
        return Origin.of_all([self, other])

    @classmethod
    def of_all(cls, origins: Iterable[Origin]) -> Origin:
        """Return the origin of the reports of several tallies together."""
        listed = list(origins)
        found: frozenset[bytes] = frozenset().union(*(origin.identities for origin in listed))
        kept = found if len(found) <= MOST else frozenset(heapq.nsmallest(MOST, found))
        return cls(kept, together(origin.rounds for origin in listed))

    @staticmethod
    def of_different_people(origins: Iterable[Origin]) -> list[Origin]:
        """Rename the rounds of collections, so that a sum counts their people as different."""
        listed = list(origins)
        names = of_different_people(origin.rounds for origin in listed)
        return [
            origin.with_rounds(origin.rounds.renamed(each))
            for origin, each in zip(listed, names, strict=True)
        ]

    def refuse_shared(self, other: Origin) -> None:
        """Refuse to add reports that share a collection with this origin.

        Raises
        ------
        InvalidValueError
            If they share one.
        """
        if not self.identities.isdisjoint(other.identities):
            raise InvalidValueError(
                "other must contain other reports, got some that are already counted "
                "here: add each tally only once, and never a sum together with one of "
                "its parts"
            )


#: Of a piece of a collection, which gets an origin when all its pieces have been added up.
PIECE: Final = Origin()


def refuse_repeats(named: Iterable[tuple[str, Any]]) -> None:
    """Refuse to add tallies or reports of which two share a collection, and name the two.

    Raises
    ------
    InvalidValueError
        If two share one.
    """
    found: dict[bytes, str] = {}
    for name, counted in named:
        for identity in counted.origin.identities:
            same = found.setdefault(identity, name)
            if same is not name:
                raise InvalidValueError(
                    f"{name}: contains reports that {same} also contains, so they would count "
                    "twice: leave out one of the two"
                )
