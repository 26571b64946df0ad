"""Arrow columns as distinct values and an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from turnout._arrow import to_numpy
from turnout._extras import require
from turnout._types import Array
from turnout.errors import CorruptDataError, InvalidTypeError

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


def factors(column: Any, name: str) -> Iterator[tuple[list[Any], Array]]:
    """Reduce an Arrow column, chunk by chunk, to distinct values and the position of each row's.

    The last of the distinct values is None; nulls point at it. Some may be there twice, or not
    occur. Chunks with the same dictionary give the same list. Values of types that are no plain
    ones come as text (dates, decimals).
    """
    pa = require("pyarrow", "cli")
    dictionary, values = None, [None]
    for chunk in column.chunks:
        array = encoded(pa, chunk, name)
        if array is None:
            yield [None], np.zeros(len(chunk), np.int32)
            continue
        if dictionary is None or not dictionary.equals(array.dictionary):
            dictionary = array.dictionary
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
    """Make a dictionary array, or None of an array of nulls."""
    kind = chunk.type
    if isinstance(kind, pa.BaseExtensionType):
        chunk = chunk.storage
        kind = chunk.type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_dictionary(kind):
        return None if pa.types.is_null(kind.value_type) else chunk
    try:
        return chunk.dictionary_encode()
    except pa.ArrowException:
        return plain(pa, chunk, name).dictionary_encode()


def listed(values: Any, name: str) -> list[Any]:
    """List Python values."""
    try:
        return values.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError as error:
        # Not the text of the error, which quotes what people answered.
        raise CorruptDataError(f"{name} holds text that is not UTF-8") from error


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
    """Text of values that are not text, numbers or booleans."""
    if _is_plain(pa.types, values.type):
        return values
    try:
        return values.cast(pa.string())
    except pa.ArrowException as error:
        raise InvalidTypeError(
            f"{name} has type {values.type}, which is not one of categories"
        ) from error
