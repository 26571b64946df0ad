"""Separate estimates of groups, as one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from turnout import _arguments
from turnout._tables import WithGroups
from turnout.collecting.estimate import COUNTED, counts_of
from turnout.collecting.intervals import each_level
from turnout.collecting.keys import Key
from turnout.errors import InvalidValueError

E = TypeVar("E")


class EstimatesOfGroups(WithGroups, Mapping[Key, E]):
    """The estimate of each group that has one.

    Parameters
    ----------
    names
        The columns of the groups.
    counted
        The numbers of nodes and reports of each group.
    estimates
        The estimate of each group that has one.
    unknown
        The rows of a group without an estimate.
    reasons
        The reason why a group has no estimate.
    within
        The columns of groups within each group, which the rows of its estimate have.
    """

    def __init__(
        self,
        names: Sequence[str],
        counted: Mapping[Key, Any],
        estimates: Mapping[Key, E],
        unknown: Sequence[Mapping[str, Any]],
        *,
        reasons: Mapping[Key, str] = MappingProxyType({}),
        within: Sequence[str] = (),
    ) -> None:
        self._by, self._within = tuple(names), tuple(within)
        self._counted, self._estimates = dict(counted), dict(estimates)
        self._unknown, self._reasons = unknown, dict(reasons)
        shown = [name for name in unknown[0] if name != "group"]
        self._columns = (*COUNTED, *shown, "reason")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the groups."""
        return (*self._by, *self._within)

    @property
    def reasons(self) -> Mapping[Key, str]:
        """The reason for each group without an estimate."""
        return MappingProxyType(self._reasons)

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return self.names

    def __getitem__(self, key: Any) -> E:
        """Return the estimate of a group, by its value or the tuple of its values."""
        found = key if isinstance(key, tuple) else (key,)
        if found not in self._estimates:
            reason = self._reasons.get(found, "there is no such group")
            raise InvalidValueError(f"no estimate for {_arguments.shown(key)}: {reason}")
        estimate: E = self._estimates[found]
        return estimate

    def __iter__(self) -> Iterator[Key]:
        """List the groups that have an estimate."""
        return iter(self._estimates)

    def __len__(self) -> int:
        """Count the groups that have an estimate."""
        return len(self._estimates)

    def __repr__(self) -> str:
        """Show the number of groups."""
        return f"{type(self).__name__}({len(self._counted)} groups by {', '.join(self.names)})"

    def to_records(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> list[dict[str, Any]]:
        """List the results of each group, for tables and programs.

        Parameters
        ----------
        level, simultaneous, over
            As for :meth:`turnout.frequency.groups.GroupedEstimate.interval`.
        top
            List only this many answers of each group, those with its largest shares.

        Returns
        -------
        list of dict
            Dictionaries with ``group`` (a dictionary of the columns), ``nodes``, ``received``, the
            entries of ``to_records`` of the estimate of a group, and ``reason``: why there is no
            estimate, else None.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or not one of the allowed values.
        """
        level = each_level(level, simultaneous, over, len(self._unknown), max(1, len(self)))
        options = {} if top is None else {"top": top}
        records = []
        for key, counted in self._counted.items():
            reason = self._reasons.get(key)
            estimate: Any = self._estimates.get(key)
            for row in self._unknown if reason else estimate.to_records(level, **options):
                parts = (*key, *row.get("group", {}).values())
                group = {"group": dict(zip(self.names, parts, strict=True))}
                head = {**group, **counts_of(counted)}
                records.append({**head, **row, **group, "reason": reason})
        return records
