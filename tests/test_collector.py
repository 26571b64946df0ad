"""Messages taken in one at a time, as a server does."""

from __future__ import annotations

import itertools
import json
import sqlite3
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
)
from turnout.participation import Personalized

LABELS = ["never", "once", "often"]
ALL = tn.Plan(tn.DirectEncoding(1.0, LABELS), tn.Everyone())
HALF = tn.Plan(tn.DirectEncoding(1.0, LABELS), tn.Bernoulli(0.5))
GROUPS = {"region": ["north", "south"], "year": [2025, 2026]}
GROUPED = tn.Plan(ALL.oracle, ALL.participation, groups=GROUPS)
NOON = datetime(2030, 1, 1, 12, tzinfo=timezone.utc)


def sent(plan: tn.Plan, number: int, **options: Any) -> list[bytes]:
    """Messages of people who answer in turn."""
    made = (plan.report(LABELS[person % 3], **options) for person in range(number))
    return [message for message in made if message is not None]


def test_one_at_a_time_many_at_once_and_gathered_are_one_tally() -> None:
    messages = sent(ALL, 300)
    expected = ALL.oracle.tally(ALL.gather(messages))
    single, many = tn.Collector(ALL), tn.Collector(ALL)
    assert {single.accept(message).outcome for message in messages} == {"accepted"}
    assert many.accept_many(iter(messages)) == many.receipts == single.receipts
    assert single.receipts.accepted == 300
    for collector in (single, many):
        assert np.array_equal(collector.tally().sums, expected.sums)
        assert (collector.tally().nodes, collector.asked) == (300, None)


def test_every_kind_of_refusal_is_told_apart_and_counts_nothing() -> None:
    first = sent(ALL, 1)[0]
    other = json.loads(first)
    bad = {
        "malformed": b"hello",
        "other_version": json.dumps({**other, "version": 2}),
        "other_plan": sent(HALF, 50)[0],
        "impossible": json.dumps({**other, "nonce": "0" * 32, "report": 7}),
        "contradictory": json.dumps({**other, "report": (other["report"] + 1) % 3}),
    }
    collector = tn.Collector(ALL)
    assert collector.accept(first).outcome == "accepted"
    for kind, message in bad.items():
        receipt = collector.accept(message)
        assert (receipt.outcome, receipt.kind) == ("refused", kind)
        assert receipt.reason
    assert collector.accept(first).outcome == "repeated"
    assert collector.receipts.refusals == {**dict.fromkeys(bad, 1), "expired": 0}
    assert (collector.receipts.refused, collector.receipts.repeated) == (5, 1)
    assert collector.tally().received == 1
    # What was impossible keeps no place: an honest message may have these bytes.
    honest = json.dumps({**other, "nonce": "0" * 32})
    assert collector.accept(honest).outcome == "accepted"


def test_a_message_counts_once_in_whatever_calls_it_comes() -> None:
    messages = sent(ALL, 40)
    collector = tn.Collector(ALL)
    for pair in itertools.pairwise(messages):
        collector.accept_many([*pair, pair[0]])
    assert collector.receipts.accepted == collector.tally().received == 40
    assert collector.receipts.repeated == 39 * 3 - 40


def test_one_byte_reports_that_look_alike_are_different_messages() -> None:
    plan = tn.Plan(tn.OptimizedUnaryEncoding(8.0, 2), tn.Everyone())
    message = json.loads(plan.report(0) or b"")
    messages = [json.dumps({**message, "nonce": f"{number:032x}"}) for number in range(5)]
    collector = tn.Collector(plan)
    assert collector.accept_many(messages + messages).accepted == 5


def test_plans_of_several_serials_add_up_and_expire_by_themselves() -> None:
    plans = [
        tn.Plan(ALL.oracle, ALL.participation, serial=1, expires=NOON),
        tn.Plan(ALL.oracle, ALL.participation, serial=2),
    ]
    late = NOON + timedelta(hours=1)
    for moment, accepted in [(NOON - timedelta(seconds=1), 10), (NOON, 5), (late, 5)]:
        collector = tn.Collector(*plans)
        old = [
            json.dumps({**json.loads(each), "plan": plans[0].fingerprint}) for each in sent(ALL, 5)
        ]
        receipts = collector.accept_many([*old, *sent(plans[1], 5)], received=moment)
        assert (receipts.accepted, receipts.refusals["expired"]) == (accepted, 10 - accepted)
        assert collector.tally().nodes == accepted
    refused = tn.Collector(*plans).accept(old[0], received=late)
    assert refused.reason == "the plan expired at 2030-01-01T12:00:00+00:00"
    for others in [(ALL, HALF), (ALL, GROUPED)]:
        with pytest.raises(PlanMismatchError, match=r"^plans\[1\] "):
            tn.Collector(*others)


def test_who_was_asked_is_not_who_reported() -> None:
    collector = tn.Collector(HALF)
    messages = sent(HALF, 200)
    collector.accept_many(messages)
    with pytest.raises(InvalidValueError, match=r"pass to ask\(\.\.\.\) how many people were"):
        collector.tally()
    collector.ask(10)
    with pytest.raises(
        InvalidValueError, match=rf"{len(messages)} people reported, but ask.* asked is 10"
    ):
        collector.tally()
    collector.ask(190)
    expected = HALF.oracle.tally(HALF.gather(messages, nodes=200))
    found = collector.tally()
    assert (collector.asked, found.nodes, found.received) == (200, 200, expected.received)
    assert np.array_equal(found.estimate().frequencies, expected.estimate().frequencies)
    # Where everybody reports, who is missing has not answered.
    everyone = tn.Collector(ALL)
    everyone.accept_many(sent(ALL, 30))
    everyone.ask(50)
    assert (everyone.asked, everyone.tally().nodes) == (50, 30)


def test_groups_are_kept_apart_and_only_those_of_the_plan_are_taken() -> None:
    collector = tn.Collector(GROUPED)
    expected = {}
    for place, key in enumerate(itertools.product(*GROUPS.values())):
        messages = sent(GROUPED, 10 * (place + 1), group=key)
        collector.accept_many(messages)
        expected[key] = len(messages)
    by_name = GROUPED.report("once", group={"year": 2026, "region": "south"})
    collector.accept(by_name or b"")
    expected["south", 2026] += 1
    tally = collector.tally()
    assert isinstance(tally, tn.GroupedTally)
    assert tally.names == ("region", "year")
    assert {key: one.received for key, one in tally.items()} == expected
    message = json.loads(by_name or b"")
    for group in (["east", 2025], ["north"], ["north", 2025.0], ["north", True], "north", None, {}):
        changed = json.dumps({**message, "nonce": "1" * 32, "group": group})
        assert collector.accept(changed).kind == "malformed", group
    without = {name: value for name, value in message.items() if name != "group"}
    assert collector.accept(json.dumps(without)).kind == "malformed"
    plain = json.loads(sent(ALL, 1)[0])
    assert tn.Collector(ALL).accept(json.dumps({**plain, "group": []})).kind == "malformed"
    # The same bytes in another group are another message.
    moved = json.dumps({**message, "group": ["north", 2026]})
    assert collector.accept(moved).kind == "contradictory"


def test_groups_are_asked_apart() -> None:
    plan = tn.Plan(HALF.oracle, HALF.participation, groups={"region": ["north", "south"]})
    collector = tn.Collector(plan)
    collector.accept_many(sent(plan, 100, group="north"))
    collector.ask(100, "north")
    collector.ask(7, {"region": "south"})
    tally = collector.tally()
    assert [(key, one.nodes) for key, one in tally.items()] == [(("north",), 100), (("south",), 7)]
    assert tally["south"].received == 0
    with pytest.raises(InvalidValueError, match="one of the 2 listed values of 'region'"):
        collector.ask(1, "east")
    with pytest.raises(InvalidValueError, match="group must have one value for each of the 1 col"):
        collector.ask(1)


def test_a_plan_keeps_its_groups() -> None:
    again = tn.Plan.from_json(GROUPED.to_json())
    assert again.groups == GROUPED.groups == {"region": ("north", "south"), "year": (2025, 2026)}
    assert again.fingerprint == GROUPED.fingerprint != ALL.fingerprint
    assert GROUPED == ALL
    with pytest.raises(InvalidValueError, match=r"groups \(region, year\).*tn\.Collector\(plan\)"):
        GROUPED.gather([])
    for wrong, words in [
        ({"region": []}, "must list at least one value"),
        ({"region": ["a", "a"]}, "must list different values"),
    ]:
        with pytest.raises(InvalidValueError, match=words):
            tn.Plan(ALL.oracle, ALL.participation, groups=wrong)
    for mistyped in ({"region": ["a", 1]}, {"region": [b"a"]}, ["region"], {"region": "ab"}):
        with pytest.raises(InvalidTypeError):
            tn.Plan(ALL.oracle, ALL.participation, groups=mistyped)
    with pytest.raises(InvalidValueError, match="group is given, but the plan has no groups"):
        ALL.report("once", group="north")


def test_what_was_drained_is_not_given_again() -> None:
    collector = tn.Collector(HALF)
    messages = [sent(HALF, 60) for _ in range(3)]
    drained = []
    for some in messages:
        collector.accept_many(some)
        drained.append(collector.drain())
    assert [one.received for one in drained] == list(map(len, messages))
    together = HALF.oracle.tally(HALF.gather(list(itertools.chain(*messages)), nodes=180))
    assert np.array_equal(sum(one.sums for one in drained), together.sums)
    assert collector.drain().received == 0
    assert collector.accept(messages[0][0]).outcome == "repeated"


class Table:
    """Messages remembered by a database."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("create table seen (nonce blob primary key, content blob)")

    def remember(self, nonces: Sequence[bytes], contents: Sequence[bytes]) -> list[bytes | None]:
        found = []
        for nonce, content in zip(nonces, contents, strict=True):
            row = self.connection.execute("select content from seen where nonce = ?", [nonce])
            earlier = row.fetchone()
            found.append(earlier and earlier[0])
            if earlier is None:
                self.connection.execute("insert into seen values (?, ?)", [nonce, content])
        return found


def test_a_database_remembers_as_memory_does() -> None:
    messages = sent(ALL, 50)
    table = Table()
    first, second = tn.Collector(ALL, seen=table), tn.Collector(ALL, seen=table)
    assert first.accept_many(messages[:30] + messages[:5]).repeated == 5
    assert second.accept_many(messages).accepted == 20
    assert first.tally().received + second.tally().received == 50


def test_threads_count_each_message_once() -> None:
    messages = sent(ALL, 2000)
    collector = tn.Collector(ALL)
    each = [threading.Thread(target=collector.accept_many, args=[messages]) for _ in range(4)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    assert collector.tally().received == collector.receipts.accepted == 2000
    assert collector.receipts.repeated == 6000


def test_improbable_reports_are_its_own() -> None:
    plan = tn.Plan(tn.OptimizedUnaryEncoding(1.0, 64), tn.Everyone())
    message = json.loads(plan.report(0) or b"")
    bad, good = tn.Collector(plan), tn.Collector(plan)
    bad.accept(json.dumps({**message, "report": "ff" * 8}))
    good.accept(json.dumps(message))
    assert (bad.improbable, good.improbable, bad.tally().received) == (1, 0, 1)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="plans must be at least one plan"):
        tn.Collector()
    with pytest.raises(InvalidTypeError, match=r"plans\[0\] must be a Plan"):
        tn.Collector("plan.json")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="a message does not carry its probability"):
        tn.Collector(tn.Plan(ALL.oracle, Personalized([0.5])))
    collector = tn.Collector(ALL)
    with pytest.raises(
        InvalidTypeError, match=r"messages\[1\] must be bytes or text, got a NoneType"
    ):
        collector.accept_many([*sent(ALL, 1), None])  # type: ignore[list-item]
    assert collector.receipts.accepted == 0
    with pytest.raises(InvalidTypeError, match="messages must be an iterable of messages"):
        collector.accept_many(sent(ALL, 1)[0])  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="people must be an integer"):
        collector.ask(-1)
    with pytest.raises(InvalidValueError, match="received must have a time zone"):
        collector.accept(b"", received=datetime(2029, 1, 1))


def test_whoever_does_not_count_is_in_the_tally() -> None:
    collector = tn.Collector(ALL)
    collector.accept_many([*sent(ALL, 40), b"junk", b"junk"])
    collector.ask(50)
    assert collector.tally().left_out == tn.LeftOut(unanswered=10, refused=2)
    # Silent people are nodes where not everyone takes part.
    half = tn.Collector(HALF)
    half.accept_many([*sent(HALF, 40), b"junk"])
    half.ask(50)
    assert (half.tally().nodes, half.tally().left_out) == (50, tn.LeftOut(refused=1))
    assert half.drain().left_out == tn.LeftOut(refused=1)
    assert not half.drain().left_out
    grouped = tn.Collector(GROUPED)
    grouped.accept_many([*sent(GROUPED, 5, group=("north", 2025)), b"junk"])
    grouped.ask(8, ("north", 2025))
    found = grouped.tally()
    assert found["north", 2025].left_out == tn.LeftOut(unanswered=3)
    assert found.of_no_group == tn.LeftOut(refused=1)
    assert ALL.oracle.tally(ALL.gather([*sent(ALL, 3), b"x"], 4, on_bad="count")).left_out == (
        tn.LeftOut(unanswered=1, refused=1)
    )
