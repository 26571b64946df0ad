"""``turnout aggregate --mean``: the mean and the sum of numbers with proofs."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.distributed import VerifiedSum, mechanism_from_dict, recommend

Run = Callable[..., Any]
HOURS = np.random.default_rng(3).integers(-10, 61, size=300)
ASKED = ("-c", "hours", "--mean", "-10:60", "--epsilon", 1)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("hours\n" + "".join(f"{hour}\n" for hour in HOURS))
    return path


def test_the_mean_and_the_sum_are_those_of_a_round(people: Path, turnout: Run) -> None:
    words = ("aggregate", people, *ASKED, "-m", "verified", "--participation", 0.5, "--seed", 7)
    found = json.loads(turnout(*words, "--json", "--interval", 0.9).stdout)
    mechanism = VerifiedSum((-10, 60), 300, epsilon=1.0, participation=0.5)
    assert mechanism_from_dict(found["plan"]) == mechanism
    result = mechanism.run(HOURS, seed=7)
    limits = result.estimate.interval(0.9)
    assert (found["mean"], found["low"], found["high"]) == (
        result.estimate.mean,
        limits.low,
        limits.high,
    )
    assert found["sum"]["value"] == result.estimate.sum
    assert found["sum"]["low"] == pytest.approx(300 * limits.low)  # type: ignore[operator]
    assert found["expected_error"] == mechanism._error()[0]
    assert found["guarantee"]["epsilon"] == 1.0
    shown = turnout(*words).stdout
    for word in ("one person's number is another", "the mean)", "sum", "from -10 to 60"):
        assert word in " ".join(shown.split())


def test_the_page_is_that_of_the_mean(people: Path, turnout: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("aggregate", people, *ASKED, "-m", "verified", "--seed", 7, "--interval", 0.9)
    shown = turnout(*words, "--report", page, "--title", "How many hours?").stdout
    assert shown.endswith(f"The page: {page}\n")
    text = html.unescape(page.read_text(encoding="utf-8"))
    mechanism = VerifiedSum((-10, 60), 300, epsilon=1.0)
    estimate = mechanism.run(HOURS, seed=7).estimate
    limits = estimate.interval(0.9)
    assert "<h1>How many hours?</h1>" in text
    assert f"Estimated mean: {estimate.mean:.2f} (90 % interval {limits.low:.2f} to " in text
    for sentence in mechanism.guarantee.assumptions:
        assert sentence in text
    notes = text.partition("What else to know")[2]
    assert "Made with a seed" in notes
    assert "turnout task new makes a task of the same mechanism" in notes
    assert "Round.start" not in notes


def test_recommend_compares_with_local_randomization(people: Path, turnout: Run) -> None:
    words = ("aggregate", people, *ASKED, "-m", "recommend")
    found = json.loads(turnout(*words, "--json").stdout)
    expected = recommend(300, tn.Bounds(-10, 60), 1.0)
    assert [each["title"] for each in found["recommendation"]] == [
        each.title for each in expected.records
    ]
    assert mechanism_from_dict(found["recommendation"][0]["plan"]) == expected.best
    assert "The error is that of the mean" in " ".join(turnout(*words).stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", "skellam", "-d", 1e-6), "needs --mechanism verified or recommend"),
        (("-m", "verified", "--labels", "a,b"), "conflicts with --labels"),
        (("-m", "recommend", "--report", "page.html"), "belongs to a round"),
        (("-m", "verified", "--top", 3), "a mean has no labels"),
        (("-m", "verified", "--sort", "label"), "a mean has no labels"),
        (
            (
                "-m",
                "verified",
                "--shrink",
            ),
            "a mean is not a share",
        ),
        (
            (
                "-m",
                "verified",
                "--clip",
            ),
            "a mean is not a share",
        ),
        (("-m", "verified", "--mean", "-10:50"), "within the bounds"),
        (("-m", "verified", "--mean", "-10:60.5"), "whole numbers"),
        (("-m", "recommend", "--parties", "users"), "parties must be a number"),
    ],
)
def test_what_cannot_be_is_refused(
    people: Path, turnout: Run, words: tuple[object, ...], said: str
) -> None:
    done = turnout("aggregate", people, *ASKED, *words)
    assert done.exit_code != 0
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_values_that_are_no_whole_numbers_are_not_shown(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "people.csv"
    path.write_text("hours\n1\n7.25\n3\n")
    done = turnout("aggregate", path, *ASKED, "-m", "verified")
    assert done.exit_code == 1
    assert "must be whole numbers, and 1 are not" in done.stderr
    assert "7.25" not in done.stderr
