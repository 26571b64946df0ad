"""Tallies in a store: reading their rows, and combining them for an estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from turnout import GroupedTally, Plan
from turnout._documents import canonical, parsed
from turnout._label_texts import number_of
from turnout.collecting.keys import Key, key_from_json, key_to_json, shown_key, times_in
from turnout.collecting.left_out import LeftOut
from turnout.collecting.origin import PIECE, Origin
from turnout.collecting.rounds import Rounds
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.serve.collection import Family, families
from turnout.serve.storage.interface import Reading, Store, StoredTally


def group_text(key: Key) -> str:
    """Write the key of a group as it stands in a store.

    Examples
    --------
    >>> group_text(("north", 3)), group_text(())
    ('["north",3]', '[]')
    """
    return canonical(key_to_json(key))


def tally_of(plan: Plan, stored: StoredTally | None) -> Any:
    """Return the tally of a row; without a row, an empty tally.

    Raises
    ------
    CorruptDataError
        If the row holds none of the plan.
    """
    kind = plan.oracle.tally_type
    if stored is None:
        return kind.empty(plan)
    if len(stored.sums) != kind._bytes_of_sums(plan):
        raise CorruptDataError(
            f"the sums of a tally in the store must be {kind._bytes_of_sums(plan)} bytes, got "
            f"{len(stored.sums)}"
        )
    try:
        sums, _ = kind._sums_of_bytes(plan, stored.sums)
        return kind(plan, sums, stored.received, stored.received, origin=PIECE)
    except InvalidValueError as error:
        raise CorruptDataError(f"a tally in the store does not fit its plan: {error}") from error


@dataclass(frozen=True)
class Counted:
    """The stored counts of a question, or the part that may be shown.

    Attributes
    ----------
    tally
        The tally, by group where the plan has groups; None if nothing of it may be shown.
    asked
        How many people were asked in all; None if nobody said so of all groups. Then the tally's
        number of nodes follows from the rate of participation.
    hidden
        How many groups are too small to be shown; of a plan without groups 1 if the whole is.
    left_out
        What is left out and of no group.
    times
        How many people were asked under each plan, of those who are in the tally.
    """

    tally: Any
    asked: int | None
    hidden: int
    left_out: LeftOut
    times: tuple[int, ...]


@lru_cache(maxsize=1024)
def _plan_of(text: str) -> Plan:
    """Read a plan of a store; a collection of many days has the same ones again and again."""
    return Plan.from_json(text)


def stored_families(reading: Reading) -> list[Family]:
    """List the questions of a store, each with its plans."""
    rows = reading.plans()
    return families([_plan_of(row.text) for row in rows], [row.number for row in rows])


def refuse_task(store: Store) -> None:
    """Refuse a store of an aggregator of a task, where one of a collection is needed.

    Raises
    ------
    InvalidValueError
        If it has a task.
    StoreUnavailableError
        If it cannot be read at the moment.
    """
    with store.statements() as statements:
        if statements.row("SELECT number FROM turnout_tasks") is None:
            return
    raise InvalidValueError(
        f"{store.place}: is the store of one aggregator of a task, whose shares "
        "reveal nothing alone: get the result with turnout task result "
        "collector.json"
    )


def reported_plans(reading: Reading, current: Plan | None = None) -> list[Plan]:
    """List the plans with reports, and the plan in force."""
    received = reading.received()
    wanted = None if current is None else current.fingerprint
    rows = [row for row in reading.plans() if received.get(row.number) or row.fingerprint == wanted]
    return [_plan_of(row.text) for row in rows]


def stored_tally(store: Store, plan: Plan | None = None, question: Any = None) -> Any:
    """Read the tally of a store, of all its plans that ask the same.

    Parameters
    ----------
    store
        The store.
    plan
        A plan that asks it; None if the store has one question, or ``question`` says which.
    question
        The randomizer of it, whoever takes part.

    Raises
    ------
    InvalidValueError
        If it holds several questions and no plan says which, or nothing of that plan.
    StoreUnavailableError
        If it cannot be read at the moment.
    """
    with store.reading() as reading:
        found = stored_families(reading)
        anything = bool(found)
        if plan is not None:
            found = [each for each in found if each.plans[0] == plan and each.groups == plan.groups]
        if question is not None:
            found = [each for each in found if each.plans[0].oracle == question]
        if len(found) > 1:
            raise InvalidValueError(
                f"{store.place}: holds {len(found)} questions: pass --plan FILE to "
                "turnout tally to select one"
            )
        if found:
            return count(store, reading, found[0]).tally
    if not anything:
        refuse_task(store)
        raise InvalidValueError(
            f"{store.place}: contains no plan: start turnout serve PLAN, which fills a store"
        )
    raise InvalidValueError(f"{store.place}: holds nothing of this plan")


def count(
    store: Store, reading: Reading, family: Family, only: Plan | None = None, least: int = 0
) -> Counted:
    """Combine the counts of a question, under one of its plans or under all.

    Parameters
    ----------
    store, reading
        The store, and the view of it.
    family
        The question.
    only
        The plan; None for all of them.
    least
        Leave out what is of fewer reports, so that no difference of what is shown is: neither of
        groups, nor of one plan and all of them.

    Raises
    ------
    InvalidValueError
        If more people reported than were asked, or their number does not follow from the plan and
        nobody said it.
    CorruptDataError
        If a row holds no tally of its plan.
    """
    cells: dict[Key, list[_Cell]] = {}
    for plan, number in zip(family.plans, family.numbers, strict=True):
        if only is not None and plan is not only:
            continue
        asked = reading.asked(number)
        rows: dict[str, list[StoredTally]] = {group: [] for group in asked}
        for row in reading.tallies(number):
            rows.setdefault(row.group, []).append(row)
        for group, shards in rows.items():
            key = key_from_json(parsed(group), len(plan.groups))
            cell = _Cell(plan, group, key, shards, asked.get(group))
            cells.setdefault(key, []).append(cell)
    plan = only or family.plans[0]
    shown = {key: _large_enough(each, least) for key, each in cells.items()}
    times: Counter[str] = Counter()
    merged = {}
    for key, each in shown.items():
        tallies = [cell.tally(store.identity) for cell in each]
        times.update(
            {cell.plan.fingerprint: tally.nodes for cell, tally in zip(each, tallies, strict=True)}
        )
        if tallies:
            merged[key] = _added(tallies)
    # Of which plan and group a message was that is refused nobody can tell.
    left_out = LeftOut(refused=sum(reading.refused().values()))
    known = [cell.asked for each in shown.values() for cell in each]
    asked_in_all = None if None in known or not known else sum(filter(None, known))
    tally: Any = None
    if plan.groups:
        hidden = len(shown) - len(merged)
        if merged or not least:
            names = list(plan.groups)
            tally = GroupedTally(names, merged, plan=plan, of_no_group=left_out)
    else:
        if merged or not least:
            tally = merged.get((), tally_of(plan, None))
            tally = replace(tally, left_out=tally.left_out + left_out)
        hidden = int(tally is None)
    return Counted(tally, asked_in_all, hidden, left_out, tuple(times.values()))


@dataclass(frozen=True)
class _Cell:
    """The stored counts of a group under one plan.

    Attributes
    ----------
    plan
        The plan.
    group, key
        The group, as text and as its values.
    shards
        The rows, one of each server.
    asked
        How many people were asked, if that is known.
    """

    plan: Plan
    group: str
    key: Key
    shards: Sequence[StoredTally]
    asked: int | None

    @property
    def received(self) -> int:
        """The number of people who reported."""
        return sum(row.received for row in self.shards)

    def tally(self, identity: str) -> Any:
        """Add up the shards, and say how many people they are from; ``identity`` is the store's."""
        plan, key, asked = self.plan, self.key, self.asked
        tally = _added([tally_of(plan, None), *(tally_of(plan, row) for row in self.shards)])
        origin = Origin.named("turnout-store", identity, plan.fingerprint, self.group)
        # One serial of a plan is one round: a message of each person.
        one = Rounds.named(f"{identity} {plan.fingerprint}", 0)
        origin = origin.with_rounds(one.within(times_in(list(plan.groups or ()), key)))
        where = f" of the group {shown_key(key)}" if key else ""
        if asked is not None and asked < tally.received:
            raise InvalidValueError(
                f"{number_of(tally.received, 'person', 'people')}{where} reported, and "
                f"{asked:,} {('is' if asked == 1 else 'are')} said to be asked: correct "
                "the number with turnout store asked"
            )
        if plan._everyone_reports:
            # Whoever is missing has not answered yet.
            missing = LeftOut(unanswered=0 if asked is None else asked - tally.received)
            return replace(tally, left_out=missing, origin=origin)
        nodes = asked
        if nodes is None:
            if plan.oracle.silent:
                raise InvalidValueError(
                    f"the number of people asked{where} is missing, and silence is an answer "
                    "under this plan: record it with turnout store asked"
                )
            nodes = round(tally.received / float(plan.participation.uniform_rate or 1))
        return replace(tally, nodes=max(nodes, tally.received), origin=origin)


def _large_enough(cells: Sequence[_Cell], least: int) -> list[_Cell]:
    """Leave out the counts of a group under plans with few reports.

    Each of the other counts may be shown by itself too. If a single small count were included, it
    would be the difference between the total and their sum. Small counts are included if they have
    enough reports together.
    """
    small = [cell for cell in cells if cell.received < least]
    if sum(cell.received for cell in small) >= least:
        return list(cells)
    return [cell for cell in cells if cell.received >= least]


def _added(tallies: Iterable[Any]) -> Any:
    first, *others = tallies
    for each in others:
        first = first.merge(each)
    return first
