"""Parquet and Arrow IPC files as sequences of batches, each of which fits into bounded memory.

Both formats compress, and say beside the compressed bytes how many there were: a reader that
believes it gets as much memory as the number says, from a file of a few bytes. The numbers are
looked up before, in the headers of pages (Thrift's compact protocol) and messages (FlatBuffers);
Arrow's reader of Python does not show them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from turnout._extras import require
from turnout.errors import CorruptDataError, MemoryLimitError

#: Encodings in which a value takes up its bytes, or is one of a page of different ones. In others
#: a few bytes stand for many long values.
_ENCODINGS: Final = {0: "PLAIN", 2: "PLAIN_DICTIONARY", 3: "RLE", 8: "RLE_DICTIONARY"}

#: Most bytes of a page's header, and how deep what is in it may be nested.
_HEADER: Final = 2**20
_DEPTH: Final = 8

_PARQUET_MAGIC: Final = b"PAR1"
_ARROW_MAGIC: Final = b"ARROW1\0\0"

#: Bytes that are read at once of a column of a Parquet file.
_BUFFER: Final = 2**20

#: The most rows of a batch, and how many bytes make up a batch if the rows are wide.
_BATCH: Final = 2**20
_BATCH_BYTES: Final = 2**24


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


def batch_rows(row_bytes: int) -> int:
    """Tell how many rows of so many bytes are written or read at once.

    Examples
    --------
    >>> batch_rows(1), batch_rows(4096), batch_rows(2**30)
    (1048576, 4096, 1)
    """
    return max(min(_BATCH, _BATCH_BYTES // max(row_bytes, 1)), 1)


class Stretch(NamedTuple):
    """Rows of a file that can be read by themselves.

    Attributes
    ----------
    start
        The number of the first row.
    rows
        How many there are; None if only who has read them knows.
    groups
        The row groups that they are in.
    largest
        Bytes of the largest page that is taken up to read them.
    """

    start: int
    rows: int | None
    groups: range
    largest: int = 0


class ParquetContainer:
    """A Parquet file, of which several threads may read stretches at once.

    Attributes
    ----------
    names
        Its columns.
    rows
        The number of its rows.
    metadata
        What its schema says beside the columns.
    """

    def __init__(self, again: Callable[[], BinaryIO]) -> None:
        self._again = again
        with again() as file:
            opened = self._opened(file, [], None)
            self._footer = opened.metadata
            self._schema = opened.schema_arrow
        self.names: list[str] = self._schema.names
        self.rows: int | None = self._footer.num_rows
        self.metadata: dict[bytes, bytes] = dict(self._footer.metadata or {})

    def _opened(self, file: Any, dictionaries: list[str], footer: Any) -> Any:
        pa = require("pyarrow", "cli")
        return require("pyarrow.parquet", "cli").ParquetFile(
            pa.PythonFile(file, mode="r"),
            metadata=footer,
            read_dictionary=dictionaries,
            pre_buffer=False,
            buffer_size=_BUFFER,
        )

    def _stretches(self, rows: int, most: int) -> list[Stretch]:
        """Cut the file between row groups, where at least so many rows have come together.

        No page has more than ``most`` bytes.
        """
        found: list[Stretch] = []
        start = first = held = largest = 0
        number = self._footer.num_row_groups
        with self._again() as file:
            for group in range(number):
                held += self._footer.row_group(group).num_rows
                for size in self._pages(file, group):
                    _check(size, most)
                    largest = max(largest, size)
                if held >= rows or group == number - 1:
                    found.append(Stretch(start, held, range(first, group + 1), largest))
                    start, first, held, largest = start + held, group + 1, 0, 0
        return found

    def _pages(self, file: BinaryIO, group: int) -> Iterator[int]:
        """List the bytes of the pages of a row group."""
        footer = self._footer.row_group(group)
        for place in range(footer.num_columns):
            column = footer.column(place)
            starts = [column.dictionary_page_offset, column.data_page_offset]
            start = min((offset for offset in starts if offset), default=None)
            if start is None:
                raise CorruptDataError("a column does not say where it begins")
            yield from page_bytes(file, start, column.total_compressed_size)

    def batches(self, rows: int, most: int, stretch: Stretch) -> Iterator[Any]:
        """Read batches of at most so many rows, in which no text has more than ``most`` bytes."""
        pa = require("pyarrow", "cli")
        for item in self._schema:
            kind = item.type
            if (
                pa.types.is_binary(kind)
                or pa.types.is_large_binary(kind)
                or pa.types.is_nested(kind)
            ):
                raise CorruptDataError(f"column {item.name!r} has type {kind}, which no report has")
            if pa.types.is_fixed_size_binary(kind):
                # A value that stands in the file once is repeated for every row that has it.
                _check(kind.byte_width * min(rows, self._footer.num_rows), most)
        # A text that stands in a row group once stays one, whatever the number of its rows.
        texts = [item.name for item in self._schema if pa.types.is_string(item.type)]
        with self._again() as file:
            opened = self._opened(file, texts, self._footer)
            yield from opened.iter_batches(rows, stretch.groups, use_threads=False)


class ArrowContainer:
    """An Arrow IPC file, read from its beginning on as the stream that it holds.

    Attributes
    ----------
    names
        Its columns.
    rows
        None: only who has read it all knows how many there are.
    metadata
        What its schema says beside the columns.
    """

    def __init__(self, again: Callable[[], BinaryIO]) -> None:
        self._again = again
        with again() as file:
            self._schema, _ = self._begun(file)
        self.names: list[str] = self._schema.names
        self.rows: int | None = None
        self.metadata: dict[bytes, bytes] = dict(self._schema.metadata or {})

    @staticmethod
    def _begun(file: BinaryIO) -> tuple[Any, Any]:
        pa, ipc = require("pyarrow", "cli"), require("pyarrow.ipc", "cli")
        file.seek(len(_ARROW_MAGIC))
        messages = ipc.MessageReader.open_stream(pa.PythonFile(file, mode="r"))
        first = next(messages, None)
        # Arrow takes whatever stands there for a schema, and what is none can end the process.
        if first is None or first.type != "schema":
            raise CorruptDataError("there is no schema")
        schema = ipc.read_schema(first)
        if any(pa.types.is_dictionary(item.type) for item in schema):
            raise CorruptDataError("a column is a dictionary")
        return schema, messages

    def _stretches(self, _rows: int, _most: int) -> list[Stretch]:
        """Give the whole file: it does not say where its record batches are."""
        return [Stretch(0, None, range(0))]

    def batches(self, rows: int, most: int, _stretch: Stretch) -> Iterator[Any]:
        """Read batches of at most so many rows, of record batches of at most ``most`` bytes."""
        ipc = require("pyarrow.ipc", "cli")
        with self._again() as file:
            schema, messages = self._begun(file)
            for message in messages:
                if message.type != "record batch":
                    raise CorruptDataError(f"a {message.type} where a record batch is expected")
                _check(message_bytes(message), most)
                batch = ipc.read_record_batch(message, schema)
                batch.validate(full=True)
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows)


def _check(size: int, most: int) -> None:
    if size > most:
        raise MemoryLimitError(
            f"holds a piece of {size:,} bytes; at most {most:,} may be read at once (max_memory)"
        )


def open_container(again: Callable[[], BinaryIO]) -> ParquetContainer | ArrowContainer:
    """Open a Parquet or an Arrow IPC file, whichever it is.

    Parameters
    ----------
    again
        Opens the file: each who reads from it has a place of its own in it.

    Raises
    ------
    CorruptDataError
        If it is neither.
    """
    with again() as file:
        start = file.read(len(_ARROW_MAGIC))
    if start.startswith(_PARQUET_MAGIC):
        return ParquetContainer(again)
    if start == _ARROW_MAGIC:
        return ArrowContainer(again)
    raise CorruptDataError("neither a Parquet nor an Arrow IPC file")
