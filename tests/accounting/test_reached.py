"""Lower values are what something real reaches: data that exist, and named in the result."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

import turnout as tn
import turnout.accounting as ta
from turnout.accounting.reached import Client, clients
from turnout.accounting.values import Bracket

MANY, FEW = (0.001, 0.1, 30, 2.49029), (0.1, 0.001, 1000, 0.81509)
WAYS = ("remove", "add")


def drawn(seed: int, most: int = 40) -> tuple[ta.RandomParticipation, float]:
    random = np.random.default_rng(seed)

    def between(low: float, high: float) -> float:
        return math.exp(random.uniform(math.log(low), math.log(high)))

    mechanism = ta.RandomParticipation(
        between(1e-3, 1), between(0.01, 1), int(random.integers(most)), between(0.4, 4)
    )
    return mechanism, between(2e-3, 1)


def test_a_round_has_the_lower_value_that_its_configuration_has() -> None:
    low, high = bounds = ta.RandomParticipation(*MANY).compose(1).delta_bounds(0.015)
    assert (low, high) == (pytest.approx(7.10e-7, rel=2e-3), pytest.approx(7.1226e-7, rel=1e-4))
    assert bounds.reached == "30 other gradients aligned with the new one"
    assert not bounds.exact
    bounds = ta.RandomParticipation(*FEW[:3], 0.80866).compose(1).delta_bounds(0.015)
    assert 0.46e-6 < bounds.low < bounds.high < 1.001e-6
    assert bounds.reached == "1,000 other gradients at 75 degrees to the new one"


@pytest.mark.parametrize("way", WAYS)
def test_where_all_shares_are_positive_both_values_agree(
    way: str, configurations: ModuleType
) -> None:
    setting, epsilon = (0.0125, 0.664, 2, 1.258), 0.0378
    bounds = ta.RandomParticipation(*setting).compose(1, way).delta_bounds(epsilon)
    assert bounds.exact
    assert bounds.low == pytest.approx(bounds.high, rel=2e-8)
    # Two aligned gradients, or two opposed ones, by quadrature.
    gradient = 1.0 if way == "remove" else -1.0
    real = configurations.grouped(1.0, [(gradient, 2)])
    exact = configurations.line_delta(real, epsilon, setting[:2], setting[3], way)
    assert bounds.low <= exact <= mpf(bounds.high)
    assert float(exact) == pytest.approx(bounds.high, rel=1e-11)


@pytest.mark.parametrize("sigma", [1e-7, 1e-5, 1.0, 1e4, 1e5, 1e7, 1e15, 1e18])
def test_a_gaussian_has_no_lower_value_above_its_delta(
    sigma: float, references: ModuleType
) -> None:
    alone = ta.GaussianMechanism(sigma).compose(1)
    known = 1e-5 <= sigma <= 1e5
    for place in (0.0, 5.0, 30.0):
        epsilon = place / sigma + (0.5 / sigma**2 if sigma < 1.0 else 0.0)
        bounds = alone.delta_bounds(epsilon)
        exact = references.gaussian_delta(epsilon, sigma)
        assert mpf(bounds.low) <= exact <= mpf(bounds.high)
        assert (bounds.exact, bounds.low > 0.0) == (known, known)
    assert alone.epsilon_bounds(alone.delta(0.0) * 0.5).exact == known
    assert known or ta.GaussianMechanism(sigma).compose(3).delta_bounds(0.0).low == 0.0


def test_an_epsilon_next_to_zero_is_no_lower_value() -> None:
    # Delta at zero is known to eleven digits: what its twelfth says of epsilon is not.
    for sigma in (1.0, 1e4):
        target = math.erf(0.5 / sigma / math.sqrt(2.0)) * (1.0 - 1e-12)
        low, high = ta.GaussianMechanism(sigma).compose(1).epsilon_bounds(target)
        assert low == 0.0 < high


def test_deltas_below_all_numbers_are_not_reached() -> None:
    for rare in (ta.GaussianMechanism(1.0), ta.LocalSampling(0.1, 1.0)):
        assert rare.compose(1).delta_bounds(50.0) == (0.0, rare.delta(50.0))


@pytest.mark.parametrize("way", WAYS)
def test_at_epsilon_zero_no_other_gradients_are_worst(way: str, configurations: ModuleType) -> None:
    p, q, sigma = 0.3, 0.3, 1.0
    bounds = ta.RandomParticipation(p, q, 5, sigma).compose(1, way).delta_bounds(0.0)
    assert (bounds.reached, bounds.exact) == ("all other gradients zero", True)
    exact = configurations.line_delta(configurations.grouped(1.0, []), 0.0, (p, q), sigma, way)
    assert bounds.low <= exact * (1 + mpf(10) ** -12)
    assert float(exact) == pytest.approx(bounds.high, rel=1e-11)
    nothing = ta.RandomParticipation(p, q, 5, 1e20).compose(1, way).delta_bounds(0.0)
    assert (nothing.low, nothing.exact) == (0.0, False)


@pytest.mark.parametrize("seed", range(6))
def test_the_boxes_of_a_client_lose_what_its_configuration_loses(
    seed: int, configurations: ModuleType
) -> None:
    mechanism, epsilon = drawn(seed, 8)
    p, q, sigma = mechanism.client_rate, mechanism.sample_rate, mechanism.noise_multiplier
    for client in clients(p, q, mechanism.local_size, sigma):
        if client.angle % 180 != 0.0:
            continue
        gradient = 1.0 if client.angle == 0.0 else -1.0
        real = configurations.grouped(1.0, [(gradient, client.shown)] if client.shown else [])
        for way in WAYS:
            found = float(client._tail(way, np.array([epsilon])).delta[0])
            exact = float(configurations.line_delta(real, epsilon, (p, q), sigma, way))
            assert exact * (1 - 1e-3) - 1e-12 <= found <= exact * (1 + 1e-9) + 1e-15


def test_an_oblique_client_loses_what_its_configuration_loses(configurations: ModuleType) -> None:
    turned = np.array([[math.cos(math.pi / 3), math.sin(math.pi / 3)]])
    real = configurations.Configuration("oblique", np.array([1.0, 0.0]), turned, (10,))
    boxes = configurations.Round.of(real, 0.1, 1.2, (0.03, 0.04))
    client = Client(0.01, 0.1, 10, 1.2, 60.0)
    for way in WAYS:
        expected = boxes.delta(0.5, (0.01, 0.1), way)
        found = float(client._tail(way, np.array([0.5])).delta[0])
        assert found == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("seed", range(12))
def test_lower_is_at_most_upper_and_something_is_named(seed: int) -> None:
    mechanism, epsilon = drawn(seed)
    for way in ("add_or_remove", *WAYS):
        bounds = mechanism.compose(1, way).delta_bounds(epsilon)
        assert 0.0 <= bounds.low <= bounds.high == mechanism.delta(epsilon, way)
        assert bounds.low == 0.0 or bounds.reached
        assert bounds.exact <= (bounds.low >= bounds.high * (1 - 1e-7))
    low, high = mechanism.compose(1).epsilon_bounds(1e-6)
    assert 0.0 <= low <= high
    assert mechanism.compose(1).delta_bounds(low).low >= 1e-6 * (1 - 1e-6) or low == 0.0


def test_a_thousand_rounds_lose_at_least_what_a_client_of_theirs_loses() -> None:
    bounds = ta.RandomParticipation(*MANY).compose(1000).epsilon_bounds(1e-5)
    assert bounds.low == pytest.approx(0.1436, abs=2e-4)
    assert bounds.high == pytest.approx(0.1635, abs=5e-5)
    assert bounds.reached == "30 other gradients aligned with the new one"


def test_the_client_that_is_named_is_the_one_that_loses_so_much(
    configurations: ModuleType, losses: ModuleType
) -> None:
    rates, sigma, rounds = (0.3, 0.3), 3.39391, 100
    bounds = ta.RandomParticipation(*rates, 5, sigma).compose(rounds, "remove").epsilon_bounds(1e-5)
    assert bounds.reached == "5 other gradients aligned with the new one"
    real = configurations.grouped(1.0, [(1.0, 5)])
    laws = configurations.Round.of(real, rates[1], sigma, (5e-4,)).laws(*rates)
    truth = losses.lower_losses(*laws, 5e-5).compose(rounds, 8.0, lower=True).epsilon(1e-5)
    assert bounds.low <= truth * (1 + 1e-6)
    assert bounds.low == pytest.approx(truth, rel=5e-3)
    assert truth <= bounds.high


@pytest.mark.parametrize("way", ["remove", "add"])
@pytest.mark.parametrize("noise", [1e-7, 0.02])
def test_losses_that_no_number_holds_count_as_the_largest_that_one_holds(
    noise: float, way: str
) -> None:
    composed = ta.RandomParticipation(0.1, 1.0, 3, noise).compose(50, way)
    # Who comes in one of the rounds is seen at once.
    seen = 1.0 - 0.9**50
    bounds = composed.delta_bounds(3.0)
    assert 0.98 * seen < bounds.low <= seen * (1.0 + 1e-12) <= bounds.high * (1.0 + 1e-9)
    assert composed.epsilon_bounds(1e-6).low > 100.0


def test_bounds_are_a_pair_that_can_be_pickled() -> None:
    bounds = Bracket(1.0, 2.0, "someone", True)
    low, high = bounds
    again = pickle.loads(pickle.dumps(bounds))
    assert (low, high) == bounds == again == (1.0, 2.0)
    assert (again.reached, again.exact) == ("someone", True)


def test_mechanisms_together_name_all_that_reach_their_losses() -> None:
    total = ta.compose([(ta.RandomParticipation(0.1, 0.3, 3, 1.5), 5), ta.LocalSampling(0.1, 2.0)])
    bounds = total.epsilon_bounds(1e-5)
    assert 0.0 < bounds.low < bounds.high
    assert bounds.reached.endswith("; the worst data")
    assert ta.LocalSampling(0.1, 1.0).compose(3).epsilon_bounds(1e-5).exact


# Shuffled reports


def unary(oracle: Any) -> list[dict[Any, float]]:
    """Return the law of the reports of each answer: independent bits."""
    p, q = oracle.support_probabilities
    size = oracle.domain.size
    laws = []
    for answer in range(size):
        law = {}
        for bits in itertools.product((0, 1), repeat=size):
            chances = [p if place == answer else q for place in range(size)]
            law[bits] = math.prod(c if b else 1 - c for b, c in zip(bits, chances, strict=True))
        laws.append(law)
    return laws


def subsets(oracle: Any) -> list[dict[Any, float]]:
    """Return the law of the reports of each answer: subsets, likelier with the answer."""
    p, size, many = oracle.support_probabilities[0], oracle.domain.size, oracle.subset_size
    own, rest = math.comb(size - 1, many - 1), math.comb(size - 1, many)
    return [
        {
            chosen: p / own if answer in chosen else (1 - p) / rest
            for chosen in itertools.combinations(range(size), many)
        }
        for answer in range(size)
    ]


def hashed(oracle: Any) -> list[dict[Any, float]]:
    """Return the law of the reports of each answer: a uniform function to two, and a bit of it."""
    p, size = oracle.support_probabilities[0], oracle.domain.size
    functions = list(itertools.product((0, 1), repeat=size))
    return [
        {
            (function, bit): (p if bit == function[answer] else 1 - p) / len(functions)
            for function in functions
            for bit in (0, 1)
        }
        for answer in range(size)
    ]


def shuffled_law(values: Iterable[int], laws: list[dict[Any, float]]) -> dict[Any, float]:
    found: dict[Any, float] = {(): 1.0}
    for value in values:
        following: dict[Any, float] = {}
        for seen, mass in found.items():
            for report, chance in laws[value].items():
                key = tuple(sorted((*seen, report)))
                following[key] = following.get(key, 0.0) + mass * chance
        found = following
    return found


def direct(oracle: Any) -> list[dict[Any, float]]:
    p, q = oracle.support_probabilities
    size = oracle.domain.size
    return [{r: p if r == a else q for r in range(size)} for a in range(size)]


ORACLES = [
    (tn.DirectEncoding(1.0, 3), direct),
    (tn.SymmetricUnaryEncoding(1.0, 3), unary),
    (tn.OptimizedUnaryEncoding(2.0, 3), unary),
    (tn.ThresholdHistogramEncoding(1.0, 3), unary),
    (tn.SubsetSelection(1.0, 4, subset_size=2), subsets),
    (tn.BinaryLocalHashing(1.0, 3), hashed),
    (tn.SymmetricUnaryEncoding(1.0, 2), unary),
]


@pytest.mark.parametrize(("oracle", "laws_of"), ORACLES, ids=lambda o: getattr(o, "name", ""))
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_lower_delta_of_shuffled_reports_is_at_most_that_of_the_worst_data(
    oracle: Any, laws_of: Any, nodes: int
) -> None:
    laws, size = laws_of(oracle), oracle.domain.size
    shuffled = ta.Shuffled(oracle, nodes)
    epsilons = (0.0, 0.2, 0.4, 0.9)
    worst = dict.fromkeys(epsilons, 0.0)
    for others in itertools.combinations_with_replacement(range(size), nodes - 1):
        one, other = (shuffled_law((value, *others), laws) for value in (0, 1))
        for epsilon in epsilons:
            gap = sum(
                max(0.0, mass - math.exp(epsilon) * other.get(seen, 0.0))
                for seen, mass in one.items()
            )
            worst[epsilon] = max(worst[epsilon], gap)
    for epsilon, most in worst.items():
        low, high = bounds = shuffled.compose(1).delta_bounds(epsilon)
        assert low <= most * (1 + 1e-9) <= high * (1 + 2e-9)
        assert low == shuffled.lower_delta(epsilon)
        if low > 0.0:
            assert bounds.reached.startswith(f"{nodes - 1} other nodes that all hold")
    assert shuffled.lower_delta(0.0) > 0.4 * worst[0.0]


def test_the_law_that_a_lower_value_names_is_what_reports_have(statistical: ModuleType) -> None:
    oracle, runs = tn.SymmetricUnaryEncoding(1.0, 4), 40_000
    told = oracle._told_apart
    for value, chance in ((0, told.own), (1, told.other), (2, told.third)):
        reports = oracle.randomize(np.full(runs, value), seed=value)
        two = np.asarray(reports.codes).astype(np.int64).reshape(runs, -1)[:, 0] & 3
        alone = int((two == 1).sum())
        statistical.check_share(alone, runs, chance, chance)


def test_randomizers_that_do_not_say_what_can_be_counted_have_no_lower_value() -> None:
    for oracle in (tn.SummationHistogramEncoding(1.0, 4), tn.CountMeanSketch(1.0, 100)):
        bounds = ta.Shuffled(oracle, 1000).compose(1).delta_bounds(0.01)
        if oracle._told_apart is None:
            assert (bounds.low, bounds.reached) == (0.0, "")
    composed = ta.Shuffled(tn.SummationHistogramEncoding(1.0, 4), 10).compose(3)
    assert composed.epsilon_bounds(1e-5).low == 0.0


def test_many_rounds_of_shuffled_reports_have_the_lower_value_of_their_data() -> None:
    bounds = ta.Shuffled(tn.DirectEncoding(1.0, 4), 60).compose(3).epsilon_bounds(1e-5)
    assert 0.9 * bounds.high < bounds.low < bounds.high
    assert bounds.reached == "59 other nodes that all hold a third answer"
