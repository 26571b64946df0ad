"""Estimated frequencies of all groups, with intervals that can hold together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._extras import require
from turnout.collecting.intervals import tail_probability
from turnout.collecting.keys import Key, plain_key
from turnout.collecting.plan import Plan
from turnout.domain import Domain
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.estimation.projection import PROJECTIONS
from turnout.frequency.groups.interval import OVER, GroupedInterval
from turnout.frequency.groups.tally import GroupedTally

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from turnout.frequency.groups.comparison import GroupDifference
    from turnout.frequency.groups.series import Series

__all__ = ["GroupedEstimate"]

Floats = npt.NDArray[np.float64]

#: The columns of a table beside those of the groups.
_COLUMNS = ("nodes", "received", "label", "count", "frequency", "standard_error", "low", "high")


class GroupedEstimate:
    """How often each answer occurs in each group, with standard errors and intervals.

    Made by :meth:`GroupedTally.estimate`. ``estimate["DE"]`` is the
    :class:`turnout.FrequencyEstimate` of one group. A group from which nothing can be estimated,
    because nobody in it reported, is in the tables with nan and the reason.

    Parameters
    ----------
    tally
        What is estimated from.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    postprocessing
        The projection, as in :meth:`turnout.FrequencyEstimate.project`.

    Raises
    ------
    InvalidValueError
        If there is no such method or projection.
    EstimatorError
        If the method does not apply to this participation.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
    >>> grouped = tn.GroupedTally(
    ...     ["country"],
    ...     {
    ...         "DE": oracle.simulate([9000, 1000], seed=1),
    ...         "FR": oracle.simulate([5000, 5000], seed=2),
    ...         "NL": oracle.simulate([0, 0]),
    ...     },
    ... )
    >>> estimate = grouped.estimate()
    >>> estimate.frequencies.round(1)
    array([[0.9, 0.1],
           [0.5, 0.5],
           [nan, nan]])
    >>> estimate.reasons
    mappingproxy({('NL',): 'the group has no nodes'})
    """

    __slots__ = ("_estimates", "_method", "_postprocessing", "_reasons", "_tally")

    def __init__(
        self, tally: GroupedTally, method: str = "hajek", *, postprocessing: str = "none"
    ) -> None:
        _arguments.choice("method", method, tuple(ESTIMATORS))
        _arguments.choice("postprocessing", postprocessing, ("none", *PROJECTIONS))
        self._tally = _arguments.instance("tally", tally, GroupedTally, "a GroupedTally")
        self._method, self._postprocessing = method, postprocessing
        self._estimates: dict[Key, FrequencyEstimate] = {}
        self._reasons: dict[Key, str] = {}
        for key, group in tally.items():
            try:
                estimate = group.estimate(method)
            except EstimatorError:
                if group.received:
                    # Nothing is missing: the method does not apply.
                    raise
                self._reasons[key] = (
                    "the group has no reports" if group.nodes else "the group has no nodes"
                )
                continue
            self._estimates[key] = estimate.project(postprocessing)

    @property
    def tally(self) -> GroupedTally:
        """What was estimated from."""
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
        """Why there is no estimate, for each group without one."""
        return MappingProxyType(self._reasons)

    @property
    def plan(self) -> Plan:
        """The oracle and the participation."""
        return self._tally.plan

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self._tally.domain

    @property
    def method(self) -> str:
        """The estimator."""
        return self._method

    @property
    def postprocessing(self) -> str:
        """``"none"``, or the name of the projection that was applied."""
        return self._postprocessing

    @property
    def total(self) -> FrequencyEstimate:
        """The estimate of the nodes of all groups together.

        Raises
        ------
        EstimatorError
            If there is nothing to estimate it from.
        """
        return self._tally.total.estimate(self._method).project(self._postprocessing)

    @property
    def nodes(self) -> npt.NDArray[np.uint64]:
        """The number of nodes of each group."""
        return np.array([tally.nodes for tally in self._tally.values()], np.uint64)

    @property
    def received(self) -> npt.NDArray[np.uint64]:
        """The number of reports of each group."""
        return np.array([tally.received for tally in self._tally.values()], np.uint64)

    @property
    def frequencies(self) -> Floats:
        """The frequencies, float64 of the shape (groups, answers); nan where there is no estimate.

        Each is the share of the nodes of the group.
        """
        return self._table("frequencies")

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of :attr:`frequencies` before post-processing, of the same shape."""
        return self._table("standard_errors")

    @property
    def counts(self) -> Floats:
        """The numbers of nodes that hold each answer, of the same shape."""
        return self._table("counts")

    def _table(self, name: str) -> Floats:
        rows = np.full((len(self._tally), self.domain.size), np.nan)
        for place, key in enumerate(self._tally):
            if key in self._estimates:
                rows[place] = getattr(self._estimates[key], name)
        return rows

    def __getitem__(self, key: Any) -> FrequencyEstimate:
        """Return the estimate of one group.

        Raises
        ------
        KeyError
            If there is no such group.
        EstimatorError
            If nothing can be estimated of it, with the reason.
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
        """Whether there is such a group."""
        return key in self._tally

    def __iter__(self) -> Iterator[Key]:
        """List the keys of the groups, in order."""
        return iter(self._tally)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._tally)

    def __repr__(self) -> str:
        """Show the columns and how many groups there are."""
        empty = f", {len(self._reasons)} of them without an estimate" if self._reasons else ""
        return (
            f"GroupedEstimate({self._method!r}, {len(self)} groups by {', '.join(self.names)}"
            f"{empty}, {self.domain.size} answers)"
        )

    def project(self, method: str) -> GroupedEstimate:
        """Post-process the estimate of each group into a distribution.

        Parameters
        ----------
        method
            As for :meth:`turnout.FrequencyEstimate.project`.

        Returns
        -------
        GroupedEstimate
            The post-processed estimates; standard errors and intervals stay those before.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        """
        return GroupedEstimate(self._tally, self._method, postprocessing=method)

    def interval(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        method: str = "auto",
    ) -> GroupedInterval:
        """Confidence intervals of the frequencies of all groups.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.
        simultaneous
            None: the level holds for each interval by itself. ``"bonferroni"`` (whatever the
            dependence) or ``"sidak"`` (a little narrower; groups have different people, so their
            reports are independent): it holds for many at once.
        over
            What it then holds for at once: the ``"labels"`` of each group, the ``"groups"`` for
            each label, or ``"all"`` labels of all groups. Groups without an estimate do not count.
        method
            As for :meth:`turnout.FrequencyEstimate.interval`.

        Returns
        -------
        GroupedInterval
            Lower and upper limits, one row for each group.

        Raises
        ------
        InvalidValueError
            If an argument is none of the allowed values.
        EstimatorError
            If the estimator is biased, or has no such interval.

        Examples
        --------
        >>> import turnout as tn
        >>> one = tn.DirectEncoding(1.0, 3).simulate([100, 200, 700], seed=1)
        >>> tn.GroupedTally(["day"], {1: one, 2: one}).estimate().interval(simultaneous="sidak")
        GroupedInterval(2 groups, 3 answers, level=0.95, simultaneous='sidak', over='all')
        """
        each = self._each_level(level, simultaneous, over)
        low = np.full((len(self._tally), self.domain.size), np.nan)
        high = low.copy()
        for place, key in enumerate(self._tally):
            if key in self._estimates:
                limits = self._estimates[key].interval(each, method=method)
                low[place], high[place] = limits.low, limits.high
        return GroupedInterval(low, high, level, simultaneous, over if simultaneous else None)

    def _each_level(self, level: float, simultaneous: str | None, over: str) -> float:
        """Find the level of one interval, of those that hold together."""
        level = _arguments.confidence("level", level)
        _arguments.choice("simultaneous", simultaneous, (None, "bonferroni", "sidak"))
        _arguments.choice("over", over, OVER)
        if simultaneous is None:
            return level
        labels = 1 if over == "groups" else self.domain.size
        groups = 1 if over == "labels" else max(1, len(self._estimates))
        return 1.0 - tail_probability(level, labels * groups, simultaneous)

    def to_records(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> list[dict[str, Any]]:
        """List one dictionary for each answer of each group, for tables and programs.

        Parameters
        ----------
        level, simultaneous, over
            As for :meth:`interval`.
        top
            List so many answers of each group only, those with its largest frequencies.

        Returns
        -------
        list of dict
            With ``group`` (a dictionary of the columns), ``nodes``, ``received``, ``label``,
            ``count``, ``frequency``, ``standard_error``, ``low``, ``high`` and ``reason``. The
            limits are None if the estimator is biased or if they are infinite. Of a group without
            an estimate the numbers are nan, the limits None, and ``reason`` says why; else it is
            None.

        Raises
        ------
        InvalidValueError
            If an argument is none of the allowed values.
        """
        each = self._each_level(level, simultaneous, over)
        if top is not None:
            _arguments.integer("top", top, least=1)
        records = []
        for key, tally in self._tally.items():
            head = {
                "group": dict(zip(self.names, key, strict=True)),
                "nodes": tally.nodes,
                "received": tally.received,
            }
            reason = self._reasons.get(key)
            if reason is None:
                rows = self._estimates[key].to_records(each, top=top)
            else:
                rows = [_unknown(label) for label in self.domain.labels[:top]]
            records += [{**head, **row, "reason": reason} for row in rows]
        return records

    def to_arrow(
        self, level: float = 0.95, *, simultaneous: str | None = None, over: str = "all"
    ) -> Any:
        """Give the same table as a :class:`pyarrow.Table`, which pandas and polars take as it is.

        Parameters
        ----------
        level, simultaneous, over
            As for :meth:`interval`.

        Returns
        -------
        pyarrow.Table
            The columns of the groups, then those of :meth:`to_records`, with null where a number is
            not known. A column of the groups that has the name of one of these is called
            ``group.name``. Labels of several types are written as text, and so are values that
            Arrow has no type for: tuples, or integers of more than 64 bits.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        InvalidValueError
            If an argument is none of the allowed values.
        """
        pa = require("pyarrow", "cli")
        records = self.to_records(level, simultaneous=simultaneous, over=over)
        columns: dict[str, Any] = {}
        for name in self.names:
            shown = f"group.{name}" if name in (*_COLUMNS, "reason") else name
            columns[shown] = _arrow(pa, [record["group"][name] for record in records])
        for name in _COLUMNS:
            values = [record[name] for record in records]
            if name == "label":
                if len({type(value) for value in values}) > 1:
                    values = [str(value) for value in values]
                columns[name] = _arrow(pa, values)
            elif name in ("nodes", "received"):
                columns[name] = pa.array(values, pa.uint64())
            else:
                known = [None if value is None or math.isnan(value) else value for value in values]
                columns[name] = pa.array(known, pa.float64())
        columns["reason"] = pa.array([record["reason"] for record in records], pa.string())
        return pa.table(columns)

    def compare(
        self, first: Any, second: Any, *, level: float = 0.95, simultaneous: str | None = None
    ) -> GroupDifference:
        """Compare the frequencies of two groups.

        Parameters
        ----------
        first, second
            The keys of two different groups.
        level
            The confidence level of the differences.
        simultaneous
            As for :meth:`turnout.FrequencyEstimate.interval`: over the labels.

        Returns
        -------
        GroupDifference
            The frequencies of the first less those of the second, with intervals.

        Raises
        ------
        KeyError
            If there is no such group.
        InvalidValueError
            If both are the same group, or an argument is none of the allowed values.
        EstimatorError
            If a group has no estimate, or the estimator is biased.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
        >>> shares = {"DE": oracle.simulate([900, 100], seed=1), "FR": oracle.simulate([600, 400])}
        >>> grouped = tn.GroupedTally(["country"], shares)
        >>> grouped.estimate().compare("DE", "FR").differences.shape
        (2,)
        """
        from turnout.frequency.groups.comparison import difference  # noqa: PLC0415

        keys = self._found(first), self._found(second)
        if keys[0] == keys[1]:
            raise InvalidValueError(
                f"second must be another group than first, got {_arguments.shown(second)} twice"
            )
        return difference((keys[0], self[first]), (keys[1], self[second]), level, simultaneous)

    def series(self, time: str | None = None) -> Series:
        """Read the groups as a series over time, one for each group of the other columns.

        Parameters
        ----------
        time
            The column that is the time: dates, moments, times of day, numbers or texts, in their
            order. By default the only column whose values are dates or moments, or the only column.

        Returns
        -------
        Series
            The estimates in the order of time.

        Raises
        ------
        InvalidValueError
            If there is no such column, or none is given and it is not clear which.
        """
        from turnout.frequency.groups.series import Series  # noqa: PLC0415

        return Series(self, time)

    def plot(
        self,
        labels: Any = None,
        *,
        level: float = 0.95,
        simultaneous: str | None = None,
        over: str = "all",
    ) -> Figure:
        """Draw a panel for each answer: the groups below each other with their intervals.

        Parameters
        ----------
        labels
            The answers that are drawn; by default all, or the twelve most frequent of more.
        level, simultaneous, over
            As for :meth:`interval`.

        Returns
        -------
        matplotlib.figure.Figure
            The picture, with the frequency of all groups together as a line in each panel.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is none of the allowed values, a label is none of the domain, or there
            are no groups.
        """
        from turnout.frequency.groups.pictures import plot_groups  # noqa: PLC0415

        return plot_groups(self, labels, level, simultaneous, over)


def _arrow(pa: Any, values: list[Any]) -> Any:
    """Make an Arrow array, of text where Arrow has no type for the values."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def _unknown(label: Any) -> dict[str, Any]:
    return {
        "label": label,
        "count": math.nan,
        "frequency": math.nan,
        "standard_error": math.nan,
        "low": None,
        "high": None,
    }
