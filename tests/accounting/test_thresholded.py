"""Sampled counts above a threshold: against rationals over all counts, and over pairs of them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf
from scipy import stats

from turnout.accounting import CountSampling, SampleAndThreshold, calibrate, thresholded
from turnout.errors import InvalidTypeError, InvalidValueError

#: Rate, threshold, epsilon, and a count behind which no divergence is larger.
CASES = [
    (0.3, 5, 0.5, 40),
    (0.5, 3, 0.2, 40),
    (0.5, 3, 0.0, 40),
    (0.8, 4, 1.2, 40),
    (0.2, 4, 0.1, 80),
    (0.6, 1, 0.5, 20),
    (0.01, 2, 0.005, 400),
    (0.9, 7, 2.2, 80),
]


def law(count: int, p: Fraction, threshold: int) -> list[Fraction]:
    """Exact masses: of an unpublished count, and of all published ones."""
    masses = [
        math.comb(count, k) * p**k * (1 - p) ** (count - k)
        for k in range(min(threshold, count + 1))
    ]
    above = [
        math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(threshold, count + 1)
    ]
    return [sum(masses, Fraction(0)), *above, Fraction(0)]


def divergence(first: list[Fraction], second: list[Fraction], alpha: Fraction) -> Fraction:
    pairs = itertools.zip_longest(first, second, fillvalue=Fraction(0))
    return sum((max(one - alpha * two, Fraction(0)) for one, two in pairs), Fraction(0))


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize(("rate", "threshold", "epsilon", "most"), CASES)
def test_delta_is_the_largest_over_all_counts(
    rate: float, threshold: int, epsilon: float, most: int, adjacency: str
) -> None:
    p = Fraction(rate)
    # In floating point for all counts, and exactly at the worst of them.
    counts = range(most)
    found = [_float_divergence(count, rate, threshold, epsilon, adjacency) for count in counts]
    worst = int(np.argmax(found))
    assert worst < most - 5
    more, fewer = law(worst + 1, p, threshold), law(worst, p, threshold)
    pair = (more, fewer) if adjacency == "remove" else (fewer, more)
    exact = divergence(*pair, Fraction(math.exp(epsilon)))
    delta = SampleAndThreshold(rate, threshold).delta(epsilon, adjacency)
    assert Fraction(delta) >= exact * (1 - Fraction(1, 10**14))
    assert delta <= float(exact) * (1.0 + 1e-8) + 1e-280
    bounds = SampleAndThreshold(rate, threshold).compose(1, adjacency).delta_bounds(epsilon)
    assert bounds.exact
    assert bounds.low <= float(exact) <= bounds.high == delta


def _float_divergence(
    count: int, rate: float, threshold: int, epsilon: float, adjacency: str
) -> float:
    pair = [_masses(size, rate, threshold, count + 1) for size in (count + 1, count)]
    one, two = pair if adjacency == "remove" else pair[::-1]
    return float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum())


def _masses(size: int, rate: float, threshold: int, most: int) -> npt.NDArray[np.float64]:
    masses = np.asarray(stats.binom.pmf(np.arange(most + 1), size, rate))
    return np.append(masses[:threshold].sum(), masses[threshold:])


@pytest.mark.parametrize(
    ("threshold", "delta", "rate"),
    [
        (20, 1e-8, 0.2514),
        (10, 1e-8, 0.1000),
        (50, 1e-8, 0.5007),
        (100, 1e-8, 0.6718),
        (20, 1e-5, 0.4134),
        (10, 1e-5, 0.2245),
    ],
)
def test_the_largest_rates(threshold: int, delta: float, rate: float) -> None:
    found = calibrate(SampleAndThreshold(0.1, threshold), "rate", 1.0, delta)
    assert found == pytest.approx(rate, abs=5e-5)
    assert SampleAndThreshold(found, threshold).delta(1.0) <= delta
    assert calibrate(SampleAndThreshold(found, 1), "threshold", 1.0, delta) == threshold


def test_what_a_deployed_system_is_said_to_spend_is_far_above_what_it_does() -> None:
    assert SampleAndThreshold(0.105, 20).delta(1.0) == pytest.approx(6.5e-15, rel=0.01)


@pytest.mark.parametrize(
    ("rate", "threshold", "epsilon", "slack"),
    [(0.3, 4, 0.5, 1.15), (0.5, 3, 0.2, 1.15), (0.2, 4, 1.0, 1.05), (0.6, 1, 0.5, 1.0001)],
)
def test_moving_a_person_is_bounded_over_all_pairs_of_counts(
    rate: float, threshold: int, epsilon: float, slack: float
) -> None:
    alpha, size = math.exp(epsilon), 22
    laws = [_masses(count, rate, threshold, size + 1) for count in range(size + 1)]
    largest = max(
        float(
            np.maximum(
                np.outer(laws[a + 1], laws[b]) - alpha * np.outer(laws[a], laws[b + 1]), 0.0
            ).sum()
        )
        for a, b in itertools.product(range(size), repeat=2)
    )
    found = SampleAndThreshold(rate, threshold).delta(epsilon, "replace")
    assert largest <= found <= slack * largest
    bounds = SampleAndThreshold(rate, threshold).compose(1, "replace").delta_bounds(epsilon)
    assert 0.8 * largest <= bounds.low <= largest
    assert (bounds.high, bounds.exact) == (found, False)


@pytest.mark.parametrize("adjacency", ["remove", "add", "add_or_remove", "replace"])
def test_limits(adjacency: str) -> None:
    assert SampleAndThreshold(0.0, 3).delta(0.5, adjacency) == 0.0
    assert SampleAndThreshold(1.0, 3).delta(0.5, adjacency) == 1.0
    # Without a threshold a lone person is seen.
    lone = SampleAndThreshold(0.25, 1).delta([0.0, 0.2, 1.0], adjacency)
    assert np.asarray(lone) == pytest.approx(
        np.asarray(CountSampling(0.25, 0).delta([0.0, 0.2, 1.0], adjacency)), rel=0.25
    )
    # Nobody is surprised to be missing where epsilon pays for the rate.
    assert SampleAndThreshold(0.25, 9).delta(-math.log(0.75) + 1e-6, "add") == 0.0


@mp.workdps(40)
def _worst_add(rate: float, threshold: int, epsilon: float) -> mpf:
    p, growth = mpf(rate), mp.expm1(mpf(epsilon))
    worst = int(mp.floor((threshold - 1) / (p - growth * (1 - p))))
    exact = mpf(0)
    for size in (worst - 1, worst, worst + 1):
        # Down from one below the threshold, until nothing is added.
        mass = before = mp.binomial(size, threshold - 1) * p ** (threshold - 1)
        mass = before = before * (1 - p) ** (size - threshold + 1)
        silent = mpf(0)
        for count in range(threshold - 1, -1, -1):
            silent += mass
            mass *= count * (1 - p) / ((size - count + 1) * p)
        exact = max(exact, (1 + growth) * p * before - growth * silent)
    return exact


@pytest.mark.parametrize(
    ("rate", "threshold", "epsilon"),
    [(0.5911534350013039, 1000, 0.5414124727934966), (0.9999110708717399, 100, 9.327420059252065)],
)
def test_no_lower_value_is_above_the_delta_of_the_worst_count(
    rate: float, threshold: int, epsilon: float
) -> None:
    bounds = SampleAndThreshold(rate, threshold).compose(1, "add").delta_bounds(epsilon)
    exact = _worst_add(rate, threshold, epsilon)
    assert mpf(bounds.low) <= exact <= mpf(bounds.high)
    assert bounds.exact == (exact > mpf(10) ** -280)
    assert not bounds.exact or bounds.low > 0.9999 * exact


@pytest.mark.parametrize("adjacency", ["remove", "add", "add_or_remove", "replace"])
@pytest.mark.parametrize("rate", [5e-324, 1e-310, 1e-290])
@pytest.mark.parametrize("threshold", [1, 2, 100_000])
def test_the_rarest_rates_have_bounds(rate: float, threshold: int, adjacency: str) -> None:
    mechanism = SampleAndThreshold(rate, threshold)
    assert rate <= mechanism.delta(0.0, adjacency) <= 3e-290
    assert mechanism.delta(1.0, adjacency) <= 3e-290
    bounds = mechanism.compose(1, adjacency).delta_bounds(0.0)
    assert (bounds.low, bounds.exact) == (0.0, False)


def test_lower_values_of_large_thresholds_take_little_memory() -> None:
    mechanism = SampleAndThreshold(0.1, 2000)
    bounds = mechanism.compose(1, "replace").delta_bounds(0.01)
    assert 0.05 * bounds.high < bounds.low < bounds.high
    sizes = [thresholded._outcomes(item, "replace").loss.size for item in mechanism._items()]
    assert 0 < max(sizes) <= 700**2


@pytest.mark.parametrize("adjacency", ["remove", "add", "replace"])
def test_more_people_kept_protect_less_and_a_higher_threshold_more(adjacency: str) -> None:
    epsilons = np.array([0.0, 0.05, 0.3])
    rates = [SampleAndThreshold(rate, 6).delta(epsilons, adjacency) for rate in (0.1, 0.3, 0.6)]
    assert (np.diff(np.array(rates), axis=0) >= -1e-12).all()
    higher = [SampleAndThreshold(0.3, k).delta(epsilons, adjacency) for k in (1, 2, 5, 12)]
    assert (np.diff(np.array(higher), axis=0) <= 1e-12).all()


def test_rounds_of_one_count_cost_less_than_the_composition() -> None:
    # Three rounds over the same people, on the count that is worst at the end.
    rate, threshold, rounds, epsilon = 0.3, 4, 3, 1.0
    found = SampleAndThreshold(rate, threshold).compose(rounds, "remove").delta(epsilon)
    largest = 0.0
    for count in range(3, 14):
        one, two = (_masses(size, rate, threshold, count + 1) for size in (count + 1, count))
        first = np.multiply.outer(np.multiply.outer(one, one), one)
        second = np.multiply.outer(np.multiply.outer(two, two), two)
        largest = max(largest, float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum()))
    assert largest <= found <= 1.5 * largest
    bounds = SampleAndThreshold(rate, threshold).compose(rounds, "remove").delta_bounds(epsilon)
    assert bounds.high == found
    # What is named is real: one of the counts above.
    assert 0.6 * largest <= bounds.low <= largest
    assert "other people who hold the item" in bounds.reached
    assert not bounds.exact


@pytest.mark.parametrize(
    ("rate", "threshold", "error"),
    [
        (1.5, 3, InvalidValueError),
        (-0.1, 3, InvalidValueError),
        ("x", 3, InvalidTypeError),
        (0.5, 0, InvalidValueError),
        (0.5, 10**6, InvalidValueError),
        (0.5, 2.5, InvalidTypeError),
    ],
)
def test_bad_parameters_are_refused(rate: Any, threshold: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"(rate|threshold) must be"):
        SampleAndThreshold(rate, threshold)


def test_rounds_of_a_move_lose_what_the_items_that_are_named_lose() -> None:
    mechanism, rounds, epsilon = SampleAndThreshold(0.6, 3), 2, 1.0
    bounds = mechanism.compose(rounds, "replace").delta_bounds(epsilon)
    reached = []
    for item in mechanism._items():
        sizes = item.others + 1, item.others, item.elsewhere + 1, item.elsewhere
        most = max(sizes)
        more, fewer, there, here = (_masses(size, 0.6, 3, most) for size in sizes)
        first, second = np.outer(more, here).ravel(), np.outer(fewer, there).ravel()
        both = np.outer(first, first) - math.exp(epsilon) * np.outer(second, second)
        if f"{item.others:,} other people" in bounds.reached:
            reached.append(float(np.maximum(both, 0.0).sum()))
    assert 0.9 * max(reached) < bounds.low <= max(reached) <= bounds.high


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_rounds_of_items_of_different_numbers_have_lower_values(epsilon: float) -> None:
    bounds = SampleAndThreshold(0.9, 300).compose(50, "replace").delta_bounds(epsilon)
    assert 0.5 * bounds.high < bounds.low < bounds.high
