"""Verdicts, the list of experiments, and what a run leaves behind."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import InvalidValueError
from turnout_reproduce import (
    EXPERIMENTS,
    Curve,
    Experiment,
    Finding,
    Outcome,
    Scale,
    chosen,
    reproduce,
)

compared = Finding.compared


@pytest.mark.parametrize(
    ("ours", "error", "tolerance", "verdict"),
    [
        (1.0, None, 0.0, "agrees"),
        (1.2, None, 0.1, "differs"),
        (1.2, None, 0.3, "agrees"),
        (1.2, 0.05, 0.1, "agrees"),  # three standard errors beside the tolerance
        (1.2, 0.01, 0.1, "differs"),
        (0.8, 0.01, 0.1, "differs"),
    ],
)
def test_numbers_are_compared_with_their_errors(
    ours: float, error: float | None, tolerance: float, verdict: str
) -> None:
    finding = compared("x", ours, 1.0, error=error, tolerance=tolerance)
    assert finding.verdict == verdict
    wrong = compared("x", ours, 1.0, error=error, tolerance=tolerance, wrong="it is wrong")
    assert wrong.verdict == ("paper is wrong" if verdict == "differs" else "agrees")
    assert wrong.why == ("it is wrong" if verdict == "differs" else "")


def test_a_difference_is_told() -> None:
    assert compared("x", 1.5, 1.0).why == "by +0.5 (+50.0%)"
    assert compared("x", 0.5, 0.0).why == "by +0.5"


def test_claims_hold_or_not() -> None:
    assert Finding.claimed("x", 1.0, True).verdict == "agrees"
    assert Finding.claimed("x", 1.0, False, why="y").verdict == "paper is wrong"
    assert Finding.alone("x", 1.0).verdict == "not printed"


def test_points_have_partners() -> None:
    with pytest.raises(InvalidValueError, match="x, y and error of 'a'"):
        Curve("a", (1.0, 2.0), (1.0,))
    with pytest.raises(InvalidValueError, match="x, y and error of 'a'"):
        Curve("a", (1.0,), (1.0,), (0.1, 0.2))


def test_what_is_no_number_becomes_null() -> None:
    outcome = Outcome((Finding.alone("x", math.inf),), (Curve("a", (1.0,), (math.nan,)),))
    text = json.dumps(outcome.to_dict(), allow_nan=False)
    assert json.loads(text)["findings"][0]["ours"] is None
    with pytest.raises(InvalidValueError, match="cannot be written"):
        Outcome((), (), {"array": np.zeros(2)}).to_dict()


def test_names_are_different_and_sorted_by_paper() -> None:
    names = [experiment.name for experiment in EXPERIMENTS]
    assert len(set(names)) == len(names)
    papers = [experiment.paper for experiment in EXPERIMENTS]
    assert papers == sorted(papers, key=papers.index)
    assert all(experiment.source and experiment.title for experiment in EXPERIMENTS)


def test_experiments_are_chosen_in_the_order_of_the_list() -> None:
    assert chosen(["all"]) == list(EXPERIMENTS)
    assert chosen(["sampling/figure-3", "sampling/figure-1", "sampling"]) == chosen(["sampling"])
    with pytest.raises(InvalidValueError, match="did you mean sampling/figure-1"):
        chosen(["sampling/figure1"])
    with pytest.raises(InvalidValueError, match=r"no experiment 'zzz'"):
        chosen(["zzz"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("reproduction")
    return folder, reproduce(EXPERIMENTS, folder)


def test_all_results_are_in_one_file(run: tuple[Path, dict[str, Any]]) -> None:
    folder, results = run
    assert json.loads((folder / "results.json").read_text()) == results
    assert results["versions"]["turnout"] == tn.__version__
    assert (results["seed"], results["scale"]) == (1, "quick")
    assert list(results["experiments"]) == [experiment.name for experiment in EXPERIMENTS]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_each_experiment_is_whole(run: tuple[Path, dict[str, Any]], experiment: Experiment) -> None:
    folder, results = run
    found = results["experiments"][experiment.name]
    assert found["findings"]
    assert found["data"]
    for finding in found["findings"]:
        assert finding["ours"] is not None
        assert finding["verdict"] != "differs" or finding["why"]
        assert finding["verdict"] != "paper is wrong" or finding["why"]
    # Error bars over repeats, unless nothing is random.
    exact = found["settings"].get("exact", False)
    assert exact != any(curve["error"] for curve in found["curves"])
    from matplotlib import image

    pixels = image.imread(folder / found["picture"])
    assert min(pixels.shape[:2]) > 400
    assert pixels.std() > 0.01


@pytest.mark.parametrize("experiment", chosen(["sampling"]), ids=lambda experiment: experiment.name)
def test_a_seed_decides_the_result(experiment: Experiment) -> None:
    one, same, other = (experiment.run(Scale(seed=seed)).to_dict() for seed in (5, 5, 6))
    assert one == same
    assert one["findings"] != other["findings"]
