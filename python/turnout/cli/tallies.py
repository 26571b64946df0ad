"""Files of tallies, grouped or not, and of the messages that devices send."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from turnout import GroupedTally, Plan
from turnout._files import open_regular, read_bytes
from turnout.collecting import tally as tallies
from turnout.collecting.groups.encoding import MAGIC
from turnout.collecting.tally import BaseTally
from turnout.errors import CorruptDataError, InvalidValueError, PlanExpiredError, TurnoutError
from turnout.pipeline.report_set import check_plans

#: What was counted, of any kind.
Counts = tallies.BaseTally | GroupedTally[Any]

#: What names of files of reports end in.
REPORT_SUFFIXES = (".parquet", ".arrow", ".ipc", ".feather")


def read_tally(source: Path) -> Counts:
    """Read a file that holds a tally, or a grouped one.

    Raises
    ------
    InvalidValueError
        If it is a folder.
    CorruptDataError
        If it holds neither, naming the file.
    """
    if source.is_dir():
        raise InvalidValueError(f"{source}: a folder, and no tally{_hint(source)}")
    data = read_bytes(source)
    try:
        if data.startswith(MAGIC):
            return GroupedTally.from_bytes(data)
        counts: Counts = tallies.read_tally(data)
        return counts
    except CorruptDataError as error:
        raise type(error)(f"{source}: {error}{_hint(source)}") from error


def _hint(source: Path) -> str:
    """Name the step that was left out, where the file's name tells it."""
    suffix = source.suffix.lower()
    if source.is_dir() or suffix in REPORT_SUFFIXES:
        return "; turnout tally makes one of reports"
    if suffix in {".csv", ".tsv"}:
        return "; turnout randomize makes reports of answers, and turnout tally a tally of reports"
    return ""


def merged_tallies(sources: Sequence[Path], *, allow_equal: bool) -> Counts:
    """Add up the tallies of several files of one plan, all grouped by the same columns or none.

    Raises
    ------
    InvalidValueError
        If a file is given twice, be it as a copy, or files are grouped by different columns.
    PlanMismatchError
        If files were made under different plans.
    """
    return merged(read_tallies(sources, allow_equal=allow_equal))


def read_tallies(sources: Sequence[Path], *, allow_equal: bool) -> list[tuple[Path, Counts]]:
    """Read tallies, of which none may be there twice: its people would count twice.

    A tally does not say whose it is: two collections of few people can have equal ones, which
    ``allow_equal`` takes.

    Raises
    ------
    InvalidValueError
        If a file is given twice, or holds the same counts as another.
    CorruptDataError
        If a file holds no tally.
    """
    refuse_repeats(sources)
    found = [(source, read_tally(source)) for source in sources]
    seen: dict[bytes, Path] = {}
    for source, tally in found:
        if allow_equal or not tally.nodes:
            continue
        same = seen.setdefault(hashlib.sha256(tally.to_bytes()).digest(), source)
        if same is not source:
            raise InvalidValueError(
                f"{source}: holds the same counts as {same}: the reports of a copy would count "
                "twice; --allow-equal adds up two collections whose counts are equal by chance"
            )
    return found


def merged(parts: Sequence[tuple[object, Counts]]) -> Counts:
    """Add up tallies, each with the name that messages call it by.

    Raises
    ------
    InvalidValueError
        If they are grouped by different columns.
    PlanMismatchError
        If they were made under different plans.
    """
    first, result = parts[0]
    for name, part in parts[1:]:
        check_plans(first, result.plan, name, part.plan)
        if _groups(result) != _groups(part):
            raise InvalidValueError(
                f"{first} is {_groups(result)} and {name} is {_groups(part)}: they cannot be added "
                "up"
            )
        result = result.merge(part)  # type: ignore[arg-type]
    return result


def _groups(tally: Counts) -> str:
    if isinstance(tally, GroupedTally):
        return f"grouped by {', '.join(tally.names)}"
    return "not grouped"


def refuse_repeats(sources: Sequence[Path]) -> None:
    """Refuse a file given twice: its people would count twice."""
    seen: dict[Path, Path] = {}
    for source in sources:
        if seen.setdefault(source.resolve(), source) is not source:
            raise InvalidValueError(f"{source}: given twice; its reports would count twice")


#: What names of files of messages end in.
MESSAGE_SUFFIXES = (".jsonl", ".ndjson")

OnBad = Literal["count", "refuse"]


def rows_of_messages(counted: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what became of messages, one name and value an entry: see :func:`gathered`."""
    refusals = counted["refusals"]
    kinds = [f"{number:,} {kind.replace('_', ' ')}" for kind, number in refusals.items() if number]
    why = f": {', '.join(kinds)}" if kinds else ""
    return [
        ("messages", f"{counted['read']:,}"),
        ("repeated", f"{counted['repeated']:,}, which were sent again and count once"),
        ("refused", f"{sum(refusals.values()):,}{why}"),
        ("improbable", f"{counted['improbable']:,}, which count and honest devices hardly send"),
    ]


def gathered(
    paths: Sequence[Path],
    plan: Plan,
    nodes: int | None,
    on_bad: OnBad,
    received: datetime | None,
) -> tuple[BaseTally, dict[str, Any]]:
    """Put the messages of some files together: one that is there twice counts once.

    Returns
    -------
    tally, counted
        The tally; how many messages were ``read``, ``counted`` and ``repeated``, the ``refusals``
        by kind, and how many that count are ``improbable``: an honest device hardly ever sends
        them.

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
    counted = {
        "read": len(lines),
        "counted": len(found.reports),
        "repeated": found.repeated,
        "refusals": found.refusals,
        "improbable": found.improbable,
    }
    return plan.oracle.tally(found.reports), counted


def _named(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
