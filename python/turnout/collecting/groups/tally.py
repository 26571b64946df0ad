"""Tallies by groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from turnout import _arguments
from turnout.collecting import keys
from turnout.collecting.groups._people import tallies_in_one_round, tallies_of_different_people
from turnout.collecting.keys import Key
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.origin import Origin, refuse_repeats
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally, T
from turnout.collecting.tally_encoding import decode_groups, encode_groups
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.participation import Participation


class GroupedTally(Mapping[Key, T]):
    """One tally for each group of nodes, all under one plan: a mapping from keys to tallies.

    A key is a tuple with one value for each column of the groups, in the order of ``names``. With
    one column, a bare value works as a key too. Groups are in the order of their keys. Grouped
    tallies of different nodes add up, in any order.

    The columns of the groups are not protected; only the answers are. See
    :mod:`turnout.collecting.groups`.

    Parameters
    ----------
    names
        The names of the columns: country, version, day.
    tallies
        The tally of each key. Values of a key are None, texts, numbers, booleans, dates, times or
        moments. Each column has values of one type, or None.
    plan
        The oracle and the participation; required only if there are no groups.
    of_no_group
        The rows that do not count and belong to no group or to an unknown one. Left-out rows of a
        group are in its tally.
    origin
        The collections that were counted by groups, so that none counts twice; by default those of
        the tallies.
    same_people
        Whether people of one tally may also be in another, with the permanent answers that they
        keep, for example if each group is a day: as for :meth:`turnout.Tally.merge`. Groups of one
        collection always have different people.

    Raises
    ------
    InvalidTypeError
        If an argument, a name or a key is of the wrong type, or a column has values of several.
    InvalidValueError
        If names are duplicated, a key has a wrong number of values, two keys are equal, there is
        neither a group nor a plan, or two groups count the same collection.
    PlanMismatchError
        If a tally was made under another plan.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> monday = GroupedTally(
    ...     ["country"],
    ...     {("DE",): oracle.collect(["no"] * 60), ("FR",): oracle.collect(["yes"] * 30)},
    ... )
    >>> tuesday = GroupedTally(["country"], {("DE",): oracle.collect(["yes"] * 40)})
    >>> week = monday + tuesday
    >>> week["DE"].received, week.total.received, list(week)
    (100, 130, [('DE',), ('FR',)])
    >>> GroupedTally.from_bytes(week.to_bytes()) == week
    True
    """

    __slots__ = ("_names", "_of_no_group", "_origin", "_plan", "_tallies")

    def __init__(
        self,
        names: Any,
        tallies: Mapping[Any, T],
        *,
        plan: Plan | None = None,
        of_no_group: LeftOut = NOTHING,
        origin: Origin | None = None,
        same_people: bool = True,
    ) -> None:
        self._names = keys.checked_names(names)
        _arguments.instance("tallies", tallies, Mapping, "a mapping from keys to tallies")
        found: dict[Key, Any] = {}
        for given, tally in tallies.items():
            key = keys.plain_key("a key of tallies", given, len(self._names))
            if key in found:
                raise InvalidValueError(f"tallies has the key {_arguments.shown(key)} twice")
            found[key] = _arguments.instance(
                f"tallies[{_arguments.shown(given)}]", tally, BaseTally, "a tally"
            )
        keys.check_columns(self._names, found)
        if plan is None:
            if not found:
                raise InvalidValueError("plan must be given where tallies has no groups")
            plan = next(iter(found.values())).plan
        self._plan: Plan = _arguments.instance("plan", plan, Plan, "a Plan")
        self._of_no_group: LeftOut = _arguments.instance(
            "of_no_group", of_no_group, LeftOut, "a LeftOut object"
        )
        self._tallies: dict[Key, T] = {
            key: _under(self._plan, found[key], f"tallies[{_arguments.shown(key)}]")
            for key in keys.in_order(found)
        }
        refuse_repeats((f"tallies[{_arguments.shown(key)}]", self._tallies[key]) for key in self)
        own = _of_all(self._tallies) if origin is None else origin
        self._origin = Origin.settled(own, self.nodes)
        _arguments.instance("same_people", same_people, bool, "True or False")
        if not same_people:
            renamed = tallies_of_different_people([{key: self._tallies[key]} for key in self])
            self._tallies = {key: one for each in renamed for key, one in each.items()}

    @classmethod
    def _made(
        cls,
        names: tuple[str, ...],
        plan: Plan,
        tallies: dict[Key, T],
        origin: Origin,
        of_no_group: LeftOut = NOTHING,
    ) -> GroupedTally[T]:
        """Build a grouped tally from tallies of one plan under checked keys, in order."""
        made = cls.__new__(cls)
        made._names, made._plan, made._tallies = names, plan, tallies
        made._origin, made._of_no_group = origin, of_no_group
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the groups."""
        return self._names

    @property
    def plan(self) -> Plan:
        """The oracle and the participation."""
        return self._plan

    @property
    def oracle(self) -> Any:
        """The randomizer."""
        return self._plan.oracle

    @property
    def domain(self) -> Any:
        """The answers."""
        return self._plan.oracle.domain

    @property
    def participation(self) -> Participation:
        """How the nodes took part."""
        return self._plan.participation

    @property
    def received(self) -> int:
        """The number of reports in all groups."""
        return sum(tally.received for tally in self._tallies.values())

    @property
    def nodes(self) -> int:
        """The number of nodes in all groups, reporting or not."""
        return sum(tally.nodes for tally in self._tallies.values())

    @property
    def origin(self) -> Origin:
        """The collections that were counted by groups."""
        return self._origin

    @property
    def of_no_group(self) -> LeftOut:
        """The rows that do not count and belong to no group or to an unknown one."""
        return self._of_no_group

    @property
    def left_out(self) -> LeftOut:
        """The rows that do not count, with and without a group."""
        return sum((tally.left_out for tally in self._tallies.values()), self._of_no_group)

    @property
    def total(self) -> T:
        """The tally of the nodes of all groups together."""
        merged = _merged(self._plan, list(self._tallies.values()))
        origin = self._origin.with_rounds(merged.origin.rounds)
        return replace(merged, left_out=self.left_out, origin=origin)

    def __getitem__(self, key: Any) -> T:
        """Return the tally of one group: ``grouped["DE"]``, ``grouped["DE", "3.1"]``."""
        try:
            plain = keys.plain_key("key", key, len(self._names))
        except (InvalidTypeError, InvalidValueError):
            raise KeyError(key) from None
        if plain not in self._tallies:
            raise KeyError(key)
        return self._tallies[plain]

    def __iter__(self) -> Iterator[Key]:
        """List the keys of the groups in order: tuples, also for one column."""
        return iter(self._tallies)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._tallies)

    def _of_new_origin(self) -> GroupedTally[T]:
        """Return the same counts as one new collection, after its pieces were added up."""
        new = {key: replace(tally, origin=Origin.new()) for key, tally in self._tallies.items()}
        tallies = tallies_in_one_round(new)
        origin = Origin.settled(None, self.nodes)
        return self._made(self._names, self._plan, tallies, origin, self._of_no_group)

    def merge(self, other: GroupedTally[T], *, same_people: bool = True) -> GroupedTally[T]:
        """Add the tallies of other nodes; also written ``+``.

        Parameters
        ----------
        other
            A grouped tally of the same columns under the same plan, of other reports.
        same_people
            Whether people of one may also be in the other, with the permanent answers that they
            keep: as for :meth:`turnout.Tally.merge`.

        Returns
        -------
        GroupedTally
            The groups of both; groups with equal keys are added.

        Raises
        ------
        PlanMismatchError
            If the plans differ.
        InvalidValueError
            If the columns differ, or both share a collection, which would count twice.
        InvalidTypeError
            If ``other`` is not a grouped tally, or a column has values of another type.
        """
        _arguments.instance("other", other, GroupedTally, "a GroupedTally")
        if other._names != self._names:
            raise InvalidValueError(
                f"other must be grouped by {list(self._names)}, got {list(other._names)}"
            )
        self._plan._check_same(other._plan, "other")
        keys.check_columns(self._names, [*self._tallies, *other._tallies])
        self._origin.refuse_shared(other._origin)
        _arguments.instance("same_people", same_people, bool, "True or False")
        merged, added = dict(self._tallies), other._tallies
        if not same_people:
            merged, added = tallies_of_different_people([merged, added])
        for key, tally in added.items():
            # Of one plan object, tallies need not compare their domains.
            same = _rebuilt(self._plan, tally)
            merged[key] = merged[key].merge(same) if key in merged else same
        ordered = {key: merged[key] for key in keys.in_order(merged)}
        of_no_group = self._of_no_group + other._of_no_group
        both = self._origin + other._origin
        return self._made(self._names, self._plan, ordered, both, of_no_group)

    def __add__(self, other: object) -> GroupedTally[T]:
        """Merge two grouped tallies."""
        return self.merge(other) if isinstance(other, GroupedTally) else NotImplemented

    def __radd__(self, other: object) -> GroupedTally[T]:
        """Let ``sum`` start at zero."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def over(self, *names: str) -> GroupedTally[T]:
        """Merge the groups that agree in some columns, and drop the other columns.

        Parameters
        ----------
        *names
            The columns to keep, in the desired order.

        Returns
        -------
        GroupedTally
            The tally grouped by only these columns.

        Raises
        ------
        InvalidValueError
            If a name is not a column of the groups, no name is given, or a name is duplicated.
        InvalidTypeError
            If a name is not text.

        Examples
        --------
        >>> import turnout as tn
        >>> one, two = (tn.DirectEncoding(1.0, 2).collect([0, 1]) for day in range(2))
        >>> grouped = GroupedTally(["country", "day"], {("DE", 1): one, ("DE", 2): two})
        >>> grouped.over("country")["DE"].received
        4
        """
        wanted = keys.checked_names(names)
        places = [self._place(name) for name in wanted]
        parts: dict[Key, list[T]] = {}
        for key, tally in self._tallies.items():
            parts.setdefault(tuple(key[place] for place in places), []).append(tally)
        merged = {key: _merged(self._plan, parts[key]) for key in keys.in_order(parts)}
        return self._made(wanted, self._plan, merged, self._origin, self._of_no_group)

    def select(self, values: Mapping[str, Any] | None = None, /, **columns: Any) -> GroupedTally:
        """Return only some groups, with the left-out rows of these groups.

        Parameters
        ----------
        values
            Conditions by the name of the column, for names that are not Python identifiers.
        **columns
            For a column the value to keep, a list or set of such values, or a function that returns
            whether a value is kept.

        Returns
        -------
        GroupedTally
            The groups that meet all conditions, possibly none.

        Raises
        ------
        InvalidValueError
            If a name is not a column of the groups.
        InvalidTypeError
            If a value cannot be in a key.

        Examples
        --------
        >>> import turnout as tn
        >>> one, two = (tn.DirectEncoding(1.0, 2).collect([0, 1]) for day in range(2))
        >>> grouped = GroupedTally(["country", "day"], {("DE", 1): one, ("FR", 2): two})
        >>> list(grouped.select(country=["DE", "NL"], day=lambda day: day < 5))
        [('DE', 1)]
        """
        conditions = {**(values or {}), **columns}
        tests = [(self._place(name), keys.kept_by(name, kept)) for name, kept in conditions.items()]
        chosen = {
            key: tally
            for key, tally in self._tallies.items()
            if all(test(key[place]) for place, test in tests)
        }
        origin = self._origin if len(chosen) == len(self) else _of_all(chosen)
        return self._made(self._names, self._plan, chosen, origin)

    def _place(self, name: Any) -> int:
        if name not in self._names:
            raise InvalidValueError(
                f"{_arguments.shown(name)} is not a column of the groups: expected one of "
                f"{list(self._names)}"
            )
        return self._names.index(name)

    def estimate(self, method: str | None = None) -> Any:
        """Estimate the answer to the question in each group.

        Parameters
        ----------
        method
            The estimator, as for the kind's ``tally.estimate``, with the same default.

        Returns
        -------
        GroupedEstimate, GroupedMeanEstimate or GroupedDistributionEstimate
            The shares, the mean, or the distribution of each group, with standard errors and
            intervals. A group without reports is kept, with the reason why it has no estimate.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        EstimatorError
            If the method does not apply to this participation.

        Examples
        --------
        >>> import turnout as tn
        >>> tally = tn.DirectEncoding(2.0, 2).simulate([8000, 2000], seed=1)
        >>> GroupedTally(["country"], {"DE": tally}).estimate()["DE"].frequencies.round(1)
        array([0.8, 0.2])
        """
        return self.oracle._grouped_type(self, method)

    def to_bytes(self) -> bytes:
        """Write the tallies: see :mod:`turnout.collecting.tally_encoding` for the layout.

        Returns
        -------
        bytes
            A versioned encoding with a checksum.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written.
        """
        return encode_groups(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> GroupedTally[Any]:
        """Read what :meth:`to_bytes` wrote.

        Parameters
        ----------
        data
            The bytes of one grouped tally.

        Returns
        -------
        GroupedTally
            An equal grouped tally.

        Raises
        ------
        UnsupportedVersionError
            If they are of a version that this release does not read.
        CorruptDataError
            If they are truncated, altered, or not a grouped tally.
        InvalidTypeError
            If ``data`` is not bytes.
        """
        names, tallies, plan, more = decode_groups(data)
        made = cls(names, tallies, plan=plan, **more)
        if list(made) != list(tallies):
            raise CorruptDataError("the groups of the grouped tally are not in order")
        return made

    def __eq__(self, other: object) -> bool:
        """Compare columns, plans, keys and all counts exactly."""
        if not isinstance(other, GroupedTally):
            return NotImplemented
        return (
            self._names == other._names
            and self._plan == other._plan
            and self._of_no_group == other._of_no_group
            and list(map(keys.typed, self._tallies)) == list(map(keys.typed, other._tallies))
            and list(self._tallies.values()) == list(other._tallies.values())
        )

    def __hash__(self) -> int:
        """Hash of the columns and the counts."""
        return hash((self._names, self._plan, tuple(self._tallies.items())))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Copy and pickle the columns, the plan and the tallies."""
        more = self._origin, self._of_no_group
        return self._made, (self._names, self._plan, self._tallies, *more)

    def __repr__(self) -> str:
        """Show the columns and the numbers of groups and reports."""
        found = self.left_out
        without = f", left out: {found}" if found else ""
        return (
            f"GroupedTally({len(self)} groups by {', '.join(self._names)}: {self.received} reports "
            f"of {self.nodes} nodes{without}, {self.oracle!r}, {self.participation!r})"
        )


def _under(plan: Plan, tally: T, what: str) -> T:
    """Return the tally with the common plan object, after checking that the plans are equal."""
    if tally.plan is not plan:
        plan._check_same(tally.plan, what)
    return _rebuilt(plan, tally)


def _rebuilt(plan: Plan, tally: T) -> T:
    return tally if tally.plan is plan else replace(tally, plan=plan)


def _of_all(tallies: Mapping[Key, Any]) -> Origin:
    return Origin.of_all(tally.origin for tally in tallies.values())


def in_one_round(counted: Any) -> Any:
    """Return a tally, or groups, with all nodes as different people."""
    if isinstance(counted, GroupedTally):
        names, plan, origin = counted.names, counted.plan, counted.origin
        tallies = tallies_in_one_round(dict(counted.items()))
        return GroupedTally._made(names, plan, tallies, origin, counted.of_no_group)
    return tallies_in_one_round({(): counted})[()]


def _merged(plan: Plan, tallies: list[T]) -> T:
    """Add tallies of one plan."""
    if not tallies:
        empty: T = plan.oracle.tally_type.empty(plan)
        return empty
    # Two by two: what a sum knows of its collections and rounds grows with their number.
    while len(tallies) > 1:
        pairs = zip(tallies[::2], tallies[1::2], strict=False)
        odd = tallies[-1:] if len(tallies) % 2 else []
        tallies = [*(one.merge(other) for one, other in pairs), *odd]
    return tallies[0]
