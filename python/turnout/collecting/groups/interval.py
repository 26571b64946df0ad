"""Confidence intervals of the frequencies of all groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["OVER", "GroupedInterval"]

Floats = npt.NDArray[np.float64]

#: What a simultaneous level can hold for.
OVER = ("labels", "groups", "all")


@dataclass(frozen=True, eq=False)
class GroupedInterval:
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
    """

    low: Floats
    high: Floats
    level: float
    simultaneous: str | None
    over: str | None

    @property
    def width(self) -> Floats:
        """The distance between the limits."""
        return self.high - self.low

    def __repr__(self) -> str:
        """Show how the intervals were made."""
        groups, answers = self.low.shape
        both = f", simultaneous={self.simultaneous!r}, over={self.over!r}" if self.over else ""
        return f"GroupedInterval({groups} groups, {answers} answers, level={self.level:g}{both})"
