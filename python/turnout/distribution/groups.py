"""Estimated distributions of groups, also over time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import (
    ESTIMATE,
    answered,
    finish,
    interval_words,
    largest,
    name_rows,
    new_axes,
)
from turnout._types import Axes, Floats
from turnout.collecting.estimate import COUNTED
from turnout.collecting.groups.estimate import BaseGroupedEstimate
from turnout.collecting.groups.series import Series
from turnout.collecting.groups.series_pictures import Lines
from turnout.collecting.keys import shown_key
from turnout.distribution.estimate import DistributionEstimate
from turnout.distribution.law import METHODS
from turnout.errors import InvalidValueError

_SHARES = (0.25, 0.5, 0.75)
_NAMES = ("lower quartile", "median", "upper quartile")

#: So many groups are drawn.
_GROUPS = 40


class GroupedDistributionEstimate(BaseGroupedEstimate[DistributionEstimate]):
    """The distribution in each group, with intervals.

    :meth:`turnout.GroupedTally.estimate` returns it. ``estimate["DE"]`` is the
    :class:`turnout.distribution.DistributionEstimate` of one group. Tables show a group without
    reports with nan and the reason.

    Parameters
    ----------
    tally
        The tally to estimate from.
    method
        As in :meth:`turnout.distribution.DistributionTally.estimate`.

    Raises
    ------
    InvalidValueError
        If the method does not exist.

    Examples
    --------
    >>> import turnout as tn
    >>> ages = tn.SquareWave(4.0, bounds=(0, 100), bins=20)
    >>> young, old = ages.collect([22.0] * 5000, seed=1), ages.collect([62.0] * 5000, seed=2)
    >>> estimate = tn.GroupedTally(["country"], {"DE": young, "FR": old}).estimate()
    >>> estimate.quantiles(0.5).round(-1)
    array([20., 60.])
    """

    _columns = (*COUNTED, *DistributionEstimate._columns, "reason")
    _methods = METHODS

    @property
    def frequencies(self) -> Floats:
        """The shares, float64 of the shape (groups, bins); nan where there is no estimate."""
        return self._every_number

    @property
    def means(self) -> Floats:
        """The mean of each group, float64; nan where there is no estimate."""
        return np.array([self._number(key, lambda estimate: estimate.mean) for key in self])

    def quantiles(self, probability: float) -> Floats:
        """Return the quantile of each group.

        Parameters
        ----------
        probability
            The probability of the quantile, in (0, 1).

        Returns
        -------
        numpy.ndarray
            float64, one for each group; nan where there is no estimate.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If the probability is not between 0 and 1.
        """
        probability = _arguments.confidence("probability", probability)
        return np.array(
            [self._number(key, lambda estimate: estimate._crossing(probability)) for key in self]
        )

    def _number(self, key: Any, of: Any) -> float:
        return float(of(self._estimates[key])) if key in self._estimates else math.nan

    def _listed(self, top: int | None = None) -> Sequence[tuple[Any, ...]]:
        # Bins have an order of their own, and are listed all.
        return list(itertools.pairwise(self.domain.edges.tolist()))

    def _entry_names(self) -> Sequence[Any]:
        return [f"{low:g} to {high:g}" for low, high in self._listed()]

    def _entries(self) -> str:
        return f"{self.domain.size} bins each"

    def _rows(
        self, estimate: DistributionEstimate, level: float, top: int | None
    ) -> list[dict[str, Any]]:
        return estimate.to_records(level)

    def _lines(self, labels: Any, level: float, simultaneous: str | None, over: str) -> Lines:
        """Return the lines of a series: the quartiles."""
        _arguments.choice("labels", labels, (None,))
        each = self._each_median(level, simultaneous, over)
        rows = np.full((3, len(self), len(_SHARES)), np.nan)
        for place, key in enumerate(self):
            if key in self._estimates:
                found = [self._estimates[key].quantile(share, each) for share in _SHARES]
                rows[:, place] = np.transpose([(one.value, one.low, one.high) for one in found])
        words = interval_words(level, simultaneous)
        return Lines(_NAMES, rows[0], rows[1:], axis="number", words=words)

    def series(self, time: str | None = None) -> Series[GroupedDistributionEstimate]:
        """Return the groups as a series over time, one for each group of the other columns.

        Parameters
        ----------
        time
            The column of the time; by default the only column whose values are dates or moments, or
            the only column.

        Returns
        -------
        Series
            The estimates in the order of time.

        Raises
        ------
        InvalidValueError
            If the column does not exist, or is not given and ambiguous.
        """
        return Series(self, time)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        level: float = 0.95,
        simultaneous: str | None = None,
        over: str = "all",
    ) -> Axes:
        """Draw the quartiles of the groups in rows; of more than 40 groups the largest.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; a new picture by default.
        level, simultaneous, over
            The level of the intervals of the medians, and what they hold for simultaneously.
            ``"groups"`` and ``"all"`` mean all groups.

        Returns
        -------
        matplotlib.axes.Axes
            The picture.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is none of the allowed values, or no group has reports.
        """
        if not self._estimates:
            raise InvalidValueError("no group has reports to draw")
        each = self._each_median(level, simultaneous, over)
        keys = [key for key in self if key in self._estimates]
        sizes = [self._estimates[key].received for key in keys]
        drawn = [keys[place] for place in largest(sizes, _GROUPS)]
        axes = new_axes(ax, width=7.2, height=min(12.0, 1.7 + 0.34 * len(drawn)))
        name_rows(axes, [shown_key(key) for key in drawn])
        found = [[self._estimates[key].quantile(share, each) for share in _SHARES] for key in drawn]
        lower, medians, upper = np.array([[one.value for one in row] for row in found]).T
        low, high = np.array([(median.low, median.high) for _, median, _ in found]).T
        places = np.arange(len(drawn))
        together = " (all at once)" if simultaneous else ""
        note = f"median, {100 * level:.4g} % interval{together}"
        axes.hlines(places, low, high, color=ESTIMATE, alpha=0.35, linewidth=7, label=note)
        axes.hlines(places, lower, upper, color="0.35", linewidth=1.2, label="quartiles")
        axes.plot(medians, places, "o", markersize=5, color=ESTIMATE, label="median")
        axes.set_xlabel("number")
        some = f"{len(drawn)} largest of {len(keys)} groups: " if len(drawn) < len(keys) else ""
        people = answered(self.tally.received, self.tally.nodes)
        finish(axes, f"{some}{people}, ε = {self.plan.oracle.epsilon:g}", legend="above")
        return axes

    def _each_median(self, level: float, simultaneous: str | None, over: str) -> float:
        """Return the level of the interval of one median, given what holds simultaneously.

        Raises
        ------
        InvalidValueError
            If an argument is none of the allowed values.
        """
        self._each_level(level, simultaneous, over)
        if simultaneous is None or over == "labels":
            return level
        return self._each_level(level, simultaneous, "groups")
