"""Distributions over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout._drawing import answered, interval_words
from turnout._types import Figure, Floats
from turnout.collecting.groups.series import BaseSeries
from turnout.collecting.groups.series_pictures import Lines, draw_series

_SHARES = (0.25, 0.5, 0.75)
_NAMES = ("lower quartile", "median", "upper quartile")


class DistributionSeries(BaseSeries[Any]):
    """The distributions over time, one series for each group of the other columns.

    Made by :meth:`GroupedDistributionEstimate.series`. Nothing is interpolated: a time without
    reports is a gap.

    Parameters
    ----------
    estimate
        The :class:`GroupedDistributionEstimate` of all groups.
    time
        The column that is the time; see :meth:`GroupedDistributionEstimate.series`.

    Raises
    ------
    InvalidValueError
        If there is no such column, or none is given and it is not clear which.

    Examples
    --------
    >>> import turnout as tn
    >>> hours = tn.SquareWave(4.0, bounds=(0, 24), bins=24)
    >>> days = {day: hours.collect([6.5 + day] * 5000, seed=day) for day in (2, 1)}
    >>> series = tn.GroupedTally(["day"], days).estimate("ml").series()
    >>> series.times, series.quantiles(0.5).astype(int)
    ([1, 2], array([7, 8]))
    """

    __slots__ = ()

    def frequencies(self, panel: Any = None) -> Floats:
        """Give the shares of the bins at each time: nan where there are no reports.

        Parameters
        ----------
        panel
            The key of the series, if there are other columns than the time.

        Returns
        -------
        numpy.ndarray
            float64 of the shape (times, bins).

        Raises
        ------
        InvalidValueError
            If there is no such series.
        """
        return self.picked(self.estimate.frequencies, panel)

    def quantiles(self, probability: float, panel: Any = None) -> Floats:
        """Give a quantile at each time: nan where there are no reports.

        Parameters
        ----------
        probability
            The share of the nodes up to it, in (0, 1).
        panel
            The key of the series, if there are other columns than the time.

        Returns
        -------
        numpy.ndarray
            float64, one for each time.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there is no such series, or the probability is not between 0 and 1.
        """
        column: Floats = self.estimate.quantiles(probability)
        return self.picked(column[:, None], panel)[:, 0]

    def plot(
        self, *, level: float = 0.95, simultaneous: str | None = None, over: str = "all"
    ) -> Figure:
        """Draw the quartiles over time with bands, and the number of reports below.

        Parameters
        ----------
        level, simultaneous, over
            Of the intervals, as for :meth:`GroupedDistributionEstimate.plot`.

        Returns
        -------
        matplotlib.figure.Figure
            The picture, a panel for each series.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is none of the allowed values, or there are no times.
        """
        estimate = self.estimate
        each = estimate.each_median(level, simultaneous, over)
        rows = np.full((len(estimate), len(_SHARES), 3), np.nan)
        for place, key in enumerate(estimate):
            if key not in estimate.reasons:
                found = [estimate[key].quantile(share, each) for share in _SHARES]
                rows[place] = [(one.value, one.low, one.high) for one in found]
        return draw_series(
            self,
            Lines(
                _NAMES,
                range(len(_SHARES)),
                lambda panel: self.picked(rows[:, :, 0], panel),
                lambda panel: (
                    self.picked(rows[:, :, 1], panel),
                    self.picked(rows[:, :, 2], panel),
                ),
                "number",
                f": {answered(estimate.tally.received, estimate.tally.nodes)}, "
                f"ε = {estimate.plan.oracle.epsilon:g} ({estimate.method})",
                interval_words(level, simultaneous),
            ),
        )
