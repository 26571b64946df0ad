"""What a collection needs of a database.

A store has, all written in one transaction:

* for each message that counts what keeps it from counting again: a hash of its nonce, and a hash
  of nonce and report, by which a repeat is told from a contradiction;
* the tallies: for each plan and group the number of reports and their exact sums. Several servers
  on one store have rows of their own (a *shard*), so that they never wait for each other; whoever
  reads adds up the shards;
* with ``keep="messages"`` the messages too, as they came in.

Apart from these it has the marks of invitations and tickets that were used. Its tables do not say
when, nor for which message; what a database keeps for itself, such as numbers of transactions and
its log, may.

Beside them it has the text of each plan, how many messages were refused, and how many people were
asked, if somebody said so. It holds no address, no time and no order of single messages beyond that
of the transactions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from turnout import _core

#: What a store keeps of messages that are counted.
KEEPS: Final = ("messages", "tally")

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
    """Give what is remembered of a message.

    Nobody learns the content from it who has not the nonce, whose 128 bits nobody guesses.

    Examples
    --------
    >>> one, same, other = record(b"n", b"yes"), record(b"n", b"yes"), record(b"n", b"no")
    >>> one == same, one == other, one[:NONCE_BYTES] == other[:NONCE_BYTES]
    (True, False, True)
    """
    return _core.message_records([nonce], [content])[0]


def parts_of(records: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Give of records, one after the other, each hash of a nonce and what was said.

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
    """A transaction that takes messages in; it is durable, or nothing of it is there."""

    @property
    @abstractmethod
    def generation(self) -> Hashable:
        """Say of tallies that were read before: they are as they were if this is the same."""

    @abstractmethod
    def remember(self, records: bytes) -> Mapping[bytes, bytes]:
        """Remember messages by their records, which are in order and have different nonces.

        Returns
        -------
        mapping
            Of those whose nonce was there before: the hash of the nonce, and what was said then.
            They are not remembered again.
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
            Of those that were used before: what for. They are left as they are.
        """

    @abstractmethod
    def tally(self, plan: int, group: str) -> StoredTally | None:
        """Read what is counted of a group in the shard of this server."""

    @abstractmethod
    def put_tallies(self, plan: int, tallies: Sequence[StoredTally]) -> None:
        """Replace what is counted of groups in the shard of this server."""

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
        """List the plans, in the order in which they came."""

    @abstractmethod
    def tallies(self, plan: int) -> list[StoredTally]:
        """List what is counted of each group, in each shard."""

    @abstractmethod
    def received(self) -> dict[int, int]:
        """Count the reports of each plan that has any, by its number."""

    @abstractmethod
    def asked(self, plan: int) -> dict[str, int]:
        """Say how many people of groups were asked, where that is known."""

    @abstractmethod
    def refused(self) -> dict[str, int]:
        """Say how many messages were refused, by kind."""

    @abstractmethod
    def remembered(self) -> int:
        """Count the messages that are remembered."""

    @abstractmethod
    def used(self) -> int:
        """Count the invitations and tickets that were used."""

    @abstractmethod
    def said(self, records: bytes) -> Mapping[bytes, bytes]:
        """Give of those records that are remembered the hash of the nonce, and what was said."""

    @abstractmethod
    def messages(self) -> Iterator[bytes]:
        """Give the messages that are kept, many lines at a time."""


class Statements(ABC):
    """A transaction of a database, as the tables of tasks use it.

    Statements are those that SQLite and PostgreSQL have in common, with ``?`` where a value stands;
    values are integers, texts, bytes and None.
    """

    @abstractmethod
    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement, and give the rows that it finds."""

    @abstractmethod
    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement that finds nothing once for each row of values."""

    def run(self, statement: str, *values: Any) -> None:
        """Run a statement that finds nothing."""
        self.many(statement, [values])

    def row(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """Run a statement, and give the first row that it finds, if it finds one."""
        return next(iter(self.rows(statement, *values)), None)


class Store(ABC):
    """A database of messages and tallies, or of the tasks of an aggregator.

    One thread writes; others may read at the same time. Every method raises
    :class:`turnout.errors.StoreUnavailableError` where the database cannot be used at the moment:
    it is locked, full, or gone. Then nothing was written, or it is not known whether it was, and
    the same messages can be written again.

    Attributes
    ----------
    place
        What messages call it; no password is in it.
    keep
        ``"messages"`` or ``"tally"``: whether messages are kept beside the tallies.
    identity
        32 hexadecimal digits of its own.
    """

    place: str
    keep: str
    identity: str

    @abstractmethod
    def number_of(self, fingerprint: str, text: str) -> int:
        """Give the number of a plan, which is written down if it is new."""

    @abstractmethod
    def ask(self, plan: int, group: str, people: int) -> None:
        """Write down how many people of a group were asked in all."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Writing]:
        """Begin a transaction, which ends durably with the block, or not at all if it raises."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Reading]:
        """Look at the store as it is at this moment."""

    @abstractmethod
    def statements(self) -> AbstractContextManager[Statements]:
        """Begin a transaction on the tables of tasks: no other is under way at the same time.

        It ends durably with the block, or not at all if that raises.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""
