"""Verification that the tallies of a store match its messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from turnout._core import message_records
from turnout.errors import CorruptDataError
from turnout.serve.collection import Family, read_messages
from turnout.serve.counted import group_text, refuse_task, stored_families, tally_of
from turnout.serve.storage.interface import Reading, Store, StoredTally, parts_of

#: So many differences are named.
_SAID = 3

_Counts = dict[tuple[int, str], Any]


@dataclass(frozen=True)
class Checked:
    """The verified facts of a store.

    Attributes
    ----------
    keep
        What the store keeps.
    questions, groups
        How many questions there are, and groups of all of them.
    reports
        How many messages count.
    asked
        How many people were asked, of the groups of which somebody said so.
    refused
        How many messages were refused.
    """

    keep: str
    questions: int
    groups: int
    reports: int
    asked: int
    refused: int


def check(store: Store) -> Checked:
    """Recount a store at one moment, also while a server writes into it.

    With ``keep="messages"`` every message is read and counted again: each must be remembered, and
    the tallies must match the messages. With ``keep="tally"`` the tallies must be valid, and the
    number of their reports must equal the number of remembered messages. Only the tallies need
    memory.

    Raises
    ------
    CorruptDataError
        If anything differs; the message describes it.
    InvalidValueError
        If the store belongs to an aggregator of a task.
    StoreUnavailableError
        If the store cannot currently be read.
    """
    with store.reading() as reading:
        families = stored_families(reading)
        tallies = dict(_tallies(reading, families))
        wrong = []
        if store.keep == "messages":
            counted, said = _counted_again(reading, families)
            wrong += [*said, *_differences(tallies, counted, families)]
        reports = sum(tally.received for tally in tallies.values())
        remembered = reading.remembered()
        if reports != remembered:
            wrong.append(f"the tallies have {reports} reports, and {remembered} are remembered")
        if wrong:
            more = f"; and {len(wrong) - _SAID} more" if len(wrong) > _SAID else ""
            raise CorruptDataError(f"{store.place}: {'; '.join(wrong[:_SAID])}{more}")
        numbers = [number for family in families for number in family.numbers]
        asked = sum(sum(reading.asked(number).values()) for number in numbers)
        refused = sum(reading.refused().values())
    if not families:
        refuse_task(store)
    return Checked(store.keep, len(families), len(tallies), reports, asked, refused)


def _tallies(reading: Reading, families: list[Family]) -> Iterator[tuple[tuple[int, str], Any]]:
    """Add up the shards of each plan and group."""
    for family in families:
        for plan, number in zip(family.plans, family.numbers, strict=True):
            rows: dict[str, list[StoredTally]] = {}
            for row in reading.tallies(number):
                rows.setdefault(row.group, []).append(row)
            for group, shards in rows.items():
                tally = tally_of(plan, shards[0])
                for shard in shards[1:]:
                    tally = tally.merge(tally_of(plan, shard))
                yield (number, group), tally


def _counted_again(reading: Reading, families: list[Family]) -> tuple[_Counts, list[str]]:
    """Count the messages, and describe any errors."""
    found: _Counts = {}
    bad = strange = 0
    for lines in reading.messages():
        read = read_messages(families, lines.split(b"\n"), None)
        bad += len(read.outcomes) - len(read)
        for family, batch, _ in read.batches:
            if not len(batch):
                continue
            records, _ = message_records(batch.nonces, batch.contents)
            remembered = reading.said(records)
            strange += sum(remembered.get(name) != said for name, said in parts_of(records))
            for place, key, tally in family.counted(batch):
                name = family.numbers[place], group_text(key)
                found[name] = found[name].merge(tally) if name in found else tally
    wrong = []
    if bad:
        wrong.append(f"{bad} of the messages that are kept are none of its plans")
    if strange:
        wrong.append(f"{strange} of the messages that are kept are not remembered as they are")
    return found, wrong


def _differences(tallies: _Counts, counted: _Counts, families: list[Family]) -> Iterator[str]:
    """List the differences between tallies and messages."""
    fingerprints = {
        number: plan.fingerprint
        for family in families
        for plan, number in zip(family.plans, family.numbers, strict=True)
    }
    for name in sorted(tallies.keys() | counted.keys()):
        tally, again = tallies.get(name), counted.get(name)
        if tally == again:
            continue
        number, group = name
        where = f"plan {fingerprints[number][:8]}" + (f", group {group}" if group != "[]" else "")
        has, had = (0 if each is None else each.received for each in (tally, again))
        differ = "of other reports" if has == had else f"of {had}"
        yield f"{where}: the tally is of {has} reports, the messages are {differ}"
