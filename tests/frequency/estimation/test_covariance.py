"""Covariances between answers, against sums over every node and every report."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.errors import EstimatorError
from turnout.frequency.choice import registered
from turnout.frequency.estimation.covariance import (
    Covariance,
    covariance_of,
    pair_support,
    sampled_covariance,
)
from turnout.frequency.estimation.models import excess_model, support_model

Floats = npt.NDArray[np.float64]

EPSILON = math.log(3.0)
HELD = np.array([40, 10, 25, 0, 5, 20])
NODES, SIZE = int(HELD.sum()), HELD.size
TRUTH = HELD / NODES


@dataclass
class Scheme:
    """All reports of an oracle: what each supports, and how likely it is under each answer."""

    oracle: Any
    support: npt.NDArray[np.int64]
    channel: Floats


def scheme(oracle: Any, support: Any) -> Scheme:
    """Give a report the ratio times the probability under the answers that it supports."""
    rows = np.asarray(support, dtype=np.int64)
    channel = np.where(rows == 1, float(oracle.realized_ratio), 1.0)
    channel /= channel.sum(axis=0)
    return Scheme(oracle, rows, channel)


def unary(oracle: Any) -> Scheme:
    bits = np.array(list(itertools.product([0, 1], repeat=SIZE)))
    p, q = oracle.support_probabilities
    channel = np.empty(bits.shape)
    for answer in range(SIZE):
        ones = np.where(np.arange(SIZE) == answer, p, q)
        channel[:, answer] = np.where(bits == 1, ones, 1 - ones).prod(axis=1)
    return Scheme(oracle, bits, channel)


def subsets(size: int) -> Scheme:
    chosen = list(itertools.combinations(range(SIZE), size))
    support = [[int(code in subset) for code in range(SIZE)] for subset in chosen]
    return scheme(tn.SubsetSelection(EPSILON, SIZE, subset_size=size), support)


def hadamard() -> Scheme:
    support = [[1 - ((code + 1) & y).bit_count() % 2 for code in range(SIZE)] for y in range(8)]
    return scheme(tn.HadamardResponse(EPSILON, SIZE), support)


def binary_hashing() -> Scheme:
    """All functions u = a x + b modulo 7, halves of which are as good as equally large."""
    rows = []
    for bits in itertools.product([0, 1], repeat=SIZE):
        if bits[0] == 0:
            rows += [list(bits), [1 - bit for bit in bits]]
    return scheme(tn.BinaryLocalHashing(EPSILON, SIZE), rows)


SCHEMES = {
    "direct": scheme(tn.DirectEncoding(EPSILON, SIZE), np.eye(SIZE)),
    "optimized unary": unary(tn.OptimizedUnaryEncoding(EPSILON, SIZE)),
    "symmetric unary": unary(tn.SymmetricUnaryEncoding(EPSILON, SIZE)),
    "threshold": unary(tn.ThresholdHistogramEncoding(EPSILON, SIZE)),
    "subsets of 2": subsets(2),
    "subsets of 3": subsets(3),
    "hadamard": hadamard(),
    "binary hashing": binary_hashing(),
}

#: Those whose pair probabilities are checked here and, of scores, with their noise.
KNOWN = {found.oracle.name for found in SCHEMES.values()} | {tn.SummationHistogramEncoding.name}

#: All others, whose reports say more of some pairs of answers than of others.
UNLIKE = [make(EPSILON, SIZE) for name, make in registered().items() if name not in KNOWN]
UNLIKE.append(tn.BinaryLocalHashing(EPSILON, SIZE, hashes=16))


def node_moments(found: Scheme, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and mean square, over the reports of a holder of each answer, of a weighted support."""
    value = found.support @ weights
    return value @ found.channel, value**2 @ found.channel


@pytest.mark.parametrize("name", SCHEMES)
def test_pair_probabilities_are_those_of_the_channel(name: str) -> None:
    found = SCHEMES[name]
    pair = pair_support(found.oracle)
    for own, one, other in itertools.permutations(range(SIZE), 3):
        both = found.support[:, one] * found.support[:, other]
        with_own = found.support[:, own] * found.support[:, one]
        assert with_own @ found.channel[:, own] == pytest.approx(pair.own, abs=1e-12)
        aligned = (one + 1) ^ (other + 1) == own + 1
        expected = pair.aligned if aligned else pair.other
        assert both @ found.channel[:, own] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("received", [1, 30, 99, 100])
def test_hajek_sums_have_the_variance_of_a_simple_random_sample(name: str, received: int) -> None:
    found = SCHEMES[name]
    share = (NODES - received) / (NODES - 1)
    covariance = sampled_covariance(found.oracle, received, TRUTH, sampling=share)
    rows = np.random.default_rng(1).normal(size=(5, SIZE))
    difference = found.oracle._score_moments.difference
    for weights, variance in zip(rows, covariance.variance(rows), strict=True):
        mean, square = node_moments(found, weights)
        overall = TRUTH @ mean
        between = TRUTH @ mean**2 - overall**2
        exact = received * (TRUTH @ (square - mean**2))
        exact += received * (NODES - received) / (NODES - 1) * between
        assert variance == pytest.approx(exact / (received * difference) ** 2, rel=1e-9)
    np.testing.assert_allclose(
        covariance.variance(rows), np.einsum("ri,ij,rj->r", rows, covariance.matrix(), rows)
    )


def estimate_with(found: Scheme, method: str, rate: float, model: Any) -> Any:
    """What covariance_of reads of an estimate, at the truth."""
    plan = SimpleNamespace(oracle=found.oracle, participation=tn.Bernoulli(rate))
    estimation = SimpleNamespace(bias=None, model=model, frequencies=TRUTH)
    return SimpleNamespace(plan=plan, method=method, nodes=NODES, estimation=estimation)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("rate", [0.3, 1.0])
@pytest.mark.parametrize("method", ["g", "T", "c_hat", "horvitz_thompson"])
def test_sums_of_unbiased_estimates_have_the_variance_of_independent_nodes(
    name: str, rate: float, method: str
) -> None:
    found = SCHEMES[name]
    scores = found.oracle._score_moments
    counts = method in ("g", "T")
    model = (support_model if counts else excess_model)(NODES, rate, scores)
    covariance = covariance_of(estimate_with(found, method, rate, model))
    rows = np.random.default_rng(2).normal(size=(4, SIZE))
    for weights, variance in zip(rows, covariance.variance(rows), strict=True):
        mean, square = node_moments(found, weights)
        if not counts:
            shift = scores.other * weights.sum()
            square = square - 2 * shift * mean + shift**2
            mean = mean - shift
        exact = HELD @ (rate * square - rate**2 * mean**2)
        assert variance == pytest.approx(exact / (NODES * rate * scores.difference) ** 2, rel=1e-9)


def test_direct_encoding_has_the_covariances_of_repeated_collections(
    statistical: ModuleType,
) -> None:
    oracle, rate = tn.DirectEncoding(1.0, 4), tn.Bernoulli(0.4)
    held = np.array([500, 300, 150, 50])
    tallies = [oracle.simulate(held, participation=rate, seed=seed) for seed in range(4000)]
    received = 400
    for method in ("c_hat", "g"):
        samples = np.array([tally.estimate(method).frequencies for tally in tallies])
        pairs = [covariance_of(tally.estimate(method)).matrix() for tally in tallies[:200]]
        statistical.check_covariance(samples, np.mean(pairs, axis=0))
    exact = sampled_covariance(oracle, received, held / 1000, sampling=600 / 999).matrix()
    hajek = np.array([tally.estimate().frequencies for tally in tallies])
    numbers = np.array([tally.received for tally in tallies])
    scaled = (hajek - held / 1000) * np.sqrt(numbers / received)[:, None]
    # The part of sampling without replacement is not in proportion to 1 / S, but nearly.
    moments = scaled[:, :, None] * scaled[:, None, :]
    statistical.check_mean(moments.reshape(len(moments), -1), exact.ravel(), slack=2e-5)


def test_estimates_of_direct_encoding_have_the_same_variances_as_before() -> None:
    tally = tn.DirectEncoding(1.0, 4).simulate([4000, 3000, 2000, 1000], seed=1)
    for method in ("hajek", "c_hat", "g", "T", "c"):
        estimate = tally.estimate(method)
        assert estimate.frequencies.min() > 0
        matrix = covariance_of(estimate).matrix()
        if method == "hajek":
            np.testing.assert_allclose(matrix.sum(axis=0), 0.0, atol=1e-14)
        np.testing.assert_allclose(np.sqrt(np.diag(matrix)), estimate.standard_errors, rtol=0.02)


def test_covariances_that_are_not_known_are_refused() -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    values = [0, 1, 2] * 100
    personal = oracle.collect(values, participation=tn.Personalized([0.5] * 300), seed=1)
    with pytest.raises(EstimatorError, match="one participation rate"):
        covariance_of(personal.estimate())
    biased = oracle.collect(values, participation=tn.Bernoulli(0.5), seed=1).estimate("c")
    with pytest.raises(EstimatorError, match="biased"):
        covariance_of(biased)
    groups = [oracle.simulate([50, 50, 50], seed=seed).estimate() for seed in (1, 2)]
    with pytest.raises(EstimatorError, match="one tally"):
        covariance_of(tn.weighting.combine(groups))


@pytest.mark.parametrize("oracle", UNLIKE, ids=lambda oracle: oracle.name)
def test_pairs_that_are_not_alike_are_refused(oracle: Any) -> None:
    with pytest.raises(EstimatorError, match=f"'{oracle.name}' do not follow"):
        pair_support(oracle)


@pytest.mark.parametrize("name", ["subset_selection", "hadamard_response"])
def test_pairs_of_combinations_are_those_of_the_oracle_that_reports_them(name: str) -> None:
    table = tn.JointTable(EPSILON, {"a": 2, "b": 3}, oracle=name)
    assert pair_support(table) == pair_support(table.oracle)


def test_the_variance_of_a_combination_is_never_negative() -> None:
    covariance = Covariance(np.array([1.0, 0.0]), np.array([1.0, 1.0]), -1.0 - 1e-16, 0.0, 0.0)
    assert covariance.variance(np.ones((1, 2)))[0] == 0.0
