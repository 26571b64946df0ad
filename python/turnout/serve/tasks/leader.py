"""The leader, which takes in reports and remembers them until they are aggregated."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turnout import _core
from turnout.errors import CorruptDataError
from turnout.serve.storage.interface import Store
from turnout.serve.tasks.collections import Collections
from turnout.serve.tasks.files import LeaderFile
from turnout.serve.tasks.helper import ERRORS, SKEW
from turnout.serve.tasks.jobs import Jobs
from turnout.serve.tasks.peers import Peer
from turnout.serve.tasks.problems import ProblemError
from turnout.serve.tasks.records import Records, Transaction, bucket_of_time, counted, oldest


class Upload(NamedTuple):
    """The reports of a request; each has the reason why it is refused, or None."""

    reports: _core.DapReports
    errors: list[int | None]


class Leader:
    """An aggregator that takes in reports.

    Parameters
    ----------
    file
        The file of the leader.
    store
        The store where it keeps what it remembers.
    ca
        The file of the certificates that must have issued the helper's.
    keys
        The keys that reports may be encrypted to: its own, and those of other tasks at its address.
    """

    def __init__(
        self,
        file: LeaderFile,
        store: Store,
        ca: Path | None = None,
        keys: Sequence[_core.HpkeKey] = (),
    ) -> None:
        self.file, self.task = file, file.task
        self.keys = list(keys) or [file.key]
        self.records = Records(store, file)
        self.helper = Peer(file.task.helper, "helper", file.helper_token, ca)
        self.jobs = Jobs(file, self.records, self.helper, self.keys)
        self.collections = Collections(file, self.records, self.helper)

    def step(self) -> bool:
        """Do the work that is due; return whether there may be more at once.

        Raises
        ------
        PeerUnavailableError
            If the helper cannot be asked.
        StoreUnavailableError
            If the store cannot be used.
        """
        worked = self.jobs.step()
        return self.collections.step() or worked

    # Uploads

    def read(self, body: bytes) -> Upload:
        """Read the reports of a request, and refuse what can be refused without the store.

        Raises
        ------
        ProblemError
            If it is not an upload.
        """
        try:
            reports = _core.DapReports(body)
        except CorruptDataError as error:
            raise ProblemError("invalidMessage", str(error)) from None
        if not len(reports):
            raise ProblemError("invalidMessage", "an upload must have reports")
        latest = (time.time() + SKEW) / self.task.time_precision
        first, duration = self.task.interval or (0, 2**63)
        accepted = range(max(first, oldest(self.task.time_precision)), first + duration)
        configs = {key.config_id for key in self.keys}
        errors: list[int | None] = []
        for key, moment in zip(reports.leader_config_ids, reports.times, strict=True):
            word = None
            if key not in configs:
                word = "outdated_config"
            elif moment not in accepted:
                word = "report_dropped"
            elif moment > latest:
                word = "report_too_early"
            errors.append(None if word is None else ERRORS[word])
        return Upload(reports, errors)

    def store(self, uploads: Sequence[Upload]) -> list[bytes]:
        """Store the reports of several requests; return the answer to each: what was refused.

        Raises
        ------
        StoreUnavailableError
            If nothing can be stored at the moment.
        """
        refused: Counter[str] = Counter()
        answers = []
        with self.records.transaction() as records:
            taken: set[bytes] = set()
            collected: dict[int, bool] = {}
            for reports, errors in uploads:
                ids, times = reports.ids, reports.times
                known = records.known(ids)
                rows = []
                for place, (report, moment, encoded) in enumerate(
                    zip(ids, times, reports.encoded, strict=True)
                ):
                    if errors[place] is not None:
                        continue
                    if report in known or report in taken:
                        errors[place] = ERRORS["report_replayed"]
                    elif self._collected(records, moment, collected):
                        errors[place] = ERRORS["batch_collected"]
                    else:
                        taken.add(report)
                        rows.append((report, moment, encoded))
                records.remember(rows)
                failed = [
                    (report, error)
                    for report, error in zip(ids, errors, strict=True)
                    if error is not None
                ]
                refused += counted(error for _, error in failed)
                answers.append(_core.write_upload_errors(failed) if failed else b"")
            records.refuse(refused)
        return answers

    def _collected(self, records: Transaction, moment: int, known: dict[int, bool]) -> bool:
        """Return whether the reports of this time were collected already."""
        if self.task.batch_mode == "leader_selected":
            return False
        if moment not in known:
            bucket = bucket_of_time(moment)
            known[moment] = records.collected(bucket, bucket)
        return known[moment]

    def waiting(self) -> int:
        """Count the reports that are not aggregated yet."""
        with self.records.transaction() as records:
            return records.number(
                "SELECT count(*) FROM turnout_task_reports WHERE task = ? AND report IS NOT NULL"
            )
