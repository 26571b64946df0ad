"""The base class of estimates by groups, and their intervals."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from turnout import _arguments
from turnout._tables import Tabular, WithGroups, records_of
from turnout._types import Floats, Self, Unsigned
from turnout.collecting.estimate import COUNTED, counts_of
from turnout.collecting.groups.series_pictures import Lines
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.intervals import each_level
from turnout.collecting.keys import Key, plain_key, shown_key
from turnout.collecting.plan import Plan
from turnout.errors import EstimatorError, InvalidValueError

#: The limits of so many answers of so many groups are printed.
_SHOWN = 3

E = TypeVar("E")


def _reason(tally: Any) -> str | None:
    """Return why a group has no estimate; None if it has one."""
    if not tally.nodes:
        return "the group has no nodes"
    if not tally.received:
        return "the group has no reports"
    if tally._lacks_answers:
        return "the group has no reports of some questions"
    return None


@dataclass(frozen=True, eq=False)
class GroupedInterval(Tabular):
    """Limits of the frequencies of all answers in all groups.

    Attributes
    ----------
    low, high
        float64 arrays of the shape (groups, answers), nan where a group has no estimate. The limits
        are not cut to [0, 1].
    level
        The requested confidence level.
    simultaneous
        None if the level holds for each interval separately; else ``"bonferroni"`` or ``"sidak"``.
    over
        What it holds for simultaneously: ``"labels"`` of each group, ``"groups"`` for each label,
        or ``"all"`` of both; None if for each separately.
    names, groups
        The columns of the groups, and the key of each.
    labels
        The answers, or the numbers of the coordinates of means.
    """

    low: Floats
    high: Floats
    level: float
    simultaneous: str | None
    over: str | None
    names: tuple[str, ...] = field(repr=False)
    groups: Sequence[Key] = field(repr=False)
    labels: Sequence[Any] = field(repr=False)

    _columns = ("label", "low", "high")

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return self.names

    @property
    def width(self) -> Floats:
        """The distance between the limits."""
        return self.high - self.low

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer of each group, for tables and programs.

        Returns
        -------
        list of dict
            Dictionaries with ``group`` (a dictionary of the columns), ``label``, ``low`` and
            ``high``. The limits are None if a group has no estimate or they are infinite.
        """
        return [
            {"group": dict(zip(self.names, key, strict=True)), **row}
            for key, low, high in zip(self.groups, self.low, self.high, strict=True)
            for row in records_of(self._columns, self.labels, low, high)
        ]

    def __repr__(self) -> str:
        """Show the limits of the first answers of the first groups, and the method."""
        groups, answers = self.low.shape
        shown = ", ".join(
            f"{shown_key(key)!r}: {{{self._written(place)}}}"
            for place, key in enumerate(self.groups[:_SHOWN])
        )
        more = f", ... {groups:,} groups" if groups > _SHOWN else ""
        many = f", {answers:,} answers" if answers > _SHOWN else ""
        both = f", simultaneous={self.simultaneous!r}, over={self.over!r}" if self.over else ""
        return f"GroupedInterval({{{shown}{more}}}{many}, level={self.level:g}{both})"

    def _written(self, place: int) -> str:
        """Write the limits of the first answers of a group."""
        rows = zip(self.labels, self.low[place], self.high[place], strict=False)
        limits = [
            f"{label!r}: {low:.4g} to {high:.4g}"
            for label, low, high in itertools.islice(rows, _SHOWN)
            if math.isfinite(low) and math.isfinite(high)
        ]
        more = ", ..." if limits and len(self.low[place]) > _SHOWN else ""
        return ", ".join(limits) + more


class BaseGroupedEstimate(WithGroups, ABC, Generic[E]):
    """The estimate of each group, or the reason why a group has none.

    Parameters
    ----------
    tally
        The tally to estimate from.
    method
        The estimator, as for the kind's ``tally.estimate``, with the same default.

    Raises
    ------
    InvalidValueError
        If the method does not exist.
    EstimatorError
        If the method does not apply to this participation.
    """

    #: The estimators by name.
    _methods: ClassVar[Collection[str]]
    #: The methods of intervals whose level holds on average over the answers, never for all.
    _on_average: ClassVar[tuple[str, ...]] = ()
    #: The attribute of one estimate that is what was asked for.
    _numbers: ClassVar[str] = "frequencies"

    def __init__(self, tally: GroupedTally[Any], method: str | None = None) -> None:
        self._tally = _arguments.instance("tally", tally, GroupedTally, "a GroupedTally")
        chosen = tally.oracle.tally_type._default_method if method is None else method
        self._method = _arguments.choice("method", chosen, tuple(self._methods))
        self._changes: tuple[Callable[[E], E], ...] = ()
        self._reasons: dict[Key, str] = {}
        self._estimates = self._each(tally, lambda group: group.estimate(chosen))

    def _each(self, groups: Mapping[Key, Any], made_of: Callable[[Any], E]) -> dict[Key, E]:
        """Estimate each group, and keep the reasons of groups without an estimate."""
        estimates: dict[Key, E] = {}
        for key, group in groups.items():
            try:
                estimates[key] = made_of(group)
            except EstimatorError:
                reason = _reason(self._tally[key])
                if reason is None:
                    # Nothing is missing: the method does not apply.
                    raise
                self._reasons = {**self._reasons, key: reason}
        return estimates

    def _changed(self, change: Callable[[E], E], estimates: dict[Key, E] | None = None) -> Self:
        """Return changed estimates of each group and of all groups together."""
        made = copy(self)
        made._changes = (*self._changes, change)
        made._estimates = made._each(self._estimates, change) if estimates is None else estimates
        return made

    @property
    def tally(self) -> GroupedTally[Any]:
        """The tally of the estimates."""
        return self._tally

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the groups."""
        return self._tally.names

    @property
    def groups(self) -> list[Key]:
        """The keys of the groups, in order."""
        return list(self._tally)

    @property
    def reasons(self) -> MappingProxyType[Key, str]:
        """The reason for each group without an estimate."""
        return MappingProxyType(self._reasons)

    @property
    def plan(self) -> Plan:
        """The randomizer and the participation."""
        return self._tally.plan

    @property
    def method(self) -> str:
        """The estimator."""
        return self._method

    @property
    def total(self) -> E:
        """The estimate of the nodes of all groups together.

        Raises
        ------
        EstimatorError
            If there are no reports to estimate from.
        """
        total: E = self._tally.total.estimate(self._method)
        for change in self._changes:
            total = change(total)
        return total

    @property
    def nodes(self) -> Unsigned:
        """The number of nodes of each group."""
        return np.array([tally.nodes for tally in self._tally.values()], np.uint64)

    @property
    def received(self) -> Unsigned:
        """The number of reports of each group."""
        return np.array([tally.received for tally in self._tally.values()], np.uint64)

    def _table(self, name: str) -> Floats:
        """Stack an array of all estimates, one row for each group; nan without an estimate."""
        rows = np.full((len(self._tally), self.plan.domain.size), np.nan)
        for place, key in enumerate(self._tally):
            if key in self._estimates:
                rows[place] = getattr(self._estimates[key], name)
        return rows

    def __getitem__(self, key: Any) -> E:
        """Return the estimate of one group.

        Raises
        ------
        KeyError
            If the group does not exist.
        EstimatorError
            If the group has no estimate; the error gives the reason.
        """
        found = self._found(key)
        if found in self._reasons:
            raise EstimatorError(
                f"nothing can be estimated of the group {_arguments.shown(key)}: "
                f"{self._reasons[found]}"
            )
        return self._estimates[found]

    def _found(self, key: Any) -> Key:
        if key not in self._tally:
            raise KeyError(key)
        return plain_key("key", key, len(self.names))

    def __contains__(self, key: object) -> bool:
        """Return whether there is such a group."""
        return key in self._tally

    def __iter__(self) -> Iterator[Key]:
        """List the keys of the groups, in order."""
        return iter(self._tally)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._tally)

    def __repr__(self) -> str:
        """Show the columns and the number of groups."""
        empty = f", {len(self._reasons)} of them without an estimate" if self._reasons else ""
        return (
            f"{type(self).__name__}({self._method!r}, {len(self)} groups by "
            f"{', '.join(self.names)}{empty}, {self._entries()})"
        )

    @abstractmethod
    def _entries(self) -> str:
        """Return how many numbers the estimate of a group has."""

    @abstractmethod
    def _listed(self, top: int | None = None) -> Sequence[tuple[Any, ...]]:
        """Return the first columns of each of these numbers."""

    def _entry_names(self) -> Sequence[Any]:
        """Return the same in a word or a tuple."""
        return [entry[0] if len(entry) == 1 else entry for entry in self._listed()]

    @property
    def domain(self) -> Any:
        """The possible answers."""
        return self.plan.domain

    @property
    def _every_number(self) -> Floats:
        """What was asked for, of the shape (groups, entries); nan where there is no estimate."""
        return self._table(self._numbers)

    def _lines(self, labels: Any, level: float, simultaneous: str | None, over: str) -> Lines:
        """Return the lines of a series of these estimates.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        """
        raise NotImplementedError(type(self).__name__)

    def interval(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        method: str = "auto",
    ) -> GroupedInterval:
        """Return confidence intervals of all groups.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.
        simultaneous
            None: the level holds for each interval separately. ``"bonferroni"`` (for any
            dependence) or ``"sidak"`` (a little narrower; groups have different people, so their
            reports are independent): it holds for many simultaneously.
        over
            What it then holds for simultaneously: the ``"labels"`` of each group (for means the
            coordinates), the ``"groups"`` for each label, or ``"all"`` labels of all groups. Groups
            without an estimate do not count.
        method
            As for the interval of one estimate.

        Returns
        -------
        GroupedInterval
            Lower and upper limits, one row for each group.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        EstimatorError
            If the estimator is biased, or has no such interval.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> days = {day: oracle.simulate([100, 200, 700], seed=day) for day in (1, 2)}
        >>> estimate = tn.GroupedTally(["day"], days).estimate()
        >>> estimate.interval(simultaneous="sidak").high.shape
        (2, 3)
        """
        each = self._each_level(level, simultaneous, over)
        if method in self._on_average and simultaneous is not None:
            raise InvalidValueError(
                f"simultaneous must be None for {method!r}, whose level holds on average over the "
                f"answers of a group, got {simultaneous!r}"
            )
        low = np.full((len(self._tally), self.plan.domain.size), np.nan)
        high = low.copy()
        for place, key in enumerate(self._tally):
            if key in self._estimates:
                limits: Any = self._estimates[key]
                limits = limits.interval(each, method=method)
                low[place], high[place] = limits.low, limits.high
        return GroupedInterval(
            low,
            high,
            level,
            simultaneous,
            over if simultaneous else None,
            self.names,
            self.groups,
            self._entry_names(),
        )

    def _each_level(self, level: float, simultaneous: str | None, over: str) -> float:
        """Return the level of one interval, given what holds simultaneously.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        """
        groups = max(1, len(self._estimates))
        return each_level(level, simultaneous, over, self.plan.domain.size, groups)

    def _rows(self, estimate: Any, level: float, top: int | None) -> list[dict[str, Any]]:
        """List the rows of the estimate of one group."""
        rows: list[dict[str, Any]] = estimate.to_records(level, top=top)
        return rows

    def _unknown(self, top: int | None) -> list[dict[str, Any]]:
        """List the same for a group without an estimate."""
        columns = self._columns[len(COUNTED) : -1]
        return [
            {
                **{name: None if name in ("low", "high") else math.nan for name in columns},
                **dict(zip(columns, entry, strict=False)),
            }
            for entry in self._listed(top)
        ]

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return self.names

    def to_records(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> list[dict[str, Any]]:
        """List dictionaries for each group, for tables and programs.

        Parameters
        ----------
        level, simultaneous, over
            As for :meth:`interval`.
        top
            List only this many answers of each group, those with its largest frequencies.

        Returns
        -------
        list of dict
            Dictionaries with ``group`` (a dictionary of the columns), ``nodes``, ``received``, the
            entries of the kind's ``to_records`` of one estimate, and ``reason``. The limits are
            None if the estimator is biased or if they are infinite. For a group without an estimate
            the numbers are nan, the limits None, and ``reason`` says why; else it is None.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        """
        each = self._each_level(level, simultaneous, over)
        if top is not None:
            _arguments.integer("top", top, least=1)
        records = []
        for key, tally in self._tally.items():
            head = {"group": dict(zip(self.names, key, strict=True)), **counts_of(tally)}
            reason = self._reasons.get(key)
            rows = self._unknown(top) if reason else self._rows(self._estimates[key], each, top)
            records += [{**head, **row, "reason": reason} for row in rows]
        return records
