"""The description of a kind of question: for people on a page or terminal, and as JSON."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple

from turnout import _arguments, _kinds
from turnout.collecting.groups.series import Series
from turnout.collecting.intervals import OVER
from turnout.collecting.keys import shown_part, to_json
from turnout.collecting.plan import Plan
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.estimation.answer import ORDERS
from turnout.reporting.words import percent

#: So many answers, and so many groups, are in a sentence for a publication.
_SAID: Final = 5

#: How those are called whom an estimate is of.
PEOPLE: Final = "all people who count"


@dataclass(frozen=True)
class View:
    """The choices for showing an estimate.

    Attributes
    ----------
    method
        The estimator; None for that of the kind.
    level, simultaneous, over
        How intervals are made.
    order, top
        In which order answers stand, and how many of them; None for all.
    clip
        Whether intervals of shares are cut to [0, 1].
    consistent
        Whether tables of two questions are made to agree.
    given, of, marginal
        Of several questions: whose shares are shown among whom, and which are shown alone.
    time
        The column of groups that is the time, where it is not the only one with dates.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If one is none of the allowed values.
    """

    method: str | None
    level: float = 0.95
    simultaneous: str | None = None
    over: str = "all"
    order: str = "frequency"
    top: int | None = None
    clip: bool = False
    consistent: bool = False
    given: str | Sequence[str] = ()
    of: str | None = None
    marginal: str | Sequence[str] = ()
    time: str | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        for argument in ("given", "marginal"):
            names = getattr(self, argument)
            found = (names,) if isinstance(names, str) else tuple(names)
            for name in found:
                _arguments.instance(argument, name, str, "the name of a question, or several")
            object.__setattr__(self, argument, found)
        if self.of is not None and not self.given:
            raise InvalidValueError("of (--of) needs given (--given)")
        object.__setattr__(self, "level", _arguments.confidence("level", self.level))
        _arguments.choice("simultaneous", self.simultaneous, (None, "bonferroni", "sidak"))
        _arguments.choice("over", self.over, OVER)
        _arguments.choice("order", self.order, ORDERS)
        if self.top is not None:
            _arguments.integer("top", self.top, least=1)

    @property
    def scope(self) -> dict[str, Any]:
        """How the intervals of one estimate are made, as it takes it."""
        return {"level": self.level, "simultaneous": self.simultaneous}

    def scope_of(self, estimate: Any) -> dict[str, Any]:
        """How those of an estimate are made, or of estimates of groups."""
        return {**self.scope, "over": self.over} if groups_of(estimate) else self.scope

    def cut(self, estimate: Any) -> Any:
        """Cut the intervals of an estimate to [0, 1], where that is asked for.

        Raises
        ------
        InvalidValueError
            If they are of numbers.
        """
        if not self.clip:
            return estimate
        if not hasattr(estimate, "clip_intervals"):
            raise InvalidValueError("clip (--clip) applies to intervals of shares, not of numbers")
        return estimate.clip_intervals()


def by_group(estimate: Any) -> Any:
    """Return the estimates of groups that a series is of; others are as they are."""
    return estimate.estimate if isinstance(estimate, Series) else estimate


def groups_of(estimate: Any) -> tuple[str, ...]:
    """Name the columns of the groups that estimates are of; none of the estimate of all people."""
    return tuple(getattr(by_group(estimate), "names", ()))


class Row(NamedTuple):
    """A row of a table.

    Attributes
    ----------
    cells
        What stands in it; nothing if there is a reason.
    group
        The group that it is of.
    received
        How many reports there are of the group.
    reason
        Why nothing is estimated of it.
    """

    cells: Sequence[str]
    group: tuple[str, ...] = ()
    received: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Told:
    """A table, and what is said of it.

    Attributes
    ----------
    caption
        What the table shows.
    head, rows
        The names of the columns, beside those of the groups, and the rows.
    names
        How many of the columns hold words; numbers follow.
    groups
        The columns of the groups.
    entries
        How many rows a group would have (all people: the table) if none was left out.
    lead
        What is said before the picture.
    words
        What is said below the table.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Row]
    names: int
    groups: tuple[str, ...] = ()
    entries: int = 0
    lead: str = ""
    words: str = ""


class Telling(ABC):
    """The description of a kind of question (base class)."""

    #: What the estimates are, as the words beside pictures begin, and the note below groups.
    what: ClassVar[str]
    of_a_group: ClassVar[str]

    #: What the intervals of groups hold for at once.
    together: ClassVar[Mapping[str, str]]

    #: What was counted, the options that say nothing about it and why, and its estimators.
    counted: ClassVar[str] = "a tally of answers"
    refused: ClassVar[Mapping[str, str]] = {}
    methods: ClassVar[Collection[str]] = ()

    def check(self, options: Collection[str], method: str) -> None:
        """Refuse options and estimators that do not apply to this kind.

        Raises
        ------
        InvalidValueError
            If there is one, with the reason.
        """
        for option, reason in self.refused.items():
            if option in options:
                raise InvalidValueError(f"{option} does not apply to {self.counted}: {reason}")
        if self.methods and method not in self.methods:
            raise InvalidValueError(
                f"--method must be {' or '.join(self.methods)} for {self.counted}, got {method}"
            )

    @abstractmethod
    def asked(self, domain: Any) -> tuple[str, str]:
        """State which answers can be given: a name and a value."""

    @abstractmethod
    def head(self, domain: Any, level: float, *, groups: bool) -> tuple[list[str], int]:
        """Name the columns of a table, and say how many of them hold words."""

    @abstractmethod
    def cells(self, record: Mapping[str, Any], digits: Any) -> list[str]:
        """Write a record."""

    @abstractmethod
    def digits(self, domain: Any, records: Sequence[Mapping[str, Any]]) -> Any:
        """Say with how many decimals records are written."""

    @abstractmethod
    def scope(self, domain: Any, simultaneous: str | None) -> str:
        """State what the intervals of all people hold for; nothing of one number."""

    def interval_words(self, method: str, domain: Any, simultaneous: str | None) -> str:
        """State how these are made, and what they hold for."""
        scope = self.scope(domain, simultaneous)
        return f"{method}, for {scope}" if scope else method

    @abstractmethod
    def records(self, estimate: Any, view: View) -> list[dict[str, Any]]:
        """List what is shown of an estimate: of all people, or of groups or a series."""

    def domain_of(self, estimate: Any) -> Any:
        """Return what can be answered to what is shown of an estimate."""
        return by_group(estimate).domain

    def told(self, estimate: Any, view: View, people: str = PEOPLE) -> Told:
        """Tell an estimate, which is of all people, who are called so, or of groups."""
        groups, domain = groups_of(estimate), self.domain_of(estimate)
        records = self.records(estimate, view)
        digits = self.digits(domain, records)
        head, names = self.head(domain, view.level, groups=bool(groups))
        table = Told(
            self.group_caption(domain, view) if groups else self.caption(domain, view, people),
            head,
            list(self._rows(records, digits)),
            names,
            groups or tuple(records[0].get("group", ())),
            self.entries_of(estimate),
        )
        if groups:
            return table
        lead = self.lead(records, digits, view, people)
        return replace(table, lead=lead, words=self.words(estimate, view))

    def _rows(self, records: Sequence[Mapping[str, Any]], digits: Any) -> Iterator[Row]:
        for group, rows in itertools.groupby(records, lambda record: record.get("group", {})):
            key = tuple(map(shown_part, group.values()))
            for record in rows:
                received, reason = record.get("received"), record.get("reason")
                if reason is not None:
                    yield Row((), key, received, reason)
                    break
                yield Row(self.cells(record, digits), key, received)

    @abstractmethod
    def caption(self, domain: Any, view: View, people: str) -> str:
        """State what the table of all people shows, who are called so."""

    @abstractmethod
    def group_caption(self, domain: Any, view: View) -> str:
        """State what the table of groups shows."""

    def lead(
        self, records: Sequence[Mapping[str, Any]], digits: Any, view: View, people: str
    ) -> str:
        """State in a sentence what was estimated, where one is enough."""
        return ""

    @abstractmethod
    def words(self, estimate: Any, view: View) -> str:
        """State what the intervals of all people hold."""

    def interval_method(self, estimate: Any, view: View) -> str:
        """State how the intervals of all people are made.

        Raises
        ------
        EstimatorError
            If there are none.
        """
        method: str = estimate.interval(**view.scope).method
        return method

    #: What is found, as the sentence for a publication begins.
    found: ClassVar[str] = "Estimated"

    def finding(self, estimate: Any, view: View) -> str:
        """State what was found, with intervals, in a sentence for a publication."""
        view = replace(view, top=min(view.top or _SAID, _SAID))
        records = self.records(estimate, view)
        digits, said = self.digits(self.domain_of(estimate), records), list[str]()
        groups = [
            (group, [each for each in rows if each.get("reason") is None])
            for group, rows in itertools.groupby(records, lambda each: each.get("group", {}))
        ]
        for group, rows in groups[:_SAID]:
            # Only the first of all says of which level the intervals are.
            within = [
                self._said(each, digits, view, first=not (said or place))
                for place, each in enumerate(rows)
            ]
            names = f"{', '.join(map(shown_part, group.values()))}: " if group else ""
            said += [f"{names}{', '.join(within)}"] if within else []
        more = len(groups) - _SAID
        if groups_of(estimate):
            rest = f"; and {more:,} more groups" if more > 0 else ""
        else:
            more = self.entries_of(estimate) - len(records)
            rest = f", and {more:,} more" if more > 0 else ""
        return f"{self.found}: {'; '.join(said)}{rest}." if said else ""

    def _said(self, record: Mapping[str, Any], digits: Any, view: View, *, first: bool) -> str:
        """Say one number with its interval; the first says of which level it is."""
        name, value, interval = self.said(record, digits)
        if interval == "none":
            return f"{name} {value}".strip()
        level = f"{percent(view.level)} interval " if first else ""
        if first and view.simultaneous is not None:
            level = f"{percent(view.level)} interval for all at once "
        return f"{name} {value} ({level}{interval.replace(' – ', ' to ')})".strip()

    @abstractmethod
    def said(self, record: Mapping[str, Any], digits: Any) -> tuple[str, str, str]:
        """Write a record for a sentence: a name, perhaps empty, a value and its limits."""

    def entries(self, domain: Any) -> int:
        """State how many rows a table has of all people, or of a group, if none is left out."""
        size: int = domain.size
        return size

    def entries_of(self, estimate: Any) -> int:
        """State how many rows there are of this estimate, or of each of its groups."""
        return self.entries(self.domain_of(estimate))

    def described(self, estimate: Any) -> dict[str, Any]:
        """State what was done to an estimate: first members of the object of ``--json``."""
        found = {
            name: getattr(estimate, name)
            for name in ("postprocessing", "converged")
            if hasattr(estimate, name)
        }
        shrinkage = getattr(estimate, "shrinkage", None)
        return found if shrinkage is None else {**found, "shrinkage": asdict(shrinkage)}

    def values(self, estimate: Any, view: View) -> dict[str, Any]:
        """Return the last members of the object of ``--json``."""
        return {"estimates": [*map(json_record, self.records(estimate, view))]}

    def facts(self, estimate: Any, level: float) -> list[tuple[str, str]]:
        """State what else stands above the table of all people."""
        return []

    def draws_groups(self, domain: Any) -> bool:
        """Return whether there is a picture of groups."""
        return True

    def draw_groups(self, estimate: Any, view: View) -> Any:
        """Draw the estimates of groups, or a series."""
        return estimate.plot(**view.scope_of(estimate)).figure

    def draw(self, estimate: Any, view: View) -> Any:
        """Draw the estimates of all people."""
        return estimate.plot(**view.scope).figure

    @abstractmethod
    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """State how reports are made, for those who check them."""


def json_group(group: Mapping[str, Any]) -> dict[str, Any]:
    """Write the columns of a group in terms of JSON: moments as text."""
    described = {name: to_json(part) for name, part in group.items()}
    return {
        name: next(iter(part.values())) if isinstance(part, dict) else part
        for name, part in described.items()
    }


def json_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Write the group of a record in terms of JSON, if it has one."""
    return {key: json_group(value) if key == "group" else value for key, value in record.items()}


def telling(plan: Plan) -> Telling:
    """Find how the tallies of a plan are told.

    Raises
    ------
    InvalidTypeError
        If nobody tells tallies of this kind.

    Examples
    --------
    >>> import turnout as tn
    >>> telling(tn.Plan(tn.mean.Duchi(1.0, (0, 24)), tn.Everyone())).asked(tn.Bounds(0, 24))
    ('numbers', 'from 0 to 24')
    """
    kind = plan.oracle.tally_type
    found = _kinds.telling(getattr(kind, "told", ""))
    if not isinstance(found, Telling):
        raise InvalidTypeError(f"tally must be of a kind that can be shown, got a {kind.__name__}")
    return found
