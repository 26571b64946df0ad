"""What the results of groups that were each estimated by themselves have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from turnout import _arguments
from turnout._tables import Tabular
from turnout.errors import InvalidValueError

E = TypeVar("E")


class EstimatesOfGroups(Tabular, Mapping[tuple[Any, ...], E]):
    """The estimate of each group that has one.

    Parameters
    ----------
    names
        The columns of the groups.
    estimates
        The estimate of each.
    """

    def __init__(self, names: tuple[str, ...], estimates: Mapping[tuple[Any, ...], E]) -> None:
        self._names, self._estimates = names, dict(estimates)
        #: Why other groups have none.
        self._reasons: dict[tuple[Any, ...], str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the groups."""
        return self._names

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return self._names

    def __getitem__(self, key: Any) -> E:
        """Give the estimate of a group, by its value or the tuple of its values."""
        found = key if isinstance(key, tuple) else (key,)
        if found not in self._estimates:
            reason = self._reasons.get(found, "there is no such group")
            raise InvalidValueError(f"no estimate for {_arguments.shown(key)}: {reason}")
        estimate: E = self._estimates[found]
        return estimate

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """List the groups that have an estimate."""
        return iter(self._estimates)

    def __len__(self) -> int:
        """Count the groups that have an estimate."""
        return len(self._estimates)

    def __repr__(self) -> str:
        """Show how many groups there are."""
        number = len(self._estimates) + len(self._reasons)
        return f"{type(self).__name__}({number} groups by {', '.join(self._names)})"
