"""Confidence intervals of frequencies: for each answer, and on average over the answers.

Intervals on average: Armstrong, Kolesar, Plagborg-Moller, "Robust empirical Bayes confidence
intervals" (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._tables import records_of
from turnout._types import Floats, Integers
from turnout.collecting.intervals import (
    BaseInterval,
    automatic_interval,
    checked_level,
    critical_value,
    exact_interval,
    normal_interval,
    score_interval,
    tail_probability,
)
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.estimators import Estimation

#: The method whose level holds on average over the answers.
AVERAGE = "empirical_bayes"

#: So many limits are printed.
_SHOWN = 6

#: Above so many ratios the critical values come from a table, each of the next larger ratio.
_TABLE = 300


@dataclass(frozen=True, eq=False)
class Interval(BaseInterval):
    """Lower and upper limits of the frequencies of all answers.

    Attributes
    ----------
    low, high
        float64 arrays with one limit for each answer. The limits are not cut to [0, 1].
    level
        The requested confidence level.
    method
        ``"normal"``, ``"score"``, ``"exact"``, ``"score, exact for small counts"``, or
        ``"empirical_bayes"``, whose level holds on average over the answers, not for each.
        ``"effective"`` instead of ``"exact"`` if rounds share permanent answers: the limits for an
        effective number of reports, reduced by the same factor as the variance is larger.
    simultaneous
        None if the level holds for each answer separately; ``"bonferroni"`` or ``"sidak"`` if it
        holds for all answers simultaneously.
    labels
        The answers; None if they are not known, then codes are used.
    """

    low: Floats
    high: Floats
    labels: Sequence[Any] | None = field(default=None, repr=False)

    _columns = ("label", "low", "high")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer, for tables and programs.

        Returns
        -------
        list of dict
            Dictionaries with ``label``, ``low`` and ``high``; infinite limits are None.

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
        """Show the limits of the first answers, and the method."""
        shown = ", ".join(
            f"{row['label']!r}: {_written(row['low'])} to {_written(row['high'])}"
            for row in self._records(_SHOWN)
        )
        more = f", ... {self.low.size:,} answers" if self.low.size > _SHOWN else ""
        both = f", simultaneous={self.simultaneous!r}" if self.simultaneous else ""
        if self.method == AVERAGE:
            both = ", on average over the answers"
        return f"Interval({{{shown}{more}}}, level={self.level:g}, {self.method!r}{both})"


def _written(limit: float | None) -> str:
    return "none" if limit is None else f"{limit:.4g}"


def _worst(ratio: Floats, chi: Floats) -> Floats:
    """Return the largest miss rate of ``N(b, 1)`` beyond ``chi``, where ``E b^2`` is the ratio.

    The least concave majorant, in the ratio ``t``, of ``Phi(sqrt t - chi) + Phi(-sqrt t - chi)``:
    a line from zero to where it touches, and the function itself beyond.
    """
    from scipy import special  # noqa: PLC0415

    def misses(bias: Floats, chi: Floats) -> Floats:
        result: Floats = special.ndtr(bias - chi) + special.ndtr(-bias - chi)
        return result

    start = 2 * special.ndtr(-chi)
    # The chord from zero to b^2 is steepest where it touches: before the slope is above the chord.
    low, high = np.maximum(chi - 2.0, 0.0), chi + 2.0 + np.sqrt(2 * np.log1p(chi))
    for _ in range(45):
        middle = (low + high) / 2
        density = np.exp(-0.5 * (middle - chi) ** 2) - np.exp(-0.5 * (middle + chi) ** 2)
        slope = density / np.sqrt(2 * np.pi) * middle / 2
        rising = slope > misses(middle, chi) - start
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    # Up to chi = sqrt 3 the function is concave itself.
    touch = np.where(chi <= np.sqrt(3.0), 0.0, high)
    bias = np.sqrt(ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        line = start + (misses(touch, chi) - start) * ratio / touch**2
    return np.where(bias < touch, line, misses(bias, chi))


def critical_values(ratio: Floats, level: float) -> Floats:
    """Return the number of standard errors that cover, given the mean squared biases.

    Parameters
    ----------
    ratio
        The mean square of the bias over the variance, each at least 0.
    level
        The confidence level.

    Returns
    -------
    numpy.ndarray
        float64.

    Examples
    --------
    >>> critical_values(np.array([0.0, 1.0, 4.0]), 0.95).round(5)
    array([1.95996, 3.2592 , 7.21635])
    """
    distinct, where = np.unique(ratio, return_inverse=True)
    if distinct.size > _TABLE:
        table = distinct[np.linspace(0, distinct.size - 1, _TABLE).astype(np.int64)]
        return critical_values(table, level)[np.searchsorted(table, ratio)]
    tail = 1.0 - level
    low = np.zeros_like(distinct)
    # Chebyshev: the second moment of what is to be covered is 1 + t.
    high = np.sqrt((1.0 + distinct) / tail) + 1.0
    for _ in range(45):
        middle = (low + high) / 2
        missing = _worst(distinct, middle) > tail
        low, high = np.where(missing, middle, low), np.where(missing, high, middle)
    result: Floats = high[where]
    return result


def average_interval(frequencies: Floats, variances: Floats, level: float) -> tuple[Floats, Floats]:
    """Return limits that contain the truth for at least a share ``level`` of the answers.

    They are centred at estimates shrunk linearly towards the mean frequency, ``1 / k``, by the
    ratio of the true variance between the answers. If the estimates vary only by their errors, the
    largest true variance that can be missed is assumed.

    Raises
    ------
    EstimatorError
        If a variance is not known, or there are fewer than two answers.
    """
    size = frequencies.size
    if size < 2 or not np.isfinite(variances).all():
        raise EstimatorError(
            "an interval on average over the answers needs at least two answers, all with standard "
            f"errors, and there are {int(np.isfinite(variances).sum())}"
        )
    mean = 1.0 / size
    between = float(((frequencies - mean) ** 2 - variances).mean())
    total = float(variances.sum())
    floor = 2.0 * float(variances @ variances) / (size * total) if total else 0.0
    between = max(between, floor)
    if between <= 0.0:
        return frequencies.copy(), frequencies.copy()
    share = between / (between + variances)
    centre = mean + share * (frequencies - mean)
    half = critical_values(variances / between, level) * share * np.sqrt(variances)
    return centre - half, centre + half


def limits_of(
    estimation: Estimation,
    estimator: str,
    codes: Integers | slice,
    level: float,
    *,
    method: str,
    simultaneous: str | None,
) -> Interval:
    """Compute the limits of some answers: see :meth:`turnout.FrequencyEstimate.interval`."""
    level = checked_level(level, simultaneous)
    _arguments.choice("method", method, ("auto", "normal", "score", "exact", AVERAGE))
    size = estimation.frequencies.size
    if estimation.bias is not None:
        raise EstimatorError(
            f"no interval around {estimator!r} covers the truth: {estimation.bias}"
        )
    if method == AVERAGE:
        if simultaneous is not None:
            raise InvalidValueError(
                f"simultaneous must be None for {method!r}, whose level holds on average over "
                f"the answers, got {simultaneous!r}"
            )
        low, high = average_interval(estimation.frequencies, estimation.variances, level)
        return Interval(low[codes], high[codes], level, method, None)
    if estimation.limits is not None and method in ("auto", "exact"):
        tail = tail_probability(level, size, simultaneous)
        low, high = estimation.limits(1 - tail)
        return Interval(low[codes], high[codes], level, "exact", simultaneous)
    z = critical_value(level, size, simultaneous, estimation.degrees)
    model, statistic = estimation.model, estimation.statistic
    if method == "normal" or (method == "auto" and model is None):
        variances = estimation.variances
        if estimation.interval_variances is not None:
            variances = estimation.interval_variances
        errors = np.sqrt(variances[codes])
        low, high = normal_interval(estimation.frequencies[codes], errors, z)
        return Interval(low, high, level, "normal", simultaneous)
    if (model is None or statistic is None) and estimation.limits is not None:
        raise EstimatorError(
            f"{estimator!r} with a threshold has no {method} interval: unpublished "
            'counts have no standard error; use "exact"'
        )
    if model is None or statistic is None:
        raise EstimatorError(
            f"{estimator!r} with personal probabilities has no {method} interval: its "
            'variance depends on who holds the answer, not on its frequency alone; use "normal"'
        )
    statistic = statistic[codes]
    if method == "auto":
        low, high, name = automatic_interval(model, statistic, z)
        return Interval(low, high, level, name, simultaneous)
    if method == "exact" and model.effect > 1.0:
        raise EstimatorError(
            "an exact interval is for reports of different people: rounds of permanent answers "
            'share noise, of which only a bound of the variance is known; use "auto"'
        )
    if method == "exact" and model.trials is None:
        raise EstimatorError(
            f"{estimator!r} has no exact interval: its statistic is not a count of "
            'independent reports; "hajek" and "g" of one tally have one'
        )
    limits = score_interval if method == "score" else exact_interval
    low, high = limits(model, statistic, z)
    return Interval(low, high, level, method, simultaneous)
