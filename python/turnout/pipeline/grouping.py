"""Groups of rows: which country, which version, which day."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from turnout._arrow import to_numpy
from turnout._extras import require
from turnout._types import Array
from turnout.errors import InvalidValueError
from turnout.pipeline.dictionaries import encoded, listed, plain

#: Codes below this are renumbered through a table.
_SMALL: Final = 2**22


@dataclass(frozen=True, eq=False)
class GroupIndex:
    """Which group each row of a block is in.

    Attributes
    ----------
    keys
        The groups in order of first appearance: tuples with one plain Python value for each
        column; None where it is missing.
    index
        For each row that counts the position of its group in ``keys``.
    """

    keys: list[tuple[Any, ...]]
    index: npt.NDArray[np.int32]


def groups_of(
    table: Any,
    columns: Sequence[str],
    max_groups: int,
    name: str,
    missing_values: Container[str] = (),
) -> GroupIndex:
    """Index the groups of the rows of a table.

    Parameters
    ----------
    table, columns
        A ``pyarrow.Table`` and those of its columns that make up the groups.
    max_groups
        The largest number of groups that is accepted.
    name
        What messages call the source.
    missing_values
        Texts that stand for a missing value, beside nulls and NaN.

    Raises
    ------
    InvalidValueError
        If there are more groups.
    """
    code = np.zeros(table.num_rows, np.int64)
    keys: list[tuple[Any, ...]] = [()] if table.num_rows else []
    for column in columns:
        values, index = _values(table.column(column), f"{name}: column {column!r}", missing_values)
        code = code * len(values) + index
        code, present = _compact(code, len(keys) * len(values))
        if present.size > max_groups:
            raise InvalidValueError(
                f"{name}: group_by makes more than {max_groups:,} groups (column {column!r}); "
                "group by columns with few values, or raise max_groups"
            )
        pairs = zip(
            (present // len(values)).tolist(), (present % len(values)).tolist(), strict=True
        )
        keys = [(*keys[before], values[now]) for before, now in pairs]
    return GroupIndex(keys, code.astype(np.int32))


def _values(column: Any, name: str, missing_values: Container[str]) -> tuple[list[Any], Array]:
    """List the values that occur in a column, in order of first appearance, and each row's."""
    pa = require("pyarrow", "cli")
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz))
    position: dict[Any, int] = {}
    parts = []
    for chunk in column.chunks:
        array = encoded(pa, chunk, name)
        if array is None:
            values, index = [None], np.zeros(len(chunk), np.int64)
        else:
            values = [*_group_values(pa, array.dictionary, name), None]
            indices = array.indices.cast(pa.int64())
            index = to_numpy(indices.fill_null(len(values) - 1))
        index, present = _compact(index, len(values))
        kept = (_group_key(values[i], missing_values) for i in present.tolist())
        target = np.fromiter(
            (position.setdefault(value, len(position)) for value in kept), np.int64, present.size
        )
        parts.append(target[index] if present.size else index)
    keys = [value[1] for value in position]
    return keys or [None], np.concatenate([np.empty(0, np.int64), *parts])


def _group_key(value: Any, missing_values: Container[str]) -> tuple[type, Any]:
    """Keep True and 1 apart; NaN and some texts are missing, and there is one zero."""
    if isinstance(value, str) and value in missing_values:
        value = None
    if isinstance(value, float):
        value = None if math.isnan(value) else value + 0.0
    return type(value), value


def _group_values(pa: Any, dictionary: Any, name: str) -> list[Any]:
    kept = pa.types.is_date(dictionary.type) or pa.types.is_timestamp(dictionary.type)
    values = dictionary if kept else plain(pa, dictionary, name)
    return listed(values, name)


def _compact(code: Array, size: int) -> tuple[Array, Array]:
    """Renumber codes below ``size`` in order of first appearance; also give the old codes."""
    if not code.size:
        return code, np.empty(0, np.int64)
    if size <= max(_SMALL, 4 * code.size):
        first = np.full(size, code.size, np.int64)
        first[code[::-1]] = np.arange(code.size - 1, -1, -1)
        present = np.flatnonzero(first < code.size)
        present = present[np.argsort(first[present], kind="stable")]
        target = np.zeros(size, np.int64)
        target[present] = np.arange(present.size)
        return target[code], present
    unique, first, index = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    target = np.empty(order.size, np.int64)
    target[order] = np.arange(order.size)
    return target[index], unique[order]
