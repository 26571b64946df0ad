"""Estimates of several attributes: unbiased, with the variances that are promised."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.frequency.attributes import (
    AttributeCollection,
    PaddedOracle,
    SampledAttribute,
    SplitBudget,
)

NODES = 60
TABLE = {
    "a": np.repeat([0, 1], [45, 15]),
    "b": np.tile(np.repeat([0, 1, 2], [8, 8, 4]), 3),
}
COUNTS = {"a": [45, 15], "b": [24, 24, 12]}
COLLECTIONS = {
    "split": SplitBudget(3.0, {"a": 2, "b": 3}, weights={"a": 1, "b": 2}),
    "sampled": SampledAttribute(2.0, {"a": 2, "b": 3}, weights={"a": 1, "b": 2}),
    "padded": SampledAttribute(2.0, {"a": 2, "b": 3}, weights={"a": 2, "b": 3}, padding="fake"),
}


def repeated(
    collection: AttributeCollection, participation: tn.Participation, method: str, runs: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Estimated counts of all answers of all attributes, a row for each run."""
    rows = []
    for run in range(runs):
        tally = collection.collect(TABLE, participation=participation, seed=run)
        estimates = tally.estimate(method)
        rows.append(np.concatenate([estimate.counts for estimate in estimates.values()]))
    return np.array(rows)


@pytest.mark.parametrize("method", ["hajek", "c_hat"])
@pytest.mark.parametrize("rate", [0.75, 1.0])
@pytest.mark.parametrize("scheme", COLLECTIONS)
def test_estimates_are_unbiased_and_as_spread_as_promised(
    scheme: str, rate: float, method: str, statistical: ModuleType
) -> None:
    collection, participation = COLLECTIONS[scheme], tn.Bernoulli(rate)
    counts = repeated(collection, participation, method, 2000)
    statistical.check_mean(counts, np.concatenate(list(COUNTS.values())))
    variances = tn.estimator_variance(collection, participation, true_counts=COUNTS, method=method)
    statistical.check_variance(counts, np.concatenate(list(variances.values())))


@pytest.mark.parametrize("scheme", COLLECTIONS)
def test_personal_participation_that_depends_on_values_leaves_weighted_estimates_unbiased(
    scheme: str, statistical: ModuleType
) -> None:
    chances = np.where(TABLE["a"] == 1, 0.9, 0.4)
    counts = repeated(COLLECTIONS[scheme], tn.Personalized(chances), "horvitz_thompson", 2000)
    statistical.check_mean(counts, np.concatenate(list(COUNTS.values())))


def test_a_wrong_share_of_fake_reports_would_be_noticed(statistical: ModuleType) -> None:
    counts = repeated(COLLECTIONS["padded"], tn.Everyone(), "hajek", 2000)[:, :2]
    as_if_real = (counts - NODES / 2) * 0.4 + NODES / 2
    with pytest.raises(AssertionError, match="mean"):
        statistical.check_mean(as_if_real, COUNTS["a"])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("attributes", [2, 5, 20])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_padding_costs_variance_and_gains_none(
    epsilon: float, attributes: int, rate: float
) -> None:
    generator = np.random.default_rng(attributes)
    counts = {
        f"a{position}": generator.multinomial(
            10_000, generator.dirichlet(np.ones(2 + position % 7))
        )
        for position in range(attributes)
    }
    sizes = {name: len(each) for name, each in counts.items()}
    participation = tn.Bernoulli(rate)
    plain = tn.estimator_variance(
        SampledAttribute(epsilon, sizes), participation, true_counts=counts
    )
    padded = tn.estimator_variance(
        SampledAttribute(epsilon, sizes, padding="fake"), participation, true_counts=counts
    )
    for name in counts:
        assert (padded[name] > plain[name]).all()


def test_sampling_wins_at_small_epsilon_and_splitting_at_large() -> None:
    counts = {"a": [6000, 4000], "b": [2500] * 4, "c": [1000] * 10}
    sizes = {name: len(each) for name, each in counts.items()}

    def error(collection: AttributeCollection) -> float:
        variances = tn.estimator_variance(collection, 1, true_counts=counts)
        return float(sum(each.mean() for each in variances.values()))

    for epsilon, split_wins in ((1.0, False), (20.0, True)):
        split = error(SplitBudget(epsilon, sizes, oracle=tn.DirectEncoding))
        sampled = error(SampledAttribute(epsilon, sizes, oracle=tn.DirectEncoding))
        fake = SampledAttribute(epsilon, sizes, oracle=tn.DirectEncoding, padding="fake")
        assert (split < sampled) == split_wins
        assert error(fake) > sampled


def test_padded_reports_simulated_from_counts_have_the_law_of_collected_ones(
    statistical: ModuleType,
) -> None:
    oracle = PaddedOracle(2.0, 3, oracle=tn.DirectEncoding(2.0, 3), own_probability=0.4)
    rate, runs = tn.Bernoulli(0.5), 2500
    simulated = np.array(
        [oracle.simulate([24, 24, 12], participation=rate, seed=i).support for i in range(runs)]
    )
    collected = np.array(
        [oracle.collect(TABLE["b"], participation=rate, seed=i).support for i in range(runs)]
    )
    p, q = oracle.support_probabilities
    mean = 0.5 * (q * NODES + (p - q) * np.array([24, 24, 12]))
    for column in range(3):
        statistical.check_same_law(simulated[:, column], collected[:, column])
    statistical.check_mean(simulated, mean)
    statistical.check_mean(collected, mean)


def test_everyone_who_takes_part_reports_all_attributes_of_a_split_budget() -> None:
    answers = np.arange(1000) % 7
    both = SplitBudget(60.0, {"a": 7, "b": 7})
    rate, table = tn.Bernoulli(0.3), {"a": answers, "b": answers}
    reports = both.by_attribute(both.randomize(table, participation=rate, seed=1))
    assert 200 < len(reports["a"]) < 400
    assert np.array_equal(reports["a"].codes, reports["b"].codes)


def test_fake_reports_are_of_uniform_answers(statistical: ModuleType) -> None:
    one = SampledAttribute(30.0, {"a": 5, "b": 2}, weights={"a": 1e-9, "b": 1}, padding="fake")
    made = one.randomize({"a": [3] * 100_000, "b": [0] * 100_000}, seed=3)
    reports = one.by_attribute(made)
    statistical.check_law(np.bincount(reports["a"].codes, minlength=5), [0.2] * 5)


def adult() -> dict[str, list[str]]:
    given = os.environ.get("TURNOUT_DATA")
    folder = Path(given) if given else Path(__file__).parents[3].parent / "shared" / "data"
    if not (folder / "adult.data.gz").is_file():
        pytest.skip(f"the Adult data is not in {folder}: set TURNOUT_DATA to the folder with it")
    with gzip.open(folder / "adult.data.gz", "rt", encoding="utf-8") as lines:
        rows = [[field.strip() for field in line.split(",")] for line in lines if "," in line]
    columns = {"workclass": 1, "education": 3, "race": 8, "sex": 9, "income": 14}
    return {name: [row[place] for row in rows] for name, place in columns.items()}


def test_all_attributes_of_adult_lie_in_their_intervals() -> None:
    table = adult()
    domains = {name: tn.Domain.from_values(column) for name, column in table.items()}
    for collection in (
        SplitBudget(5.0, domains),
        SampledAttribute(5.0, domains),
        SampledAttribute(5.0, domains, padding="fake"),
    ):
        tally = collection.collect(table, participation=tn.Bernoulli(0.8), seed=1)
        assert tally.nodes == 32_561
        for name, estimate in tally.estimate().items():
            codes = domains[name].encode(table[name])
            truth = np.bincount(codes, minlength=domains[name].size) / tally.nodes
            limits = estimate.interval(1 - 1e-6 / 15, simultaneous="bonferroni")
            assert limits.contains(truth).all()
