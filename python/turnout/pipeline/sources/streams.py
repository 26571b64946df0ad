"""Rows that come as a stream of Arrow batches: iterators, readers, queries, data sets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

from turnout import _arguments
from turnout._extras import require
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.pipeline.sources.base import BLOCK, Block, Source, blocks_of_stream, read_once
from turnout.pipeline.sources.schemas import conform, wanted_schema


class StreamSource(Source):
    """Rows that come as batches: each time they are read, or once.

    Parameters
    ----------
    name
        What messages call it.
    schema
        Its columns.
    run
        Computes some columns, as record batches or tables in a fixed order; other columns may be
        in them.
    once
        Whether it can be read once only; else it is computed anew each time.
    block_rows
        Rows of a block.
    """

    schema: Any = None

    def __init__(
        self,
        name: str,
        schema: Any,
        run: Callable[[list[str]], Iterable[Any]],
        *,
        once: bool = False,
        block_rows: int = BLOCK,
    ) -> None:
        self.name = name
        self.block_rows = block_rows
        self.schema = schema
        self.repeatable, self.computed = not once, not once
        self._run = run
        self._used = False

    def blocks(
        self,
        columns: Sequence[str],
        *,
        skip: Container[int] = (),
        categories: Container[str] = (),
    ) -> Iterator[Block]:
        """Cut the stream into blocks; what can be read once is used up by this."""
        schema = wanted_schema(self.schema, columns, self.name)
        if self._used and not self.repeatable:
            raise read_once(self)
        self._used = True
        batches = self._run(list(columns))
        return blocks_of_stream(_selected(batches, schema, self.name), self, skip)


def _selected(batches: Iterable[Any], schema: Any, name: str) -> Iterator[Any]:
    """Take the wanted columns of each batch, in the types of the first."""
    pa = require("pyarrow", "cli")
    for number, batch in enumerate(_named(pa, batches, name)):
        if isinstance(batch, pa.RecordBatch):
            table = pa.Table.from_batches([batch])
        elif isinstance(batch, pa.Table):
            table = batch
        else:
            raise _arguments.mistyped(
                f"{name}: batch {number} must be a pyarrow RecordBatch or Table", batch
            )
        wanted_schema(table.schema, schema.names, f"{name}, batch {number}")
        yield conform(table.select(schema.names), schema, f"{name}, batch {number}")


def _named(pa: Any, batches: Iterable[Any], name: str) -> Iterator[Any]:
    """Name the stream in what Arrow has to say about it."""
    iterator = iter(batches)
    while True:
        try:
            batch = next(iterator, None)
        except pa.ArrowException as error:
            raise CorruptDataError(f"{name}: cannot be read: {error}") from error
        if batch is None:
            return
        yield batch


def from_iterator(data: Iterable[Any], block_rows: int = BLOCK) -> Source:
    """Open an iterator of record batches; the first of them is asked for now.

    Raises
    ------
    InvalidValueError
        If there is none.
    InvalidTypeError
        If it is no record batch.
    """
    pa = require("pyarrow", "cli")
    name = "the iterator of record batches"
    iterator = iter(data)
    first = next(iterator, None)
    if first is None:
        raise InvalidValueError("data must give at least one record batch, got an empty iterator")
    if not isinstance(first, (pa.RecordBatch, pa.Table)):
        raise _arguments.mistyped("data must give pyarrow record batches or tables", first)
    batches = itertools.chain([first], iterator)
    return StreamSource(name, first.schema, lambda _: batches, once=True, block_rows=block_rows)
