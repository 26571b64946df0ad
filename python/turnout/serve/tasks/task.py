"""Describe what all parties of a task agree on, and the noise of an aggregator."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

from turnout import _core
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.serve.tasks.reading import (
    Members,
    address,
    bytes_of,
    interval_of,
    one_of,
    positive,
    text_of,
    whole,
)
from turnout.serve.tasks.vdaf import Vdaf

#: How batches are made.
MODES: Final = ("leader_selected", "time_interval")

#: The laws of noise.
NOISES: Final = ("discrete_laplace", "discrete_gaussian")

_TASK_BYTES: Final = 32


@dataclass(frozen=True, kw_only=True)
class Task:
    """What all parties of a task agree on.

    Attributes
    ----------
    id
        32 bytes.
    leader, helper
        The addresses of the aggregators.
    time_precision
        Seconds that times of reports are whole multiples of.
    min_batch_size
        The least number of reports for which a sum is given.
    batch_mode
        ``"leader_selected"``, or ``"time_interval"``.
    vdaf
        What reports measure.
    info
        Bytes that tell the task from others.
    interval
        The first time of reports and how long they are taken, in units of ``time_precision``; None
        if always.
    """

    id: bytes
    leader: str
    helper: str
    time_precision: int
    min_batch_size: int
    batch_mode: str
    vdaf: Vdaf
    info: bytes = b"turnout"
    interval: tuple[int, int] | None = None

    @functools.cached_property
    def dap(self) -> _core.DapTask:
        """The configuration of the task in the core."""
        return _core.DapTask(
            self.id,
            leader=self.leader,
            helper=self.helper,
            time_precision=self.time_precision,
            min_batch_size=self.min_batch_size,
            batch_mode=self.batch_mode,
            vdaf_type=self.vdaf.number,
            vdaf_configuration=self.vdaf.configuration,
            task_info=self.info,
            interval=self.interval,
        )

    @property
    def prio3(self) -> _core.Prio3:
        """The instance of Prio3, which makes shares and verifies them."""
        return self.vdaf.prio3

    @property
    def name(self) -> str:
        """The ID in the form of addresses."""
        return text_of(self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return the members as JSON values."""
        return {
            "id": self.name,
            "leader": self.leader,
            "helper": self.helper,
            "time_precision": self.time_precision,
            "min_batch_size": self.min_batch_size,
            "batch_mode": self.batch_mode,
            "vdaf": self.vdaf.to_dict(),
            "info": text_of(self.info),
            "interval": None if self.interval is None else list(self.interval),
        }

    @classmethod
    def from_dict(cls, description: Any) -> Task:
        """Read what :meth:`to_dict` returned.

        Raises
        ------
        CorruptDataError
            If it does not describe a task.
        """
        given = Members(description, "task")
        interval = given.take("interval", interval_of)
        found = cls(
            id=given.take("id", lambda text: bytes_of(text, _TASK_BYTES)),
            leader=given.take("leader", address),
            helper=given.take("helper", address),
            time_precision=given.take("time_precision", whole(1, 2**32)),
            min_batch_size=given.take("min_batch_size", whole(1, 2**31)),
            batch_mode=given.take("batch_mode", one_of(MODES)),
            vdaf=given.take("vdaf", Vdaf.from_dict),
            info=given.take("info", bytes_of),
            interval=interval,
        )
        given.end()
        try:
            found.dap  # noqa: B018 (refuses what cannot be)
        except (InvalidTypeError, InvalidValueError) as error:
            raise CorruptDataError(f"a task that cannot be: {error}") from error
        return found


@dataclass(frozen=True)
class Noise:
    """The noise that one aggregator adds.

    Attributes
    ----------
    law
        ``"discrete_laplace"`` or ``"discrete_gaussian"``.
    parameter
        The scale, or the variance of the underlying law.
    """

    law: str
    parameter: float

    def added_to(self, task: Task, share: bytes, reports: int) -> bytes:
        """Add fresh noise to an aggregate share."""
        return task.prio3.add_noise(share, self.law, self.parameter, reports, None)

    def check(self, task: Task) -> None:
        """Refuse noise that cannot be drawn, or that the sums of the task may not hold."""
        task.prio3.check_noise(self.law, self.parameter, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the members as JSON values."""
        return {"law": self.law, "parameter": self.parameter}

    @classmethod
    def from_dict(cls, description: Any) -> Noise:
        """Read what :meth:`to_dict` returned."""
        given = Members(description, "noise")
        found = cls(given.take("law", one_of(NOISES)), given.take("parameter", positive))
        given.end()
        return found
