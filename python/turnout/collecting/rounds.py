"""The sizes of the rounds of permanent answers, and the noise that their reports share.

A report that is drawn afresh says nothing new about the noise of an earlier one. A permanent answer
(:class:`turnout.Memoized`) is in every report of its person, so several rounds share a part of
their noise. How much they share depends on who is in which round, which is not recorded. But the
rounds and their sizes are known, and nobody is in one round twice. The worst case follows from
that. With ``m_j`` the number of rounds of person ``j``, and ``n_1 >= n_2 >= ...`` the sizes, ``sum
m_j (m_j - 1) <= sum 2 (t - 1) n_t``. Both sides are equal if everyone in a round is also in all
larger rounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final

from turnout.errors import InvalidValueError

#: The length of what names a round, in bytes.
SIZE: Final = 16


@dataclass(frozen=True)
class Rounds:
    """The rounds of reports; a person is at most once in each.

    Attributes
    ----------
    sizes
        The name of each round, 16 bytes, and its number of nodes, in the order of the names. None
        if every report is drawn afresh; then rounds do not matter.

    Examples
    --------
    >>> monday, tuesday = Rounds.named("monday", 100), Rounds.named("tuesday", 80)
    >>> both = monday + tuesday
    >>> both.nodes, both.number, both.shared_pairs
    (180, 2, 160)
    >>> (monday + monday).number  # Two groups of one round: different people.
    1
    """

    sizes: tuple[tuple[bytes, int], ...] = ()

    @classmethod
    def of(cls, sizes: Mapping[bytes, int]) -> Rounds:
        """Build rounds from sizes by name."""
        return cls(tuple(sorted(sizes.items())))

    @classmethod
    def named(cls, name: str, nodes: int) -> Rounds:
        """Create one round that a text names."""
        return cls(((_digest(name.encode("utf-8", "surrogatepass")), nodes),))

    @property
    def number(self) -> int:
        """The most rounds that one person can be in."""
        return len(self.sizes)

    @property
    def nodes(self) -> int:
        """The sum of the sizes."""
        return sum(size for _, size in self.sizes)

    @property
    def shared_pairs(self) -> int:
        """The most ordered pairs of two different rounds that have the same person."""
        sizes = sorted((size for _, size in self.sizes), reverse=True)
        return sum(2 * place * size for place, size in enumerate(sizes))

    def __add__(self, other: Rounds) -> Rounds:
        """Combine rounds of possibly the same people; within one round people are different."""
        found = dict(self.sizes)
        for name, size in other.sizes:
            found[name] = found.get(name, 0) + size
        return Rounds.of(found)

    def settled(self, identities: Iterable[bytes], nodes: int) -> Rounds:
        """Return rounds for a number of nodes; a single round has all of them.

        Parameters
        ----------
        identities
            The identities of the collections. The smallest names the round if none is known.
        nodes
            The number of nodes.

        Raises
        ------
        InvalidValueError
            If there are several rounds with a different number of nodes in total.
        """
        if self.number > 1:
            if self.nodes != nodes:
                raise InvalidValueError(
                    f"nodes must stay {self.nodes}, the sum over {self.number} rounds of "
                    f"permanent answers, got {nodes}: change nodes in each round before you "
                    "add the rounds"
                )
            return self
        name = self.sizes[0][0] if self.sizes else min(identities, default=None)
        return self if name is None else Rounds(((name, nodes),))

    def shared_out(self, nodes: int) -> Rounds:
        """Return the same rounds with equal sizes for a number of nodes: the worst case."""
        each, more = divmod(nodes, max(self.number, 1))
        sizes = {name: each + (place < more) for place, (name, _) in enumerate(self.sizes)}
        return Rounds.of({name: size for name, size in sizes.items() if size})

    def split(self, number: int) -> Rounds:
        """Split a single round into several rounds of the same people, of equal size.

        Examples
        --------
        >>> [size for _, size in Rounds.named("week", 20).split(7).sizes].count(3)
        6
        """
        names = {_digest(str(place).encode(), *self._names): 0 for place in range(number)}
        return Rounds.of(names).shared_out(self.nodes)

    def within(self, when: str) -> Rounds:
        """Rename rounds by the time of a group; an empty text leaves them unchanged."""
        if not when:
            return self
        return self.renamed({name: _digest(name, when.encode()) for name in self._names})

    def renamed(self, names: Mapping[bytes, bytes]) -> Rounds:
        """Rename rounds; all new names must be distinct."""
        return Rounds.of({names[name]: size for name, size in self.sizes})

    @property
    def _names(self) -> list[bytes]:
        return [name for name, _ in self.sizes]


def together(all_rounds: Iterable[Rounds]) -> Rounds:
    """Combine the rounds of several tallies whose people may be the same."""
    return reduce(add, all_rounds, NONE)


def of_different_people(each: Iterable[Rounds]) -> list[dict[bytes, bytes]]:
    """Return common names for the rounds of sets of different people.

    The largest rounds of all sets become one round, the second largest another, and so on. A person
    is in only one set, so nobody is in a new round twice.

    Parameters
    ----------
    each
        The rounds of each set of people.

    Returns
    -------
    list of dict
        The new names of the rounds of each set, for :meth:`Rounds.renamed`.

    Examples
    --------
    >>> north, south = Rounds.named("a", 5) + Rounds.named("b", 3), Rounds.named("c", 7)
    >>> names = of_different_people([north, south])
    >>> both = north.renamed(names[0]) + south.renamed(names[1])
    >>> sorted(size for _, size in both.sizes)
    [3, 12]
    """
    found = list(each)
    base = [name for one in found for name in one._names]
    renamed = []
    for one in found:
        ordered = sorted(one.sizes, key=lambda entry: (-entry[1], entry[0]))
        renamed.append(
            {name: _digest(str(place).encode(), *base) for place, (name, _) in enumerate(ordered)}
        )
    return renamed


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()[:SIZE]


#: Of reports that are drawn afresh, and of pieces of a collection.
NONE: Final = Rounds()
