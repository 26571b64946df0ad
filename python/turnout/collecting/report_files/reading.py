"""Reading report files: whole, or batch by batch."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np

from turnout import _arguments
from turnout._arrays import to_numpy
from turnout._extras import require
from turnout._files import open_regular
from turnout._seal import verify_seal
from turnout._types import Array, Bytes, Floats, Integers
from turnout._values import settle
from turnout.collecting.group_values import Unfit, group_values
from turnout.collecting.keys import Key, plain_part
from turnout.collecting.origin import Origin
from turnout.collecting.randomizer import Randomizer
from turnout.collecting.report_files.containers import (
    ArrowContainer,
    ParquetContainer,
    Stretch,
    batch_rows,
    open_container,
)
from turnout.collecting.report_files.header import METADATA_KEY, Groups, Header
from turnout.collecting.reports import Reports
from turnout.errors import (
    CorruptDataError,
    MemoryLimitError,
    MissingExtraError,
    TurnoutError,
    UnsupportedVersionError,
)

#: Bytes of memory that a file may ask for unless it is allowed more.
MAX_MEMORY: Final = 10**9

#: As many times its own size a file may ask for in any case: reports of one bit are read as bytes.
_OWN_SIZE: Final = 8


def most_memory(size: int, allowed: int = MAX_MEMORY) -> int:
    """Return the bytes of memory that a file of so many bytes may ask for."""
    return max(allowed, _OWN_SIZE * size)


def read_reports(path: str | os.PathLike[str], *, max_memory: int = MAX_MEMORY) -> Reports:
    """Read a report file and check every byte of it.

    The format is detected from the content, not from the suffix.

    Parameters
    ----------
    path
        A file that :func:`write_reports` or ``turnout randomize`` wrote.
    max_memory
        The largest memory of the reports in bytes. A small file can hold very many equal reports.
        Eight times the size of the file is always allowed.

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
        If this release does not read the version of the file or its plan.
    MemoryLimitError
        If the reports need more memory than is allowed or available.
    MissingExtraError
        If pyarrow is not installed.
    OSError
        If the file cannot be read, or is not a regular file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from turnout.collecting.report_files import read_reports
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "reports.parquet")
    ...     _ = file.write_bytes(b"PAR1 and nothing else")
    ...     try:
    ...         read_reports(file)
    ...     except ValueError as error:
    ...         print(str(error).split(": ")[-1])
    not a turnout file, or its end is missing
    """
    with ReportFile(path, max_memory=max_memory) as file:
        return file.reports()


@dataclass(frozen=True, eq=False)
class ReportBatch:
    """A batch of rows of a report file.

    Attributes
    ----------
    reports
        The reports, of the oracle's type and shape; checked.
    probabilities
        The participation probability of each node, or None if all share one rate.
    groups
        The number of the group of each report, or None without groups.
    pseudonyms
        16 bytes for each report, or None without pseudonyms.
    """

    reports: Array
    probabilities: Floats | None = None
    groups: Integers | None = None
    pseudonyms: Bytes | None = None

    def __repr__(self) -> str:
        """Show the number of reports, not their content."""
        return f"<ReportBatch: {len(self):,} reports>"

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self.reports)


class ReportFile:
    """A report file with a verified checksum, which is read batch by batch.

    Parameters
    ----------
    path
        A file that :func:`write_reports` or ``turnout randomize`` wrote.

    max_memory
        The largest memory that the file may ask for in bytes, as for :func:`read_reports`.

    Raises
    ------
    CorruptDataError, UnsupportedVersionError, MemoryLimitError, MissingExtraError, OSError
        As :func:`read_reports`; rows are checked when they are read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> from turnout.collecting.report_files import ReportFile, write_reports
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "reports.parquet")
    ...     write_reports(tn.DirectEncoding(1.0, 3).randomize([0, 1, 2, 2]), path)
    ...     with ReportFile(path) as file:
    ...         file.header.nodes, [len(batch) for batch in file.batches(rows=3)]
    (4, [3, 1])
    """

    def __init__(self, path: str | os.PathLike[str], *, max_memory: int = MAX_MEMORY) -> None:
        require("pyarrow", "cli")
        self._max_memory = _arguments.integer("max_memory", max_memory, least=1)
        self.path = path
        self._file = open_regular(path)
        self._opened = os.fstat(self._file.fileno())
        try:
            with _explained(path):
                # Read and not mapped: a mapped file that somebody cuts kills who looks at it.
                verify_seal(self._file)
                self._container: ParquetContainer | ArrowContainer = open_container(self._again)
                metadata = self._container.metadata
                self.header = Header.from_text(metadata.get(METADATA_KEY.encode("ascii")))
                self._check()
        except BaseException:
            self.close()
            raise

    def _again(self) -> BinaryIO:
        """Open the file once more, if it still exists."""
        file = open_regular(self.path)
        try:
            self._check_unchanged(file)
        except BaseException:
            file.close()
            raise
        return file

    def _check_unchanged(self, file: BinaryIO) -> None:
        now, before = os.fstat(file.fileno()), self._opened
        facts = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
        if any(getattr(now, name) != getattr(before, name) for name in facts):
            raise CorruptDataError("was changed while it was being read")

    def _check(self) -> None:
        names, rows = self._container.names, self._container.rows
        if names != self.header.columns:
            raise CorruptDataError(f"expected the columns {self.header.columns}, found {names}")
        if rows is not None and rows != self.header.reports:
            raise self._other_rows(rows)

    def _other_rows(self, rows: int) -> CorruptDataError:
        return CorruptDataError(f"{rows} rows, but the metadata says {self.header.reports}")

    def _check_memory(self, needed: int, what: str) -> None:
        """Refuse to use more memory than the file may ask for.

        Parameters
        ----------
        needed
            The number of bytes.
        what
            What needs the bytes, for the error.

        Raises
        ------
        MemoryLimitError
            If the bytes exceed both ``max_memory`` and eight times the size of the file.
        """
        most = self._most_memory
        if needed > most:
            raise MemoryLimitError(
                f"{os.fspath(self.path)}: {what} would need {needed:,} bytes of memory, "
                f"but a file of {self._opened.st_size:,} bytes may use {most:,}: pass a "
                "larger max_memory"
            )

    @property
    def _most_memory(self) -> int:
        """The memory in bytes that the file may ask for."""
        return most_memory(self._opened.st_size, self._max_memory)

    def __enter__(self) -> ReportFile:
        """Return the file for use in a ``with`` block."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _stretches(self) -> list[Stretch]:
        """Divide the reports into stretches of about a million, which threads may read at once.

        Raises
        ------
        CorruptDataError
            If their number differs from that in the metadata.
        MemoryLimitError
            If a page of the file needs more memory than is allowed.
        """
        with _explained(self.path):
            found = self._container._stretches(batch_rows(self._row_bytes), self._most_memory)
            rows = sum(stretch.rows or 0 for stretch in found)
            if rows != self.header.reports and all(each.rows is not None for each in found):
                raise self._other_rows(rows)
        return found

    def batches(
        self, rows: int | None = None, *, stretch: Stretch | None = None
    ) -> Iterator[ReportBatch]:
        """Read the reports in order.

        Parameters
        ----------
        rows
            The largest number of reports in a batch; by default a million, or fewer if they are
            wide.
        stretch
            One of :meth:`_stretches`, to read only this one.

        Yields
        ------
        ReportBatch
            Reports that the oracle can have made.

        Raises
        ------
        CorruptDataError
            If the rows contradict the metadata, or the file was changed meanwhile.
        MemoryLimitError
            If a piece of the file needs more memory than is allowed or available.
        """
        if rows is None:
            rows = batch_rows(self._row_bytes)
        for each in self._stretches() if stretch is None else [stretch]:
            yield from self._stretch(rows, each)

    def _stretch(self, rows: int, stretch: Stretch) -> Iterator[ReportBatch]:
        expected = self.header.reports if stretch.rows is None else stretch.rows
        found = 0
        for rows_read in _each(
            self._container.batches(rows, self._most_memory, stretch), self.path
        ):
            with _explained(self.path):
                found += len(rows_read)
                if found > expected:
                    raise self._other_rows(stretch.start + found)
                batch = self._batch(rows_read)
            yield batch
        with _explained(self.path):
            if found != expected:
                raise self._other_rows(stretch.start + found)
            self._check_unchanged(self._file)

    @property
    def _row_bytes(self) -> int:
        """The bytes of a report and its other columns."""
        header = self.header
        oracle: Randomizer = header.plan.oracle
        width = oracle.report_dtype.itemsize * math.prod(oracle.report_shape)
        groups = 0 if header.groups is None else len(header.groups.names)
        own = header.plan.participation.uniform_rate is None
        return width + 8 * own + 8 * groups + 16 * header.pseudonyms

    def _batch(self, batch: Any) -> ReportBatch:
        pa = require("pyarrow", "cli")
        header, oracle = self.header, self.header.plan.oracle
        reports = reported(batch, oracle)
        oracle.check_reports(reports)
        own = header.plan.participation.uniform_rate is None
        probabilities = _values(batch, "probability", pa.float64()) if own else None
        if (
            probabilities is not None
            and not ((probabilities >= 2.0**-30) & (probabilities <= 1.0)).all()
        ):
            raise CorruptDataError("column 'probability' has values outside [2^-30, 1]")
        groups = None if header.groups is None else _group_index(batch, header.groups)
        pseudonyms = _bytes(batch, "pseudonym", 16) if header.pseudonyms else None
        return ReportBatch(reports, probabilities, groups, pseudonyms)

    def reports(self) -> Reports:
        """Read all reports into memory.

        Raises
        ------
        CorruptDataError, MemoryLimitError
            As :meth:`batches`.
        """
        header, plan = self.header, self.header.plan
        self._check_memory(header.reports * self._row_bytes, f"{header.reports:,} reports")
        own = plan.participation.uniform_rate is None
        with _explained(self.path):
            codes = np.empty((header.reports, *plan.oracle.report_shape), plan.oracle.report_dtype)
            probabilities = np.empty(header.reports) if own else None
        place = 0
        for batch in self.batches():
            rows = slice(place, place + len(batch))
            codes[rows] = batch.reports
            if probabilities is not None:
                probabilities[rows] = batch.probabilities
            place += len(batch)
        with _explained(self.path):
            found = Reports(
                plan.oracle,
                plan.participation,
                codes,
                header.nodes,
                probabilities=probabilities,
                design=header.design,
                left_out=header.left_out,
                origin=Origin.named(header.identity),
            )
            settle(found, _identity=header.identity)
            return found


class _explained:  # noqa: N801, used as a function
    """A context that adds the file's name to errors about it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        pa = require("pyarrow", "cli")
        name = os.fspath(self._path)
        if isinstance(error, (UnsupportedVersionError, MissingExtraError, MemoryLimitError)):
            raise type(error)(f"{name}: {error}") from error
        if isinstance(error, MemoryError):
            raise MemoryLimitError(f"{name}: there is not enough memory: {error}") from error
        if isinstance(error, (TurnoutError, pa.ArrowException, OSError, UnicodeDecodeError)):
            raise CorruptDataError(f"{name}: {error}") from error


def _each(batches: Iterator[Any], path: str | os.PathLike[str]) -> Iterator[Any]:
    while True:
        with _explained(path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def reported(batch: Any, oracle: Randomizer) -> Array:
    """Return the reports as an array of the oracle's type and shape."""
    pa = require("pyarrow", "cli")
    dtype, shape = oracle.report_dtype, oracle.report_shape
    if not shape:
        return _values(batch, "report", pa.from_numpy_dtype(dtype))
    data = _bytes(batch, "report", dtype.itemsize * shape[0])
    rows: Array = data.view(dtype.newbyteorder("<"))
    return rows.astype(dtype, copy=False)


def _bytes(batch: Any, name: str, size: int) -> Bytes:
    """Return a column of binaries of a fixed size as rows of bytes."""
    pa = require("pyarrow", "cli")
    column = batch.column(name)
    if column.type != pa.binary(size):
        raise CorruptDataError(
            f"column {name!r} has type {column.type}, expected {pa.binary(size)}"
        )
    if column.null_count:
        raise CorruptDataError(f"column {name!r} has {column.null_count} nulls")
    data = np.frombuffer(column.buffers()[1], np.uint8) if len(column) else np.empty(0, np.uint8)
    return data[column.offset * size :][: len(column) * size].reshape(-1, size)


def _values(batch: Any, column: str, kind: Any) -> Array:
    """Return a column of one type and without nulls as a NumPy array."""
    values = batch.column(column)
    if values.type != kind:
        raise CorruptDataError(f"column {column!r} has type {values.type}, expected {kind}")
    if values.null_count:
        raise CorruptDataError(f"column {column!r} has {values.null_count} nulls")
    return to_numpy(values)


def _group_index(batch: Any, groups: Groups) -> Integers:
    """Return the group of each row."""
    place = {key: position for position, key in enumerate(groups.keys)}
    keys: list[Key] = [()]
    index = np.zeros(batch.num_rows, np.int64)
    for name in groups.names:
        distinct, codes = _encoded(batch.column(name), name)
        # Pairs of the keys so far and this column's values; only those that occur are kept.
        found, joint = np.unique(index * len(distinct) + codes, return_inverse=True)
        pairs = [divmod(pair, len(distinct)) for pair in found.tolist()]
        keys = [(*keys[one], distinct[other]) for one, other in pairs]
        index = joint.reshape(-1)
    known = np.array([place.get(key, -1) for key in keys], np.int64)
    if (known < 0).any():
        raise CorruptDataError("a report belongs to a group that the metadata does not list")
    return known[index]


def _encoded(column: Any, name: str) -> tuple[list[Any], Integers]:
    """Reduce a column to its distinct values and the index of each entry among them."""
    pa = require("pyarrow", "cli")
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    # A null may be one of the values, or no value at all.
    codes = to_numpy(encoded.indices.fill_null(len(encoded.dictionary)))
    used, index = np.unique(codes, return_inverse=True)
    values = pa.concat_arrays([encoded.dictionary, pa.nulls(1, encoded.dictionary.type)])
    distinct = group_values(values.take(pa.array(used)))
    for value in distinct:
        if isinstance(value, Unfit):
            raise CorruptDataError(f"column {name!r} holds {value.what}, which is not a group")
    return [plain_part(name, value) for value in distinct], index.reshape(-1).astype(np.int64)
