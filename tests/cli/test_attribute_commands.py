"""Commands on several questions of each person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout.errors import InvalidValueError

Run = Callable[..., Any]

BOTH = tn.SplitBudget(6.0, {"sex": ["f", "m"], "age": ["young", "old", "older"]})


def people(number: int) -> list[dict[str, str]]:
    return [
        {"sex": "fm"[place % 2], "age": ("young", "old")[place % 4 == 0]} for place in range(number)
    ]


@pytest.fixture
def by_country(tmp_path: Path) -> Path:
    tallies = {name: BOTH.collect(people(400), seed=place) for place, name in enumerate("AB")}
    path = tmp_path / "grouped.tally"
    path.write_bytes(tn.GroupedTally(["country"], tallies).to_bytes())
    return path


def test_messages_of_all_answers_become_a_table_for_each_question_and_a_page(
    tmp_path: Path, turnout: Run
) -> None:
    plan = tn.Plan(BOTH, tn.Everyone())
    plan.write(tmp_path / "plan.json")
    sent = [plan.report(answers, seed=place) for place, answers in enumerate(people(600))]
    messages, tally = tmp_path / "day.jsonl", tmp_path / "day.tally"
    messages.write_bytes(b"\n".join(one for one in sent if one) + b"\n")
    made = turnout("tally", messages, "--plan", tmp_path / "plan.json", "-o", tally)
    assert made.exit_code == 0, made.stderr
    shown = turnout("estimate", tally)
    assert shown.exit_code == 0, shown.stderr
    assert "sex (2 answers), age (3 answers)" in shown.stdout
    answer = json.loads(turnout("estimate", tally, "--json", "--simultaneous", "sidak").stdout)
    sexes = [record for record in answer["estimates"] if record["attribute"] == "sex"]
    assert len(answer["estimates"]) == 5
    assert all(record["low"] < 0.5 < record["high"] for record in sexes)
    shrunk = json.loads(turnout("estimate", tally, "--json", "--project", "simplex").stdout)
    assert sum(record["frequency"] for record in shrunk["estimates"]) == pytest.approx(2.0)
    page = tmp_path / "page.html"
    assert turnout("report", tally, "-o", page).exit_code == 0
    assert "questions: sex, age" in page.read_text(encoding="utf-8")


def test_groups_have_all_questions_and_pictures_of_one(by_country: Path, turnout: Run) -> None:
    shown = turnout("estimate", by_country)
    assert shown.exit_code == 0, shown.stderr
    assert "question" in shown.stdout
    answer = json.loads(turnout("estimate", by_country, "--json").stdout)
    assert [record["group"]["country"] for record in answer["estimates"]] == ["A"] * 5 + ["B"] * 5
    refused = turnout("estimate", by_country, "--shrink")
    assert refused.exit_code != 0
    assert "do not apply to groups" in refused.stderr.replace("\n", " ")
    estimate = tn.GroupedTally.from_bytes(by_country.read_bytes()).estimate()
    assert estimate.attribute("age")["A"].frequencies.size == 3
    with pytest.raises(InvalidValueError, match=r"estimate\.attribute\(name\)"):
        estimate.plot()


def test_columns_of_a_file_go_into_one_report_each(tmp_path: Path, turnout: Run) -> None:
    rows = people(800)
    lines = [f"{row['sex']},{row['age']},{'AB'[place < 300]}" for place, row in enumerate(rows)]
    file, plan, made = tmp_path / "people.csv", tmp_path / "plan.json", tmp_path / "made.parquet"
    file.write_text("sex,age,country\n" + "\n".join(lines) + "\n")
    tn.Plan(BOTH, tn.Everyone()).write(plan)
    asked = ("randomize", file, "--column", "sex", "--plan", plan, "-o", made)
    done = turnout(*asked, "--joint", "age", "--group-by", "country", "--seed", 1)
    assert done.exit_code == 0, done.stderr
    grouped = tmp_path / "made.tally"
    assert turnout("tally", made, "--group-by", "country", "-o", grouped).exit_code == 0
    estimate = tn.GroupedTally.from_bytes(grouped.read_bytes()).estimate()
    assert [int(nodes) for nodes in estimate.nodes] == [500, 300]
    assert estimate["A"]["age"]["young"].frequency == pytest.approx(0.75, abs=0.1)
    refused = turnout(*asked, "--overwrite")
    assert "name the questions of the plan in their order" in refused.stderr.replace("\n", " ")


def test_intervals_that_are_cut_are_said_to_be(
    by_country: Path, tmp_path: Path, turnout: Run
) -> None:
    one = tmp_path / "one.tally"
    one.write_bytes(BOTH.collect(people(400), seed=1).to_bytes())
    for tally in (one, by_country):
        assert "cut to 0 and 1" in turnout("estimate", tally, "--clip").stdout
        assert "cut to 0 and 1" not in turnout("estimate", tally).stdout
    several = tn.GroupedTally.from_bytes(by_country.read_bytes()).estimate().clip_intervals()
    assert several.attribute("sex").interval(0.9999).low.min() >= 0.0
