"""Sampling with a threshold: what is published, what it says, and what it protects."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

import turnout as tn
import turnout.distributed as td
from turnout.accounting import SampleAndThreshold
from turnout.distributed.mechanisms import mechanism_from_dict
from turnout.distributed.rounds import exchange
from turnout.errors import EstimatorError, InvalidTypeError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate

EPSILONS = (0.0, 0.2, 0.7, 1.5)


def published(
    law: dict[Any, Fraction], threshold: int, *, heads: Fraction | None = None
) -> dict[Any, Fraction]:
    """Withhold counts below the threshold; with coins that are told, where they show heads."""
    seen: dict[Any, Fraction] = defaultdict(Fraction)
    for (sums, shown), mass in law.items():
        if heads is None or 1 in shown:
            counts = tuple(count if count >= threshold else 0 for count in sums)
            seen[counts, shown] += mass / (heads or 1)
    return dict(seen)


@pytest.mark.parametrize("adjacency", ["replace", "add_or_remove"])
@pytest.mark.parametrize("colluding", [0, 1])
def test_what_is_published_loses_no_more_than_is_promised_whatever_coins_are_known(
    views: ModuleType, colluding: int, adjacency: str
) -> None:
    threshold, rate = 3, 0.375
    mechanism = td.SamplingAggregation(
        2, 7, rate=rate, threshold=threshold, max_colluding_users=colluding, adjacency=adjacency
    )
    promised = [mechanism.guarantee.mechanism.delta(e, adjacency) for e in EPSILONS]
    careless = [SampleAndThreshold(rate, threshold).delta(e, adjacency) for e in EPSILONS]
    other = 1 if adjacency == "replace" else None
    largest = np.zeros(len(EPSILONS))
    for held in itertools.combinations_with_replacement(range(2), 6):
        for told in {held.index(item) for item in held} if colluding else [None]:
            known = () if told is None else (told,)
            one, two = (
                published(
                    views.sampled(mechanism, item, held, colluding=known),
                    threshold,
                    heads=Fraction(rate) if known else None,
                )
                for item in (0, other)
            )
            for pair in ((one, two), (two, one)):
                found = [float(delta) for delta in views.divergences(*pair, EPSILONS)]
                largest = np.maximum(largest, found)
    assert (largest <= promised).all()
    assert (largest > 0.3 * np.array(promised)).all()
    if colluding:
        assert (largest > careless).any()


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_cover_every_count_published_or_not(level: float) -> None:
    users, rate, threshold = 40, 0.3, 4
    mechanism = td.SamplingAggregation(2, users, rate=rate, threshold=threshold)
    counts = np.arange(users + 1)
    seen = np.where(counts >= threshold, counts, 0)
    # Any two counts, also those whose total is refused.
    laws = [mechanism._estimate_sums(np.array([count, 0]), users) for count in seen.tolist()]
    found = (FrequencyEstimate._from_estimation(mechanism, "x", users, users, law) for law in laws)
    limits = [one.interval(level) for one in found]
    low, high = (np.array([getattr(one, side)[0] for one in limits]) for side in ("low", "high"))
    chance = stats.binom.pmf(counts[None, :], counts[:, None], rate)
    truth = counts[:, None] / users
    covered = (low <= truth + 1e-12) & (truth <= high + 1e-12)
    coverage = (chance * covered).sum(axis=1)
    assert coverage.min() >= level
    # "Below" is an interval from nobody to so many that so small a count is unlikely.
    assert (low[:threshold] == 0.0).all()
    assert 0.0 < high[0] < 1.0
    assert np.unique(high[:threshold]).size == 1


@pytest.mark.parametrize(("rate", "threshold"), [(0.3, 1), (0.3, 2), (0.6, 9), (0.9, 60)])
def test_variances_and_errors_are_those_of_the_law(rate: float, threshold: int) -> None:
    mechanism = td.SamplingAggregation(3, 60, rate=rate, threshold=threshold)
    held = np.array([0, 13, 47])
    counts = np.arange(61)
    masses = stats.binom.pmf(counts[None, :], held[:, None], rate)
    estimates = np.where(counts >= threshold, counts, 0) / (60 * rate)
    means = masses @ estimates
    assert mechanism.variances(held / 60) == pytest.approx(
        masses @ estimates**2 - means**2, rel=1e-9, abs=1e-15
    )
    squares = (masses * (estimates - held[:, None] / 60) ** 2).sum(axis=1)
    expected = np.sqrt(squares.mean())
    assert mechanism.expected_error(held / 60) == pytest.approx(expected, rel=1e-9)


def test_a_round_with_all_messages_publishes_what_reaches_the_threshold() -> None:
    mechanism = td.SamplingAggregation(3, 9, rate=1 - 1e-12, threshold=3, parties=2)
    values = [0] * 5 + [1] * 3 + [2]
    for result in (exchange(td.Round.start(mechanism), values), mechanism.run(values)):
        assert result.sums.tolist() == [5, 3, 0]
        estimate = result.estimate
        assert estimate.frequencies == pytest.approx([5 / 9, 3 / 9, 0.0])
        assert np.isnan(estimate.standard_errors).tolist() == [False, False, True]
        assert [row["standard_error"] for row in estimate.to_arrow().to_pylist()][2] is None
        with pytest.raises(EstimatorError, match="with a threshold has no score interval"):
            estimate.interval(0.9, method="score")
        with pytest.raises(EstimatorError, match="standard errors are needed of all answers"):
            estimate.shrink()
    with pytest.raises(InvalidValueError, match=r"sums\[1\] must be 0 or at least the threshold"):
        mechanism.estimate([5, 2, 0])


def test_the_rate_is_the_largest_for_the_target_and_the_server_is_trusted() -> None:
    wanted: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8, "adjacency": "add_or_remove"}
    mechanism = td.SamplingAggregation(3, 1000, threshold=20, **wanted)
    assert mechanism.rate == pytest.approx(0.2514, abs=1e-4)
    assert mechanism.accounting == SampleAndThreshold(mechanism.rate, 20)
    assert "sees the counts below 20" in str(mechanism.guarantee)
    assert "the data may be anything" in str(mechanism.guarantee)
    assert mechanism_from_dict(mechanism.to_dict()) == mechanism
    central = td.SamplingAggregation(3, 1000, threshold=20, central=True, **wanted)
    assert "sees the counts" not in str(central.guarantee)
    told = td.SamplingAggregation(3, 1000, threshold=20, max_colluding_users=4, **wanted)
    assert told.accounting == SampleAndThreshold(told.rate, 16)
    assert told.rate < mechanism.rate


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"threshold": 0}, InvalidValueError, "threshold must be"),
        ({"threshold": 2.5}, InvalidTypeError, "threshold must be"),
        ({"threshold": 101}, InvalidValueError, "threshold must be at most the 100 users"),
        (
            {"threshold": 3, "max_colluding_users": 3},
            InvalidValueError,
            "threshold must be above max_colluding_users, got 3",
        ),
        ({"threshold": 3, "floor": 2}, InvalidValueError, "floor must be 0 with a threshold"),
        ({"threshold": 3, "dummies": 2}, InvalidValueError, "dummies must be 0 with a threshold"),
    ],
)
def test_thresholds_that_cannot_be_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        td.SamplingAggregation(tn.Domain(["a", "b"]), 100, rate=0.5, **arguments)
