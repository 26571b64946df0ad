"""Describe how records of tables are drawn, in the form that a job keeps; all of it is public."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._documents import check_version
from turnout.errors import CorruptDataError
from turnout.samplers.tables.sampler import TableSampler

_FORMAT: Final = "turnout-records"
#: Another one also where the same streams would give other records.
_VERSION: Final = 1


@dataclass(frozen=True)
class TablePlan:
    """A public description of how records of tables are drawn.

    Attributes
    ----------
    epsilon
        Privacy of one record.
    columns
        What each column may hold, as one text for each column.
    reference
        A digest of the public distribution.
    method
        How a draw is made.
    """

    epsilon: float
    columns: tuple[str, ...]
    reference: str
    method: str

    @classmethod
    def of(cls, sampler: TableSampler) -> TablePlan:
        """Describe a sampler.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter cannot be used.
        """
        public = sampler._public()
        digest = hashlib.sha256()
        for child, parent, table in public.reference.steps:
            # Powers of functions differ in the last digits between machines, sums and ratios less.
            digest.update(f"{child} {parent} {np.round(table, 9).tolist()}\n".encode())
        columns = tuple(map(repr, public.columns))
        return cls(public.epsilon, columns, digest.hexdigest(), public.method)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "epsilon": self.epsilon,
            "columns": list(self.columns),
            "reference": self.reference,
            "method": self.method,
        }

    @staticmethod
    def described(given: Any) -> bool:
        """Return whether JSON values are meant to be such a plan."""
        return isinstance(given, dict) and given.get("format") == _FORMAT

    @classmethod
    def from_dict(cls, given: Any) -> TablePlan:
        """Read a plan from what :meth:`to_dict` returned.

        Raises
        ------
        CorruptDataError, UnsupportedVersionError
            If it is not a plan, or is of another version.
        """
        check_version("plan of records", given, _FORMAT, _VERSION)
        match given:
            case {
                "format": _,
                "version": _,
                "epsilon": float(epsilon),
                "columns": list(columns),
                "reference": str(reference),
                "method": str(method),
                **rest,
            } if not rest and all(isinstance(column, str) for column in columns):
                return cls(epsilon, tuple(columns), reference, method)
        raise CorruptDataError(f"not a plan of records: {_arguments.shown(given)}")

    def __str__(self) -> str:
        names = ", ".join(column.split("'")[1] for column in self.columns)
        return (
            f"records of {names} at epsilon = {self.epsilon!r} by {self.method!r} "
            f"(reference {self.reference[:8]})"
        )
