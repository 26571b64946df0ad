"""Sampled counts: exact deltas in rationals, over real data sets and with dummies."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import turnout.accounting as ta

ADJACENCIES = ("replace", "remove", "add")
CASES = [(0.5, 0.3), (0.1, 1.0), (0.632, 1.0), (0.9, 0.05), (0.99, 2.0), (1e-9, 1e-3), (0.3, 0.0)]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("floor", [0, 1, 2, 5, 12])
def test_delta_is_the_exact_sum_rounded_up(
    floor: int, adjacency: str, references: ModuleType
) -> None:
    for rate, epsilon in CASES:
        exact = references.count_sampling_delta(epsilon, rate, floor, adjacency, floor)
        found = ta.CountSampling(rate, floor).delta(epsilon, adjacency=adjacency)
        references.check_bound(found, exact)


@pytest.mark.parametrize("floor", [80, 250])
def test_floors_of_hundreds_agree_with_the_double_sum_of_fifty_digits(
    floor: int, references: ModuleType
) -> None:
    for rate, epsilon in ((0.7, 1.0), (0.2, 0.1)):
        exact = references.count_replacement_delta(epsilon, rate, floor)
        references.check_bound(ta.CountSampling(rate, floor).delta(epsilon), exact)


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_floors_of_thousands_agree_with_a_single_sum_of_fifty_digits(
    adjacency: str, references: ModuleType
) -> None:
    # Of m + 1 against m: the ratio of the masses at x is (1-p) (m+1) / (m+1-x).
    floor, rate, epsilon = 5000, 0.6, 0.02
    with mp.workdps(50):
        p, alpha, mass = mpf(rate), mp.exp(mpf(epsilon)), (1 - mpf(rate)) ** floor
        exact = mpf(0)
        for x in range(floor + 2):
            ratio = mpf(floor + 1) / (floor + 1 - x) * (1 - p) if x <= floor else mp.inf
            if adjacency == "remove" and x > floor:
                exact += p ** (floor + 1)
            elif x <= floor:
                gap = ratio - alpha if adjacency == "remove" else 1 - alpha * ratio
                exact += mass * max(gap, 0)
                mass *= (floor - x) * p / ((x + 1) * (1 - p))
    found = ta.CountSampling(rate, floor).delta(epsilon, adjacency=adjacency)
    references.check_bound(found, exact)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_counts_above_the_floor_are_worse_than_both_at_the_floor(
    adjacency: str, references: ModuleType
) -> None:
    floor = 3
    for rate, epsilon in ((0.4, 0.3), (0.8, 1.0)):
        bound = ta.CountSampling(rate, floor).delta(epsilon, adjacency=adjacency)
        for first, second in itertools.product(range(floor, floor + 5), repeat=2):
            real = references.count_sampling_delta(epsilon, rate, first, adjacency, second)
            assert real <= Fraction(bound)


@pytest.mark.parametrize("dummies", [0, 1, 3])
def test_dummies_give_the_floor_to_any_data(dummies: int, references: ModuleType) -> None:
    rate, epsilon, items, users = 0.45, 0.4, 3, 3
    alpha = references.alpha_of(epsilon)
    bound = ta.CountSampling(rate, dummies).delta(epsilon)
    worst = Fraction(0)
    for others in itertools.combinations_with_replacement(range(items), users - 1):
        for value, other in itertools.permutations(range(items), 2):
            laws = [
                references.product_law(
                    [(*others, mine).count(item) + dummies for item in range(items)], rate
                )
                for mine in (value, other)
            ]
            worst = max(worst, references.hockey_stick(*laws, alpha))
    # Attained where nobody else holds either item.
    references.check_bound(bound, worst)


@pytest.mark.parametrize("dummies", [0, 2])
def test_dummies_give_the_floor_when_a_person_comes_or_goes(
    dummies: int, references: ModuleType
) -> None:
    rate, epsilon, items = 0.45, 0.2, 2
    alpha = references.alpha_of(epsilon)
    worst = {"remove": Fraction(0), "add": Fraction(0)}
    for others in itertools.product(range(3), repeat=items):
        without = references.product_law([count + dummies for count in others], rate)
        counts = [others[0] + dummies + 1, others[1] + dummies]
        with_person = references.product_law(counts, rate)
        for way, pair in (("remove", (with_person, without)), ("add", (without, with_person))):
            worst[way] = max(worst[way], references.hockey_stick(*pair, alpha))
    for way, exact in worst.items():
        references.check_bound(ta.CountSampling(rate, dummies).delta(epsilon, adjacency=way), exact)


def test_an_item_held_by_one_person_has_delta_equal_to_the_rate() -> None:
    for rate in (0.01, 0.5, 0.99):
        for epsilon in (0.0, 1.0, 10.0):
            found = ta.CountSampling(rate, 0).delta(epsilon)
            assert rate <= found <= rate * (1 + 1e-11)


def test_everybody_kept_means_no_privacy_and_nobody_kept_no_loss() -> None:
    for adjacency in (*ADJACENCIES, "add_or_remove"):
        assert ta.CountSampling(1.0, 50).delta(3.0, adjacency=adjacency) == 1
        assert ta.CountSampling(1.0, 50).epsilon(0.5, adjacency=adjacency) == math.inf
        assert ta.CountSampling(0.0, 50).delta(0.0, adjacency=adjacency) == 0


def test_add_or_remove_is_the_larger_of_both() -> None:
    for rate, epsilon in CASES:
        mechanism = ta.CountSampling(rate, 7)
        both = [mechanism.delta(epsilon, adjacency=way) for way in ("add", "remove")]
        assert mechanism.delta(epsilon, adjacency="add_or_remove") == max(both)
        assert mechanism.delta(epsilon) == mechanism.delta(epsilon, adjacency="replace")


@settings(max_examples=150, deadline=None)
@given(
    mechanism=st.builds(ta.CountSampling, st.floats(1e-3, 0.999), st.integers(0, 2000)),
    epsilon=st.floats(0.01, 4.0), share=st.floats(0.05, 1.0), more=st.integers(0, 500),
)  # fmt: skip
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_fewer_kept_or_more_people_are_never_worse(
    adjacency: str, mechanism: ta.CountSampling, epsilon: float, share: float, more: int
) -> None:
    rate, floor = mechanism.rate, mechanism.floor
    most = mechanism.delta(epsilon, adjacency=adjacency)
    assert 0 <= most <= 1
    for better in (
        ta.CountSampling(rate * share, floor).delta(epsilon, adjacency=adjacency),
        ta.CountSampling(rate, floor + more).delta(epsilon, adjacency=adjacency),
        ta.CountSampling(rate, floor).delta(epsilon / share, adjacency=adjacency),
    ):
        assert better <= most * (1 + 1e-11) + 1e-307


def test_a_floor_of_ten_million_is_close_to_the_gaussian_limit() -> None:
    # Two counts of variance m p (1-p) and means p apart.
    rate, floor, epsilon = 0.5, 10**7, 1e-4
    sigma = math.sqrt(floor * rate * (1 - rate)) / (rate * math.sqrt(2))
    found = ta.CountSampling(rate, floor).delta(epsilon)
    assert found == pytest.approx(ta.GaussianMechanism(sigma).delta(epsilon), rel=0.01)
