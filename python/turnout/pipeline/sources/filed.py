"""The common base of file sources."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from turnout._extras import require
from turnout.errors import CorruptDataError
from turnout.pipeline.sources.base import (
    BLOCK,
    Source,
    as_category,
    conform,
    plain_schema,
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
def reading(file: DataFile, *, values: bool = False) -> Iterator[None]:
    """Add the file's name to the errors of its reader.

    What they say of ``values`` may quote one, and is passed over; what they say of the file is not.
    """
    pa = require("pyarrow", "cli")
    try:
        yield
    except UnicodeDecodeError:
        raise CorruptDataError(f"{file.shown}: holds text that is not UTF-8") from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if values and not isinstance(error, OSError):
            raise CorruptDataError(f"{file.shown}: its rows cannot be read") from None
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
    stated
        How the files are to be read, where it was stated: part of the fingerprint.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[DataFile],
        schemas: Sequence[Any],
        block_rows: int = BLOCK,
        *,
        stated: str = "",
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
        self.fingerprint = fingerprint(
            self._files, f"{block_rows}/{stated}" if stated else str(block_rows)
        )

    @property
    def schema(self) -> Any:
        """The columns of the first file, and the partitions."""
        pa = require("pyarrow", "cli")
        fields = [pa.field(name, kind) for name, kind in self._partitions.items()]
        return pa.schema([*plain_schema(self._first), *fields])

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
