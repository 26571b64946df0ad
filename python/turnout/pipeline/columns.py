"""Arrow columns as distinct values with an index, groups of rows, and digests of rows."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._arrays import to_numpy
from turnout._columns import unquoted
from turnout._extras import require
from turnout._types import Array, Integers
from turnout.collecting.group_values import Unfit, group_values, needs_look, stored_type
from turnout.collecting.keys import plain_part
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

_SHOWN: Final = 5


def rows_text(rows: Array) -> str:
    """Name the first of some rows; the first row of data is row 1.

    Examples
    --------
    >>> rows_text(np.array([0, 4]))
    'rows 1, 5'
    """
    shown = ", ".join(f"{int(row) + 1:,}" for row in rows[:_SHOWN])
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', ...' if len(rows) > _SHOWN else ''}"


def rows_have(number: int) -> str:
    """Return the beginning of a sentence about what some rows have or lack.

    Examples
    --------
    >>> rows_have(1), rows_have(2000)
    ('1 row has', '2,000 rows have')
    """
    return "1 row has" if number == 1 else f"{number:,} rows have"


def factors(
    column: Any, name: str, *, of_groups: bool = False
) -> Iterator[tuple[list[Any], Array]]:
    """Split an Arrow column into distinct values and, for each row, the index of its value.

    The last of the distinct values is None; nulls point at it. Some may be duplicated, or not
    occur. Chunks with the same dictionary give the same list. Values of other than plain types,
    such as dates, become text, and whole decimals become integers. For groups, decimals become
    text, dates and timestamps stay unchanged, and values that cannot be groups become
    :class:`Unfit`.
    """
    pa = require("pyarrow", "cli")
    dictionary = None
    values: list[Any] = [None]
    for chunk in column.chunks:
        array = encoded(pa, chunk, name)
        if array is None:
            yield [None], np.zeros(len(chunk), np.int32)
            continue
        if dictionary is None or not dictionary.equals(array.dictionary):
            dictionary = array.dictionary
            if of_groups and needs_look(dictionary.type):
                values = [*group_values(dictionary), None]
            elif pa.types.is_decimal(dictionary.type) and not of_groups:
                values = [*map(_number, dictionary.to_pylist()), None]
            else:
                values = [*listed(plain(pa, dictionary, name), name), None]
        indices = array.indices
        if indices.type == pa.uint64():
            # Before release 2 NumPy counts no such numbers.
            indices = indices.cast(pa.int64())
        narrow = indices.type.bit_width < 32 or indices.type == pa.int32()
        if indices.null_count:
            indices = indices.cast(pa.int32() if narrow else pa.int64()).fill_null(len(values) - 1)
        yield values, to_numpy(indices)


def encoded(pa: Any, chunk: Any, name: str) -> Any:
    """Return an array as a dictionary array; None for an array of nulls."""
    kind = chunk.type
    if isinstance(kind, pa.BaseExtensionType):
        chunk = chunk.storage
        kind = chunk.type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_dictionary(kind):
        return None if pa.types.is_null(kind.value_type) else chunk
    if pa.types.is_decimal(kind) and kind.bit_width < pa.decimal128(1).bit_width:
        # Arrow makes dictionaries of the longer ones only.
        chunk = chunk.cast(pa.decimal128(kind.precision, kind.scale))
    try:
        return chunk.dictionary_encode()
    except pa.ArrowException:
        return plain(pa, chunk, name).dictionary_encode()


def _number(value: Decimal | None) -> int | float | str | None:
    """Return the number that a decimal is: the text of one that no float is written as."""
    if value is None:
        return None
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)


def listed(values: Any, name: str) -> list[Any]:
    """Return the values as a list of Python values."""
    with unquoted(CorruptDataError, f"{name} holds text that is not UTF-8"):
        return values.to_pylist()  # type: ignore[no-any-return]


def _is_plain(types: Any, kind: Any) -> bool:
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
    )


def plain(pa: Any, values: Any, name: str) -> Any:
    """Return the texts of values that are not text, numbers or booleans."""
    if _is_plain(pa.types, values.type):
        return values
    with unquoted(
        InvalidTypeError, f"{name} has type {values.type}, which is not one of categories"
    ):
        return values.cast(pa.string())


#: Codes below this are renumbered through a table.
_SMALL: Final = 2**22


@dataclass(frozen=True, eq=False)
class GroupIndex:
    """An index of the group of each row of a block.

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

    def __repr__(self) -> str:
        """Show the numbers of groups and rows, without the members."""
        return f"<GroupIndex: {len(self.keys):,} groups of {len(self.index):,} rows>"

    @cached_property
    def nodes(self) -> Integers:
        """The number of rows of each group that count."""
        return np.bincount(self.index, minlength=len(self.keys)).astype(np.int64)


def group_type(stored: Any) -> Any:
    """Return the Arrow type in which a column's groups are stored."""
    pa = require("pyarrow", "cli")
    types, stored = pa.types, stored_type(stored)
    if types.is_timestamp(stored):
        return pa.timestamp("us", None if stored.tz is None else "UTC")
    kinds = {
        pa.bool_(): types.is_boolean,
        pa.uint64(): types.is_uint64,
        pa.int64(): types.is_integer,
        pa.float64(): types.is_floating,
        pa.date32(): types.is_date,
    }
    return next((kind for kind, fits in kinds.items() if fits(stored)), pa.string())


def group_label(column: str, stored: Any, label: Any) -> Any:
    """Convert the label of rows without a group, perhaps a text, to the column's type.

    Raises
    ------
    InvalidValueError
        If it is not one.
    """
    pa, kind = require("pyarrow", "cli"), group_type(stored)
    try:
        value = plain_part("missing", pa.scalar(label).cast(kind).as_py())
    except (pa.ArrowException, InvalidValueError) as error:
        raise _arguments.invalid(
            f"missing[{column!r}] must be 'drop' or a group, of the type {kind}", label
        ) from error
    return value


def groups_of(
    table: Any,
    columns: Mapping[str, Any],
    *,
    max_groups: int,
    name: str,
    missing_values: Container[str],
    rows: Callable[[Array], str],
    trim: bool = False,
) -> GroupIndex:
    """Return the group index of the rows of a table.

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
    rows
        Names the rows at some positions.
    trim
        Whether white space around texts is taken off.

    Raises
    ------
    InvalidValueError
        If there are more groups, or a value that no group can have: a date or moment that Python
        has not, or an infinite number.
    """
    code = np.zeros(table.num_rows, np.int64)
    keys: list[tuple[Any, ...]] = [()] if table.num_rows else []
    for column, label in columns.items():
        place = f"{name}: column {column!r}"
        values, index = _values(table.column(column), place, missing_values, label, rows, trim=trim)
        code = code * len(values) + index
        code, present = compact(code, len(keys) * len(values))
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
    column: Any,
    name: str,
    missing_values: Container[str],
    label: Any,
    rows: Callable[[Array], str],
    *,
    trim: bool,
) -> tuple[list[Any], Array]:
    """List the values that occur in a column, in order of first appearance, and each row's."""
    position: dict[Any, int] = {}
    parts = []
    for values, places in factors(column, name, of_groups=True):
        index, present = compact(places.astype(np.int64, copy=False), len(values))
        each = (values[place] for place in present.tolist())
        if trim:
            each = (value.strip() if isinstance(value, str) else value for value in each)
        kept = (_group_key(value, missing_values, label) for value in each)
        target = np.fromiter(
            (position.setdefault(value, len(position)) for value in kept), np.int64, present.size
        )
        parts.append(target[index] if present.size else index)
    keys = [value[1] for value in position]
    every = np.concatenate([np.empty(0, np.int64), *parts])
    for place, key in enumerate(keys):
        if isinstance(key, Unfit):
            wrong = np.flatnonzero(every == place)
            raise InvalidValueError(
                f"{name}: {rows_have(wrong.size)} {key.what} ({rows(wrong)}), which is "
                f"not a group; {key.instead}"
            )
    return keys or [label], every


def _group_key(value: Any, missing_values: Container[str], label: Any) -> tuple[type, Any]:
    """Keep True and 1 apart; NaN and some texts are missing, and there is one zero."""
    if isinstance(value, str) and value in missing_values:
        value = None
    if isinstance(value, float):
        value = None if math.isnan(value) else value + 0.0
    if value is None:
        value = label
    return type(value), value


def compact(code: Array, size: int) -> tuple[Array, Array]:
    """Renumber codes below ``size`` in order of first appearance, and return the old codes."""
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


def digested(table: Any) -> bytes:
    """Compute a digest of the rows of a table, independent of its chunks."""
    state = hashlib.sha256()
    for column in table.columns:
        chunks = [_plain(chunk) for chunk in column.chunks]
        # Not those of the column: nulls may hide in dictionaries.
        nulls = sum(chunk.null_count for chunk in chunks)
        state.update(f"{column.type} {len(column)} {nulls}".encode())
        if nulls:
            _update(state, [_plain(chunk.is_null()) for chunk in chunks])
            # What lies under nulls is not defined.
            chunks = [chunk.drop_null() for chunk in chunks]
        _update(state, chunks)
    return state.digest()


def _update(state: Any, arrays: Sequence[Any]) -> None:
    """Add arrays without nulls: the lengths of their values, if they have any, and their bytes."""
    lengths, data = hashlib.sha256(), hashlib.sha256()
    for array in arrays:
        width = _width(array.type)
        buffers, first, end = array.buffers(), array.offset, array.offset + len(array)
        if width is not None:
            data.update(memoryview(buffers[1])[first * width : end * width])
        elif len(array):
            offsets = np.frombuffer(buffers[1], np.int64)[first : end + 1]
            lengths.update(np.diff(offsets).data)
            if buffers[2] is not None:
                data.update(memoryview(buffers[2])[offsets[0] : offsets[-1]])
    state.update(lengths.digest() + data.digest())


def _plain(array: Any) -> Any:
    """Make an array of values of a fixed number of bytes, or of texts or bytes with offsets."""
    pa = require("pyarrow", "cli")
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return _plain(array.dictionary).take(array.indices)
    if pa.types.is_boolean(array.type) or pa.types.is_null(array.type):
        return array.cast(pa.uint8())
    if _width(array.type) is not None:
        return array
    types = pa.types
    text = types.is_string(array.type) or types.is_large_string(array.type)
    text = text or types.is_string_view(array.type)
    return array.cast(pa.large_string() if text else pa.large_binary())


def _width(kind: Any) -> int | None:
    try:
        return int(kind.bit_width) // 8
    except ValueError:
        return None
