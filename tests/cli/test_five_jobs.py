"""Five people's jobs on data that packages bring along: from file to result, beside the truth.

Every comparison with the truth is by intervals that hold together with a probability of 1 - ALPHA,
and seeded.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import turnout as tn
from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD

Run = Callable[..., Any]

ALPHA = 1e-6


def file_of(package: str, name: str) -> Path:
    """A file that a package brings along; the package is not imported, which takes a second."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0], "datasets", name)


def digits() -> tuple[np.ndarray, np.ndarray]:
    rows = np.loadtxt(file_of("sklearn", "data/digits.csv.gz"), delimiter=",")
    return rows[:, :-1], rows[:, -1].astype(int)


def test_a_student_surveys_who_votes_for_whom_and_how_old_they_are() -> None:
    frame = pd.read_csv(file_of("statsmodels", "anes96/anes96.csv"), sep="\t", quotechar="'")
    frame["party"] = pd.cut(frame["PID"], [-1, 2, 3, 6], labels=["left", "none", "right"])
    frame["vote"] = frame["vote"].map({0: "Clinton", 1: "Dole"})
    labels = ["Clinton", "Dole"]
    by = tn.survey(frame, "vote", epsilon=3.0, labels=labels, by="party", seed=1)
    truth = pd.crosstab(frame["party"], frame["vote"], normalize="index")
    for row in by.to_pandas(1 - ALPHA, simultaneous="bonferroni").itertuples():
        assert row.low <= truth.loc[row.party, row.label] <= row.high
    # The intervals say something: the parties are told apart.
    assert by.estimate["left"]["Dole"].high < by.estimate["right"]["Dole"].low
    both = tn.survey(
        frame, ["vote", "age"], epsilon=3.0, labels={"vote": labels}, bounds={"age": (17, 100)},
        seed=1,
    )  # fmt: skip
    ages = frame["age"]
    values = [ages.mean(), *ages.quantile([0.25, 0.5, 0.75], interpolation="inverted_cdf")]
    for record, value in zip(both["age"].to_records(1 - ALPHA / 4), values, strict=True):
        assert record["low"] <= value <= record["high"]
    votes = frame["vote"].value_counts(normalize=True)
    for record in both["vote"].to_records(1 - ALPHA / 2):
        assert record["low"] <= votes[record["label"]] <= record["high"]


def test_an_insurer_hands_over_reports_of_visits_and_health(tmp_path: Path, turnout: Run) -> None:
    source = file_of("statsmodels", "randhie/randhie.csv")
    frame = pd.read_csv(source)
    reports, tally = tmp_path / "reports", tmp_path / "a.tally"
    labels = ",".join(map(str, range(78)))
    made = turnout(
        "randomize", source, "-c", "mdvis", "-e", 2, "-p", 0.5, "--labels", labels,
        "--group-by", "hlthp", "--seed", 3, "-o", reports,
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert turnout("tally", reports, "--group-by", "hlthp", "-o", tally).exit_code == 0
    options = ("--interval", 1 - ALPHA, "--simultaneous", "bonferroni", "--json")
    found = json.loads(turnout("estimate", tally, *options).stdout)
    truth = frame.groupby("hlthp")["mdvis"].value_counts(normalize=True)
    assert len(found["estimates"]) == 2 * 78
    for record in found["estimates"]:
        share = truth.get((int(record["group"]["hlthp"]), record["label"]), 0.0)
        assert record["low"] <= share <= record["high"]
    shares = tmp_path / "shares.csv"
    assert turnout("estimate", tally, "-o", shares).exit_code == 0
    assert len(pd.read_csv(shares)) == 2 * 78


def test_a_ward_counts_its_patients_under_secret_sharing(tmp_path: Path, turnout: Run) -> None:
    source = file_of("statsmodels", "heart/heart.csv")
    frame = pd.read_csv(source)
    options = ("survey", source, "-c", "censors", "-e", 1, "--labels", "0.000000,1.000000")
    options = (*options, "--trust", "aggregators", "--seed", 2, "--interval", 1 - ALPHA, "--json")
    result = turnout(*options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    truth = frame["censors"].value_counts(normalize=True)
    for record in found["estimates"]:
        assert record["low"] <= truth[float(record["label"])] <= record["high"]
    local = tn.survey(source, "censors", epsilon=1.0, seed=2).estimate.standard_errors
    assert 2 * max(record["standard_error"] for record in found["estimates"]) < local.max()


def test_a_lab_trains_on_digits_that_stay_where_they_are() -> None:
    pixels, digit = digits()
    order = np.random.default_rng(1).permutation(len(digit))
    inputs = np.column_stack([pixels[order] / 16 - 0.3, np.ones(len(digit))])
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    large = digit[order] >= 5
    clients, each = 700, 2
    held = inputs[: clients * each].reshape(clients, each, -1)
    known = large[: clients * each].reshape(clients, each)
    others, answers = inputs[clients * each :], large[clients * each :]
    plan = RandomParticipationSGD(
        client_rate=0.5, sample_rate=1.0, clip=0.5, noise_multiplier=2.0,
        local_size=each, seed=1,
    )  # fmt: skip

    def gradients(model: Any, client: Any, elements: Any) -> Any:
        x = held[client, elements]
        return (1 / (1 + np.exp(-x @ model)) - known[client, elements])[:, None] * x

    engine = InProcessEngine(
        plan, np.zeros(inputs.shape[1]), gradients, sizes=each, optimizer=SGD(3.0),
        clients=clients, batched=True,
    )  # fmt: skip
    model = engine.run(20)
    right = ((others @ model > 0) == answers).mean()
    # Of 397 digits a coin gets as many right with a chance far below ALPHA.
    assert right > 0.75
    assert plan.mechanism.compose(20).epsilon(delta=1e-5) <= 8.0


def test_a_library_publishes_one_pixel_of_each_drawing(tmp_path: Path, turnout: Run) -> None:
    pixels, _ = digits()
    ink = pixels[:80] > 8
    drawing, pixel = np.nonzero(ink)
    source, target = tmp_path / "ink.parquet", tmp_path / "drawn.csv"
    pd.DataFrame({"drawing": drawing, "pixel": pixel}).to_parquet(source)
    labels = ",".join(map(str, range(64)))
    made = turnout(
        "sample", source, "-c", "pixel", "--rows-are", "drawing", "-e", 4, "--labels", labels,
        "--method", "mollifier", "--seed", 5, "-o", target,
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    drawn = pd.read_csv(target)
    assert len(drawn) == 80
    # A draw is in the drawing's own ink far more often than chance, and the bounds hold the truth.
    own = ink[drawn["drawing"], drawn["pixel"]].mean()
    assert own > 1.5 * ink.mean()
    sampler = tn.samplers.choose_sampler(4.0, 64)
    assert type(sampler) is tn.samplers.FiniteMollifier
    draws = tn.samplers.sample_population(sampler, pixel, drawing, seed=5)
    truth = (ink / ink.sum(axis=1, keepdims=True)).mean(axis=0)
    bounds = draws.estimate().bounds(1 - ALPHA)
    assert ((bounds.low <= truth) & (truth <= bounds.high)).all()
