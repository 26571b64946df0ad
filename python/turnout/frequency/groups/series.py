"""Estimates over time."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout._types import Figure, Floats
from turnout.collecting.groups.estimate import BaseGroupedEstimate
from turnout.collecting.groups.series import BaseSeries
from turnout.frequency.groups.pictures import plot_series


class Series(BaseSeries[Any]):
    """The frequencies of the answers over time, one series for each group of the other columns.

    Made by :meth:`GroupedEstimate.series`. Nothing is interpolated: a time without reports is a
    gap.

    Parameters
    ----------
    estimate
        The estimates of all groups.
    time
        The column that is the time; see :meth:`GroupedEstimate.series`.

    Raises
    ------
    InvalidValueError
        If there is no such column, or none is given and it is not clear which.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(3.0, tn.Domain(["no", "yes"]))
    >>> days = {day: oracle.simulate([10_000 - 1000 * day, 1000 * day], seed=day) for day in (1, 2)}
    >>> series = tn.GroupedTally(["day"], days).estimate().series()
    >>> series.times, series.frequencies().round(1)
    ([1, 2], array([[0.9, 0.1],
           [0.8, 0.2]]))
    """

    __slots__ = ()

    def __init__(self, estimate: Any, time: str | None = None) -> None:
        _arguments.instance("estimate", estimate, BaseGroupedEstimate, "a GroupedEstimate")
        super().__init__(estimate, time)

    def frequencies(self, panel: Any = None) -> Floats:
        """Give the frequencies at each time.

        Parameters
        ----------
        panel
            The key of the series, if there are other columns than the time.

        Returns
        -------
        numpy.ndarray
            float64 of the shape (times, answers); nan where there are no reports.

        Raises
        ------
        InvalidValueError
            If there is no such series.
        """
        return self.picked(self._estimate.frequencies, panel)

    def plot(
        self,
        labels: Any = None,
        *,
        level: float = 0.95,
        simultaneous: str | None = None,
        over: str = "all",
    ) -> Figure:
        """Draw each answer as a line with a band over time, and the number of reports below.

        Lines and bands are broken where there are no reports.

        Parameters
        ----------
        labels
            The answers that are drawn; by default all, or the six most frequent of more.
        level, simultaneous, over
            As for :meth:`GroupedEstimate.interval`.

        Returns
        -------
        matplotlib.figure.Figure
            The picture, a panel for each series.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is none of the allowed values, a label is none of the domain, or there
            are no times.
        """
        return plot_series(self, labels, level, simultaneous, over)
