"""Parquet and Arrow IPC files as sequences of batches, each of which fits into bounded memory.

Both formats compress, and state the uncompressed size beside the compressed bytes. A reader that
trusts this number allocates as much memory, even for a file of a few bytes. This module reads the
numbers first, from the headers of pages (:mod:`turnout.collecting.report_files.parquet_headers`)
and messages (FlatBuffers). Arrow's Python reader does not show them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from turnout._extras import require
from turnout.collecting.report_files.parquet_headers import (
    ColumnChunk,
    column_chunks,
    footer_limits,
    page_headers,
)
from turnout.errors import CorruptDataError, MemoryLimitError

#: Encodings in which a value takes up its bytes, or is one of a page of different ones. In others
#: a few bytes stand for many long values.
_ENCODINGS: Final = {0: "PLAIN", 2: "PLAIN_DICTIONARY", 3: "RLE", 8: "RLE_DICTIONARY"}

_PARQUET_MAGIC: Final = b"PAR1"
_ARROW_MAGIC: Final = b"ARROW1\0\0"

#: Bytes that are read at once of a column of a Parquet file.
_BUFFER: Final = 2**20

#: The most rows of a batch, and how many bytes make up a batch if the rows are wide.
_BATCH: Final = 2**20
_BATCH_BYTES: Final = 2**24


def page_bytes(file: BinaryIO, chunk: ColumnChunk) -> Iterator[int]:
    """Return the uncompressed sizes of the pages of a column chunk.

    Parameters
    ----------
    file, chunk
        The Parquet file, and the column chunk.

    Raises
    ------
    CorruptDataError
        If these are not pages within the file, or a page has an encoding in which a few bytes can
        expand to many.
    """
    for header in page_headers(file, chunk):
        for place, field in ((5, 2), (7, 2), (8, 4)):
            kind = header.get(place)
            if kind is not None and kind.get(field) not in _ENCODINGS:
                known = ", ".join(_ENCODINGS.values())
                raise CorruptDataError(f"a page has an encoding other than {known}")
        yield int(header[2])


def message_bytes(message: Any) -> int:
    """Return the uncompressed size of the buffers of a record batch.

    Parameters
    ----------
    message
        A ``pyarrow.ipc.Message`` that holds a record batch.

    Raises
    ------
    CorruptDataError
        If it is not valid.
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
        raise CorruptDataError("a record batch does not state its length") from error
    return total


def _table(data: memoryview, at: int | None) -> int:
    """Follow an offset of FlatBuffers."""
    if at is None:
        raise TypeError("no such field")
    return int(at + struct.unpack_from("<I", data, at)[0])


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Return a field of a table; None if it does not exist."""
    layout = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, layout)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, layout + 4 + 2 * number)
    return table + offset if offset else None


def batch_rows(row_bytes: int) -> int:
    """Return the number of rows of a given size to write or read at once.

    Examples
    --------
    >>> batch_rows(1), batch_rows(4096), batch_rows(2**30)
    (1048576, 4096, 1)
    """
    return max(min(_BATCH, _BATCH_BYTES // max(row_bytes, 1)), 1)


class Stretch(NamedTuple):
    """Rows of a file that can be read separately.

    Attributes
    ----------
    start
        The number of the first row.
    rows
        The number of rows; None if it is not known before reading.
    groups
        The row groups that they are in.
    largest
        The size in bytes of the largest page that must be read.
    """

    start: int
    rows: int | None
    groups: range
    largest: int = 0


class ParquetContainer:
    """A Parquet file, whose stretches several threads may read at once.

    Attributes
    ----------
    names
        The names of its columns.
    rows
        The number of its rows.
    metadata
        The metadata of its schema.
    """

    def __init__(self, again: Callable[[], BinaryIO]) -> None:
        self._again = again
        with again() as file:
            opened = self._opened(file, [], None)
            self._footer = opened.metadata
            self._schema = opened.schema_arrow
            self._chunks = column_chunks(file)
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
            **footer_limits(file),
        )

    def _stretches(self, rows: int, most: int) -> list[Stretch]:
        """Divide the file between row groups, into stretches of at least a number of rows.

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
        """Return the sizes of the pages of a row group."""
        for chunk in self._chunks[group]:
            yield from page_bytes(file, chunk)

    def batches(self, rows: int, most: int, stretch: Stretch) -> Iterator[Any]:
        """Read batches of a limited number of rows, without texts of more than ``most`` bytes."""
        pa = require("pyarrow", "cli")
        for item in self._schema:
            kind = item.type
            if (
                pa.types.is_binary(kind)
                or pa.types.is_large_binary(kind)
                or pa.types.is_nested(kind)
            ):
                raise CorruptDataError(
                    f"column {item.name!r} has type {kind}, which reports never have"
                )
            if pa.types.is_fixed_size_binary(kind):
                # A value that stands in the file once is repeated for every row that has it.
                _check(kind.byte_width * min(rows, self._footer.num_rows), most)
        # A text that stands in a row group once stays one, whatever the number of its rows.
        texts = [item.name for item in self._schema if pa.types.is_string(item.type)]
        with self._again() as file:
            opened = self._opened(file, texts, self._footer)
            yield from opened.iter_batches(rows, stretch.groups, use_threads=False)


class ArrowContainer:
    """An Arrow IPC file, read from its beginning as a stream.

    Attributes
    ----------
    names
        The names of its columns.
    rows
        None: the number is not known before reading.
    metadata
        The metadata of its schema.
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
            raise CorruptDataError("the schema is missing")
        schema = ipc.read_schema(first)
        if any(pa.types.is_dictionary(item.type) for item in schema):
            raise CorruptDataError("a column is a dictionary")
        return schema, messages

    def _stretches(self, _rows: int, _most: int) -> list[Stretch]:
        """Return the whole file, which does not say where its record batches are."""
        return [Stretch(0, None, range(0))]

    def batches(self, rows: int, most: int, _stretch: Stretch) -> Iterator[Any]:
        """Read batches of a limited number of rows; no record batch exceeds ``most`` bytes."""
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
            f"contains a block of {size:,} bytes; at most {most:,} may be read at once (max_memory)"
        )


def open_container(again: Callable[[], BinaryIO]) -> ParquetContainer | ArrowContainer:
    """Open a Parquet or an Arrow IPC file, whichever it is.

    Parameters
    ----------
    again
        A function that opens the file, so that each reader has its own position.

    Raises
    ------
    CorruptDataError
        If it is neither of them.
    """
    with again() as file:
        start = file.read(len(_ARROW_MAGIC))
    if start.startswith(_PARQUET_MAGIC):
        return ParquetContainer(again)
    if start == _ARROW_MAGIC:
        return ArrowContainer(again)
    raise CorruptDataError("neither a Parquet nor an Arrow IPC file")
