"""Files of reports: Parquet and Arrow IPC, with the plan inside.

A report file is an ordinary Parquet or Arrow IPC file that any Arrow reader opens. What makes it
a report file stands in its schema metadata.

Columns
    ``report``
        One received report a row, in node order: what the node's randomizer put out, not the
        node's value. No nulls. Of an oracle whose report is one number, the smallest unsigned
        integer type that holds every report (8 to 64 bits). Of an oracle whose report is a row of
        numbers, their bytes, little-endian, as a binary of fixed size: packed bits as 64-bit words
        (answer ``i`` in bit ``i % 64`` of word ``i / 64``), scores as signed 32-bit numbers.
    ``probability``
        Float64, no nulls; only with personalised participation: the probability with which the
        node that sent this report took part.

Schema metadata
    ``turnout``
        A JSON object in ASCII::

            {"format": "turnout-reports", "version": 1,
             "plan": {...},        what Plan.to_json gives, domain labels included
             "nodes": 1000,        all nodes, reporting or not
             "reports": 300,       rows in the file
             "design": {...}}      only with personalised participation: sums over all nodes

    ``turnout.checksum``
        ``turnout-sha256:`` and 64 hexadecimal digits: the SHA-256 of the *whole file* with these
        digits, wherever they occur, replaced by zeros.

:func:`read_reports` checks the checksum over every byte before any parser sees the file, so a
file that was truncated or altered anywhere is refused, padding and statistics included. It is a
checksum against accidents, not authentication: whoever may write the file may also seal a
different one.

In Parquet the metadata stands once, in the footer (the Arrow schema is not stored beside it); an
Arrow IPC file repeats its schema in the footer, and the checksum with it. A text in a label that
looks like the checksum's marker is written with a JSON escape, so the marker occurs only where
the checksum is.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from turnout._atomic import atomic_write
from turnout._extras import require
from turnout._seal import SEAL_MARKER, new_placeholder, seal_file, verify_seal
from turnout.collection import Plan
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
    TurnoutError,
    UnsupportedVersionError,
)
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.reports import Reports
from turnout.frequency.sums import DesignSums

__all__ = ["FileFormat", "file_format", "read_reports", "write_reports"]

FileFormat = Literal["parquet", "arrow"]

_SUFFIXES: Final[dict[str, FileFormat]] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
_FORMAT_NAME: Final = "turnout-reports"
_VERSION: Final = 1
_METADATA_KEY: Final = "turnout"
_CHECKSUM_KEY: Final = "turnout.checksum"
_PARQUET_MAGIC: Final = b"PAR1"
_ARROW_MAGIC: Final = b"ARROW1\0\0"


def file_format(path: str | os.PathLike[str]) -> FileFormat:
    """Tell the format of a report file from its suffix.

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

    The file appears whole or not at all; a file that stood at ``path`` is replaced in one step.

    Parameters
    ----------
    reports
        What :meth:`turnout.FrequencyOracle.randomize` returned.
    path
        Where to write. Its folder must exist.
    format
        ``"parquet"`` or ``"arrow"``; by default the suffix of ``path`` tells.

    Raises
    ------
    InvalidValueError
        If the format cannot be told or is unknown, or if a label of the domain cannot be
        serialised.
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
    pa = require("pyarrow", "cli")
    columns: dict[str, Any] = {"report": _column(reports.codes)}
    if reports.probabilities is not None:
        columns["probability"] = pa.array(reports.probabilities)
    placeholder = new_placeholder()
    metadata = {_METADATA_KEY: _header_text(reports), _CHECKSUM_KEY: placeholder}
    with atomic_write(path) as temporary:
        try:
            if chosen == "parquet":
                _write_parquet(pa.table(columns), metadata, temporary)
            else:
                _write_arrow(pa.table(columns), metadata, temporary)
        except pa.ArrowException as error:
            raise TurnoutError(f"{os.fspath(path)}: cannot be written: {error}") from error
        seal_file(temporary, placeholder)


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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "reports.parquet")
    ...     _ = file.write_bytes(b"PAR1 and nothing else")
    ...     try:
    ...         read_reports(file)
    ...     except ValueError as error:
    ...         print(str(error).split(": ")[-1])
    not a file of turnout's, or its end is missing
    """
    pa = require("pyarrow", "cli")
    name = os.fspath(path)
    data = Path(path).read_bytes()
    try:
        verify_seal(data)
        return _parse(data)
    except (UnsupportedVersionError, MissingExtraError) as error:
        raise type(error)(f"{name}: {error}") from error
    except (TurnoutError, pa.ArrowException, OSError, RecursionError) as error:
        raise CorruptDataError(f"{name}: {error}") from error


def _header_text(reports: Reports) -> str:
    header: dict[str, Any] = {
        "format": _FORMAT_NAME,
        "version": _VERSION,
        "plan": reports.plan.to_dict(),
        "nodes": reports.nodes,
        "reports": len(reports),
    }
    if reports.design is not None:
        header["design"] = reports.design.to_dict()
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":"))
    # Only the checksum itself may look like one. "t" and "-" never end or begin an escape.
    return text.replace(SEAL_MARKER, SEAL_MARKER.replace("-", "\\u002d"))


def _write_parquet(table: Any, metadata: dict[str, str], path: Path) -> None:
    parquet = require("pyarrow.parquet", "cli")
    # Dictionary pages pack a code into ceil(log2 k) bits.
    with parquet.ParquetWriter(
        path,
        table.schema,
        compression="zstd",
        use_dictionary=["report"],
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)


def _write_arrow(table: Any, metadata: dict[str, str], path: Path) -> None:
    pa = require("pyarrow", "cli")
    ipc = require("pyarrow.ipc", "cli")
    table = table.replace_schema_metadata(metadata)
    options = ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(os.fspath(path), "wb") as sink,
        ipc.new_file(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


def _parse(data: bytes) -> Reports:
    """Make reports of a file whose checksum is right, checking every rule of the layout."""
    table, metadata = _parse_container(data)
    header = _parse_header(metadata.get(_METADATA_KEY.encode("ascii")))
    plan = Plan.from_dict(header["plan"])
    own = plan.participation.uniform_rate is None
    expected = ["report", "probability"] if own else ["report"]
    if table.column_names != expected:
        raise CorruptDataError(f"expected the columns {expected}, found {table.column_names}")
    if len(table) != header["reports"]:
        raise CorruptDataError(f"{len(table)} rows, but the metadata says {header['reports']}")
    pa = require("pyarrow", "cli")
    return Reports(
        plan.oracle,
        plan.participation,
        _reported(table, plan.oracle),
        header["nodes"],
        probabilities=_values(table, "probability", pa.float64()) if own else None,
        design=DesignSums.from_dict(header.get("design")) if own else None,
    )


def _parse_container(data: bytes) -> tuple[Any, dict[bytes, bytes]]:
    """Parse Parquet or Arrow IPC into a table and its schema metadata."""
    pa = require("pyarrow", "cli")
    if data.startswith(_PARQUET_MAGIC):
        file = require("pyarrow.parquet", "cli").ParquetFile(pa.BufferReader(data))
        return file.read(), dict(file.metadata.metadata or {})
    if data.startswith(_ARROW_MAGIC):
        with require("pyarrow.ipc", "cli").open_file(pa.BufferReader(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        return table, dict(table.schema.metadata or {})
    raise CorruptDataError("neither a Parquet nor an Arrow IPC file")


def _parse_header(text: bytes | None) -> dict[str, Any]:
    if text is None:
        raise CorruptDataError(f"the schema metadata has no key {_METADATA_KEY!r}")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptDataError("the schema metadata is not JSON") from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT_NAME:
        raise CorruptDataError(f"the schema metadata is not of {_FORMAT_NAME!r}")
    version = header.get("version")
    if type(version) is not int or version != _VERSION:
        raise UnsupportedVersionError(
            f"report file of version {version!r}; this release reads version {_VERSION}"
        )
    for key in ("nodes", "reports"):
        if type(header.get(key)) is not int or header[key] < 0:
            raise CorruptDataError(f"{key!r} is {header.get(key)!r}, not a non-negative integer")
    if not isinstance(header.get("plan"), dict):
        raise CorruptDataError("there is no plan in the schema metadata")
    return header


def _column(codes: npt.NDArray[Any]) -> Any:
    """Make an Arrow array of reports."""
    pa = require("pyarrow", "cli")
    if codes.ndim == 1:
        return pa.array(codes)
    rows = np.ascontiguousarray(codes, codes.dtype.newbyteorder("<"))
    kind = pa.binary(rows.itemsize * rows.shape[1])
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)])


def _reported(table: Any, oracle: FrequencyOracle) -> npt.NDArray[Any]:
    """Get the reports as an array of the oracle's type and shape."""
    pa = require("pyarrow", "cli")
    dtype, shape = oracle.report_dtype, oracle.report_shape
    if not shape:
        return _values(table, "report", pa.from_numpy_dtype(dtype))
    size = dtype.itemsize * shape[0]
    column = table.column("report")
    if column.type != pa.binary(size):
        raise CorruptDataError(
            f"column 'report' has type {column.type}, expected {pa.binary(size)}"
        )
    if column.null_count:
        raise CorruptDataError(f"column 'report' has {column.null_count} nulls")
    pieces = [
        np.frombuffer(piece.buffers()[1], np.uint8)[piece.offset * size :][: len(piece) * size]
        for piece in column.chunks
        if len(piece)
    ]
    data = np.concatenate(pieces) if pieces else np.empty(0, np.uint8)
    rows: npt.NDArray[Any] = data.view(dtype.newbyteorder("<")).reshape(-1, shape[0])
    return rows.astype(dtype, copy=False)


def _values(table: Any, column: str, kind: Any) -> npt.NDArray[Any]:
    """Get a column of one type and without nulls as a NumPy array."""
    values = table.column(column)
    if values.type != kind:
        raise CorruptDataError(f"column {column!r} has type {values.type}, expected {kind}")
    if values.null_count:
        raise CorruptDataError(f"column {column!r} has {values.null_count} nulls")
    array: npt.NDArray[Any] = values.to_numpy()
    return array
