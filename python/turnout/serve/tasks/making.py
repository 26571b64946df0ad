"""Make a task: its keys, and the files of its four roles."""

from __future__ import annotations

import hashlib
import math
import secrets
import shutil
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from turnout import _arguments, _core
from turnout._secrets import HiddenBytes, write_secret_file
from turnout.errors import InvalidValueError
from turnout.serve.tasks.files import (
    ClientFile,
    CollectorFile,
    HelperFile,
    LeaderFile,
    Question,
    TaskFile,
)
from turnout.serve.tasks.janus import NOISED, written
from turnout.serve.tasks.reading import address
from turnout.serve.tasks.task import MODES, Noise, Task
from turnout.serve.tasks.vdaf import Vdaf

#: Seconds after which a batch goes on without those who did not come, unless others are said.
BATCH_SECONDS: Final = 86400

#: The names of the files, by role.
NAMES: Final = {role: f"{role}.json" for role in ("leader", "helper", "client", "collector")}


@dataclass(frozen=True, kw_only=True)
class Batches:
    """How reports become batches.

    Attributes
    ----------
    mode
        ``"leader_selected"``: the leader fills one batch after another. ``"time_interval"``: the
        collector asks for the reports of a time.
    reports
        A batch waits for this many reports; None for as many as there are users.
    seconds
        A batch goes on without the other reports after this many seconds, if it has ``least``. None
        for a day; or, for a batch of a time or a task that expires, until the time is over.
    least
        The least number of reports for which a sum is given; None for half of ``reports``.
    time_precision
        Seconds that times of reports are whole multiples of.
    """

    mode: str = "leader_selected"
    reports: int | None = None
    seconds: int | None = None
    least: int | None = None
    time_precision: int = 3600


def new_task(
    mechanism: Question,
    *,
    leader: str,
    helper: str,
    batches: Batches | None = None,
    expires: datetime | None = None,
    janus: Collection[str] = (),
) -> list[TaskFile]:
    """Make a task with fresh keys.

    Parameters
    ----------
    mechanism
        The question, the number of people, and what protects them.
    leader, helper
        The addresses of the aggregators.
    batches
        How reports become batches.
    expires
        The time until which reports are taken, rounded up to the time precision; None for always.
    janus
        The roles that Janus has: if there are any, the type of reports must be one that Janus adds
        noise to, Prio3Histogram or Prio3SumVec.

    Returns
    -------
    list of TaskFile
        The files for the leader, the helper, clients and the collector.

    Raises
    ------
    InvalidValueError
        If an argument is out of range.
    """
    said = batches or Batches()
    _arguments.choice("mode", said.mode, MODES)
    wanted = mechanism.users if said.reports is None else said.reports
    # A leader of Janus takes the least for a batch, and no more.
    exact = "leader" in janus and said.mode == "leader_selected"
    least = said.least
    if least is None:
        least = wanted if exact else (wanted + 1) // 2
    _arguments.integer("reports", wanted, least=1, most=2**31 - 1)
    _arguments.integer("least", least, least=1, most=wanted)
    _arguments.integer("time_precision", said.time_precision, least=1, most=2**31)
    seconds = said.seconds
    if seconds is None and expires is None and not exact and said.mode == "leader_selected":
        seconds = BATCH_SECONDS
    if janus:
        _check_janus(mechanism, janus, said)
    leader, helper = _address("leader", leader), _address("helper", helper)
    if leader == helper:
        raise InvalidValueError(
            f"leader and helper must be two servers, of two operators, got {leader} for both"
        )
    task = Task(
        id=secrets.token_bytes(32),
        leader=leader,
        helper=helper,
        time_precision=said.time_precision,
        min_batch_size=least,
        batch_mode=said.mode,
        vdaf=Vdaf.of(mechanism._prio3),
        interval=None if expires is None else _until(expires, said.time_precision),
    )
    assert mechanism.noise is not None
    assert mechanism.parameter is not None
    collector = _key()
    shared: dict[str, Any] = {
        "task": task,
        "noise": Noise(mechanism.noise, mechanism.parameter),
        "collector_config": collector.config,
        "verify_key": HiddenBytes(secrets.token_bytes(32)),
    }
    helper_key = _key()
    helper_token, collector_token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    return [
        LeaderFile(
            **shared,
            key=_key(),
            helper_token=helper_token,
            collector_token_hash=_hash(collector_token),
            batch_reports=wanted,
            batch_seconds=seconds,
        ),
        HelperFile(**shared, key=helper_key, leader_token_hash=_hash(helper_token)),
        ClientFile(
            task=task,
            question=mechanism,
            # Janus makes its own keys.
            helper_config=None if "helper" in janus else helper_key.config,
        ),
        CollectorFile(task=task, question=mechanism, key=collector, token=collector_token),
    ]


def _check_janus(mechanism: Question, janus: Collection[str], batches: Batches) -> None:
    """Refuse tasks that Janus cannot do, or that would not protect people there."""
    kind = Vdaf.of(mechanism._prio3).kind
    if kind not in NOISED:
        raise InvalidValueError(
            f"reports must be of {' or '.join(NOISED)} in a task with Janus, which adds no noise "
            f"to others, got {kind}: pass none_counted=True of votes, as_vector=True of numbers"
        )
    if mechanism.noise != "discrete_laplace":
        raise InvalidValueError(
            "noise must be 'discrete_laplace' in a task with Janus, which draws no other, got "
            f"{mechanism.noise!r}"
        )
    if "leader" in janus and batches.seconds is not None:
        raise InvalidValueError(
            "seconds must be left out where Janus is the leader: its batches wait for the least "
            f"number of reports, however long, got {batches.seconds}"
        )


def write_task(files: list[TaskFile], folder: Path, janus: Collection[str] = ()) -> dict[str, Path]:
    """Write the files of a task into a new folder: all of them, or none.

    Parameters
    ----------
    files
        The files.
    folder
        The folder that they are written into.
    janus
        The roles that Janus has: their files are written as Janus reads them.

    Returns
    -------
    dict
        The file of each role.

    Raises
    ------
    OSError
        If they cannot be written, or the folder already exists.
    """
    if folder.exists():
        raise FileExistsError(17, "exists already; a task has keys, take a new folder", str(folder))
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
    names = {file.role: NAMES[file.role] for file in files}
    try:
        for file in files:
            if file.role in janus:
                ending, text = written(file)
                names[file.role] = f"{file.role}.{ending}"
                if file.secret:
                    write_secret_file(beside / names[file.role], text)
                else:
                    (beside / names[file.role]).write_text(text, "ascii")
            else:
                file.write(beside / NAMES[file.role])
        beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return {role: folder / name for role, name in names.items()}


def _key() -> _core.HpkeKey:
    return _core.HpkeKey.generate(secrets.randbelow(256))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _address(argument: str, value: str) -> str:
    try:
        return address(value)
    except ValueError as error:
        raise InvalidValueError(f"{argument} {error}, got {_arguments.shown(value)}") from None


def _until(expires: datetime, precision: int) -> tuple[int, int]:
    """Return the interval from now to a moment, in units of the precision.

    It ends with the unit that holds the moment: nobody comes too late who comes before it.
    """
    now, end = int(time.time()), _arguments.moment("expires", expires).timestamp()
    if end <= now:
        raise InvalidValueError(f"expires must be in the future, got {expires.isoformat()}")
    first = now // precision
    return first, math.ceil(end / precision) - first
