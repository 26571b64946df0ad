"""Means over time."""

from __future__ import annotations

from typing import Any

from turnout._drawing import interval_words
from turnout._types import Figure, Floats
from turnout.collecting.groups.series import BaseSeries
from turnout.collecting.groups.series_pictures import Lines, draw_series

#: So many coordinates are drawn.
_COORDINATES = 6


class MeanSeries(BaseSeries[Any]):
    """The means over time, one series for each group of the other columns.

    Made by :meth:`GroupedMeanEstimate.series`. Nothing is interpolated: a time without reports is a
    gap.

    Parameters
    ----------
    estimate
        The :class:`GroupedMeanEstimate` of all groups.
    time
        The column that is the time; see :meth:`GroupedMeanEstimate.series`.

    Raises
    ------
    InvalidValueError
        If there is no such column, or none is given and it is not clear which.

    Examples
    --------
    >>> import turnout as tn
    >>> hours = tn.mean.Piecewise(4.0, bounds=(0, 24))
    >>> days = {day: hours.collect([6.0 + day] * 5000, seed=day) for day in (2, 1)}
    >>> series = tn.GroupedTally(["day"], days).estimate().series()
    >>> series.times, series.means().round().ravel()
    ([1, 2], array([7., 8.]))
    """

    __slots__ = ()

    def means(self, panel: Any = None) -> Floats:
        """Give the means at each time.

        Parameters
        ----------
        panel
            The key of the series, if there are other columns than the time.

        Returns
        -------
        numpy.ndarray
            float64 of the shape (times, dimensions); nan where there are no reports.

        Raises
        ------
        InvalidValueError
            If there is no such series.
        """
        return self.picked(self.estimate.means, panel)

    def plot(
        self, *, level: float = 0.95, simultaneous: str | None = None, over: str = "all"
    ) -> Figure:
        """Draw the mean as a line with a band over time, and the number of reports below.

        Lines and bands are broken where there are no reports. Of many coordinates the first six are
        drawn.

        Parameters
        ----------
        level, simultaneous, over
            As for :meth:`GroupedMeanEstimate.interval`.

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
        estimate.each_level(level, simultaneous, over)
        size = estimate.domain.dimensions
        drawn = list(range(min(size, _COORDINATES)))
        some = "" if len(drawn) == size else f", {len(drawn)} of {size} coordinates"
        return draw_series(
            self,
            Lines(
                [f"coordinate {place}" for place in drawn] if size > 1 else [],
                drawn,
                self.means,
                lambda panel: self.interval(
                    panel, level=level, simultaneous=simultaneous, over=over
                ),
                "mean",
                f"{some}, {estimate.tally.received:,} reports, "
                f"ε = {estimate.plan.oracle.epsilon:g} for each",
                interval_words(level, simultaneous),
            ),
        )
