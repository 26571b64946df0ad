"""One person, one report: which rows count.

Identifiers are compared by keyed digests of 128 bits under a key that is fresh in each run and
forgotten with it; they themselves are written nowhere. An integer of any width is the same person
as its text.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from turnout import _core
from turnout._extras import require
from turnout._progress import track
from turnout._types import Array, Bytes, Integers
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.pipeline.dictionaries import rows_text
from turnout.pipeline.flight import sized
from turnout.pipeline.repeats import Digests, Folder, RepeatFinder, StreamPersons
from turnout.pipeline.sources import Block, Source

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
                f"{name}: {missing.size:,} rows have no identifier ({rows_text(places)})"
            )
    parts = [_digests(chunk, key, context, name) for chunk in column.chunks]
    return np.concatenate([np.empty((0, 16), np.uint8), *parts])


def _dictionary_nulls(column: Any) -> bool:
    """Whether nulls may hide in dictionaries."""
    types = require("pyarrow", "cli").types
    if not types.is_dictionary(column.type):
        return False
    return any(chunk.dictionary.null_count for chunk in column.chunks)


def as_words(found: Bytes) -> Digests:
    """Two 64-bit words of each digest."""
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
    """What a pass over the identifiers found.

    Attributes
    ----------
    repeated_persons
        How many persons have more than one row.
    left_out
        The numbers of all rows but the first of each person, ascending; memory-mapped from a
        temporary file if they are many.
    checks
        For each block a digest of the digests of its identifiers, by which a block that is read
        again is known to have the same persons in the same order; only where they could change.
    key
        The key of these digests.
    """

    repeated_persons: int
    left_out: Integers = field(repr=False)
    checks: dict[int, bytes] = field(repr=False)
    key: bytes | None = field(default=None, repr=False)
    folder: Folder | None = field(default=None, repr=False)

    @property
    def repeated_rows(self) -> int:
        """How many rows are left out."""
        return int(self.left_out.size)

    def in_block(self, start: int, rows: int) -> Integers:
        """Positions of the rows that are left out of a block."""
        low, high = np.searchsorted(self.left_out, [start, start + rows])
        return np.asarray(self.left_out[low:high]) - start


def find_persons(source: Source, column: str, *, refuse: bool, progress: bool = False) -> Persons:
    """Read a column of identifiers and find which rows do not count.

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
    blocks = sized(source.blocks([column]), source.number_of_blocks)
    for block in track(blocks, "looking for persons", progress):
        found = digests(block.read().column(column), key, name=name, first_row=block.start)
        finder.add(as_words(found), block.start)
        if source.computed:
            checks[block.index] = check_of(found)
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
    return Persons(repeated, left_out, checks, key if checks else None, folder)


def first_rows(
    blocks: Iterable[Block], column: str, source: str, *, refuse: bool
) -> Iterator[Block]:
    """Look for persons in the order of a stream that can be read only once.

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
                f"{name}: {left_out.size:,} row(s) of block {block.index} are of persons who had "
                f"one before; {_TWICE}"
            )
        yield replace(block, left_out=left_out)


def check_of(found: Bytes) -> bytes:
    """Digest the digests of a block."""
    return hashlib.blake2b(np.ascontiguousarray(found).data, digest_size=16).digest()
