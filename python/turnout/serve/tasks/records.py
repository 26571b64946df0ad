"""Keep what an aggregator remembers of a task, in the tables of a store."""

from __future__ import annotations

import contextlib
import struct
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from turnout import _core
from turnout.errors import CorruptDataError
from turnout.serve.storage.interface import Statements, Store
from turnout.serve.tasks.files import AggregatorFile

#: How many values stand in one statement.
_MANY: Final = 500

#: For how many seconds after it was made a report may arrive, or arrive again. Then its ID is
#: forgotten, a while later in case somebody sets the clock back.
REPORT_SECONDS: Final = 14 * 86400
_WHILE: Final = 3600

#: The IDs are looked through in so many parts, one in so many seconds.
_PARTS: Final = 256
_PAUSE: Final = 1.0


def oldest(time_precision: int) -> int:
    """Return the earliest time of a report that is taken now."""
    return int(time.time() - REPORT_SECONDS) // time_precision


class Verified(NamedTuple):
    """A verified report: its ID, its time, and what this aggregator has of its answer."""

    id: bytes
    time: int
    output_share: bytes


class Summed(NamedTuple):
    """The sums over the buckets of a batch; the times are None if there are no reports."""

    reports: int
    checksum: bytes
    share: bytes
    first: int | None
    last: int | None


def bucket_of_time(moment: int) -> bytes:
    """Name the bucket of a time: buckets are in the order of their times.

    Examples
    --------
    >>> bucket_of_time(256) > bucket_of_time(255)
    True
    """
    return struct.pack(">Q", moment)


class Records:
    """The rows of one task in a store.

    Parameters
    ----------
    store
        The database.
    file
        The file of the aggregator.

    Raises
    ------
    CorruptDataError
        If the store has the task in another role, or with another configuration.
    """

    def __init__(self, store: Store, file: AggregatorFile) -> None:
        self._store, self._file = store, file
        task, role = file.task, file.role
        configuration = task.dap.to_bytes()
        with store.statements() as found:
            known = "SELECT number, role, configuration FROM turnout_tasks WHERE task = ?"
            row = found.row(known, task.id)
            if row is None:
                (last,) = found.rows("SELECT coalesce(max(number), 0) FROM turnout_tasks")[0]
                row = last + 1, role, configuration
                found.run(
                    "INSERT INTO turnout_tasks (number, task, role, configuration) "
                    "VALUES (?, ?, ?, ?)",
                    *(row[0], task.id, role, configuration),
                )
        self._number, other, stored = row
        if other != role or bytes(stored) != configuration:
            what = f"as {other}" if other != role else "with another configuration"
            raise CorruptDataError(
                f"{store.place}: has the task {task.name} {what}: each aggregator needs a store "
                "of its own"
            )
        self._part, self._looked = 0, 0.0

    def forget_old(self, records: Transaction) -> None:
        """Forget IDs of reports that are too old to come again, and answers about them.

        Some of them at a time.
        """
        if time.monotonic() - self._looked < _PAUSE:
            return
        self._looked, self._part = time.monotonic(), (self._part + 1) % _PARTS
        precision = self._file.task.time_precision
        first, last = bytes([self._part]), bytes([self._part, *b"\xff" * 16])
        records.run(
            "DELETE FROM turnout_task_reports WHERE task = ? AND id >= ? AND id < ? "
            "AND report IS NULL AND time < ?",
            *(first, last, oldest(precision) - -(-_WHILE // precision)),
        )
        records.run(
            "DELETE FROM turnout_task_jobs WHERE task = ? AND id >= ? AND id < ? AND answered < ?",
            *(first, last, int(time.time()) - REPORT_SECONDS - precision - _WHILE),
        )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Begin a transaction, which ends durably with the block, or not at all if it raises."""
        with self._store.statements() as statements:
            yield Transaction(statements, self._number, self._file)


class Transaction:
    """A transaction on the rows of a task."""

    def __init__(self, statements: Statements, number: int, file: AggregatorFile) -> None:
        self._statements, self._number = statements, number
        self._task = file.task

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Find rows of the task; its number is the first value of the statement."""
        return self._statements.rows(statement, self._number, *values)

    def row(self, statement: str, *values: Any) -> tuple[Any, ...] | None:
        """Find a row of the task."""
        return self._statements.row(statement, self._number, *values)

    def run(self, statement: str, *values: Any) -> None:
        """Change rows of the task."""
        self._statements.run(statement, self._number, *values)

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Change rows of the task, once for each row of values."""
        every = [(self._number, *row) for row in rows]
        if every:
            self._statements.many(statement, every)

    def update(self, statement: str, *rows: Sequence[Any]) -> None:
        """Change rows of the task once for each row of values; its number is the last value."""
        self._statements.many(statement, [(*row, self._number) for row in rows])

    def number(self, statement: str, *values: Any) -> int:
        """Return the number that a statement counts."""
        ((found,),) = self.rows(statement, *values)
        return int(found)

    # Reports

    def known(self, ids: Sequence[bytes]) -> set[bytes]:
        """Return which of some reports were taken in before."""
        found: set[bytes] = set()
        for start in range(0, len(ids), _MANY):
            part = ids[start : start + _MANY]
            places = ", ".join("?" * len(part))
            rows = self.rows(
                f"SELECT id FROM turnout_task_reports WHERE task = ? AND id IN ({places})", *part
            )
            found.update(bytes(one) for (one,) in rows)
        return found

    def remember(self, reports: Iterable[tuple[bytes, int, bytes | None]]) -> None:
        """Remember new reports: their IDs, their times, and their contents."""
        self.many(
            "INSERT INTO turnout_task_reports (task, id, time, report) VALUES (?, ?, ?, ?)",
            reports,
        )

    def refuse(self, kinds: Mapping[str, int]) -> None:
        """Count reports that were refused, by reason."""
        self.many(
            "INSERT INTO turnout_task_refused (task, kind, number) VALUES (?, ?, ?) "
            "ON CONFLICT (task, kind) "
            "DO UPDATE SET number = turnout_task_refused.number + excluded.number",
            [(kind, number) for kind, number in kinds.items() if number],
        )

    def refused(self) -> dict[str, int]:
        """Return how many reports were refused, by reason."""
        return dict(self.rows("SELECT kind, number FROM turnout_task_refused WHERE task = ?"))

    # Buckets and batches

    def collected(self, first: bytes, last: bytes) -> bool:
        """Return whether any bucket from one to another was collected."""
        return (
            self.number(
                "SELECT count(*) FROM turnout_task_collected "
                "WHERE task = ? AND first <= ? AND last >= ?",
                *(last, first),
            )
            > 0
        )

    def commit(self, bucket: bytes, reports: Sequence[Verified]) -> None:
        """Add verified reports to a bucket."""
        if not reports:
            return
        earlier = self.row(
            "SELECT reports, checksum, share, first, last FROM turnout_task_buckets "
            "WHERE task = ? AND bucket = ?",
            bucket,
        )
        count, checksum, share, first, last = earlier or (0, bytes(32), b"", None, None)
        times = [one.time for one in reports] + [one for one in (first, last) if one is not None]
        total = self._task.prio3.aggregate(
            [one.output_share for one in reports], bytes(share) or None
        )
        values = (
            count + len(reports),
            _core.report_checksum([one.id for one in reports], bytes(checksum)),
            *(total, min(times), max(times)),
        )
        self.run(
            "INSERT INTO turnout_task_buckets "
            "(task, bucket, opened, reports, checksum, share, first, last) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task, bucket) DO UPDATE SET "
            "reports = excluded.reports, checksum = excluded.checksum, share = excluded.share, "
            "first = excluded.first, last = excluded.last",
            *(bucket, int(time.time()), *values),
        )

    def open_bucket(self, bucket: bytes) -> None:
        """Begin a bucket without reports."""
        self.run(
            "INSERT INTO turnout_task_buckets (task, bucket, opened, reports, checksum, share) "
            "VALUES (?, ?, ?, 0, ?, ?)",
            *(bucket, int(time.time()), bytes(32), b""),
        )

    def summed(self, first: bytes, last: bytes) -> Summed:
        """Add up the buckets from one to another."""
        found = self.rows(
            "SELECT reports, checksum, share, first, last FROM turnout_task_buckets "
            "WHERE task = ? AND bucket >= ? AND bucket <= ? AND reports > 0",
            *(first, last),
        )
        checksum = 0
        for row in found:
            checksum ^= int.from_bytes(row[1], "big")
        return Summed(
            sum(row[0] for row in found),
            checksum.to_bytes(32, "big"),
            self._task.prio3.aggregate([bytes(row[2]) for row in found]),
            min((row[3] for row in found), default=None),
            max((row[4] for row in found), default=None),
        )

    def collect(self, first: bytes, last: bytes) -> None:
        """Mark the buckets from one to another as collected: no report counts there any more."""
        self.run(
            "INSERT INTO turnout_task_collected (task, first, last) VALUES (?, ?, ?)", first, last
        )
        # What was added up is not needed again; the share that was given is kept with its noise.
        self.run(
            "DELETE FROM turnout_task_buckets WHERE task = ? AND bucket >= ? AND bucket <= ?",
            *(first, last),
        )


def span_of(batch: bytes | tuple[int, int]) -> tuple[bytes, bytes]:
    """Return the first and the last bucket of a batch.

    Raises
    ------
    ValueError
        If it is not a batch: an interval without a time in it, or one that has no end.
    """
    if isinstance(batch, bytes):
        return batch, batch
    start, duration = batch
    if duration < 1 or start + duration > 2**63:
        raise ValueError("the interval of a batch must have a beginning and an end")
    return bucket_of_time(start), bucket_of_time(start + duration - 1)


def counted(kinds: Iterable[int]) -> Counter[str]:
    """Count refusals by their words.

    Examples
    --------
    >>> counted([2, 2])
    Counter({'report_replayed': 2})
    """
    words = {number: word for word, number in _core.DAP_REPORT_ERRORS.items()}
    return Counter(words.get(kind, "other") for kind in kinds)
