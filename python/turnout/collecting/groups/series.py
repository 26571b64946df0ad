"""Estimates of groups over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from turnout import _arguments
from turnout._tables import WithGroups
from turnout._types import Figure, Floats, Unsigned
from turnout._values import settle
from turnout.collecting.groups.estimate import BaseGroupedEstimate
from turnout.collecting.groups.series_pictures import draw_series
from turnout.collecting.keys import Key, Part, in_order, plain_key, time_column
from turnout.errors import InvalidValueError

G = TypeVar("G", bound="BaseGroupedEstimate[Any]")


@dataclass(frozen=True, eq=False, repr=False)
class Series(WithGroups, Generic[G]):
    """The estimates over time, one series for each group of the other columns.

    :meth:`turnout.frequency.groups.GroupedEstimate.series` and similar methods return it. Nothing
    is interpolated: a time without reports is a gap.

    Parameters
    ----------
    estimate
        The estimates of all groups.
    time
        The column of the time; by default the only column whose values are dates or moments, or the
        only column.

    Raises
    ------
    InvalidValueError
        If the column does not exist, or is not given and ambiguous.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(3.0, tn.Domain(["no", "yes"]))
    >>> days = {day: oracle.simulate([10_000 - 1000 * day, 1000 * day], seed=day) for day in (1, 2)}
    >>> series = tn.GroupedTally(["day"], days).estimate().series()
    >>> series.times, series.numbers().round(1)
    ([1, 2], array([[0.9, 0.1],
           [0.8, 0.2]]))
    """

    estimate: G
    time: Any = None

    def __post_init__(self) -> None:
        """Check the fields, and find the column of the time."""
        estimate = _arguments.instance(
            "estimate", self.estimate, BaseGroupedEstimate, "an estimate of groups"
        )
        time, names = self.time, list(estimate.names)
        if time is None:
            time = names[0] if len(names) == 1 else time_column(names, estimate)
            if time is None:
                raise InvalidValueError(
                    f"time must name one of the columns {names}: several could be the time"
                )
        if time not in names:
            raise _arguments.invalid(f"time must be one of the columns {names}", time)
        settle(self, time=time)

    @property
    def _columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.estimate._columns

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return self.estimate.names

    @property
    def _label_columns(self) -> tuple[str, ...]:
        return self.estimate._label_columns

    @property
    def _place(self) -> int:
        return self.estimate.names.index(self.time)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the other columns: there is one series for each of their groups."""
        return tuple(name for name in self.estimate.names if name != self.time)

    @property
    def times(self) -> list[Part]:
        """All times of any group, in order; missing ones (None) are left out."""
        found = {key[self._place] for key in self.estimate}
        return [key[0] for key in in_order((part,) for part in found if part is not None)]

    @property
    def panels(self) -> list[Key]:
        """The keys of the series: of the other columns; one empty key if there are none."""
        return list(dict.fromkeys(self._without_time(key) for key in self.estimate))

    def _sizes(self) -> dict[Key, int]:
        """Count the reports of each series, at all times together."""
        sizes = dict.fromkeys(self.panels, 0)
        for key, tally in self.estimate.tally.items():
            if key[self._place] is not None:
                sizes[self._without_time(key)] += tally.received
        return sizes

    def _without_time(self, key: Key) -> Key:
        return key[: self._place] + key[self._place + 1 :]

    def _with_time(self, panel: Key, time: Part) -> Key:
        return (*panel[: self._place], time, *panel[self._place :])

    def _rows(self, panel: Any) -> list[int | None]:
        """Return the index of the group in the estimate, for each time."""
        key = plain_key("panel", () if panel is None else panel, len(self.names))
        if key not in self.panels:
            raise _arguments.invalid(f"panel must be one of {self.panels}", panel)
        places = {group: place for place, group in enumerate(self.estimate)}
        return [places.get(self._with_time(key, time)) for time in self.times]

    def _picked(self, table: Floats, panel: Any = None) -> Floats:
        """Return the rows of a series from a table with one row for each group.

        Parameters
        ----------
        table
            Numbers of each group, such as the quantiles of a distribution.
        panel
            The key of the series, if there are columns besides the time.

        Returns
        -------
        numpy.ndarray
            One row for each time; nan where there are no reports.

        Raises
        ------
        InvalidValueError
            If the series does not exist.
        """
        rows = self._rows(panel)
        picked = np.full((len(rows), *table.shape[1:]), np.nan)
        for row, place in enumerate(rows):
            if place is not None:
                picked[row] = table[place]
        return picked

    def numbers(self, panel: Any = None) -> Floats:
        """Return the estimates at each time: frequencies, means, or shares of bins.

        Parameters
        ----------
        panel
            The key of the series, if there are columns besides the time.

        Returns
        -------
        numpy.ndarray
            float64 of the shape (times, entries); nan where there are no reports.

        Raises
        ------
        InvalidValueError
            If the series does not exist.
        """
        return self._picked(self.estimate._every_number, panel)

    def received(self, panel: Any = None) -> Unsigned:
        """Return the number of reports at each time.

        Parameters
        ----------
        panel
            The key of the series, if there are columns besides the time.

        Returns
        -------
        numpy.ndarray
            uint64, one for each time.

        Raises
        ------
        InvalidValueError
            If the series does not exist.
        """
        received = self.estimate.received
        rows = [0 if place is None else int(received[place]) for place in self._rows(panel)]
        return np.array(rows, np.uint64)

    def to_records(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> list[dict[str, Any]]:
        """List one dictionary for each entry at each time of each series, in order.

        Parameters
        ----------
        level, simultaneous, over
            As for :meth:`interval` of the groups.
        top
            As for :meth:`to_records` of the groups.

        Returns
        -------
        list of dict
            Dictionaries as from :meth:`to_records` of the groups, series after series, each in
            order of time.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        """
        records = self.estimate.to_records(level, simultaneous=simultaneous, over=over, top=top)
        size = len(records) // max(1, len(self.estimate))
        by_group = {
            key: records[size * place : size * (place + 1)]
            for place, key in enumerate(self.estimate)
        }
        times = [None, *self.times]
        wanted = [self._with_time(panel, time) for panel in self.panels for time in times]
        return [record for key in wanted for record in by_group.get(key, [])]

    def plot(
        self,
        labels: Any = None,
        *,
        level: float = 0.95,
        simultaneous: str | None = None,
        over: str = "all",
    ) -> Figure:
        """Draw lines with bands over time, and the number of reports below.

        Lines and bands have gaps where there are no reports. They show frequencies, means, or the
        quartiles of distributions.

        Parameters
        ----------
        labels
            The answers to draw, for a question with answers; by default all, or the six most
            frequent if there are more. Of many coordinates the first six are drawn.
        level, simultaneous, over
            As for ``interval`` of the groups; for distributions, as for their ``plot``.

        Returns
        -------
        matplotlib.figure.Figure
            The picture, a panel for each series.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is not one of the allowed values, a label is not in the domain, or there
            are no times.
        """
        lines = self.estimate._lines(labels, level, simultaneous, over)
        return draw_series(self, lines)

    def __repr__(self) -> str:
        """Show the numbers of times and series."""
        return (
            f"{type(self).__name__}({len(self.times)} times of {self.time!r}, "
            f"{len(self.panels)} series)"
        )
