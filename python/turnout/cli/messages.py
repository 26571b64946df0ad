"""Files of messages, as ``turnout tally`` counts them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from turnout import Collector, GroupedTally, Plan
from turnout._files import open_regular
from turnout.cli import options
from turnout.cli.tallies import Counts
from turnout.collecting.groups._people import in_several_rounds
from turnout.collecting.keys import Key, shown_key
from turnout.collecting.left_out import NOTHING
from turnout.collecting.message_reading import ERRORS, REFUSALS, Seen
from turnout.collecting.report_messages import checked_nodes
from turnout.errors import InvalidValueError, PlanExpiredError
from turnout.pipeline.report_counting import PlacedFile

#: What names of files of messages end in.
MESSAGE_SUFFIXES: Final = (".jsonl", ".ndjson")

OnBad = Literal["count", "refuse"]

#: So many lines are read at once.
_LINES: Final = 2**14


def is_messages(path: Path) -> bool:
    """Tell a file of messages by its name."""
    return path.suffix.lower() in MESSAGE_SUFFIXES


@dataclass(frozen=True, kw_only=True)
class Messages:
    """Of messages: of how many people, until when, and what becomes of bad ones.

    Attributes
    ----------
    nodes
        The number of people asked for messages, including those who stay silent; repeatable.
    on_bad
        Leave invalid messages out and count them, or refuse the file.
    received
        When the last message arrived. Default: now.
    """

    nodes: Annotated[list[str] | None, typer.Option("--nodes", "-n", metavar="[GROUP=]NUMBER")] = (
        None
    )
    on_bad: OnBad = "count"
    received: Annotated[Any, typer.Option(metavar="TIME", parser=options.moment)] = None


@dataclass(frozen=True)
class Asked:
    """How many people were asked for messages.

    Attributes
    ----------
    each
        In each group, or in all if there are none; None if it is not said.
    of
        In some groups, by what they are called.
    """

    each: int | None
    of: Mapping[str, int]

    @classmethod
    def read(cls, given: Iterable[str]) -> Asked:
        """Read ``--nodes``: a number, and ``GROUP=NUMBER`` for groups.

        Raises
        ------
        typer.BadParameter
            If it is neither, or said twice.

        Examples
        --------
        >>> Asked.read(["500", "2026-03-02=480"])
        Asked(each=500, of={'2026-03-02': 480})
        """
        found: dict[str | None, int] = {}
        for text in given:
            name, equals, number = text.rpartition("=")
            place = name if equals else None
            if not (number.isascii() and number.isdecimal() and int(number) < 2**64):
                raise typer.BadParameter(
                    f"{text!r} is not a number of people, nor GROUP=NUMBER", param_hint="--nodes"
                )
            if place in found:
                twice = "a number" if place is None else f"one of {place!r}"
                raise typer.BadParameter(f"repeats {twice}", param_hint="--nodes")
            found[place] = int(number)
        each = found.pop(None, None)
        return cls(each, {str(name): number for name, number in found.items()})

    def check(self, keys: Iterable[Key]) -> None:
        """Refuse the number of a group that is not there.

        Raises
        ------
        InvalidValueError
            If there is one.
        """
        known = [shown_key(key) for key in keys]
        for name in self.of:
            if name not in known:
                groups = (
                    f"the groups are {', '.join(known[:5])}"
                    if any(known)
                    else "the inputs have no groups"
                )
                raise InvalidValueError(f"--nodes: no group {name!r}; {groups}")

    def number(self, key: Key) -> int | None:
        """Say how many people of a group were asked."""
        return self.of.get(shown_key(key), self.each)


def count_messages(
    files: Sequence[PlacedFile],
    plan: Plan,
    names: Sequence[str],
    how: Messages,
    *,
    same_people: bool = True,
) -> tuple[Counts, dict[str, Any]]:
    """Count the messages of files: a duplicate, in any of them, counts once.

    Parameters
    ----------
    files
        Where they are.
    plan
        Under which plan they were made.
    names
        The columns of groups: names that the files have, or groups that messages carry.
    how
        What the options say of them.
    same_people
        Whether people of one file may be in another too, with the permanent answers that they keep.

    Returns
    -------
    tally, counted
        The tally; how many messages were ``read``, ``counted`` and ``repeated``, the ``refusals``
        by kind, and how many that count are ``improbable``: an honest device hardly ever sends
        them.

    Raises
    ------
    TurnoutError
        If they cannot be counted; the position of a message counts the lines of its file.
    OSError
        If a file cannot be read.
    """
    asked = Asked.read(how.nodes or ())
    try:
        plan._check_current(how.received)
    except PlanExpiredError as error:
        raise PlanExpiredError(
            f"{files[0].path}: {error}: pass with --received when the messages arrived"
        ) from error
    carried = _carried(files, plan, names)
    outer = [name for name in names if name not in carried]
    collectors: dict[Key, tuple[PlacedFile, Collector]] = {}
    sizes: Counter[Key] = Counter()
    read, seen = 0, Seen()
    for file in files:
        values = dict(file.partitions)
        key = tuple(values[name] for name in outer)
        _, collector = collectors.setdefault(key, (file, Collector(plan, seen=seen)))
        sizes[key] += 1
        read += _take_in(file.path, collector, how.on_bad, how.received)
    asked.check(collectors)
    tallies: dict[Key, Any] = {}
    of_no_group = NOTHING
    for key, (file, collector) in collectors.items():
        tally = _tally(collector, asked.number(key), file.path)
        inner = {(): tally}
        if plan.groups:
            inner = tally.over(*carried) if carried else {(): tally.total}
            of_no_group += tally.of_no_group if carried else NOTHING
        rounds = sizes[key] if same_people else 1
        for within, counted_here in inner.items():
            one = in_several_rounds(counted_here, rounds)
            found = dict(zip(outer, key, strict=True)) | dict(zip(carried, within, strict=True))
            tallies[tuple(found[name] for name in names)] = one
    each = [collector for _, collector in collectors.values()]
    counted = {
        "read": read,
        "counted": sum(one.receipts.accepted for one in each),
        "repeated": sum(one.receipts.repeated for one in each),
        "refusals": {kind: sum(one.receipts.refusals[kind] for one in each) for kind in REFUSALS},
        "improbable": sum(one.improbable for one in each),
    }
    if not names:
        return tallies[()], counted
    more: dict[str, Any] = {"plan": plan, "of_no_group": of_no_group, "same_people": same_people}
    return GroupedTally(list(names), tallies, **more), counted


def _carried(files: Sequence[PlacedFile], plan: Plan, names: Sequence[str]) -> list[str]:
    """Find the columns of groups that messages carry; the files must have the others."""
    carried = []
    for name in names:
        without = [file for file in files if name not in dict(file.partitions)]
        if without and name in (plan.groups or ()):
            carried.append(name)
        elif without:
            raise InvalidValueError(
                f"--group-by: the plan of {without[0].path} has no group {name!r}, and "
                f"the file is in no folder '{name}=...'. Pass --by-file to make each file "
                "a group"
            )
    return carried


def _take_in(path: Path, collector: Collector, on_bad: OnBad, received: datetime | None) -> int:
    """Take in the messages of a file, and say how many there were.

    Raises
    ------
    TurnoutError
        If one is refused, and bad ones are not counted.
    """
    read = 0
    with open_regular(path) as lines:
        while some := list(itertools.islice(lines, _LINES)):
            if on_bad == "count":
                collector.accept_many(some, received=received)
            else:
                for place, line in enumerate(some, read):
                    receipt = collector.accept(line, received=received)
                    if receipt.kind is not None:
                        raise ERRORS[receipt.kind](f"{path}: messages[{place}] {receipt.reason}")
            read += len(some)
    return read


def _tally(collector: Collector, nodes: int | None, path: Path) -> Any:
    """Give the tally of people of whom so many were asked."""
    plan, receipts = collector.plan, collector.receipts
    if plan.groups and (nodes is not None or not plan._everyone_reports):
        raise InvalidValueError(
            f"{path}: --nodes cannot state how many people of each group of the plan "
            "were asked. Collect the messages with turnout.Collector and its ask(...)"
        )
    if nodes is None and not plan._everyone_reports:
        raise InvalidValueError(
            f"{path}: pass with --nodes how many people were asked: under "
            f"{plan.participation!r} some people send nothing"
        )
    if nodes is not None:
        try:
            checked_nodes(plan, nodes, receipts.accepted, refused=receipts.refused)
        except InvalidValueError as error:
            raise InvalidValueError(f"{path}: {error}") from error
        collector.ask(nodes)
    return collector.tally()
