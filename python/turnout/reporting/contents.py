"""What a report shows: the estimates of a tally, and who was left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnout import _arguments
from turnout.collecting.groups.series import Series
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import time_column
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.joint.chosen import (
    check_consistent,
    conditional_of,
    marginal_of,
    question_of,
)
from turnout.products import questions_of
from turnout.reporting.frequencies import SharesGivenOthers
from turnout.reporting.telling import PEOPLE, View


@dataclass(frozen=True)
class CollectionFacts:
    """How many rows a collection read, and how many of them do not count.

    Parameters
    ----------
    rows
        The rows that were read.
    dropped
        Rows without an answer, which were left out.
    duplicates
        Further rows of persons who had one already, which were left out.
    refused
        Rows that were refused for another reason.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a number is no whole number of at least 0, or more rows are left out than were read.

    Examples
    --------
    >>> facts = CollectionFacts(rows=1000, dropped=20, duplicates=5)
    >>> facts.counted
    975
    """

    rows: int
    dropped: int = 0
    duplicates: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for field in dataclasses.fields(self):
            _arguments.integer(field.name, getattr(self, field.name), least=0)
        if self.counted < 0:
            raise InvalidValueError(
                f"rows must be at least the {self.rows - self.counted} that are left out, got "
                f"{self.rows}"
            )

    @property
    def counted(self) -> int:
        """The rows that are left: the nodes of the collection."""
        return self.rows - self.dropped - self.duplicates - self.refused

    @classmethod
    def from_dict(cls, description: Any) -> CollectionFacts:
        """Take the numbers from the state of a complete job, or from a mapping of them.

        Parameters
        ----------
        description
            What stands in ``_turnout/job.json`` of a folder of reports, whose ``totals`` are taken;
            or a mapping with ``rows`` and perhaps ``dropped``, ``duplicates`` and ``refused``.
            Other entries are left alone.

        Returns
        -------
        CollectionFacts
            The numbers.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If it is no mapping with ``rows``, a number is none, or the job is not complete.

        Examples
        --------
        >>> CollectionFacts.from_dict({"rows": 10, "dropped": 1, "state": "complete"}).counted
        9
        >>> CollectionFacts.from_dict({"totals": {"rows": 10, "duplicates": 2}})
        CollectionFacts(rows=10, dropped=0, duplicates=2, refused=0)
        """
        if isinstance(description, Mapping) and "totals" in description:
            description = description["totals"]
            if description is None:
                raise InvalidValueError(
                    "facts must be of a job that is complete: this one has no totals yet"
                )
        if not isinstance(description, Mapping) or "rows" not in description:
            raise _arguments.mistyped(
                "facts must be a mapping with the number of rows", description
            )
        names = [field.name for field in dataclasses.fields(cls) if field.name in description]
        return cls(**{name: description[name] for name in names})


@dataclass(frozen=True)
class SomeQuestions:
    """What is shown of several questions beside all of them.

    Attributes
    ----------
    given, wanted
        The questions that say among whom, and the one whose shares are shown.
    marginal
        The questions that are shown alone.
    consistent
        Whether tables are made to agree.
    """

    given: tuple[str, ...]
    wanted: str | None
    marginal: tuple[str, ...]
    consistent: bool

    @classmethod
    def of(
        cls, oracle: Any, given: Any, of: str | None, marginal: Any, *, consistent: bool
    ) -> SomeQuestions:
        """Check the names of questions."""
        given, marginal = _named("given", given), _named("marginal", marginal)
        if of is not None and not given:
            raise InvalidValueError("of (--of) belongs to given (--given)")
        wanted = question_of(oracle, given, of) if given else None
        if consistent:
            check_consistent(oracle)
        return cls(given, wanted, marginal, consistent)

    def agreeing(self, estimate: Any) -> Any:
        """Make tables agree, if that is asked for."""
        return estimate.consistent() if self.consistent else estimate

    def shares(self, estimate: Any, view: View) -> tuple[Any, Any]:
        """Take the shares given others, and those of questions alone; None where not asked for."""
        conditional = alone = None
        if self.wanted is not None:
            conditional = view.cut(conditional_of(estimate, self.given, self.wanted))
        if self.marginal:
            alone = view.cut(marginal_of(estimate, self.marginal))
        return conditional, alone


@dataclass(frozen=True, eq=False)
class Contents:
    """The estimates that a report shows.

    Attributes
    ----------
    view
        How they are looked at.
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
    conditional
        Of several questions: the shares of one among those who answered others, if they are shown.
    marginal, alone
        Those of some whatever is answered to the others, and the names of these questions.
    """

    view: View
    tally: BaseTally
    estimate: Any
    reason: str | None
    grouped: GroupedTally[Any] | None
    groups: Any
    series: Series[Any] | None
    several: Series[Any] | None
    conditional: Any = None
    marginal: Any = None
    alone: tuple[str, ...] = ()

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

    @property
    def given_others(self) -> SharesGivenOthers:
        """How the shares of one question among those who answered others are told."""
        given, of = tuple(self.conditional.given), self.conditional.of
        return SharesGivenOthers(given, of, self.plan.oracle.columns[of])

    @property
    def people(self) -> str:
        """What those are called whom the estimate is of: not people who are counted twice."""
        return PEOPLE if len(self.asked) == 1 else "all questions to people"

    @classmethod
    def of(
        cls,
        tally: BaseTally | GroupedTally[Any],
        view: View,
        *,
        time: str | None = None,
        given: str | Sequence[str] = (),
        of: str | None = None,
        marginal: str | Sequence[str] = (),
        consistent: bool = False,
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
        _arguments.instance("tally", tally, (BaseTally, GroupedTally), "a tally or a GroupedTally")
        grouped = tally if isinstance(tally, GroupedTally) else None
        total = tally.total if isinstance(tally, GroupedTally) else tally
        method = total.default_method if view.method is None else view.method
        some = SomeQuestions.of(total.oracle, given, of, marginal, consistent=consistent)
        estimate = conditional = alone = reason = None
        try:
            estimate = some.agreeing(total.estimate(method))
            conditional, alone = some.shares(estimate, view)
            estimate = view.cut(estimate)
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
                groups = view.cut(grouped.over(*others).estimate(method))
            if found is not None:
                series = view.cut(grouped.over(found).estimate(method)).series(found)
                if others:
                    several = view.cut(grouped.estimate(method)).series(found)
        return cls(
            replace(view, method=method),
            total,
            estimate,
            reason,
            grouped,
            groups,
            series,
            several,
            conditional,
            alone,
            () if alone is None else questions_of(alone.domain) or some.marginal,
        )


def _named(argument: str, names: Any) -> tuple[str, ...]:
    """Take the name of a question, or those of several."""
    found = (names,) if isinstance(names, str) else tuple(names)
    for name in found:
        _arguments.instance(argument, name, str, "the name of a question, or several")
    return found


def _time_column(grouped: GroupedTally[Any], time: str | None) -> str | None:
    """Find the column that is the time: the one named, or the only one with dates or moments."""
    if time is not None:
        if time not in grouped.names:
            raise _arguments.invalid(f"time must be one of the columns {list(grouped.names)}", time)
        return time
    return time_column(grouped.names, grouped)
