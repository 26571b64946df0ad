"""What a collection makes of messages, of every kind of question."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import turnout as tn
from turnout.collecting.left_out import LeftOut
from turnout.errors import CorruptDataError, InvalidValueError, StoreUnavailableError
from turnout.serve.collection import Collection, families
from turnout.serve.counted import Counted, count, stored_families
from turnout.serve.results import Results
from turnout.serve.storage.sqlite import SQLiteStore
from turnout.serve.writing import Taken, Writer

Open = Callable[..., tuple[Collection, SQLiteStore]]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """What opens collections, which are closed with the test."""
    stores = []

    def open_(*plans: tn.Plan, keep: str = "messages", name: str = "reports.db") -> Any:
        folder = tmp_path / "plans"
        folder.mkdir(exist_ok=True)
        for number, plan in enumerate(plans):
            plan.write(folder / f"{number}.json")
        store = SQLiteStore(tmp_path / name, keep)
        stores.append(store)
        return Collection(folder, store), store

    yield open_
    for store in stores:
        store.close()


def take(
    collection: Collection, store: SQLiteStore, *requests: Sequence[bytes]
) -> list[Taken | BaseException]:
    """Take in requests that come at once."""

    async def run() -> list[Taken | BaseException]:
        writer = Writer(collection, store)
        tasks = [asyncio.create_task(writer.take(each, 1)) for each in requests]
        await asyncio.sleep(0)
        writer.start()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await writer.stop()
        assert writer.waiting == 0
        return found

    return asyncio.run(run())


def counted(store: SQLiteStore, place: int = 0, **more: Any) -> Counted:
    with store.reading() as reading:
        return count(store, reading, stored_families(reading)[place], **more)


def message_of(plan: tn.Plan, value: Any, group: Any = None) -> bytes:
    if plan.oracle.fresh:
        message = plan.report(value, group=group)
    else:
        message = plan.oracle.client().message(plan, value)
    assert message is not None
    return message


def test_every_kind_of_question_is_counted_as_gather_counts_it(
    kinds: ModuleType, opened: Open
) -> None:
    plans = [tn.Plan(oracle, tn.Everyone()) for oracle in kinds.KINDS.values()]
    collection, store = opened(*plans)
    assert len(collection.families) == len(plans)
    sent = {}
    for published in collection.published:
        plan = published.plan
        answers = list(kinds.answers_of(plan.oracle))[:40]
        found = [plan.report(a) if plan.oracle.fresh else message_of(plan, a) for a in answers]
        sent[plan.fingerprint] = [each for each in found if each is not None]
    # All kinds in one request, and then each in two of its own.
    mixed = [each for some in sent.values() for each in some[:10]]
    requests = [mixed, *sent.values(), *sent.values()]
    taken = take(collection, store, *requests)
    assert sum(each.accepted for each in taken if isinstance(each, Taken)) == sum(
        map(len, sent.values())
    )
    assert taken[0] == Taken(len(mixed), 0, {})
    for family in collection.families:
        plan = family.plans[0]
        messages = sent[plan.fingerprint]
        gathered = plan.gather(messages, nodes=None if plan._everyone_reports else 40)
        for number in family.numbers:
            store.ask(number, "[]", 40 if plan.oracle.silent else len(messages))
        with store.reading() as reading:
            tally = count(store, reading, family).tally
        assert tally == plan.oracle.tally(gathered), plan.oracle


def test_messages_count_once_whenever_they_come_again(opened: Open) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    collection, store = opened(plan)
    first, second = [[message_of(plan, 1) for _ in range(5)] for _ in range(2)]
    assert take(collection, store, first, [*first[:2], *second, second[0]]) == [
        Taken(5, 0, {}),
        Taken(5, 3, {}),
    ]
    # Another process, later.
    assert take(collection, store, [*first, *second]) == [Taken(0, 10, {})]
    assert counted(store).tally.received == 10


def test_what_is_no_message_of_the_plan_is_refused_by_its_kind(opened: Open) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    other = tn.Plan(tn.DirectEncoding(1.0, 4), tn.Everyone())
    collection, store = opened(plan)
    good = json.loads(message_of(plan, 1))
    bad = [
        b"hello",
        json.dumps({**good, "version": 2}).encode(),
        message_of(other, 1),
        json.dumps({**good, "report": 3}).encode(),
        json.dumps({**good, "report": (good["report"] + 1) % 3}).encode(),
    ]
    kinds = ["malformed", "other_version", "other_plan", "impossible", "contradictory"]
    expected = dict.fromkeys(kinds, 1)
    assert take(collection, store, [json.dumps(good).encode(), *bad]) == [Taken(1, 0, expected)]
    tally = counted(store).tally
    assert (tally.received, tally.left_out) == (1, LeftOut(refused=5))
    # Of nothing but bad ones, the numbers are stored too, when the writer ends.
    assert take(collection, store, [bad[0]] * 3) == [Taken(0, 0, {"malformed": 3})]
    assert counted(store).tally.left_out == LeftOut(refused=8)


def test_only_hashes_are_kept_where_tallies_are_kept_alone(opened: Open, tmp_path: Path) -> None:
    plan = tn.Plan(tn.SubsetSelection(1.0, 30), tn.Everyone())
    collection, store = opened(plan, keep="tally")
    messages = [message_of(plan, 1) for _ in range(50)]
    assert take(collection, store, messages, messages) == [Taken(50, 0, {}), Taken(0, 50, {})]
    changed = json.loads(messages[0])
    changed["report"] = json.loads(messages[1])["report"]
    again = take(collection, store, [json.dumps(changed).encode()])
    assert again == [Taken(0, 0, {"contradictory": 1})]
    gathered = plan.oracle.tally(plan.gather(messages))
    assert counted(store).tally == replace(gathered, left_out=LeftOut(refused=1))
    with store.reading() as reading:
        assert list(reading.messages()) == []
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("reports.db*"))
    for message in map(json.loads, messages):
        nonce = bytes.fromhex(message["nonce"])
        assert nonce not in kept
        assert message["nonce"].encode() not in kept
        assert message["report"].encode() not in kept


def test_groups_are_kept_apart(opened: Open) -> None:
    groups = {"region": ["north", "süd"], "year": [1, 2]}
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone(), groups=groups)
    collection, store = opened(plan)
    collector = tn.Collector(plan)
    requests = []
    for number, group in enumerate([("north", 1), ("süd", 2), ("north", 2)]):
        messages = [message_of(plan, number, group) for _ in range(5 + number)]
        collector.accept_many(messages)
        requests.append(messages)
    mixed = [message for some in requests for message in some]
    take(collection, store, mixed[::2], *requests)
    assert counted(store).tally == collector.tally()
    assert [tally.received for tally in counted(store).tally.values()] == [5, 7, 6]


def test_plans_that_ask_the_same_add_up(opened: Open) -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    first = tn.Plan(oracle, tn.Everyone(), serial=1)
    second = tn.Plan(oracle, tn.Everyone(), serial=2)
    third = tn.Plan(tn.DirectEncoding(2.0, 3), tn.Everyone(), serial=3)
    collection, store = opened(first, second, third)
    requests = [[message_of(plan, 1)] * 1 for plan in (first, second, second, third)]
    take(collection, store, *requests)
    assert [len(family.plans) for family in collection.families] == [2, 1]
    assert counted(store).tally.received == 3
    assert counted(store, 1).tally.received == 1
    family = collection.families[0]
    with store.reading() as reading:
        each = [count(store, reading, family, only).tally for only in family.plans]
        # What is counted in one store twice is found.
        again = count(store, reading, family).tally
    assert [tally.received for tally in each] == [1, 2]
    assert each[0].merge(each[1]) == again
    with pytest.raises(InvalidValueError, match="already counted here"):
        again.merge(each[0])


def test_the_plan_that_expires_first_is_in_force(opened: Open) -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    start = datetime.now(timezone.utc).replace(microsecond=0)
    days = [start + timedelta(days=day) for day in range(-1, 3)]
    plans = [
        tn.Plan(oracle, tn.Everyone(), serial=number, expires=day)
        for number, day in enumerate(days)
    ]
    plans += [tn.Plan(oracle, tn.Everyone(), serial=number) for number in (0, 9, 4)]
    collection, store = opened(*plans)

    def in_force(day: float) -> Any:
        found = collection.in_force(start + timedelta(days=day))
        assert found is not None
        return found.plan.serial, found.plan.expires

    assert in_force(-1.5) == (0, days[0])
    assert in_force(-0.5) == (1, days[1])
    assert in_force(1) == (3, days[3])
    assert in_force(2) == (9, None)
    # Messages under all that have not expired are taken, and no others.
    taken = take(collection, store, [message_of(plan, 1) for plan in plans[2:]])
    assert taken == [Taken(5, 0, {})]
    early = tn.Plan(oracle, tn.Everyone(), serial=0, expires=days[0])
    late = json.loads(message_of(tn.Plan(oracle, tn.Everyone()), 1)) | {"plan": early.fingerprint}
    assert take(collection, store, [json.dumps(late).encode()]) == [Taken(0, 0, {"expired": 1})]


def test_plans_are_changed_at_once(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout.serve.collection._REST", 0.0)
    first, second = (tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone(), serial=n) for n in (1, 2))
    collection, _ = opened(first)
    seen = []

    def looked(*arguments: Any) -> Any:
        # A request that comes while the plans are read.
        seen.append(collection.asked())
        return families(*arguments)

    monkeypatch.setattr("turnout.serve.collection.families", looked)
    second.write(tmp_path / "plans" / "second.json")
    assert collection.refresh()
    ((plan, family),) = seen
    assert plan == first
    assert family.plans == (first,)
    plan, family = collection.asked()
    assert plan is not None
    assert (plan.serial, len(family.plans)) == (2, 2)


def test_there_is_no_plan_in_force_when_all_have_expired(opened: Open) -> None:
    past = datetime(2001, 1, 1, tzinfo=timezone.utc)
    collection, _ = opened(tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone(), expires=past))
    assert collection.in_force() is None


def test_plans_that_are_added_are_found(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout.serve.collection._REST", 0.0)
    oracle = tn.DirectEncoding(1.0, 3)
    first, second = (tn.Plan(oracle, tn.Everyone(), serial=number) for number in (1, 2))
    collection, store = opened(first)
    assert not collection.refresh()
    assert take(collection, store, [message_of(second, 1)]) == [Taken(0, 0, {"other_plan": 1})]
    (tmp_path / "plans" / "bad.json").write_text("no plan")
    with pytest.raises(CorruptDataError, match=r"bad\.json"):
        collection.refresh()
    assert [one.plan.serial for one in collection.published] == [1]
    second.write(tmp_path / "plans" / "bad.json")
    # The writer looks before it reads.
    assert take(collection, store, [message_of(second, 1)]) == [Taken(1, 0, {})]
    found = collection.in_force()
    assert found is not None
    assert found.plan.serial == 2


def test_how_many_were_asked_is_said_apart(opened: Open) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(0.25))
    collection, store = opened(plan)
    messages = [m for m in (plan.report(1) for _ in range(400)) if m is not None]
    take(collection, store, messages)
    (number,) = collection.families[0].numbers
    assert counted(store).asked is None
    # The rate says how many there were, or so.
    assert counted(store).tally.nodes == 4 * len(messages)
    store.ask(number, "[]", 500)
    gathered = plan.oracle.tally(plan.gather(messages, nodes=500))
    assert counted(store) == Counted(gathered, 500, 0, LeftOut(), (500,))
    store.ask(number, "[]", 3)
    with pytest.raises(InvalidValueError, match="reported, and 3 are said to be asked"):
        counted(store)


def test_where_everyone_reports_those_asked_have_not_answered_yet(opened: Open) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    collection, store = opened(plan)
    take(collection, store, [message_of(plan, 1)])
    store.ask(collection.families[0].numbers[0], "[]", 5)
    tally = counted(store).tally
    assert (tally.nodes, tally.left_out) == (1, LeftOut(unanswered=4))


def test_a_store_that_cannot_be_used_takes_nothing_and_then_all(opened: Open) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    collection, store = opened(plan)
    messages = [message_of(plan, 1) for _ in range(5)]
    take(collection, store, messages[:2])
    path = Path(store.place)
    path.rename(path.with_name("away.db"))
    taken = take(collection, store, messages, messages[:1])
    assert [type(each) for each in taken] == [StoreUnavailableError] * 2
    path.with_name("away.db").rename(path)
    assert take(collection, store, messages) == [Taken(3, 2, {})]
    assert counted(store).tally.received == 5


def test_a_request_beyond_reading_does_not_harm_the_others(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    collection, store = opened(plan)
    read = collection.read

    def failing(lines: Sequence[bytes]) -> Any:
        if b"poison" in lines:
            raise ZeroDivisionError
        return read(lines)

    monkeypatch.setattr(collection, "read", failing)
    good = [[message_of(plan, 1)] for _ in range(3)]
    taken = take(collection, store, good[0], [b"poison"], *good[1:])
    assert [type(each) for each in taken] == [Taken, ZeroDivisionError, Taken, Taken]
    assert counted(store).tally.received == 3


def test_of_small_groups_nothing_is_shown(opened: Open) -> None:
    groups = {"region": ["north", "south"]}
    plan = tn.Plan(tn.DirectEncoding(3.0, ["no", "yes"]), tn.Everyone(), groups=groups)
    collection, store = opened(plan)
    (family,) = collection.families
    take(collection, store, [message_of(plan, "yes", "north") for _ in range(30)])
    nothing = Results.of(store, family, least=31)
    assert nothing.described()["estimates"] == []
    assert nothing.described()["reason"] == "no group has 31 reports yet"
    assert "Nothing can be shown yet: " in nothing.page("Title")


def test_a_serial_of_permanent_answers_is_one_round(opened: Open) -> None:
    kept = tn.Memoized(tn.DirectEncoding(3.0, 3), first_epsilon=2.0)
    serials = [tn.Plan(kept, tn.Everyone(), serial=each) for each in (1, 2)]
    collection, store = opened(*serials)
    for plan in serials:
        # In two requests, which are of one round all the same.
        messages = [message_of(plan, 1) for _ in range(20)]
        take(collection, store, messages[:5])
        take(collection, store, messages[5:])
    rounds = counted(store).tally.origin.rounds
    assert [size for _, size in rounds.sizes] == [20, 20]
