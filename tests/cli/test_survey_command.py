"""``turnout survey`` shows what ``turnout.survey`` gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import turnout as tn


def table(rows: int) -> pl.DataFrame:
    random = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "vote": random.choice(["maybe", "no", "yes"], rows, p=[0.1, 0.6, 0.3]),
            "region": random.choice(["N", "S"], rows),
            "age": random.uniform(20, 80, rows).round(1),
        }
    )


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_shows_the_same(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.parquet"
    table(3000).write_parquet(path)
    options = ("-c", "vote", "-e", 2, "-p", 0.5, "--seed", 1)
    found = json.loads(turnout("survey", path, *options, "--json").stdout)
    result = tn.survey(path, "vote", epsilon=2.0, participation=0.5, seed=1)
    assert [each["frequency"] for each in found["estimates"]] == [
        record["frequency"]
        for record in sorted(result.to_records(), key=lambda record: -record["frequency"])
    ]
    result = turnout("survey", path, *options, "--by", "region")
    shown = result.stdout
    assert shown.count("treated as public") == 1
    assert "public" not in result.stderr
    assert "3,000 people have an answer in 'vote'" in shown
    assert "region" in shown
    number = json.loads(
        turnout("survey", path, "-c", "age", "-e", 2, "--mean", "0:100", "--json").stdout
    )
    assert number["low"] < number["mean"] < number["high"]
    refused = turnout("survey", path, "-c", "age", "-e", 2, "--mean", "0to9")
    assert refused.exit_code == 2
    assert "--mean: 'age': '0to9' is not LOW:HIGH" in " ".join(refused.stderr.split())


def test_a_missing_number_is_read_as_another(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age\n" + 200 * "30\nNA\n")
    options = ("survey", path, "-c", "age", "-e", 2, "--mean", "0:120")
    assert "200 of 400 answers are missing" in turnout(*options).stderr
    assert "400 people have an answer" in turnout(*options, "--missing", 25).stdout
    shown = turnout(*options, "--missing", "drop").stdout
    assert "200 people have an answer" in shown
    assert "has 400 rows. Left out: 200 without an answer." in " ".join(shown.split())
    assert turnout(*options, "--missing", "abc").exit_code == 1


def test_several_columns_and_numbers_are_shown_a_table_each(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.parquet"
    table(3000).write_parquet(path)
    options = ("survey", path, "-c", "vote", "-c", "age", "-e", 2, "--seed", 1)
    options = (*options, "--bounds", "age=0:100", "--labels", "vote=maybe,no,yes")
    found = json.loads(turnout(*options, "--json").stdout)
    result = tn.survey(
        path, ["vote", "age"], epsilon=2.0, bounds={"age": (0, 100)},
        labels={"vote": ["maybe", "no", "yes"]}, seed=1,
    )  # fmt: skip
    assert found["columns"]["age"]["estimates"] == result["age"].to_records()
    shares = {each["label"]: each["frequency"] for each in found["columns"]["vote"]["estimates"]}
    assert shares["no"] == result["vote"].estimate["no"].frequency
    shown = " ".join(turnout(*options).stdout.split())
    assert "3,000 reported one of them, drawn at random" in shown
    assert "median" in shown
    grouped = ("survey", path, "-c", "age", "-e", 2, "--bounds", "0:100", "--by", "region")
    assert turnout(*grouped, "--quantiles", ".5,.9").stdout.count("90 % quantile") == 2
    for wrong in (
        ("--bounds", "0:100"),
        ("--bounds", "age=0:100", "--mean", "age=0:100"),
        ("--labels", "age=1,2", "--mean", "age=0:100"),
        ("--quantiles", ".5"),
        ("--quantiles", "2", "--bounds", "age=0:100"),
    ):
        assert turnout("survey", path, "-c", "vote", "-c", "age", "-e", 2, *wrong).exit_code == 2


def test_aggregators_count(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.parquet"
    table(600).write_parquet(path)
    options = ("survey", path, "-c", "vote", "-e", 1, "--trust", "aggregators", "--seed", 1)
    found = json.loads(turnout(*options, "--json").stdout)
    result = tn.survey(path, "vote", epsilon=1.0, trust="aggregators", seed=1)
    assert {each["label"]: each["count"] for each in found["estimates"]} == {
        each["label"]: each["count"] for each in result.to_records()
    }
    assert "under secret sharing by 3 parties" in " ".join(turnout(*options).stdout.split())
    shown = turnout(*options, "--by", "region").stdout
    assert "in 2 groups" in shown
    assert "maybe" in shown
    hint = " ".join(turnout("survey", path, "-c", "vote", "-e", 1).stdout.split())
    assert "(--trust aggregators)" in hint


def test_options_that_say_nothing_are_refused_before_anything_is_drawn(
    tmp_path: Path, turnout: Any
) -> None:
    path = tmp_path / "a.parquet"
    table(200).write_parquet(path)
    number = ("survey", path, "-c", "age", "-e", 2, "--bounds", "0:100")
    for wrong in (("--clip",), ("--simultaneous", "sidak"), ("--top", 3)):
        refused = turnout(*number, *wrong)
        assert refused.exit_code == 2
        assert wrong[0] in refused.stderr
    mean = ("survey", path, "-c", "age", "-e", 2, "--mean", "0:100")
    assert turnout(*mean, "--clip").exit_code == 2
    assert turnout(*mean, "-c", "vote", "--clip").exit_code == 2
    for delta in ("-1", "2", "nan"):
        options = ("survey", path, "-c", "vote", "-c", "region", "-e", 1, "--delta", delta)
        assert turnout(*options, "--trust", "aggregators").exit_code == 2


def test_programs_learn_what_was_counted_and_how(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"v": [f"x{i % 30}" for i in range(900)], "age": range(900)}).with_columns(
        g=pl.when(pl.col("age") < 300).then(pl.lit("N")).otherwise(pl.lit("S"))
    ).write_parquet(path)
    options = ("survey", path, "-c", "v", "-e", 1, "--by", "g", "--trust", "aggregators")
    options = (*options, "--seed", 1)
    found = json.loads(turnout(*options, "--json", "--simultaneous", "sidak").stdout)
    assert (found["nodes"], found["epsilon"], found["simultaneous"]) == (900, 1.0, "sidak")
    assert [each["nodes"] for each in found["groups"]] == [300, 600]
    assert all("aggregate" in each["plan"]["mechanism"] or each["plan"] for each in found["groups"])
    assert all("if\n" in each["guarantee"] for each in found["groups"])
    assert len(found["estimates"]) == 60
    alone = json.loads(turnout(*options, "--json").stdout)
    assert found["estimates"][0]["high"] > alone["estimates"][0]["high"]
    shown = turnout(*options, "--top", 2).stdout
    assert sum(line.split()[:1] in (["N"], ["S"]) for line in shown.splitlines()) == 2
    assert "28 of 30 labels are left out in each group" in shown
    number = ("survey", path, "-c", "age", "-e", 2, "--bounds", "0:900", "--json")
    for more in ((), ("--by", "g")):
        found = json.loads(turnout(*number, *more).stdout)
        assert found["nodes"] == found["received"] == 900
        assert found["plan"]["oracle"]["epsilon"] == 2


def test_what_is_missing_can_differ_by_column(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("vote,w\n" + 100 * "yes,a\nno,\n,b\n")
    options = ("survey", path, "-c", "vote", "-c", "w", "-e", 2, "--seed", 1, "--json")
    found = json.loads(turnout(*options, "--missing", "vote=abst", "--missing", "drop").stdout)
    assert "has 300 rows. Left out: 100 without an answer." in found["statement"][0]
    assert "200 people" in found["statement"][1]
    assert found["left_out"]["unanswered"] == 100
    labels = {each["label"] for each in found["columns"]["vote"]["estimates"]}
    assert labels == {"yes", "no", "abst"}
    for stated in ((), ("--labels", "vote=yes,no", "--labels", "w=a,b")):
        refused = turnout(*options, *stated, "--missing", "no")
        assert refused.exit_code == 1
        assert (
            "column 'w': --missing must be a label of the domain or 'drop', got 'no'"
            in " ".join(refused.stderr.split())
        )
    assert turnout(*options, "--missing", "no", "--missing", "w=a").exit_code == 0
    assert turnout(*options, "--missing", "no", "--missing", "drop").exit_code == 2


def test_the_tally_of_a_survey_is_read_by_the_other_commands(tmp_path: Path, turnout: Any) -> None:
    path, target, page = tmp_path / "a.parquet", tmp_path / "vote.tally", tmp_path / "vote.html"
    data = table(3000)
    data.write_parquet(path)
    options = ("-c", "vote", "-e", 2, "--by", "region", "-p", 0.5, "--seed", 1)
    result = turnout("survey", path, *options, "-o", target)
    assert result.exit_code == 0, result.stderr
    assert f"The tally: {target}" in result.stdout.replace("\n", " ")
    expected = tn.survey(path, "vote", epsilon=2.0, by="region", participation=0.5, seed=1)
    assert tn.GroupedTally.from_bytes(target.read_bytes()) == expected.tally
    # The same numbers, and nobody was randomized again.
    shown = json.loads(turnout("estimate", target, "--json", "--sort", "domain").stdout)
    assert [each["frequency"] for each in shown["estimates"]] == [
        each["frequency"] for each in expected.to_records()
    ]
    assert turnout("report", target, "-o", page, "--title", "Vote").exit_code == 0
    assert "By region" in page.read_text(encoding="utf-8")
    assert turnout("tally", target, "-o", tmp_path / "again.tally").exit_code == 0
    before = target.read_bytes()
    again = turnout("survey", path, *options, "-o", target)
    assert again.exit_code == 1
    assert (
        "already exists; randomizing the same people again would spend epsilon again"
        in again.stderr
    )
    assert target.read_bytes() == before
    assert turnout("survey", path, *options, "-o", target, "--overwrite").exit_code == 0


def test_each_of_several_columns_has_a_tally_with_its_numbers(tmp_path: Path, turnout: Any) -> None:
    path, folder = tmp_path / "a.parquet", tmp_path / "tallies"
    table(6000).rename({"region": "region/site"}).write_parquet(path)
    options = ("-c", "vote", "-c", "age", "-c", "region/site", "--bounds", "age=0:100", "--seed", 1)
    result = turnout("survey", path, *options, "-e", 3, "-o", folder, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["columns"]
    assert {file.name for file in folder.iterdir()} == {
        "vote.tally", "age.tally", "region_site.tally"
    }  # fmt: skip
    vote = json.loads(turnout("estimate", folder / "vote.tally", "--json").stdout)
    assert vote["estimates"] == found["vote"]["estimates"]
    assert vote["plan"] == found["vote"]["plan"]
    # The points of the histogram are the numbers themselves.
    age = json.loads(turnout("estimate", folder / "age.tally", "--json").stdout)
    median = next(each for each in age["quantiles"] if each["probability"] == 0.5)
    assert median["low"] <= 50 <= median["high"]
    (listed,) = (each for each in found["age"]["estimates"] if each["statistic"] == "median")
    assert abs(median["label"] - listed["value"]) <= 1
    assert [each["label"] for each in age["estimates"]][:1] == [
        max(age["estimates"], key=lambda each: each["frequency"])["label"]
    ]
    assert turnout("report", folder / "age.tally", "-o", tmp_path / "age.html").exit_code == 0


def test_a_joint_table_goes_from_the_columns_to_shares_of_one_among_another(
    tmp_path: Path, turnout: Any
) -> None:
    path, target = tmp_path / "a.csv", tmp_path / "joint.tally"
    data = table(8000)
    data.write_csv(path)
    options = ("-c", "region", "--joint", "vote", "-e", 3, "--seed", 1)
    result = turnout("survey", path, *options, "-o", target)
    assert result.exit_code == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert "people have an answer in 'region', 'vote' together" in words
    assert "The labels of region, vote come from the data" in words
    assert "N, no" in words
    expected = tn.survey(path, ["region", "vote"], epsilon=3.0, joint=True, seed=1)
    found = json.loads(
        turnout("estimate", target, "--given", "region", "--sort", "domain", "--json").stdout
    )
    shares = expected.estimate.conditional("vote", given="region")
    assert [each["share"] for each in found["estimates"]] == shares.shares.ravel().tolist()
    for region in ("N", "S"):
        among = data.filter(pl.col("region") == region)["vote"]
        for vote in ("maybe", "no", "yes"):
            error = shares.standard_errors[("N", "S").index(region)].max()
            assert abs(shares[region, vote].share - (among == vote).mean()) < 5 * error
    assert expected.to_arrow().column_names[:2] == ["region", "vote"]


@pytest.mark.parametrize(
    "options",
    [
        ("-c", "vote", "--by", "region"),
        ("-c", "age", "--bounds", "0:100"),
        ("-c", "vote", "-c", "age", "--mean", "age=0:100", "--clip"),
        ("-c", "vote", "--trust", "aggregators"),
        ("-c", "region", "--joint", "vote"),
    ],
    ids="".join,
)
def test_a_survey_writes_its_page(
    options: tuple[str, ...], working_folder: Path, turnout: Any
) -> None:
    table(3000).write_csv("in.csv")
    start = ("survey", "in.csv", *options, "-e", 2, "--seed", 1)
    plain = turnout(*start)
    result = turnout(*start, "--report", "a.html", "--title", "A question?", "--interval", 0.9)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith("The page: a.html\n")
    page = Path("a.html").read_text(encoding="utf-8")
    assert "<h1>A question?</h1>" in page
    assert "To publish" in page
    assert "90 % interval" in page
    # Everything that the survey says of itself is on the page or in its own words there.
    notes = page.partition("What else to know")[2]
    assert "Made with a seed: use for tests only" in notes
    again = turnout(*start, "--report", "a.html")
    assert again.exit_code == 1
    assert "already exists" in again.stderr
    assert turnout(*start, "--report", "a.html", "--overwrite").exit_code == 0
    assert sorted(working_folder.iterdir()) == [
        working_folder / "a.html",
        working_folder / "in.csv",
    ]
    assert plain.exit_code == 0


def test_the_tally_and_the_page_are_of_the_same_reports(working_folder: Path, turnout: Any) -> None:
    table(3000).write_csv("in.csv")
    both = ("-o", "vote.tally", "--report", "survey.html")
    assert turnout("survey", "in.csv", "-c", "vote", "-e", 2, *both).exit_code == 0
    assert (
        turnout("report", "vote.tally", "-o", "tally.html", "--title", "A survey of vote").exit_code
        == 0
    )
    sentences = [
        Path(name).read_text(encoding="utf-8").partition("Estimated shares")[2].partition("</p>")[0]
        for name in ("survey.html", "tally.html")
    ]
    assert sentences[0] == sentences[1] != ""


def test_aggregators_count_combinations_of_answers(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.csv"
    data = table(4000)
    data.write_csv(path)
    options = ("-c", "region", "--joint", "vote", "-e", 1, "--trust", "aggregators", "--seed", 1)
    found = json.loads(turnout("survey", path, *options, "--json").stdout)
    for each in found["estimates"]:
        region, vote = each["label"]
        true = ((data["region"] == region) & (data["vote"] == vote)).mean()
        assert abs(each["frequency"] - true) < 5 * each["standard_error"]
    assert " N, no " in turnout("survey", path, *options).stdout


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--joint", "vote"), 2, "--joint: names a column twice"),
        (("-c", "age", "--joint", "region"), 2, "--joint: needs exactly one --column"),
        (("--joint", "age", "--mean", "0:100"), 2, "have no --bounds or --mean"),
        (("--trust", "aggregators", "-o", "a.tally"), 2, "--output: needs reports"),
        (("--overwrite",), 2, "--overwrite: needs --output or --report"),
        (("--title", "Vote?"), 2, "--title: needs --report"),
        (("--report", "a.pdf"), 2, "a.pdf does not end in .html, .htm"),
        (("--report", "nowhere/a.html"), 1, "nowhere: the folder does not exist"),
        (("-o", "a.csv"), 2, "turnout estimate turns it into a table"),
        (("-o", "a.html"), 2, "turnout report into a page"),
        (("-o", "nowhere/a.tally"), 1, "nowhere: the folder does not exist"),
        (("-o", "."), 1, "a folder; name a file for the tally"),
        (
            ("-c", "region", "-o", "in.csv"),
            1,
            "is not a folder; with several columns, each one gets its own tally",
        ),
    ],
)
def test_what_cannot_be_written_or_asked_is_refused_before_anything_is_drawn(
    options: tuple[Any, ...], code: int, message: str, turnout: Any, working_folder: Path
) -> None:
    table(100).write_csv("in.csv")
    before = Path("in.csv").read_bytes()
    result = turnout("survey", "in.csv", "-c", "vote", "-e", 1, *options)
    assert result.exit_code == code, result.stderr
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert [file.name for file in working_folder.iterdir()] == ["in.csv"]
    assert Path("in.csv").read_bytes() == before
