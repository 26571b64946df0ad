"""What sources of files have in common: their columns, their partitions, and what is in them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from turnout._extras import require
from turnout.errors import CorruptDataError
from turnout.pipeline.sources.base import BLOCK, Block, Source
from turnout.pipeline.sources.files import (
    DataFile,
    content_digest,
    field_kind,
    fingerprint,
    partition_fields,
    partition_value,
)
from turnout.pipeline.sources.schemas import conform, target_schema, unified, wanted_schema


@contextmanager
def reading(file: DataFile) -> Iterator[None]:
    """Name the file in what Arrow has to say about it."""
    pa = require("pyarrow", "cli")
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
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
        self._partitions = partition_fields(self._files)
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

    def _wanted(self, columns: Sequence[str]) -> Any:
        """Types of the wanted columns, checked in every file."""
        pa = require("pyarrow", "cli")
        found: dict[str, list[tuple[str, Any]]] = {column: [] for column in columns}
        for file, schema in self._distinct.values():
            extra = [pa.field(name, self._partitions[name]) for name, _ in file.partitions]
            for item in wanted_schema(pa.schema([*schema, *extra]), columns, file.shown):
                found[item.name].append((file.shown, item.type))
        return pa.schema(
            [pa.field(name, unified(name, kinds, self.name)) for name, kinds in found.items()]
        )

    def content(self) -> bytes:
        """Digest all bytes of the files."""
        return content_digest(self._files)

    def check(self, columns: Sequence[str]) -> None:
        """Check that columns can be read."""
        self._wanted(columns)

    def blocks(
        self,
        columns: Sequence[str],
        *,
        skip: Container[int] = (),
        categories: Container[str] = (),
    ) -> Iterator[Block]:
        """Cut the rows into blocks."""
        return self._blocks(target_schema(self._wanted(columns), categories), skip)

    @abstractmethod
    def _blocks(self, schema: Any, skip: Container[int]) -> Iterator[Block]:
        """Cut rows of these columns into blocks."""


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
            known = partition_value(value, field_kind(item.type))
            column = pa.repeat(pa.scalar(known, item.type), rows)
        columns.append(pa.chunked_array([column]))
    return conform(pa.Table.from_arrays(columns, names=schema.names), schema, file.shown)
