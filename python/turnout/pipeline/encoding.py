"""From the columns of a block to codes, groups and pseudonyms.

Whatever has to be decided about a value is decided once a distinct value of a stretch of a column;
rows are mapped through an index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from turnout import _arguments, _columns
from turnout._extras import require
from turnout._types import Array, Bytes, Floats, Truths
from turnout.errors import CodeOutsideDomainError, UnknownLabelError
from turnout.pipeline.dictionaries import factors
from turnout.pipeline.grouping import GroupIndex
from turnout.pipeline.labels import MISSING, UNKNOWN, Labels
from turnout.pipeline.rows import Rows

_AT_ONCE: Final = 2**16


@dataclass(frozen=True, eq=False)
class EncodedBlock:
    """The rows of a block that count, ready to be randomized. This is private data.

    Attributes
    ----------
    index
        The number of the block.
    codes
        The code of each row that counts, in order; of several columns by name a list of such.
    probabilities
        The probability of each, or None.
    groups
        The group of each, or None.
    pseudonyms
        The pseudonym of each, 16 bytes a row, or None.
    rows
        How many rows the block has.
    dropped
        How many were left out because their answer is missing.
    duplicates
        How many were left out because another row of the same person counts.
    """

    index: int
    codes: Any = field(repr=False)
    probabilities: Floats | None = field(repr=False)
    groups: GroupIndex | None = field(repr=False)
    pseudonyms: Bytes | None = field(repr=False)
    rows: int
    dropped: int
    duplicates: int

    @property
    def nodes(self) -> int:
        """How many rows count."""
        return self.rows - self.dropped - self.duplicates


def codes_of(labels: Labels, column: Any, rows: Rows) -> tuple[Array, Truths | None]:
    """Codes of a column.

    Parameters
    ----------
    labels
        How values become codes.
    column
        A ``pyarrow.ChunkedArray``.
    rows
        The rows that it is of.

    Returns
    -------
    codes : numpy.ndarray
        A code for each entry; any code where it is dropped.
    dropped : numpy.ndarray or None
        Which entries are dropped; None if none is.

    Raises
    ------
    UnknownLabelError, CodeOutsideDomainError
        If a value is no label.
    InvalidValueError
        If a value is missing and nothing says what that means.
    """
    types = require("pyarrow", "cli").types
    direct = labels.domain.are_codes and not labels.texts
    if direct and (types.is_integer(column.type) or types.is_floating(column.type)):
        codes, missing = _numbers(column, labels, rows)
    else:
        codes, missing = _through_dictionaries(column, labels, rows)
    return rows.answered(labels.name, codes, missing, labels.missing, "one of the labels")


def _numbers(column: Any, labels: Labels, rows: Rows) -> tuple[Array, Truths | None]:
    """Take numbers that are codes themselves: one chunk without nulls is not copied."""
    pa = require("pyarrow", "cli")
    gaps: list[Truths] = []
    if column.null_count:
        gaps.append(column.is_null().to_numpy())
        column = column.fill_null(0)
    parts = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
    values = np.concatenate(parts or [np.empty(0, np.int64)]) if len(parts) != 1 else parts[0]
    floating = bool(pa.types.is_floating(column.type))
    if floating:
        gaps.append(np.isnan(values))
    integers = labels.missing_integers()
    if integers:
        gaps.append(np.isin(values, integers))
    missing = np.logical_or.reduce(gaps) if gaps else None
    if missing is not None and missing.any():
        values = np.where(missing, values.dtype.type(0), values)
    else:
        missing = None
    size = labels.domain.size
    whole = not floating or bool((values == np.floor(values)).all())
    if values.size and not (values.min() >= 0 and values.max() < size and whole):
        wrong = ~((values >= 0) & (values < size))
        if floating:
            wrong |= values != np.floor(values)
        positions = np.flatnonzero(wrong)
        shown = list(dict.fromkeys(values[positions[:1000]].tolist()))
        raise CodeOutsideDomainError(
            f"{labels.name}: {positions.size:,} values are not codes of the domain, whole numbers "
            f"from 0 to {size - 1}: {_arguments.listed(shown)} ({rows.text(positions)})"
        )
    if values.dtype not in _columns.NATIVE:
        values = values.astype(np.int64)
    return values, missing


def _through_dictionaries(column: Any, labels: Labels, rows: Rows) -> tuple[Array, Truths | None]:
    """Look distinct values up and map each row's index."""
    tables: list[tuple[Array, Array]] = []
    unknown: dict[Any, None] = {}
    wrong: list[Array] = []
    start, gaps = 0, False
    previous: list[Any] = []
    table = np.empty(0, np.int64)
    dtype = np.dtype(np.int64) if labels.domain.are_codes else labels.domain.code_dtype
    for distinct, index in factors(column, labels.name):
        if distinct is not previous:
            table = np.fromiter(map(labels.code, distinct), np.int64, len(distinct))
            previous = distinct
        if (table[:-1] < 0).any() or (index == len(distinct) - 1).any():
            used = np.bincount(index, minlength=len(distinct)) > 0
            bad = used & (table == UNKNOWN)
            if bad.any():
                unknown.update((_columns.key(distinct[i]), None) for i in np.flatnonzero(bad))
                wrong.append(np.flatnonzero(bad[index]) + start)
            gaps = gaps or bool((used & (table == MISSING)).any())
        tables.append((table, index))
        start += len(index)
    if wrong:
        found = np.concatenate(wrong)
        raise UnknownLabelError(
            f"{labels.name}: {found.size:,} values are not among {labels.domain.words}: "
            f"{_arguments.listed(unknown)} ({rows.text(found)})"
        )
    codes = [(np.maximum(table, 0).astype(dtype), index) for table, index in tables]
    missing = [(table == MISSING, index) for table, index in tables]
    return _looked_up(codes, dtype), _looked_up(missing, np.dtype(bool)) if gaps else None


def _looked_up(tables: list[tuple[Array, Array]], dtype: np.dtype[Any]) -> Array:
    """Look the entries of an index up, a few at once: NumPy widens them to 64 bits."""
    found = np.empty(sum(len(index) for _, index in tables), dtype)
    place = 0
    for table, index in tables:
        for start in range(0, len(index), _AT_ONCE):
            few = index[start : start + _AT_ONCE]
            found[place : place + len(few)] = table.take(few)
            place += len(few)
    return found
