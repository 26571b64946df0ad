"""Tallies as a store has them: read from their rows, and put together for an estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnout import GroupedTally, Plan
from turnout._documents import canonical, parsed
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
    """Make the tally of a row; of none, that of no reports.

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
        raise CorruptDataError(f"a tally in the store is none of its plan: {error}") from error


@dataclass(frozen=True)
class Counted:
    """What a store has of a question.

    Attributes
    ----------
    tally
        The tally, by group where the plan has groups.
    asked
        How many people were asked in all; None if nobody said so of all groups. Then the tally's
        number of nodes follows from the rate of participation.
    """

    tally: Any
    asked: int | None


def stored_families(reading: Reading) -> list[Family]:
    """List the questions of a store, each with its plans."""
    rows = reading.plans()
    return families([Plan.from_json(row.text) for row in rows], [row.number for row in rows])


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
        if plan is not None:
            found = [each for each in found if each.plans[0] == plan and each.groups == plan.groups]
        if question is not None:
            found = [each for each in found if each.plans[0].oracle == question]
        if not found:
            raise InvalidValueError(f"{store.place}: holds nothing of this plan")
        if len(found) > 1:
            raise InvalidValueError(
                f"{store.place}: holds {len(found)} questions: turnout tally --plan FILE says which"
            )
        return count(store, reading, found[0]).tally


def count(store: Store, reading: Reading, family: Family, only: Plan | None = None) -> Counted:
    """Put together what is counted of a question, under one of its plans or under all.

    Raises
    ------
    InvalidValueError
        If more people reported than were asked, or their number does not follow from the plan and
        nobody said it.
    CorruptDataError
        If a row holds no tally of its plan.
    """
    parts: dict[Key, list[Any]] = {}
    known: list[int | None] = []
    for plan, number in zip(family.plans, family.numbers, strict=True):
        if only is not None and plan is not only:
            continue
        asked = reading.asked(number)
        rows: dict[str, list[StoredTally]] = {group: [] for group in asked}
        for row in reading.tallies(number):
            rows.setdefault(row.group, []).append(row)
        for group, shards in rows.items():
            key = key_from_json(parsed(group), len(plan.groups))
            people = asked.get(group)
            known.append(people)
            origin = Origin.named("turnout-store", store.identity, plan.fingerprint, group)
            # One serial of a plan is one round: a message of each person.
            one = Rounds.named(f"{store.identity} {plan.fingerprint}", 0)
            origin = origin.with_rounds(one.within(times_in(list(plan.groups or ()), key)))
            parts.setdefault(key, []).append(_sum(plan, key, shards, people, origin))
    plan = only or family.plans[0]
    merged = {key: _added(tallies) for key, tallies in parts.items()}
    # Of which plan and group a message was that is refused nobody can tell.
    left_out = LeftOut(refused=sum(reading.refused().values()))
    asked_in_all = None if None in known or not known else sum(filter(None, known))
    if plan.groups:
        names = list(plan.groups)
        return Counted(GroupedTally(names, merged, plan=plan, of_no_group=left_out), asked_in_all)
    tally = merged.get((), tally_of(plan, None))
    return Counted(replace(tally, left_out=tally.left_out + left_out), asked_in_all)


def _sum(
    plan: Plan, key: Key, shards: Sequence[StoredTally], asked: int | None, origin: Origin
) -> Any:
    """Add up the shards of a group, and say of how many people they are."""
    tally = _added([tally_of(plan, None), *(tally_of(plan, row) for row in shards)])
    where = f" of the group {shown_key(key)}" if key else ""
    if asked is not None and asked < tally.received:
        raise InvalidValueError(
            f"{tally.received} people{where} reported, and {asked} are said to be asked: correct "
            "that with turnout store asked"
        )
    if plan._everyone_reports:
        # Whoever is missing has not answered yet.
        missing = LeftOut(unanswered=0 if asked is None else asked - tally.received)
        return replace(tally, left_out=missing, origin=origin)
    nodes = asked
    if nodes is None:
        if plan.oracle.silent:
            raise InvalidValueError(
                f"say how many people{where} were asked: silence is an answer under this plan; "
                "turnout store asked"
            )
        nodes = round(tally.received / float(plan.participation.uniform_rate or 1))
    return replace(tally, nodes=max(nodes, tally.received), origin=origin)


def _added(tallies: Iterable[Any]) -> Any:
    first, *others = tallies
    for each in others:
        first = first.merge(each)
    return first
