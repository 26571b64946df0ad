"""A store in a file of SQLite.

The journal is a write-ahead log with ``synchronous=FULL``: a transaction is on the disk when it has
ended. ``PRAGMA user_version`` is the version of the schema.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import sqlite3
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from turnout.errors import CorruptDataError, StoreUnavailableError, UnsupportedVersionError
from turnout.serve.storage.interface import (
    NONCE_BYTES,
    RECORD_BYTES,
    Reading,
    Statements,
    Store,
    StoredPlan,
    StoredTally,
    Writing,
    parts_of,
)
from turnout.serve.storage.recent import TABLE, Recent, said_recently
from turnout.serve.storage.tables import TASKS

#: What a file of SQLite begins with, and what says that it is a store.
MAGIC: Final = b"SQLite format 3\0"
_APPLICATION: Final = 0x74726E74

#: What makes a schema of each version from the one before.
MIGRATIONS: Final = (
    """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE plans (number INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE,
        text TEXT NOT NULL);
    CREATE TABLE seen (nonce BLOB PRIMARY KEY, said BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE tallies (plan INTEGER NOT NULL REFERENCES plans, "group" TEXT NOT NULL,
        received INTEGER NOT NULL, sums BLOB NOT NULL, PRIMARY KEY (plan, "group"));
    CREATE TABLE asked (plan INTEGER NOT NULL REFERENCES plans, "group" TEXT NOT NULL,
        people INTEGER NOT NULL, PRIMARY KEY (plan, "group")) WITHOUT ROWID;
    CREATE TABLE refused (kind TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE messages (number INTEGER PRIMARY KEY, lines BLOB NOT NULL);
    CREATE TABLE used (mark BLOB PRIMARY KEY, said BLOB NOT NULL) WITHOUT ROWID;
    """
    + f"{TABLE};"
    + TASKS,
)

#: The most records of one statement, and a table of their places in a parameter: one statement for
#: all of them takes Python's lock once.
_MOST_RECORDS: Final = 2**14
_PLACES: Final = f"""
    CREATE TEMP TABLE IF NOT EXISTS places AS
        WITH RECURSIVE given (place) AS
            (SELECT 0 UNION ALL SELECT place + 1 FROM given WHERE place + 1 < {_MOST_RECORDS})
        SELECT place FROM given
"""
_RECORDS: Final = f"""
    WITH given (nonce, said) AS (
        SELECT substr(?1, place * {RECORD_BYTES} + 1, {NONCE_BYTES}),
            substr(?1, place * {RECORD_BYTES} + {NONCE_BYTES + 1}, {RECORD_BYTES - NONCE_BYTES})
        FROM places WHERE places.rowid <= ?2)
"""
_INSERT: Final = f"{_RECORDS} INSERT INTO seen SELECT nonce, said FROM given"
_FIND: Final = f"{_RECORDS} SELECT seen.nonce, seen.said FROM given JOIN seen USING (nonce)"

#: Seconds that a transaction waits for that of another process.
_PATIENCE: Final = 2.0

#: Pages of the log, 4 kB each, after which it is written back; and kilobytes of pages in memory.
_LOG_PAGES: Final = 16384
_CACHE: Final = 65536


@contextlib.contextmanager
def _refusing(place: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreUnavailableError(f"{place}: {error}") from error


class SQLiteStore(Store):
    """A store in a file.

    Parameters
    ----------
    path
        The file.
    keep
        What a new file keeps of messages. For an existing file, it must be the same. None opens an
        existing file as it is, and makes no file.

    Raises
    ------
    FileNotFoundError
        If the file does not exist, and is not to be made.
    CorruptDataError
        If the file is not a store, or keeps something else.
    UnsupportedVersionError
        If it was made by a later release.
    StoreUnavailableError
        If it cannot be used at the moment.
    """

    def __init__(self, path: str | os.PathLike[str], keep: str | None) -> None:
        self._path = Path(path)
        self.place = str(path)
        self._lock = threading.Lock()
        self._recent: Recent | None = None
        if keep is None and not self._path.exists():
            raise FileNotFoundError(2, "No such file or directory", self.place)
        if keep is not None:
            # Only its owner may read it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._check_magic()
        with _refusing(self.place):
            self._connection = self._connect()
            self._file = _file_of(self._path)
            self._prepare(keep)
        facts = dict(self._connection.execute("SELECT name, value FROM facts"))
        self.keep, self.identity = facts["keep"], facts["identity"]
        if keep is not None and keep != self.keep:
            self._connection.close()
            raise CorruptDataError(
                f"{self.place}: this store was made with --keep {self.keep}, which cannot "
                f"change: for --keep {keep}, use a new file"
            )

    def _check_magic(self) -> None:
        with self._path.open("rb") as file:
            start = file.read(len(MAGIC))
        if start not in (b"", MAGIC):
            raise CorruptDataError(f"{self.place}: is not a turnout store")

    def _connect(self) -> sqlite3.Connection:
        """Open the file, which must exist."""
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute(f"PRAGMA cache_size = -{_CACHE}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(_PLACES)
        return connection

    def _prepare(self, keep: str | None) -> None:
        """Make the schema, or bring it to this release's version."""
        connection = self._connection
        if keep is not None:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE" if keep is not None else "BEGIN")
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            fresh = tables == 0 and keep is not None
            if not fresh and application != _APPLICATION:
                raise CorruptDataError(f"{self.place}: is not a turnout store")
            if version > len(MIGRATIONS):
                raise UnsupportedVersionError(
                    f"{self.place}: the store has version {version}; this release of turnout reads "
                    f"up to {len(MIGRATIONS)}"
                )
            if version < len(MIGRATIONS) and keep is None:
                raise UnsupportedVersionError(
                    f"{self.place}: the store has version {version}; run turnout serve to "
                    f"upgrade it to {len(MIGRATIONS)}"
                )
            _migrate(connection, version)
            if fresh:
                facts = {"keep": keep, "identity": secrets.token_hex(16)}
                connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
            if version < len(MIGRATIONS):
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            if not _is_own(_schema(connection)):
                raise CorruptDataError(
                    f"{self.place}: its tables are not those that turnout makes, or it has views "
                    "or triggers: use a file that only turnout serve wrote"
                )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            connection.close()
            raise

    def _check_file(self) -> None:
        """Check that the name still leads to the file that is written.

        Anything written into a file that was removed or replaced would be lost.
        """
        found = _file_of(self._path)
        if found is None:
            raise StoreUnavailableError(f"{self.place}: the file no longer exists")
        if found != self._file:
            raise StoreUnavailableError(f"{self.place}: the file was replaced: restart the server")

    def number_of(self, fingerprint: str, text: str) -> int:
        """Return the number of a plan, after storing it if it is new."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO plans (fingerprint, text) VALUES (?, ?)", (fingerprint, text)
            )
            (number,) = connection.execute(
                "SELECT number FROM plans WHERE fingerprint = ?", (fingerprint,)
            ).fetchone()
        return int(number)

    def ask(self, plan: int, group: str, people: int) -> None:
        """Store the total number of people asked in a group."""
        with self._transaction() as connection:
            row = (plan, group, people)
            connection.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?)", row)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _refusing(self.place):
            self._check_file()
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Some errors have ended the transaction already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def writing(self) -> Iterator[Writing]:
        """Start a transaction that becomes durable with the block, or is undone if it raises."""
        with self._transaction() as connection:
            # It is read anew if this transaction fails, or after one of another process.
            recent, self._recent = self._recent, None
            version = _version(connection)
            if recent is None or recent.version != version:
                recent = Recent.read(connection, version)
            made = _Writing(connection, recent)
            yield made
            recent = made.finished()
        self._recent = recent

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reading]:
        """Open a view of the store at this moment."""
        with _refusing(self.place):
            connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.execute("BEGIN")
                yield _Reading(connection)
            finally:
                connection.close()

    @contextlib.contextmanager
    def statements(self) -> Iterator[Statements]:
        """Start a transaction on the tables of tasks."""
        with self._transaction() as connection:
            yield _Statements(connection)

    def close(self) -> None:
        """Close the database; write the log back into the file."""
        with self._lock, _refusing(self.place):
            self._connection.close()


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    for script in MIGRATIONS[version:]:
        for statement in script.split(";"):
            connection.execute(statement)


def _schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {(kind, name, " ".join(sql.split())) for kind, name, sql in found}


@functools.cache
def _own_schema() -> set[tuple[str, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        _migrate(connection, 0)
        return _schema(connection)


def _is_own(schema: set[tuple[str, ...]]) -> bool:
    """Return whether all tables of turnout are there as turnout makes them.

    A program that copies files may add tables of its own. A view, a trigger or a computed column
    may take any time and memory, whatever the size of the file.
    """
    more = {kind for kind, _, _ in schema - _own_schema()}
    return schema >= _own_schema() and more <= {"table", "index"}


def _file_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from any later file of the same name."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class _Statements(Statements):
    """A transaction on the tables of tasks."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement, and return the rows that it finds."""
        return self._connection.execute(statement, values).fetchall()

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement that finds nothing once for each row of values."""
        self._connection.executemany(statement, rows)


class _Writing(Writing):
    """A transaction that stores messages."""

    def __init__(self, connection: sqlite3.Connection, recent: Recent) -> None:
        self._connection, self._recent = connection, recent
        # What this transaction remembers: written at its end, because some of it is forgotten.
        self._new: list[bytes] = []

    @property
    def generation(self) -> Hashable:
        """The version of what other processes wrote, as this connection sees it."""
        return self._connection, self._recent.version

    def remember(self, records: bytes) -> Mapping[bytes, bytes]:
        """Remember messages by their records, sorted and with distinct nonces."""
        if not records:
            return {}
        found = _found(self._connection, records)
        if self._recent.among(records):
            found.update(said_recently(self._connection, records))
        for earlier in self._new:
            found.update(parts_of(earlier))
        if found:
            parts = list(parts_of(records))
            found = {name: found[name] for name, _ in parts if name in found}
            records = b"".join(name + said for name, said in parts if name not in found)
        self._new.append(records)
        return found

    def forget(self, nonces: Sequence[bytes]) -> None:
        """Forget messages of this transaction, by the hashes of their nonces."""
        gone = set(nonces)
        self._new = [
            b"".join(name + said for name, said in parts_of(records) if name not in gone)
            for records in self._new
        ]

    def finished(self) -> Recent:
        """Write what is remembered, and move waiting records to their place."""
        recent, connection = self._recent, self._connection
        for records in filter(None, self._new):
            recent = recent.added(connection, records)
        while (due := recent.due()) is not None:
            moved, recent = recent.moved(connection, due)
            # In the order of the table, neighbours are on one page.
            _each(connection, _INSERT, moved)
        return recent

    def use(self, marks: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
        """Mark invitations as used."""
        found = {}
        for mark, said in marks.items():
            row = self._connection.execute(
                "SELECT said FROM used WHERE mark = ?", (mark,)
            ).fetchone()
            if row is None:
                self._connection.execute("INSERT INTO used VALUES (?, ?)", (mark, said))
            else:
                found[mark] = row[0]
        return found

    def tally(self, plan: int, group: str) -> StoredTally | None:
        """Read the counts of a group."""
        found = self._connection.execute(
            'SELECT received, sums FROM tallies WHERE plan = ? AND "group" = ?', (plan, group)
        ).fetchone()
        return None if found is None else StoredTally(group, *found)

    def put_tallies(self, plan: int, tallies: Sequence[StoredTally]) -> None:
        """Replace the counts of groups."""
        self._connection.executemany(
            f"INSERT OR REPLACE INTO tallies VALUES ({plan:d}, ?, ?, ?)", tallies
        )

    def put_messages(self, lines: bytes) -> None:
        """Keep messages, one a line."""
        self._connection.execute("INSERT INTO messages (lines) VALUES (?)", (lines,))

    def add_refused(self, kinds: Mapping[str, int]) -> None:
        """Count messages that were refused, by the kind of refusal."""
        self._connection.executemany(
            "INSERT INTO refused VALUES (?, ?) "
            "ON CONFLICT (kind) DO UPDATE SET number = number + excluded.number",
            list(kinds.items()),
        )


class _Reading(Reading):
    """A view of the file at one moment."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _all(self, statement: str, *values: Any) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def plans(self) -> list[StoredPlan]:
        """List the plans in order of arrival."""
        rows = self._all("SELECT number, fingerprint, text FROM plans ORDER BY number")
        return [StoredPlan(*row) for row in rows]

    def tallies(self, plan: int) -> list[StoredTally]:
        """List the counts of each group."""
        rows = self._all('SELECT "group", received, sums FROM tallies WHERE plan = ?', plan)
        return [StoredTally(*row) for row in rows]

    def received(self) -> dict[int, int]:
        """Count the reports of each plan that has any, by its number."""
        return dict(self._all("SELECT plan, sum(received) FROM tallies GROUP BY plan"))

    def asked(self, plan: int) -> dict[str, int]:
        """Return the number of people asked in each group, if it is known."""
        return dict(self._all('SELECT "group", people FROM asked WHERE plan = ?', plan))

    def refused(self) -> dict[str, int]:
        """Return the number of refused messages, by kind."""
        return dict(self._all("SELECT kind, number FROM refused"))

    def remembered(self) -> int:
        """Count the messages that are remembered."""
        [(seen,)] = self._all("SELECT count(*) FROM seen")
        [(fresh,)] = self._all("SELECT coalesce(sum(length(records)), 0) FROM fresh")
        return int(seen) + int(fresh) // RECORD_BYTES

    def used(self) -> int:
        """Count the invitations and tickets that were used."""
        return int(self._all("SELECT count(*) FROM used")[0][0])

    def said(self, records: bytes) -> Mapping[bytes, bytes]:
        """Return, for remembered records, the hash of the nonce, and what was said."""
        self._connection.execute(_PLACES)
        return {**_found(self._connection, records), **said_recently(self._connection, records)}

    def messages(self) -> Iterator[bytes]:
        """Return the stored messages, many lines at a time."""
        for (lines,) in self._connection.execute(
            "SELECT CAST(lines AS BLOB) FROM messages ORDER BY number"
        ):
            yield lines


def _version(connection: sqlite3.Connection) -> int:
    """Count what other connections wrote, as this one sees it."""
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    return int(version)


def _each(connection: sqlite3.Connection, statement: str, records: bytes) -> list[Any]:
    """Execute a statement on records, some of them at a time; return its rows."""
    rows = []
    for start in range(0, len(records), _MOST_RECORDS * RECORD_BYTES):
        part = records[start : start + _MOST_RECORDS * RECORD_BYTES]
        rows += connection.execute(statement, (part, len(part) // RECORD_BYTES)).fetchall()
    return rows


def _found(connection: sqlite3.Connection, records: bytes) -> dict[bytes, bytes]:
    return dict(_each(connection, _FIND, records))
