"""Sources of files: what all formats share, and CSV files, which are read in order."""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from turnout._extras import require
from turnout.errors import CorruptDataError
from turnout.pipeline.sources.base import (
    BLOCK,
    Block,
    Source,
    as_category,
    blocks_of_stream,
    conform,
    unified,
    wanted_schema,
)
from turnout.pipeline.sources.files import (
    DataFile,
    content_digest,
    fingerprint,
    partition_types,
    partition_value,
)


@contextmanager
def reading(file: DataFile) -> Iterator[None]:
    """Name the file in what its readers have to say about it."""
    pa = require("pyarrow", "cli")
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise CorruptDataError(f"{file.shown}: cannot be read: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise CorruptDataError(f"{file.shown}: cannot be read: {error}") from error


class FileSource(Source):
    """Files of one format.

    Parameters
    ----------
    name
        What messages call them.
    files
        The files in order.
    schemas
        The columns of each, without its partitions.
    block_rows
        Rows of a block.
    """

    def __init__(
        self, name: str, files: Sequence[DataFile], schemas: Sequence[Any], block_rows: int = BLOCK
    ) -> None:
        self.name = name
        self.block_rows = block_rows
        self._files = list(files)
        self._partitions = partition_types(file.partitions for file in self._files)
        self._first = schemas[0]
        # Files of one kind are looked at once.
        self._distinct: dict[Any, tuple[DataFile, Any]] = {}
        for file, schema in zip(self._files, schemas, strict=True):
            names = tuple(name for name, _ in file.partitions)
            self._distinct.setdefault((schema, names), (file, schema))
        self.fingerprint = fingerprint(self._files, block_rows)

    @property
    def schema(self) -> Any:
        """The columns of the first file, and the partitions."""
        pa = require("pyarrow", "cli")
        fields = [pa.field(name, kind) for name, kind in self._partitions.items()]
        return pa.schema([*(pa.field(f.name, f.type) for f in self._first), *fields])

    def _checked(self, columns: Sequence[str], categories: Container[str] = ()) -> Any:
        """Types of the wanted columns, checked in every file; categories are dictionaries."""
        pa = require("pyarrow", "cli")
        found: dict[str, list[tuple[str, Any]]] = {column: [] for column in columns}
        for file, schema in self._distinct.values():
            extra = [pa.field(name, self._partitions[name]) for name, _ in file.partitions]
            for item in wanted_schema(pa.schema([*schema, *extra]), columns, file.shown):
                found[item.name].append((file.shown, item.type))
        kinds = {name: unified(name, each, self.name) for name, each in found.items()}
        return pa.schema(
            [
                (name, as_category(kind) if name in categories else kind)
                for name, kind in kinds.items()
            ]
        )

    def content(self) -> bytes:
        """Digest all bytes of the files."""
        return content_digest(self._files)


def own_names(file: DataFile, schema: Any) -> list[str]:
    """List the wanted columns that a file itself has."""
    return [name for name in schema.names if name not in dict(file.partitions)]


def with_partitions(table: Any, file: DataFile, rows: int, schema: Any) -> Any:
    """Add the columns of a file's partitions, and give all columns their types."""
    pa = require("pyarrow", "cli")
    values = dict(file.partitions)
    columns = []
    for item in schema:
        if item.name not in values:
            columns.append(table.column(item.name))
            continue
        value = values[item.name]
        if pa.types.is_dictionary(item.type):
            indices = pa.repeat(pa.scalar(None if value is None else 0, pa.int32()), rows)
            texts = pa.array([value] if value is not None else [], item.type.value_type)
            column = pa.DictionaryArray.from_arrays(indices, texts)
        else:
            column = pa.repeat(partition_value(value, item.type), rows)
        columns.append(pa.chunked_array([column]))
    return conform(pa.Table.from_arrays(columns, names=schema.names), schema, file.shown)


_CHUNK: Final = 2**22


class CsvSource(FileSource):
    """CSV and TSV files, perhaps compressed: UTF-8 with a header line; every column is text.

    An empty field is null, also between quotes; fields may hold line ends between quotes. They can
    only be read from their beginning.
    """

    texts = True

    def __init__(self, name: str, files: Sequence[DataFile], block_rows: int = BLOCK) -> None:
        super().__init__(name, files, list(map(_header_schema, files)), block_rows)

    def _blocks(self, checked: Any, skip: Container[int]) -> Iterator[Block]:
        return blocks_of_stream(self._tables(checked), self, skip)

    def _tables(self, schema: Any) -> Iterator[Any]:
        for file in self._files:
            file.check_unchanged()
            for table in _rows(file, schema):
                # Rows that were written meanwhile: nobody looked whose they are.
                file.check_unchanged()
                yield with_partitions(table, file, table.num_rows, schema)


def _header_schema(file: DataFile) -> Any:
    pa = require("pyarrow", "cli")
    header, _ = _beginning(file)
    if not header:
        raise CorruptDataError(f"{file.shown}: no header line")
    return pa.schema([pa.field(name, pa.string()) for name in header])


def _rows(file: DataFile, schema: Any) -> Iterator[Any]:
    """Read the wanted columns that a file itself has, in tables of any length."""
    pa = require("pyarrow", "cli")
    arrow_csv = require("pyarrow.csv", "cli")
    header, more = _beginning(file)
    if not more:
        return
    names = own_names(file, schema)
    # Without a column of its own to read, its rows still count.
    kinds = {name: schema.field(name).type for name in names} or {header[0]: pa.string()}
    with (
        reading(file),
        pa.input_stream(file.path, compression="detect") as stream,
        arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(block_size=_CHUNK, use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                delimiter=_delimiter(file),
                newlines_in_values=True,
                # With one column an empty line is a row whose field is empty: a missing value.
                ignore_empty_lines=len(header) > 1,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(kinds),
                column_types=kinds,
                null_values=[""],
                strings_can_be_null=True,
            ),
        ) as reader,
    ):
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _delimiter(file: DataFile) -> str:
    return "\t" if ".tsv" in [suffix.lower() for suffix in Path(file.path).suffixes[-2:]] else ","


def _beginning(file: DataFile) -> tuple[list[str], bool]:
    """Read the header, and whether anything comes after it: Arrow takes no header alone."""
    pa = require("pyarrow", "cli")
    with (
        reading(file),
        pa.input_stream(file.path, compression="detect") as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
    ):
        lines = csv.reader(text, delimiter=_delimiter(file))
        header = next((row for row in lines if row), [])
        try:
            return header, any(row or len(header) == 1 for row in lines)
        except csv.Error:
            # A field that is too long for this reader; Arrow has the last word.
            return header, True
