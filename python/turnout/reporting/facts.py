"""What a collection knows of the rows that it read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turnout import _arguments
from turnout.errors import InvalidValueError


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
