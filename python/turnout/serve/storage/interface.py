"""The database interface of a collection.

A store has, all written in one transaction:

* for each message that counts, a record that keeps it from counting again: a hash of its nonce, and
  a hash of nonce and report, which tells a repeat from a contradiction;
* the tallies: for each plan and group the number of reports and their exact sums. Each server on a
  store has rows of its own (a *shard*), so servers never wait for each other; readers add up the
  shards;
* with ``keep="messages"`` the messages too, as they came in.

Apart from these, it has the marks of invitations and tickets that were used. Its tables do not say
when they were used, nor for which message. What a database keeps for itself, such as numbers of
transactions and its log, may say so.

It also has the text of each plan, how many messages were refused, and how many people were asked,
if somebody said so. It holds no address, no time and no order of single messages except the order
of the transactions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from turnout import _core

#: The bytes of a record: a hash of the nonce, and one of nonce and content.
RECORD_BYTES: Final = _core.RECORD_BYTES
NONCE_BYTES: Final = _core.RECORD_NAME_BYTES


class StoredPlan(NamedTuple):
    """A plan in a store: its number there, its fingerprint, and its canonical text."""

    number: int
    fingerprint: str
    text: str


class StoredTally(NamedTuple):
    """What is counted of a group in one shard: its key as JSON, and the sums of its reports."""

    group: str
    received: int
    sums: bytes


def record(nonce: bytes, content: bytes) -> bytes:
    """Return the record that a store remembers of a message.

    Nobody learns the content from it without the nonce, whose 128 bits nobody guesses.

    Examples
    --------
    >>> one, same, other = record(b"n", b"yes"), record(b"n", b"yes"), record(b"n", b"no")
    >>> one == same, one == other, one[:NONCE_BYTES] == other[:NONCE_BYTES]
    (True, False, True)
    """
    return _core.message_records([nonce], [content])[0]


def parts_of(records: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield for each record the hash of its nonce and what was said.

    Examples
    --------
    >>> [(name, said)] = parts_of(record(b"n", b"yes"))
    >>> len(name), len(said)
    (12, 4)
    """
    for start in range(0, len(records), RECORD_BYTES):
        middle = start + NONCE_BYTES
        yield records[start:middle], records[middle : start + RECORD_BYTES]


class Writing(ABC):
    """A transaction that stores messages; it becomes durable as a whole, or not at all."""

    @property
    @abstractmethod
    def generation(self) -> Hashable:
        """Return a token; equal tokens mean that no tally has changed in between."""

    @abstractmethod
    def remember(self, records: bytes) -> Mapping[bytes, bytes]:
        """Remember messages by their records, sorted and with distinct nonces.

        Returns
        -------
        mapping
            For messages whose nonce was known before: the hash of the nonce, and what was said
            then. These messages are not remembered again.
        """

    @abstractmethod
    def forget(self, nonces: Sequence[bytes]) -> None:
        """Forget messages of this transaction, by the hashes of their nonces: they do not count."""

    @abstractmethod
    def use(self, marks: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
        """Mark invitations as used, each with what it was used for, or nothing.

        Returns
        -------
        mapping
            For invitations that were used before: what they were used for. They are left as they
            are.
        """

    @abstractmethod
    def tally(self, plan: int, group: str) -> StoredTally | None:
        """Read the counts of a group in the shard of this server."""

    @abstractmethod
    def put_tallies(self, plan: int, tallies: Sequence[StoredTally]) -> None:
        """Replace the counts of groups in the shard of this server."""

    @abstractmethod
    def put_messages(self, lines: bytes) -> None:
        """Keep messages, one a line."""

    @abstractmethod
    def add_refused(self, kinds: Mapping[str, int]) -> None:
        """Count messages that were refused, by the kind of refusal."""


class Reading(ABC):
    """A view of a store at one moment."""

    @abstractmethod
    def plans(self) -> list[StoredPlan]:
        """List the plans in order of arrival."""

    @abstractmethod
    def tallies(self, plan: int) -> list[StoredTally]:
        """List the counts of each group, in each shard."""

    @abstractmethod
    def received(self) -> dict[int, int]:
        """Count the reports of each plan that has any, by its number."""

    @abstractmethod
    def asked(self, plan: int) -> dict[str, int]:
        """Return the number of people asked in each group, if it is known."""

    @abstractmethod
    def refused(self) -> dict[str, int]:
        """Return the number of refused messages, by kind."""

    @abstractmethod
    def remembered(self) -> int:
        """Count the messages that are remembered."""

    @abstractmethod
    def used(self) -> int:
        """Count the invitations and tickets that were used."""

    @abstractmethod
    def said(self, records: bytes) -> Mapping[bytes, bytes]:
        """Return, for remembered records, the hash of the nonce, and what was said."""

    @abstractmethod
    def messages(self) -> Iterator[bytes]:
        """Return the stored messages, many lines at a time."""


class Statements(ABC):
    """A transaction of a database, as the tables of tasks use it.

    Statements are those that SQLite and PostgreSQL have in common, with ``?`` in place of a value.
    Values are integers, texts, bytes and None.
    """

    @abstractmethod
    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement, and return the rows that it finds."""

    @abstractmethod
    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement that finds nothing once for each row of values."""

    def run(self, statement: str, *values: Any) -> None:
        """Run a statement that finds nothing."""
        self.many(statement, [values])

    def row(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """Run a statement, and return the first row, or None."""
        return next(iter(self.rows(statement, *values)), None)


class Store(ABC):
    """A database of messages and tallies, or of the tasks of an aggregator.

    One thread writes; others may read at the same time. Every method raises
    :class:`turnout.errors.StoreUnavailableError` if the database cannot be used at the moment: it
    is locked, full, or gone. Then nothing was written, or it is not known whether anything was. The
    same messages can be written again.

    Attributes
    ----------
    place
        The name of the store in messages, without a password.
    keep
        ``"messages"`` or ``"tally"``: whether messages are kept in addition to the tallies.
    identity
        32 hexadecimal digits of its own.
    """

    place: str
    keep: str
    identity: str

    @abstractmethod
    def number_of(self, fingerprint: str, text: str) -> int:
        """Return the number of a plan, after storing it if it is new."""

    @abstractmethod
    def ask(self, plan: int, group: str, people: int) -> None:
        """Store the total number of people asked in a group."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Writing]:
        """Start a transaction that becomes durable with the block, or is undone if it raises."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Reading]:
        """Open a view of the store at this moment."""

    @abstractmethod
    def statements(self) -> AbstractContextManager[Statements]:
        """Begin a transaction on the tables of tasks: no other is under way at the same time.

        It ends durably with the block, or not at all if that raises.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the database."""
