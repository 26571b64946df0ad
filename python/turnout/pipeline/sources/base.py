"""Sources: rows in a fixed order, cut into blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from turnout._extras import require
from turnout._types import Integers
from turnout.errors import InvalidValueError
from turnout.pipeline.sources.schemas import wanted_schema

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
    """A block that is in memory."""

    table: Any = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows of the block, and not the table that they are a slice of."""
        pa = require("pyarrow", "cli")
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        rows = sink.getvalue().to_pybytes()
        return _unpickled, (self.index, self.rows, rows, self.first_row, self.left_out)

    def read(self) -> Any:
        """Give the table."""
        return self.table


def _unpickled(index: int, rows: int, table: Any, first_row: int, left_out: Any) -> TableBlock:
    pa = require("pyarrow", "cli")
    with pa.ipc.open_stream(pa.py_buffer(table)) as reader:
        table = reader.read_all()
    return TableBlock(index, rows, table, first_row=first_row, left_out=left_out)


class Source(ABC):
    """Where rows come from.

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
    def number_of_blocks(self) -> int | None:
        """The number of blocks, where that of rows is known, or None."""
        return None if self.rows is None else -(-self.rows // self.block_rows)

    def content(self) -> bytes | None:
        """Compute a digest of all that is in the source, by which a job knows it again.

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

    def check(self, columns: Sequence[str]) -> None:
        """Check that columns can be read, as :meth:`blocks` does, before anything is read.

        Raises
        ------
        InvalidValueError
            If a column is not there exactly once.
        InvalidTypeError
            If a column is nested, or has different types in different files.
        """
        wanted_schema(self.schema, columns, self.name)

    @abstractmethod
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

    def __repr__(self) -> str:
        """Show the name and the number of rows."""
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        return f"<{type(self).__name__}: {self.name}{rows}>"


def slices(table: Any, source: Source, skip: Container[int] = ()) -> Iterator[Block]:
    """Cut a table in memory into blocks; nothing is copied."""
    size = source.block_rows
    for index in range(-(-table.num_rows // size)):
        if index not in skip:
            part = table.slice(index * size, size)
            yield TableBlock(index, part.num_rows, part, first_row=index * size)


def blocks_of_stream(
    tables: Iterable[Any], source: Source, skip: Container[int] = ()
) -> Iterator[Block]:
    """Cut a stream of tables of any length into blocks, one of them in hand."""
    pa = require("pyarrow", "cli")
    size, index, waiting, pieces = source.block_rows, 0, 0, []
    for table in tables:
        position = 0
        while position < table.num_rows:
            piece = table.slice(position, size - waiting)
            pieces.append(piece)
            position += piece.num_rows
            waiting += piece.num_rows
            if waiting == size:
                if index not in skip:
                    yield TableBlock(index, size, pa.concat_tables(pieces), first_row=index * size)
                index, waiting, pieces = index + 1, 0, []
    if waiting and index not in skip:
        yield TableBlock(index, waiting, pa.concat_tables(pieces), first_row=index * size)


def read_once(source: Source) -> InvalidValueError:
    """Say that a stream is used up."""
    return InvalidValueError(
        f"{source.name} can be read only once, and has been: open it again, or use a file or a "
        "table, which can be read as often as is needed"
    )
