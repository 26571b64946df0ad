"""Messages of single people: made, gathered, and refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout import metrics
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    UnknownLabelError,
    UnsupportedVersionError,
)
from turnout.frequency.candidates import registered
from turnout.report_messages import REFUSALS, Gathered

DOMAIN = tn.Domain(["never", "once", ("often", 3), 4.5, None])
HALF = tn.Plan(tn.DirectEncoding(1.0, DOMAIN), tn.Bernoulli(0.5))
ALL = tn.Plan(tn.DirectEncoding(1.0, DOMAIN), tn.Everyone())
UNARY = tn.Plan(tn.OptimizedUnaryEncoding(1.0, 100), tn.Bernoulli(0.5))


def message(plan: tn.Plan = HALF, /, **changes: Any) -> bytes:
    """A message of the first answer, with members changed; ... leaves one out."""
    members = {"format": "turnout-report", "version": 1, "plan": plan.fingerprint, "report": 0}
    members.update(changes)
    kept = {name: value for name, value in members.items() if value is not ...}
    return json.dumps(kept).encode()


def test_a_message_never_changes() -> None:
    made = ALL.report(("often", 3), seed=7)
    code = ALL.oracle.randomize([("often", 3)], seed=7).codes[0]
    assert made == (
        b'{"format":"turnout-report","version":1,"plan":"%s","report":%d}'
        % (ALL.fingerprint.encode(), code)
    )
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


def test_some_are_silent_and_nobody_is_drawn_twice_alike() -> None:
    messages = [HALF.report("once") for _ in range(2000)]
    sent = [each for each in messages if each]
    # 1000 +- 22.4: 4.9 standard deviations at 1e-6.
    assert abs(len(sent) - 1000) < 110
    assert len(set(sent)) == 5
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
    "no JSON": (b"{", "malformed", CorruptDataError, "is no message of turnout: b'{'"),
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
    "version true": (message(version=True), "other_version", UnsupportedVersionError, "version Tr"),
    "version 1.0": (message(version=1.0), "other_version", UnsupportedVersionError, "version 1.0"),
    "plan": (message(ALL), "other_plan", PlanMismatchError, "was made under the plan"),
    "plan null": (message(plan=None), "other_plan", PlanMismatchError, "under the plan None"),
    "report text": (message(report="0"), "malformed", CorruptDataError, "from 0 to 255, got '0'"),
    "report true": (message(report=True), "malformed", CorruptDataError, "from 0 to 255, got True"),
    "report 1.0": (message(report=1.0), "malformed", CorruptDataError, "from 0 to 255, got 1.0"),
    "report negative": (message(report=-1), "malformed", CorruptDataError, "to 255, got -1"),
    "report 256": (message(report=256), "malformed", CorruptDataError, "to 255, got 256"),
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
    assert counted.reports == HALF.gather([*messages[:2], messages[3]], nodes=10)
    assert counted.refusals == {each: int(each == kind) for each in REFUSALS}
    assert counted.refused == 1


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
    none = HALF.gather([message(report=9)] * 7, 7, on_bad="count")
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
    messages = [message(ALL)] * 3
    for nodes in (2, 4):
        with pytest.raises(InvalidValueError, match="nodes must equal the number of messages 3"):
            ALL.gather(messages, nodes)
    with pytest.raises(InvalidValueError, match="nodes must be at least the number of messages 3"):
        HALF.gather([message()] * 3, 2)
    with pytest.raises(InvalidValueError, match="nodes must say how many people were asked"):
        HALF.gather([message()] * 3)
    with pytest.raises(InvalidTypeError, match="nodes must be an integer"):
        HALF.gather([], 1.5)  # type: ignore[arg-type]
    assert HALF.gather([], 0).nodes == 0
    assert ALL.gather([]).nodes == 0
    # Who is refused has no report: where all report there is no node without one.
    assert ALL.gather([*messages, b"x"], 4, on_bad="count").reports.nodes == 3
    assert HALF.gather([message(), b"x"], 4, on_bad="count").reports.nodes == 4


def test_other_arguments_are_refused() -> None:
    for given in (message(), message().decode(), 5, None):
        with pytest.raises(InvalidTypeError, match="messages must be an iterable of messages"):
            HALF.gather(given, 10)  # type: ignore[call-overload]
    for on_bad in ("refuse", "count"):
        with pytest.raises(
            InvalidTypeError, match=r"messages\[1\] must be bytes or text, got None"
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
    assert HALF.report("once", seed=3) == HALF.report("once", seed=3)
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
