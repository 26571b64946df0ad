"""How long a round with proofs takes over HTTP, beside its cryptography alone.

Clients, leader and helper are processes of one machine: everything between the parties goes over
the loopback, and both aggregators store on the disk what they must remember. The cryptography is
what all parties compute, one after the other in one process, on all cores: shares, proofs and
encryption of the clients, decryption and verification by both aggregators, and the sums.
"""

from __future__ import annotations

import contextlib
import importlib
import secrets
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from report import Figures, Row, duration
from serving_jobs import process

#: Reports of a request, and of an aggregation job.
PART = 500

TITLE = "A round with proofs over HTTP, all parties on the same cores"
HEADINGS = ("job", "cryptography", "round", "ratio", "target", "met?")
NOTES = [
    "round: the time from the first upload to the result. Leader and helper are turnout serve "
    f"--task with SQLite. The client sends {PART} reports in a request.",
    "cryptography: the time of what all parties compute for the same reports, in one process, on "
    "all cores.",
]
#: A round may take so many times as long as its cryptography.
RATIO = 3.0
USERS, QUICK_USERS, LABELS = 100_000, 1000, 30


def measure(turnout: ModuleType | None, quick: bool, show: Callable[[str], object]) -> Figures:
    """Measure one round; ``quick`` has a hundredth of the users."""
    rows: list[Row] = []
    if turnout is not None:
        users = QUICK_USERS if quick else USERS
        show(f"a round of {users:,} users")
        with tempfile.TemporaryDirectory(prefix="turnout-bench-") as name:
            files = task_of(turnout, users, Path(name))
            alone = cryptography(turnout, files, users)
            whole = round_of(files, users, Path(name))
        ratio = whole / alone
        job = f"{users:,} users, {LABELS} items"
        met = "yes" if ratio <= RATIO else "no"
        cells = (job, duration(alone), duration(whole), f"{ratio:.2f}", f"<= {RATIO:g}", met)
        raw = {"job": job, "cryptography": alone, "round": whole, "ratio": ratio}
        rows.append(Row(cells, "", raw))
    return Figures("rounds", TITLE, HEADINGS, rows, NOTES)


def task_of(turnout: Any, users: int, folder: Path) -> list[Any]:
    """Make a task whose aggregators are on free ports, and write its files."""
    making = importlib.import_module("turnout.serve.tasks.making")
    question = turnout.distributed.VerifiedAggregation(
        turnout.Domain(range(LABELS)), users, epsilon=1.0
    )
    leader, helper = (f"http://127.0.0.1:{port}/" for port in free_ports(2))
    files: list[Any] = making.new_task(question, leader=leader, helper=helper)
    making.write_task(files, folder / "task")
    return files


def free_ports(number: int) -> list[int]:
    """Find ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def cryptography(turnout: Any, files: list[Any], users: int) -> float:
    """Compute what all parties compute, without storing or sending; gives the seconds."""
    core, leader, helper = turnout._core, files[0], files[1]
    dap, prio3, context = leader.task.dap, leader.task.prio3, leader.task.dap.context
    votes, total = np.arange(users) % LABELS, b""
    start = time.perf_counter()
    for first in range(0, users, PART):
        part = votes[first : first + PART]
        nonces = secrets.token_bytes(16 * len(part))
        ids = [nonces[at : at + 16] for at in range(0, len(nonces), 16)]
        shards = prio3.shard_votes(context, part, nonces)
        public = [each for each, _ in shards]
        body = core.seal_reports(
            *(dap, leader.key.config, helper.key.config),
            ids=ids,
            times=[0] * len(part),
            public_shares=public,
            leader_shares=[shares[0] for _, shares in shards],
            helper_shares=[shares[1] for _, shares in shards],
        )
        reports = core.DapReports(body)
        opened = reports.open(dap, [leader.key])
        begun = prio3.leader_initialized(
            leader.verify_key, context, list(zip(ids, public, opened, strict=True))
        )
        request = core.AggregationJobInitReq(
            reports.aggregation_job_init_req(
                [message for _, message in begun], key_id=0, batch_id=bytes(32)
            )
        )
        jobs = zip(ids, public, request.open(dap, [helper.key]), request.payloads, strict=True)
        answered = prio3.helper_initialized(helper.verify_key, context, list(jobs))
        finished = prio3.leader_continued(
            context, [(one[0], other[1]) for one, other in zip(begun, answered, strict=True)]
        )
        total = prio3.aggregate(finished, total or None)
    return time.perf_counter() - start


def round_of(files: list[Any], users: int, folder: Path) -> float:
    """Send all reports to two servers, and get the result; gives the seconds."""
    client = importlib.import_module("turnout.serve.tasks.client").Client
    collector = importlib.import_module("turnout.serve.tasks.collector").Collector
    with contextlib.ExitStack() as stack:
        for role, address in (("helper", files[0].task.helper), ("leader", files[0].task.leader)):
            port = address.rstrip("/").rpartition(":")[2]
            command = ["-m", "turnout", "serve", "--task", folder / "task" / f"{role}.json"]
            command += ["--store", folder / f"{role}.db", "--port", port]
            stack.enter_context(process(command))
        start = time.perf_counter()
        sent = client(files[2]).upload(np.arange(users) % LABELS)
        found = collector(files[3]).collect(seconds=3600.0)
        seconds = time.perf_counter() - start
    if (sent["accepted"], found.reports) != (users, users):
        message = f"{sent['accepted']} reports were taken and {found.reports} counted of {users}"
        raise RuntimeError(message)
    return seconds
