"""Two-round collection: laws of both rounds, and of what puts them together."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import turnout as tn
from turnout.errors import (
    CodeOutsideDomainError,
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
)
from turnout.frequency.adaptive import (
    SecondTally,
    TwoRoundCollection,
    TwoRoundTallies,
    rates_for_rare,
)

COUNTS = np.array([1400, 450, 120, 30])
NODES = int(COUNTS.sum())
TRUTH = COUNTS / NODES
VALUES = np.repeat(np.arange(4), COUNTS)
REPEATS = 3_000


@functools.cache
def collection() -> TwoRoundCollection:
    return TwoRoundCollection(
        4,
        epsilon=5.0,
        first_rate=0.3,
        second_rate=0.3,
        low=0.15,
        high=0.9,
    )


@functools.cache
def runs() -> list[TwoRoundTallies]:
    return [collection().simulate(COUNTS, seed=seed) for seed in range(REPEATS)]


def test_rates_are_the_inverse_of_the_frequencies() -> None:
    frequencies = np.array([0.6, 0.3, 0.08, 0.02])
    rates = rates_for_rare(frequencies, rate=0.05, low=0.01, high=0.99)
    assert np.allclose(rates * frequencies, 0.05 / 4)


def test_clipped_rates_meet_the_budget() -> None:
    frequencies = np.array([0.7, 0.2, 0.09, 0.01, 0.0])
    low, high, rate = 0.06, 0.4, 0.1
    rates = rates_for_rare(frequencies, rate=rate, low=low, high=high)
    assert rates @ frequencies == pytest.approx(rate, rel=1e-9)
    assert rates.min() >= low
    assert rates.max() <= high

    # A root finder on the scale, in place of the bisection in logarithms.
    def excess(scale: float) -> float:
        shares = np.maximum(frequencies, 1e-100)
        return float(np.clip(scale / shares, low, high) @ frequencies - rate)

    scale = optimize.brentq(excess, 0.0, 10.0, xtol=1e-15)
    assert np.allclose(rates, np.clip(scale / np.maximum(frequencies, 1e-100), low, high))


def test_negative_estimates_and_extreme_budgets() -> None:
    estimated = [1.05, 0.1, -0.1, -0.05]
    assert rates_for_rare(estimated, rate=0.1, low=0.1, high=0.5)[0] == pytest.approx(0.1)
    assert rates_for_rare(estimated, rate=0.5, low=0.1, high=0.5) == pytest.approx([0.5] * 4)


def test_nodes_take_part_at_the_rate_of_their_answer(statistical: ModuleType) -> None:
    second = collection().simulate(COUNTS, seed=2).second.round
    assert len(set(second.rates.tolist())) > 2
    number = 40_000
    p, _ = second.oracle.support_probabilities
    for code, rate in enumerate(second.rates.tolist()):
        tally = second.collect(np.full(number, code), seed=7 + code)
        statistical.check_share(tally.received, number, rate, rate)
        statistical.check_share(int(tally.support[code]), number, rate * p, rate * p)


@pytest.mark.parametrize("path", ["collect", "simulate"])
def test_the_second_round_is_unbiased_with_its_exact_variance(
    path: str, statistical: ModuleType
) -> None:
    second = collection().simulate(COUNTS, seed=3).second.round
    given = VALUES if path == "collect" else COUNTS
    repeats = 4_000
    counts = [second._counts(getattr(second, path)(given, seed=seed)) for seed in range(repeats)]
    statistical.check_mean(counts, COUNTS)
    statistical.check_variance(counts, second._variance_of(COUNTS, COUNTS @ second.rates))


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_the_variance_is_the_sum_over_nodes(epsilon: float) -> None:
    settings = {"first_rate": 0.2, "second_rate": 0.3, "low": 0.3, "high": 0.6}
    collection = TwoRoundCollection(4, epsilon=epsilon, **settings)
    second = collection.simulate(COUNTS, seed=2).second.round
    p, q = second.oracle.support_probabilities
    expected = np.zeros(4)
    for code, (held, rate) in enumerate(zip(COUNTS, second.rates, strict=True)):
        for answer in range(4):
            r = p if code == answer else q
            # Every outcome of one node: its contribution to C - q S, or to C, and its chance.
            outcomes = [(1 - q, rate * r), (-q, rate * (1 - r)), (0.0, 1 - rate)]
            mean = sum(z * chance for z, chance in outcomes)
            square = sum(z * z * chance for z, chance in outcomes)
            expected[answer] += held * (square - mean**2)
    expected /= ((p - q) * second.rates) ** 2
    assert np.allclose(second._variance_of(COUNTS, COUNTS @ second.rates), expected, rtol=1e-12)


def test_the_rounds_have_the_covariance_that_is_claimed(statistical: ModuleType) -> None:
    both = np.array(
        [[run.estimate(1.0).frequencies, run.estimate(0.0).frequencies] for run in runs()]
    )
    statistical.check_mean(both, np.stack([TRUTH, TRUTH]))
    deviations = both - np.stack([TRUTH, TRUTH])
    expected = -TRUTH * (1 - TRUTH) / (NODES - 1)
    statistical.check_mean(deviations[:, 0] * deviations[:, 1], expected)


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_standard_errors_of_a_fixed_weight(weight: float) -> None:
    estimates = [run.estimate(weight) for run in runs()]
    measured = np.std([estimate.frequencies for estimate in estimates], axis=0)
    stated = np.sqrt(np.mean([estimate.standard_errors**2 for estimate in estimates], axis=0))
    # The measured deviation is known to 1.3 % (one standard error); the stated one clips at 0.
    assert np.allclose(stated, measured, rtol=0.08)


def test_the_best_weights_lose_little_to_being_estimated() -> None:
    estimates = [run.estimate() for run in runs()]
    errors = np.array([estimate.frequencies for estimate in estimates]) - TRUTH
    deviation = errors.std(axis=0)
    assert (np.abs(errors.mean(axis=0)) < 0.2 * deviation).all()
    fixed = [np.std([run.estimate(w).frequencies for run in runs()], axis=0)
             for w in (0.0, 0.2, 0.4, 0.6, 1.0)]  # fmt: skip
    assert (deviation < 1.06 * np.min(fixed, axis=0)).all()


def test_intervals_cover() -> None:
    covered = np.mean([run.estimate().interval(0.95).contains(TRUTH) for run in runs()], axis=0)
    assert (covered > 0.94).all()


def test_collect_and_simulate_agree_in_law(statistical: ModuleType) -> None:
    repeats = 2_000
    laws = []
    for path, given in (("collect", VALUES), ("simulate", COUNTS)):
        made = [getattr(collection(), path)(given, seed=seed + 50_000) for seed in range(repeats)]
        laws.append(np.array([[*m.first.support, *m.second.support, m.received] for m in made]))
    for one, other in zip(laws[0].T, laws[1].T, strict=True):
        # In 20 cells of equal probability.
        cuts = np.unique(np.quantile(np.append(one, other), np.linspace(0, 1, 21)[1:-1]))
        statistical.check_same_law(np.searchsorted(cuts, one), np.searchsorted(cuts, other))


def test_nobody_is_asked_twice() -> None:
    tallies = collection().collect(VALUES, seed=4)
    assert tallies.first.received + tallies.second.nodes == NODES


@pytest.mark.parametrize("labels", [["a", "b", "c", "d"], [3, 2, 1, 0]])
def test_labels_give_what_their_codes_give(labels: list[object]) -> None:
    labelled = TwoRoundCollection(
        tn.Domain(labels),
        epsilon=5.0,
        first_rate=0.3,
        second_rate=0.3,
        low=0.15,
        high=0.9,
    )
    found = labelled.collect([labels[code] for code in VALUES], seed=4)
    expected = collection().collect(VALUES, seed=4)
    assert np.array_equal(found.first.support, expected.first.support)
    assert np.array_equal(found.second.support, expected.second.support)
    assert found.estimate().domain == tn.Domain(labels)


@pytest.mark.parametrize("outside", [4, -1])
def test_answers_outside_of_the_domain_are_refused(outside: int) -> None:
    second = collection().simulate(COUNTS, seed=1).second.round
    with pytest.raises(CodeOutsideDomainError, match=r"values\[1\] is not"):
        second.collect(np.array([0, outside]))


def test_a_seed_repeats_and_none_does_not() -> None:
    one, other = (collection().collect(VALUES, seed=11) for _ in range(2))
    assert one.first == other.first
    assert np.array_equal(one.second.support, other.second.support)
    fresh = [collection().collect(VALUES).second.support.tolist() for _ in range(4)]
    assert any(support != fresh[0] for support in fresh[1:])


def test_tallies_of_one_round_add_up() -> None:
    second = collection().simulate(COUNTS, seed=1).second.round
    one, other = second.collect(VALUES[::2], seed=1), second.collect(VALUES[1::2], seed=2)
    total = one + other
    assert total.nodes == NODES
    assert np.array_equal(total.support, one.support + other.support)
    elsewhere = collection().simulate(COUNTS, seed=2).second
    with pytest.raises(PlanMismatchError):
        _ = one + elsewhere
    with pytest.raises(TypeError):
        _ = one + 1  # type: ignore[operator]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": 0.6, "high": 0.5}, "low must be at most high"),
        ({"low": 0.001, "high": 0.9}, "low and high must leave something"),
        (
            {"second_rate": 0.6},
            "second_rate must be from 0.045 to 0.45: the mean",
        ),
        ({"second_rate": 0.98}, "second_rate must be at most"),
        ({"first_rate": 1.0}, "first_rate must be below 1"),
        ({"first_rate": 0.0}, "first_rate must be a probability"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": float("nan")}, "epsilon must be"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_spent(
    changes: dict[str, Any], message: str
) -> None:
    settings = {"epsilon": 4.0, "first_rate": 0.1, "second_rate": 0.1, "low": 0.05, "high": 0.5}
    with pytest.raises(InvalidValueError, match=message):
        TwoRoundCollection(4, **(settings | changes))


def test_wrong_types_are_refused() -> None:
    settings: dict[str, Any] = {"epsilon": 4.0, "first_rate": 0.1, "second_rate": 0.1, "low": 0.05}
    for changes in ({"oracle": 3}, {"epsilon": "1"}):
        with pytest.raises(InvalidTypeError):
            TwoRoundCollection(4, high=0.5, **(settings | changes))
    with pytest.raises(InvalidTypeError, match="first must be a Tally"):
        collection().second_round(3)  # type: ignore[arg-type]


def test_tallies_that_do_not_belong_are_refused() -> None:
    tallies = collection().simulate(COUNTS, seed=1)
    other = tn.DirectEncoding(4.0, 4).simulate(COUNTS)
    with pytest.raises(PlanMismatchError):
        collection().second_round(other)
    with pytest.raises(PlanMismatchError):
        TwoRoundTallies(collection(), other, tallies.second).estimate()
    second = tallies.second
    half = SecondTally(second.plan, second.support, second.received, 1999)
    with pytest.raises(InvalidValueError, match="second must cover the"):
        TwoRoundTallies(collection(), tallies.first, half).estimate()
    with pytest.raises(InvalidValueError, match="weight must be in"):
        tallies.estimate(1.5)
    with pytest.raises(InvalidValueError, match="support must add up to the 3 reports"):
        SecondTally(second.plan, [9, 0, 0, 0], 3, 10)


def test_a_first_round_without_reports_says_so() -> None:
    quiet = TwoRoundCollection(4, epsilon=5.0, first_rate=1e-9, second_rate=0.3, low=0.2, high=0.9)
    with pytest.raises(EstimatorError, match="no reports were received"):
        quiet.collect(VALUES, seed=1)
