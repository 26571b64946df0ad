"""The content of a report: the estimates of a tally."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnout import _arguments
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import time_column
from turnout.collecting.tally import BaseTally
from turnout.errors import EstimatorError, InvalidValueError, TurnoutError
from turnout.frequency.joint.chosen import (
    check_consistent,
    conditional_of,
    marginal_of,
    question_of,
)
from turnout.products import questions_of
from turnout.reporting.collected import Collected, OfReports
from turnout.reporting.frequencies import SharesGivenOthers, telling_shares
from turnout.reporting.telling import Telling, Told, View, groups_of, telling


@dataclass(frozen=True, eq=False)
class Part:
    """An estimate that a report shows.

    Attributes
    ----------
    name
        What its picture is called.
    title
        What stands above it.
    kind
        How it is told.
    estimate
        Of all people, or of groups, or of a series.
    words
        What its picture shows.
    drawn
        Whether there is one.
    """

    name: str
    title: str
    kind: Telling
    estimate: Any
    words: str
    drawn: bool = True

    @property
    def grouped(self) -> bool:
        """Whether the estimate covers groups, or a series."""
        return bool(groups_of(self.estimate))

    @property
    def alt(self) -> str:
        """The alternative text of the picture."""
        return f"{self.kind.what} {self.words}."


@dataclass(frozen=True, eq=False)
class Contents:
    """The content of a report.

    Attributes
    ----------
    view
        How estimates are looked at.
    collected
        What was collected, and how.
    parts
        The estimates.
    reason
        Why there is none of all people, if there is none.
    heading
        What stands above the estimates, where there are several of these.
    """

    view: View
    collected: Collected
    parts: Sequence[Part]
    reason: str | None = None
    heading: str = ""

    def told(self, part: Part) -> Told:
        """Tell a part; people who are counted twice are not called so."""
        return part.kind.told(part.estimate, self.view, self.collected.people)

    def finding(self) -> str | None:
        """Return the finding for all people, or else for the groups; None if there is none."""
        shown = [part for part in self.parts if part.name in ("estimate", "groups")]
        return shown[0].kind.finding(shown[0].estimate, self.view) if shown else None

    @classmethod
    def of(cls, tally: BaseTally | GroupedTally[Any], view: View) -> Contents:
        """Estimate the content of a report.

        Raises
        ------
        InvalidTypeError
            If ``tally`` is neither a tally nor a grouped tally.
        InvalidValueError
            If an argument is none of the allowed values.
        EstimatorError
            If the method does not apply to the participation.
        """
        _arguments.instance("tally", tally, (BaseTally, GroupedTally), "a tally or a GroupedTally")
        total = tally.total if isinstance(tally, GroupedTally) else tally
        method = total._default_method if view.method is None else view.method
        view = replace(view, method=method)
        wanted = question_of(total.oracle, view.given, view.of) if view.given else None
        if view.consistent:
            check_consistent(total.oracle)
        kind = telling(total.plan)
        parts: list[Part] = []
        reason = None
        try:
            every = view.consistent or view.marginal or view.given
            estimate = total.estimate(method) if every else total._estimate_answered(method)
            estimate = estimate.consistent() if view.consistent else estimate
            parts += _of_all(estimate, kind, view, wanted)
        except EstimatorError as error:
            if total.received:
                raise
            reason = why_nothing(total, error)
        grouped = tally if isinstance(tally, GroupedTally) else None
        if grouped is not None:
            parts += _of_groups(grouped, view)
        elif view.time is not None:
            raise InvalidValueError("time must name a column of groups: the tally is not grouped")
        series = next((part.estimate for part in parts if part.name == "series"), None)
        collected = OfReports(total, grouped, series, kind, total.domain, method)
        return cls(view, collected, parts, reason)


def why_nothing(tally: BaseTally | GroupedTally[Any], error: TurnoutError) -> str:
    """State in plain words why a tally has no estimates, if answers are missing."""
    total = tally.total if isinstance(tally, GroupedTally) else tally
    if not total.received:
        return "there are no answers yet"
    if total._lacks_answers:
        return "some of what is asked has no answers yet"
    return str(error)


def _of_all(estimate: Any, kind: Telling, view: View, wanted: str | None) -> Iterator[Part]:
    """Show the estimate of all people, and the requested shares of several questions."""
    words = "with its interval; the numbers are in the table"
    yield Part("estimate", "Estimates", kind, view.cut(estimate), words)
    if view.marginal:
        alone = view.cut(marginal_of(estimate, view.marginal))
        names = ", ".join(questions_of(alone.domain) or view.marginal)
        yield Part(
            "marginal", f"Answers to {names} alone", telling_shares(alone.domain), alone, words
        )
    if wanted is not None:
        shares = view.cut(conditional_of(estimate, view.given, wanted))
        among = f"{wanted} given {', '.join(view.given)}"
        told = SharesGivenOthers(view.given, wanted, estimate.plan.oracle.columns[wanted])
        words = f"to {among}, with intervals; the numbers are in the table"
        yield Part("conditional", f"{among[0].upper()}{among[1:]}", told, shares, words)


def _of_groups(grouped: GroupedTally[Any], view: View) -> Iterator[Part]:
    """Show groups by the columns that are not the time, and series."""
    kind, found = telling(grouped.plan), view.time or time_column(grouped.names, grouped)
    if found is not None and found not in grouped.names:
        raise _arguments.invalid(f"time must be one of the columns {list(grouped.names)}", found)
    others = tuple(name for name in grouped.names if name != found)
    names = ", ".join(others)
    if others:
        groups = view.cut(grouped.over(*others).estimate(view.method))
        drawn = len(groups) > 0 and kind.draws_groups(grouped.domain)
        words = f"by {names}, with intervals; the numbers are in the table"
        yield Part("groups", f"By {names}", kind, groups, words, drawn)
    if found is not None:
        series = view.cut(grouped.over(found).estimate(view.method)).series(found)
        words = (
            f"by {found}, with bands, and the number of reports below; the numbers are in the table"
        )
        title, drawn = f"Over time: {found}", bool(series.times)
        yield Part("series", title, kind, series, words, drawn)
        if others:
            several = view.cut(grouped.estimate(view.method)).series(found)
            words = f"by {found}, a panel for each {names}"
            title = f"{title}, by {names}"
            yield Part("series_by_group", title, kind, several, words, drawn)
