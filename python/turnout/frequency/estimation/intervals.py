"""Confidence intervals of frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from turnout import _arguments

__all__ = ["AVERAGE", "Interval"]

#: The method whose level holds on average over the answers.
AVERAGE = "empirical_bayes"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
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
    """

    low: Floats
    high: Floats
    level: float
    method: str
    simultaneous: str | None

    @property
    def on_average(self) -> bool:
        """Whether the level holds on average over the answers only, not for each."""
        return self.method == AVERAGE

    @property
    def width(self) -> Floats:
        """The distance between the limits."""
        return self.high - self.low

    def contains(self, frequencies: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether the limits enclose each of some frequencies.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there is not one finite number for each answer.
        """
        given = _arguments.frequencies("frequencies", frequencies, self.low.size)
        return (self.low <= given) & (given <= self.high)

    def __repr__(self) -> str:
        """Show how the interval was made."""
        both = f", simultaneous={self.simultaneous!r}" if self.simultaneous else ""
        if self.on_average:
            both = ", on average over the answers"
        return f"Interval({self.low.size} answers, level={self.level:g}, {self.method!r}{both})"
