"""Joint tables on the command line: from columns to reports, tallies and shares."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout.collecting.report_files import read_reports
from turnout.frequency.joint import ProductDomain

Run = Callable[..., Any]
ROWS = [("f", "no"), ("f", "yes"), ("m", "no"), ("m", "yes"), ("m", "yes")]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    lines = [f"{sex},{vote},7" for sex, vote in ROWS * 400]
    path.write_text("\n".join(["sex,vote,other", *lines, "f,,1"]) + "\n", encoding="utf-8")
    return path


def test_columns_go_into_one_report_and_come_back_as_a_joint_table(
    table: Path, tmp_path: Path, turnout: Run
) -> None:
    target = tmp_path / "joint.parquet"
    options = ("-c", "sex", "--joint", "vote", "-e", 3, "--missing", "drop", "--seed", 5)
    result = turnout("randomize", table, *options, "-o", target)
    assert result.exit_code == 0, result.stderr
    assert "the labels of 'sex', 'vote' are taken from the data" in " ".join(result.stderr.split())
    tally = tmp_path / "joint.tally"
    assert turnout("tally", target, "-o", tally).exit_code == 0
    answer = json.loads(turnout("estimate", tally, "--json", "--sort", "domain").stdout)
    joint = tn.JointTable(3.0, ProductDomain({"sex": ["f", "m"], "vote": ["no", "yes"]}))
    expected = joint.collect(ROWS * 400, seed=5).estimate()
    assert [row["frequency"] for row in answer["estimates"]] == expected.frequencies.tolist()
    assert [row["label"] for row in answer["estimates"]][1] == ["f", "yes"]
    shown = turnout("estimate", tally).stdout
    assert "joint table" in shown
    given = json.loads(turnout("estimate", tally, "--json", "--given", "sex").stdout)
    shares = expected.conditional("vote", given="sex")
    assert [row["share"] for row in given["estimates"]] == shares.shares.ravel().tolist()
    assert given["estimates"][3]["group"] == {"sex": "m"}
    assert given["estimates"][3]["low"] == shares["m", "yes"].low
    picture = tmp_path / "shares.png"
    drawn = turnout("estimate", tally, "--given", "sex", "--of", "vote", "--plot", picture)
    assert "of vote given sex" in drawn.stdout
    assert picture.exists()
    plan = tmp_path / "plan.json"
    tn.Plan(joint, tn.Everyone()).write(plan)
    again = tmp_path / "again.parquet"
    by_plan = ("-c", "sex", "--joint", "vote", "--plan", plan, "--missing", "drop", "--seed", 5)
    assert turnout("randomize", table, *by_plan, "-o", again).exit_code == 0
    assert read_reports(again) == read_reports(target)


def test_columns_that_do_not_go_together_are_refused(
    table: Path, tmp_path: Path, turnout: Run
) -> None:
    target = tmp_path / "joint.parquet"
    start = ("randomize", table, "-o", target, "--missing", "drop", "-c")
    one, two = ("sex", "-e", 1), ("sex", "--joint", "vote")
    for given, message in (
        ((*two, "-e", 1, "--labels", "f,m"), "is for one question"),
        (("sex", "--joint", "sex", "-e", 1), "column must name different columns"),
        (("sex", "--joint", "height", "-e", 1), "height"),
    ):
        result = turnout(*start, *given)
        assert result.exit_code != 0
        assert message in " ".join(result.stderr.split())
    plan = tmp_path / "plan.json"
    for oracle, columns, message in (
        (tn.DirectEncoding(1.0, ["f", "m"]), two, "column must name one column"),
        (tn.JointTable(1.0, {"vote": ["no", "yes"], "sex": ["f", "m"]}), two, "in their order"),
        (tn.JointTable(1.0, {"sex": ["f", "m"], "vote": ["no", "yes"]}), one[:1], "questions"),
    ):
        tn.Plan(oracle, tn.Everyone()).write(plan)
        result = turnout(*start, *columns, "--plan", plan)
        assert result.exit_code == 1
        assert message in " ".join(result.stderr.split())
    assert not target.exists()


def test_shares_among_others_need_a_joint_table(tmp_path: Path, turnout: Run) -> None:
    tally = tmp_path / "plain.tally"
    tally.write_bytes(tn.DirectEncoding(1.0, 2).simulate([3, 4]).to_bytes())
    result = turnout("estimate", tally, "--given", "sex")
    assert result.exit_code == 1
    assert "needs the tally of a joint table" in " ".join(result.stderr.split())
    three = tn.JointTable(1.0, {"a": 2, "b": 2, "c": 2}).simulate([5] * 8)
    tally.write_bytes(three.to_bytes())
    for options, message in (
        (("--given", "a"), "must say which question is meant: one of 'b', 'c'"),
        (("--given", "z", "--of", "a"), "given must be one of"),
        (("--of", "a"), "belongs to --given"),
        (("--given", "a", "--shrink"), "takes no --shrink"),
    ):
        result = turnout("estimate", tally, *options)
        assert result.exit_code != 0
        assert message in " ".join(result.stderr.split())
