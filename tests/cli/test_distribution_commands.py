"""Commands about the distribution of a number: from a file of answers to quantiles and a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

import turnout as tn

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def slept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slept") / "people.csv"
    hours = np.random.default_rng(1).normal(7.4, 1.2, 6000).clip(0, 24).round(2)
    rows = [f"{hour},{'DE' if i % 2 else 'FR'}" for i, hour in enumerate(hours)]
    path.write_text("hours,country\n" + "\n".join(rows) + "\n")
    return path


def test_a_column_goes_from_a_file_to_quantiles_and_a_page(
    slept: Path, tmp_path: Path, turnout: Run
) -> None:
    plan, reports, tally, page = (
        tmp_path / name for name in ("plan.json", "reports.parquet", "hours.tally", "hours.html")
    )
    made = turnout("plan", "--distribution", "0:24:48", "-e", 3, "-p", 0.8, "-o", plan)
    assert made.exit_code == 0, made.stderr
    assert tn.Plan.read(plan) == tn.Plan(tn.SquareWave(3.0, (0, 24), 48), tn.Bernoulli(0.8))
    made = turnout(
        "randomize", slept, "-c", "hours", "--plan", plan, "--group-by", "country",
        "-o", reports, "--seed", 2,
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert "numbers from 0 to 24, in 48 bins" in " ".join(made.stdout.split())
    assert turnout("tally", reports, "-o", tally).exit_code == 0
    shown = turnout("estimate", tally, "--plot", tmp_path / "hours.png")
    assert shown.exit_code == 0, shown.stderr
    assert "median" in shown.stdout
    assert (tmp_path / "hours.png").stat().st_size > 1000
    for method in ("ems", "ml"):
        answer = json.loads(turnout("estimate", tally, "--json", "--method", method).stdout)
        assert answer["method"] == method
        assert answer["mean"]["value"] == pytest.approx(7.4, abs=0.5)
        median = next(row for row in answer["quantiles"] if row["probability"] == 0.5)
        assert median["low"] <= 7.4 <= median["high"]
        assert len(answer["estimates"]) == 48
    assert turnout("report", tally, "-o", page).exit_code == 0
    assert "Half of all people who count are estimated to have a number up to" in page.read_text()


def test_groups_have_quartiles_of_their_own(slept: Path, tmp_path: Path, turnout: Run) -> None:
    reports, tally, page = (tmp_path / name for name in ("reports", "hours.tally", "hours.html"))
    made = turnout(
        "randomize", slept, "-c", "hours", "--distribution", "0:24", "-e", 4,
        "--group-by", "country", "-o", reports,
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert tn.pipeline.open_reports(reports).plan.oracle.bins == 64
    assert turnout("tally", reports, "--group-by", "country", "-o", tally).exit_code == 0
    shown = turnout("estimate", tally, "--simultaneous", "sidak", "--plot", tmp_path / "g.svg")
    assert shown.exit_code == 0, shown.stderr
    assert "all medians of all groups at once (sidak)" in " ".join(shown.stdout.split())
    answer = json.loads(turnout("estimate", tally, "--json").stdout)
    assert [row["group"]["country"] for row in answer["estimates"]] == ["DE", "FR"]
    for row in answer["estimates"]:
        assert sum(row["frequencies"]) == pytest.approx(1.0)
        assert row["quantiles"][1]["value"] == pytest.approx(7.4, abs=0.6)
    assert turnout("report", tally, "-o", page).exit_code == 0
    assert "Means and quartiles, with 95 % intervals of medians" in page.read_text()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--distribution", "0"), "is not LOW:HIGH or LOW:HIGH:BINS"),
        (("--distribution", "0:24:x"), "is not LOW:HIGH or LOW:HIGH:BINS"),
        (("--distribution", "0:24:8:8"), "is not LOW:HIGH or LOW:HIGH:BINS"),
        (("--distribution", "24:0"), "the lower before the upper"),
        (("--distribution", "0:24:1"), "bins must be an integer from 2 to 1024"),
        (("--distribution", "0:24", "--mean", "0:24"), "conflicts with --mean"),
        (("--distribution", "0:24", "--oracle", "duchi"), "auto, square-wave"),
        (("--distribution", "0:24", "--labels", "1,2"), "conflicts with --distribution"),
    ],
)
def test_options_that_cannot_be_are_refused(
    slept: Path, tmp_path: Path, turnout: Run, options: tuple[str, ...], reason: str
) -> None:
    target = tmp_path / "reports.parquet"
    result = turnout("randomize", slept, "-c", "hours", "-e", 1, *options, "-o", target)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("│", " ").split())
    assert not target.exists()


def test_what_says_nothing_about_a_distribution_is_refused(tmp_path: Path, turnout: Run) -> None:
    tally = tmp_path / "hours.tally"
    wave = tn.SquareWave(2.0, (0, 24), 8)
    tally.write_bytes(wave.collect([7.0] * 500, seed=1).to_bytes())
    wanted: list[tuple[tuple[Any, ...], str]] = [
        (("--clip",), "--clip does not apply to a distribution"),
        (("--top", 3), "--top does not apply to a distribution"),
        (("--project", "simplex"), "--project does not apply to a distribution"),
        (("--shrink",), "--shrink does not apply to a distribution"),
        (("--method", "hajek"), "--method must be ems or ml for a distribution, got hajek"),
    ]
    for options, reason in wanted:
        result = turnout("estimate", tally, *options)
        assert result.exit_code == 1
        assert reason in " ".join(result.stderr.split())
    shares = tmp_path / "shares.tally"
    shares.write_bytes(tn.DirectEncoding(1.0, 3).collect([0, 1, 2] * 9, seed=1).to_bytes())
    assert "method must be one of" in turnout("estimate", shares, "--method", "ems").stderr
    planned = turnout("plan", "--distribution", "0:24", "-e", 1, "--nodes", 10)
    assert "does not apply with --distribution" in planned.stderr
    record = json.loads(turnout("plan", "--distribution", "0:24", "-e", 1, "--json").stdout)
    assert (record["oracle"], record["bins"], record["window"]) == ("square_wave", 64, 33)


def test_messages_of_a_distribution_are_tallied(tmp_path: Path, turnout: Run) -> None:
    plan = tn.Plan(tn.SquareWave(2.0, (0, 24), 24), tn.Bernoulli(0.5))
    plan.write(tmp_path / "plan.json")
    made = [plan.report(hour, seed=place) for place, hour in enumerate([7.0, 8.5] * 100)]
    sent = [message for message in made if message is not None]
    (tmp_path / "day.jsonl").write_bytes(b"".join(message + b"\n" for message in sent))
    result = turnout(
        "tally", tmp_path / "day.jsonl", "--plan", tmp_path / "plan.json", "--nodes", 200,
        "-o", tmp_path / "day.tally",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    read = tn.distribution.DistributionTally.from_bytes((tmp_path / "day.tally").read_bytes())
    assert read == plan.oracle.tally(plan.gather(sent, nodes=200))
