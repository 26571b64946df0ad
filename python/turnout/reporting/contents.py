"""What a report shows: the estimates of a tally, who was left out, and what kinds must tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from turnout import _arguments
from turnout.collecting.groups.estimate import OVER
from turnout.collecting.groups.series import BaseSeries
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import shown_part, time_column
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.answer import ORDERS
from turnout.frequency.joint.chosen import (
    check_consistent,
    conditional_of,
    marginal_of,
    question_of,
)
from turnout.products import questions_of


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

    def shares(self, estimate: Any, clip: bool) -> tuple[Any, Any]:
        """Take the shares given others, and those of questions alone; None where not asked for."""
        conditional = alone = None
        if self.wanted is not None:
            conditional = cut(conditional_of(estimate, self.given, self.wanted), clip)
        if self.marginal:
            alone = cut(marginal_of(estimate, self.marginal), clip)
        return conditional, alone


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
    conditional
        Of several questions: the shares of one among those who answered others, if they are shown.
    marginal, alone
        Those of some whatever is answered to the others, and the names of these questions.
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
    conditional: Any = None
    marginal: Any = None
    alone: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """The oracle and the participation."""
        return self.tally.plan

    @property
    def scope(self) -> dict[str, Any]:
        """How the intervals of groups are made, as estimates take it."""
        return {"level": self.level, "simultaneous": self.simultaneous, "over": self.over}

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
        given: Sequence[str] = (),
        of: str | None = None,
        marginal: Sequence[str] = (),
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
        some = SomeQuestions.of(total.oracle, given, of, marginal, consistent=consistent)
        estimate = conditional = alone = reason = None
        try:
            estimate = some.agreeing(total.estimate(method))
            conditional, alone = some.shares(estimate, clip)
            estimate = cut(estimate, clip)
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


@dataclass(frozen=True)
class Content:
    """A table, and what is said of it.

    Attributes
    ----------
    caption
        What the table shows.
    head, rows
        The names of the columns, and the cells.
    names
        How many of the first columns name the row.
    of
        How many rows there are, if more than these.
    lead
        What is said before the picture, one sentence an entry.
    words
        What is said below the table.
    """

    caption: str
    head: Sequence[object]
    rows: Sequence[Sequence[object]]
    names: int = 1
    of: int | None = None
    lead: Sequence[str] = ()
    words: str = ""


class Wording(Protocol):
    """How a kind of question is told."""

    #: What the estimates are, as the words beside pictures begin.
    what: ClassVar[str]

    #: How the note below groups begins.
    of_a_group: ClassVar[str]

    #: What intervals hold for at once.
    together: ClassVar[Mapping[str, str]]

    def card(self, plan: Plan) -> tuple[str, str]:
        """Say which answers could be given: what is written large, and words below it."""

    def estimate(self, contents: Contents) -> Content:
        """Tell the estimates of all people."""

    def groups(self, contents: Contents, records: Sequence[dict[str, Any]]) -> Content:
        """Tell the estimates of groups."""

    def draws_groups(self, plan: Plan) -> bool:
        """Whether there is a picture of groups."""
        return True

    def draw(self, estimate: Any, level: float, simultaneous: str | None) -> Any:
        """Draw the estimates of all people."""
        return estimate.plot(level=level, simultaneous=simultaneous).figure

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """Say how reports are made, for those who check them."""

    def fingerprints(self, plan: Plan) -> list[tuple[str, str]]:
        """Give what tells the answers that could be given from others.

        Raises
        ------
        InvalidTypeError
            If a label is one that no file can hold.
        """
        return []


def group_key(record: dict[str, Any]) -> tuple[str, ...]:
    """Write the columns of a group."""
    return tuple(shown_part(part) for part in record["group"].values())
