"""Where rows come from: files, frames and streams, in a fixed order and in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from turnout import _arguments
from turnout._extras import require
from turnout.errors import InvalidTypeError
from turnout.pipeline.sources.base import BLOCK, Block, Source, TableBlock
from turnout.pipeline.sources.columnar import ColumnarSource, FileBlock
from turnout.pipeline.sources.filed import CsvSource
from turnout.pipeline.sources.files import find_files
from turnout.pipeline.sources.frames import from_iterator, open_frame

__all__ = ["BLOCK", "Block", "FileBlock", "Source", "TableBlock", "open_source"]


def open_source(data: Any, *, block_rows: int = BLOCK) -> Source:
    """Open rows, wherever they are.

    Parameters
    ----------
    data
        One of

        - a path, a folder (searched with the folders in it), a glob such as ``"day-*.parquet"``, or
          a list of these: Parquet, Arrow IPC, CSV or TSV files (``.csv.gz`` too), all of one
          format. Folders named ``country=DE`` are Hive partitions and become columns, of numbers if
          all of their values are;
        - a table: pyarrow, pandas, polars, or any that narwhals takes; nothing is copied where
          Arrow allows;
        - a query that is run as it is read: a polars LazyFrame, a DuckDB relation, a
          ``pyarrow.dataset.Dataset``, a Ray data set. Its order must be the same whenever it runs;
        - a stream that is read once: a ``RecordBatchReader``, an iterator of record batches, any
          object with ``__arrow_c_stream__``.
    block_rows
        Rows of a block. Reports depend on it, so it is changed in tests only.

    Returns
    -------
    Source
        The rows in a fixed order. Files come in natural order of their paths (``part-2`` before
        ``part-10``), whatever the order of a list.

    Raises
    ------
    FileNotFoundError
        If a path does not exist.
    InvalidValueError
        If a folder or glob has no file of a known format, or a file is named twice.
    InvalidTypeError
        If ``data`` is none of these.
    CorruptDataError
        If a file cannot be read.
    MissingExtraError
        If pyarrow is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> source = open_source(pa.table({"answer": ["yes", "no", "yes"]}), block_rows=2)
    >>> [block.read()["answer"].to_pylist() for block in source.blocks(["answer"])]
    [['yes', 'no'], ['yes']]
    """
    require("pyarrow", "cli")
    # The streams of noise of a block are those of BLOCK rows.
    block_rows = _arguments.integer("block_rows", block_rows, least=1, most=BLOCK)
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        return _from_files(data, block_rows)
    if isinstance(data, (list, tuple)):
        if all(isinstance(entry, (str, os.PathLike)) for entry in data):
            return _from_files(data, block_rows)
        data = _concatenated(data)
    found = open_frame(data)
    if found is None and isinstance(data, Iterator):
        found = from_iterator(data)
    if found is None:
        raise _refused(data)
    found.block_rows = block_rows
    return found


def _concatenated(data: Sequence[Any]) -> Any:
    """Make one table of several."""
    pa = require("pyarrow", "cli")
    if not all(isinstance(entry, (pa.Table, pa.RecordBatch)) for entry in data):
        raise _refused(data)
    tables = [
        entry if isinstance(entry, pa.Table) else pa.Table.from_batches([entry]) for entry in data
    ]
    try:
        return pa.concat_tables(tables)
    except pa.ArrowException as error:
        raise InvalidTypeError(f"data must be tables of one schema: {error}") from error


def _refused(data: Any) -> InvalidTypeError:
    return InvalidTypeError(
        "data must be paths, a table, a query, or an iterator of record batches, got "
        f"{_arguments.shown(data)}"
    )


def _from_files(data: Any, block_rows: int) -> Source:
    name, files = find_files(data)
    opener = CsvSource if files[0].format == "csv" else ColumnarSource
    return opener(name, files, block_rows)
