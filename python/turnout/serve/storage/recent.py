"""Keep the latest records in a file of SQLite, many in a row, until each moves to its place.

The table ``seen`` is in the order of hashes: each record of a transaction goes to another page of
it, and a page that changes is written whole. So records go to the table ``fresh`` first, many in a
row. Later all records that begin with the same bits move to ``seen`` together, and each page that
is written has many new records. The first eight bytes of each record in ``fresh`` are in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from turnout.serve.storage.interface import RECORD_BYTES, parts_of

#: The most records that are not in their place yet; and the bits of a hash by which they are moved.
MOST: Final = 2**17
_BITS: Final = 4

TABLE: Final = """
    CREATE TABLE fresh (slice INTEGER NOT NULL, number INTEGER NOT NULL, records BLOB NOT NULL,
        PRIMARY KEY (slice, number)) WITHOUT ROWID
"""
_APPEND: Final = """
    INSERT INTO fresh SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM fresh WHERE slice = ?1
"""

Keys = npt.NDArray[np.uint64]


def keys_of(records: bytes) -> Keys:
    """Return the first eight bytes of records as numbers.

    Examples
    --------
    >>> keys_of(bytes([0] * 7 + [5] + [9] * 8))
    array([5], dtype=uint64)
    """
    return np.frombuffer(records, ">u8").reshape(-1, RECORD_BYTES // 8)[:, 0].astype(np.uint64)


@dataclass(frozen=True)
class Recent:
    """The records of ``fresh``.

    Attributes
    ----------
    version
        The version of the file, as the connection counts what others write.
    keys
        The first eight bytes of each, in order.
    """

    version: int
    keys: Keys

    @classmethod
    def read(cls, connection: sqlite3.Connection, version: int) -> Recent:
        """Read the table."""
        records = b"".join(row for (row,) in connection.execute("SELECT records FROM fresh"))
        return cls(version, np.sort(keys_of(records)))

    def among(self, records: bytes) -> bool:
        """Return whether any of some records may be there."""
        keys = keys_of(records)
        if not self.keys.size:
            return False
        places = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return bool((self.keys[places] == keys).any())

    def added(self, connection: sqlite3.Connection, records: bytes) -> Recent:
        """Add new records, which are in order."""
        keys = keys_of(records)
        for number, start, end in _slices(keys):
            row = records[start * RECORD_BYTES : end * RECORD_BYTES]
            connection.execute(_APPEND, (number, row))
        return Recent(self.version, np.insert(self.keys, np.searchsorted(self.keys, keys), keys))

    def due(self) -> int | None:
        """Return the records to move to their place; None if there is room for more."""
        if self.keys.size <= MOST:
            return None
        return int(np.bincount(_slice_of(self.keys)).argmax())

    def moved(self, connection: sqlite3.Connection, number: int) -> tuple[bytes, Recent]:
        """Take the records of a slice out of the table; return them in order."""
        records = b"".join(_rows(connection, number))
        connection.execute("DELETE FROM fresh WHERE slice = ?", (number,))
        rows = np.frombuffer(records, np.uint8).reshape(-1, RECORD_BYTES)
        ordered = rows[np.argsort(keys_of(records))].tobytes()
        return ordered, Recent(self.version, self.keys[_slice_of(self.keys) != number])


def said_recently(connection: sqlite3.Connection, records: bytes) -> Mapping[bytes, bytes]:
    """Return the hash of the nonce and what was said, for those records that are in ``fresh``."""
    found = {}
    names = {name for name, _ in parts_of(records)}
    for number in np.unique(_slice_of(keys_of(records))).tolist():
        for row in _rows(connection, number):
            found.update({name: said for name, said in parts_of(row) if name in names})
    return found


def _rows(connection: sqlite3.Connection, number: int) -> list[bytes]:
    rows = connection.execute("SELECT records FROM fresh WHERE slice = ?", (number,))
    return [row for (row,) in rows]


def _slice_of(keys: Keys) -> npt.NDArray[np.int64]:
    return (keys >> np.uint64(64 - _BITS)).astype(np.int64)


def _slices(keys: Keys) -> Iterator[tuple[int, int, int]]:
    """Return the slices that ordered keys are in, and where each slice begins and ends."""
    ends = np.searchsorted(_slice_of(keys), np.arange(2**_BITS), side="right").tolist()
    start = 0
    for number, end in enumerate(ends):
        if end > start:
            yield number, start, end
        start = end
