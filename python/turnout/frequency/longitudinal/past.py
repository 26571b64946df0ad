"""Which permanent answers a client has used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: What a permanent answer is drawn for: each different answer, or each phase.
PER = ("answer", "phase")

#: The most phases of a client.
MOST_PHASES = 10**6


@dataclass(frozen=True)
class Past:
    """What a client has given: its different answers in order of code, or those of its phases.

    Examples
    --------
    >>> Past("answer").after(2).after(1).after(2).given
    (1, 2)
    >>> Past("phase").after(2).after(2).after(1).after(2).given
    (2, 1, 2)
    """

    per: str
    given: tuple[int, ...] = ()

    def after(self, code: int) -> Past:
        """Give what it is after one more report."""
        if self.per == "phase":
            same = self.given[-1:] == (code,)
            return self if same else Past(self.per, (*self.given, code))
        return self if code in self.given else Past(self.per, tuple(sorted({*self.given, code})))

    def knows(self, other: Past) -> bool:
        """Say whether another past comes before this one, or is the same."""
        if self.per == "phase":
            return self.given[: len(other.given)] == other.given
        return set(other.given) <= set(self.given)

    def is_possible(self, size: int, most: Any) -> bool:
        """Say whether a client that is allowed so many of so many answers can have it."""
        return (
            type(most) is int
            and all(type(code) is int and 0 <= code < size for code in self.given)
            and max(1, len(self.given)) <= most <= self.limit(size)
            and all(self.follows(*pair) for pair in zip(self.given, self.given[1:], strict=False))
        )

    def follows(self, before: int, after: int) -> bool:
        """Say whether one code can stand behind another."""
        return before != after if self.per == "phase" else before < after

    def limit(self, size: int) -> int:
        """Give the most that a client of a domain may be allowed."""
        return MOST_PHASES if self.per == "phase" else size
