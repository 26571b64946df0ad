"""Make a task: its keys, and the files of its four roles."""

from __future__ import annotations

import hashlib
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
from turnout.distributed import VerifiedAggregation
from turnout.errors import InvalidValueError
from turnout.serve.tasks.files import (
    ClientFile,
    CollectorFile,
    HelperFile,
    LeaderFile,
    TaskFile,
)
from turnout.serve.tasks.janus import provisioning
from turnout.serve.tasks.reading import address
from turnout.serve.tasks.task import MODES, Noise, Task
from turnout.serve.tasks.votes import Vdaf

#: The names of the files, by role; what Janus takes has the name of the role and ``.yaml``.
NAMES: Final = {role: f"{role}.json" for role in ("leader", "helper", "client", "collector")}


@dataclass(frozen=True, kw_only=True)
class Batches:
    """How reports become batches.

    Attributes
    ----------
    mode
        ``"leader_selected"``: the leader fills one batch after another. ``"time_interval"``: the
        collector asks for those of a time.
    reports
        A batch waits for so many; None for as many as there are users.
    seconds
        It goes on without the others after so many seconds, if it has ``least``; None to wait on.
    least
        Of fewer reports no sum is given; None for half of ``reports``.
    time_precision
        Seconds that times of reports are whole multiples of.
    """

    mode: str = "leader_selected"
    reports: int | None = None
    seconds: int | None = None
    least: int | None = None
    time_precision: int = 3600


def new_task(
    mechanism: VerifiedAggregation,
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
        What is asked of how many, and what protects them.
    leader, helper
        The addresses of the aggregators.
    batches
        How reports become batches.
    expires
        Until when reports are taken; None for always.
    janus
        The roles, of leader and helper, that are servers of Janus: if there are any, reports are
        of Prio3Histogram.

    Returns
    -------
    list of TaskFile
        What leader, helper, client and collector are told.

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
        vdaf=Vdaf.of_votes(mechanism.domain.size, histogram=bool(janus)),
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
    helper_token, collector_token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    return [
        LeaderFile(
            **shared,
            key=_key(),
            helper_token=helper_token,
            collector_token_hash=_hash(collector_token),
            batch_reports=wanted,
            batch_seconds=said.seconds,
        ),
        HelperFile(**shared, key=_key(), leader_token_hash=_hash(helper_token)),
        ClientFile(task=task, question=mechanism),
        CollectorFile(task=task, question=mechanism, key=collector, token=collector_token),
    ]


def _check_janus(mechanism: VerifiedAggregation, janus: Collection[str], batches: Batches) -> None:
    """Refuse what Janus cannot do, or what would not protect there."""
    if mechanism.participation < 1.0:
        raise InvalidValueError(
            "participation must be 1 in a task with Janus, got "
            f"{mechanism.participation}: the number of those without a vote is published there, "
            "and would tell more than the smaller noise protects"
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
        Where they are written.
    janus
        The roles, of leader and helper, that are servers of Janus: what their operators get is
        written as Janus reads it.

    Returns
    -------
    dict
        The file of each role.

    Raises
    ------
    OSError
        If they cannot be written, or the folder is there already.
    """
    if folder.exists():
        raise FileExistsError(17, "exists already; a task has keys, take a new folder", str(folder))
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
    names = {file.role: NAMES[file.role] for file in files}
    try:
        for file in files:
            if file.role in janus:
                assert isinstance(file, (LeaderFile, HelperFile))
                names[file.role] = f"{file.role}.yaml"
                write_secret_file(beside / names[file.role], provisioning(file))
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
    """Give the interval from now to a moment, in units of the precision."""
    first = int(time.time()) // precision
    last = int(_arguments.moment("expires", expires).timestamp()) // precision
    if last <= first:
        raise InvalidValueError(
            f"expires must be at least {precision} seconds from now, the time precision, got "
            f"{expires.isoformat()}"
        )
    return first, last - first
