"""Differences between the frequencies of two groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout._tables import Tabular, records_of
from turnout._types import Floats, Truths
from turnout.collecting.intervals import checked_level, tail_probability
from turnout.collecting.keys import Key, shown_key
from turnout.domain import Domain
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.products import questions_of


@dataclass(frozen=True, eq=False)
class GroupDifference(Tabular):
    """How much more often each answer occurs in one group than in another.

    The groups have different people, whose noise is independent: variances add. (With hash
    functions that all reports share, the errors of both groups are correlated upwards, and the
    standard error is a little too large.) The limits join those of both groups by the method of
    square-and-add, so that they are as good as these are for rare answers and few reports.

    Attributes
    ----------
    first, second
        The keys of the groups.
    domain
        The answers.
    differences
        The frequencies of the first group less those of the second, before post-processing;
        float64, one for each answer.
    standard_errors
        Their standard errors.
    low, high
        The limits of the differences.
    level, simultaneous
        The confidence level, and whether it holds for all answers at once.

    Notes
    -----
    Newcombe, "Interval estimation for the difference between independent proportions: comparison of
    eleven methods" (1998), method 10; Zou and Donner, "Construction of confidence limits about
    effect measures: a general approach" (2008).
    """

    first: Key
    second: Key
    domain: Domain
    differences: Floats
    standard_errors: Floats
    low: Floats
    high: Floats
    level: float
    simultaneous: str | None

    _columns = ("label", "difference", "standard_error", "low", "high")

    @property
    def _label_columns(self) -> tuple[str, ...]:
        return questions_of(self.domain)

    @property
    def distinct(self) -> Truths:
        """Whether the interval of each difference leaves out zero."""
        return (self.low > 0) | (self.high < 0)

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer.

        Returns
        -------
        list of dict
            With ``label``, ``difference``, ``standard_error``, ``low``, ``high``; limits are None
            where they are infinite.
        """
        numbers = (self.differences, self.standard_errors, self.low, self.high)
        return records_of(self._columns, self.domain.labels, *numbers)

    def __repr__(self) -> str:
        """Show the groups and how many answers differ."""
        return (
            f"GroupDifference({shown_key(self.first)!r} less {shown_key(self.second)!r}: "
            f"{int(self.distinct.sum())} of {self.domain.size} answers differ, "
            f"level={self.level:g})"
        )


def difference(
    first: tuple[Key, FrequencyEstimate],
    second: tuple[Key, FrequencyEstimate],
    level: float,
    simultaneous: str | None,
) -> GroupDifference:
    """Compare two estimates of different nodes under one plan.

    Raises
    ------
    InvalidValueError
        If the level or ``simultaneous`` is none of the allowed values.
    EstimatorError
        If the estimator is biased.
    """
    level = checked_level(level, simultaneous)
    one, other = first[1].unprojected, second[1].unprojected
    each = 1.0 - tail_probability(level, one.domain.size, simultaneous)
    near, far = one.interval(each), other.interval(each)
    # How far each limit is from its estimate, never below zero.
    below, above = _distances(one.frequencies, near.low, near.high)
    other_below, other_above = _distances(other.frequencies, far.low, far.high)
    differences = one.frequencies - other.frequencies
    return GroupDifference(
        first[0],
        second[0],
        one.domain,
        differences,
        np.hypot(one.standard_errors, other.standard_errors),
        differences - np.hypot(below, other_above),
        differences + np.hypot(above, other_below),
        level,
        simultaneous,
    )


def _distances(middle: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    return np.maximum(middle - low, 0.0), np.maximum(high - middle, 0.0)
