"""What the pages of a Parquet file and the messages of an Arrow file ask for, before they are read.

Both formats compress, and say beside the compressed bytes how many there were: a reader that
believes it gets as much memory as the number says, from a file of a few bytes. The numbers are
looked up here, in the headers of pages (Thrift's compact protocol) and messages (FlatBuffers);
Arrow's reader of Python does not show them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from turnout.errors import CorruptDataError

#: Encodings in which a value takes up its bytes, or is one of a page of different ones. In others
#: a few bytes stand for many long values.
_ENCODINGS: Final = {0: "PLAIN", 2: "PLAIN_DICTIONARY", 3: "RLE", 8: "RLE_DICTIONARY"}

#: Most bytes of a page's header, and how deep what is in it may be nested.
_HEADER: Final = 2**20
_DEPTH: Final = 8


def page_bytes(file: BinaryIO, start: int, length: int) -> Iterator[int]:
    """List the bytes of the pages of a column chunk when they are no longer compressed.

    Parameters
    ----------
    file
        The Parquet file.
    start, length
        Where the column chunk is.

    Raises
    ------
    CorruptDataError
        If these are no pages, or a page has an encoding in which little stands for much.
    """
    end = start + length
    while start < end:
        header, size = _page_header(file, start, end)
        stored, compressed = header.get(2), header.get(3)
        if type(stored) is not int or type(compressed) is not int or min(stored, compressed) < 0:
            raise CorruptDataError("a page does not say how long it is")
        for place, field in ((5, 2), (7, 2), (8, 4)):
            kind = header.get(place)
            encoding = kind.get(field) if type(kind) is dict else None
            if kind is not None and (type(encoding) is not int or encoding not in _ENCODINGS):
                known = ", ".join(_ENCODINGS.values())
                raise CorruptDataError(f"a page has another encoding than {known}")
        yield stored
        start += size + compressed


def _page_header(file: BinaryIO, start: int, end: int) -> tuple[dict[int, Any], int]:
    size = 2**10
    while True:
        file.seek(start)
        data = file.read(min(size, end - start))
        try:
            return _thrift(data, 0, _DEPTH)
        except IndexError:
            if len(data) < size or size >= _HEADER:
                raise CorruptDataError("the header of a page is cut off") from None
            size *= 4


def _thrift(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """Read a struct of Thrift's compact protocol: its fields by their numbers, and its end."""
    if not depth:
        raise CorruptDataError("the header of a page is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        at += 1
        if step:
            number += step
        else:
            number, at = _zigzag(data, at)
        if kind in (1, 2):
            fields[number] = kind == 1
        elif kind in (4, 5, 6):
            fields[number], at = _zigzag(data, at)
        elif kind == 8:
            length, at = _varint(data, at)
            at += length
        elif kind == 12:
            fields[number], at = _thrift(data, at, depth - 1)
        else:
            raise CorruptDataError("the header of a page holds what none does")
    return fields, at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise CorruptDataError("the header of a page holds a number without an end")


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def message_bytes(message: Any) -> int:
    """Tell how many bytes the buffers of a record batch have when they are no longer compressed.

    Parameters
    ----------
    message
        A ``pyarrow.ipc.Message`` that holds a record batch.

    Raises
    ------
    CorruptDataError
        If it is none.
    """
    metadata, body = memoryview(message.metadata), memoryview(message.body)
    try:
        batch = _table(metadata, _field(metadata, _table(metadata, 0), 2))
        compressed = _field(metadata, batch, 3) is not None
        vector = _field(metadata, batch, 2)
        if not compressed or vector is None:
            return len(body)
        first = vector + struct.unpack_from("<I", metadata, vector)[0]
        (number,) = struct.unpack_from("<I", metadata, first)
        total = 0
        for place in range(number):
            offset, length = struct.unpack_from("<qq", metadata, first + 4 + 16 * place)
            if length:
                (stored,) = struct.unpack_from("<q", body, offset)
                # -1 stands for a buffer that is not compressed after all.
                total += length if stored < 0 else stored
    except (struct.error, TypeError) as error:
        raise CorruptDataError("a record batch that does not say how long it is") from error
    return total


def _table(data: memoryview, at: int | None) -> int:
    """Follow an offset of FlatBuffers."""
    if at is None:
        raise TypeError("no such field")
    return int(at + struct.unpack_from("<I", data, at)[0])


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Find a field of a table; None if it is not there."""
    layout = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, layout)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, layout + 4 + 2 * number)
    return table + offset if offset else None
