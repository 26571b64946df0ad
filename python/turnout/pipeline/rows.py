"""Rows of a block, and missing answers in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout._extras import require
from turnout._label_texts import label_text
from turnout._types import Array, Truths
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.pipeline.columns import factors, rows_text
from turnout.pipeline.sources import Block

#: So many different ones are listed.
_SHOWN: Final = 5


def is_missing(value: Any, missing_values: Container[str]) -> bool:
    """Return whether a value is missing: a null, NaN, or one of some texts.

    Examples
    --------
    >>> is_missing(float("nan"), ()), is_missing(-9.0, ["-9"]), is_missing("no", ["?"])
    (True, True, False)
    """
    if value is None:
        return True
    if isinstance(value, float):
        if math.isnan(value):
            return True
        if value.is_integer() and str(int(value)) in missing_values:
            return True
    return label_text(value) in missing_values


def trimmed(value: Any) -> Any:
    """Remove white space around a text; return other values unchanged.

    Examples
    --------
    >>> trimmed(" yes "), trimmed(3)
    ('yes', 3)
    """
    return value.strip() if isinstance(value, str) else value


class Gaps:
    """The values that stand for missing answers, with their counts.

    Examples
    --------
    >>> gaps = Gaps()
    >>> gaps.add("None", 4126)
    >>> gaps.add(None, 3)
    >>> print(gaps)
    'None' 4,126 times, empty 3 times
    >>> gaps.total, gaps.texts(given=[])
    (4129, {"'None'": 4126})
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._texts: dict[str, str] = {}

    @classmethod
    def of(cls, column: Any, where: Truths, name: str) -> Gaps:
        """Count the values that stand for missing answers in some rows of a column."""
        found, start = cls(), 0
        for values, index in factors(column, name):
            gone = index[where[start : start + len(index)]]
            counts = np.bincount(gone, minlength=len(values))
            for place in np.flatnonzero(counts).tolist():
                found.add(values[place], int(counts[place]))
            start += len(index)
        return found

    def add(self, value: Any, number: int) -> None:
        """Count a value that stands for a missing answer."""
        if value is None:
            shown = "empty"
        elif isinstance(value, str):
            shown = repr(value)
            self._texts[shown] = value
        elif isinstance(value, float) and value.is_integer():
            shown = str(int(value))
        else:
            shown = "NaN" if value != value else label_text(value)  # noqa: PLR0124
        self._counts[shown] += number

    @property
    def total(self) -> int:
        """The number of missing answers."""
        return self._counts.total()

    def texts(self, given: Iterable[str]) -> dict[str, int]:
        """List the texts that might be answers, the most frequent first, with their counts.

        Parameters
        ----------
        given
            Texts that were stated to be none.
        """
        none = {"", *given}
        return {
            shown: number
            for shown, number in self._counts.most_common()
            if self._texts.get(shown, "") not in none
        }

    def refused(self, name: str, rows: int, where: str, labels: str) -> InvalidValueError:
        """Return the error for missing answers without a rule.

        Parameters
        ----------
        name
            What messages call the column.
        rows
            How many rows were looked at.
        where
            Which rows these are.
        labels
            What can be reported in place of a missing answer.
        """
        named = "; if one of these texts is an answer, labels (--labels) states it with the others"
        texts = named if self.texts([]) and "label" in labels else ""
        return InvalidValueError(
            f"{name}: {self.total:,} of {rows:,} answers are missing{where}: {self}. "
            f"Pass missing (--missing), of survey and turnout.pipeline.scan, as {labels}, "
            f"or 'drop' to leave these rows out{texts}"
        )

    def __str__(self) -> str:
        """List the values that stand for missing answers, the most frequent first."""
        common = self._counts.most_common(_SHOWN)
        said = [f"{shown} {number:,} time{'s' * (number > 1)}" for shown, number in common]
        more = len(self._counts) - len(said)
        return ", ".join(said) + (f" and {more:,} others" if more else "")


@dataclass(frozen=True)
class Rows:
    """The rows of a block that still count.

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
        self,
        column: Any,
        name: str,
        values: Array,
        missing: Truths | None,
        rule: Any,
        *,
        labels: str,
    ) -> tuple[Array, Truths | None]:
        """Replace missing answers with their label, or return the dropped rows.

        Parameters
        ----------
        column, name
            The column, and what messages call it.
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
            where = f" ({self.text(np.flatnonzero(missing))})"
            raise Gaps.of(column, missing, name).refused(name, missing.size, where, labels)
        if rule == "drop":
            return values, missing
        values = np.array(values)
        values[missing] = rule
        return values, None


def kept(table: Any, keep: Truths) -> Any:
    """Keep some rows of a table."""
    pa = require("pyarrow", "cli")
    for position, item in enumerate(table.schema):
        if pa.types.is_string_view(item.type):
            # Arrow cannot filter views.
            column = table.column(position).cast(pa.large_string())
            table = table.set_column(position, item.name, column)
    return table.filter(pa.array(keep))


def rows_of(block: Block, name: str, *, looked_for: bool) -> Rows:
    """Read a block, dropping duplicate rows of a person.

    Parameters
    ----------
    block, name
        The block, and what messages call its source.
    looked_for
        Whether somebody has looked for these.

    Raises
    ------
    InvalidValueError
        If nobody has, and should have.
    CorruptDataError
        If the block cannot be read.
    """
    if looked_for and block.left_out is None:
        raise InvalidValueError(
            "block must be one of the blocks of these answers, which know the persons of their rows"
        )
    table = block.read()
    if table.num_rows != block.rows:
        raise CorruptDataError(
            f"{name}: block {block.index} has {table.num_rows:,} rows, and was said to have "
            f"{block.rows:,}"
        )
    rows = Rows(table, block.start)
    if block.left_out is None or not block.left_out.size:
        return rows
    keep = np.ones(block.rows, bool)
    keep[block.left_out] = False
    return rows.kept(keep)
