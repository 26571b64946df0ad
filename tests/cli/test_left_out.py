"""What is left out of a collection is counted, and arrives wherever its numbers are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import turnout as tn
from turnout.collecting.report_files import ReportFile, read_reports
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.pipeline.sources import open_source

Run = Callable[..., Any]

#: Of 9,000 people 4,126 owe nothing and say "None", which stands for no answer; 748 in a region of
#: which nobody says anything else.
COUNTS = {"None": 4126, "A little": 3500, "A lot": 1374}
PEOPLE = sum(COUNTS.values())
DROPPED = tn.LeftOut(unanswered=4126).to_dict()


@pytest.fixture
def survey_file(tmp_path: Path) -> Path:
    answers = [text for text, number in COUNTS.items() for _ in range(number)]
    regions = np.random.default_rng(1).choice(["N", "S"], PEOPLE).tolist()
    regions[:748] = ["silent"] * 748
    path = tmp_path / "survey.csv"
    rows = zip(answers, regions, strict=True)
    path.write_text("Debt (EUR),region\n" + "".join(f"{one},{two}\n" for one, two in rows))
    return path


def said(result: Any) -> str:
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stdout.split())


OPTIONS = ("-c", "Debt (EUR)", "-e", 3, "--missing", "drop", "--seed", 1)


def test_a_survey_says_how_many_it_lost_and_asks_none_of_the_rest(
    survey_file: Path, turnout: Run
) -> None:
    shown = said(turnout("survey", survey_file, *OPTIONS))
    assert "has 9,000 rows. Left out: 4,126 without an answer." in shown
    assert "What follows is about the other 4,874." in shown
    assert "4,874 people have an answer in 'Debt (EUR)' and 4,874 reported" in shown
    assert "asked" not in shown
    answer = json.loads(turnout("survey", survey_file, *OPTIONS, "--json").stdout)
    assert (answer["nodes"], answer["left_out"]) == (4874, DROPPED)
    result = tn.survey(survey_file, "Debt (EUR)", epsilon=3.0, missing="drop", seed=1)
    assert result.left_out == result.tally.left_out == tn.LeftOut(unanswered=4126)
    # Of those who count; with "None" as a label it is the share of all.
    assert result.estimate["A lot"].low < 1374 / 4874 < result.estimate["A lot"].high
    stated = tn.survey(survey_file, "Debt (EUR)", epsilon=3.0, labels=list(COUNTS), seed=1)
    assert stated.estimate["A lot"].low < 1374 / 9000 < stated.estimate["A lot"].high
    assert not stated.left_out


@pytest.mark.parametrize("joint", [False, True])
def test_the_tally_that_a_survey_writes_says_it_on_its_page(
    survey_file: Path, tmp_path: Path, turnout: Run, joint: bool
) -> None:
    tally, page = tmp_path / "a.tally", tmp_path / "page.html"
    together = ("--joint", "region") if joint else ()
    shown = said(turnout("survey", survey_file, *OPTIONS, *together, "-o", tally))
    assert "has 9,000 rows. Left out: 4,126 without an answer." in shown
    said(turnout("report", tally, "-o", page))
    assert "<dd>4,126 without an answer</dd>" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("groups", [(), ("--group-by", "region")])
@pytest.mark.parametrize("target", ["reports.parquet", "reports"])
def test_what_a_job_drops_is_on_the_page(
    survey_file: Path, tmp_path: Path, turnout: Run, target: str, groups: tuple[str, ...]
) -> None:
    reports, tally, page = (tmp_path / name for name in (target, "a.tally", "page.html"))
    made = said(turnout("randomize", survey_file, *OPTIONS, *groups, "-o", reports))
    assert "left out 4,126 without an answer" in made
    [file] = [reports] if reports.is_file() else sorted(reports.glob("part-*"))
    with ReportFile(file) as opened:
        assert opened.header.left_out.to_dict() == DROPPED
    counted = turnout("tally", reports, *groups, "-o", tally, "--json")
    assert json.loads(counted.stdout)["left_out"] == DROPPED
    estimated = turnout("estimate", tally, "--json")
    assert json.loads(estimated.stdout)["left_out"] == DROPPED
    assert "left out 4,126 without an answer" in said(turnout("estimate", tally))
    said(turnout("report", tally, "-o", page))
    text = page.read_text(encoding="utf-8")
    assert "<dd>4,126 without an answer</dd>" in text
    assert "Left out, and not in any number below: 4,126 without an answer." in text
    assert "people asked" not in text
    if groups:
        found = tn.GroupedTally.from_bytes(tally.read_bytes())
        # A group of which nobody answers is there, with all who are left out of it.
        silent = found["silent"]
        assert (silent.nodes, silent.left_out) == (0, tn.LeftOut(unanswered=748))
        assert found.select(region="silent").left_out == tn.LeftOut(unanswered=748)
        assert sum(each.left_out.unanswered for each in found.values()) == 4126


def test_tallies_of_two_regions_add_up_what_each_left_out(
    survey_file: Path, tmp_path: Path, turnout: Run
) -> None:
    tallies = []
    for number in range(2):
        reports, tally = tmp_path / f"{number}.parquet", tmp_path / f"{number}.tally"
        fixed = ("--labels", "A little,A lot", "-o", reports)
        said(turnout("randomize", survey_file, *OPTIONS[:-1], number, *fixed))
        said(turnout("tally", reports, "-o", tally))
        tallies.append(tally)
    both = tmp_path / "both.tally"
    answer = json.loads(turnout("tally", *tallies, "-o", both, "--json").stdout)
    assert (answer["nodes"], answer["left_out"]["unanswered"]) == (2 * 4874, 2 * 4126)


def rows(number: int) -> pa.Table:
    """People with two rows in ten, an answer in nine of ten and a group in nineteen of twenty."""
    place = np.arange(number)
    votes = np.where(place % 10 == 3, "", np.where(place % 3 == 0, "yes", "no"))
    groups = np.where(place % 20 == 7, None, np.where(place % 2 == 0, "N", "S"))
    who = np.where(place % 5 == 4, place - 1, place)
    return pa.table({"vote": votes.tolist(), "g": groups.tolist(), "who": who})


#: A row may lack its answer and its group: then it lacks a group.
EXPECTED = tn.LeftOut(unanswered=100, ungrouped=50, duplicates=200)


@pytest.mark.parametrize("grouped", [False, True])
def test_every_road_from_rows_to_a_tally_counts_the_same(tmp_path: Path, grouped: bool) -> None:
    oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
    options: dict[str, Any] = {"missing": "drop", "id_column": "who", "duplicates": "first"}
    table, expected = rows(1000), EXPECTED
    if grouped:
        options["group_by"] = "g"
    else:
        expected = tn.LeftOut(unanswered=100, duplicates=200)
    answers = tn.pipeline.scan(open_source(table, block_rows=64), "vote", **options)
    reports = tn.pipeline.randomize(answers, oracle, tmp_path / "job", participation=0.5, seed=1)
    assert reports.totals is not None
    assert (reports.totals.left_out, reports.totals.rows) == (expected, 1000)
    names = "g" if grouped else None
    collected = tn.pipeline.collect(answers, oracle, participation=0.5, seed=1)
    assert reports.tally(group_by=names) == collected
    assert collected.left_out == reports.tally().left_out == expected
    assert collected.nodes + expected.total == 1000
    if not grouped:
        memory = oracle.randomize(answers, participation=0.5, seed=1)
        assert memory.left_out == oracle.tally(memory).left_out == expected
        assert len(reports) == 2
        assert tn.Reports.concatenate(map(read_reports, reports.paths)) == memory
        assert oracle.collect(answers, participation=0.5, seed=1) == collected
    else:
        assert isinstance(collected, tn.GroupedTally)
        assert collected.of_no_group == tn.LeftOut(ungrouped=50, duplicates=200)
        assert {key[0]: each.left_out.unanswered for key, each in collected.items()} == {
            "N": 0, "S": 100
        }  # fmt: skip
        again = tn.GroupedTally.from_bytes(collected.to_bytes())
        assert again == collected
        others = tn.pipeline.collect(answers, oracle, participation=0.5, seed=2)
        assert (again + others).left_out == expected + expected
        assert again.total.estimate().left_out == expected
        assert repr(again).count("50 without a group") == 1


def test_tables_of_groups_say_how_many_of_each_are_left_out() -> None:
    answers = tn.pipeline.scan(rows(1000), "vote", missing="drop", group_by="g")
    found = tn.pipeline.collect(answers, tn.DirectEncoding(2.0, tn.Domain(["no", "yes"])), seed=1)
    table = found.estimate().to_pandas()
    assert dict(zip(table["g"], table["left_out"], strict=True)) == {"N": 0, "S": 100}
    numbers = tn.survey(
        pa.table({"x": [1.0, None] * 50, "g": ["N", "S", "N", "N"] * 25}),
        "x", epsilon=2.0, by="g", bounds=(0, 2), missing="drop",
    )  # fmt: skip
    assert {row["group"]["g"]: row["left_out"] for row in numbers.to_records()} == {
        "N": 25,
        "S": 25,
    }
    assert numbers.tally["S"].nodes == 0


def test_rounds_say_what_was_left_out_of_all_of_them(tmp_path: Path, turnout: Run) -> None:
    people, state = tmp_path / "people.csv", tmp_path / "search.json"
    people.write_text("value\n" + "7\n" * 3000 + "\n" * 11)
    said(turnout("rounds", "hitters", "-e", 6, "--bits", 4, "--step", 2, "-o", state))
    for number in (0, 1, 2):
        plan = tmp_path / f"search.round-{number}.json"
        if not plan.exists():
            break
        reports, tally = tmp_path / f"{number}.parquet", tmp_path / f"{number}.tally"
        options = ("--column", "value", "--missing", "drop", "--seed", number)
        said(turnout("randomize", people, *options, "--plan", plan, "-o", reports))
        said(turnout("tally", reports, "-o", tally))
        said(turnout("rounds", "close", state, tally))
    answer = json.loads(turnout("rounds", "show", state, "--json").stdout)
    assert answer["finished"]
    assert answer["left_out"] == tn.LeftOut(unanswered=11 * number).to_dict()
    assert [each["left_out"]["unanswered"] for each in answer["rounds"]] == [11] * number
    assert f"left out {11 * number} without an answer" in said(turnout("rounds", "show", state))


def test_a_row_without_answer_and_group_is_one_row() -> None:
    table = pa.table({"vote": ["yes", None, None, "no"], "g": ["N", None, "N", None]})
    answers = tn.pipeline.scan(table, "vote", missing="drop", group_by="g")
    oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
    found = tn.pipeline.collect(answers, oracle)
    assert (found.nodes, found.left_out) == (1, tn.LeftOut(unanswered=1, ungrouped=2))


def test_numbers_that_cannot_be_are_refused() -> None:
    for wrong in (-1, 2**64):
        with pytest.raises(InvalidValueError, match="unanswered must be an integer from 0 to"):
            tn.LeftOut(unanswered=wrong)
    for wrong in (1.5, True, "1", None):
        with pytest.raises(InvalidTypeError, match="refused must be an integer"):
            tn.LeftOut(refused=wrong)  # type: ignore[arg-type]
    for wrong in ({}, None, 3, {"unanswered": 1}, {**DROPPED, "refused": -1}, {**DROPPED, "x": 1}):
        with pytest.raises(CorruptDataError, match="not the numbers of left-out rows:"):
            tn.LeftOut.from_dict(wrong)
    assert tn.LeftOut.from_dict(DROPPED).to_dict() == DROPPED
    tally = tn.DirectEncoding(1.0, 2).collect([0, 1])
    with pytest.raises(InvalidTypeError, match="left_out must be a LeftOut object"):
        tn.Tally(tally.plan, tally.sums, 2, 2, left_out=3)  # type: ignore[arg-type]
