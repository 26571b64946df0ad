"""How many people are in each round of permanent answers, and what their reports share.

A report that is drawn afresh says nothing new about the noise of an earlier one. A permanent answer
(:class:`turnout.Memoized`) is in every report of its person, so that the noise of several rounds is
partly the same. How much of it depends on who is in which round, which nobody writes down. The
rounds and their sizes are known, and nobody is in one round twice. The worst case follows from
that. With ``m_j`` the number of rounds of person ``j``, and ``n_1 >= n_2 >= ...`` the sizes,
``sum m_j (m_j - 1) <= sum 2 (t - 1) n_t``. Both are equal where everybody of a round is in all
larger ones.
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
    """The rounds that reports are of: in each a person is once at most.

    Attributes
    ----------
    sizes
        16 bytes that name each round, and how many nodes it has; in order of the names. None where
        every report is drawn afresh, so that rounds do not matter.

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
        """Take over sizes by name."""
        return cls(tuple(sorted(sizes.items())))

    @classmethod
    def named(cls, name: str, nodes: int) -> Rounds:
        """Make one round that a text names."""
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
        """Put rounds together whose people may be the same; in one round they are different."""
        found = dict(self.sizes)
        for name, size in other.sizes:
            found[name] = found.get(name, 0) + size
        return Rounds.of(found)

    def settled(self, identities: Iterable[bytes], nodes: int) -> Rounds:
        """Give rounds of so many nodes: one round has all of them.

        Parameters
        ----------
        identities
            Those of the collections. The smallest names the round if none is known.
        nodes
            How many nodes there are.

        Raises
        ------
        InvalidValueError
            If there are several rounds of another number of nodes together.
        """
        if self.number > 1:
            if self.nodes != nodes:
                raise InvalidValueError(
                    f"nodes must stay {self.nodes}, the sum over {self.number} rounds of permanent "
                    f"answers, got {nodes}: change it in each round, before they are added"
                )
            return self
        name = self.sizes[0][0] if self.sizes else min(identities, default=None)
        return self if name is None else Rounds(((name, nodes),))

    def shared_out(self, nodes: int) -> Rounds:
        """Give the same rounds with so many nodes, as equal as can be: the worst case."""
        each, more = divmod(nodes, max(self.number, 1))
        sizes = {name: each + (place < more) for place, (name, _) in enumerate(self.sizes)}
        return Rounds.of({name: size for name, size in sizes.items() if size})

    def split(self, number: int) -> Rounds:
        """Take a single round for so many rounds of the same people, of equal size.

        Examples
        --------
        >>> [size for _, size in Rounds.named("week", 20).split(7).sizes].count(3)
        6
        """
        names = {_digest(str(place).encode(), *self._names): 0 for place in range(number)}
        return Rounds.of(names).shared_out(self.nodes)

    def within(self, when: str) -> Rounds:
        """Tell rounds apart by the time of a group; an empty text leaves them as they are."""
        if not when:
            return self
        return self.renamed({name: _digest(name, when.encode()) for name in self._names})

    def renamed(self, names: Mapping[bytes, bytes]) -> Rounds:
        """Give rounds other names, all of them different."""
        return Rounds.of({names[name]: size for name, size in self.sizes})

    @property
    def _names(self) -> list[bytes]:
        return [name for name, _ in self.sizes]


def together(all_rounds: Iterable[Rounds]) -> Rounds:
    """Put the rounds of several tallies together, whose people may be the same."""
    return reduce(add, all_rounds, NONE)


def of_different_people(each: Iterable[Rounds]) -> list[dict[bytes, bytes]]:
    """Give the rounds of sets of different people common names.

    The largest round of each becomes one round, the second largest of each another, and so on: a
    person is in those of one set, so nobody is in a new round twice.

    Parameters
    ----------
    each
        The rounds of each set of people.

    Returns
    -------
    list of dict
        For each the new names of its rounds, for :meth:`Rounds.renamed`.

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
