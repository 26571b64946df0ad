"""Groups of rows: which country, which version, which day."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from turnout import _arguments
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


def group_kind(stored: Any) -> str:
    """Name the Arrow type in which the groups of a column of some type are stored."""
    types = require("pyarrow", "cli").types
    if types.is_dictionary(stored):
        stored = stored.value_type
    if types.is_timestamp(stored):
        return "timestamp" if stored.tz is None else "timestamp UTC"
    kinds = {
        "bool": types.is_boolean,
        "int64": types.is_integer,
        "double": types.is_floating,
        "date32": types.is_date,
    }
    return next((kind for kind, fits in kinds.items() if fits(stored)), "string")


def group_type(kind: str) -> Any:
    """Give the Arrow type of that name."""
    pa = require("pyarrow", "cli")
    if kind.startswith("timestamp"):
        return pa.timestamp("us", "UTC" if kind.endswith("UTC") else None)
    return pa.type_for_alias(kind)


def group_label(column: str, stored: Any, label: Any) -> Any:
    """Take the group of who has none as a value of the column's type, of which it may be the text.

    Raises
    ------
    InvalidValueError
        If it is none.
    """
    pa, kind = require("pyarrow", "cli"), group_kind(stored)
    try:
        return pa.scalar(label).cast(group_type(kind)).as_py()
    except pa.ArrowException as error:
        raise _arguments.invalid(
            f"missing[{column!r}] must be 'drop' or a group, of the type {kind}", label
        ) from error


def groups_of(
    table: Any,
    columns: Mapping[str, Any],
    max_groups: int,
    name: str,
    missing_values: Container[str] = (),
) -> GroupIndex:
    """Index the groups of the rows of a table.

    Parameters
    ----------
    table, columns
        A ``pyarrow.Table``, and those of its columns that make up the groups, each with the group
        of who has none; None if there is no such group.
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
    for column, label in columns.items():
        place = f"{name}: column {column!r}"
        values, index = _values(table.column(column), place, missing_values, label)
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


def _values(
    column: Any, name: str, missing_values: Container[str], label: Any
) -> tuple[list[Any], Array]:
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
        kept = (_group_key(values[i], missing_values, label) for i in present.tolist())
        target = np.fromiter(
            (position.setdefault(value, len(position)) for value in kept), np.int64, present.size
        )
        parts.append(target[index] if present.size else index)
    keys = [value[1] for value in position]
    return keys or [label], np.concatenate([np.empty(0, np.int64), *parts])


def _group_key(value: Any, missing_values: Container[str], label: Any) -> tuple[type, Any]:
    """Keep True and 1 apart; NaN and some texts are missing, and there is one zero."""
    if isinstance(value, str) and value in missing_values:
        value = None
    if isinstance(value, float):
        value = None if math.isnan(value) else value + 0.0
    if value is None:
        value = label
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
