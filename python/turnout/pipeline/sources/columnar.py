"""Parquet and Arrow IPC files, whose blocks any process can read.

A block knows the files, row groups and rows that it is made of, so that several processes can read
several blocks at once. A row group that is many blocks long would be decoded again for each of
them: such are read in order instead, by whoever asks for the blocks.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from turnout._extras import require
from turnout._files import open_regular
from turnout.collecting.report_files.header import METADATA_KEY
from turnout.collecting.report_files.parquet_headers import (
    column_chunks,
    footer_limits,
    page_headers,
)
from turnout.collecting.report_files.reading import most_memory
from turnout.errors import CorruptDataError, InvalidValueError, MemoryLimitError
from turnout.pipeline.sources.base import BLOCK, Block, TableBlock, cut
from turnout.pipeline.sources.filed import FileSource, own_names, reading, with_partitions
from turnout.pipeline.sources.files import DataFile
from turnout.pipeline.sources.whole import (
    check_arrow_file,
    check_arrow_stream,
    check_parquet,
)

#: A row group of more blocks than this is read in order.
_LONG: Final = 4
_BATCH: Final = 2**16
_BUFFER: Final = 2**20
_OPENERS: Final = 8


@dataclass(frozen=True)
class Piece:
    """Rows of a row group of a Parquet file, or of a record batch of an Arrow IPC file.

    Attributes
    ----------
    file
        The file.
    group
        The number of the row group or record batch in the file.
    group_rows
        How many rows it has.
    offset, length
        Which of them.
    """

    file: DataFile
    group: int
    group_rows: int
    offset: int
    length: int


@dataclass(frozen=True, eq=False)
class FileBlock(Block):
    """Rows of columnar files, read on demand.

    Attributes
    ----------
    pieces
        Where the rows are.
    schema
        The columns and their types.
    """

    pieces: tuple[Piece, ...]
    schema: Any = field(repr=False)

    def read(self) -> Any:
        """Read the rows.

        Raises
        ------
        CorruptDataError
            If a file cannot be read, or was changed since it was opened.
        """
        pa = require("pyarrow", "cli")
        return pa.concat_tables(map(_Cursor(self.schema).read, self.pieces))


#: What stands in the metadata of a file of reports.
_REPORTS: Final = METADATA_KEY.encode("ascii")


class ColumnarSource(FileSource):
    """Parquet or Arrow IPC files, whose blocks know their location.

    Parameters
    ----------
    name
        What messages call them.
    files
        The files in order, all of one format.
    block_rows
        Rows of a block.
    """

    def __init__(self, name: str, files: Sequence[DataFile], block_rows: int = BLOCK) -> None:
        with ThreadPoolExecutor(min(_OPENERS, len(files))) as pool:
            found = list(pool.map(_inspect, files))
        super().__init__(name, files, [schema for schema, _ in found], block_rows)
        self._groups = [groups for _, groups in found]
        self.rows = sum(map(sum, self._groups))

    @property
    def file_rows(self) -> Mapping[str, int]:
        """The rows of each file."""
        counts = zip(self._files, self._groups, strict=True)
        return {file.shown: sum(groups) for file, groups in counts}

    def _blocks(self, checked: Any, skip: Container[int]) -> Iterator[Block]:
        pa = require("pyarrow", "cli")
        cursor = _Cursor(checked)
        for index, pieces in enumerate(self._pieces()):
            if index in skip:
                continue
            rows, first = sum(piece.length for piece in pieces), index * self.block_rows
            if all(piece.group_rows <= _LONG * self.block_rows for piece in pieces):
                yield FileBlock(index, rows, pieces, checked, first_row=first)
            else:
                table = pa.concat_tables([cursor.read(piece) for piece in pieces])
                yield TableBlock(index, rows, table, first_row=first)

    def _pieces(self) -> Iterator[tuple[Piece, ...]]:
        """List the pieces of each block."""
        groups = (
            ((file, group, rows), rows)
            for file, counts in zip(self._files, self._groups, strict=True)
            for group, rows in enumerate(counts)
        )
        for pieces in cut(groups, self.block_rows):
            yield tuple(Piece(*place, start, rows) for place, start, rows in pieces)


def _inspect(file: DataFile) -> tuple[Any, list[int]]:
    """Read the schema of a file, and the numbers of rows of its groups."""
    with reading(file):
        if file.format == "parquet":
            with _open_parquet(file) as opened:
                metadata = opened.metadata
                check_parquet(file, metadata)
                rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
                return _plain_schema(opened.schema_arrow, file), rows
        pa = require("pyarrow", "cli")
        stream = _is_stream(file)
        with pa.OSFile(file.path) as source:
            with _open_ipc(source, stream=stream) as opened:
                schema, place = _plain_schema(opened.schema, file), source.tell()
            if not stream:
                check_arrow_file(file)
            # The smallest column, because compressed ones must be read to count their rows.
            narrowest = [_narrowest(schema)] if schema else None
            with _open_ipc(source, narrowest, stream=stream) as opened:
                if stream:
                    total = 0
                    for batch in opened:
                        total, place = total + batch.num_rows, source.tell()
                    check_arrow_stream(file, place, source.tell())
                    # One group, as it can only be read from its beginning.
                    return schema, [total]
                counts = [opened.get_batch(i).num_rows for i in range(opened.num_record_batches)]
                return schema, counts


def _open_parquet(file: DataFile, **options: Any) -> Any:
    with open_regular(file.path) as stream:
        limits = footer_limits(stream)
    return require("pyarrow.parquet", "cli").ParquetFile(file.path, **options, **limits)


def _plain_schema(schema: Any, file: DataFile) -> Any:
    """Remove the metadata from a schema; refuse report files, which contain no answers."""
    if _REPORTS in (schema.metadata or {}):
        raise InvalidValueError(
            f"{file.shown} is a file of reports, which are already randomized: count "
            "them with turnout.pipeline.tally"
        )
    # Names are decoded here, and may not be UTF-8.
    return require("pyarrow", "cli").schema(list(zip(schema.names, schema.types, strict=True)))


def _narrowest(schema: Any) -> int:
    widths = []
    for item in schema:
        try:
            widths.append(item.type.bit_width)
        except ValueError:
            widths.append(2**31)
    return widths.index(min(widths))


def _batches(piece: Piece, schema: Any) -> Iterator[Any]:
    """Stream the columns that the file itself has, of a whole group, in tables."""
    pa = require("pyarrow", "cli")
    names = own_names(piece.file, schema)
    if piece.file.format == "parquet":
        dictionaries = _dictionaries(schema, names)
        with _open_parquet(
            piece.file, read_dictionary=dictionaries, pre_buffer=False, buffer_size=_BUFFER
        ) as file:
            _check_pages(piece, names)
            for batch in file.iter_batches(
                _BATCH, row_groups=[piece.group], columns=names, use_threads=False
            ):
                for column in batch.columns:
                    # The reader checks all but the places in a dictionary.
                    if isinstance(column, pa.DictionaryArray):
                        column.validate(full=True)
                yield pa.Table.from_batches([batch])
    else:
        # Read, not mapped: the process would end if somebody cut a mapped file. A batch of some
        # columns would not even save memory, because Arrow copies the columns.
        stream = _is_stream(piece.file)
        with pa.OSFile(piece.file.path) as source:
            with _open_ipc(source, stream=stream) as opened:
                positions = sorted(opened.schema.get_field_index(name) for name in names)
            with _open_ipc(source, positions, stream=stream) as opened:
                for batch in opened if stream else [opened.get_batch(piece.group)]:
                    # What is looked at unchecked can kill who looks at it.
                    batch.validate(full=True)
                    yield pa.Table.from_batches([batch])


def _check_pages(piece: Piece, names: Sequence[str]) -> None:
    """Refuse pages of some columns of a row group that state too many bytes.

    Compressed, they must be within the file; decompressed, they may use as much memory as a file of
    reports may by default.
    """
    shown, most = piece.file.shown, most_memory(piece.file.state[0])
    try:
        with open_regular(piece.file.path) as stream:
            for chunk in column_chunks(stream)[piece.group]:
                # A nested column is several, whose paths begin with its name.
                if any(chunk.path == name or chunk.path.startswith(f"{name}.") for name in names):
                    for header in page_headers(stream, chunk):
                        if header[2] > most:
                            raise MemoryLimitError(
                                f"{shown}: a page of column {chunk.path!r} has {header[2]:,} bytes "
                                f"when it is decompressed; at most {most:,} may be read at once. "
                                "Write the file with smaller pages"
                            )
    except CorruptDataError as error:
        raise CorruptDataError(f"{shown}: {error}") from None


def _dictionaries(schema: Any, names: Sequence[str]) -> list[str]:
    types = require("pyarrow", "cli").types
    return [name for name in names if types.is_dictionary(schema.field(name).type)]


def _open_ipc(source: Any, fields: Sequence[int] | None = None, *, stream: bool) -> Any:
    """Open a file of Arrow IPC, for all of its columns or some of them."""
    ipc = require("pyarrow.ipc", "cli")
    source.seek(0)
    options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    return (ipc.open_stream if stream else ipc.open_file)(source, options=options)


def _is_stream(file: DataFile) -> bool:
    """Return whether a file has the streaming format of Arrow IPC, not the file format."""
    with open_regular(file.path) as opened:
        return opened.read(6) != b"ARROW1"


class _Cursor:
    """Reads pieces of row groups in order, decoding each row once."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._place: tuple[str, int] | None = None
        self._position = 0
        self._tables: Iterator[Any] = iter(())
        self._rest: Any = None

    def read(self, piece: Piece) -> Any:
        """Read a piece; the pieces of one group must come in order."""
        pa = require("pyarrow", "cli")
        piece.file.check_unchanged()
        if not own_names(piece.file, self._schema):
            return with_partitions(None, piece.file, piece.length, self._schema)
        if self._place != (piece.file.path, piece.group):
            self._place = (piece.file.path, piece.group)
            self._tables, self._position, self._rest = _batches(piece, self._schema), 0, None
        parts, end = [], piece.offset + piece.length
        with reading(piece.file, values=True):
            while self._position < end:
                table = next(self._tables, None) if self._rest is None else self._rest
                if table is None:
                    raise CorruptDataError(f"{piece.file.shown}: has fewer rows than it states")
                skipped = min(max(piece.offset - self._position, 0), table.num_rows)
                part = table.slice(skipped, end - self._position - skipped)
                self._position += skipped + part.num_rows
                left = table.slice(skipped + part.num_rows)
                self._rest = left if left.num_rows else None
                parts.append(part)
        # Another file may have taken its place before it was opened.
        piece.file.check_unchanged()
        return with_partitions(pa.concat_tables(parts), piece.file, piece.length, self._schema)
