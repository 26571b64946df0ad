"""A store in a database of PostgreSQL, for several servers at once.

Each server that receives messages holds an advisory lock on a number, its shard, as long as its
connection lasts, and writes only the tallies of that shard. So servers wait for each other only if
the same message reaches two of them at the same time. A server that is killed loses its connection
and the lock. The next server that starts takes over the shard, so there are never more shards than
servers at one time.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from turnout._extras import require
from turnout.errors import CorruptDataError, StoreUnavailableError, UnsupportedVersionError
from turnout.serve.storage.interface import (
    Reading,
    Statements,
    Store,
    StoredPlan,
    StoredTally,
    Writing,
    parts_of,
)
from turnout.serve.storage.tables import TASKS

#: What makes a schema of each version from the one before.
MIGRATIONS: Final = (
    """
    CREATE TABLE turnout_plans (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        fingerprint text NOT NULL UNIQUE, text text NOT NULL);
    CREATE TABLE turnout_seen (nonce bytea PRIMARY KEY, said bytea NOT NULL);
    CREATE TABLE turnout_tallies (plan bigint NOT NULL REFERENCES turnout_plans,
        "group" text NOT NULL, shard integer NOT NULL, received bigint NOT NULL,
        sums bytea NOT NULL, PRIMARY KEY (plan, "group", shard));
    CREATE TABLE turnout_asked (plan bigint NOT NULL REFERENCES turnout_plans,
        "group" text NOT NULL, people bigint NOT NULL, PRIMARY KEY (plan, "group"));
    CREATE TABLE turnout_refused (kind text NOT NULL, shard integer NOT NULL,
        number bigint NOT NULL, PRIMARY KEY (kind, shard));
    CREATE TABLE turnout_messages (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        lines bytea NOT NULL);
    CREATE TABLE turnout_used (mark bytea PRIMARY KEY, said bytea NOT NULL);
    """
    + TASKS.replace("BLOB", "bytea").replace("INTEGER", "bigint").replace(" WITHOUT ROWID", ""),
)

_FIND: Final = "SELECT nonce, said FROM turnout_seen WHERE nonce = ANY(%b::bytea[])"

#: The advisory lock of the schema, and the class of those of shards.
_SCHEMA_LOCK: Final = 0x7475726E
_SHARD_LOCK: Final = 0x7475726F

#: The advisory lock of transactions on the tables of tasks.
_TASKS_LOCK: Final = 0x74757270

#: The most servers at once.
_MOST_SHARDS: Final = 1024

#: How long a statement may wait for others, and a connection for the database, in seconds.
_PATIENCE: Final = 5


def shown(address: str) -> str:
    """Return an address without its password.

    Examples
    --------
    >>> shown("postgresql://me:secret@db/reports"), shown("postgresql://db/x?password=secret")
    ('postgresql://me@db/reports', 'postgresql://db/x')
    """
    bare = address.partition("?")[0]
    return re.sub(r"//([^/@:]*):[^/@]*@", r"//\1@", bare)


class PostgreSQLStore(Store):
    """A store in a database.

    Parameters
    ----------
    address
        The address of the database: ``postgresql://user@host/name``.
    keep
        What a new store keeps of messages. For an existing store, it must be the same. None opens
        an existing store as it is, to be read.

    Raises
    ------
    MissingExtraError
        If psycopg is not installed.
    CorruptDataError
        If the store keeps something else, or if it does not exist and is not to be made.
    UnsupportedVersionError
        If it was made by a later release.
    StoreUnavailableError
        If the database cannot be used at the moment.
    """

    def __init__(self, address: str, keep: str | None) -> None:
        self._psycopg: Any = require("psycopg", "postgresql")
        self._address, self.place = address, shown(address)
        self._lock = threading.Lock()
        self._connection: Any = None
        self._shard = -1
        with self._refusing():
            connection = self._connect()
            try:
                facts = self._prepare(connection, keep)
            except BaseException:
                connection.close()
                raise
        self.keep, self.identity = facts["keep"], facts["identity"]
        if keep is None:
            connection.close()
            return
        if keep != self.keep:
            connection.close()
            raise CorruptDataError(
                f"{self.place}: this store was made with --keep {self.keep}, which cannot "
                f"change: for --keep {keep}, use another database"
            )
        with self._refusing():
            self._take_shard(connection)

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            # The first line says it; addresses of servers and statements follow.
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise StoreUnavailableError(f"{self.place}: {said}") from None

    def _connect(self) -> Any:
        return self._psycopg.connect(
            self._address,
            autocommit=True,
            connect_timeout=_PATIENCE,
            options=f"-c lock_timeout={_PATIENCE}s -c statement_timeout=60s "
            "-c idle_in_transaction_session_timeout=60s -c synchronous_commit=on "
            "-c client_min_messages=warning",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=20_000,
        )

    def _prepare(self, connection: Any, keep: str | None) -> dict[str, str]:
        """Make the schema, or bring it to this release's version; give the facts of the store."""
        with connection.transaction():
            if keep is not None:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
            (there,) = connection.execute("SELECT to_regclass('turnout_facts')").fetchone()
            if there is None and keep is None:
                raise CorruptDataError(f"{self.place}: contains no turnout store")
            if there is None:
                connection.execute(
                    "CREATE TABLE turnout_facts (name text PRIMARY KEY, value text NOT NULL)"
                )
                made = {"keep": keep, "identity": secrets.token_hex(16), "version": "0"}
                with connection.cursor() as cursor:
                    cursor.executemany(
                        "INSERT INTO turnout_facts VALUES (%s, %s)", list(made.items())
                    )
            facts = dict(connection.execute("SELECT name, value FROM turnout_facts").fetchall())
            version = int(facts["version"])
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
            for script in MIGRATIONS[version:]:
                connection.execute(script)
            connection.execute(
                "UPDATE turnout_facts SET value = %s WHERE name = 'version'",
                (str(len(MIGRATIONS)),),
            )
        return facts

    def _take_shard(self, connection: Any) -> None:
        """Take the first shard that no other server has."""
        for shard in range(_MOST_SHARDS):
            (taken,) = connection.execute(
                "SELECT pg_try_advisory_lock(%s, %s)", (_SHARD_LOCK, shard)
            ).fetchone()
            if taken:
                self._connection, self._shard = connection, shard
                return
        connection.close()
        raise StoreUnavailableError(f"{self.place}: {_MOST_SHARDS} servers already use this store")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        with self._lock, self._refusing():
            if self._connection is None or self._connection.closed:
                connection = self._connect()
                facts = connection.execute("SELECT name, value FROM turnout_facts").fetchall()
                if dict(facts).get("identity") != self.identity:
                    connection.close()
                    raise StoreUnavailableError(f"{self.place}: now contains another store")
                self._take_shard(connection)
            try:
                with self._connection.transaction():
                    yield self._connection
            except self._psycopg.Error:
                # The connection may be beyond use, and with it the shard: begin anew.
                self._connection.close()
                raise

    def number_of(self, fingerprint: str, text: str) -> int:
        """Return the number of a plan, after storing it if it is new."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO turnout_plans (fingerprint, text) VALUES (%s, %s) "
                "ON CONFLICT DO NOTHING",
                (fingerprint, text),
            )
            (number,) = connection.execute(
                "SELECT number FROM turnout_plans WHERE fingerprint = %s", (fingerprint,)
            ).fetchone()
        return int(number)

    def ask(self, plan: int, group: str, people: int) -> None:
        """Store the total number of people asked in a group."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO turnout_asked VALUES (%s, %s, %s) "
                'ON CONFLICT (plan, "group") DO UPDATE SET people = excluded.people',
                (plan, group, people),
            )

    @contextlib.contextmanager
    def writing(self) -> Iterator[Writing]:
        """Start a transaction that becomes durable with the block, or is undone if it raises."""
        with self._transaction() as connection:
            yield _Writing(connection, self._shard)

    @contextlib.contextmanager
    def statements(self) -> Iterator[Statements]:
        """Start a transaction on the tables of tasks."""
        with self._transaction() as connection:
            # One after the other, also those of several servers.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_TASKS_LOCK,))
            yield _Statements(connection)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reading]:
        """Open a view of the store at this moment."""
        with self._refusing():
            connection = self._connect()
            try:
                connection.isolation_level = self._psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                with connection.transaction():
                    yield _Reading(connection)
            finally:
                connection.close()

    def close(self) -> None:
        """Close the database, and release the shard."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()


class _Statements(Statements):
    """A transaction on the tables of tasks."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement, and return the rows that it finds."""
        found = self._connection.execute(statement.replace("?", "%b"), values, binary=True)
        return list(found.fetchall())

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement that finds nothing once for each row of values."""
        with self._connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%b"), rows)


class _Writing(Writing):
    """A transaction that stores messages."""

    def __init__(self, connection: Any, shard: int) -> None:
        self._connection, self._shard = connection, shard

    @property
    def generation(self) -> Hashable:
        """The connection: as long as it lasts, nobody else writes the tallies of its shard."""
        connection: Hashable = self._connection
        return connection

    def remember(self, records: bytes) -> Mapping[bytes, bytes]:
        """Remember messages by their records, sorted and with distinct nonces.

        The order keeps two servers with the same messages from waiting for each other in turn.
        """
        if not records:
            return {}
        nonces, said = map(list, zip(*parts_of(records), strict=True))
        rows = self._connection.execute(
            "INSERT INTO turnout_seen SELECT * FROM unnest(%b::bytea[], %b::bytea[]) "
            "ON CONFLICT DO NOTHING RETURNING nonce",
            (nonces, said),
            binary=True,
        ).fetchall()
        if len(rows) == len(nonces):
            return {}
        earlier = set(nonces).difference(nonce for (nonce,) in rows)
        found = self._connection.execute(_FIND, (list(earlier),), binary=True)
        return dict(found.fetchall())

    def forget(self, nonces: Sequence[bytes]) -> None:
        """Forget messages of this transaction, by the hashes of their nonces."""
        if nonces:
            self._connection.execute(
                "DELETE FROM turnout_seen WHERE nonce = ANY(%b::bytea[])", (list(nonces),)
            )

    def use(self, marks: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
        """Mark invitations as used."""
        if not marks:
            return {}
        # In order, so that two servers with the same invitations never wait for each other in turn.
        ordered = sorted(marks)
        rows = self._connection.execute(
            "INSERT INTO turnout_used SELECT * FROM unnest(%b::bytea[], %b::bytea[]) "
            "ON CONFLICT DO NOTHING RETURNING mark",
            (ordered, [marks[mark] for mark in ordered]),
            binary=True,
        ).fetchall()
        earlier = list(set(ordered).difference(mark for (mark,) in rows))
        if not earlier:
            return {}
        found = self._connection.execute(
            "SELECT mark, said FROM turnout_used WHERE mark = ANY(%b::bytea[])",
            (earlier,),
            binary=True,
        )
        return dict(found.fetchall())

    def tally(self, plan: int, group: str) -> StoredTally | None:
        """Read the counts of a group in the shard of this server."""
        found = self._connection.execute(
            "SELECT received, sums FROM turnout_tallies "
            'WHERE plan = %s AND "group" = %s AND shard = %s',
            (plan, group, self._shard),
            binary=True,
        ).fetchone()
        return None if found is None else StoredTally(group, *found)

    def put_tallies(self, plan: int, tallies: Sequence[StoredTally]) -> None:
        """Replace the counts of groups."""
        groups, received, sums = map(list, zip(*tallies, strict=True))
        self._connection.execute(
            "INSERT INTO turnout_tallies SELECT %s, g, %s, r, s FROM "
            "unnest(%s::text[], %s::bigint[], %b::bytea[]) AS given (g, r, s) "
            'ON CONFLICT (plan, "group", shard) '
            "DO UPDATE SET received = excluded.received, sums = excluded.sums",
            (plan, self._shard, groups, received, sums),
            binary=True,
        )

    def put_messages(self, lines: bytes) -> None:
        """Keep messages, one a line."""
        self._connection.execute("INSERT INTO turnout_messages (lines) VALUES (%b)", (lines,))

    def add_refused(self, kinds: Mapping[str, int]) -> None:
        """Count messages that were refused, by the kind of refusal."""
        for kind, number in kinds.items():
            self._connection.execute(
                "INSERT INTO turnout_refused VALUES (%s, %s, %s) ON CONFLICT (kind, shard) "
                "DO UPDATE SET number = turnout_refused.number + excluded.number",
                (kind, self._shard, number),
            )


class _Reading(Reading):
    """A view of the database at one moment."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def _all(self, statement: str, *values: Any) -> list[Any]:
        rows: list[Any] = self._connection.execute(statement, values, binary=True).fetchall()
        return rows

    def plans(self) -> list[StoredPlan]:
        """List the plans in order of arrival."""
        rows = self._all("SELECT number, fingerprint, text FROM turnout_plans ORDER BY number")
        return [StoredPlan(*row) for row in rows]

    def tallies(self, plan: int) -> list[StoredTally]:
        """List the counts of each group, in each shard."""
        rows = self._all(
            'SELECT "group", received, sums FROM turnout_tallies WHERE plan = %s '
            'ORDER BY "group", shard',
            plan,
        )
        return [StoredTally(*row) for row in rows]

    def received(self) -> dict[int, int]:
        """Count the reports of each plan that has any, by its number."""
        return dict(
            self._all("SELECT plan, sum(received)::bigint FROM turnout_tallies GROUP BY plan")
        )

    def asked(self, plan: int) -> dict[str, int]:
        """Return the number of people asked in each group, if it is known."""
        return dict(self._all('SELECT "group", people FROM turnout_asked WHERE plan = %s', plan))

    def refused(self) -> dict[str, int]:
        """Return the number of refused messages, by kind."""
        return dict(
            self._all("SELECT kind, sum(number)::bigint FROM turnout_refused GROUP BY kind")
        )

    def remembered(self) -> int:
        """Count the messages that are remembered."""
        return int(self._all("SELECT count(*) FROM turnout_seen")[0][0])

    def used(self) -> int:
        """Count the invitations and tickets that were used."""
        return int(self._all("SELECT count(*) FROM turnout_used")[0][0])

    def said(self, records: bytes) -> Mapping[bytes, bytes]:
        """Return, for remembered records, the hash of the nonce, and what was said."""
        nonces = [name for name, _ in parts_of(records)]
        return dict(self._all(_FIND, nonces))

    def messages(self) -> Iterator[bytes]:
        """Return the stored messages, many lines at a time."""
        with self._connection.cursor("messages", binary=True) as cursor:
            cursor.itersize = 16
            cursor.execute("SELECT lines FROM turnout_messages ORDER BY number")
            for (lines,) in cursor:
                yield lines
