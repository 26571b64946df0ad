"""Files of the messages that devices send: one a line."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from turnout import Plan
from turnout._files import open_regular
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError, PlanExpiredError, TurnoutError

#: What names of files of messages end in.
MESSAGE_SUFFIXES = (".jsonl", ".ndjson")

OnBad = Literal["count", "refuse"]


@dataclass(frozen=True)
class MessageCounts:
    """What became of the messages of some files.

    Attributes
    ----------
    read
        How many lines there were.
    counted
        How many of them are in the tally.
    repeated
        How many were there before, and count once.
    refusals
        How many were left out, by the kind of refusal.
    improbable
        How many of those that count an honest device hardly ever sends.
    """

    read: int
    counted: int
    repeated: int
    refusals: dict[str, int]
    improbable: int

    def rows(self) -> list[tuple[str, str]]:
        """Say it, one name and value an entry."""
        kinds = [
            f"{number:,} {kind.replace('_', ' ')}"
            for kind, number in self.refusals.items()
            if number
        ]
        refused = sum(self.refusals.values())
        why = f": {', '.join(kinds)}" if kinds else ""
        return [
            ("messages", f"{self.read:,}"),
            ("repeated", f"{self.repeated:,}, which were sent again and count once"),
            ("refused", f"{refused:,}{why}"),
            ("improbable", f"{self.improbable:,}, which count and honest devices hardly send"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Say it in terms of JSON."""
        return asdict(self)


def gathered(
    paths: Sequence[Path],
    plan: Plan,
    nodes: int | None,
    on_bad: OnBad,
    received: datetime | None,
) -> tuple[BaseTally, MessageCounts]:
    """Put the messages of some files together: one that is there twice counts once.

    Raises
    ------
    TurnoutError
        As :meth:`turnout.Plan.gather`; the position of a message counts the lines of all files.
    OSError
        If a file cannot be read.
    """
    if nodes is None and plan.participation.uniform_rate not in (None, 1.0):
        raise InvalidValueError(
            f"{paths[0]}: --nodes must say how many people were asked: under "
            f"{plan.participation!r} silent ones send nothing"
        )
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open_regular(path)) for path in paths]
        lines = list(chain.from_iterable(files))
    try:
        found = plan.gather(lines, nodes, on_bad="count", received=received)
        if on_bad == "refuse" and found.refused:
            plan.gather(lines, nodes, on_bad="refuse", received=received)
    except PlanExpiredError as error:
        raise PlanExpiredError(
            f"{_named(paths)}: {error}: --received says when the messages came in"
        ) from error
    except TurnoutError as error:
        raise type(error)(f"{_named(paths)}: {error}") from error
    counts = MessageCounts(
        len(lines), len(found.reports), found.repeated, found.refusals, found.improbable
    )
    tally: BaseTally = plan.oracle.tally(found.reports)
    return tally, counts


def _named(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
