"""One report for each person: finding the rows that count.

Identifiers are compared by keyed digests of 128 bits. The key is fresh in each run and forgotten
afterwards; identifiers themselves are never written. An integer of any width is the same person as
its text. Repeated digests are found in bounded memory.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from turnout import _core
from turnout._extras import require
from turnout._files import naming
from turnout._progress import track
from turnout._types import Array, Bytes, Integers, Truths, Unsigned
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.pipeline.columns import digested, rows_have, rows_text
from turnout.pipeline.sources import Block, Source

#: Two 64-bit words a row.
Digests = Unsigned

_MEMORY: Final = 2**26
_PARTITIONS: Final = 256
_RECORD: Final = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<i8")])
_MOST_PERSONS: Final = 2**28


class Folder:
    """A temporary folder that only its owner can read, removed with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="turnout-"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder now."""
        self._finalizer()


class RepeatFinder:
    """A finder of all rows but the first of each person, exact and in bounded memory.

    Records of a digest and a row number are kept in memory up to a limit. Beyond it, they go to
    partitions on disk by their digest, and each partition is sorted separately.

    Parameters
    ----------
    memory
        How many bytes of records to keep in memory.
    """

    def __init__(self, memory: int = _MEMORY) -> None:
        self._memory = memory
        self._held: list[Array] = []
        self._bytes = 0
        self._folder: Folder | None = None

    def add(self, found: Digests, first_row: int) -> None:
        """Add the digests of consecutive rows."""
        records = _recorded(found, first_row)
        self._held.append(records)
        self._bytes += records.nbytes
        if self._bytes > self._memory:
            self._spill()

    def _spill(self) -> None:
        if not self._held:
            return
        self._folder = self._folder or Folder()
        records = np.concatenate(self._held)
        self._held, self._bytes = [], 0
        part = (records["high"] >> np.uint64(56)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        records = records[order]
        ends = np.cumsum(np.bincount(part, minlength=_PARTITIONS))
        for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > start:
                _append(self._folder.path / f"{number}", records[start:end])

    def finish(self) -> tuple[int, Integers, Folder | None]:
        """Return the repeated rows.

        Returns
        -------
        repeated : int
            How many persons have more than one row.
        left_out : numpy.ndarray
            The rows that do not count, ascending.
        folder : object or None
            What keeps their file, if they are in one.
        """
        if self._folder is None:
            repeated, rows = _repeats(np.concatenate([np.empty(0, _RECORD), *self._held]))
            self._held = []
            return repeated, np.sort(rows), None
        self._spill()
        folder, total = self._folder, 0
        out = folder.path / "rows"
        for number in range(_PARTITIONS):
            path = folder.path / f"{number}"
            if path.exists():
                records = np.fromfile(path, _RECORD)
                path.unlink()
                repeated, rows = _repeats(records)
                total += repeated
                _append(out, rows)
        count = out.stat().st_size // 8 if out.exists() else 0
        if count * 8 <= self._memory:
            rows = np.sort(np.fromfile(out, np.int64)) if count else np.empty(0, np.int64)
            folder.close()
            return total, rows, None
        # Where they are: what does not fit into memory is pages of the file.
        rows = np.memmap(out, np.int64, "r+")
        rows.sort()
        return total, rows, folder


def _recorded(found: Digests, first_row: int) -> Array:
    records = np.empty(len(found), _RECORD)
    records["high"], records["low"] = found[:, 0], found[:, 1]
    records["row"] = np.arange(first_row, first_row + len(found))
    return records


def _append(path: Path, records: Array) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    # Not tofile, whose error of a full disk has neither number nor name.
    with naming(path), os.fdopen(descriptor, "ab") as stream:
        stream.write(records.tobytes())


def _repeats(records: Array) -> tuple[int, Integers]:
    """Return the persons with several records, and all their rows but the first."""
    high = np.array(records["high"])
    order = np.argsort(high)
    same = high[order][1:] == high[order][:-1]
    if not same.any():
        return 0, np.empty(0, np.int64)
    # Few records share half of a digest with another: those of a person, and chance.
    near = np.zeros(order.size, bool)
    near[1:] |= same
    near[:-1] |= same
    chosen = records[order[near]]
    chosen = chosen[np.lexsort((chosen["row"], chosen["low"], chosen["high"]))]
    again = (chosen["high"][1:] == chosen["high"][:-1]) & (chosen["low"][1:] == chosen["low"][:-1])
    begins = again & ~np.concatenate([[False], again[:-1]])
    return int(begins.sum()), np.array(chosen["row"][1:][again], np.int64)


class StreamPersons:
    """The persons seen in a stream that can be read only once: 16 bytes for each.

    Parameters
    ----------
    name
        What messages call the column.
    most
        The largest number of persons.
    """

    def __init__(self, name: str, most: int = _MOST_PERSONS) -> None:
        self._name = name
        self._most = most
        #: Sorted by the first word; their lengths fall by a factor of two at least.
        self._runs: list[Digests] = []

    def repeats(self, found: Digests) -> Integers:
        """Add the digests of a block, and return the positions of persons seen before.

        Raises
        ------
        InvalidValueError
            If there are too many persons for the memory.
        """
        again = np.zeros(len(found), bool)
        again[_repeats(_recorded(found, 0))[1]] = True
        for run in self._runs:
            again |= _contains(run, found)
        fresh = found[~again]
        self._keep(fresh[np.argsort(fresh[:, 0])])
        return np.flatnonzero(again)

    def _keep(self, run: Digests) -> None:
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            both = np.concatenate([self._runs.pop(), run])
            run = both[np.argsort(both[:, 0])]
        self._runs.append(run)
        if sum(map(len, self._runs)) > self._most:
            raise InvalidValueError(
                f"{self._name}: more than {self._most:,} persons in a stream that can be read only "
                "once do not fit into memory; read from files, where there is no such limit"
            )


def _contains(run: Digests, found: Digests) -> Truths:
    if not len(run):
        return np.zeros(len(found), bool)
    high = np.ascontiguousarray(run[:, 0])
    place = np.searchsorted(high, found[:, 0])
    present = np.zeros(len(found), bool)
    # Usually one step; more where different persons share the first word.
    while True:
        inside = place < len(high)
        here = np.where(inside, place, 0)
        candidates = inside & (high[here] == found[:, 0])
        present |= candidates & (run[here, 1] == found[:, 1])
        if not (candidates & ~present).any():
            return present
        place = place + 1


_LOGGER = logging.getLogger(__name__)

_TWICE: Final = (
    "a person who reports twice spends epsilon twice: make it one row a person, or let "
    "duplicates='first' take the first row of each"
)


def digests(
    column: Any,
    key: bytes,
    context: bytes = b"",
    *,
    name: str,
    rows: Array | None = None,
    first_row: int = 0,
) -> Bytes:
    """Digest each identifier of a column under a key.

    Parameters
    ----------
    column
        A ``pyarrow.ChunkedArray`` of text, integers or bytes.
    key, context
        32 bytes, and what the digests are for.
    name
        What messages call the column.
    rows, first_row
        The rows of the entries, for messages.

    Returns
    -------
    numpy.ndarray
        16 bytes for each entry.

    Raises
    ------
    InvalidValueError
        If an identifier is missing.
    InvalidTypeError
        If the column is not one of identifiers.
    """
    if column.null_count or _dictionary_nulls(column):
        missing = np.flatnonzero(column.is_null().to_numpy())
        # A null of a dictionary may be that of no row.
        if missing.size:
            places = (missing if rows is None else rows[missing]) + first_row
            raise InvalidValueError(
                f"{name}: {rows_have(missing.size)} no identifier ({rows_text(places)})"
            )
    parts = [_digests(chunk, key, context, name) for chunk in column.chunks]
    return np.concatenate([np.empty((0, 16), np.uint8), *parts])


def _dictionary_nulls(column: Any) -> bool:
    """Return whether dictionaries may contain hidden nulls."""
    types = require("pyarrow", "cli").types
    if not types.is_dictionary(column.type):
        return False
    return any(chunk.dictionary.null_count for chunk in column.chunks)


def as_words(found: Bytes) -> Digests:
    """Return the two 64-bit words of each digest."""
    return np.ascontiguousarray(found).view("<u8").astype(np.uint64, copy=False)


def _digests(chunk: Any, key: bytes, context: bytes, name: str) -> Bytes:
    pa = require("pyarrow", "cli")
    types, kind = pa.types, chunk.type
    if isinstance(kind, pa.BaseExtensionType):
        return _digests(chunk.storage, key, context, name)
    if types.is_dictionary(kind):
        index = chunk.indices.to_numpy(zero_copy_only=False)
        found: Bytes = _digests(chunk.dictionary, key, context, name)[index]
        return found
    if types.is_integer(kind) or types.is_string_view(kind):
        chunk = chunk.cast(pa.large_string())
    elif not (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
    ):
        raise InvalidTypeError(
            f"{name} has type {kind}, expected identifiers: text, integers or bytes"
        )
    return _keyed_digests(chunk, key, context)


def _keyed_digests(array: Any, key: bytes, context: bytes) -> Bytes:
    pa = require("pyarrow", "cli")
    array = array.cast(pa.large_binary())
    _, positions, data = array.buffers()
    if positions is None or not len(array):
        return np.empty((0, 16), np.uint8)
    offsets = np.frombuffer(positions, np.int64)[array.offset : array.offset + len(array) + 1]
    whole = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    found: Bytes = _core.keyed_digests(offsets, whole, key, context)
    return found


@dataclass(frozen=True, eq=False)
class Persons:
    """The result of a pass over the identifiers.

    Attributes
    ----------
    repeated_persons
        How many persons have more than one row.
    left_out
        The numbers of all rows but the first of each person, ascending; memory-mapped from a
        temporary file if they are many.
    checks
        For each block a digest of its identifiers, by which a block that is read again is known to
        have the same persons in the same order; only where they could change.
    """

    repeated_persons: int
    left_out: Integers = field(repr=False)
    checks: dict[int, bytes] = field(repr=False)
    folder: Folder | None = field(default=None, repr=False)

    def in_block(self, start: int, rows: int) -> Integers:
        """Return the positions of the rows that are left out of a block."""
        low, high = np.searchsorted(self.left_out, [start, start + rows])
        return np.asarray(self.left_out[low:high]) - start


def find_persons(source: Source, column: str, *, refuse: bool, progress: bool = False) -> Persons:
    """Read a column of identifiers and find the rows that do not count.

    Parameters
    ----------
    source, column
        The rows, which can be read again, and the column.
    refuse
        Whether persons with several rows are refused.
    progress
        Whether a pass of more than two seconds shows a bar on standard error.

    Raises
    ------
    InvalidValueError
        If a row has no identifier, or a person has several rows and they are refused.
    """
    key, name = secrets.token_bytes(32), f"{source.name}: column {column!r}"
    finder = RepeatFinder()
    checks = {}
    blocks, number = source.blocks([column]), source.number_of_blocks
    for block in track(blocks, "looking for persons", progress, number):
        rows = block.read()
        found = digests(rows.column(column), key, name=name, first_row=block.start)
        finder.add(as_words(found), block.start)
        if source.computed:
            checks[block.index] = digested(rows)
    repeated, left_out, folder = finder.finish()
    if refuse and repeated:
        raise InvalidValueError(
            f"{name}: {repeated:,} person(s) have more than one row, {left_out.size:,} row(s) more "
            f"than one each; {_TWICE}"
        )
    if repeated:
        _LOGGER.info(
            "%s: %d persons have more than one row; %d rows are left out",
            name,
            repeated,
            left_out.size,
        )
    return Persons(repeated, left_out, checks, folder)


def first_rows(
    blocks: Iterable[Block], column: str, source: str, *, refuse: bool
) -> Iterator[Block]:
    """Find persons in the order of a stream that can be read only once.

    Parameters
    ----------
    blocks
        All blocks in order.
    column, source
        The column of identifiers, and what messages call the stream.
    refuse
        Whether the second row of a person is refused.

    Yields
    ------
    Block
        The same blocks, which know the rows that do not count.

    Raises
    ------
    InvalidValueError
        If a person has several rows and they are refused, or if there are too many persons.
    """
    key, name = secrets.token_bytes(32), f"{source}: column {column!r}"
    seen = StreamPersons(name)
    for block in blocks:
        found = digests(block.read().column(column), key, name=name, first_row=block.start)
        left_out = seen.repeats(as_words(found))
        if left_out.size and refuse:
            raise InvalidValueError(
                f"{name}: {left_out.size:,} row(s) of block {block.index} belong to "
                f"persons with an earlier row; {_TWICE}"
            )
        yield replace(block, left_out=left_out)
