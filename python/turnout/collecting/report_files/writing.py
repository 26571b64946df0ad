"""Writing report files: whole, or batch by batch."""

from __future__ import annotations

import contextlib
import inspect
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

import numpy as np

from turnout._arrays import from_numpy
from turnout._extras import require
from turnout._files import atomic_write
from turnout._seal import new_placeholder, seal_file
from turnout._types import Array, Bytes, Floats, Self
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.plan import Plan
from turnout.collecting.report_files.containers import batch_rows
from turnout.collecting.report_files.header import (
    CHECKSUM_KEY,
    METADATA_KEY,
    Groups,
    Header,
    PartFacts,
)
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.errors import InvalidTypeError, InvalidValueError, TurnoutError

FileFormat = Literal["parquet", "arrow"]

_SUFFIXES: Final[dict[str, FileFormat]] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}


def file_format(path: str | os.PathLike[str]) -> FileFormat:
    """Return the format of a report file from its suffix.

    Parameters
    ----------
    path
        A path that ends in ``.parquet``, ``.arrow``, ``.ipc`` or ``.feather``.

    Returns
    -------
    str
        ``"parquet"`` or ``"arrow"``.

    Raises
    ------
    InvalidValueError
        For any other suffix.

    Examples
    --------
    >>> file_format("monday.parquet"), file_format("monday.feather")
    ('parquet', 'arrow')
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise InvalidValueError(
            f"path: {os.fspath(path)!r} has the suffix {suffix!r}; a report file ends in {known}"
        )
    return _SUFFIXES[suffix]


def write_reports(
    reports: Reports,
    path: str | os.PathLike[str],
    *,
    format: FileFormat | None = None,  # noqa: A002
) -> None:
    """Write reports and their plan to a Parquet or Arrow IPC file.

    The file appears whole or not at all; an existing file at ``path`` is replaced in one step.

    Parameters
    ----------
    reports
        The result of :meth:`turnout.FrequencyOracle.randomize`.
    path
        The path of the file. Its folder must exist.
    format
        ``"parquet"`` or ``"arrow"``; by default from the suffix of ``path``.

    Raises
    ------
    InvalidValueError
        If the format is unknown, or a label of the domain cannot be serialised.
    InvalidTypeError
        If ``reports`` is not a :class:`turnout.Reports`.
    MissingExtraError
        If pyarrow is not installed.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> from turnout.collecting.report_files import read_reports
    >>> oracle = tn.DirectEncoding(epsilon=1.0, domain=tn.Domain(["never", "once", "often"]))
    >>> reports = oracle.randomize(["never", "often", "never"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "reports.parquet")
    ...     write_reports(reports, file)
    ...     again = read_reports(file)
    >>> again.plan == reports.plan, len(again), again.nodes
    (True, 3, 3)
    """
    if not isinstance(reports, Reports):
        raise InvalidTypeError(f"reports: expected turnout.Reports, got {type(reports).__name__}")
    chosen = file_format(path) if format is None else format
    if chosen not in ("parquet", "arrow"):
        raise InvalidValueError(f"format: expected 'parquet' or 'arrow', got {format!r}")
    if chosen == "arrow":
        _write_arrow(reports, path)
        return
    with ReportWriter(path, reports.plan) as writer:
        if len(reports):
            writer.add(reports.codes, reports.probabilities)
        writer.close(
            reports.nodes,
            design=reports.design,
            left_out=reports.left_out,
            identity=reports._identity,
        )


class ReportWriter:
    """A writer of a Parquet file of reports, batch by batch.

    The complete, sealed file appears when :meth:`close` returns. If the block ends before that,
    nothing is left behind.

    Parameters
    ----------
    path
        The path of the file. Its folder must exist.
    plan
        The plan of the reports.
    group_types
        The Arrow types of the group columns, by name.
    pseudonyms
        Whether each report comes with a pseudonym.
    replace
        Whether to replace a file at ``path``; otherwise an existing file is an error.
    before
        Called when the file is complete, right before it appears. If it raises, the file does not
        appear.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    FileExistsError
        If a file exists and must not be replaced; also when the new one is closed.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> from turnout.collecting.report_files import read_reports
    >>> from turnout.collecting.report_files.writing import ReportWriter
    >>> oracle = tn.DirectEncoding(1.0, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "reports.parquet")
    ...     with ReportWriter(file, tn.Plan(oracle, tn.Everyone())) as writer:
    ...         for values in ([0, 1], [2, 2, 0]):
    ...             writer.add(oracle.randomize(values).codes)
    ...         _ = writer.close(nodes=5)
    ...     len(read_reports(file))
    5
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        plan: Plan,
        *,
        group_types: dict[str, Any] | None = None,
        pseudonyms: bool = False,
        replace: bool = True,
        before: Callable[[], object] | None = None,
    ) -> None:
        pa, parquet = require("pyarrow", "cli"), require("pyarrow.parquet", "cli")
        self._path, self._plan, self._pseudonyms = path, plan, pseudonyms
        groups = group_types or {}
        fields = [("report", report_type(plan))]
        if plan.participation.uniform_rate is None:
            fields.append(("probability", pa.float64()))
        fields += groups.items()
        if pseudonyms:
            fields.append(("pseudonym", pa.binary(16)))
        self._schema = pa.schema(
            [pa.field(name, kind, nullable=name in groups) for name, kind in fields]
        )
        self._reports = 0
        # Arrow's writer is for one thread at a time. Whoever gives up may do so while another one
        # writes: at a second Ctrl-C nothing is awaited.
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        self._temporary = self._stack.enter_context(
            atomic_write(path, replace=replace, before=before)
        )
        try:
            # A page for each few rows, where Arrow has such a limit, makes files larger and slower
            # to read; a page is bounded by its bytes.
            known = inspect.signature(parquet.write_table).parameters
            pages = {"max_rows_per_page": 2**20} if "max_rows_per_page" in known else {}
            # Dictionary pages pack a code into ceil(log2 k) bits.
            self._writer = parquet.ParquetWriter(
                self._temporary,
                self._schema,
                compression="zstd",
                use_dictionary=["report", *groups],
                write_statistics=False,
                store_schema=False,
                **pages,
            )
        except BaseException as error:
            self._stack.__exit__(type(error), error, error.__traceback__)
            raise

    def __enter__(self) -> Self:
        """Return the writer for use in a ``with`` block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Discard the file unless it was closed."""
        if self._writer is not None:
            unfinished = error or TurnoutError("the file was not closed")
            # On a full disk not even the end of the file can be written.
            with self._lock, contextlib.suppress(Exception):
                self._writer.close()
            self._writer = None
            self._stack.__exit__(type(unfinished), unfinished, traceback)

    def add(
        self,
        reports: Array,
        probabilities: Floats | None = None,
        *,
        groups: Any = (),
        pseudonyms: Bytes | None = None,
    ) -> None:
        """Write reports.

        Parameters
        ----------
        reports
            The reports of an oracle: :attr:`turnout.Reports.codes`.
        probabilities
            The participation probability of the node of each report, if each has its own.
        groups
            The columns of the groups, as Arrow arrays.
        pseudonyms
            16 bytes for each report.
        """
        pa = require("pyarrow", "cli")
        columns = [_column(reports)]
        if probabilities is not None:
            columns.append(from_numpy(probabilities))
        columns += groups
        if pseudonyms is not None:
            columns.append(_fixed(pseudonyms))
        try:
            with self._lock:
                self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
        except pa.ArrowException as error:
            raise TurnoutError(f"{os.fspath(self._path)}: cannot be written: {error}") from error
        self._reports += len(reports)

    def close(
        self,
        nodes: int,
        *,
        design: DesignSums | None = None,
        groups: Groups | None = None,
        part: PartFacts | None = None,
        left_out: LeftOut = NOTHING,
        identity: str | None = None,
    ) -> Header:
        """Seal the file and publish it.

        Parameters
        ----------
        nodes
            The number of all nodes, reporting or not.
        design
            The sums of the probabilities of all nodes, if each has its own.
        groups
            The groups of the nodes.
        part
            The job and the part.
        left_out
            The rows or messages that do not count.
        identity
            The identity of the reports, if they have one; a new one by default. A part has the
            identity of its job.

        Returns
        -------
        Header
            The header in the file's metadata.
        """
        pa = require("pyarrow", "cli")
        header = Header(
            self._plan,
            nodes,
            self._reports,
            design,
            groups,
            self._pseudonyms,
            part,
            (identity or secrets.token_hex(16)) if part is None else None,
            left_out,
        )
        placeholder = new_placeholder()
        metadata = {METADATA_KEY: header.to_text(), CHECKSUM_KEY: placeholder}
        try:
            self._writer.add_key_value_metadata(metadata)
            self._writer.close()
        except pa.ArrowException as error:
            raise TurnoutError(f"{os.fspath(self._path)}: cannot be written: {error}") from error
        self._writer = None
        try:
            seal_file(self._temporary, placeholder)
        except BaseException as error:
            self._stack.__exit__(type(error), error, error.__traceback__)
            raise
        self._stack.close()
        return header


def report_type(plan: Plan) -> Any:
    """Return the Arrow type of the reports of a plan."""
    pa = require("pyarrow", "cli")
    dtype, shape = plan.oracle.report_dtype, plan.oracle.report_shape
    return pa.binary(dtype.itemsize * shape[0]) if shape else pa.from_numpy_dtype(dtype)


def _write_arrow(reports: Reports, path: str | os.PathLike[str]) -> None:
    pa, ipc = require("pyarrow", "cli"), require("pyarrow.ipc", "cli")
    columns = {"report": _column(reports.codes)}
    if reports.probabilities is not None:
        columns["probability"] = from_numpy(reports.probabilities)
    header = Header(
        reports.plan,
        reports.nodes,
        len(reports),
        reports.design,
        id=reports._identity,
        left_out=reports.left_out,
    )
    placeholder = new_placeholder()
    metadata = {METADATA_KEY: header.to_text(), CHECKSUM_KEY: placeholder}
    table = pa.Table.from_pydict(columns).replace_schema_metadata(metadata)
    options = ipc.IpcWriteOptions(compression="zstd")
    with atomic_write(path) as temporary:
        try:
            with (
                pa.OSFile(os.fspath(temporary), "wb") as sink,
                ipc.new_file(sink, table.schema, options=options) as writer,
            ):
                # A reader takes up a record batch as a whole.
                rows = batch_rows(table.nbytes // max(len(table), 1))
                writer.write_table(table, max_chunksize=rows)
        except pa.ArrowException as error:
            raise TurnoutError(f"{os.fspath(path)}: cannot be written: {error}") from error
        seal_file(temporary, placeholder)


def _column(codes: Array) -> Any:
    """Convert reports to an Arrow array."""
    return from_numpy(codes) if codes.ndim == 1 else _fixed(codes)


def _fixed(rows: Array) -> Any:
    """Return an Arrow array of the bytes of each row, little-endian."""
    pa = require("pyarrow", "cli")
    rows = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))
    kind = pa.binary(rows.itemsize * rows.shape[1])
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])
