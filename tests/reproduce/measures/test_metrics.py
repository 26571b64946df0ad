"""Metrics: against closed forms, scipy's integrals, enumeration and simulation."""

from __future__ import annotations

import math
from itertools import pairwise, product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers import Mixture, Normal, StandardNormal, Uniform
from turnout_reproduce.measures import quadrature
from turnout_reproduce.measures.metrics import (
    hellinger,
    kl_divergence,
    mode_coverage,
    negative_log_likelihood,
    total_variation,
)

SEED_MIXTURE = Mixture([Normal([0.3], [1e-4]), Normal([0.5], [0.01]), Normal([0.7], [0.01])])
DIVERGENCES = (kl_divergence, total_variation, hellinger)


def density(law: Any, x: float) -> float:
    return float(np.exp(law.log_density(np.array([[x]]))[0]))


@pytest.mark.parametrize(("dimension", "degree"), [(1, 23), (2, 11)])
def test_the_rule_is_exact_for_polynomials(dimension: int, degree: int) -> None:
    nodes, fine, coarse = quadrature.rule(dimension)
    for powers in product(range(degree + 1), repeat=dimension):
        exact = math.prod((1 + (-1) ** power) / (power + 1) for power in powers)
        values = np.prod(nodes ** np.array(powers), axis=1)
        assert fine @ values == pytest.approx(exact, abs=1e-14)
        if max(powers) <= {1: 13, 2: 5}[dimension]:
            assert coarse @ values == pytest.approx(exact, abs=1e-14)
    first = np.prod(nodes ** ({1: 14, 2: 6}[dimension]), axis=1)
    assert abs(coarse @ first - fine @ first) > 1e-9


def test_a_jump_is_found_and_its_error_is_told() -> None:
    def jump(where: Any) -> Any:
        return (where[:, :1] > 1 / 3).astype(np.float64)

    low, high = np.zeros(1), np.ones(1)
    found = quadrature.integrate(jump, low, high, tolerance=1e-9, evaluations=100_000)
    assert found.errors[0] <= 1e-9
    assert found.values[0] == pytest.approx(2 / 3, abs=1e-9)
    rough = quadrature.integrate(jump, low, high, tolerance=1e-9, evaluations=1)
    assert 1e-9 < abs(rough.values[0] - 2 / 3) <= rough.errors[0] * 20


def test_normal_distributions_have_closed_forms_on_the_line() -> None:
    a, b, s, t = 0.3, -0.5, 0.7, 1.9
    p, q = Normal([a], [s**2]), Normal([b], [t**2])
    kl = kl_divergence(p, q, bounds=(-12, 12))
    exact = math.log(t / s) + (s**2 + (a - b) ** 2) / (2 * t**2) - 0.5
    assert abs(kl.value - exact) <= kl.error + 1e-12
    assert kl.error <= 1e-7
    distance = hellinger(p, q, bounds=(-12, 12))
    affinity = math.sqrt(2 * s * t / (s**2 + t**2)) * math.exp(-((a - b) ** 2) / 4 / (s**2 + t**2))
    assert distance.value**2 == pytest.approx(1 - affinity, abs=1e-9)
    shifted = total_variation(Normal([0.0], [1.0]), Normal([1.0], [1.0]), bounds=(-12, 12))
    assert shifted.value == pytest.approx(2 * stats.norm.cdf(0.5) - 1, abs=1e-7)
    np.testing.assert_allclose(kl.masses, 1.0, atol=1e-7)


def test_normal_distributions_have_closed_forms_in_the_plane() -> None:
    one, other = np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([[2.0, -0.4], [-0.4, 1.0]])
    shift = np.array([0.5, -0.2])
    p, q = Normal([0.0, 0.0], one), Normal(shift, other)
    inverse = np.linalg.inv(other)
    exact = 0.5 * (
        np.trace(inverse @ one)
        + shift @ inverse @ shift
        - 2
        + math.log(np.linalg.det(other) / np.linalg.det(one))
    )
    sides = ((-12, 12), (-10, 10))
    kl = kl_divergence(p, q, bounds=sides, tolerance=1e-6)
    assert abs(kl.value - exact) <= kl.error + 1e-12
    assert kl.error <= 1e-6
    middle = (one + other) / 2
    affinity = (
        (np.linalg.det(one) * np.linalg.det(other)) ** 0.25
        / math.sqrt(np.linalg.det(middle))
        * math.exp(-(shift @ np.linalg.inv(middle) @ shift) / 8)
    )
    distance = hellinger(p, q, bounds=sides, tolerance=1e-6)
    assert distance.value**2 == pytest.approx(1 - affinity, abs=2e-6)
    far = total_variation(Normal([0, 0], [1, 1]), Normal([1, 0], [1, 1]), bounds=sides)
    assert far.value == pytest.approx(2 * stats.norm.cdf(0.5) - 1, abs=far.error)


def test_the_seed_mixture_agrees_with_scipys_integrals() -> None:
    q = StandardNormal(1)
    pieces = np.r_[-8.0, np.linspace(0.2, 0.4, 21), np.linspace(0.45, 1.5, 22), 8.0]

    def whole(term: Any) -> float:
        return math.fsum(
            integrate.quad(term, *side, epsabs=1e-12, limit=200)[0] for side in pairwise(pieces)
        )

    def ratio(x: float) -> float:
        at = np.array([[x]])
        return float(SEED_MIXTURE.log_density(at)[0] - q.log_density(at)[0])

    exact = {
        kl_divergence: whole(lambda x: density(SEED_MIXTURE, x) * ratio(x)),
        total_variation: whole(lambda x: abs(density(SEED_MIXTURE, x) - density(q, x)) / 2),
        hellinger: math.sqrt(
            whole(lambda x: (density(SEED_MIXTURE, x) ** 0.5 - density(q, x) ** 0.5) ** 2 / 2)
        ),
    }
    for divergence, value in exact.items():
        found = divergence(SEED_MIXTURE, q, bounds=(-8, 8))
        assert abs(found.value - value) <= found.error + 1e-7
        assert found.error < 1e-5


def test_finite_distributions_agree_with_sums() -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        p, q = generator.dirichlet(np.ones(6), size=2)
        p[0], p[1] = 0.0, p[0] + p[1]
        kl = math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a)
        tv = max(
            abs(math.fsum(p[list(cells)]) - math.fsum(q[list(cells)]))
            for size in range(64)
            if (cells := [cell for cell in range(6) if size >> cell & 1])
        )
        squared = 1 - math.fsum(math.sqrt(a * b) for a, b in zip(p, q, strict=True))
        assert kl_divergence(p, q).value == pytest.approx(kl, rel=1e-12)
        assert total_variation(p, q).value == pytest.approx(tv, rel=1e-12)
        assert hellinger(p, q).value ** 2 == pytest.approx(squared, abs=1e-12)
        assert math.isinf(kl_divergence(q, p).value)


def test_infinite_divergences_are_numbers() -> None:
    narrow, wide = Uniform(0.0, 1.0), Uniform(0.0, 2.0)
    assert kl_divergence(wide, narrow, bounds=(-1, 3)).value == math.inf
    found = kl_divergence(narrow, wide, bounds=(-1, 3))
    assert found.value == pytest.approx(math.log(2), abs=found.error + 1e-9)
    assert total_variation(narrow, wide, bounds=(-1, 3)).value == pytest.approx(0.5, abs=1e-6)
    square = kl_divergence(
        Uniform([0, 0], [2, 1]), Uniform([0, 0], [1, 1]), bounds=[(0, 2), (0, 1)]
    )
    assert square.value == math.inf


def test_what_is_outside_of_the_box_is_told() -> None:
    half = total_variation(StandardNormal(1), Normal([3.0], [1.0]), bounds=(-30.0, 0.0))
    assert half.masses == pytest.approx((0.5, stats.norm.cdf(-3.0)), abs=1e-6)
    whole = 2 * stats.norm.cdf(1.5) - 1
    assert half.value <= whole <= half.value + half.error
    assert half.error > 0.5
    distance = hellinger(StandardNormal(1), Normal([3.0], [1.0]), bounds=(-30.0, 0.0))
    exact = math.sqrt(1 - math.exp(-9 / 8))
    assert distance.value <= exact <= distance.value + distance.error


def test_the_likelihood_is_a_mean_with_its_error() -> None:
    records = np.array([[0.0], [1.0], [3.0]])
    loss = negative_log_likelihood(stats.norm(), records)
    each = -stats.norm.logpdf(records[:, 0])
    assert loss.value == pytest.approx(each.mean())
    assert float(loss) == loss.value
    assert loss.standard_error == pytest.approx(stats.sem(each))
    assert loss.records == 3
    assert negative_log_likelihood(Uniform(0.0, 2.0), records).value == math.inf
    assert math.isnan(negative_log_likelihood(Uniform(0.0, 2.0), records).standard_error)
    plane = stats.multivariate_normal([0.0, 1.0])
    both = negative_log_likelihood(plane, [[0.0, 0.0], [1.0, 1.0]])
    assert both.value == pytest.approx(math.log(2 * math.pi) + 0.5)


def test_the_likelihood_estimates_the_cross_entropy(statistical: ModuleType) -> None:
    # Of N(0, 1) under N(1, 4): a wrong variance of 4.1 would shift the mean by .005.
    samples = StandardNormal(1).draw(2_000_000, seed=3)
    exact = 0.5 * math.log(2 * math.pi * 4) + 2 / 8
    loss = negative_log_likelihood(Normal([1.0], [4.0]), samples)
    assert abs(loss.value - exact) <= statistical.quantile() * loss.standard_error
    assert statistical.quantile() * loss.standard_error < 0.003


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0, 4.0])
def test_coverage_of_normals_has_a_closed_form(width: float, statistical: ModuleType) -> None:
    exact = 2 * stats.norm.cdf(stats.norm.ppf(0.975) / width) - 1
    p, q = Normal([0.0], [width**2]), StandardNormal(1)
    computed = mode_coverage(p, q, bounds=(-40, 40))
    assert computed.value == pytest.approx(exact, abs=2e-3)
    assert computed.standard_error == 0.0
    assert computed.threshold == pytest.approx(stats.norm.logpdf(stats.norm.ppf(0.975)), abs=5e-3)
    records = p.draw(200_000, seed=1)
    by_records = mode_coverage(records, q, bounds=(-40, 40))
    statistical.check_share(round(by_records.value * 200_000), 200_000, exact - 5e-4, exact + 5e-4)
    sampled = mode_coverage(records, q, draws=q.draw(200_000, seed=2))
    assert abs(sampled.value - exact) <= statistical.quantile() * sampled.standard_error + 1e-5
    assert sampled.standard_error < 2e-3


def test_the_standard_error_of_the_coverage_is_right(statistical: ModuleType) -> None:
    # P is wider, so that the threshold's error counts as much as that of the records.
    p, q = Normal([0.0], [4.0]), StandardNormal(1)
    found = [
        mode_coverage(
            p.draw(1000, seed=2 * repeat), q, draws=q.draw(500, seed=2 * repeat + 1), level=0.8
        )
        for repeat in range(2000)
    ]
    values = np.array([each.value for each in found])
    predicted = float(np.mean([each.standard_error**2 for each in found]))
    # The relative standard error of a variance of 2000 values is .032.
    assert abs(values.var(ddof=1) / predicted - 1) < 0.032 * statistical.quantile() + 0.02
    records_alone = values.mean() * (1 - values.mean()) / 1000
    assert predicted > 1.3 * records_alone


def test_missed_modes_are_seen() -> None:
    ring = Mixture(
        [Normal(4 * np.array([math.cos(a), math.sin(a)]), [0.04, 0.04]) for a in range(6)]
    )
    some = Mixture(ring.components[:3])
    found = mode_coverage(ring, some, bounds=[(-6, 6), (-6, 6)])
    assert found.value == pytest.approx(0.475, abs=0.01)
    own = mode_coverage(ring, ring, bounds=[(-6, 6), (-6, 6)])
    assert own.value == pytest.approx(0.95, abs=0.005)


def test_coverage_of_finite_distributions_is_the_best_set() -> None:
    generator = np.random.default_rng(5)
    for _ in range(50):
        p, q = generator.dirichlet(np.ones(5), size=2)
        q = np.round(q, 1)
        q[-1] = 1 - q[:-1].sum()
        if q[-1] < 0:
            continue
        # All sets {q >= t}; the smallest that holds the level.
        sets = [
            (q[q >= t - 1e-9].sum(), p[q >= t - 1e-9].sum())
            for t in q
            if q[q >= t - 1e-9].sum() >= 0.7 - 1e-9
        ]
        assert mode_coverage(p, q, level=0.7).value == pytest.approx(min(sets)[1])


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_bad_input_is_refused(divergence: Any) -> None:
    law = StandardNormal(1)
    for p, q, options in (
        ([0.5, 0.5], [1.0], {}),
        ([0.5, 0.6], [0.5, 0.5], {}),
        ([-0.5, 1.5], [0.5, 0.5], {}),
        ([math.nan, 1.0], [0.5, 0.5], {}),
        ([], [], {}),
        ([0.5, 0.5], [0.5, 0.5], {"bounds": (0, 1)}),
        (law, law, {}),
        (law, law, {"bounds": (1, 0)}),
        (law, law, {"bounds": (0, math.inf)}),
        (law, law, {"bounds": [(0, 1)] * 3}),
        (law, law, {"bounds": (0, 1), "tolerance": 0.0}),
        (law, law, {"bounds": (0, 1), "max_evaluations": 0}),
        (law, lambda where: np.full(len(where), np.nan), {"bounds": (0, 1)}),
        (law, lambda where: np.zeros(3), {"bounds": (0, 1)}),
    ):
        with pytest.raises(InvalidValueError):
            divergence(p, q, **options)
    with pytest.raises(InvalidTypeError, match="q must be a function"):
        divergence(law, 3.0, bounds=(0, 1))
    with pytest.raises(InvalidTypeError, match="p must be a function"):
        divergence(StandardNormal, law, bounds=(0, 1))


def test_bad_input_of_the_coverage_is_refused() -> None:
    law = StandardNormal(1)
    for p, q, options in (
        (law, law, {}),
        ([[0.0]], law, {}),
        (law, law, {"draws": [[0.0]]}),
        (law, law, {"bounds": (-1, 1)}),
        (law, law, {"bounds": (-9, 9), "level": 1.0}),
        ([[0.0]], law, {"draws": [[math.nan]]}),
    ):
        with pytest.raises(InvalidValueError):
            mode_coverage(p, q, **options)
