"""Unary encodings: the guarantee as exact fractions, the law of reports, tallies and estimates."""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import turnout as tn
from turnout.collecting.report_files import read_reports, write_reports
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.unary_encoding import (
    OptimizedUnaryEncoding,
    SymmetricUnaryEncoding,
    ThresholdHistogramEncoding,
    _UnaryEncoding,
)

CHUNK = 2**16

ORACLES: list[type[_UnaryEncoding]] = [
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    ThresholdHistogramEncoding,
]
EPSILONS = [1e-6, 1e-3, 0.1, 0.5, math.log(2), 1.0, 1.7, 2.0, 3.0, 5.0, 10.0, 20.0, 33.3, 42.0]

each = pytest.mark.parametrize("kind", ORACLES)


def exponential_below(x: float) -> Fraction:
    """A lower bound of e^x: its value to 80 digits, the last of which may be rounded up."""
    return Fraction(Context(prec=80).exp(Decimal(x))) * (1 - Fraction(1, 10**78))


def as_bits(rows: npt.NDArray[Any], size: int) -> npt.NDArray[np.uint8]:
    """Unpack reports: one row of zeros and ones for each."""
    rows = np.ascontiguousarray(rows, dtype="<u8")
    return np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")[:, :size]


def bit_laws(oracle: _UnaryEncoding) -> tuple[Fraction, Fraction]:
    """The exact probabilities of a one for the own answer and for another."""
    own, other = oracle._core.words
    return Fraction(own, 2**64), Fraction(other, 2**64)


@each
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_report_is_more_than_e_to_the_epsilon_times_as_likely_under_another_answer(
    kind: type[_UnaryEncoding], epsilon: float
) -> None:
    oracle = kind(epsilon, 3)
    p, q = bit_laws(oracle)
    ratios = []
    for bits in itertools.product([0, 1], repeat=3):
        masses = []
        for answer in range(3):
            chances = [p if code == answer else q for code in range(3)]
            factors = [
                chance if bit else 1 - chance for chance, bit in zip(chances, bits, strict=True)
            ]
            masses.append(math.prod(factors))
        ratios.append(max(masses) / min(masses))
    assert max(ratios) == oracle.realized_ratio
    assert 1 < oracle.realized_ratio <= exponential_below(epsilon)
    assert oracle.realized_ratio <= exponential_below(oracle.realized_epsilon)
    assert oracle.realized_epsilon <= epsilon
    if kind is not ThresholdHistogramEncoding:
        assert oracle.realized_epsilon >= epsilon - 1e-9
        assert oracle.realized_ratio >= exponential_below(epsilon) * (1 - Fraction(1, 10**8))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_support_probabilities_are_those_of_the_published_formulas(epsilon: float) -> None:
    p, q = SymmetricUnaryEncoding(epsilon, 9).support_probabilities
    assert math.isclose(p, 1 / (1 + math.exp(-epsilon / 2)), rel_tol=1e-14)
    assert math.isclose(q, 1 / (1 + math.exp(epsilon / 2)), rel_tol=1e-9)
    exact = bit_laws(SymmetricUnaryEncoding(epsilon, 9))
    assert sum(exact) == 1
    p, q = OptimizedUnaryEncoding(epsilon, 9).support_probabilities
    tolerance = 1e-10 if epsilon <= 20 else 0.1
    assert math.isclose(p, 0.5, rel_tol=tolerance)
    assert math.isclose(q, 1 / (1 + math.exp(epsilon)), rel_tol=tolerance)
    histogram = ThresholdHistogramEncoding(epsilon, 9)
    assert 0.5 <= histogram.threshold <= 1
    noise = stats.laplace(scale=2 / epsilon)
    p, q = histogram.support_probabilities
    assert math.isclose(p, noise.sf(histogram.threshold - 1), rel_tol=1e-12)
    assert math.isclose(q, noise.sf(histogram.threshold), rel_tol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
def test_parameters_give_rare_answers_the_smallest_variance(epsilon: float) -> None:
    def variance(p: float, q: float) -> float:
        return q * (1 - q) / (p - q) ** 2

    optimized = variance(*OptimizedUnaryEncoding(epsilon, 5).support_probabilities)
    assert math.isclose(optimized, 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2, rel_tol=1e-9)
    for p in np.linspace(0.01, 0.99, 99):
        # The smallest q that epsilon allows for this p.
        odds = p / (1 - p) * math.exp(-epsilon)
        assert variance(p, odds / (1 + odds)) >= optimized * (1 - 1e-9)
    noise = stats.laplace(scale=2 / epsilon)
    best = optimize.minimize_scalar(
        lambda t: variance(noise.sf(t - 1), noise.sf(t)), bounds=(0.5, 1), method="bounded"
    )
    histogram = ThresholdHistogramEncoding(epsilon, 5)
    assert variance(*histogram.support_probabilities) <= best.fun * (1 + 1e-7)
    # Its bits say less than they might: at its realised epsilon, and so at its nominal one too,
    # the optimized encoding is at least as good.
    assert histogram.realized_epsilon < epsilon
    assert variance(*histogram.support_probabilities) >= optimized


@each
def test_every_pattern_of_bits_has_its_probability(
    kind: type[_UnaryEncoding], statistical: ModuleType
) -> None:
    oracle = kind(1.0, 4)
    p, q = oracle.support_probabilities
    for answer in range(4):
        reports = oracle.randomize(np.full(400_000, answer), seed=answer)
        assert reports.codes.shape == (400_000, 1)
        assert reports.codes.dtype == np.uint64
        observed = np.bincount(reports.codes[:, 0].astype(np.int64), minlength=16)
        chances = [p if code == answer else q for code in range(4)]
        masses = [
            math.prod(c if (pattern >> i) & 1 else 1 - c for i, c in enumerate(chances))
            for pattern in range(16)
        ]
        statistical.check_law(observed, masses)


def ways(nodes: int) -> list[tn.Participation]:
    rates = np.random.default_rng(5).uniform(0.01, 1.0, nodes)
    return [tn.Everyone(), tn.Bernoulli(0.3), tn.Personalized(rates)]


@each
@pytest.mark.parametrize("way", [0, 1, 2], ids=["everyone", "bernoulli", "personalized"])
@pytest.mark.parametrize(("nodes", "size"), [(0, 3), (1, 64), (300, 65), (CHUNK + 7, 100)])
def test_a_tally_counts_bits_and_collecting_is_the_same_in_one_pass(
    kind: type[_UnaryEncoding], way: int, nodes: int, size: int
) -> None:
    oracle = kind(1.0, size)
    values = np.random.default_rng(nodes).integers(0, size, nodes)
    who = ways(nodes)[way]
    reports = oracle.randomize(values, participation=who, seed=7)
    tally = oracle.tally(reports)
    assert tally == oracle.collect(values, participation=who, seed=7)
    assert reports == oracle.randomize(values, participation=who, seed=7)
    if nodes > 1:
        assert reports != oracle.randomize(values, participation=who, seed=8)
    bits = as_bits(reports.codes, size)
    assert tally.support.tolist() == bits.sum(axis=0, dtype=np.int64).tolist()
    assert tally.received == len(reports)
    assert np.array_equal(oracle._kernel.supports(reports.codes), reports.codes)
    if reports.probabilities is not None:
        units = np.rint(2**32 / reports.probabilities).astype(np.int64)
        assert tally.weights is not None
        expected = (bits.T * units).sum(axis=1) / 2**32
        np.testing.assert_allclose(tally.weights.inverse, expected, rtol=1e-15)
        assert math.isclose(tally.weights.total_inverse, units.sum() / 2**32, rel_tol=1e-15)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(ORACLES),
    size=st.sampled_from([2, 63, 64, 65, 130, 600]),
    cuts=st.lists(st.integers(0, 2000), min_size=0, max_size=4),
    epsilon=st.floats(0.01, 42),
    seed=st.integers(0, 2**64 - 1),
)
def test_tallies_of_parts_add_up_in_any_order(
    kind: type[_UnaryEncoding], size: int, cuts: list[int], epsilon: float, seed: int
) -> None:
    oracle = kind(epsilon, size)
    values = np.random.default_rng(seed % 1000).integers(0, size, 2000)
    reports = oracle.randomize(values, seed=seed)
    whole = oracle.tally(reports)
    bounds = [0, *sorted(cuts), 2000]
    parts = [
        oracle.tally(tn.Reports(oracle, tn.Everyone(), reports.codes[a:b], nodes=b - a))
        for a, b in itertools.pairwise(bounds)
    ]
    total = parts[-1]
    for part in parts[:-1]:
        total = total.merge(part)
    assert total == whole


@each
def test_estimates_are_unbiased_with_the_predicted_variance(
    kind: type[_UnaryEncoding], statistical: ModuleType
) -> None:
    oracle = kind(1.0, 5)
    counts = np.array([600, 250, 100, 50, 0])
    values = np.repeat(np.arange(5), counts)
    for who, method in itertools.product([tn.Everyone(), tn.Bernoulli(0.4)], ["g", "c_hat"]):
        variance = tn.estimator_variance(oracle, who, method=method, true_counts=counts)
        for draw, population in ((oracle.simulate, counts), (oracle.collect, values)):
            tallies = (draw(population, participation=who, seed=seed) for seed in range(3000))
            estimates = [tally.estimate(method=method).counts for tally in tallies]
            statistical.check_mean(estimates, counts)
            statistical.check_variance(estimates, variance)


@each
def test_simulated_counts_and_the_number_of_reports_vary_together_as_collected_ones(
    kind: type[_UnaryEncoding], statistical: ModuleType
) -> None:
    oracle = kind(1.5, 3)
    counts, rate = np.array([300, 100, 0]), 0.5
    p, q = oracle.support_probabilities
    rows = []
    for seed in range(20_000):
        tally = oracle.simulate(counts, participation=tn.Bernoulli(rate), seed=seed)
        rows.append([*tally.support, tally.received])
    chances = np.where(np.eye(3, dtype=bool), p, q)
    # Of a node that holds `i`: independent bits, all zero unless it takes part.
    covariance = np.zeros((4, 4))
    for held, count in enumerate(counts):
        mean = np.append(chances[held], 1.0)
        second = np.outer(mean, mean) + np.diag(mean * (1 - mean))
        covariance += count * (rate * second - rate**2 * np.outer(mean, mean))
    statistical.check_covariance(rows, covariance)


@each
def test_an_oracle_describes_itself_and_files_hold_its_reports(
    kind: type[_UnaryEncoding], tmp_path: Path
) -> None:
    oracle = kind(1.25, tn.Domain(["a", "b", "c"]))
    for copy in (pickle.loads(pickle.dumps(oracle)), FrequencyOracle.from_dict(oracle.to_dict())):
        assert copy == oracle
        assert hash(copy) == hash(oracle)
    others: list[FrequencyOracle] = [other(1.25, oracle.domain) for other in ORACLES]
    assert sum(other == oracle for other in others) == 1
    assert repr(oracle).startswith(f"{kind.__name__}(epsilon=1.25, domain=")
    assert oracle.report_bits == 3
    large = kind(1.0, 2**20)
    assert large.report_bits == 2**20
    assert large.report_shape == (2**14,)
    assert large.collect([5, 2**20 - 1], seed=1).received == 2
    for who in ways(100):
        reports = oracle.randomize(["a", "c"] * 50, participation=who, seed=1)
        for suffix in ("parquet", "arrow"):
            write_reports(reports, tmp_path / f"reports.{suffix}")
            assert read_reports(tmp_path / f"reports.{suffix}") == reports
    variation = oracle.variation_ratio
    p, q = bit_laws(oracle)
    assert variation.ratio == oracle.realized_ratio
    # The distance of the reports of two answers, over all patterns of their two bits.
    distance = p * (1 - q) - q * (1 - p)
    assert distance <= variation.total_variation <= distance * (1 + Fraction(1, 10**11))


@each
def test_bad_input_is_refused(kind: type[_UnaryEncoding]) -> None:
    with pytest.raises(InvalidValueError, match="domain must have at most 1048576 answers"):
        kind(1.0, 2**20 + 1)
    for epsilon in (0.0, -1.0, math.nan, math.inf, 42.1):
        with pytest.raises(InvalidValueError, match="epsilon must be"):
            kind(epsilon, 10)
    for epsilon in (1e-12, 5e-324):
        with pytest.raises(InvalidValueError, match="too small for a domain of 10 codes"):
            kind(epsilon, 10)
    oracle = kind(1.0, 70)

    def given_reports(codes: Any) -> tn.Reports:
        return tn.Reports(oracle, tn.Bernoulli(0.5), codes, nodes=10)

    assert len(given_reports(np.array([[2**64 - 1, 63], [0, 0]], dtype=np.uint64))) == 2
    with pytest.raises(InvalidValueError, match=r"reports\[1\] .* bits from 70 on"):
        given_reports([[1, 1], [0, 64]])
    for wrong in ([1, 2], [[1], [2]], [[1, 2, 3]], [[[1, 2]]], [[0.5, 1.0]], "ab", [["a", "b"]]):
        with pytest.raises((InvalidTypeError, InvalidValueError)):
            given_reports(wrong)
    with pytest.raises(InvalidValueError):
        given_reports([[-1, 0]])
    with pytest.raises(InvalidTypeError):
        oracle._kernel.tally(np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(InvalidTypeError):
        oracle._kernel.tally(np.zeros((2, 3), dtype=np.uint64))
    # Its memory goes along the columns: the bits of different reports would be mixed.
    with pytest.raises(InvalidTypeError, match="reports must be a C-contiguous array"):
        oracle._kernel.tally(np.asfortranarray(np.ones((3, 2), dtype=np.uint64)))
