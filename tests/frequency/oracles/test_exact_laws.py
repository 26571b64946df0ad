"""The guarantees that oracles state, recomputed from the exact laws of their reports."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.frequency.oracles.laws import (
    LAWS,
    MAKE,
    WORD,
    Laws,
    Make,
    Test,
    array_of,
    bounds,
    laws_of,
    supported,
)

import turnout as tn
from turnout import _kinds
from turnout.accounting import Shuffled
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.longitudinal import Memoized
from turnout.frequency.oracle import FrequencyOracle

EPSILONS = [2e-9, 1e-6, 0.1, 1.0, math.log(3), 5.0, 20.0, 41.0, 42.0]


def made(make: Make, epsilon: float, size: int) -> FrequencyOracle | None:
    """An oracle, unless it says that it cannot realise epsilon."""
    if 0.1 <= epsilon <= 5.0:
        return make(epsilon, size)
    try:
        oracle = make(epsilon, size)
    except InvalidValueError:
        return None
    return oracle


def cases(*epsilons: float, sizes: tuple[int, ...] = (2, 3, 4, 5)) -> Callable[[Test], Test]:
    marks = [pytest.param(make, id=name) for name, make in MAKE.items()]
    both = [pytest.mark.parametrize("make", marks)]
    both += [pytest.mark.parametrize("epsilon", epsilons), pytest.mark.parametrize("size", sizes)]

    def decorate(test: Test) -> Test:
        for mark in both:
            test = mark(test)
        return test

    return decorate


def largest(laws: Laws) -> Fraction:
    """The largest ratio of likelihoods of a report under two answers."""
    assert all(sum(law.values()) == 1 and min(law.values()) > 0 for law in laws)
    return max(max(law[y] for law in laws) / min(law[y] for law in laws) for y in laws[0])


def test_the_cases_are_all_oracles() -> None:
    # These have the reports of the oracle in them; how likely silence is, their own tests say.
    others = {"joint_table", "prefixes", "second_round", "summation_histogram_encoding"}
    known = {
        name
        for name, kind in _kinds.known().items()
        if issubclass(kind, FrequencyOracle) and kind.__module__.startswith("turnout.")
    }
    assert known == set(LAWS) | others
    assert {make(1.0, 3).name for make in MAKE.values()} == set(LAWS)


@cases(*EPSILONS)
def test_the_realised_ratio_is_the_largest_and_within_epsilon(
    make: Make, epsilon: float, size: int
) -> None:
    oracle = made(make, epsilon, size)
    if oracle is None:
        return
    found, stated = largest(laws_of(oracle)), oracle.realized_ratio
    if oracle.name == "padded":
        # What all attributes together reveal; one report reveals less.
        assert found < stated
    elif isinstance(oracle, (tn.CountMeanSketch, tn.HadamardCountMeanSketch)) or getattr(
        oracle, "hashes", None
    ):
        # Smaller only if the few functions take all answers together.
        assert found in (1, stated)
    else:
        assert found == stated
    target = oracle.first_epsilon if isinstance(oracle, Memoized) else epsilon
    assert stated <= bounds(target)[0]
    assert oracle.realized_epsilon <= target
    assert stated <= bounds(oracle.realized_epsilon)[1]
    # Rounded up by next to nothing: a hundred units in the last place less is too small.
    less = oracle.realized_epsilon * (1 - 100 * 2.0**-52)
    assert stated > bounds(less)[0] or epsilon < 1e-5
    if isinstance(oracle, Memoized):
        assert oracle._lifetime_ratio <= bounds(epsilon)[0]
        assert oracle._lifetime_ratio <= bounds(oracle.lifetime_epsilon)[1]


@cases(1e-6, 1.0, 6.0)
def test_support_probabilities_are_those_of_the_law(make: Make, epsilon: float, size: int) -> None:
    oracle = made(make, epsilon, size)
    if oracle is None:
        return
    laws = laws_of(oracle)
    reports = list(laws[0])
    reached = dict(zip(reports, supported(oracle, array_of(oracle, reports)), strict=True))
    p, q = oracle.support_probabilities
    inner: Any = oracle.oracle if isinstance(oracle, PaddedOracle) else oracle
    shared = getattr(inner, "_shared", None) is not None
    for x, law in enumerate(laws):
        chances = [
            sum((chance for y, chance in law.items() if code in reached[y]), Fraction(0))
            for code in range(size)
        ]
        if not shared or inner is oracle:
            assert float(chances[x]) == pytest.approx(p, rel=1e-12)
        if not shared:  # otherwise on the average over pools
            others = [float(chance) for code, chance in enumerate(chances) if code != x]
            assert others == pytest.approx([q] * (size - 1), rel=1e-12)


@cases(2e-9, 1e-7, 1e-4, 1.0, 6.0, 20.0)
def test_the_variation_ratio_holds_for_the_law(make: Make, epsilon: float, size: int) -> None:
    oracle = made(make, epsilon, size)
    if oracle is None:
        return
    laws, stated = laws_of(oracle), oracle.variation_ratio
    ratio, distance = Fraction(stated.ratio), Fraction(stated.total_variation)
    third = Fraction(stated.blanket_ratio)
    assert largest(laws) <= ratio
    assert distance < 1
    for one, other in itertools.permutations(laws, 2):
        variation = sum((max(one[y] - other[y], Fraction(0)) for y in one), Fraction(0))
        assert variation <= distance
        differ = [y for y in one if one[y] != other[y]]
        for law in laws:
            assert all(law[y] * third >= max(one[y], other[y]) for y in differ)
    if stated.blanket is not None:
        common = sum((min(law[y] for law in laws) for y in laws[0]), Fraction(0))
        assert Fraction(stated.blanket) <= common


def shuffled_delta(laws: Laws, nodes: int, levels: list[float]) -> list[float]:
    """The largest delta of shuffled reports over neighbours and the other nodes' answers."""
    floats = [{y: float(chance) for y, chance in law.items()} for law in laws]
    worst = [0.0] * len(levels)
    answers = range(len(laws))
    for others in itertools.combinations_with_replacement(answers, nodes - 1):
        crowd: dict[tuple[Any, ...], float] = {(): 1.0}
        for x in others:
            crowd = _joined(crowd, floats[x])
        whole = [_joined(crowd, law) for law in floats]
        for one, other in itertools.permutations(whole, 2):
            for place, level in enumerate(levels):
                growth = math.exp(level)
                delta = math.fsum(max(one[key] - growth * other[key], 0.0) for key in one)
                worst[place] = max(worst[place], delta)
    return worst


def _joined(crowd: dict[tuple[Any, ...], float], law: dict[Any, float]) -> Any:
    result: dict[tuple[Any, ...], float] = {}
    for (key, chance), (y, more) in itertools.product(crowd.items(), law.items()):
        joined = tuple(sorted((*key, y)))
        result[joined] = result.get(joined, 0.0) + chance * more
    return result


@pytest.mark.parametrize(("nodes", "size"), [(2, 2), (2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("name", MAKE)
def test_shuffled_reports_are_within_their_bound(
    name: str, epsilon: float, nodes: int, size: int
) -> None:
    oracle = MAKE[name](epsilon, size)
    laws = laws_of(oracle)
    if len(laws[0]) ** nodes > 20_000:
        return
    levels = [0.0, 0.3 * epsilon, 0.8 * epsilon, 0.99 * oracle.realized_epsilon]
    found = shuffled_delta(laws, nodes, levels)
    hidden: Any = oracle.variation_ratio if isinstance(oracle, Memoized) else oracle
    bound = Shuffled(hidden, nodes).delta(np.array(levels))
    assert (np.array(found) <= np.asarray(bound) + 1e-13).all(), (found, bound)


@pytest.mark.parametrize("name", MAKE)
def test_reports_have_the_law(name: str, statistical: ModuleType) -> None:
    # Each of them a threshold apart from every other law: the smallest change that matters, a
    # ratio of e instead of e^1.02, shows in this many reports.
    oracle = MAKE[name](2.0, 3)
    for x, law in enumerate(laws_of(oracle)):
        codes = oracle.randomize(np.full(200_000, x), seed=77 + x).codes
        values, counts = np.unique(codes, axis=0, return_counts=True)
        seen = {
            tuple(np.atleast_1d(y).tolist()): int(n) for y, n in zip(values, counts, strict=True)
        }
        keys = {y: tuple(np.atleast_1d(array_of(oracle, [y])[0]).tolist()) for y in law}
        assert seen.keys() <= set(keys.values())
        observed = [seen.get(keys[y], 0) for y in law]
        statistical.check_law(observed, [float(chance) for chance in law.values()])


@pytest.mark.parametrize("make", [tn.BinaryLocalHashing, tn.OptimizedLocalHashing])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 3.0])
def test_own_functions_put_every_answer_into_one_bucket(make: Make, epsilon: float) -> None:
    # So a report has likelihood A or W, whatever the function: the guarantee is A / W.
    oracle: Any = make(epsilon, 5)
    functions = np.unique(oracle.randomize([0, 1, 2, 3, 4] * 40, seed=3).codes >> _low(oracle))
    for function in functions.tolist():
        reports = [function << _low(oracle) | bucket for bucket in range(oracle.buckets)]
        reached = supported(oracle, np.array(reports, dtype=np.uint64))
        assert Counter(x for codes in reached for x in codes) == Counter(range(5))
    own, other = oracle._core.words
    assert own + (oracle.buckets - 1) * other <= WORD
    assert oracle.realized_ratio == Fraction(own, other) <= bounds(epsilon)[0]
    assert oracle.realized_ratio <= bounds(oracle.realized_epsilon)[1]
    # Two answers are told apart by functions that separate them: A, and 1 of the other's buckets.
    apart = Fraction(own - other, own + (oracle.buckets - 1) * other)
    apart *= 1 - oracle._collisions(2)
    assert apart <= Fraction(oracle.variation_ratio.total_variation)


def _low(oracle: Any) -> np.uint64:
    return np.uint64((oracle.buckets - 1).bit_length())


@pytest.mark.parametrize("epsilon", [3e-6, 1e-3, 0.1, 1 / 3, 1.0, math.pi, 20.0, 42.0])
def test_histograms_with_noise_spend_twice_the_rate(epsilon: float) -> None:
    oracle = tn.SummationHistogramEncoding(epsilon, 3)
    # Noise of mass in proportion to e^(-rate |z|): the largest ratio is e^(rate d), where d is how
    # far the sum of two distances can differ.
    scores = itertools.product(range(-3, 5), repeat=3)
    far = max(abs(a) + abs(b - 1) - abs(a - 1) - abs(b) for a, b, _ in scores)
    spent = far * oracle.rate
    assert far == 2
    assert spent <= Fraction(oracle.realized_epsilon) <= Fraction(epsilon)
    assert spent > Fraction(epsilon) * (1 - Fraction(1, 10**9))
    low, high = _power(spent)
    assert low <= oracle.realized_ratio
    assert oracle.realized_ratio <= high * (1 + Fraction(1, 10**39))
    assert oracle.realized_ratio <= bounds(epsilon)[1]
    assert Fraction(oracle.variation_ratio.ratio) >= low


def _power(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around e^x for a rational x."""
    whole = float(exponent)
    rest = exponent - Fraction(whole)
    low, high = bounds(whole)
    # e^r for |r| < 2^-40: between 1 + r and 1 + r + r^2.
    return low * (1 + rest), high * (1 + rest + rest * rest)


def test_the_likelihood_of_what_is_not_two_valued_is_refused() -> None:
    for name, make in MAKE.items():
        oracle = make(1.0, 3)
        laws = laws_of(oracle)
        ratio = oracle.realized_ratio
        values = {
            law[y] / min(each[y] for each in laws) for law in laws for y in law
        }  # fmt: skip
        reports = oracle.randomize([0, 1, 2] * 20, seed=1)
        if values <= {1, ratio}:
            assert tn.maximum_likelihood(reports).converged, name
        else:
            assert oracle.name == "padded"
            with pytest.raises(EstimatorError, match="PaddedOracle"):
                tn.maximum_likelihood(reports)
