"""What a report shows: the estimates of a tally, of its groups and over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from turnout import _arguments
from turnout.collecting.groups.estimate import OVER
from turnout.collecting.groups.series import BaseSeries
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import time_column
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.answer import ORDERS


@dataclass(frozen=True, eq=False)
class Contents:
    """The estimates that a report shows.

    Attributes
    ----------
    tally
        The tally of all groups.
    estimate
        Its estimate, or None, and then ``reason`` says why.
    grouped
        The grouped tally, if it is one.
    groups
        The estimates by the columns that are no time.
    series
        The estimates over time.
    several
        The estimates over time for each group of the other columns.
    method, level, simultaneous, over
        How the intervals are made.
    top, order
        How many answers are in tables, and in which order; None for all of them.
    """

    tally: BaseTally
    estimate: Any
    reason: str | None
    grouped: GroupedTally[Any] | None
    groups: Any
    series: BaseSeries[Any] | None
    several: BaseSeries[Any] | None
    method: str
    level: float
    simultaneous: str | None
    over: str
    top: int | None
    order: str

    @property
    def plan(self) -> Plan:
        """The oracle and the participation."""
        return self.tally.plan

    @property
    def asked(self) -> list[int]:
        """How many people were asked at each time: once if there is no time.

        Who was asked at two times is in both numbers, and nobody knows how many those are.
        """
        if self.series is None:
            return [self.tally.nodes]
        numbers = [tally.nodes for tally in self.series.estimate.tally.values() if tally.nodes]
        return numbers or [0]

    @classmethod
    def of(
        cls,
        tally: BaseTally | GroupedTally[Any],
        *,
        method: str | None,
        level: float,
        simultaneous: str | None,
        over: str,
        time: str | None,
        top: int | None = None,
        order: str = "frequency",
        clip: bool = False,
    ) -> Contents:
        """Estimate what a report shows.

        Raises
        ------
        InvalidTypeError
            If ``tally`` is neither a tally nor a grouped tally.
        InvalidValueError
            If an argument is none of the allowed values.
        EstimatorError
            If the method does not apply to the participation.
        """
        _arguments.confidence("level", level)
        _arguments.choice("simultaneous", simultaneous, (None, "bonferroni", "sidak"))
        _arguments.choice("over", over, OVER)
        _arguments.choice("order", order, ORDERS)
        if top is not None:
            _arguments.integer("top", top, least=1)
        _arguments.instance("tally", tally, (BaseTally, GroupedTally), "a tally or a GroupedTally")
        grouped = tally if isinstance(tally, GroupedTally) else None
        total = tally.total if isinstance(tally, GroupedTally) else tally
        if method is None:
            method = total.default_method
        estimate, reason = None, None
        try:
            estimate = cut(total.estimate(method), clip)
        except EstimatorError as error:
            if total.received:
                raise
            reason = str(error)
        groups = series = several = None
        if grouped is None and time is not None:
            raise InvalidValueError("time must name a column of groups: the tally is not grouped")
        if grouped is not None:
            found = _time_column(grouped, time)
            others = tuple(name for name in grouped.names if name != found)
            if others:
                groups = cut(grouped.over(*others).estimate(method), clip)
            if found is not None:
                series = cut(grouped.over(found).estimate(method), clip).series(found)
                if others:
                    several = cut(grouped.estimate(method), clip).series(found)
        return cls(
            total,
            estimate,
            reason,
            grouped,
            groups,
            series,
            several,
            method,
            float(level),
            simultaneous,
            over,
            top,
            order,
        )


def cut(estimate: Any, clip: bool) -> Any:
    """Cut intervals to [0, 1] where that is asked for."""
    if not clip:
        return estimate
    if not hasattr(estimate, "clip_intervals"):
        raise InvalidValueError("clip (--clip) is for intervals of shares, and these are numbers")
    return estimate.clip_intervals()


def _time_column(grouped: GroupedTally[Any], time: str | None) -> str | None:
    """Find the column that is the time: the one named, or the only one with dates or moments."""
    if time is not None:
        if time not in grouped.names:
            raise _arguments.invalid(f"time must be one of the columns {list(grouped.names)}", time)
        return time
    return time_column(grouped.names, grouped)
