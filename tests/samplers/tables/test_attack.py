"""The attacker who tells whose record was drawn: the law of its guesses, and the bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers import (
    FiniteMollifier,
    PopulationDraws,
    TableSampler,
    quality,
    sample_population,
)

pytest.importorskip("sklearn")

# Chance that one of these tests fails although all is right.
ALPHA = 1e-6

#: How far a mean may be from its expectation, in standard errors.
FAR = norm.isf(ALPHA / 2)


def measured(frame: pd.DataFrame, users: Any, sampler: TableSampler) -> dict[str, float]:
    drawn = sample_population(sampler, frame, users, seed=3)
    found = quality(frame, drawn, users=users).attack
    assert found is not None
    return found


def test_guesses_are_as_often_right_as_the_law_says() -> None:
    """One record of each person, of two values, half of them each: by the minimax sampler."""
    frame = pd.DataFrame({"a": ["x", "y"] * 100})
    for epsilon in (0.5, 2.0):
        sampler = TableSampler(epsilon, {"a": ["x", "y"]}, records=1)
        found = measured(frame, range(200), sampler)
        # Two with the same value are told apart by a coin, as 99 of the 199 others are.
        right = math.exp(epsilon) / (math.exp(epsilon) + 1.0)
        expected = (100 * right + 99 * 0.5) / 199
        assert abs(found["right"] - expected) < FAR * found["standard_error"]
        assert found["bound"] == pytest.approx(right)
        assert found["people"] == 200
        # Epsilon 0.1 too much would be noticed.
        assert abs(found["right"] - expected) < 0.1


def test_guesses_are_those_of_the_scores_of_fitted_samplers() -> None:
    generator = np.random.default_rng(1)
    frame = pd.DataFrame({"n": generator.integers(0, 9, 60), "s": list("fm") * 30})
    users = np.repeat(range(12), 5)
    sampler = TableSampler(3.0, {"n": (0, 8), "s": ["f", "m"]})
    drawn = sample_population(sampler, frame, users, seed=1)
    scores = np.array(
        [
            TableSampler(3.0, sampler.columns).fit(frame[users == user]).score_samples(drawn.draws)
            for user in range(12)
        ]
    )
    own = np.diagonal(scores)
    won = (own > scores) + 0.5 * (own == scores)
    right = [np.delete(won[:, person], person).mean() for person in range(12)]
    found = quality(frame, drawn, users=users).attack
    assert found is not None
    assert found["right"] == pytest.approx(np.mean(right))
    assert found["standard_error"] == pytest.approx(np.std(right, ddof=1) / math.sqrt(12))


@pytest.mark.parametrize("reference", [False, True])
def test_no_attack_exceeds_the_bound(reference: bool) -> None:
    """People as far apart as they can be, with more cells than can be listed."""
    bounds = {name: {"bounds": (0, 2**20), "bins": 64} for name in "abc"}
    places = np.repeat(np.linspace(0, 2**20, 80).astype(int), 20)
    frame = pd.DataFrame(dict.fromkeys("abc", places))
    users = np.repeat(range(80), 20)
    public = frame.iloc[::20] if reference else None
    sampler = TableSampler(1.0, bounds, reference=public)
    assert sampler._public().method == "resampling"
    found = measured(frame, users, sampler)
    assert found["right"] - FAR * found["standard_error"] < found["bound"]
    # The attacker is a good one: it uses most of what epsilon leaves.
    assert found["right"] + FAR * found["standard_error"] > 0.6


def test_the_same_records_of_all_are_a_coin() -> None:
    frame = pd.DataFrame({"n": [3] * 40})
    found = measured(frame, np.repeat(range(10), 4), TableSampler(4.0, {"n": (0, 9)}))
    assert (found["right"], found["standard_error"]) == (0.5, 0.0)


def test_what_does_not_fit_is_refused() -> None:
    frame = pd.DataFrame({"n": [1, 2, 3, 4]})
    sampler = TableSampler(1.0, {"n": (0, 9)})
    drawn = sample_population(sampler, frame, [1, 1, 2, 2], seed=1)
    with pytest.raises(InvalidValueError, match="users must be those of the draws"):
        quality(frame, drawn, users=[1, 1, 2, 3])
    with pytest.raises(InvalidValueError, match="what sample_population gave"):
        quality(frame, drawn.draws, {"n": (0, 9)}, users=[1, 1, 2, 2])
    other = PopulationDraws(drawn.users, np.array([1, 2]), FiniteMollifier(1.0, 5))
    with pytest.raises(InvalidTypeError, match="records of a TableSampler"):
        quality(frame, other)
    assert quality(frame, drawn).attack is None
    alone = sample_population(sampler, frame, [1] * 4, seed=1)
    assert quality(frame, alone, users=[1] * 4).attack is None


def test_shares_are_those_of_named_cells() -> None:
    columns = {
        "n": {"bounds": (0, 39), "bins": 2, "missing": True},
        "x": {"bounds": (0.0, 1.0), "bins": 2},
        "s": ["f", "missing"],
    }
    frame = pd.DataFrame(
        {"n": [1.0, 1, 21, None], "x": [0.1, 0.6, 0.7, 0.8], "s": ["f", "f", "f", "missing"]}
    )
    found = quality(frame, frame.iloc[:2], columns).shares
    assert found == {
        "n": {"0 to 19": (0.5, 1.0), "20 to 39": (0.25, 0.0), "missing": (0.25, 0.0)},
        "x": {"0 to 0.5": (0.25, 0.5), "0.5 to 1": (0.75, 0.5)},
        "s": {"f": (0.75, 1.0), "missing": (0.25, 0.0)},
    }
