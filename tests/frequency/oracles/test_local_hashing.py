"""Local hashing: the guarantee, the law of reports, tallies, pools of functions, and bad input."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.frequency.oracles.pools import with_functions

import turnout as tn
from turnout import FrequencyOracle
from turnout.collecting import report_files
from turnout.errors import InvalidTypeError, InvalidValueError, PlanMismatchError

EPSILONS = [1e-4, 0.1, 0.5, math.log(2), 1.0, 2.0, math.log(20), 5.0, 10.0, 20.0, 42.0]

#: An oracle of every kind, for a number of answers.
KINDS: dict[str, Callable[[float, int], Any]] = {
    "binary": tn.BinaryLocalHashing,
    "optimized": tn.OptimizedLocalHashing,
    "many": lambda epsilon, size: tn.OptimizedLocalHashing(epsilon, size, buckets=100),
    "pooled": lambda epsilon, size: tn.OptimizedLocalHashing(epsilon, size, hashes=50),
    "binary pool": lambda epsilon, size: tn.BinaryLocalHashing(epsilon, size, hashes=7),
}

kinds = pytest.mark.parametrize("kind", KINDS)


def exponential_below(x: float) -> Fraction:
    """A lower bound of e^x, less than 2^-250 below it: the series, every term rounded down."""
    numerator, denominator = x.as_integer_ratio()
    term = total = 1 << 400
    index = 0
    while term:
        index += 1
        term = term * numerator // (denominator * index)
        total += term
    return Fraction(total, 1 << 400)


def bucket_sizes(modulus: int, buckets: int) -> list[int]:
    """The lengths of the intervals, from their ends."""
    ends = [-(-place * modulus // buckets) for place in range(buckets + 1)]
    return [high - low for low, high in itertools.pairwise(ends)]


def largest_prime_below(limit: int) -> int:
    """By trial division."""
    candidate = limit - 1
    while any(candidate % factor == 0 for factor in range(2, math.isqrt(candidate) + 1)):
        candidate -= 1
    return candidate


def hash_parts(
    reports: npt.NDArray[Any], buckets: int
) -> tuple[list[int], list[int], list[int], int]:
    """The coefficients and the bucket of every report, and the modulus, as documented."""
    low = math.ceil(math.log2(buckets))
    wide = min(31, (64 - low) // 2)
    rows = [int(report) for report in reports]
    mask = 2**wide - 1
    return (
        [report >> (wide + low) for report in rows],
        [(report >> low) & mask for report in rows],
        [report & (2**low - 1) for report in rows],
        largest_prime_below(2**wide),
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
@kinds
def test_the_likelihood_ratio_is_at_most_e_to_the_epsilon(kind: str, epsilon: float) -> None:
    oracle = KINDS[kind](epsilon, 300)
    assert isinstance(oracle.realized_ratio, Fraction)
    bound = exponential_below(epsilon)
    assert 1 < oracle.realized_ratio <= bound
    assert oracle.realized_ratio >= bound * (1 - Fraction(1, 10**9))
    assert epsilon * (1 - 1e-8) <= oracle.realized_epsilon <= epsilon
    assert exponential_below(oracle.realized_epsilon) >= oracle.realized_ratio


@pytest.mark.parametrize("epsilon", EPSILONS)
@kinds
def test_the_support_probabilities_are_those_of_the_ratio_and_the_buckets(
    kind: str, epsilon: float
) -> None:
    oracle = KINDS[kind](epsilon, 300)
    g, ratio = oracle.buckets, oracle.realized_ratio
    own, other = ratio / (ratio + g - 1), 1 / (ratio + g - 1)
    low = math.ceil(math.log2(g))
    wide = 31 if oracle.hashes else min(31, (64 - low) // 2)
    modulus = largest_prime_below(2**wide)
    collision = sum(Fraction(size, modulus) ** 2 for size in bucket_sizes(modulus, g))
    assert oracle._collisions(2) == collision
    p, q = oracle.support_probabilities
    assert math.isclose(p, own, rel_tol=1e-14)
    assert math.isclose(q, other + (own - other) * collision, rel_tol=1e-14)
    assert math.isclose(q, 1 / g, rel_tol=1e-5)
    assert oracle.report_bits <= 64


def test_the_default_number_of_buckets_is_next_to_e_to_the_epsilon_plus_one() -> None:
    for epsilon in (0.01, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0):
        chosen = tn.OptimizedLocalHashing(epsilon, 1000).buckets
        assert abs(chosen - (math.exp(epsilon) + 1)) < 1

        def variance(buckets: int, epsilon: float = epsilon) -> float:
            p, q = tn.OptimizedLocalHashing(epsilon, 9, buckets=buckets).support_probabilities
            return q * (1 - q) / (p - q) ** 2

        assert variance(chosen) <= min(variance(max(2, chosen - 1)), variance(chosen + 1))
    assert tn.OptimizedLocalHashing(3.0, 2**31 - 1).buckets == 4
    assert tn.OptimizedLocalHashing(3.0, 2**31 - 1, hashes=3).buckets == 21


@pytest.mark.parametrize("kind", ["binary", "optimized", "many"])
def test_a_report_has_the_law_of_a_uniform_function_and_a_randomized_bucket(
    kind: str, statistical: ModuleType
) -> None:
    oracle = KINDS[kind](1.5, 1000)
    g, nodes = oracle.buckets, 200_000
    laws = []
    for seed, answer in enumerate((0, 777)):
        reports = oracle.randomize(np.full(nodes, answer), seed=seed).codes
        assert reports.dtype == np.uint64
        a, b, bucket, modulus = hash_parts(reports, g)
        assert max(a + b) < modulus
        own = [(x * answer + y) % modulus * g // modulus for x, y in zip(a, b, strict=True)]
        shift = (np.array(bucket) - np.array(own)) % g
        ratio = float(oracle.realized_ratio)
        law = np.array([ratio] + [1.0] * (g - 1)) / (ratio + g - 1)
        statistical.check_law(np.bincount(shift, minlength=g), law)
        cells = np.array(a) * 13 // modulus * 13 + np.array(b) * 13 // modulus
        statistical.check_law(np.bincount(cells, minlength=169), np.full(169, 1 / 169))
        laws.append(cells)
    statistical.check_same_law(*laws)


@pytest.mark.parametrize(("kind", "size"), [("binary", 2), ("optimized", 1003), ("many", 77)])
def test_the_tally_is_that_of_a_plain_loop_over_reports_and_answers(kind: str, size: int) -> None:
    oracle = KINDS[kind](1.0, size)
    reports = oracle.randomize(np.arange(500) % size, seed=3)
    a, b, bucket, modulus = hash_parts(reports.codes, oracle.buckets)
    expected = [
        sum(
            (x * answer + y) % modulus * oracle.buckets // modulus == z
            for x, y, z in zip(a, b, bucket, strict=True)
        )
        for answer in range(size)
    ]
    assert oracle.tally(reports).support.tolist() == expected


@kinds
@pytest.mark.parametrize("way", [0, 1, 2])
def test_collecting_equals_randomizing_and_tallying(kind: str, way: int) -> None:
    nodes, size = 70_000, 40
    oracle = KINDS[kind](1.0, size)
    values = np.random.default_rng(1).integers(0, size, nodes)
    rates = np.random.default_rng(2).uniform(0.1, 1.0, nodes)
    who = [tn.Everyone(), tn.Bernoulli(0.3), tn.Personalized(rates)][way]
    reports = oracle.randomize(values, participation=who, seed=5)
    tally = oracle.tally(reports)
    assert oracle.collect(values, participation=who, seed=5) == tally
    assert oracle.collect(values, participation=who, seed=6) != tally
    bits = oracle._kernel.supports(reports.codes)
    supports = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :size]
    assert tally.support.tolist() == supports.sum(axis=0).tolist()
    if reports.probabilities is not None:
        assert tally.weights is not None
        expected = (supports / reports.probabilities[:, None]).sum(axis=0)
        np.testing.assert_allclose(tally.weights.inverse, expected, rtol=1e-6)


@kinds
def test_tallies_add_up_and_everything_survives_a_copy(kind: str, tmp_path: Path) -> None:
    oracle = KINDS[kind](1.0, 30)
    values = np.arange(600) % 30
    one, other = oracle.collect(values, seed=1), oracle.collect(values, seed=2)
    assert (one + other).support.tolist() == (one.support + other.support).tolist()
    assert tn.Tally.from_bytes(one.to_bytes()) == one
    assert pickle.loads(pickle.dumps(oracle)) == oracle
    assert FrequencyOracle.from_dict(json.loads(json.dumps(oracle.to_dict()))) == oracle
    assert oracle == KINDS[kind](1.0, 30)
    assert oracle != KINDS[kind](1.1, 30)
    reports = oracle.randomize(values, seed=4)
    report_files.write_reports(reports, tmp_path / "reports.parquet")
    assert report_files.read_reports(tmp_path / "reports.parquet") == reports


def test_plans_with_other_functions_do_not_mix() -> None:
    make = tn.OptimizedLocalHashing
    one = make(1.0, 30, hashes=10).collect([1])
    others = [
        make(1.0, 30),
        make(1.0, 30, buckets=5, hashes=10),
        make(1.0, 30, hashes=11),
        tn.BinaryLocalHashing(1.0, 30, hashes=10),
    ]
    for oracle in others:
        with pytest.raises(PlanMismatchError):
            one.merge(oracle.collect([1]))
    assert make(1.0, 30) == make(1.0, 30, buckets=4)
    assert repr(others[2]).endswith("buckets=4, hashes=11)")


@pytest.mark.parametrize("kind", ["binary", "optimized", "many"])
@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_estimates_are_unbiased_with_the_exact_variance(
    kind: str, rate: float, statistical: ModuleType
) -> None:
    oracle = KINDS[kind](1.0, 4)
    held = np.array([120, 60, 20, 0])
    values = np.repeat(np.arange(4), held)
    who = tn.Bernoulli(rate)
    found = [
        oracle.collect(values, participation=who, seed=seed).estimate("c_hat").counts
        for seed in range(8000)
    ]
    statistical.check_mean(found, held)
    variance = tn.estimator_variance(oracle, who, method="c_hat", true_counts=held)
    statistical.check_variance(found, variance)


@kinds
def test_simulated_counts_have_the_law_of_collected_ones(
    kind: str, statistical: ModuleType
) -> None:
    oracle = KINDS[kind](2.0, 3)
    values, who = [0] * 15 + [1] * 5, tn.Bernoulli(0.7)
    seeds = range(8000)
    one = [oracle.collect(values, participation=who, seed=seed) for seed in seeds]
    other = [oracle.simulate([15, 5, 0], participation=who, seed=seed) for seed in seeds]
    for answer in range(3):
        first, second = (
            [21 * int(tally.support[answer]) + tally.received for tally in tallies]
            for tallies in (one, other)
        )
        statistical.check_same_law(first, second)


@pytest.mark.parametrize("kind", ["pooled", "binary pool"])
def test_every_report_of_a_pool_has_its_exact_probability(
    kind: str, statistical: ModuleType
) -> None:
    oracle = KINDS[kind](1.0, 6)
    g, m = oracle.buckets, oracle.hashes
    codes = np.arange(m * g, dtype=np.uint32)
    bits = oracle._kernel.supports(codes)
    supports = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :6].astype(bool)
    # One bucket of every function has each answer.
    assert (supports.reshape(m, g, 6).sum(axis=1) == 1).all()
    ratio = oracle.realized_ratio
    own, other = ratio / (ratio + g - 1) / m, 1 / (ratio + g - 1) / m
    for answer in (0, 5):
        law = [own if supported else other for supported in supports[:, answer]]
        assert sum(law) == 1
        reports = oracle.randomize(np.full(100_000, answer), seed=answer).codes
        assert reports.dtype == np.uint32
        statistical.check_law(np.bincount(reports, minlength=m * g), [float(mass) for mass in law])
    # Total variation of the worst pair, against what shuffling is accounted with.
    distances = [
        (own - other) * int((supports[:, x] & ~supports[:, y]).sum())
        for x in range(6)
        for y in range(x)
    ]
    assert max(distances) <= oracle.variation_ratio.total_variation
    assert own / other == ratio == oracle.variation_ratio.ratio


def test_reports_of_functions_of_their_own_differ_in_total_variation_by_p_minus_q() -> None:
    oracle = tn.OptimizedLocalHashing(1.0, 6)
    p, q = oracle.support_probabilities
    assert math.isclose(oracle.variation_ratio.total_variation, p - q, rel_tol=1e-9)
    assert oracle.variation_ratio.total_variation >= Fraction(p) - Fraction(q)


@pytest.mark.parametrize("held", [[9, 3, 0, 1], [3, 0, 3, 0]])
def test_the_variance_over_small_pools_is_that_of_reports_and_pool(
    held: list[int], statistical: ModuleType
) -> None:
    # Few reports: that two nodes with the same answer, not one with itself, make the difference.
    who = tn.Bernoulli(0.8)
    runs = [
        with_functions(tn.OptimizedLocalHashing(4.0, 4, buckets=3, hashes=2), seed)
        for seed in range(12_000)
    ]
    values = np.repeat(np.arange(4), held)
    found = [
        oracle.collect(values, participation=who, seed=seed).estimate("c_hat").counts
        for seed, oracle in enumerate(runs)
    ]
    extra = runs[0].pool_variance(held)
    total = tn.estimator_variance(runs[0], who, method="c_hat", true_counts=held)
    noise = total - extra
    assert extra.max() > 0.2 * noise.max()
    statistical.check_mean(found, held)
    statistical.check_variance(found, total)


def test_the_variance_over_pools_counts_triples_as_independent(statistical: ModuleType) -> None:
    # The neighbours of answer 1: with functions that are lines they would collide with it together.
    held = [10**9, 0, 10**9, 0, 10**9, 10**8]
    runs = [
        with_functions(tn.OptimizedLocalHashing(1.0, 6, hashes=20), seed) for seed in range(6000)
    ]
    found = np.array([oracle.simulate(held, seed=0).estimate("g").counts for oracle in runs])
    extra = runs[0].pool_variance(held)
    total = tn.estimator_variance(runs[0], tn.Everyone(), method="g", true_counts=held)
    noise = total - extra
    assert (noise < 1e-6 * extra).all()
    statistical.check_mean(found, held)
    statistical.check_variance(found, total)
    squares = np.square(held, dtype=np.float64)
    np.testing.assert_allclose(extra, (squares.sum() - squares) / (20 * 3), rtol=1e-6)


def test_without_a_pool_there_is_no_variance_of_one() -> None:
    assert tn.OptimizedLocalHashing(1.0, 3).pool_variance([5, 2, 1]).tolist() == [0, 0, 0]


def test_a_large_domain_is_tallied() -> None:
    size = 200_003
    oracle = tn.OptimizedLocalHashing(3.0, size)
    values = np.full(3000, size - 1)
    estimate = oracle.collect(values, seed=1).estimate()
    assert int(estimate.counts.argmax()) == size - 1
    assert abs(estimate.frequencies[-1] - 1) < 6 * estimate.standard_errors[-1]
    pooled = tn.OptimizedLocalHashing(3.0, 2_000_003, hashes=64)
    estimate = pooled.collect(np.full(3000, 2_000_002), seed=1).estimate()
    assert int(estimate.counts.argmax()) == 2_000_002


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"buckets": 1}, "buckets must be an integer from 2 to 1048576, got 1"),
        ({"buckets": 2**20 + 1}, "buckets must be an integer from 2 to"),
        ({"hashes": 0}, "hashes must be an integer from 1 to"),
        ({"hashes": 2**20 + 1}, "hashes must be an integer from 1 to"),
        ({"hashes": 2**20, "buckets": 2**10}, "hashes must be few enough"),
        ({"domain": 2**31}, "CountMeanSketch"),
        ({"domain": 2**29, "buckets": 30}, "at most 536870909 for local hashing with 30 buckets"),
        ({"domain": 2**31, "hashes": 3}, "from 2 to 2147483647, got 2147483648"),
        ({"domain": 1}, "domain"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": 1e-12}, "too small"),
    ],
)
def test_bad_values_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        tn.OptimizedLocalHashing(**{"epsilon": 1.0, "domain": 10, **arguments})


@pytest.mark.parametrize("name", ["buckets", "hashes"])
@pytest.mark.parametrize("value", [2.5, "3", True])
def test_bad_types_are_refused(name: str, value: Any) -> None:
    keywords = {name: value}
    with pytest.raises(InvalidTypeError, match=f"{name} must be"):
        tn.OptimizedLocalHashing(1.0, 10, **keywords)


@pytest.mark.parametrize(
    ("kind", "bad"),
    [("binary", 2**63), ("binary", (2**31 - 1) << 1), ("optimized", 2**64 - 1), ("pooled", 200)],
)
def test_reports_that_the_oracle_cannot_make_are_refused(kind: str, bad: int) -> None:
    oracle = KINDS[kind](1.0, 10)
    with pytest.raises(InvalidValueError, match=r"reports\[1\] is not a report of this oracle"):
        tn.Reports(oracle, tn.Everyone(), np.array([0, bad], dtype=np.uint64), 2)
    with pytest.raises(InvalidValueError, match=r"support\[0\] must be at most"):
        tn.Tally(tn.Plan(oracle, tn.Everyone()), [3] + [0] * 9, 2, 2)
