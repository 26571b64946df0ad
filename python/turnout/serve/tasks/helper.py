"""The helper, which verifies what the leader sends and gives its share of a batch once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Final

from turnout import _core
from turnout.errors import CorruptDataError
from turnout.serve.storage.interface import Store
from turnout.serve.tasks.files import HelperFile
from turnout.serve.tasks.problems import ProblemError
from turnout.serve.tasks.records import (
    Records,
    Transaction,
    Verified,
    bucket_of_time,
    counted,
    oldest,
    span_of,
)

#: The errors of single reports.
ERRORS: Final = _core.DAP_REPORT_ERRORS

#: Seconds that a clock of a client may be ahead.
SKEW: Final = 300

#: Seconds that the clock of a helper may be behind that of its leader, which checks the time of a
#: report before it accepts it. What the helper refuses is lost.
_LAG: Final = 3600

#: The bytes of the ID of a job that is made of a request.
_ID_BYTES: Final = 16


def identity(request: bytes) -> bytes:
    """Make the ID of what a request creates; the same request makes the same ID."""
    return hashlib.sha256(request).digest()[:_ID_BYTES]


class Helper:
    """An aggregator that answers another.

    Parameters
    ----------
    file
        The file of the helper.
    store
        The store where it keeps what it remembers.
    keys
        The keys that reports may be encrypted to: its own, and those of other tasks at its address.
    """

    def __init__(self, file: HelperFile, store: Store, keys: Sequence[_core.HpkeKey] = ()) -> None:
        self.file, self.task = file, file.task
        self.keys = list(keys) or [file.key]
        self.records = Records(store, file)

    # Aggregation jobs

    def aggregate(self, request: bytes, job: bytes, dialect: str) -> bytes:
        """Verify the reports of an aggregation job, add up the good ones, and answer.

        The same request gets the same answer, and counts once.

        Raises
        ------
        ProblemError
            If the request is refused as a whole.
        StoreUnavailableError
            If nothing can be stored at the moment.
        """
        asked = hashlib.sha256(request).digest()
        with self.records.transaction() as records:
            earlier = _earlier(records, job, asked)
        if earlier is not None:
            return earlier
        try:
            read = _core.AggregationJobInitReq(request, dialect=dialect)
        except CorruptDataError as error:
            raise ProblemError("invalidMessage", str(error)) from None
        self._check(read)
        results = self._verified(read)
        with self.records.transaction() as records:
            # The same request may have come a second time meanwhile.
            earlier = _earlier(records, job, asked)
            if earlier is not None:
                return earlier
            answers = self._commit(records, read, results)
            answer = _core.write_aggregation_job_resp(read.ids, answers, dialect=dialect)
            records.refuse(counted(each for each in answers if isinstance(each, int)))
            self.records.forget_old(records)
            records.run(
                "INSERT INTO turnout_task_jobs (task, id, answered, request, answer) "
                "VALUES (?, ?, ?, ?, ?)",
                *(job, int(time.time()), asked, answer),
            )
        return answer

    def answer(self, job: bytes) -> bytes:
        """Return the answer of an aggregation job again."""
        with self.records.transaction() as records:
            row = records.row("SELECT answer FROM turnout_task_jobs WHERE task = ? AND id = ?", job)
        if row is None or row[0] is None:
            raise ProblemError("unrecognizedAggregationJob", "there is no such aggregation job")
        return bytes(row[0])

    def forget(self, job: bytes) -> None:
        """Forget the answer of an aggregation job; its reports stay remembered."""
        with self.records.transaction() as records:
            records.run("DELETE FROM turnout_task_jobs WHERE task = ? AND id = ?", job)

    def _check(self, read: _core.AggregationJobInitReq) -> None:
        if read.unsupported_extensions:
            raise ProblemError("unsupportedExtension", "an extension of the job is not known here")
        if read.aggregation_parameter:
            raise ProblemError(
                "invalidAggregationParameter", "the aggregation parameter of Prio3 must be empty"
            )
        if read.key_id != 0:
            raise ProblemError("invalidMessage", "this task has one verification key, of ID 0")
        if not len(read):
            raise ProblemError("invalidMessage", "an aggregation job must have reports")
        if (read.batch_id is not None) != (self.task.batch_mode == "leader_selected"):
            raise ProblemError("invalidMessage", f"the batch mode is {self.task.batch_mode}")

    def _verified(self, read: _core.AggregationJobInitReq) -> list[tuple[bytes, bytes] | int]:
        """Verify reports; return the output share and message of each, or why it is refused."""
        latest = (time.time() + SKEW + _LAG) / self.task.time_precision
        first = oldest(self.task.time_precision)
        opened = read.open(self.task.dap, self.keys)
        results: list[tuple[bytes, bytes] | int] = [ERRORS["report_too_early"]] * len(opened)
        good, jobs = [], []
        # Each of these makes a list of all reports.
        parts = zip(read.ids, read.public_shares, opened, read.payloads, strict=True)
        for place, (part, moment) in enumerate(zip(parts, read.times, strict=True)):
            share = part[2]
            if isinstance(share, int):
                results[place] = share
            elif moment < first:
                results[place] = ERRORS["report_dropped"]
            elif moment <= latest:
                good.append(place)
                jobs.append((part[0], part[1], share, part[3]))
        found = self.task.prio3.helper_initialized(
            self.file.verify_key, self.task.dap.context, jobs
        )
        for place, result in zip(good, found, strict=True):
            results[place] = refusal(result) if isinstance(result, str) else result
        return results

    def _commit(
        self,
        records: Transaction,
        read: _core.AggregationJobInitReq,
        results: Sequence[tuple[bytes, bytes] | int],
    ) -> list[bytes | int | None]:
        """Add up the reports that count, and return the answers to all."""
        known, batch = records.known(read.ids), read.batch_id
        collected: dict[bytes, bool] = {}
        buckets: dict[bytes, list[Verified]] = {}
        answers: list[bytes | int | None] = []
        for report, moment, result in zip(read.ids, read.times, results, strict=True):
            if isinstance(result, int):
                answers.append(result)
                continue
            bucket = batch or bucket_of_time(moment)
            if bucket not in collected:
                collected[bucket] = records.collected(bucket, bucket)
            if collected[bucket]:
                answers.append(ERRORS["batch_collected"])
            elif report in known:
                answers.append(ERRORS["report_replayed"])
            else:
                share, message = result
                buckets.setdefault(bucket, []).append(Verified(report, moment, share))
                answers.append(message)
        for bucket, verified in buckets.items():
            records.commit(bucket, verified)
            records.remember((one.id, one.time, None) for one in verified)
        return answers

    # Aggregate shares

    def share(self, request: bytes, name: bytes) -> bytes:
        """Return the aggregate share of a batch, with noise, sealed for the collector.

        The first request marks the batch as collected; if it is repeated, it gets the same bytes.

        Raises
        ------
        ProblemError
            If the request is refused.
        StoreUnavailableError
            If nothing can be stored at the moment.
        """
        try:
            read = _core.AggregateShareReq(request)
        except CorruptDataError as error:
            raise ProblemError("invalidMessage", str(error)) from None
        first, last = check_batch(self.task.batch_mode, read.collection_job_req, read.batch)
        with self.records.transaction() as records:
            row = records.row(
                "SELECT request, answer FROM turnout_task_collections WHERE task = ? AND id = ?",
                name,
            )
            if row is not None:
                if bytes(row[0]) != request:
                    raise ProblemError("invalidMessage", "this ID belongs to another request")
                return bytes(row[1])
            if records.collected(first, last):
                raise ProblemError("batchOverlap", "reports of this batch were collected before")
            summed = records.summed(first, last)
            if summed.reports < self.task.min_batch_size:
                raise ProblemError(
                    "invalidBatchSize",
                    f"the batch has {summed.reports} reports here, and must have at least "
                    f"{self.task.min_batch_size}",
                )
            if (summed.reports, summed.checksum) != (read.report_count, read.checksum):
                raise ProblemError(
                    "batchMismatch",
                    f"the batch has {summed.reports} reports here and {read.report_count} at the "
                    "leader, or others",
                )
            share = summed.share
            if self.file.noise is not None:
                share = self.file.noise.added_to(self.task, share, summed.reports)
            answer = _core.seal_aggregate_share(
                *(self.task.dap, "helper", self.file.collector_config),
                *(read.collection_job_req, share),
            )
            records.collect(first, last)
            records.run(
                "INSERT INTO turnout_task_collections (task, id, request, state, answer) "
                "VALUES (?, ?, ?, 'done', ?)",
                *(name, request, answer),
            )
        return answer

    def share_again(self, name: bytes) -> bytes:
        """Return an aggregate share again."""
        with self.records.transaction() as records:
            row = records.row(
                "SELECT answer FROM turnout_task_collections WHERE task = ? AND id = ?", name
            )
        if row is None:
            raise ProblemError("invalidMessage", "there is no such aggregate share")
        return bytes(row[0])

    def forget_share(self, name: bytes) -> None:
        """Forget an aggregate share; its batch stays collected."""
        with self.records.transaction() as records:
            records.run("DELETE FROM turnout_task_collections WHERE task = ? AND id = ?", name)


def refusal(word: str) -> int:
    """Return the error of a report that was not verified."""
    return ERRORS["invalid_message" if word == "malformed" else "vdaf_verify_error"]


def check_batch(
    mode: str, request: _core.CollectionJobReq, batch: bytes | tuple[int, int]
) -> tuple[bytes, bytes]:
    """Check what a collector asks for, and that a batch matches it; return the batch's buckets.

    Raises
    ------
    ProblemError
        If the request is refused.
    """
    check_collection(mode, request)
    if isinstance(batch, bytes) != (mode == "leader_selected"):
        raise ProblemError("invalidMessage", f"the batch mode of this task is {mode}")
    if not isinstance(batch, bytes):
        assert request.interval is not None
        asked, duration = request.interval
        if batch[0] < asked or sum(batch) > asked + duration:
            raise ProblemError("batchInvalid", "the batch is not within the interval of the query")
    try:
        return span_of(batch)
    except ValueError as error:
        raise ProblemError("batchInvalid", str(error)) from None


def check_collection(mode: str, request: _core.CollectionJobReq) -> None:
    """Check what a collector asks for.

    Raises
    ------
    ProblemError
        If the request is refused.
    """
    if request.batch_mode != mode:
        raise ProblemError("invalidMessage", f"the batch mode of this task is {mode}")
    if request.extensions:
        raise ProblemError("unsupportedExtension", "an extension of the job is not known here")
    if request.aggregation_parameter:
        raise ProblemError(
            "invalidAggregationParameter", "the aggregation parameter of Prio3 must be empty"
        )


def _earlier(records: Transaction, job: bytes, asked: bytes) -> bytes | None:
    """Return the answer of an existing job; refuse another request under its ID."""
    row = records.row(
        "SELECT request, answer FROM turnout_task_jobs WHERE task = ? AND id = ?", job
    )
    if row is None:
        return None
    if bytes(row[0]) != asked:
        raise ProblemError("invalidMessage", "this ID belongs to another aggregation job")
    return bytes(row[1])
