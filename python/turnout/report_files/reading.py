"""Reading report files: whole, or batch by batch."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from turnout._extras import require
from turnout._seal import verify_seal
from turnout.errors import (
    CorruptDataError,
    MissingExtraError,
    TurnoutError,
    UnsupportedVersionError,
)
from turnout.frequency.groups.keys import Key, plain_part
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.reports import Reports
from turnout.report_files.header import METADATA_KEY, Groups, Header

__all__ = ["ReportBatch", "ReportFile", "read_reports", "reported"]

_PARQUET_MAGIC: Final = b"PAR1"
_ARROW_MAGIC: Final = b"ARROW1\0\0"

#: Reports of a batch.
_BATCH: Final = 2**20


def read_reports(path: str | os.PathLike[str]) -> Reports:
    """Read a report file and check every byte of it.

    The format is told from the content, not from the suffix.

    Parameters
    ----------
    path
        A file that :func:`write_reports` or ``turnout randomize`` wrote.

    Returns
    -------
    turnout.Reports
        The reports, with the plan under which they were made.

    Raises
    ------
    CorruptDataError
        If the file is not a report file, was truncated or altered, or holds rows that the plan
        does not allow (codes outside the domain, nulls, another column type or length).
    UnsupportedVersionError
        If the file or its plan is of a version that this release does not read.
    MissingExtraError
        If pyarrow is not installed.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from turnout.report_files import read_reports
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "reports.parquet")
    ...     _ = file.write_bytes(b"PAR1 and nothing else")
    ...     try:
    ...         read_reports(file)
    ...     except ValueError as error:
    ...         print(str(error).split(": ")[-1])
    not a file of turnout's, or its end is missing
    """
    with ReportFile(path) as file:
        return file.reports()


@dataclass(frozen=True, eq=False)
class ReportBatch:
    """A stretch of the rows of a report file.

    Attributes
    ----------
    reports
        The reports, of the oracle's type and shape; checked.
    probabilities
        The participation probability of each node, or None if all share one rate.
    groups
        For each report the number of its group, or None if there are none.
    pseudonyms
        For each report 16 bytes, or None if there are none.
    """

    reports: npt.NDArray[Any]
    probabilities: npt.NDArray[np.float64] | None = None
    groups: npt.NDArray[np.int64] | None = None
    pseudonyms: npt.NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self.reports)


class ReportFile:
    """A report file whose every byte was checked, to be read batch by batch.

    Parameters
    ----------
    path
        A file that :func:`write_reports` or ``turnout randomize`` wrote.

    Raises
    ------
    CorruptDataError, UnsupportedVersionError, MissingExtraError, OSError
        As :func:`read_reports`; rows are checked when they are read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> from turnout.report_files import ReportFile, write_reports
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "reports.parquet")
    ...     write_reports(tn.DirectEncoding(1.0, 3).randomize([0, 1, 2, 2]), path)
    ...     with ReportFile(path) as file:
    ...         file.header.nodes, [len(batch) for batch in file.batches(rows=3)]
    (4, [3, 1])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        pa = require("pyarrow", "cli")
        self.path = path
        self._file = Path(path).open("rb")  # noqa: SIM115, closed by close()
        self._container: Any = None
        try:
            with _explained(path):
                self._data = self._mapped()
                verify_seal(self._data)
                self._buffer = pa.py_buffer(self._data)
                self._container, metadata = _container(self._data, self._buffer)
                self.header = Header.from_text(metadata.get(METADATA_KEY.encode("ascii")))
                self._check()
        except BaseException:
            self.close()
            raise

    def _mapped(self) -> Any:
        # An empty file cannot be mapped.
        if os.fstat(self._file.fileno()).st_size == 0:
            return b""
        return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def _check(self) -> None:
        names = self._container.names
        if names != self.header.columns:
            raise CorruptDataError(f"expected the columns {self.header.columns}, found {names}")
        if self._container.rows != self.header.reports:
            raise CorruptDataError(
                f"{self._container.rows} rows, but the metadata says {self.header.reports}"
            )

    def __enter__(self) -> ReportFile:
        """Read within a block."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Let go of the file."""
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        # What was read from the map may still be looked at: Python closes it when nothing does.
        self._container = self._buffer = self._data = None
        self._file.close()

    def batches(self, rows: int = _BATCH) -> Iterator[ReportBatch]:
        """Read the reports in order.

        Parameters
        ----------
        rows
            The most reports of a batch.

        Yields
        ------
        ReportBatch
            Reports that the oracle can have made.

        Raises
        ------
        CorruptDataError
            If the rows are not as the metadata says.
        """
        for table in _tables(self._container, rows, self.path):
            with _explained(self.path):
                batch = self._batch(table)
            yield batch

    def _batch(self, table: Any) -> ReportBatch:
        pa = require("pyarrow", "cli")
        header, oracle = self.header, self.header.plan.oracle
        reports = reported(table, oracle)
        oracle.check_reports(reports)
        own = header.plan.participation.uniform_rate is None
        probabilities = _values(table, "probability", pa.float64()) if own else None
        if (
            probabilities is not None
            and not ((probabilities >= 2.0**-30) & (probabilities <= 1.0)).all()
        ):
            raise CorruptDataError("column 'probability' has values outside [2^-30, 1]")
        groups = None if header.groups is None else _group_index(table, header.groups)
        pseudonyms = _bytes(table, "pseudonym", 16) if header.pseudonyms else None
        return ReportBatch(reports, probabilities, groups, pseudonyms)

    def reports(self) -> Reports:
        """Read all reports into memory."""
        with _explained(self.path):
            batches = [self._batch(table) for table in self._container.tables(None)]
            codes = [batch.reports for batch in batches]
            probabilities = [batch.probabilities for batch in batches]
            plan = self.header.plan
            shape = (0, *plan.oracle.report_shape)
            own = plan.participation.uniform_rate is None
            empty = np.empty(0)
            return Reports(
                plan.oracle,
                plan.participation,
                _joined([np.empty(shape, plan.oracle.report_dtype), *codes]),
                self.header.nodes,
                probabilities=_joined([empty, *probabilities]) if own else None,
                design=self.header.design,
            )


class _explained:  # noqa: N801, used as a function
    """Name the file in whatever is found to be wrong with it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        pa = require("pyarrow", "cli")
        name = os.fspath(self._path)
        if isinstance(error, (UnsupportedVersionError, MissingExtraError)):
            raise type(error)(f"{name}: {error}") from error
        if isinstance(
            error,
            (TurnoutError, pa.ArrowException, OSError, RecursionError, UnicodeDecodeError),
        ):
            raise CorruptDataError(f"{name}: {error}") from error


def _joined(arrays: list[Any]) -> npt.NDArray[Any]:
    """Put arrays together; one beside empty ones is not copied."""
    kept = [array for array in arrays if len(array)] or arrays[:1]
    return kept[0] if len(kept) == 1 else np.concatenate(kept)


class _Parquet:
    def __init__(self, buffer: Any) -> None:
        pa = require("pyarrow", "cli")
        self._file = require("pyarrow.parquet", "cli").ParquetFile(pa.BufferReader(buffer))
        self.names = self._file.schema_arrow.names
        self.rows = self._file.metadata.num_rows
        self.metadata = dict(self._file.metadata.metadata or {})

    def tables(self, rows: int | None) -> Iterator[Any]:
        pa = require("pyarrow", "cli")
        if rows is None:
            yield self._file.read()
            return
        for batch in self._file.iter_batches(rows):
            yield pa.table(batch)


class _Arrow:
    def __init__(self, buffer: Any) -> None:
        pa = require("pyarrow", "cli")
        with require("pyarrow.ipc", "cli").open_file(pa.BufferReader(buffer)) as reader:
            self._table = reader.read_all()
        self._table.validate(full=True)
        self.names = self._table.column_names
        self.rows = len(self._table)
        self.metadata = dict(self._table.schema.metadata or {})

    def tables(self, rows: int | None) -> Iterator[Any]:
        pa = require("pyarrow", "cli")
        for batch in self._table.to_batches(rows):
            yield pa.table(batch)


def _tables(container: Any, rows: int, path: str | os.PathLike[str]) -> Iterator[Any]:
    tables = container.tables(rows)
    while True:
        with _explained(path):
            table = next(tables, None)
        if table is None:
            return
        yield table


def _container(data: Any, buffer: Any) -> tuple[Any, dict[bytes, bytes]]:
    """Open Parquet or Arrow IPC, and give its schema metadata."""
    start = data[: len(_ARROW_MAGIC)]
    if start.startswith(_PARQUET_MAGIC):
        parquet = _Parquet(buffer)
        return parquet, parquet.metadata
    if start == _ARROW_MAGIC:
        arrow = _Arrow(buffer)
        return arrow, arrow.metadata
    raise CorruptDataError("neither a Parquet nor an Arrow IPC file")


def reported(table: Any, oracle: FrequencyOracle) -> npt.NDArray[Any]:
    """Get the reports as an array of the oracle's type and shape."""
    pa = require("pyarrow", "cli")
    dtype, shape = oracle.report_dtype, oracle.report_shape
    if not shape:
        return _values(table, "report", pa.from_numpy_dtype(dtype))
    data = _bytes(table, "report", dtype.itemsize * shape[0])
    rows: npt.NDArray[Any] = data.view(dtype.newbyteorder("<"))
    return rows.astype(dtype, copy=False)


def _bytes(table: Any, name: str, size: int) -> npt.NDArray[np.uint8]:
    """Get a column of binaries of a fixed size as rows of bytes."""
    pa = require("pyarrow", "cli")
    column = table.column(name)
    if column.type != pa.binary(size):
        raise CorruptDataError(
            f"column {name!r} has type {column.type}, expected {pa.binary(size)}"
        )
    if column.null_count:
        raise CorruptDataError(f"column {name!r} has {column.null_count} nulls")
    pieces = [
        np.frombuffer(piece.buffers()[1], np.uint8)[piece.offset * size :][: len(piece) * size]
        for piece in column.chunks
        if len(piece)
    ]
    return _joined([np.empty(0, np.uint8), *pieces]).reshape(-1, size)


def _values(table: Any, column: str, kind: Any) -> npt.NDArray[Any]:
    """Get a column of one type and without nulls as a NumPy array."""
    values = table.column(column)
    if values.type != kind:
        raise CorruptDataError(f"column {column!r} has type {values.type}, expected {kind}")
    if values.null_count:
        raise CorruptDataError(f"column {column!r} has {values.null_count} nulls")
    array: npt.NDArray[Any] = values.to_numpy()
    return array


def _group_index(table: Any, groups: Groups) -> npt.NDArray[np.int64]:
    """Find the group of each row."""
    place = {key: position for position, key in enumerate(groups.keys)}
    keys: list[Key] = [()]
    index = np.zeros(table.num_rows, np.int64)
    for name in groups.names:
        distinct, codes = _encoded(table.column(name), name)
        # Pairs of the keys so far and this column's values; only those that occur are kept.
        found, joint = np.unique(index * len(distinct) + codes, return_inverse=True)
        pairs = [divmod(pair, len(distinct)) for pair in found.tolist()]
        keys = [(*keys[one], distinct[other]) for one, other in pairs]
        index = joint.reshape(-1)
    known = np.array([place.get(key, -1) for key in keys], np.int64)
    if (known < 0).any():
        raise CorruptDataError("a report is of a group that the metadata does not name")
    return known[index]


def _encoded(column: Any, name: str) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Reduce a column to its distinct values and the position of each entry's among them."""
    pa = require("pyarrow", "cli")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.dictionary_encode("encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([]).dictionary_encode()
    distinct = [plain_part(name, value) for value in encoded.dictionary.to_pylist()]
    return distinct, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
