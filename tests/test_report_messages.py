"""Messages of single people: made, gathered, and refused."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout import metrics
from turnout.collecting.message_reading import REFUSALS
from turnout.collecting.report_messages import Gathered, device_of, make_message
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanExpiredError,
    PlanMismatchError,
    UnknownLabelError,
    UnsupportedVersionError,
)
from turnout.frequency.choice import registered

DOMAIN = tn.Domain(["never", "once", ("often", 3), 4.5, None])
HALF = tn.Plan(tn.DirectEncoding(1.0, DOMAIN), tn.Bernoulli(0.5))
ALL = tn.Plan(tn.DirectEncoding(1.0, DOMAIN), tn.Everyone())
UNARY = tn.Plan(tn.OptimizedUnaryEncoding(1.0, 100), tn.Bernoulli(0.5))

NUMBERS = itertools.count()


def message(plan: tn.Plan = HALF, /, **changes: Any) -> bytes:
    """A new message of the first answer, with members changed; ... leaves one out."""
    members = {
        "format": "turnout-report",
        "version": 1,
        "plan": plan.fingerprint,
        "nonce": f"{next(NUMBERS):032x}",
        "report": 0,
    }
    members.update(changes)
    kept = {name: value for name, value in members.items() if value is not ...}
    return json.dumps(kept).encode()


def test_a_message_never_changes() -> None:
    made = ALL.report(("often", 3), seed=7)
    code = ALL.oracle.randomize([("often", 3)], seed=7).codes[0]
    assert made is not None
    nonce = json.loads(made)["nonce"]
    assert made == (
        b'{"format":"turnout-report","version":1,"plan":"%s","nonce":"%s","report":%d}'
        % (ALL.fingerprint.encode(), nonce.encode(), code)
    )
    assert re.fullmatch("[0-9a-f]{32}", nonce)
    plan = tn.Plan(UNARY.oracle, tn.Everyone())
    made = plan.report(3, seed=1)
    assert made is not None
    row = plan.oracle.randomize([3], seed=1).codes[0]
    assert json.loads(made)["report"] == b"".join(int(w).to_bytes(8, "little") for w in row).hex()


@pytest.mark.parametrize("name", sorted(registered()))
@pytest.mark.parametrize("size", [2, 70, 300])
def test_messages_of_every_oracle_hold_its_reports(name: str, size: int) -> None:
    oracle = registered()[name](1.0, tn.Domain.from_integers(size))
    for participation in (tn.Everyone(), tn.Bernoulli(0.5)):
        plan = tn.Plan(oracle, participation)
        answers = np.arange(60) % size
        messages = [plan.report(answer, seed=seed) for seed, answer in enumerate(answers)]
        alone = [
            oracle.randomize([answer], participation=participation, seed=seed)
            for seed, answer in enumerate(answers)
        ]
        gathered = plan.gather([each for each in messages if each is not None], nodes=60)
        assert gathered == tn.Reports.concatenate(alone)
        assert [each is None for each in messages] == [not len(each) for each in alone]


def test_messages_of_every_kind_hold_its_reports(kinds: Any) -> None:
    known = 0
    for name, oracle in kinds.KINDS.items():
        if not oracle.fresh:
            continue
        for participation in (tn.Everyone(), tn.Bernoulli(0.5)):
            plan = tn.Plan(oracle, participation, groups={"day": ["one", None]})
            device = device_of(plan)
            known += device is not None
            # As the core makes it, and as a kind does that the core does not know.
            for seed, answer in enumerate(list(kinds.answers_of(oracle))[:20]):
                drawn = oracle.randomize([answer], participation=participation, seed=seed)
                for of in (device, None):
                    made = make_message(plan, of, answer, "one", seed)
                    assert (made is None) == (not len(drawn)), name
                    if made is not None:
                        collector = tn.Collector(plan)
                        assert collector.accept(made).outcome == "accepted", name
                        collector.ask(1, "one")
                        assert collector.tally()["one",] == oracle.tally(drawn), name
    assert known == 2 * (len(kinds.KINDS) - 1)


def test_a_kind_that_the_core_does_not_know_makes_its_own_messages() -> None:
    class Contrary(tn.DirectEncoding):
        """Another kind of an oracle: everybody says the first label."""

        def draw_reports(self, answers: Any, participation: Any, noise: Any) -> Any:
            return super().draw_reports(np.zeros_like(answers), participation, noise)

    plan = tn.Plan(Contrary(40.0, 3), tn.Everyone())
    assert device_of(plan) is None
    assert json.loads(plan.report(2) or b"")["report"] == 0


def test_a_plan_that_made_a_message_can_be_copied() -> None:
    assert ALL.report("once", seed=1) is not None
    for copied in (pickle.loads(pickle.dumps(ALL)), copy.deepcopy(ALL)):
        made = [json.loads(plan.report("once", seed=1) or b"") for plan in (ALL, copied)]
        assert made[0]["report"] == made[1]["report"]


def test_some_are_silent_and_nobody_is_drawn_twice_alike() -> None:
    messages = [HALF.report("once") for _ in range(2000)]
    sent = [each for each in messages if each]
    # 1000 +- 22.4: 4.9 standard deviations at 1e-6.
    assert abs(len(sent) - 1000) < 110
    assert len(set(sent)) == len(sent)
    assert {json.loads(each)["report"] for each in sent} == set(range(5))
    reports = HALF.gather(sent, nodes=2000)
    p, _ = HALF.oracle.support_probabilities
    assert abs(int(HALF.oracle.tally(reports).support[1]) / len(sent) - p) < 0.08


def test_messages_come_as_bytes_text_and_lines(tmp_path: Any) -> None:
    made = [ALL.report(answer, seed=seed) for seed, answer in enumerate(DOMAIN.labels)]
    kept = [each for each in made if each is not None]
    expected = ALL.gather(kept)
    assert expected.nodes == len(expected) == 5
    path = tmp_path / "messages.jsonl"
    path.write_bytes(b"".join(each + b"\n" for each in kept))
    assert ALL.gather([each.decode() for each in kept]) == expected
    assert ALL.gather(iter(kept), nodes=5) == expected
    with path.open("rb") as lines:
        assert ALL.gather(lines) == expected
    with path.open() as texts:
        assert ALL.gather(texts) == expected
    shuffled = [json.dumps(dict(reversed(json.loads(each).items())), indent=1) for each in kept]
    assert ALL.gather(shuffled) == expected


BAD: dict[str, tuple[bytes | str, str, type[Exception], str]] = {
    "no JSON": (b"{", "malformed", CorruptDataError, "is no message of turnout, got 1 bytes"),
    "no UTF-8": (b"\xff", "malformed", CorruptDataError, "is no message of turnout"),
    "empty": (b"", "malformed", CorruptDataError, "is no message of turnout"),
    "deep": ("[" * 100_000, "malformed", CorruptDataError, "is no message of turnout"),
    "long": ("1" * 5000, "malformed", CorruptDataError, "is no message of turnout"),
    "null": (b"null", "malformed", CorruptDataError, "is no message of turnout"),
    "a list": (b'[["format", "turnout-report"]]', "malformed", CorruptDataError, "is no message"),
    "two": (message() + message(), "malformed", CorruptDataError, "is no message of turnout"),
    "format": (message(format="turnout-plan"), "malformed", CorruptDataError, "is no message"),
    "more": (message(more=1), "malformed", CorruptDataError, "is no message of turnout"),
    "no report": (message(report=...), "malformed", CorruptDataError, "is no message of turnout"),
    "no nonce": (message(nonce=...), "malformed", CorruptDataError, "is no message of turnout"),
    "nonce null": (message(nonce=None), "malformed", CorruptDataError, "have a nonce of 32 hexad"),
    "short nonce": (message(nonce="0" * 31), "malformed", CorruptDataError, "a nonce of 32"),
    "long nonce": (message(nonce="0" * 33), "malformed", CorruptDataError, "a nonce of 32"),
    "upper nonce": (message(nonce="0" * 31 + "A"), "malformed", CorruptDataError, "a nonce of 32"),
    "a line": (message(nonce="0" * 32 + "\n"), "malformed", CorruptDataError, "a nonce of 32"),
    "no plan": (message(plan=...), "malformed", CorruptDataError, "is no message of turnout"),
    "report twice": (
        message()[:-1] + b', "report": 1}',
        "malformed",
        CorruptDataError,
        "is no message",
    ),
    "version": (
        message(version=2, new=1),
        "other_version",
        UnsupportedVersionError,
        "has version 2; this release of turnout reads 1",
    ),
    "version true": (
        message(version=True),
        "other_version",
        UnsupportedVersionError,
        "has version true",
    ),
    "version 1.0": (message(version=1.0), "other_version", UnsupportedVersionError, "version 1.0"),
    "plan": (message(ALL), "other_plan", PlanMismatchError, "was made under the plan"),
    "plan null": (message(plan=None), "other_plan", PlanMismatchError, "under the plan null"),
    "report text": (message(report="0"), "malformed", CorruptDataError, "from 0 to 255"),
    "report true": (message(report=True), "malformed", CorruptDataError, "from 0 to 255"),
    "report 1.0": (message(report=1.0), "malformed", CorruptDataError, "from 0 to 255"),
    "report negative": (message(report=-1), "malformed", CorruptDataError, "to 255"),
    "report 256": (message(report=256), "malformed", CorruptDataError, "to 255"),
    "report huge": (message(report=10**400), "malformed", CorruptDataError, "from 0 to 255"),
    "report 5": (message(report=5), "impossible", CorruptDataError, "holds no report of direct_en"),
}


@pytest.mark.parametrize(("bad", "kind", "error", "words"), BAD.values(), ids=BAD.keys())
def test_a_bad_message_is_refused_by_its_position(
    bad: bytes | str, kind: str, error: type[Exception], words: str
) -> None:
    messages = [message(), message(report=1), bad, message(report=2)]
    with pytest.raises(error, match=r"^messages\[2\] ") as caught:
        HALF.gather(messages, nodes=10)
    assert words in str(caught.value)
    assert type(caught.value) is error
    assert len(str(caught.value)) < 1000
    counted = HALF.gather(messages, nodes=10, on_bad="count")
    assert isinstance(counted, Gathered)
    good = HALF.gather([*messages[:2], messages[3]], nodes=10)
    assert counted.reports == replace(good, left_out=tn.LeftOut(refused=1))
    assert HALF.oracle.tally(counted.reports).left_out == tn.LeftOut(refused=1)
    assert counted.refusals == {each: int(each == kind) for each in REFUSALS}
    assert counted.refused == 1


def test_what_is_gathered_is_tallied_whether_bad_messages_are_counted_or_refused() -> None:
    messages = [message(), message(report=1), message(report=2)]
    counted = HALF.gather([*messages, b"{}", messages[0]], nodes=10, on_bad="count")
    tally = HALF.oracle.tally(counted)
    assert tally == HALF.oracle.tally(counted.reports)
    assert tally.support.tolist() == HALF.oracle.tally(HALF.gather(messages, 10)).support.tolist()
    assert (tally.received, tally.nodes, counted.refused, counted.repeated) == (3, 10, 1, 1)
    assert tally.left_out.refused == 1
    with pytest.raises(PlanMismatchError):
        tn.DirectEncoding(2.0, 4).tally(counted)


def test_rows_are_checked(tmp_path: Any) -> None:
    good = "00" * 16
    for report, kind in [
        (good[:-2], "malformed"),
        (good[:-1], "malformed"),
        (good + "00", "malformed"),
        ("0 " * 16, "malformed"),
        (good[:-2] + "0A", "malformed"),
        (good[:-2] + "zz", "malformed"),
        (good[:-2] + "é0", "malformed"),
        (0, "malformed"),
        ([0, 0], "malformed"),
        ("00" * 15 + "80", "impossible"),
    ]:
        bad = message(UNARY, report=report)
        with pytest.raises(CorruptDataError, match=r"^messages\[1\] (must have a|holds no) report"):
            UNARY.gather([message(UNARY, report=good), bad], nodes=5)
        counted = UNARY.gather([bad], nodes=5, on_bad="count")
        assert counted.refusals[kind] == 1, report
    assert len(UNARY.gather([message(UNARY, report=good)], nodes=5)) == 1


def test_all_that_is_impossible_is_found() -> None:
    random = np.random.default_rng(5)
    codes = random.integers(0, 8, 3000)
    counted = HALF.gather([message(report=int(code)) for code in codes], 4000, on_bad="count")
    assert counted.refusals["impossible"] == (codes >= 5).sum()
    assert counted.reports.codes.tolist() == codes[codes < 5].tolist()
    first = int(np.flatnonzero(codes >= 5)[0])
    with pytest.raises(CorruptDataError, match=rf"^messages\[{first}\] holds no report"):
        HALF.gather([message(report=int(code)) for code in codes], 4000)
    none = HALF.gather([message(report=9) for _ in range(7)], 7, on_bad="count")
    assert (none.refused, len(none.reports), none.reports.nodes) == (7, 0, 7)


def test_one_altered_character_is_refused_or_another_report() -> None:
    made = message(report=3)
    for place in range(len(made)):
        for flip in (1, 2, 4, 0x20, 0x80):
            altered = bytearray(made)
            altered[place] ^= flip
            counted = HALF.gather([bytes(altered)], 1, on_bad="count")
            if not counted.refused:
                assert counted.reports.codes[0] == json.loads(altered)["report"]


def test_the_number_of_nodes_must_fit() -> None:
    messages = [message(ALL) for _ in range(3)]
    for nodes in (2, 4):
        with pytest.raises(InvalidValueError, match="nodes must equal the number of messages 3"):
            ALL.gather(messages, nodes)
    with pytest.raises(InvalidValueError, match="nodes must be at least the number of messages 3"):
        HALF.gather([message() for _ in range(3)], 2)
    with pytest.raises(InvalidValueError, match="nodes must be the number of people asked:"):
        HALF.gather([message() for _ in range(3)])
    with pytest.raises(InvalidTypeError, match="nodes must be an integer"):
        HALF.gather([], 1.5)  # type: ignore[arg-type]
    assert HALF.gather([], 0).nodes == 0
    assert ALL.gather([]).nodes == 0
    # Who is refused has no report: where all report there is no node without one.
    assert ALL.gather([*messages, b"x"], 4, on_bad="count").reports.nodes == 3
    assert HALF.gather([message(), b"x"], 4, on_bad="count").reports.nodes == 4


def test_bad_messages_are_nobodys_where_they_are_counted() -> None:
    good, bad = [message(ALL) for _ in range(952)], [b"junk"] * 100
    # As many as were asked, or fewer, whatever else came in.
    for plan, nodes in [(ALL, 1000), (ALL, 952), (HALF, 1000), (HALF, 952)]:
        messages = [
            each.replace(ALL.fingerprint.encode(), plan.fingerprint.encode()) for each in good
        ]
        gathered = plan.gather([*bad, *messages], nodes, on_bad="count")
        assert (len(gathered.reports), gathered.refused) == (952, 100)
        assert gathered.reports.nodes == (952 if plan is ALL else nodes)
        with pytest.raises(InvalidValueError, match=r"of messages 952.* got 951"):
            plan.gather([*bad, *messages], 951, on_bad="count")
    with pytest.raises(InvalidValueError, match="952, or that and some of 100 bad ones, got 1053"):
        ALL.gather([*bad, *good], 1053, on_bad="count")
    impossible = [message(ALL, report=9)] * 3
    assert ALL.gather([*good, *impossible], 953, on_bad="count").reports.nodes == 952


def test_a_message_that_is_sent_twice_counts_once_and_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = message(ALL, report=1), message(ALL, report=1)
    again = json.dumps(dict(reversed(json.loads(first).items())))
    seen: list[tuple[str, dict[str, float]]] = []
    stop = metrics.subscribe(lambda event, values: seen.append((event, values)))
    try:
        counted = ALL.gather([first, b"x", second, first, again], 2, on_bad="count")
    finally:
        stop()
    assert (counted.reports.codes.tolist(), counted.reports.nodes) == ([1, 1], 2)
    assert (counted.repeated, counted.refused) == (2, 1)
    assert ("messages_repeated", {"messages": 2}) in seen
    assert [each.message for each in caplog.records] == [
        "messages that were there before and count once: 2"
    ]
    once = ALL.gather([first, second, first], 2)
    assert replace(once, left_out=tn.LeftOut(refused=1)) == counted.reports
    rows = [message(UNARY, report="01" + "00" * 15)] * 3
    assert len(UNARY.gather(rows, 1)) == 1
    assert ALL.gather([first, second], on_bad="count").repeated == 0


def test_two_reports_under_one_nonce_contradict_each_other() -> None:
    first = message(ALL, report=1)
    other = first.replace(b'"report": 1', b'"report": 2')
    with pytest.raises(CorruptDataError, match=r"^messages\[2\] has the nonce of an earlier"):
        ALL.gather([message(ALL), first, other])
    counted = ALL.gather([first, other, first], 1, on_bad="count")
    assert counted.reports.codes.tolist() == [1]
    assert (counted.refusals["contradictory"], counted.refused, counted.repeated) == (1, 1, 1)


NOON = datetime(2030, 1, 1, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


def test_an_expired_plan_makes_and_takes_no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    until = tn.Plan(ALL.oracle, ALL.participation, expires=NOON)
    made = message(until)
    for clock, fine in [(NOON - SECOND, True), (NOON, False), (NOON + SECOND, False)]:

        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None, *, moment: datetime = clock) -> Any:
                return moment.astimezone(tz)

        monkeypatch.setattr("turnout.collecting.plan.datetime", Clock)
        calls: list[Callable[[], Any]] = [
            lambda: until.report("once"),
            lambda: until.gather([made]),
            until._check_current,
        ]
        for call in calls:
            if fine:
                call()
            else:
                with pytest.raises(PlanExpiredError, match="the plan expired at 2030-01-01T12:00"):
                    call()
    # What came in while the plan was valid can be gathered later.
    assert len(until.gather([made], received=NOON - SECOND)) == 1
    with pytest.raises(PlanExpiredError):
        until.gather([made], received=NOON.astimezone(timezone(timedelta(hours=5))))
    with pytest.raises(InvalidValueError, match="received must have a time zone"):
        until.gather([made], received=datetime(2029, 1, 1))
    with pytest.raises(InvalidTypeError, match="received must be a datetime, got '2029'"):
        until.gather([made], received="2029")  # type: ignore[call-overload]


def test_messages_are_of_one_serial_and_one_expiry() -> None:
    plans = [
        ALL,
        tn.Plan(ALL.oracle, ALL.participation, serial=1),
        tn.Plan(ALL.oracle, ALL.participation, serial=2),
        tn.Plan(ALL.oracle, ALL.participation, serial=2, expires=NOON),
    ]
    for made in plans:
        sent = made.report("once")
        for plan in plans:
            gathered = plan.gather([sent or b""], on_bad="count", received=NOON - SECOND)
            assert gathered.refusals["other_plan"] == (made is not plan)
    # The reports mean the same, and go together.
    tallies = [
        plan.oracle.tally(plan.gather([message(plan)], received=NOON - SECOND)) for plan in plans
    ]
    assert sum(tallies[1:], tallies[0]).received == 4


def test_other_arguments_are_refused() -> None:
    for given in (message(), message().decode(), 5, None):
        with pytest.raises(InvalidTypeError, match="messages must be an iterable of messages"):
            HALF.gather(given, 10)  # type: ignore[call-overload]
    for on_bad in ("refuse", "count"):
        with pytest.raises(
            InvalidTypeError, match=r"messages\[1\] must be bytes or text, got a NoneType"
        ):
            HALF.gather([message(), None], 10, on_bad=on_bad)  # type: ignore[call-overload]
    with pytest.raises(InvalidValueError, match="on_bad must be one of 'refuse', 'count'"):
        HALF.gather([], 10, on_bad="drop")  # type: ignore[call-overload]


def test_answers_outside_the_domain_are_refused_of_everybody() -> None:
    plan = tn.Plan(HALF.oracle, tn.Bernoulli(1e-9))
    with pytest.raises(UnknownLabelError):
        plan.report("maybe")
    with pytest.raises(CodeOutsideDomainError):
        tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(1e-9)).report(3)


def test_personal_participation_is_refused() -> None:
    plan = tn.Plan(HALF.oracle, tn.Personalized([0.5]))
    for call in (lambda: plan.report("once"), lambda: plan.gather([], 0)):
        with pytest.raises(InvalidValueError, match="participation must be Everyone"):
            call()


def test_permanent_answers_are_not_drawn_and_forgotten() -> None:
    oracle = tn.Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0)
    with pytest.raises(InvalidValueError, match="oracle must draw every report afresh"):
        tn.Plan(oracle, tn.Everyone()).report(1)


def test_the_seed_is_checked() -> None:
    made = [json.loads(ALL.report("once", seed=3) or b"") for _ in range(20)]
    assert len({each["report"] for each in made}) == 1
    assert len({each["nonce"] for each in made}) == 20
    with pytest.raises(InvalidValueError, match="seed must be an integer"):
        HALF.report("once", seed=-1)


def test_refused_messages_are_told_to_the_hooks() -> None:
    seen: list[tuple[str, dict[str, float]]] = []
    stop = metrics.subscribe(lambda event, values: seen.append((event, values)))
    try:
        ALL.gather([message(ALL), b"x", message(ALL, plan="other")], on_bad="count")
        ALL.gather([message(ALL)], on_bad="count")
    finally:
        stop()
    assert seen == [("messages_refused", {"messages": 2})]


def test_a_byte_order_mark_before_the_first_message_costs_no_message(tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    lines = [message(report=number % 3) for number in range(3)]
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines))
    for mode, encoding in (("rb", None), ("r", "utf-8")):
        with path.open(mode, encoding=encoding) as file:
            assert len(HALF.gather(file, nodes=10)) == 3
