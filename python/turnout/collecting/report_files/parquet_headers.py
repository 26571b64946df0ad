"""The headers of a Parquet file: where its footer places columns, and how long its pages are.

Arrow's Python reader does not show the headers of pages, and ends the process if the footer states
something impossible about a column (``RowGroupMetaData.column``). This module reads both itself, in
Thrift's compact protocol. It refuses what Arrow could read differently: a field that occurs twice,
has another type, or whose number does not fit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple

from turnout.errors import CorruptDataError

#: Most bytes of a page's header, and how deep what is in a header may be nested.
_HEADER: Final = 2**20
_DEPTH: Final = 12

#: The mark at the end of a file, and the length of the footer before it.
_MARK: Final = b"PAR1"
_END: Final = len(_MARK) + 4

#: Types of fields.
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _TEXT, _LIST, _SET = range(1, 11)
_STRUCT: Final = 12


class _Wanted(NamedTuple):
    """A field that is kept: its type; of a list the type of its elements; of structs the fields."""

    kind: int
    element: int = 0
    fields: Mapping[int, Any] = {}


_NONE: Final = _Wanted(0)

#: Of a page: both its lengths, and the encodings of data (of two versions) and dictionaries.
_PAGE: Final = {
    2: _Wanted(_INT),
    3: _Wanted(_INT),
    5: _Wanted(_STRUCT, fields={2: _Wanted(_INT)}),
    7: _Wanted(_STRUCT, fields={2: _Wanted(_INT)}),
    8: _Wanted(_STRUCT, fields={4: _Wanted(_INT)}),
}

#: Of a column chunk: its path, its length, and where its data and its dictionary begin.
_COLUMN: Final = {
    3: _Wanted(_LIST, _TEXT),
    7: _Wanted(_LONG),
    9: _Wanted(_LONG),
    11: _Wanted(_LONG),
}

#: Of the footer: the row groups, of these the column chunks.
_FOOTER: Final = {
    4: _Wanted(
        _LIST,
        _STRUCT,
        {1: _Wanted(_LIST, _STRUCT, {3: _Wanted(_STRUCT, fields=_COLUMN)})},
    )
}


class ColumnChunk(NamedTuple):
    """The values of a column in a row group.

    Attributes
    ----------
    path
        The name of the column; of a nested one the names down to the values, with dots between.
    start, length
        The place of its pages in the file.
    """

    path: str
    start: int
    length: int


def footer_limits(file: BinaryIO) -> dict[str, int]:
    """Return options of ``pyarrow.parquet.ParquetFile`` that limit lists and texts of the footer.

    Each states its length, and Arrow allocates room for all elements (up to 800 bytes each) before
    it reads the first. None can have more elements than the footer has bytes.

    Parameters
    ----------
    file
        The Parquet file; it may be a different one.
    """
    start, end = _footer_place(file)
    most = max(min(end - start, end), 1)
    return {"thrift_string_size_limit": most, "thrift_container_size_limit": most}


def _footer_place(file: BinaryIO) -> tuple[int, int]:
    """Return where the footer begins, as the file states it, and where it ends."""
    end = max(file.seek(0, os.SEEK_END) - _END, 0)
    file.seek(end)
    return end - int.from_bytes(file.read(4), "little"), end


def column_chunks(file: BinaryIO) -> list[list[ColumnChunk]]:
    """Return the column chunks of each row group.

    Parameters
    ----------
    file
        The Parquet file.

    Raises
    ------
    CorruptDataError
        If its footer does not state where they are, or contradicts itself.
    """
    start, end = _footer_place(file)
    if start < 0:
        raise CorruptDataError("the footer states more bytes than the file has")
    file.seek(start)
    try:
        found, _ = _struct(file.read(end - start), 0, _DEPTH, _FOOTER)
    except IndexError:
        raise CorruptDataError("the footer is truncated") from None
    try:
        return [[_chunk(column[3]) for column in group[1]] for group in found[4]]
    except KeyError:
        raise CorruptDataError("the footer does not state where a column is") from None


def _chunk(fields: dict[int, Any]) -> ColumnChunk:
    # Writers state 0 where there is no dictionary, or no data.
    start = min(filter(None, (fields[9], fields.get(11))), default=0)
    return ColumnChunk(b".".join(fields[3]).decode("utf-8", "replace"), start, fields[7])


def page_headers(file: BinaryIO, chunk: ColumnChunk) -> Iterator[dict[int, Any]]:
    """Return the headers of the pages of a column chunk: their fields by number.

    A page that states a length beyond the end of the file is refused. Arrow would allocate memory
    for this length and fill it, before it finds that the file is shorter.

    Raises
    ------
    CorruptDataError
        If these are not pages, or are not within the file.
    """
    place, size = chunk.start, file.seek(0, os.SEEK_END)
    end = place + chunk.length
    if chunk.length and not 0 < place < end <= size:
        raise CorruptDataError("a column is not within the file")
    while place < end:
        header, length = _page_header(file, place, end)
        stored, compressed = header.get(2, -1), header.get(3, -1)
        if min(stored, compressed) < 0:
            raise CorruptDataError("a page does not state its length")
        place += length + compressed
        if place > size:
            raise CorruptDataError(f"a page states {compressed:,} bytes, more than the file has")
        yield header


def _page_header(file: BinaryIO, start: int, end: int) -> tuple[dict[int, Any], int]:
    size = 2**10
    while True:
        file.seek(start)
        data = file.read(min(size, end - start))
        try:
            return _struct(data, 0, _DEPTH, _PAGE)
        except IndexError:
            if len(data) < size or size >= _HEADER:
                raise CorruptDataError("the header of a page is truncated") from None
            size *= 4


def _struct(
    data: bytes, at: int, depth: int, wanted: Mapping[int, _Wanted]
) -> tuple[dict[int, Any], int]:
    """Read a struct: its wanted fields by number, and its end."""
    if not depth:
        raise CorruptDataError("a header is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        at += 1
        if step:
            number += step
        else:
            number, at = _zigzag(data, at)
        if not 0 <= number < 2**15:
            raise CorruptDataError("a header has a field whose number does not fit")
        want = wanted.get(number, _NONE)
        value = None
        if kind not in (_TRUE, _FALSE):
            value, at = _value(data, at, kind, depth, want)
        if want is not _NONE:
            if kind != want.kind or number in fields:
                raise CorruptDataError("a header has a field of another type, or has one twice")
            fields[number] = value
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int, want: _Wanted) -> tuple[Any, int]:
    """Read a value, and return its end; the parts of lists and texts only if it is wanted."""
    if kind in (_SHORT, _INT, _LONG):
        return _zigzag(data, at)
    if kind == _TEXT:
        length, at = _varint(data, at)
        return data[at : at + length] if want is not _NONE else None, at + length
    if kind == _STRUCT:
        return _struct(data, at, depth - 1, want.fields)
    if kind in (_LIST, _SET):
        return _list(data, at, depth, want)
    if kind in (_BYTE, _DOUBLE):
        return None, at + (1 if kind == _BYTE else 8)
    raise CorruptDataError("a header has an unknown field")


def _list(data: bytes, at: int, depth: int, want: _Wanted) -> tuple[list[Any], int]:
    if not depth:
        raise CorruptDataError("a header is nested too deeply")
    size, element = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    if size and want is not _NONE and element != want.element:
        raise CorruptDataError("a header has a list of another type")
    found: list[Any] = []
    each = _NONE if want is _NONE else want._replace(kind=element)
    # Only a byte that exists is worth a step, whatever size is stated.
    for _ in range(size):
        data[at]
        if element in (_TRUE, _FALSE):
            at += 1
            continue
        value, at = _value(data, at, element, depth - 1, each)
        if want is not _NONE:
            found.append(value)
    return found, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise CorruptDataError("a header has a number that does not end")


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at
