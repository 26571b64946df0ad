"""Run the collection jobs of a leader: collect each complete batch once, with noise."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from turnout import _core
from turnout.errors import CorruptDataError
from turnout.serve.tasks.files import LeaderFile
from turnout.serve.tasks.helper import check_batch, check_collection, identity
from turnout.serve.tasks.jobs import in_jobs
from turnout.serve.tasks.peers import Peer, PeerRefusedError
from turnout.serve.tasks.problems import ProblemError
from turnout.serve.tasks.records import Records, Transaction, span_of


class Ready(NamedTuple):
    """A batch that can be collected, and its buckets."""

    batch: bytes | tuple[int, int]
    first: bytes
    last: bytes


class Collections:
    """The collection jobs of a leader.

    A job waits until a batch is ready. Then, in one transaction, the leader adds its noise, seals
    its share for the collector, and marks the batch as collected. Its request to the helper is
    stored too, so that it asks for the same after a restart.

    Parameters
    ----------
    file
        The file of the leader.
    records
        The records of the leader.
    helper
        The helper, which has the other share.
    """

    def __init__(self, file: LeaderFile, records: Records, helper: Peer) -> None:
        self._file, self._task = file, file.task
        self._records, self._helper = records, helper

    # What the collector asks

    def create(self, request: bytes, name: bytes) -> None:
        """Begin a collection job; an existing job stays as it is.

        Raises
        ------
        ProblemError
            If the request is refused.
        """
        try:
            read = _core.CollectionJobReq(request)
        except CorruptDataError as error:
            raise ProblemError("invalidMessage", str(error)) from None
        check_collection(self._task.batch_mode, read)
        with self._records.transaction() as records:
            row = records.row(
                "SELECT request FROM turnout_task_collections WHERE task = ? AND id = ?", name
            )
            if row is not None:
                if bytes(row[0]) != request:
                    raise ProblemError("invalidMessage", "this ID belongs to another job")
                return
            if read.interval is not None:
                first, last = check_batch(self._task.batch_mode, read, read.interval)
                if records.collected(first, last):
                    raise ProblemError(
                        "batchOverlap", "a part of the interval was collected before"
                    )
            records.run(
                "INSERT INTO turnout_task_collections (task, id, request, state) "
                "VALUES (?, ?, ?, 'waiting')",
                *(name, request),
            )

    def answer(self, name: bytes) -> tuple[bytes, str]:
        """Return the result of a collection job; if it is not ready, nothing and what it waits for.

        Raises
        ------
        ProblemError
            If the job failed, or there is no such job.
        """
        with self._records.transaction() as records:
            row = records.row(
                "SELECT state, answer, problem, request FROM turnout_task_collections "
                "WHERE task = ? AND id = ?",
                name,
            )
            if row is None:
                raise ProblemError("unrecognizedCollectionJob", "there is no such collection job")
            state, answer, problem, request = row
            if state == "failed":
                kind, _, detail = str(problem).partition(": ")
                raise ProblemError(kind, detail)
            if state == "done":
                return bytes(answer), ""
            return b"", self._waits_for(records, state, _core.CollectionJobReq(bytes(request)))

    def forget(self, name: bytes) -> None:
        """Forget a collection job; its batch stays collected."""
        with self._records.transaction() as records:
            records.run("DELETE FROM turnout_task_collections WHERE task = ? AND id = ?", name)

    def _waits_for(self, records: Transaction, state: str, request: _core.CollectionJobReq) -> str:
        if state == "sharing":
            return "the helper's share"
        reports = records.number(
            "SELECT coalesce(max(reports), 0) FROM turnout_task_buckets WHERE task = ?"
        )
        if request.interval is not None:
            reports = records.summed(*span_of(request.interval)).reports
        pending = records.number(
            "SELECT count(*) FROM turnout_task_reports WHERE task = ? AND report IS NOT NULL"
        )
        return (
            f"{reports} of {self._file.batch_reports} reports are verified, and at least "
            f"{self._task.min_batch_size} are needed; {pending} wait to be verified"
        )

    # What is done for it

    def step(self) -> bool:
        """Continue the jobs in progress; return whether any of them moved on."""
        with self._records.transaction() as records:
            jobs = records.rows(
                "SELECT id, state, request FROM turnout_task_collections "
                "WHERE task = ? AND (state = 'waiting' OR state = 'sharing') ORDER BY state"
            )
        moved = False
        for name, state, request in jobs:
            if state == "waiting" and not self._collect(bytes(name), bytes(request)):
                continue
            self._ask(bytes(name), bytes(request))
            moved = True
        return moved

    def _collect(self, name: bytes, request: bytes) -> bool:
        """Collect a batch if one is complete: add noise, and seal the share."""
        read = _core.CollectionJobReq(request)
        with self._records.transaction() as records:
            # Another server may have gone on with it, or the collector given it up.
            if not records.row(
                "SELECT 1 FROM turnout_task_collections "
                "WHERE task = ? AND id = ? AND state = 'waiting'",
                name,
            ):
                return False
            try:
                ready = self._ready(records, read)
            except ProblemError as problem:
                _fail(records, name, problem)
                return False
            if ready is None:
                return False
            summed = records.summed(ready.first, ready.last)
            share = summed.share
            if self._file.noise is not None:
                share = self._file.noise.added_to(self._task, share, summed.reports)
            sealed = _core.seal_aggregate_share(
                self._task.dap, "leader", self._file.collector_config, read, share
            )
            asked = _core.AggregateShareReq.of(read, ready.batch, summed.reports, summed.checksum)
            records.collect(ready.first, ready.last)
            values = sealed, asked.to_bytes(), summed.reports, summed.first, summed.last, name
            records.update(
                "UPDATE turnout_task_collections SET state = 'sharing', share = ?, "
                "share_request = ?, reports = ?, first = ?, last = ? WHERE id = ? AND task = ?",
                values,
            )
        return True

    def _ready(self, records: Transaction, request: _core.CollectionJobReq) -> Ready | None:
        """Find a batch that can be collected."""
        if request.interval is not None:
            return self._ready_interval(records, request.interval)
        found = records.rows(
            "SELECT bucket, reports, opened FROM turnout_task_buckets "
            "WHERE task = ? AND reports >= ? ORDER BY opened",
            self._task.min_batch_size,
        )
        for row in found:
            bucket = bytes(row[0])
            if self._enough(row[1], row[2], self._ended()) and not in_jobs(records, bucket):
                return Ready(bucket, bucket, bucket)
        return None

    def _ready_interval(self, records: Transaction, interval: tuple[int, int]) -> Ready | None:
        first, last = span_of(interval)
        if records.collected(first, last):
            raise ProblemError("batchOverlap", "a part of the interval was collected before")
        pending = records.number(
            "SELECT count(*) FROM turnout_task_reports "
            "WHERE task = ? AND report IS NOT NULL AND time >= ? AND time < ?",
            *(interval[0], sum(interval)),
        )
        count, opened = records.rows(
            "SELECT CAST(coalesce(sum(reports), 0) AS bigint), coalesce(min(opened), 0) "
            "FROM turnout_task_buckets WHERE task = ? AND bucket >= ? AND bucket <= ?",
            *(first, last),
        )[0]
        over = time.time() >= sum(interval) * self._task.time_precision
        enough = count >= self._task.min_batch_size and self._enough(count, opened, over)
        return Ready(interval, first, last) if enough and not pending else None

    def _enough(self, reports: int, opened: int, over: bool) -> bool:
        """Return whether a batch need not wait: it has all reports, or its time is over."""
        seconds = self._file.batch_seconds
        late = seconds is not None and time.time() >= opened + seconds
        return reports >= self._file.batch_reports or over or late

    def _ended(self) -> bool:
        """Return whether the task takes no more reports."""
        interval = self._task.interval
        return interval is not None and time.time() >= sum(interval) * self._task.time_precision

    def _ask(self, name: bytes, request: bytes) -> None:
        """Ask the helper for its share of a batch that is collected here.

        Raises
        ------
        PeerUnavailableError
            If the helper cannot be asked.
        """
        columns = "share, share_request, reports, first, last"
        with self._records.transaction() as records:
            row: tuple[Any, ...] | None = records.row(
                f"SELECT {columns} FROM turnout_task_collections WHERE task = ? AND id = ?", name
            )
        if row is None:
            return
        share, asked, reports, first, last = row
        try:
            # Named after the request: a collection of this name may come again, for another batch.
            place, answer = self._helper.create(
                f"tasks/{self._task.name}/aggregate_shares",
                *(identity(bytes(asked)), lambda _: bytes(asked), "aggregate-share-req"),
            )
            end = time.monotonic() + self._helper.seconds
            other = self._helper.wait_for(place, answer, end)
            _core.ciphertext_config_id(other)
        except (PeerRefusedError, CorruptDataError) as error:
            kind = getattr(error, "kind", "") or "invalidMessage"
            with self._records.transaction() as records:
                _fail(records, name, ProblemError(kind, str(error)))
            return
        found = _core.write_collection_job_resp(
            reports, (first, last - first + 1), bytes(share), other
        )
        with self._records.transaction() as records:
            records.update(
                "UPDATE turnout_task_collections SET state = 'done', answer = ? "
                "WHERE id = ? AND task = ?",
                (found, name),
            )


def _fail(records: Transaction, name: bytes, problem: ProblemError) -> None:
    records.update(
        "UPDATE turnout_task_collections SET state = 'failed', problem = ? "
        "WHERE id = ? AND task = ?",
        (f"{problem.kind}: {problem.detail}", name),
    )
