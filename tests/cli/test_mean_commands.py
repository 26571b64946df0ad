"""Commands on tallies of numbers: tables, JSON, pictures, refusals."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.texts import without_paths

import turnout as tn
from turnout.errors import InvalidTypeError
from turnout.reporting.telling import telling

Run = Callable[..., Any]
HALF = tn.Bernoulli(0.5)
HOURS = tn.mean.Piecewise(4.0, (0, 24))


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    path = tmp_path / "hours.tally"
    tally = HOURS.collect([7.0, 8.0] * 1500, participation=HALF, seed=3)
    path.write_bytes(tally.to_bytes())
    return path


def by_country(mechanism: Any = HOURS) -> tn.GroupedTally:
    tallies = {}
    for country, nodes in (("DE", 3000), ("[red]FR", 1000), ("NL", 0)):
        for day in (1, 2, 4):
            numbers = np.full((nodes, mechanism.dimensions), 6.0 + day)
            given = numbers[:, 0] if mechanism.dimensions == 1 else numbers
            date = datetime.date(2026, 3, day)
            tallies[country, date] = mechanism.collect(given, participation=HALF, seed=day)
    return tn.GroupedTally(["country", "day"], tallies)


@pytest.fixture
def grouped_file(tmp_path: Path) -> Path:
    path = tmp_path / "grouped.tally"
    path.write_bytes(by_country().to_bytes())
    return path


def test_json_of_a_mean_is_one_object(hours: Path, turnout: Run) -> None:
    answer = json.loads(turnout("estimate", hours, "--json", "--interval", 0.9).stdout)
    assert set(answer) == {
        "nodes", "received", "left_out", "method", "interval", "plan",
        "mean", "standard_error", "low", "high",
    }  # fmt: skip
    estimate = tn.mean.MeanTally.from_bytes(hours.read_bytes()).estimate()
    assert (answer["mean"], answer["standard_error"]) == (estimate.mean, estimate.standard_error)
    limits = estimate.interval(0.9)
    assert (answer["low"], answer["high"]) == (limits.low, limits.high)
    assert answer["interval"] == {"level": 0.9, "simultaneous": None, "method": limits.method}
    assert tn.Plan.from_dict(answer["plan"]) == estimate.plan


def test_the_table_of_a_mean_has_the_digits_that_its_error_gives(hours: Path, turnout: Run) -> None:
    result = turnout("estimate", hours)
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    assert "numbers from 0 to 24" in words
    assert "oracle piecewise" in words
    estimate = tn.mean.MeanTally.from_bytes(hours.read_bytes()).estimate()
    limits = estimate.interval()
    row = f"{estimate.mean:.2f} {estimate.standard_error:.2f} {limits.low:.2f} – {limits.high:.2f}"
    assert row in words
    assert max(map(len, without_paths(result.stdout))) <= 80


def test_several_coordinates_are_rows_and_lists(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "points.tally"
    points = tn.mean.Piecewise(4.0, dimensions=2).collect([[0.5, -0.5]] * 1000, seed=1)
    path.write_bytes(points.to_bytes())
    options = ("--simultaneous", "bonferroni")
    answer = json.loads(turnout("estimate", path, "--json", *options).stdout)
    expected = points.estimate().interval(simultaneous="bonferroni")
    assert answer["low"] == expected.low.tolist()
    assert len(answer["mean"]) == 2
    words = " ".join(turnout("estimate", path, *options).stdout.split())
    assert "numbers 2 of each person, from -1 to 1" in words
    assert "for all 2 coordinates at once (bonferroni)" in words


def test_groups_of_a_mean_have_a_table_and_an_object_each(grouped_file: Path, turnout: Run) -> None:
    options = ("--by", "day", "--simultaneous", "sidak", "--interval", 0.9)
    answer = json.loads(turnout("estimate", grouped_file, "--json", *options).stdout)
    assert answer["interval"] == {"level": 0.9, "simultaneous": "sidak", "over": "all"}
    assert answer["groups"] == ["day"]
    estimate = by_country().over("day").estimate()
    expected = estimate.interval(0.9, simultaneous="sidak")
    assert [row["high"] for row in answer["estimates"]] == expected.high[:, 0].tolist()
    assert list(answer["estimates"][0]) == [
        "group", "nodes", "received", "mean", "standard_error", "low", "high", "reason",
    ]  # fmt: skip
    assert answer["estimates"][0]["group"] == {"day": "2026-03-01"}
    result = turnout("estimate", grouped_file)
    assert "[red]FR" in result.stdout
    assert "(no nodes)" in result.stdout
    assert max(map(len, without_paths(result.stdout))) <= 80
    records = json.loads(turnout("estimate", grouped_file, "--json").stdout)["estimates"]
    silent = next(row for row in records if row["group"]["country"] == "NL")
    assert (silent["mean"], silent["low"]) == (None, None)
    assert silent["reason"] == "the group has no nodes"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--project", "simplex"), "--project does not apply to a tally of numbers"),
        (("--sort", "frequency"), "--sort does not apply to a tally of numbers: a mean has no"),
        (("--top", "20"), "--top does not apply to a tally of numbers: a mean has no labels"),
        (("--method", "c"), "--method must be hajek or horvitz_thompson for a tally of numbers"),
    ],
)
def test_options_that_say_nothing_about_a_mean_are_refused(
    hours: Path, grouped_file: Path, turnout: Run, options: tuple[str, str], reason: str
) -> None:
    for path in (hours, grouped_file):
        result = turnout("estimate", path, *options)
        assert result.exit_code == 1
        assert reason in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_a_mean_that_is_not_grouped_has_no_columns(hours: Path, turnout: Run) -> None:
    result = turnout("estimate", hours, "--by", "day")
    assert result.exit_code == 1
    assert "is not grouped" in result.stderr


def test_tallies_of_numbers_are_tallied_again(hours: Path, tmp_path: Path, turnout: Run) -> None:
    other, both = tmp_path / "other.tally", tmp_path / "both.tally"
    other.write_bytes(HOURS.collect([9.0] * 100, participation=HALF, seed=4).to_bytes())
    result = turnout("tally", hours, other, "-o", both)
    assert result.exit_code == 0
    assert "from 0 to 24" in result.stdout
    assert tn.mean.MeanTally.from_bytes(both.read_bytes()).nodes == 3100
    shares = tmp_path / "shares.tally"
    shares.write_bytes(tn.DirectEncoding(4.0, 3).collect([0], participation=HALF).to_bytes())
    assert "different plans" in turnout("tally", hours, shares, "-o", both).stderr


def test_pictures_of_means(hours: Path, grouped_file: Path, tmp_path: Path, turnout: Run) -> None:
    pytest.importorskip("matplotlib")
    for source, options in ((hours, ()), (grouped_file, ("--by", "country")), (grouped_file, ())):
        picture = tmp_path / "picture.svg"
        result = turnout("estimate", source, "--plot", picture, *options)
        assert result.exit_code == 0, result.stderr
        assert picture.stat().st_size > 5000
        picture.unlink()


@pytest.fixture
def slept(tmp_path: Path) -> Path:
    path = tmp_path / "slept.csv"
    rows = [f"{i},{7 + i % 2},{'DE' if i < 300 else 'FR'}" for i in range(600)]
    path.write_text("id,hours,country\n" + "\n".join([*rows, "600,?,DE"]) + "\n")
    return path


DROP = ("--missing-value", "?", "--missing", "drop")


def test_a_column_of_numbers_goes_from_a_file_to_a_mean(
    slept: Path, tmp_path: Path, turnout: Run
) -> None:
    reports, tally = tmp_path / "reports.parquet", tmp_path / "hours.tally"
    made = turnout(
        "randomize", slept, "-c", "hours", "--mean", "0:24", "-e", 6, "-p", 0.5, *DROP,
        "-o", reports,
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert "--oracle auto: hybrid at epsilon 6" in made.stderr
    words = " ".join(made.stdout.split())
    assert "numbers from 0 to 24" in words
    assert "left out 1 without an answer" in words
    assert turnout("tally", reports, "-o", tally).exit_code == 0
    answer = json.loads(turnout("estimate", tally, "--json", "--interval", 0.999999).stdout)
    assert answer["nodes"] == 600
    assert answer["low"] < 7.5 < answer["high"]


def test_groups_of_a_column_of_numbers(slept: Path, tmp_path: Path, turnout: Run) -> None:
    reports, tally = tmp_path / "reports", tmp_path / "hours.tally"
    options = ("--mean", "0:24", "--oracle", "duchi", "-e", 1, "--group-by", "country")
    made = turnout("randomize", slept, "-c", "hours", *options, *DROP, "-o", reports)
    assert made.exit_code == 0, made.stderr
    assert turnout("tally", reports, "--group-by", "country", "-o", tally).exit_code == 0
    answer = json.loads(turnout("estimate", tally, "--json").stdout)
    assert [row["nodes"] for row in answer["estimates"]] == [300, 300]
    assert answer["plan"]["oracle"]["name"] == "duchi"


def test_a_plan_file_of_a_mean_randomizes(slept: Path, tmp_path: Path, turnout: Run) -> None:
    plan, reports = tmp_path / "plan.json", tmp_path / "reports.parquet"
    tn.Plan(HOURS, HALF).write(plan)
    arguments = ("randomize", slept, "-c", "hours", "--plan", plan, "-o", reports)
    assert turnout(*arguments, *DROP).exit_code == 0
    assert tn.pipeline.open_reports(reports).plan == tn.Plan(HOURS, HALF)
    wrong = turnout(*arguments, "--overwrite", "--missing-value", "?", "--missing", "unknown")
    assert (
        "column 'hours': --missing must be drop or a number within the bounds, got 'unknown'"
        in " ".join(wrong.stderr.split())
    )
    assert turnout(
        *arguments, "--overwrite", "--missing-value", "?", "--missing", "12"
    ).exit_code == 0  # fmt: skip
    again = turnout(*arguments, "--mean", "0:24")
    assert again.exit_code == 2
    assert "conflicts with --plan" in again.stderr


def test_a_plan_of_permanent_answers_says_what_to_use(
    slept: Path, tmp_path: Path, turnout: Run
) -> None:
    plan, reports = tmp_path / "memo.json", tmp_path / "reports.parquet"
    memoized = tn.Memoized(tn.DirectEncoding(2.0, 3), first_epsilon=1.0)
    tn.Plan(memoized, tn.Everyone()).write(plan)
    result = turnout("randomize", slept, "-c", "hours", "--plan", plan, "-o", reports)
    assert result.exit_code == 1
    assert f"{plan}: the plan asks for permanent answers" in result.stderr
    assert "oracle.client(...).message(plan, answer)" in result.stderr
    assert "turnout tally day.jsonl --plan FILE" in result.stderr
    assert not reports.exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--mean", "0"), "is not LOW:HIGH"),
        (("--mean", "24:0"), "the lower before the upper"),
        (("--mean", "0:nan"), "bounds"),
        (("--mean", "0:24", "--labels", "1,2"), "conflicts with --mean"),
        (("--mean", "0:24", "--oracle", "direct-encoding"), "auto, duchi, hybrid, piecewise"),
        (("--oracle", "duchi"), "is none of auto, binary-local-hashing"),
    ],
)
def test_options_of_means_that_cannot_be_are_refused(
    slept: Path, tmp_path: Path, turnout: Run, options: tuple[str, ...], reason: str
) -> None:
    target = tmp_path / "reports.parquet"
    result = turnout("randomize", slept, "-c", "hours", "-e", 1, *options, "-o", target)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("│", " ").split())
    assert not target.exists()


def test_numbers_outside_of_the_bounds_are_refused(
    slept: Path, tmp_path: Path, turnout: Run
) -> None:
    target = tmp_path / "reports.parquet"
    result = turnout(
        "randomize", slept, "-c", "hours", "--mean", "-10:7.5", "-e", 1, *DROP, "-o", target
    )
    assert result.exit_code == 1
    assert "300 values are not within the bounds (-10.0, 7.5)" in result.stderr
    assert not target.exists()


def test_the_plan_of_a_mean_is_written_and_randomizes(
    slept: Path, tmp_path: Path, turnout: Run
) -> None:
    plan, reports = tmp_path / "plan.json", tmp_path / "reports.parquet"
    options = ("--mean", "0:24", "-e", 1, "--participation", 0.3)
    result = turnout("plan", *options, "--output", plan, "--serial", 3)
    assert result.exit_code == 0, result.stderr
    assert "numbers from 0 to 24" in " ".join(result.stdout.split())
    read = tn.Plan.read(plan)
    assert read == tn.Plan(tn.mean.Hybrid(1.0, (0, 24)), tn.Bernoulli(0.3))
    assert read.serial == 3
    arguments = ("randomize", slept, "-c", "hours", "--plan", plan, *DROP, "-o", reports)
    assert turnout(*arguments).exit_code == 0
    record = json.loads(turnout("plan", *options, "--oracle", "piecewise", "--json").stdout)
    assert record["oracle"] == "piecewise"
    assert record["bounds"] == [0.0, 24.0]
    assert record["plan_file"] is None
    assert record["report_standard_error"] == tn.mean.Piecewise(1, (0, 24)).worst_variance ** 0.5


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--mean", "0:24", "--nodes", 10), "--nodes: does not apply with --mean"),
        (("--mean", "0:24", "--target", "rmse"), "--target: does not apply with --mean"),
        (("--mean", "0:24", "--oracle", "direct-encoding"), "auto, duchi, hybrid, piecewise"),
        (("--mean", "0:24", "--participation", 2), "at most 1"),
        (("--mean", "0:24", "--epsilon", "1:2"), "is not a number"),
        (("-k", 3), "give the number of people"),
    ],
)
def test_a_plan_of_a_mean_refuses_what_says_nothing_about_it(
    turnout: Run, options: tuple[Any, ...], reason: str
) -> None:
    result = turnout("plan", "-e", 1, *options)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("│", " ").split())


def test_groups_of_one_and_of_many_are_shown_and_drawn(tmp_path: Path, turnout: Run) -> None:
    pytest.importorskip("matplotlib")
    source, picture = tmp_path / "few.tally", tmp_path / "few.svg"
    one, many = (HOURS.collect([7.0] * nodes, seed=nodes) for nodes in (1, 5000))
    source.write_bytes(tn.GroupedTally(["school"], {"a": one, "b": many}).to_bytes())
    result = turnout("estimate", source, "--plot", picture)
    assert result.exit_code == 0, result.stderr
    error = many.estimate().standard_error
    # The small error of many has two digits beside the large one of one.
    assert f"{error:.{1 - int(np.floor(np.log10(error)))}f}" in result.stdout
    assert "none" in result.stdout
    assert picture.stat().st_size > 5000
    answer = json.loads(turnout("estimate", source, "--json").stdout)
    assert answer["estimates"][0]["low"] is None


def test_a_kind_that_nobody_shows_is_refused_by_its_name() -> None:
    plan: Any = SimpleNamespace(oracle=SimpleNamespace(tally_type=int))
    with pytest.raises(InvalidTypeError, match="of a kind that can be shown, got a int"):
        telling(plan)
