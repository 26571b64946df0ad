"""The collector, which asks the leader for a batch and combines the two shares of its sum."""

from __future__ import annotations

import hashlib
import itertools
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from turnout import _core
from turnout.errors import CorruptDataError, ProtocolError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.mean.estimate import MeanEstimate
from turnout.serve.tasks.files import CollectorFile
from turnout.serve.tasks.peers import Answer, Peer, PeerRefusedError, PeerUnavailableError
from turnout.serve.tasks.reading import text_of

_ID_BYTES: Final = 16

#: How many hexadecimal digits the name of a batch has.
_NAME_DIGITS: Final = 8

#: How Janus answers about a job that was given up.
_GIVEN_UP: Final = 204

#: How Janus refuses jobs as long as it has too few reports for a batch.
_UNREADY: Final = {
    "leader_selected": ("batchInvalid", "invalidBatchSize"),
    "time_interval": ("invalidBatchSize",),
}


@dataclass(frozen=True)
class Collected:
    """The sum of a batch.

    Attributes
    ----------
    reports
        How many reports are in the batch.
    start, duration
        The time that the reports are from, in seconds since 1970, and how long it lasted.
    sums
        The sums, with the noise of both aggregators.
    estimate
        The frequencies among the users of the reports, or the mean of their numbers.
    batch
        A name of the batch, made of both shares of its sum.
    """

    reports: int
    start: int
    duration: int
    sums: tuple[int, ...]
    estimate: FrequencyEstimate | MeanEstimate
    batch: str


class Collector:
    """A collector of the results of a task.

    Parameters
    ----------
    file
        The task file of the collector.
    ca
        The file of the certificates that must have issued those of the leader.
    """

    def __init__(self, file: CollectorFile, ca: Path | None = None) -> None:
        self._file, self._task = file, file.task
        self._leader = Peer(file.task.leader, "leader", file.token, ca)

    def collect(
        self, *, seconds: float, interval: tuple[int, int] | None = None, after: str = ""
    ) -> Collected:
        """Ask for a batch, and wait for it.

        The same request returns the same batch: noise is drawn once for each batch.

        Parameters
        ----------
        seconds
            The number of seconds to wait.
        interval
            For batches of time intervals: the beginning and the end, in seconds since 1970.
        after
            If the leader selects batches: the name of the last batch. It is given up, and the next
            is asked for. No other batch is given up, so the same call may be repeated.

        Raises
        ------
        PeerUnavailableError
            If there is no result in time; the message states what the leader waits for.
        PeerRefusedError
            If the leader refuses.
        ProtocolError
            If its answer is not a result of this task.
        """
        end = time.monotonic() + seconds
        units = None
        if interval is not None:
            precision = self._task.time_precision
            start = interval[0] // precision
            units = start, -(-interval[1] // precision) - start
        request = _core.CollectionJobReq.of(units)
        body = request.to_bytes()
        while True:
            place, answer = self._job(body, end)
            data = self._leader.wait_for(place, answer, end)
            try:
                found = self._opened(request, data)
            except CorruptDataError as error:
                raise ProtocolError(
                    f"what the leader gives is not the result of this task: {error}"
                ) from None
            if found.batch != after:
                return found
            self._give_up(place)

    def _place(self, name: bytes = b"") -> str:
        jobs = f"tasks/{self._task.name}/collection_jobs"
        return f"{jobs}/{text_of(name)}" if name else jobs

    def _job(self, body: bytes, end: float) -> tuple[str, Answer]:
        """Find the job of a request, or create it.

        Its name is made of the request, so that it is found again. Janus does not create a job
        again that was given up: the next job has another number in its name. A job that failed is
        given up once the collector has been told.
        """
        for number in itertools.count():
            text = body + number.to_bytes(4, "big") if number else body
            name = hashlib.sha256(text).digest()[:_ID_BYTES]
            place = self._place(name)
            answer = self._leader.request("GET", place)
            if answer.status == _GIVEN_UP:
                continue
            try:
                return place, self._leader.checked(answer)
            except PeerUnavailableError:
                return self._created(name, body, end)
            except PeerRefusedError as error:
                self._give_up(place)
                raise PeerRefusedError(
                    f"{error}. This batch has no result; ask again for another", error.kind
                ) from None
        raise AssertionError

    def _give_up(self, place: str) -> None:
        self._leader.checked(self._leader.request("DELETE", place))

    def _created(self, name: bytes, body: bytes, end: float) -> tuple[str, Answer]:
        """Create a job; try again while the leader refuses it for lack of reports."""
        pause = 0.1
        while True:
            try:
                return self._leader.create(
                    self._place(), name, lambda _: body, "collection-job-req"
                )
            except PeerRefusedError as error:
                if error.kind not in _UNREADY[self._task.batch_mode]:
                    raise
                if time.monotonic() + pause > end:
                    raise PeerUnavailableError(
                        f"{error}; ask again when there are more reports, or wait longer"
                    ) from None
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def _opened(self, request: _core.CollectionJobReq, data: bytes) -> Collected:
        reports, (start, duration), *sealed = _core.read_collection_job_resp(data)
        shares = [
            _core.open_aggregate_share(self._task.dap, role, self._file.key, request, each)
            for role, each in zip(("leader", "helper"), sealed, strict=True)
        ]
        precision = self._task.time_precision
        question = self._file.question
        # Behind those of the labels a histogram has a bucket of no vote.
        sums = self._task.prio3.unshard(shares)[: question.domain.size]
        # A batch may have more reports than there are users: the noise is the same.
        if reports > question.users:
            question = replace(question, users=reports)
        estimate = question.estimate(np.array(sums), received=reports)
        batch = hashlib.sha256(b"".join(shares)).hexdigest()[:_NAME_DIGITS]
        return Collected(
            reports, start * precision, duration * precision, tuple(sums), estimate, batch
        )
