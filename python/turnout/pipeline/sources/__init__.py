"""Sources of rows: files, frames and streams, in a fixed order and in blocks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from turnout import _arguments
from turnout._extras import require
from turnout.errors import InvalidValueError
from turnout.pipeline.sources.base import BLOCK, Block, Source, TableBlock
from turnout.pipeline.sources.columnar import ColumnarSource, FileBlock
from turnout.pipeline.sources.delimited import CsvSource
from turnout.pipeline.sources.files import find_files
from turnout.pipeline.sources.frames import open_frame

__all__ = ["BLOCK", "Block", "FileBlock", "Source", "TableBlock", "open_source"]


def open_source(
    data: Any,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    block_rows: int = BLOCK,
) -> Source:
    """Open a source of rows of any kind.

    Parameters
    ----------
    data
        Whatever :func:`turnout.pipeline.scan` takes.
    separator, encoding
        How CSV files are written, likewise.
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
    given = {"separator": separator, "encoding": encoding}
    stated = {argument: value for argument, value in given.items() if value is not None}
    if isinstance(data, Source):
        _refuse_stated(stated)
        return data
    several = data if isinstance(data, (list, tuple)) else [data]
    if all(isinstance(entry, (str, os.PathLike)) for entry in several):
        name, files = find_files(data)
        if files[0].format == "csv":
            return CsvSource(name, files, block_rows, separator=separator, encoding=encoding)
        _refuse_stated(stated)
        return ColumnarSource(name, files, block_rows)
    _refuse_stated(stated)
    found = open_frame(data)
    if found is None:
        raise _arguments.mistyped(
            "data must be paths, a table, a dictionary of columns, a list of dictionaries, a query "
            "or an iterator of record batches",
            _arguments.Private(data),
        )
    found.block_rows = block_rows
    return found


def _refuse_stated(stated: Mapping[str, str]) -> None:
    """Refuse a text format for a source without text."""
    for argument, value in stated.items():
        raise InvalidValueError(
            f"{argument} applies to CSV files, but there are no CSV files, got {value!r}"
        )
