"""Oracles whose report is one integer that supports many answers: what they have in common.

Every claim about counts is checked by the double loop over reports and answers, and every claim
about a law against the exact probabilities of all reports.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout import FrequencyOracle
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
)
from turnout.frequency.oracles.hadamard_response import HadamardResponse
from turnout.frequency.oracles.projective_geometry import ProjectiveGeometryResponse

Maker = Callable[[float, int], Any]

MAKERS: list[Maker] = [
    HadamardResponse,
    ProjectiveGeometryResponse,
    lambda epsilon, size: ProjectiveGeometryResponse(epsilon, size, field_size=2),
    lambda epsilon, size: ProjectiveGeometryResponse(epsilon, size, field_size=5),
]
makers = pytest.mark.parametrize("make", MAKERS, ids=["hadamard", "geometry", "two", "five"])

CHUNK = 2**16


def supported(oracle: Any) -> npt.NDArray[np.bool_]:
    """Whether each report supports each answer: one row for each report."""
    kernel: Any = oracle._kernel
    bits = kernel.supports(np.arange(oracle._report_count, dtype=oracle.report_dtype))
    return (
        np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, : oracle.domain.size] > 0
    )


def report_law(oracle: Any, code: int) -> list[Fraction]:
    """The exact probability of each report of a node that holds a code."""
    inside = supported(oracle)[:, code]
    weights = [oracle.realized_ratio if own else Fraction(1) for own in inside]
    return [weight / sum(weights) for weight in weights]


@makers
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 2.5, 7.0])
@pytest.mark.parametrize("size", [2, 3, 4, 31, 100])
def test_support_probabilities_are_those_of_the_exact_law_and_the_same_for_all_pairs(
    make: Maker, epsilon: float, size: int
) -> None:
    oracle = make(epsilon, size)
    rows = supported(oracle)
    inside = rows.sum(axis=0)
    common = rows.T.astype(np.int64) @ rows.astype(np.int64)
    assert len(set(inside.tolist())) == 1
    assert len(set(common[~np.eye(size, dtype=bool)].tolist())) == 1
    ratio, points = oracle.realized_ratio, oracle._report_count
    own, both = int(inside[0]), int(common[0, 1])
    total = own * ratio + points - own
    p, q = oracle.support_probabilities
    assert math.isclose(p, own * ratio / total, rel_tol=1e-15)
    assert math.isclose(q, (both * ratio + own - both) / total, rel_tol=1e-15)
    assert 1 < ratio <= Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**14))
    assert ratio - 1 >= Fraction(math.expm1(epsilon)) * (1 - Fraction(1, 10**8))
    assert oracle.realized_epsilon <= epsilon
    assert math.isclose(oracle.realized_epsilon, epsilon, rel_tol=1e-8)


@makers
def test_reports_follow_the_exact_law(make: Maker, statistical: ModuleType) -> None:
    # 400,000 reports show a shift of one report's probability of 5 % to its weight.
    for size, code in [(3, 0), (3, 2), (12, 5), (28, 27)]:
        oracle = make(1.0, size)
        reports = oracle.randomize(np.full(400_000, code), seed=code).codes
        observed = np.bincount(reports, minlength=oracle._report_count)
        statistical.check_law(observed, [float(part) for part in report_law(oracle, code)])


@makers
@pytest.mark.parametrize("size", [2, 3, 30, 255, 256, 300])
def test_the_tally_is_the_double_loop(make: Maker, size: int) -> None:
    oracle = make(1.0, size)
    reports = oracle.randomize(np.arange(2000) % size, seed=1)
    expected = supported(oracle)[reports.codes].sum(axis=0)
    assert oracle.tally(reports).support.tolist() == expected.tolist()


@makers
@pytest.mark.parametrize("nodes", [0, 1, 257, CHUNK + 1, 3 * CHUNK + 7])
def test_collecting_equals_randomizing_and_tallying(make: Maker, nodes: int) -> None:
    oracle = make(0.8, 60)
    random = np.random.default_rng(nodes)
    values = random.integers(0, 60, nodes)
    rates = random.uniform(0.01, 1.0, nodes)
    for who in (tn.Everyone(), tn.Bernoulli(0.3), tn.Personalized(rates)):
        reports = oracle.randomize(values, participation=who, seed=3)
        tally = oracle.tally(reports)
        assert oracle.collect(values, participation=who, seed=3) == tally
        assert tally.received == len(reports)
        if nodes > 1:
            assert oracle.collect(values, participation=who, seed=4) != tally
        if reports.probabilities is not None and nodes:
            assert tally.weights is not None
            rows = supported(oracle)[reports.codes]
            expected = (rows / reports.probabilities[:, None]).sum(axis=0)
            np.testing.assert_allclose(tally.weights.inverse, expected, rtol=1e-6)
            total = (1 / reports.probabilities).sum()
            assert math.isclose(tally.weights.total_inverse, total, rel_tol=1e-6)


COUNTS = np.array([300, 180, 108, 12, 0, 40])
RATE = 0.4


def support_covariance(oracle: Any) -> npt.NDArray[np.float64]:
    """Covariances of the support counts and the number of reports, node by node from the law."""
    rows = np.column_stack([supported(oracle), np.ones(oracle._report_count, dtype=bool)])
    rows = rows.astype(np.float64)
    covariance = np.zeros((COUNTS.size + 1, COUNTS.size + 1))
    for code, count in enumerate(COUNTS.tolist()):
        law = np.array([float(part) for part in report_law(oracle, code)])
        mean = RATE * law @ rows
        covariance += count * (RATE * (rows.T * law) @ rows - np.outer(mean, mean))
    return covariance


@makers
@pytest.mark.parametrize("path", ["collect", "simulate"])
def test_tallies_have_the_exact_means_and_covariances(
    make: Maker, path: str, statistical: ModuleType
) -> None:
    oracle = make(1.5, COUNTS.size)
    who = tn.Bernoulli(RATE)
    values = np.repeat(np.arange(COUNTS.size), COUNTS)
    draw = {
        "collect": lambda seed: oracle.collect(values, participation=who, seed=seed),
        "simulate": lambda seed: oracle.simulate(COUNTS, participation=who, seed=seed),
    }[path]
    tallies = [draw(seed) for seed in range(8000)]
    samples = [[*tally.support.tolist(), tally.received] for tally in tallies]
    p, q = oracle.support_probabilities
    means = RATE * (q * COUNTS.sum() + (p - q) * COUNTS)
    statistical.check_mean(samples, [*means, RATE * COUNTS.sum()])
    statistical.check_covariance(samples, support_covariance(oracle))


@makers
def test_simulated_histograms_fit_those_of_the_nodes_cell_by_cell(
    make: Maker, statistical: ModuleType
) -> None:
    # Few nodes, whose joint law has few outcomes: a hash of the whole tally has the same law.
    oracle = make(1.0, 3)
    values = np.array([0, 0, 1, 2])
    factors = np.array([1, 5, 25])
    ways = [
        [int(draw(seed).support @ factors) for seed in range(12_000)]
        for draw in (
            lambda seed: oracle.collect(values, seed=seed),
            lambda seed: oracle.simulate([2, 1, 1], seed=seed + 10**6),
        )
    ]
    statistical.check_same_law(*ways)


@makers
@pytest.mark.parametrize("method", ["g", "c_hat", "T", "horvitz_thompson", "hajek"])
def test_estimates_are_unbiased_with_the_variance_of_the_library(
    make: Maker, method: str, statistical: ModuleType
) -> None:
    oracle = make(1.5, COUNTS.size)
    tallies = [
        oracle.simulate(COUNTS, participation=tn.Bernoulli(RATE), seed=seed) for seed in range(4000)
    ]
    estimates = [tally.estimate(method=method) for tally in tallies]
    truth = COUNTS / COUNTS.sum()
    # The ratio estimator's bias is of the order of one report.
    statistical.check_mean(
        [estimate.frequencies for estimate in estimates], truth, slack=2 / COUNTS.sum()
    )
    if method in ("g", "c_hat"):
        exact = tn.estimator_variance(oracle, tn.Bernoulli(RATE), method=method, true_counts=COUNTS)
        statistical.check_variance([estimate.counts for estimate in estimates], exact)


@makers
def test_a_simulation_of_a_trillion_nodes_estimates_to_nine_digits(make: Maker) -> None:
    oracle = make(2.0, 50)
    counts = np.arange(1, 51) * 10**9
    estimate = oracle.simulate(counts, seed=1).estimate()
    np.testing.assert_allclose(estimate.counts, counts, atol=6e7)
    largest = oracle.simulate([2**62, 2**62 - 1, *[0] * 48], seed=1)
    assert largest.received == 2**63 - 1
    assert abs(int(largest.support[0]) / 2**63 - sum(oracle.support_probabilities) / 2) < 1e-8


@makers
def test_an_oracle_survives_pickles_and_plans(make: Maker) -> None:
    oracle = make(1.0, 20)
    description = json.loads(json.dumps(oracle.to_dict()))
    for copy in (pickle.loads(pickle.dumps(oracle)), FrequencyOracle.from_dict(description)):
        assert copy == oracle
        assert hash(copy) == hash(oracle)
        assert repr(copy) == repr(oracle)
    assert make(1.0, 21) != oracle
    assert make(1.1, 20) != oracle
    with pytest.raises(CorruptDataError):
        FrequencyOracle.from_dict({**description, "other": 1})


@makers
def test_reports_that_cannot_be_are_refused(make: Maker) -> None:
    oracle = make(1.0, 20)
    reports = oracle.randomize(np.zeros(5, dtype=np.int64), seed=1)
    wrong = reports.codes.copy()
    wrong[3] = oracle._report_count
    with pytest.raises(InvalidValueError, match=r"\[3\].*expected an integer from 0 to"):
        oracle.check_reports(wrong)
    with pytest.raises(InvalidTypeError, match="dtype"):
        oracle.check_reports(wrong.astype(np.float64))
    with pytest.raises(CodeOutsideDomainError, match=r"values\[1\] is not"):
        oracle.randomize([0, 20])


@makers
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 42.1, 1e-12])
def test_an_epsilon_that_cannot_be_is_refused(make: Maker, epsilon: float) -> None:
    with pytest.raises(InvalidValueError, match="epsilon"):
        make(epsilon, 10)


@makers
def test_simulations_refuse_counts_that_do_not_fit(make: Maker) -> None:
    oracle = make(1.0, 3)
    with pytest.raises(InvalidValueError, match="true_counts"):
        oracle.simulate([1, 2])
    with pytest.raises(InvalidValueError, match="true_counts"):
        oracle.simulate([2**64 - 1, 1, 0])
