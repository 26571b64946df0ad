"""Confidence intervals of frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from turnout._tables import records_of
from turnout._types import Floats
from turnout.collecting.intervals import BaseInterval

#: The method whose level holds on average over the answers.
AVERAGE = "empirical_bayes"


#: So many limits are printed.
_SHOWN = 6


@dataclass(frozen=True, eq=False)
class Interval(BaseInterval):
    """Lower and upper limits of the frequencies of all answers.

    Attributes
    ----------
    low, high
        float64 arrays with one limit for each answer. Not cut to [0, 1].
    level
        The confidence level asked for.
    method
        ``"normal"``, ``"score"``, ``"exact"``, ``"score, exact for small counts"``, or
        ``"empirical_bayes"``, whose level holds on average over the answers, not for each.
    simultaneous
        None if the level holds for each answer by itself; ``"bonferroni"`` or ``"sidak"`` if it
        holds for all answers at once.
    labels
        The answers; None if they are not known, and codes stand for them.
    """

    low: Floats
    high: Floats
    labels: Sequence[Any] | None = field(default=None, repr=False)

    _columns = ("label", "low", "high")

    @property
    def on_average(self) -> bool:
        """Whether the level holds on average over the answers only, not for each."""
        return self.method == AVERAGE

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer, for tables and programs.

        Returns
        -------
        list of dict
            With ``label``, ``low`` and ``high``; the limits are None where they are infinite.

        Examples
        --------
        >>> import numpy as np
        >>> Interval(np.array([0.1]), np.array([0.3]), 0.95, "score", None, ["yes"]).to_records()
        [{'label': 'yes', 'low': 0.1, 'high': 0.3}]
        """
        return self._records(len(self.low))

    def _first_rows(self, most: int) -> tuple[list[dict[str, Any]], int]:
        return self._records(most), len(self.low)

    def _records(self, most: int) -> list[dict[str, Any]]:
        labels = range(len(self.low)) if self.labels is None else self.labels
        return records_of(self._columns, labels[:most], self.low[:most], self.high[:most])

    def __repr__(self) -> str:
        """Show the limits of the first answers, and how they were made."""
        shown = ", ".join(
            f"{row['label']!r}: {_written(row['low'])} to {_written(row['high'])}"
            for row in self._records(_SHOWN)
        )
        more = f", ... {self.low.size:,} answers" if self.low.size > _SHOWN else ""
        both = f", simultaneous={self.simultaneous!r}" if self.simultaneous else ""
        if self.on_average:
            both = ", on average over the answers"
        return f"Interval({{{shown}{more}}}, level={self.level:g}, {self.method!r}{both})"


def _written(limit: float | None) -> str:
    return "none" if limit is None else f"{limit:.4g}"
