"""Digests of rows, by which rows that are read again are known to be the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout._extras import require


def digested(table: Any) -> bytes:
    """Compute a digest of the rows of a table, however they are chunked."""
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
