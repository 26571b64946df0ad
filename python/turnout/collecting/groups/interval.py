"""Confidence intervals of the frequencies of all groups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from turnout._tables import Tabular, records_of
from turnout._types import Floats
from turnout.collecting.keys import Key, shown_key

#: The limits of so many answers of so many groups are printed.
_SHOWN = 3

#: What a simultaneous level can hold for.
OVER = ("labels", "groups", "all")


@dataclass(frozen=True, eq=False)
class GroupedInterval(Tabular):
    """Limits of the frequencies of all answers in all groups.

    Attributes
    ----------
    low, high
        float64 arrays of the shape (groups, answers), nan where a group has no estimate. Not cut to
        [0, 1].
    level
        The confidence level asked for.
    simultaneous
        None if the level holds for each interval by itself; else ``"bonferroni"`` or ``"sidak"``.
    over
        What it holds for at once: ``"labels"`` of each group, ``"groups"`` for each label, or
        ``"all"`` of both; None if for each by itself.
    names, groups
        The columns of the groups, and the key of each.
    labels
        The answers, or the numbers of the coordinates of means.
    """

    low: Floats
    high: Floats
    level: float
    simultaneous: str | None
    over: str | None
    names: tuple[str, ...] = field(repr=False)
    groups: Sequence[Key] = field(repr=False)
    labels: Sequence[Any] = field(repr=False)

    _columns = ("label", "low", "high")

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return self.names

    @property
    def width(self) -> Floats:
        """The distance between the limits."""
        return self.high - self.low

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer of each group, for tables and programs.

        Returns
        -------
        list of dict
            With ``group`` (a dictionary of the columns), ``label``, ``low`` and ``high``; the
            limits are None where a group has no estimate or they are infinite.
        """
        return [
            {"group": dict(zip(self.names, key, strict=True)), **row}
            for key, low, high in zip(self.groups, self.low, self.high, strict=True)
            for row in records_of(self._columns, self.labels, low, high)
        ]

    def __repr__(self) -> str:
        """Show the limits of the first answers of the first groups, and how they were made."""
        groups, answers = self.low.shape
        shown = ", ".join(
            f"{shown_key(key)!r}: {{{self._written(place)}}}"
            for place, key in enumerate(self.groups[:_SHOWN])
        )
        more = f", ... {groups:,} groups" if groups > _SHOWN else ""
        many = f", {answers:,} answers" if answers > _SHOWN else ""
        both = f", simultaneous={self.simultaneous!r}, over={self.over!r}" if self.over else ""
        return f"GroupedInterval({{{shown}{more}}}{many}, level={self.level:g}{both})"

    def _written(self, place: int) -> str:
        """Write the limits of the first answers of a group."""
        rows = zip(self.labels, self.low[place], self.high[place], strict=False)
        limits = [
            f"{label!r}: {low:.4g} to {high:.4g}"
            for label, low, high in itertools.islice(rows, _SHOWN)
            if math.isfinite(low) and math.isfinite(high)
        ]
        more = ", ..." if limits and len(self.low[place]) > _SHOWN else ""
        return ", ".join(limits) + more
