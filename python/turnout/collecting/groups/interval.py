"""Confidence intervals of the frequencies of all groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout._tables import Tabular
from turnout.collecting.keys import Key

__all__ = ["OVER", "GroupedInterval"]

Floats = npt.NDArray[np.float64]

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
            {
                "group": dict(zip(self.names, key, strict=True)),
                "label": label,
                "low": low if math.isfinite(low) else None,
                "high": high if math.isfinite(high) else None,
            }
            for key, lows, highs in zip(self.groups, self.low, self.high, strict=True)
            for label, low, high in zip(self.labels, lows.tolist(), highs.tolist(), strict=True)
        ]

    def __repr__(self) -> str:
        """Show how the intervals were made."""
        groups, answers = self.low.shape
        both = f", simultaneous={self.simultaneous!r}, over={self.over!r}" if self.over else ""
        return f"GroupedInterval({groups} groups, {answers} answers, level={self.level:g}{both})"
