"""Estimated means of groups, also over time, with intervals that can be simultaneous."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import answered, draw_rows, interval_words, largest
from turnout._types import Axes, Floats
from turnout.collecting.estimate import COUNTED
from turnout.collecting.groups.estimate import BaseGroupedEstimate
from turnout.collecting.groups.series import Series
from turnout.collecting.groups.series_pictures import Lines
from turnout.collecting.keys import shown_key
from turnout.errors import EstimatorError, InvalidValueError
from turnout.mean.estimate import MeanEstimate
from turnout.mean.estimators import ESTIMATORS

#: So many coordinates are drawn.
_COORDINATES = 6

#: So many groups are drawn.
_GROUPS = 40


class GroupedMeanEstimate(BaseGroupedEstimate[MeanEstimate]):
    """The mean in each group, with standard errors and intervals.

    :meth:`turnout.GroupedTally.estimate` returns it. ``estimate["DE"]`` is the
    :class:`turnout.mean.MeanEstimate` of one group. A group without reports allows no estimate;
    tables show it with nan and the reason.

    Parameters
    ----------
    tally
        The tally to estimate from.
    method
        The estimator, as in :meth:`turnout.mean.MeanTally.estimate`.

    Raises
    ------
    InvalidValueError
        If the method does not exist.
    EstimatorError
        If the method does not apply to this participation.

    Examples
    --------
    >>> import turnout as tn
    >>> ages = tn.mean.Piecewise(4.0, bounds=(0, 100))
    >>> young, old = ages.collect([20.0] * 5000, seed=1), ages.collect([60.0] * 5000, seed=2)
    >>> estimate = tn.GroupedTally(["country"], {"DE": young, "FR": old}).estimate()
    >>> estimate.means.round(-1).ravel()
    array([20., 60.])
    """

    _columns = (*COUNTED, *MeanEstimate._columns, "reason")
    _methods = ESTIMATORS
    _numbers = "mean"

    @property
    def means(self) -> Floats:
        """The means, float64 of the shape (groups, dimensions); nan where there is no estimate."""
        return self._every_number

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of :attr:`means`, of the same shape."""
        return self._table("standard_error")

    def _listed(self, top: int | None = None) -> Sequence[tuple[Any, ...]]:
        return [(place,) for place in range(self.domain.dimensions)]

    def _entries(self) -> str:
        return "means" if self.domain.dimensions == 1 else f"{self.domain.dimensions} means each"

    def _rows(self, estimate: MeanEstimate, level: float, top: int | None) -> list[dict[str, Any]]:
        return estimate.to_records(level)

    def _lines(self, labels: Any, level: float, simultaneous: str | None, over: str) -> Lines:
        """Return the lines of a series: the means of the first coordinates."""
        _arguments.choice("labels", labels, (None,))
        size = self.domain.dimensions
        drawn = list(range(min(size, _COORDINATES)))
        limits = self.interval(level, simultaneous=simultaneous, over=over)
        return Lines(
            [f"coordinate {place}" for place in drawn] if size > 1 else [],
            self.means[:, drawn],
            np.stack([limits.low, limits.high])[:, :, drawn],
            axis="mean",
            some="" if len(drawn) == size else f", {len(drawn)} of {size} coordinates",
            words=interval_words(level, simultaneous),
        )

    def series(self, time: str | None = None) -> Series[GroupedMeanEstimate]:
        """Return the groups as a series over time, one for each group of the other columns.

        Parameters
        ----------
        time
            The column of the time: dates, moments, times of day, numbers or texts, in their order.
            By default the only column whose values are dates or moments, or the only column.

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
        """Draw the groups in rows with their intervals; of more than 40 groups the largest.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; a new picture by default.
        level, simultaneous, over
            As for :meth:`interval`.

        Returns
        -------
        matplotlib.axes.Axes
            The picture.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is not one of the allowed values, there are no groups, or a node holds
            several numbers.
        """
        if self.domain.dimensions > 1:
            raise InvalidValueError(
                f"a picture of groups needs one number for each node, got {self.domain.dimensions}"
            )
        if not len(self):
            raise InvalidValueError("the estimate has no groups to draw")
        limits = self.interval(level, simultaneous=simultaneous, over=over)
        try:
            total = float(self.total.mean)
        except EstimatorError:
            total = None
        keys, drawn = list(self), largest(self.received, _GROUPS)
        some = f"{len(drawn)} largest of {len(keys)} groups: " if len(drawn) < len(keys) else ""
        return draw_rows(
            [shown_key(keys[place]) for place in drawn],
            self.means[drawn, 0],
            (limits.low[drawn, 0], limits.high[drawn, 0]),
            title=f"{some}{answered(self.tally.received, self.tally.nodes)}, "
            f"ε = {self.plan.oracle.epsilon:g}",
            note=f"mean, {interval_words(level, simultaneous)}",
            ax=ax,
            total=total,
        )
