"""Rows of a source that count, and a source whose rows are in another process."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from turnout._extras import require
from turnout._types import Array, Truths
from turnout.errors import InvalidValueError
from turnout.pipeline.dictionaries import rows_text
from turnout.pipeline.grouping import GroupIndex
from turnout.pipeline.labels import WAY_OUT
from turnout.pipeline.sources import Block, Source


class Elsewhere(Source):
    """Stands for a source in another process."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.rows = source.rows
        self.block_rows = source.block_rows
        self.fingerprint = source.fingerprint
        self.repeatable = False
        self.texts = source.texts

    @property
    def schema(self) -> Any:
        """Refuse."""
        raise InvalidValueError(f"{self.name} is in another process")

    def blocks(
        self,
        columns: Sequence[str],
        *,
        skip: Container[int] = (),
        categories: Container[str] = (),
    ) -> Iterator[Block]:
        """Refuse."""
        raise InvalidValueError(f"{self.name} is in another process: list its blocks there")


@dataclass(frozen=True)
class Rows:
    """Rows of a block that still count.

    Attributes
    ----------
    table
        The columns of these rows.
    first
        The number of the block's first row in the source.
    numbers
        The place of each in the block; None if all are there.
    """

    table: Any
    first: int
    numbers: Array | None = None

    def kept(self, keep: Truths) -> Rows:
        """Keep some of the rows."""
        numbers = np.flatnonzero(keep) if self.numbers is None else self.numbers[keep]
        return Rows(kept(self.table, keep), self.first, numbers)

    def text(self, positions: Array) -> str:
        """Name the first of the rows at some positions."""
        return rows_text(
            (positions if self.numbers is None else self.numbers[positions]) + self.first
        )

    def answered(
        self, name: str, values: Array, missing: Truths | None, rule: Any, labels: str
    ) -> tuple[Array, Truths | None]:
        """Put in what is reported where an answer is missing, or say which rows are dropped.

        Parameters
        ----------
        name
            What messages call the column.
        values, missing
            What is reported of each row, and where an answer is missing.
        rule
            What is reported there; None refuses, ``"drop"`` leaves the row out.
        labels
            What messages say can be reported.

        Raises
        ------
        InvalidValueError
            If an answer is missing and that is refused.
        """
        if missing is None or not missing.any():
            return values, None
        if rule is None:
            found = np.flatnonzero(missing)
            raise InvalidValueError(
                f"{name}: {found.size:,} of {missing.size:,} answers are missing "
                f"({self.text(found)}); {WAY_OUT.format(labels)}"
            )
        if rule == "drop":
            return values, missing
        values = np.array(values)
        values[missing] = rule
        return values, None


def without_group(groups: GroupIndex, looked_at: Sequence[bool]) -> Truths | None:
    """Say which rows have no value in some of the columns of groups; None if all have."""
    gaps = np.array([None in compress(key, looked_at) for key in groups.keys], bool)
    return gaps[groups.index] if gaps.any() else None


def kept(table: Any, keep: Truths) -> Any:
    """Keep some rows of a table."""
    pa = require("pyarrow", "cli")
    for position, item in enumerate(table.schema):
        if pa.types.is_string_view(item.type):
            # Arrow cannot filter views.
            column = table.column(position).cast(pa.large_string())
            table = table.set_column(position, item.name, column)
    return table.filter(pa.array(keep))
