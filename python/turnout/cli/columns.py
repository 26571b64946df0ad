"""Reading one column of a CSV, Parquet or Arrow IPC file, and nothing else of it.

Everything that has to be decided about a value (is it missing, is it a number) is decided once a
distinct value, not once a row: columns are dictionary encoded as they are read.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout._extras import require
from turnout._files import check_regular, open_regular
from turnout._label_texts import (
    INTEGER,
    Kind,
    Value,
    label_text,
    missing_texts,
    parse_label,
)
from turnout.errors import InvalidTypeError, InvalidValueError

__all__ = ["Column", "Kind", "Value", "label_text", "parse_label", "read_column"]

_DELIMITED = {".csv": ",", ".tsv": "\t"}
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}
_ARROW = {".arrow", ".ipc", ".feather"}
_LARGEST_EXACT = 2**53


@dataclass(frozen=True)
class Column:
    """One column of a file.

    Attributes
    ----------
    name
        The column's name.
    values
        Its distinct values, missing ones left out; all of one Python type.
    indices
        For each row the position of its value in ``values``; -1 where it is missing.
    kind
        What the values are: ``"integer"``, ``"number"``, ``"boolean"`` or ``"text"``.
    """

    name: str
    values: tuple[Value, ...]
    indices: npt.NDArray[np.int32]
    kind: Kind

    def missing_rows(self) -> npt.NDArray[np.intp]:
        """Positions of the rows without a value, counted from 0.

        Examples
        --------
        >>> Column("c", ("a",), np.array([0, -1, 0], np.int32), "text").missing_rows().tolist()
        [1]
        """
        return np.flatnonzero(self.indices < 0)

    def as_text(self) -> Column:
        """Write every value as text.

        Examples
        --------
        >>> Column("c", (3, 1), np.array([0, 1], np.int32), "integer").as_text().values
        ('3', '1')
        """
        return Column(self.name, tuple(map(label_text, self.values)), self.indices, "text")


def read_column(
    path: str | os.PathLike[str],
    column: str,
    *,
    missing_values: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Column:
    r"""Read one column of a file.

    Missing are nulls, NaN, empty texts, texts that pandas takes for missing (``NA``, ``n/a``,
    ``<NA>``) where they are no label that is stated, and those in ``missing_values``. In a
    CSV file a column in which every value is written as a plain integer (``7``, not ``07`` and
    not ``7.0``) is a column of integers, any other is text, kept as it is written. In Parquet and
    Arrow files the column's type says it; floating-point columns that hold whole numbers only are
    columns of integers, and dates and decimals are read as text.

    Parameters
    ----------
    path
        A file that ends in ``.csv`` or ``.tsv`` (also compressed: ``.csv.gz``), ``.parquet``,
        ``.arrow``, ``.ipc`` or ``.feather``. CSV files are UTF-8 and have a header line.
    column
        Name of the column.
    missing_values
        Further texts that stand for a missing value, such as ``"?"``.
    labels
        The labels that are stated.

    Returns
    -------
    Column
        The distinct values and a position for each row.

    Raises
    ------
    InvalidValueError
        If the file has no such column, or has it twice, or cannot be parsed.
    InvalidTypeError
        If the column holds lists, structures or bytes.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("name,answer\nann,often\nbob,\ncem,never\n")
    ...     column = read_column(file, "answer")
    >>> column.values, column.indices.tolist(), column.kind
    (('often', 'never'), [0, -1, 1], 'text')
    """
    pa = require("pyarrow", "cli")
    name = Path(path)
    suffixes = [suffix.lower() for suffix in name.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    check_regular(name)
    try:
        if suffix in _DELIMITED:
            encoded = _read_delimited(name, column, _DELIMITED[suffix])
        elif suffix == ".parquet":
            encoded = _read_parquet(name, column)
        elif suffix in _ARROW:
            encoded = _read_arrow(name, column)
        else:
            known = ", ".join([*_DELIMITED, ".csv.gz", ".parquet", *sorted(_ARROW)])
            raise InvalidValueError(
                f"{os.fspath(path)}: unknown suffix {name.suffix!r}; expected one of {known}"
            )
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # What Arrow cannot parse comes as an OSError without a number, too.
        raise InvalidValueError(f"{os.fspath(path)}: cannot be read: {error}") from error
    missing = missing_texts(labels, missing_values)
    return _classify(encoded, column, missing, suffix in _DELIMITED)


def _only(names: Sequence[str], column: str, path: Path) -> int:
    """Position of a column that must be there exactly once."""
    positions = [position for position, name in enumerate(names) if name == column]
    if len(positions) == 1:
        return positions[0]
    if positions:
        raise InvalidValueError(f"{path}: {len(positions)} columns are named {column!r}")
    shown = ", ".join(repr(name) for name in names[:12]) + (", ..." if len(names) > 12 else "")
    raise InvalidValueError(f"{path}: no column {column!r}; its columns are {shown or 'none'}")


def _read_delimited(path: Path, column: str, delimiter: str) -> Any:
    pa = require("pyarrow", "cli")
    arrow_csv = require("pyarrow.csv", "cli")
    try:
        with (
            pa.input_stream(os.fspath(path), compression="detect") as stream,
            io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
        ):
            header = next((row for row in csv.reader(text, delimiter=delimiter) if row), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidValueError(f"{path}: the header line cannot be read: {error}") from error
    _only(header, column, path)
    table = arrow_csv.read_csv(
        os.fspath(path),
        parse_options=arrow_csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            # With one column an empty line is a row whose field is empty: a missing value.
            ignore_empty_lines=len(header) > 1,
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=[column],
            column_types={column: pa.dictionary(pa.int32(), pa.string())},
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return table.column(0)


def _read_parquet(path: Path, column: str) -> Any:
    pa = require("pyarrow", "cli")
    parquet = require("pyarrow.parquet", "cli")
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        kind = schema.field(_only(schema.names, column, path)).type
        if pa.types.is_nested(kind):
            raise InvalidTypeError(f"{path}: column {column!r} has type {kind}, expected one value")
        texts = [column] if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        return file.read(columns=[column]).column(0)


def _read_arrow(path: Path, column: str) -> Any:
    pa = require("pyarrow", "cli")
    ipc = require("pyarrow.ipc", "cli")
    with open_regular(path) as file:
        is_file = file.read(6) == b"ARROW1"
    opener = ipc.open_file if is_file else ipc.open_stream
    with pa.OSFile(os.fspath(path)) as source:
        with opener(source) as reader:
            position = _only(reader.schema.names, column, path)
        source.seek(0)
        options = ipc.IpcReadOptions(included_fields=[position])
        with opener(source, options=options) as reader:
            return reader.read_all().column(0)


def _classify(encoded: Any, column: str, missing: frozenset[str], from_text: bool) -> Column:
    """Distinct values and row positions of an Arrow column, missing values found."""
    pa = require("pyarrow", "cli")
    kind = encoded.type
    values_type = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return Column(column, (), np.full(len(encoded), -1, dtype=np.int32), "text")
    if not _is_plain(values_type):
        try:
            encoded = encoded.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidTypeError(
                f"column {column!r} has type {kind}, which is not a category"
            ) from error
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    encoded = encoded.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        empty = pa.array([], pa.string()).dictionary_encode()
        encoded = encoded.chunk(0) if encoded.num_chunks else empty
    distinct = encoded.dictionary.to_pylist()
    rows = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values, found = _kind_of(distinct, missing, from_text, column)
    return _compact(column, values, rows, found)


def _is_plain(kind: Any) -> bool:
    types = require("pyarrow", "cli").types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
    )


def _kind_of(
    distinct: list[Any], missing: frozenset[str], from_text: bool, column: str
) -> tuple[list[Value | None], Kind]:
    """Mark missing ones among the distinct values by None, and tell what kind they are."""
    values = [
        None
        if value is None
        or (isinstance(value, float) and math.isnan(value))
        or label_text(value) in missing
        else value
        for value in distinct
    ]
    if from_text:
        return _numbers_from_text(values)
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in present):
        return values, "boolean" if present else "text"
    if all(isinstance(value, int) for value in present):
        return values, "integer"
    if all(isinstance(value, float) for value in present):
        if any(math.isinf(value) for value in present):
            raise InvalidValueError(f"column {column!r} holds an infinite number")
        if all(value.is_integer() and abs(value) <= _LARGEST_EXACT for value in present):
            return [None if value is None else int(value) for value in values], "integer"
        return values, "number"
    return values, "text"


def _numbers_from_text(values: list[Any]) -> tuple[list[Value | None], Kind]:
    """Make integers of texts that all are plain integers; NaN among numbers is missing."""
    present = [value for value in values if value is not None]
    numbers = [value for value in present if value.lower() not in ("nan", "-nan")]
    if not numbers or not all(parse_label(value, "number") is not None for value in numbers):
        return values, "text"
    known = frozenset(numbers)
    kept = [value if value in known else None for value in values]
    if all(INTEGER.fullmatch(value) for value in numbers):
        return [None if value is None else int(value) for value in kept], "integer"
    return kept, "text"


def _compact(column: str, values: list[Value | None], rows: Any, kind: Kind) -> Column:
    """Drop missing, repeated and unused distinct values and point the rows at what is left."""
    used = np.bincount(rows[rows >= 0], minlength=len(values)) > 0
    position: dict[Value, int] = {}
    target = np.full(len(values) + 1, -1, dtype=np.int32)  # rows hold -1 where they are null
    for index, value in enumerate(values):
        if value is not None and used[index]:
            target[index] = position.setdefault(value, len(position))
    return Column(column, tuple(position), target[rows], kind)
