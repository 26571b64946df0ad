"""Estimated means, with valid intervals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._drawing import answered, draw_rows, interval_words, known_truth
from turnout._tables import WithSimultaneous, records_of
from turnout._types import Axes, Floats, Truths
from turnout.bounds import Bounds
from turnout.collecting.estimate import BaseEstimate
from turnout.collecting.intervals import (
    BaseInterval,
    automatic_interval,
    checked_level,
    critical_value,
    normal_interval,
    tail_probability,
)
from turnout.errors import InvalidValueError
from turnout.mean.estimators import MeanEstimation


@dataclass(frozen=True, eq=False)
class MeanInterval(BaseInterval):
    """Lower and upper limits of the mean.

    Attributes
    ----------
    low, high
        A number; with several dimensions a float64 array with one limit for each coordinate. The
        limits are not cut to the bounds.
    level
        The requested confidence level.
    method
        ``"normal"``, ``"score"``, ``"exact"``, or ``"score, exact for small counts"``.
    simultaneous
        None if the level holds for each coordinate separately; ``"bonferroni"`` or ``"sidak"`` if
        it holds for all simultaneously.
    """

    low: float | Floats
    high: float | Floats

    _columns = ("coordinate", "low", "high")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each coordinate, for tables and programs.

        Returns
        -------
        list of dict
            Dictionaries with ``coordinate``, ``low`` and ``high``; infinite limits are None.
        """
        low, high = np.atleast_1d(self.low), np.atleast_1d(self.high)
        return records_of(self._columns, range(low.size), low, high)

    def contains(self, truth: npt.ArrayLike) -> bool | Truths:
        """Return whether the limits contain the truth: one number for each coordinate.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there is not one finite number for each coordinate.
        """
        low, high = np.atleast_1d(self.low), np.atleast_1d(self.high)
        one = np.ndim(self.low) == 0
        expected = "one number for each coordinate"
        given = _arguments.vector("truth", [truth] if one else truth, expected)
        if given.size != low.size:
            raise InvalidValueError(
                f"truth must have one number for each of the {low.size} coordinates, got "
                f"{given.size}"
            )
        _arguments.refuse_entries("truth", given, ~np.isfinite(given), "finite")
        inside: Truths = (low <= given) & (given <= high)
        return bool(inside[0]) if one else inside


@dataclass(frozen=True, eq=False, repr=False)
class MeanEstimate(WithSimultaneous, BaseEstimate[Bounds]):
    """The mean over all nodes, with standard errors and intervals.

    :meth:`turnout.mean.MeanTally.estimate` returns it. The mean is not forced between the bounds,
    so that it stays (nearly) unbiased.

    Attributes
    ----------
    plan
        The mechanism and the participation.
    method
        The estimator.
    nodes, received
        The numbers of nodes and of reports.
    estimation
        The means with their variances and laws, from which intervals and combinations are computed.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.mean.Duchi(3.0, bounds=(0.0, 1.0))
    >>> estimate = mechanism.collect([0.0, 1.0, 1.0, 1.0] * 2500, seed=1).estimate()
    >>> estimate.interval(0.95).contains(0.75)
    True
    """

    estimation: MeanEstimation = field(repr=False)

    _columns = ("coordinate", "mean", "standard_error", "low", "high")

    @property
    def dimensions(self) -> int:
        """The number of numbers that a node holds."""
        return self.domain.dimensions

    @property
    def mean(self) -> float | Floats:
        """The estimated mean: a number, or one for each coordinate."""
        return self._shaped(self.estimation.means)

    @property
    def standard_error(self) -> float | Floats:
        """The standard error of the mean of the nodes, whose values are fixed."""
        return self._shaped(np.sqrt(self.estimation.variances))

    @property
    def population_standard_error(self) -> float | Floats:
        """The standard error of the mean of the population that the nodes are drawn from."""
        return self._shaped(np.sqrt(self.estimation.population_variances))

    @property
    def sum(self) -> float | Floats:
        """The estimated sum over all nodes: a number, or one for each coordinate."""
        return self._shaped(self.nodes * self.estimation.means)

    def sum_interval(
        self, level: float = 0.95, *, method: str = "auto", simultaneous: str | None = None
    ) -> MeanInterval:
        """Return confidence intervals of the sum over all nodes: ``nodes`` times those of the mean.

        Parameters
        ----------
        level, method, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        MeanInterval
            Lower and upper limits of the sum.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.

        Examples
        --------
        >>> import turnout as tn
        >>> mechanism = tn.mean.Duchi(3.0, bounds=(0.0, 1.0))
        >>> estimate = mechanism.collect([0.0, 1.0, 1.0, 1.0] * 2500, seed=1).estimate()
        >>> estimate.sum_interval(0.95).contains(7500)
        True
        """
        found = self.interval(level, method=method, simultaneous=simultaneous)
        return replace(found, low=self.nodes * found.low, high=self.nodes * found.high)

    def interval(
        self, level: float = 0.95, *, method: str = "auto", simultaneous: str | None = None
    ) -> MeanInterval:
        """Return confidence intervals of the mean.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.
        method
            ``"normal"``: the estimate plus and minus standard errors. For ``"hajek"`` it uses
            Student's quantile if the variance is estimated from the reports. For
            ``"horvitz_thompson"`` with personal participation it is too narrow below a few hundred
            reports of unequal weight. ``"auto"`` (default): for reports of one of two cells and a
            common rate the score interval, and Clopper-Pearson limits if there are few of either.
            For :mod:`turnout.distributed`, limits by the exact law of the noise. Otherwise normal.
        simultaneous
            None: the level holds for each coordinate separately. ``"bonferroni"`` or ``"sidak"``:
            it holds for all coordinates simultaneously.

        Returns
        -------
        MeanInterval
            Lower and upper limits, not cut to the bounds.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.mean.Duchi(1.0).collect([0.5] * 1000, seed=1).estimate().interval(0.9).method
        'score'
        """
        level = checked_level(level, simultaneous)
        _arguments.choice("method", method, ("auto", "normal"))
        estimation, size = self.estimation, self.dimensions
        z = critical_value(level, size, simultaneous)
        if method == "auto" and estimation.limits is not None:
            low, high = estimation.limits(1.0 - tail_probability(level, size, simultaneous))
            name = "exact"
        elif method == "auto" and estimation.model is not None and estimation.statistic is not None:
            limits = automatic_interval(estimation.model, estimation.statistic, z)
            low, high = (self.domain.low + 2 * self.domain._half * limit for limit in limits[:2])
            name = limits[2]
        else:
            quantiles: float | Floats = z
            if estimation.degrees is not None:
                quantiles = _student(level, size, simultaneous, estimation.degrees)
            errors = quantiles * np.sqrt(estimation.variances)
            low, high = normal_interval(estimation.means, errors, 1.0)
            name = "normal"
        return MeanInterval(self._shaped(low), self._shaped(high), level, name, simultaneous)

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each coordinate, for tables and programs.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        list of dict
            Dictionaries with ``coordinate`` (0 if a node holds one number), ``mean``,
            ``standard_error``, ``low`` and ``high``; infinite limits are None.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.

        Examples
        --------
        >>> import turnout as tn
        >>> estimate = tn.mean.Duchi(3.0, bounds=(0, 1)).collect([0.5] * 100).estimate()
        >>> list(estimate.to_records()[0])
        ['coordinate', 'mean', 'standard_error', 'low', 'high']
        """
        limits = self.interval(level, simultaneous=simultaneous)
        low, high = np.atleast_1d(limits.low), np.atleast_1d(limits.high)
        errors = np.sqrt(self.estimation.variances)
        places = range(self.dimensions)
        return records_of(self._columns, places, self.estimation.means, errors, low, high)

    def plot(
        self,
        truth: npt.ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        level: float = 0.95,
        simultaneous: str | None = None,
    ) -> Axes:
        """Draw the mean of each coordinate with its interval.

        Parameters
        ----------
        truth
            The true means, if they are known.
        ax
            Matplotlib axes to draw on; new ones by default.
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with labels and a legend.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is none of the allowed values, or there is not one true mean for each
            coordinate.

        Examples
        --------
        >>> import turnout as tn
        >>> axes = tn.mean.Duchi(1.0).collect([0.5] * 100).estimate().plot(0.5)
        >>> axes.get_xlabel()
        'mean'
        """
        limits = self.interval(level, simultaneous=simultaneous)
        known = known_truth(truth, self.dimensions, "mean for each of the {} coordinates")
        one = self.dimensions == 1
        return draw_rows(
            ["all people"] if one else [f"coordinate {j}" for j in range(self.dimensions)],
            self.estimation.means,
            (np.atleast_1d(limits.low), np.atleast_1d(limits.high)),
            title=answered(self.received, self.nodes),
            note=f"mean, {interval_words(level, simultaneous)}",
            ax=ax,
            truth=known,
        )

    def _shaped(self, array: Floats) -> float | Floats:
        return float(array[0]) if self.dimensions == 1 else array.copy()

    def __repr__(self) -> str:
        """Show the first coordinates."""
        pairs = zip(self.estimation.means[:4], np.sqrt(self.estimation.variances[:4]), strict=True)
        shown = ", ".join(f"{mean:.4g} ± {error:.2g}" for mean, error in pairs)
        more = ", ..." if self.dimensions > 4 else ""
        return f"MeanEstimate({self.method!r}, {shown}{more})"


def _student(level: float, size: int, simultaneous: str | None, degrees: Floats) -> Floats:
    """Return quantiles for each coordinate's degrees of freedom; infinite without any."""
    quantiles = np.full(degrees.shape, np.inf)
    for freedom in np.unique(degrees[degrees > 0]):
        value = critical_value(level, size, simultaneous, float(freedom))
        quantiles[degrees == freedom] = value
    return quantiles
