"""``turnout tally`` of files of device messages, of any kind of plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.collecting.report_files import write_reports
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
    assert "repeated 2, sent again; each counts once" in words
    assert "improbable 1 " in words
    target.unlink()
    result = turnout(*arguments, "--on-bad", "refuse")
    assert result.exit_code == 1
    assert f"{one}: messages[6] is no message of turnout" in result.stderr
    assert not target.exists()


def test_what_messages_need_is_said(plan_file: Path, tmp_path: Path, turnout: Run) -> None:
    day, target = write(tmp_path / "day.jsonl", sent(PLANS["direct"])), tmp_path / "day.tally"
    result = turnout("tally", day, "-o", target)
    assert result.exit_code == 1
    assert f"{day}: messages need their plan" in result.stderr
    assert "--plan FILE" in result.stderr
    result = turnout("tally", day, "--plan", plan_file, "-o", target)
    assert result.exit_code == 1
    assert "pass with --nodes how many people were asked" in result.stderr
    few = turnout("tally", day, "--plan", plan_file, "--nodes", 1, "-o", target)
    assert few.exit_code == 1
    assert "nodes must be at least the number of messages" in few.stderr
    whole = ("--plan", plan_file, "--nodes", 40)
    assert "--group-by" in turnout("tally", day, *whole, "--group-by", "x", "-o", target).stderr
    assert (
        "no pseudonyms"
        in turnout("tally", day, *whole, "--duplicates", "first", "-o", target).stderr
    )
    assert "is duplicated" in turnout("tally", day, day, *whole, "-o", target).stderr
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


def test_messages_that_carry_no_groups_are_refused_with_the_way_out(
    tmp_path: Path, plan_file: Path, turnout: Run
) -> None:
    day = write(tmp_path / "day.jsonl", sent(PLANS["direct"], 5))
    target = tmp_path / "day.tally"
    result = turnout(
        "tally", day, "--plan", plan_file, "--nodes", 5, "--group-by", "region", "-o", target
    )
    assert result.exit_code == 1
    assert "has no group 'region'" in result.stderr
    assert "Pass --by-file to make each file a group" in result.stderr
    assert not target.exists()


def test_groups_that_messages_carry_are_kept(tmp_path: Path, turnout: Run) -> None:
    plan = tn.Plan(
        tn.DirectEncoding(2.0, ["no", "yes"]), tn.Everyone(), groups={"region": ["N", "S"]}
    )
    plan.write(tmp_path / "plan.json")
    days = {"2026-03-02": ("N", "S"), "2026-03-03": ("N", "N")}
    for day, regions in days.items():
        messages = [plan.report("yes", group=region) or b"" for region in regions]
        write(tmp_path / f"{day}.jsonl", messages)
    start = ("tally", tmp_path / "*.jsonl", "--plan", tmp_path / "plan.json")
    target = tmp_path / "out.tally"
    found = {}
    for name, options in {
        "all": (),
        "region": ("--group-by", "region"),
        "both": ("--group-by", "region", "--by-file", "day"),
    }.items():
        assert turnout(*start, *options, "-o", target).exit_code == 0
        data = target.read_bytes()
        found[name] = read_tally(data) if name == "all" else tn.GroupedTally.from_bytes(data)
    first, second = (date.fromisoformat(day) for day in days)
    assert found["all"].received == 4
    assert {key: one.received for key, one in found["region"].items()} == {("N",): 3, ("S",): 1}
    assert found["both"].names == ("region", "day")
    assert {key: one.received for key, one in found["both"].items()} == {
        ("N", first): 1, ("N", second): 2, ("S", first): 1
    }  # fmt: skip
    refused = turnout(*start, "--nodes", 4, "-o", target)
    assert refused.exit_code == 1
    assert "turnout.Collector" in refused.stderr


def days_of_messages(folder: Path) -> dict[date, list[bytes]]:
    """Three days of 40 people, and a message of the first day that came in again on the second."""
    days = {date(2026, 3, day): sent(PLANS["direct"], 40) for day in (2, 3, 4)}
    first, second, _ = days
    folder.mkdir()
    for day, messages in days.items():
        again = [days[first][0], b"{}"] if day == second else []
        write(folder / f"{day}.jsonl", [*again, *messages])
    return days


def test_a_folder_of_messages_becomes_a_series_by_day(
    tmp_path: Path, plan_file: Path, turnout: Run
) -> None:
    plan, target, folder = PLANS["direct"], tmp_path / "days.tally", tmp_path / "messages"
    days = days_of_messages(folder)
    start = ("tally", folder, "--plan", plan_file, "--by-file", "day", "-o", target)
    result = turnout(*start, "--nodes", 40, "--nodes", "2026-03-04=50", "--json")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["groups"] == {"columns": ["day"], "number": 3}
    assert (answer["files"], answer["nodes"]) == (3, 130)
    assert answer["messages"]["repeated"] == 1
    assert answer["messages"]["refusals"]["malformed"] == 1
    found = tn.GroupedTally.from_bytes(target.read_bytes())
    for day, messages in days.items():
        nodes = 50 if day == date(2026, 3, 4) else 40
        bad = [b"{}"] if day == date(2026, 3, 3) else []
        expected = plan.gather([*messages, *bad], nodes, on_bad="count")
        assert found[day] == plan.oracle.tally(expected)
        assert found[day].left_out.refused == len(bad)
    assert found.estimate().series().times == list(days)
    page = tmp_path / "days.html"
    assert turnout("report", target, "-o", page).exit_code == 0
    assert "2026-03-02 to 2026-03-04" in page.read_text(encoding="utf-8")
    # The same messages in folders of their days, which --group-by takes.
    for day in days:
        place = tmp_path / "folders" / f"day={day}"
        place.mkdir(parents=True)
        (folder / f"{day}.jsonl").rename(place / "all.jsonl")
    other = tmp_path / "other.tally"
    nodes = ("--nodes", 40, "--nodes", "2026-03-04=50")
    again = ("tally", tmp_path / "folders", "--plan", plan_file, "--group-by", "day", *nodes)
    assert turnout(*again, "-o", other).exit_code == 0
    assert tn.GroupedTally.from_bytes(other.read_bytes()) == found


def test_the_people_asked_are_said_for_every_day(
    tmp_path: Path, plan_file: Path, turnout: Run
) -> None:
    folder, target = tmp_path / "messages", tmp_path / "days.tally"
    days_of_messages(folder)
    start = ("tally", folder, "--plan", plan_file, "-o", target, "--by-file", "day")
    for options, code, words in (
        ((), 1, "2026-03-02.jsonl: pass with --nodes how many people were asked"),
        (("--nodes", "2026-03-02=40"), 1, "2026-03-03.jsonl: pass with --nodes"),
        (("--nodes", 40, "--nodes", "2026-03-05=1"), 1, "no group '2026-03-05'; the groups"),
        (("--nodes", 1), 1, "2026-03-02.jsonl: --nodes must be at least the number of messages"),
        (("--nodes", "many"), 2, "'many' is not a number of people"),
        (("--nodes", -1), 2, "'-1' is not a number of people"),
        (("--nodes", 1, "--nodes", 2), 2, "repeats a number"),
        (("--nodes", 40, "--on-bad", "refuse"), 1, "2026-03-03.jsonl: messages[1] is no message"),
    ):
        result = turnout(*start, *options)
        assert result.exit_code == code, (options, result.stderr)
        assert words in " ".join(result.stderr.replace("│", "").split()), result.stderr
    result = turnout(*start[:-2], "--nodes", "2026-03-02=40")
    assert "no group '2026-03-02'; the inputs have no groups" in result.stderr
    assert not target.exists()


def test_a_folder_with_messages_and_reports_is_refused(
    tmp_path: Path, plan_file: Path, turnout: Run
) -> None:
    folder, target = tmp_path / "both", tmp_path / "all.tally"
    days_of_messages(folder)
    reports = PLANS["direct"].oracle.randomize(["no"], participation=HALF)
    write_reports(reports, folder / "a.parquet")
    result = turnout("tally", folder, "--plan", plan_file, "--nodes", 40, "-o", target)
    assert result.exit_code == 1
    assert "contains both report files and message files" in result.stderr
