"""Where rows come from: files, frames and streams, in a fixed order and in blocks."""

from __future__ import annotations

import os
from typing import Any

from turnout import _arguments
from turnout._extras import require
from turnout.pipeline.sources.base import BLOCK, Block, Source, TableBlock
from turnout.pipeline.sources.columnar import ColumnarSource, FileBlock
from turnout.pipeline.sources.filed import CsvSource
from turnout.pipeline.sources.files import find_files
from turnout.pipeline.sources.frames import open_frame

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
    several = data if isinstance(data, (list, tuple)) else [data]
    if all(isinstance(entry, (str, os.PathLike)) for entry in several):
        name, files = find_files(data)
        opener = CsvSource if files[0].format == "csv" else ColumnarSource
        return opener(name, files, block_rows)
    found = open_frame(data)
    if found is None:
        raise _arguments.mistyped(
            "data must be paths, a table, a query, or an iterator of record batches", data
        )
    found.block_rows = block_rows
    return found
