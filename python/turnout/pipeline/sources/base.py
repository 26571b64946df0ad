"""Sources: rows in a fixed order, cut into blocks, and columns by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from turnout._extras import require
from turnout._types import Integers
from turnout.errors import InvalidTypeError, InvalidValueError

T = TypeVar("T")

_SHOWN = 12
#: The largest scale of a decimal that Arrow can write as a number, by bits.
_MOST_SCALE: Final = {32: 9, 64: 18, 128: 38, 256: 76}


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type holds text, as it is or in a dictionary."""
    return _family(kind) == "text"


def _family(kind: Any) -> str:
    """Name the types that go together."""
    types = require("pyarrow", "cli").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_integer(kind):
        return "integer"
    return "number" if types.is_floating(kind) else str(kind)


def plain_type(kind: Any) -> Any:
    """Return the type in which a column is read: for runs of values, the type of the values."""
    types = require("pyarrow", "cli").types
    if not types.is_run_end_encoded(kind):
        return kind
    inner = kind.value_type
    return inner.value_type if types.is_dictionary(inner) else inner


def plain_schema(schema: Any) -> Any:
    """Return the types in which columns are read."""
    pa = require("pyarrow", "cli")
    return pa.schema([pa.field(item.name, plain_type(item.type)) for item in schema])


def wanted_schema(schema: Any, columns: Sequence[str], name: str) -> Any:
    """Return the wanted columns; each must exist exactly once, with one value for each row.

    Raises
    ------
    InvalidValueError
        If a column is missing, or if several have its name.
    InvalidTypeError
        If a column is nested, or has decimals of which Arrow cannot make numbers.
    """
    pa = require("pyarrow", "cli")
    fields = []
    for column in columns:
        count = schema.names.count(column)
        if count > 1:
            raise InvalidValueError(f"{name}: {count} columns are named {column!r}")
        if not count:
            plain = column.strip().casefold()
            like = [other for other in schema.names if other.strip().casefold() == plain]
            hint = f", but one {like[0]!r}" if like else ""
            raise InvalidValueError(
                f"{name}: no column {column!r}{hint}; its columns are {_names(schema.names)}"
            )
        kind = plain_type(schema.field(column).type)
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        inner = inner.storage_type if isinstance(inner, pa.BaseExtensionType) else inner
        if pa.types.is_nested(inner):
            raise InvalidTypeError(
                f"{name}: column {column!r} has type {kind}, expected one value a row"
            )
        most = _MOST_SCALE[inner.bit_width] if pa.types.is_decimal(inner) else 0
        if most and abs(inner.scale) > most:
            raise InvalidTypeError(
                f"{name}: column {column!r} has type {kind}, expected a scale from -{most} to "
                f"{most}: cast the column to float64"
            )
        fields.append(pa.field(column, kind))
    return pa.schema(fields)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{shown}, ..." if len(names) > _SHOWN else shown or "none"


def unified(column: str, found: Iterable[tuple[str, Any]], source: str) -> Any:
    """Return the one type for a column of several files.

    Parameters
    ----------
    column, source
        The column, and what messages call the files.
    found
        For each type a file that has it, and the type.

    Raises
    ------
    InvalidTypeError
        If the types do not go together; names two files.
    """
    pa = require("pyarrow", "cli")
    kinds: dict[Any, str] = {}
    for file, kind in found:
        kinds.setdefault(kind, file)
    present = [kind for kind in kinds if not pa.types.is_null(kind)] or list(kinds)
    first = present[0]
    if len(present) == 1:
        return first
    unsigned = [pa.types.is_unsigned_integer(kind) for kind in present]
    for kind in present[1:]:
        if _family(kind) != _family(first) or (pa.uint64() in present and not all(unsigned)):
            raise InvalidTypeError(
                f"{source}: column {column!r} has type {first} in {kinds[first]} and type {kind} "
                f"in {kinds[kind]}"
            )
    match _family(first):
        case "text":
            values = [k.value_type if pa.types.is_dictionary(k) else k for k in present]
            return pa.large_string() if pa.large_string() in values else pa.string()
        case "integer":
            return pa.uint64() if all(unsigned) else pa.int64()
        case "number":
            return pa.float64()
    return first.value_type if pa.types.is_dictionary(first) else first


def as_category(kind: Any) -> Any:
    """Give texts the type of a dictionary; other types stay as they are."""
    pa = require("pyarrow", "cli")
    if not is_text(kind) or pa.types.is_dictionary(kind):
        return kind
    return pa.dictionary(
        pa.int32(), pa.large_string() if kind == pa.large_string() else pa.string()
    )


def conform(table: Any, schema: Any, name: str) -> Any:
    """Return a table with the column order and the types of a schema.

    Raises
    ------
    InvalidTypeError
        If a value does not fit the type.
    """
    pa = require("pyarrow", "cli")
    if table.schema.equals(schema):
        return table
    columns = []
    for item in schema:
        column = table.column(item.name)
        try:
            columns.append(_cast(column, item.type))
        except pa.ArrowException:
            # Not the text of the error, which may quote a value.
            raise InvalidTypeError(
                f"{name}: column {item.name!r} has type {column.type} where type {item.type} is "
                "expected, and a value does not fit it"
            ) from None
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: Any, kind: Any) -> Any:
    pa, types = require("pyarrow", "cli"), require("pyarrow", "cli").types
    if types.is_run_end_encoded(column.type):
        plain = plain_type(column.type)
        chunks = [_decoded(chunk, plain) for chunk in column.chunks]
        column = pa.chunked_array(chunks, plain)
    if types.is_dictionary(kind) and types.is_string_view(column.type):
        # Arrow makes no dictionary of views.
        column = column.cast(kind.value_type)
    return column.cast(kind)


def _decoded(chunk: Any, plain: Any) -> Any:
    """Expand runs of values."""
    pa, compute = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
    if chunk.type.value_type != plain:
        # Arrow decodes no dictionaries.
        kind = pa.run_end_encoded(chunk.type.run_end_type, plain)
        children = [chunk.run_ends, chunk.values.cast(plain)]
        chunk = pa.RunEndEncodedArray.from_buffers(
            kind, len(chunk), [None], 0, chunk.offset, children
        )
    return compute.run_end_decode(chunk)


#: Rows of a block. Block ``i`` of a source is its rows ``[i * BLOCK, (i + 1) * BLOCK)``.
BLOCK: Final = 2**20


@dataclass(frozen=True, eq=False)
class Block(ABC):
    """A stretch of rows of a source.

    Attributes
    ----------
    index
        The number of the block in its source.
    rows
        How many rows :meth:`read` gives.
    first_row
        The number of the block's first row in its source, from 0; -1 if ``index * BLOCK``.
    left_out
        Positions in the block of rows that do not count, because another row of the same person
        does; None if nobody has looked.
    """

    index: int
    rows: int
    first_row: int = field(default=-1, kw_only=True)
    left_out: Integers | None = field(default=None, kw_only=True, repr=False)

    @property
    def start(self) -> int:
        """The number of the block's first row in its source, from 0."""
        return self.index * BLOCK if self.first_row < 0 else self.first_row

    @abstractmethod
    def read(self) -> Any:
        """Read the rows.

        Returns
        -------
        pyarrow.Table
            Exactly :attr:`rows` rows of the columns that were asked for.
        """


@dataclass(frozen=True, eq=False)
class TableBlock(Block):
    """A block in memory."""

    table: Any = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows of the block without the table that they are sliced from."""
        pa = require("pyarrow", "cli")
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        rows = sink.getvalue().to_pybytes()
        return _unpickled, (self.index, self.rows, rows, self.first_row, self.left_out)

    def read(self) -> Any:
        """Return the table."""
        return self.table


def _unpickled(index: int, rows: int, table: Any, first_row: int, left_out: Any) -> TableBlock:
    pa = require("pyarrow", "cli")
    with pa.ipc.open_stream(pa.py_buffer(table)) as reader:
        table = reader.read_all()
    return TableBlock(index, rows, table, first_row=first_row, left_out=left_out)


class Source(ABC):
    """A source of rows (base class).

    Attributes
    ----------
    name
        What messages call it.
    rows
        The number of rows, where it is known without reading them all, or None.
    repeatable
        Whether the rows can be read more than once.
    computed
        Whether another reading could give other rows or another order of them: a query that is
        computed anew, a frame that can be edited in place.
    fingerprint
        A hexadecimal digest that changes when the data may have changed; None if there is none. Its
        first 32 digits depend on nothing that is in the data: they stay in the state of a job.
    texts
        Whether every column is text because the format knows nothing else (CSV).
    block_rows
        Rows of a block.
    """

    name: str
    rows: int | None = None
    repeatable: bool = True
    computed: bool = False
    fingerprint: str | None = None
    texts: bool = False
    block_rows: int = BLOCK

    @property
    @abstractmethod
    def schema(self) -> Any:
        """The columns and their types, a ``pyarrow.Schema``; partition columns included."""

    @property
    def file_rows(self) -> Mapping[str, int]:
        """The rows of each file, by its path as it was passed, as far as they are known."""
        return {}

    @property
    def number_of_blocks(self) -> int | None:
        """The number of blocks, if the number of rows is known, or None."""
        return None if self.rows is None else -(-self.rows // self.block_rows)

    def content(self) -> bytes | None:
        """Compute a digest of the whole source, by which a job recognizes it.

        It is written under the job's secret only.

        Returns
        -------
        bytes or None
            None if the rows themselves have to be digested.

        Raises
        ------
        CorruptDataError, OSError
            If a file was changed, or cannot be read.
        """
        return None

    def _checked(self, columns: Sequence[str], categories: Container[str] = ()) -> Any:
        """Check that columns can be read, and return their schema for :meth:`_blocks`."""
        return wanted_schema(self.schema, columns, self.name)

    def check(self, columns: Sequence[str]) -> None:
        """Check that columns can be read, as :meth:`blocks` does, before anything is read.

        Raises
        ------
        InvalidValueError
            If a column is not there exactly once.
        InvalidTypeError
            If a column is nested, or has different types in different files.
        """
        self._checked(columns)

    def blocks(
        self,
        columns: Sequence[str],
        *,
        skip: Container[int] = (),
        categories: Container[str] = (),
    ) -> Iterator[Block]:
        """Cut the rows into blocks.

        Parameters
        ----------
        columns
            The columns to read, and no others.
        skip
            Numbers of blocks that are not wanted.
        categories
            Those of the columns in which few different values are expected: read as a dictionary
            where the format can.

        Yields
        ------
        Block
            The wanted blocks in order.

        Raises
        ------
        InvalidValueError
            If a column is not there exactly once, or if the source was read before and cannot be
            read again.
        InvalidTypeError
            If a column is nested, or has different types in different files.
        CorruptDataError
            If a file cannot be read.
        """
        return self._blocks(self._checked(columns, categories), skip)

    def _blocks(self, checked: Any, skip: Container[int]) -> Iterator[Block]:
        """Cut rows into blocks; this may be a generator."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Show the name and the number of rows."""
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        return f"<{type(self).__name__}: {self.name}{rows}>"


def blocks_of_stream(
    tables: Iterable[Any], source: Source, skip: Container[int] = ()
) -> Iterator[Block]:
    """Cut a stream of tables of any length into blocks, with one block in memory."""
    pa = require("pyarrow", "cli")
    size = source.block_rows
    for index, pieces in enumerate(cut(((table, table.num_rows) for table in tables), size)):
        if index not in skip:
            rows = pa.concat_tables(table.slice(start, count) for table, start, count in pieces)
            pieces.clear()
            yield TableBlock(index, rows.num_rows, rows, first_row=index * size)


def cut(stretches: Iterable[tuple[T, int]], size: int) -> Iterator[list[tuple[T, int, int]]]:
    """Cut tables into blocks of one size; the last block may be smaller.

    Parameters
    ----------
    stretches
        What holds rows, and how many.
    size
        Rows of a block.

    Yields
    ------
    list of tuple
        What holds the rows of a block, the first of them there, and how many they are.

    Examples
    --------
    >>> list(cut([("a", 5), ("b", 2)], 3))
    [[('a', 0, 3)], [('a', 3, 2), ('b', 0, 1)], [('b', 1, 1)]]
    """
    pieces: list[tuple[T, int, int]] = []
    room = size
    for holder, rows in stretches:
        start = 0
        while start < rows:
            taken = min(room, rows - start)
            pieces.append((holder, start, taken))
            start += taken
            room -= taken
            if not room:
                yield pieces
                pieces, room = [], size
    if pieces:
        yield pieces
