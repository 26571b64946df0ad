"""``turnout tally`` of files of device messages, of any kind of plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.collecting.tally import read_tally
from turnout.frequency.longitudinal import Memoized

Run = Callable[..., Any]
HALF = tn.Bernoulli(0.5)
PLANS = {
    "direct": tn.Plan(tn.DirectEncoding(2.0, tn.Domain(["no", "yes"])), HALF),
    "rows": tn.Plan(tn.OptimizedUnaryEncoding(2.0, tn.Domain(["no", "yes"])), HALF),
    "mean": tn.Plan(tn.mean.Piecewise(2.0, (0, 24)), HALF),
}


def write(path: Path, messages: list[bytes]) -> Path:
    path.write_bytes(b"".join(message + b"\n" for message in messages))
    return path


def sent(plan: tn.Plan, number: int = 40) -> list[bytes]:
    value = 7.5 if plan.domain == tn.Bounds(0, 24) else "yes"
    made = [plan.report(value, seed=seed) for seed in range(number)]
    return [message for message in made if message is not None]


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    PLANS["direct"].write(path)
    return path


@pytest.mark.parametrize("name", PLANS)
def test_a_file_of_messages_is_counted_under_its_plan(
    name: str, tmp_path: Path, turnout: Run
) -> None:
    plan, file, target = PLANS[name], tmp_path / "plan.json", tmp_path / "day.tally"
    plan.write(file)
    messages = sent(plan)
    day = write(tmp_path / "day.jsonl", messages)
    result = turnout("tally", day, "--plan", file, "--nodes", 40, "-o", target)
    assert result.exit_code == 0, result.stderr
    tally = read_tally(target.read_bytes())
    assert tally == plan.oracle.tally(plan.gather(messages, 40))
    assert (tally.nodes, tally.received) == (40, len(messages))
    assert turnout("estimate", target, "--json").exit_code == 0


def test_messages_of_permanent_answers_are_counted(tmp_path: Path, turnout: Run) -> None:
    memoized = Memoized(tn.DirectEncoding(2.0, tn.Domain(["no", "yes"])), first_epsilon=1.0)
    plan = tn.Plan(memoized, tn.Everyone())
    file, target = tmp_path / "memo.json", tmp_path / "day.tally"
    plan.write(file)
    messages = [memoized.client().message(plan, "yes") for _ in range(20)]
    day = write(tmp_path / "day.jsonl", [message for message in messages if message])
    result = turnout("tally", day, "--plan", file, "-o", target)
    assert result.exit_code == 0, result.stderr
    assert read_tally(target.read_bytes()).received == 20
    assert turnout("estimate", target).exit_code == 0


def test_what_is_refused_repeated_and_improbable_is_counted(tmp_path: Path, turnout: Run) -> None:
    plan = tn.Plan(tn.OptimizedUnaryEncoding(1.0, 64), tn.Everyone())
    file, target = tmp_path / "plan.json", tmp_path / "day.tally"
    plan.write(file)
    good = [plan.report(3, seed=seed) or b"" for seed in range(5)]
    full = json.loads(good[0])
    full["nonce"], full["report"] = "0" * 32, "ff" * (len(full["report"]) // 2)
    other = PLANS["direct"].report("yes", seed=3) or sent(PLANS["direct"])[0]
    one = write(tmp_path / "one.jsonl", [*good, json.dumps(full).encode(), b"hello", other])
    two = write(tmp_path / "two.ndjson", [*good[:2], b""])
    arguments = ("tally", one, two, "--plan", file, "-o", target)
    answer = json.loads(turnout(*arguments, "--json").stdout)
    counted = answer["messages"]
    assert counted["refusals"]["malformed"] == 2
    assert counted["refusals"]["other_plan"] == 1
    assert (counted["read"], counted["counted"], counted["repeated"]) == (11, 6, 2)
    assert counted["improbable"] == 1
    assert (answer["nodes"], answer["received"], answer["files"]) == (6, 6, 2)
    assert tn.Plan.from_dict(answer["plan"]) == plan
    words = " ".join(turnout(*arguments).stdout.split())
    assert "refused 3: 2 malformed, 1 other plan" in words
    assert "repeated 2, which were sent again and count once" in words
    assert "improbable 1, " in words
    target.unlink()
    result = turnout(*arguments, "--on-bad", "refuse")
    assert result.exit_code == 1
    assert f"{one} and 1 more: messages[6] is no message of turnout" in result.stderr
    assert not target.exists()


def test_what_messages_need_is_said(plan_file: Path, tmp_path: Path, turnout: Run) -> None:
    day, target = write(tmp_path / "day.jsonl", sent(PLANS["direct"])), tmp_path / "day.tally"
    result = turnout("tally", day, "-o", target)
    assert result.exit_code == 1
    assert f"{day}: is a file of messages" in result.stderr
    assert "--plan FILE" in result.stderr
    result = turnout("tally", day, "--plan", plan_file, "-o", target)
    assert result.exit_code == 1
    assert "--nodes must say how many people were asked" in result.stderr
    few = turnout("tally", day, "--plan", plan_file, "--nodes", 1, "-o", target)
    assert few.exit_code == 1
    assert "nodes must be at least the number of messages" in few.stderr
    whole = ("--plan", plan_file, "--nodes", 40)
    assert "--group-by" in turnout("tally", day, *whole, "--group-by", "x", "-o", target).stderr
    assert (
        "no pseudonyms"
        in turnout("tally", day, *whole, "--duplicates", "first", "-o", target).stderr
    )
    assert "given twice" in turnout("tally", day, day, *whole, "-o", target).stderr
    assert "is an input" in turnout("tally", day, *whole, "-o", plan_file).stderr
    assert not target.exists()


def test_options_of_messages_are_refused_without_them(
    plan_file: Path, tmp_path: Path, turnout: Run
) -> None:
    other = tmp_path / "other.tally"
    other.write_bytes(PLANS["direct"].oracle.collect(["no"]).to_bytes())
    target = tmp_path / "all.tally"
    for option in (("--nodes", 3), ("--received", "2030-01-01T00:00:00Z"), ("--public-key", "a")):
        assert turnout("tally", other, *option, "-o", target).exit_code == 2
    result = turnout("tally", other, "--plan", plan_file, "-o", target)
    assert result.exit_code == 1
    assert f"{other} was made under another plan: participation" in result.stderr


def test_messages_add_up_with_tallies(plan_file: Path, tmp_path: Path, turnout: Run) -> None:
    plan = PLANS["direct"]
    day, target = write(tmp_path / "day.jsonl", sent(plan)), tmp_path / "all.tally"
    before = plan.oracle.collect(["no"] * 50, participation=HALF)
    (tmp_path / "before.tally").write_bytes(before.to_bytes())
    options = ("--plan", plan_file, "--nodes", 40)
    result = turnout("tally", day, tmp_path / "before.tally", *options, "-o", target)
    assert result.exit_code == 0, result.stderr
    assert read_tally(target.read_bytes()).nodes == 90


def test_a_plan_that_has_expired_is_taken_for_messages_of_before(
    tmp_path: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = tn.DirectEncoding(2.0, 2)
    plan = tn.Plan(oracle, tn.Everyone(), expires=datetime(2020, 1, 1, tzinfo=timezone.utc))
    file, target = tmp_path / "plan.json", tmp_path / "day.tally"
    plan.write(file)
    message = {
        "format": "turnout-report", "version": 1, "plan": plan.fingerprint,
        "nonce": np.arange(16, dtype=np.uint8).tobytes().hex(), "report": 1,
    }  # fmt: skip
    day = write(tmp_path / "day.jsonl", [json.dumps(message).encode()])
    arguments = ("tally", day, "--plan", file, "-o", target)
    result = turnout(*arguments)
    assert result.exit_code == 1
    assert "expired" in result.stderr
    assert "--received" in result.stderr
    assert turnout(*arguments, "--received", "2019-12-31T00:00:00Z").exit_code == 0
    assert turnout(*arguments, "--received", "yesterday").exit_code == 2


def test_messages_have_no_groups_and_the_refusal_says_so(
    tmp_path: Path, plan_file: Path, turnout: Run
) -> None:
    day = write(tmp_path / "day.jsonl", sent(PLANS["direct"], 5))
    result = turnout(
        "tally", day, "--plan", plan_file, "--nodes", 5, "--group-by", "region", "-o", day
    )
    assert result.exit_code == 1
    assert "is a file of messages, which say nothing of groups" in result.stderr
