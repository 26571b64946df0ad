"""Run the aggregation jobs of a leader: verify reports with the helper, and add them up."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from turnout import _core
from turnout.errors import CorruptDataError
from turnout.serve.tasks.files import LeaderFile
from turnout.serve.tasks.helper import refusal
from turnout.serve.tasks.peers import Peer, PeerRefusedError
from turnout.serve.tasks.records import (
    Records,
    Transaction,
    Verified,
    bucket_of_time,
    counted,
)

#: The most reports of a job, and its most bytes, unless one report has more.
JOB_REPORTS: Final = 500
JOB_BYTES: Final = 2**23

#: How many jobs are under way at once: one is verified here while another is at the helper.
_AT_ONCE: Final = 2

_ID_BYTES: Final = 16
_BATCH_BYTES: Final = 32

#: Why the reports of a job were given up that the helper refused as a whole.
_JOB_REFUSED: Final = "aggregation_job_refused"


def reports_of_job(report_bytes: int) -> int:
    """Return the largest number of reports that a job has.

    Examples
    --------
    >>> reports_of_job(1000), reports_of_job(10**8)
    (500, 1)
    """
    return max(1, min(JOB_REPORTS, JOB_BYTES // report_bytes))


class Jobs:
    """The aggregation jobs of a leader.

    A job is the set of reports that the store says are in it. Its request is made from them anew
    each time, always with the same bytes. So a helper that had the request before gives the same
    answer.

    Parameters
    ----------
    file
        The file of the leader.
    records
        The records of the leader.
    helper
        The helper, which verifies with the leader.
    keys
        The keys that reports may be encrypted to.
    """

    def __init__(
        self, file: LeaderFile, records: Records, helper: Peer, keys: Sequence[_core.HpkeKey]
    ) -> None:
        self._file, self._task, self._keys = file, file.task, list(keys)
        self._records, self._helper = records, helper
        self._most = reports_of_job(file.task.vdaf.report_bytes)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="turnout-jobs")

    def step(self) -> bool:
        """Make jobs of the waiting reports, and run all jobs; return whether any ran."""
        with self._records.transaction() as records:
            self._assign(records)
            self._records.forget_old(records)
            jobs = records.rows("SELECT id, bucket FROM turnout_task_jobs WHERE task = ?")
        running = [
            self._pool.submit(self._run, bytes(job), None if bucket is None else bytes(bucket))
            for job, bucket in jobs
        ]
        trouble: BaseException | None = None
        for each in running:
            # If the helper does not answer, each job that has not begun would wait as long.
            if trouble is None or not each.cancel():
                trouble = trouble or each.exception()
        if trouble is not None:
            raise trouble
        return bool(jobs)

    # Which reports are in which job

    def _assign(self, records: Transaction) -> None:
        """Make jobs of the waiting reports."""
        selected = self._task.batch_mode == "leader_selected"
        bucket, room = None, 0
        while True:
            waiting = records.rows(
                "SELECT id FROM turnout_task_reports "
                "WHERE task = ? AND job IS NULL AND report IS NOT NULL LIMIT ?",
                self._most,
            )
            if not waiting:
                return
            if not selected:
                room = len(waiting)
            elif room == 0:
                bucket, room = self._open_batch(records)
            if room == 0:
                return
            job = secrets.token_bytes(_ID_BYTES)
            records.run(
                "INSERT INTO turnout_task_jobs (task, id, bucket) VALUES (?, ?, ?)", job, bucket
            )
            records.update(
                "UPDATE turnout_task_reports SET job = ? WHERE id = ? AND task = ?",
                *((job, bytes(report)) for (report,) in waiting[:room]),
            )
            room = max(0, room - len(waiting))

    def _open_batch(self, records: Transaction) -> tuple[bytes | None, int]:
        """Find the batch that takes more reports, and how many it takes; or begin a new batch.

        No batch is begun while reports of another batch are being verified. If some of those are
        refused, that batch has room for other reports, and no one is left out because somebody
        cheats.
        """
        found = records.rows(
            "SELECT bucket, reports FROM turnout_task_buckets WHERE task = ? ORDER BY opened"
        )
        for bucket, reports in found:
            left = self._file.batch_reports - reports
            if left > 0:
                return bytes(bucket), max(0, left - in_jobs(records, bytes(bucket)))
        batch = secrets.token_bytes(_BATCH_BYTES)
        records.open_bucket(batch)
        return batch, self._file.batch_reports

    # One job

    def _run(self, job: bytes, bucket: bytes | None) -> None:
        """Verify the reports of a job with the helper, and add up the good ones."""
        with self._records.transaction() as records:
            rows = records.rows(
                "SELECT report FROM turnout_task_reports "
                "WHERE task = ? AND job = ? AND report IS NOT NULL ORDER BY id",
                job,
            )
        reports = _core.DapReports(b"".join(bytes(report) for (report,) in rows))
        refused: Counter[str] = Counter()
        begun = self._begin(reports, refused)
        verified: list[Verified] = []
        if any(each is not None for each in begun):
            try:
                verified = self._finish(reports, begun, job, bucket, refused)
            except PeerRefusedError:
                refused[_JOB_REFUSED] += sum(each is not None for each in begun)
        with self._records.transaction() as records:
            if records.row("SELECT 1 FROM turnout_task_jobs WHERE task = ? AND id = ?", job):
                self._commit(records, job, bucket, verified)
                records.refuse(refused)

    def _begin(
        self, reports: _core.DapReports, refused: Counter[str]
    ) -> list[tuple[bytes, bytes] | None]:
        """Begin to verify reports; return the state and message of each, None if it is refused."""
        begun: list[tuple[bytes, bytes] | None] = [None] * len(reports)
        good, shares = [], []
        ids, public = reports.ids, reports.public_shares
        for place, share in enumerate(reports.open(self._task.dap, self._keys)):
            if isinstance(share, int):
                refused += counted([share])
            else:
                good.append(place)
                shares.append((ids[place], public[place], share))
        found = self._task.prio3.leader_initialized(
            self._file.verify_key, self._task.dap.context, shares
        )
        for place, result in zip(good, found, strict=True):
            if isinstance(result, str):
                refused += counted([refusal(result)])
            else:
                begun[place] = result
        return begun

    def _finish(
        self,
        reports: _core.DapReports,
        begun: Sequence[tuple[bytes, bytes] | None],
        job: bytes,
        bucket: bytes | None,
        refused: Counter[str],
    ) -> list[Verified]:
        """Send a job to the helper, and verify its answer.

        Raises
        ------
        PeerUnavailableError
            If the helper cannot be asked.
        PeerRefusedError
            If it refuses the job, or answers with something else.
        """
        payloads = [None if each is None else each[1] for each in begun]

        def body(dialect: str) -> bytes:
            return reports.aggregation_job_init_req(
                payloads, key_id=0, batch_id=bucket, dialect=dialect
            )

        place, answer = self._helper.create(
            f"tasks/{self._task.name}/aggregation_jobs", job, body, "aggregation-job-init-req"
        )
        if not answer.body and "?" not in place:
            place += "?step=0"
        end = time.monotonic() + self._helper.seconds
        data = self._helper.wait_for(place, answer, end)
        try:
            ids, results = _core.read_aggregation_job_resp(data, dialect=self._helper.dialect)
        except CorruptDataError as error:
            raise PeerRefusedError(f"the helper's answer cannot be read: {error}") from None
        sent = [
            (report, moment, each[0])
            for report, moment, each in zip(reports.ids, reports.times, begun, strict=True)
            if each is not None
        ]
        if ids != [report for report, _, _ in sent] or None in results:
            raise PeerRefusedError("the helper answers about other reports, or ends too early")
        continued = []
        for (report, moment, state), result in zip(sent, results, strict=True):
            if isinstance(result, int):
                refused += counted([result])
            elif result is not None:
                continued.append((report, moment, state, result))
        found = self._task.prio3.leader_continued(
            self._task.dap.context, [(state, message) for _, _, state, message in continued]
        )
        verified = []
        for (report, moment, _, _), share in zip(continued, found, strict=True):
            if isinstance(share, str):
                refused += counted([refusal(share)])
            else:
                verified.append(Verified(report, moment, share))
        return verified

    def _commit(
        self, records: Transaction, job: bytes, bucket: bytes | None, verified: list[Verified]
    ) -> None:
        """Add up verified reports, and forget what the job was made of."""
        buckets: dict[bytes, list[Verified]] = {}
        for one in verified:
            buckets.setdefault(bucket or bucket_of_time(one.time), []).append(one)
        for each, reports in buckets.items():
            records.commit(each, reports)
        records.run(
            "UPDATE turnout_task_reports SET report = NULL, job = NULL "
            "WHERE task = ? AND job = ? AND report IS NOT NULL",
            job,
        )
        records.run("DELETE FROM turnout_task_jobs WHERE task = ? AND id = ?", job)

    def close(self) -> None:
        """Wait for the jobs in progress."""
        self._pool.shutdown()


def in_jobs(records: Transaction, bucket: bytes) -> int:
    """Count the reports that are in jobs of a batch."""
    return records.number(
        "SELECT count(*) FROM turnout_task_reports AS reports JOIN turnout_task_jobs AS jobs "
        "ON jobs.task = reports.task AND jobs.id = reports.job "
        "WHERE reports.task = ? AND reports.report IS NOT NULL AND jobs.bucket = ?",
        bucket,
    )
