"""The Bernstein mechanism: its sensitivity, its noise, its density and its draws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf
from scipy import integrate, interpolate, stats

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout_reproduce.baselines.bernstein import BernsteinSampler

Floats = npt.NDArray[np.float64]

EPSILONS = (1e-5, 0.001, 0.1, 1.0, math.pi, 10.0, 42.0)


def statistics(sampler: BernsteinSampler, records: Floats) -> npt.NDArray[np.int64]:
    """Give the integers to which a fit adds noise."""
    kept = []
    original = BernsteinSampler._statistics

    def keep(self: BernsteinSampler, *arguments: Any) -> npt.NDArray[np.int64]:
        kept.append(original(self, *arguments))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BernsteinSampler, "_statistics", keep)
        sampler.fit(records)
    return kept[0]


def noise_of(sampler: BernsteinSampler, records: Floats) -> npt.NDArray[np.int64]:
    """Give the integers that a release of the density adds to its statistics."""
    exact = statistics(sampler, records)
    noisy, _ = sampler._release(records, None)
    units = sampler.sensitivity_ // 2 * (1 if sampler.unit == "dataset" else len(records))
    numbers = noisy * units - exact
    assert np.abs(numbers - np.rint(numbers)).max() < 1e-3
    return np.rint(numbers).astype(np.int64)


def adversarial(dimensions: int) -> list[Floats]:
    ends = [np.tile(corner, (7, 1)) for corner in product((0.0, 1.0), repeat=dimensions)]
    return [*ends, np.concatenate(ends), np.full((3, dimensions), 0.5)]


@pytest.mark.parametrize("dimensions", [1, 2])
def test_no_two_data_sets_differ_by_more_than_the_sensitivity(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    sampler = BernsteinSampler(epsilon=0.3, bounds=(0.0, 1.0), degree=6, random_state=1)
    drawn = [
        rng.beta(*rng.choice([0.1, 1.0, 9.0], 2), (int(rng.choice([1, 2, 5, 60])), dimensions))
        for _ in range(20)
    ]
    found = [statistics(sampler, data) for data in [*drawn, *adversarial(dimensions)]]
    distances = [int(np.abs(one - other).sum()) for one in found for other in found]
    assert max(distances) <= sampler.sensitivity_
    assert max(distances) == sampler.sensitivity_


@pytest.mark.parametrize("dimensions", [1, 2])
def test_no_two_records_differ_by_more_than_the_sensitivity(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    sampler = BernsteinSampler(
        epsilon=0.3,
        bounds=(0.0, 1.0),
        degree=6,
        unit="record",
        random_state=1,
    )
    data = rng.uniform(0.0, 1.0, (11, dimensions))
    found = []
    for record in [
        *rng.uniform(0.0, 1.0, (15, dimensions)),
        *np.concatenate(adversarial(dimensions)),
    ]:
        changed = data.copy()
        changed[4] = record
        found.append(statistics(sampler, changed))
    distances = [int(np.abs(one - other).sum()) for one in found for other in found]
    assert max(distances) <= sampler.sensitivity_
    assert max(distances) == sampler.sensitivity_


@pytest.mark.parametrize("unit", ["dataset", "record"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_realised_epsilon_is_at_most_the_one_asked_for_as_a_rational(
    epsilon: float, unit: str
) -> None:
    sampler = BernsteinSampler(epsilon=epsilon, bounds=(0.0, 1.0), degree=4, unit=unit).fit(
        [[0.1], [0.9]]
    )
    realized = sampler.sensitivity_ / sampler.scale_
    assert realized <= Fraction(sampler._realized_epsilon_) <= Fraction(epsilon)
    assert realized > Fraction(epsilon) * (1 - Fraction(1, 10**12))


def test_the_ratio_of_probabilities_of_any_release_is_at_most_e_to_the_epsilon() -> None:
    # P[x + a] / P[x + b] of discrete Laplace noise is e^(rate (|x - b|_1 - |x - a|_1)).
    sampler = BernsteinSampler(epsilon=1.7, bounds=(0.0, 1.0), degree=3)
    one = statistics(sampler, np.zeros((5, 1)))
    other = statistics(sampler, np.ones((900, 1)))
    rng = np.random.default_rng(0)
    worst = Fraction(0)
    for released in [*rng.integers(-(10**6), 10**6, (200, 4)), one, other]:
        exponent = int(np.abs(released - other).sum() - np.abs(released - one).sum())
        worst = max(worst, exponent / sampler.scale_)
    assert Fraction(1.69) < worst <= Fraction(1.7)


def test_the_noise_follows_the_discrete_laplace_law(statistical: ModuleType) -> None:
    sampler = BernsteinSampler(epsilon=0.5, bounds=(0.0, 1.0), degree=299, unit="record")
    data = np.random.default_rng(4).uniform(0.0, 1.0, (100, 1))
    drawn = np.concatenate([noise_of(sampler, data) for _ in range(200)])
    assert sampler.scale_ == Fraction(4)
    law = np.exp(-np.abs(np.arange(-60, 61)) / 4.0)
    observed = np.bincount(np.clip(drawn, -60, 60) + 60, minlength=121)
    statistical.check_law(observed, law / law.sum())


def test_the_noise_of_a_whole_data_set_has_its_scale_whatever_its_size(
    statistical: ModuleType,
) -> None:
    sampler = BernsteinSampler(epsilon=2.0, bounds=(0.0, 1.0), degree=3)
    for count in (1, 1000):
        data = np.random.default_rng(4).uniform(0.0, 1.0, (count, 1))
        drawn = np.array([noise_of(sampler, data) for _ in range(2000)])
        relative = drawn / (sampler.sensitivity_ / 2)
        # The scale of the weights is 2 / epsilon.
        statistical.check_covariance(relative, 2.0 * np.eye(4))


def reference_density(sampler: BernsteinSampler, points: Floats) -> Floats:
    """Give the density of a mixture of products of Beta distributions, written down directly."""
    size = sampler._degree_ + 1
    result = np.zeros(len(points))
    dimensions = points.shape[1]
    for weight, index in zip(
        sampler._weights_, product(range(size), repeat=dimensions), strict=True
    ):
        factors = [
            stats.beta.pdf(column, j + 1, size - j)
            for column, j in zip(points.T, index, strict=True)
        ]
        result += weight * np.prod(factors, axis=0)
    return result


@pytest.mark.parametrize("epsilon", [0.5, 30.0])
def test_the_log_density_is_that_of_the_mixture_in_one_dimension(epsilon: float) -> None:
    data = np.random.default_rng(1).uniform(1.0, 2.0, (40, 1))
    sampler = BernsteinSampler(epsilon=epsilon, bounds=(-1.0, 4.0), degree=9, random_state=3)
    sampler.fit(data)
    points = np.linspace(-1.0, 4.0, 101)[:, None]
    found = np.exp(sampler.score_samples(points))
    np.testing.assert_allclose(found, reference_density(sampler, (points + 1.0) / 5.0) / 5.0)
    polynomial = interpolate.BPoly(sampler._weights_[:, None] * 10.0 / 5.0, [-1.0, 4.0])
    np.testing.assert_allclose(found, polynomial(points[:, 0]), rtol=1e-10, atol=1e-13)
    total, _ = integrate.quad(lambda x: math.exp(sampler.score(np.array([[x]]))), -1.0, 4.0)
    assert math.isclose(total, 1.0, rel_tol=1e-9)


def test_the_log_density_is_that_of_the_mixture_in_more_dimensions() -> None:
    for dimensions in (2, 3):
        data = np.random.default_rng(1).uniform(1.0, 2.0, (40, dimensions))
        bounds = [(-1.0, 4.0), (0.0, 2.5), (1.0, 2.0)][:dimensions]
        sampler = BernsteinSampler(
            epsilon=20.0, bounds=bounds, degree=3, unit="record", random_state=3
        ).fit(data)
        low, high = np.array(bounds).T
        unit_points = np.random.default_rng(5).uniform(0.0, 1.0, (200, dimensions))
        found = np.exp(sampler.score_samples(low + unit_points * (high - low)))
        expected = reference_density(sampler, unit_points) / np.prod(high - low)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        # Exact for polynomials of degree seven in each coordinate.
        nodes, weights = np.polynomial.legendre.leggauss(4)
        mesh = np.array(list(product(0.5 + 0.5 * nodes, repeat=dimensions)))
        masses = np.prod(list(product(0.5 * weights, repeat=dimensions)), axis=1)
        values = np.exp(sampler.score_samples(low + mesh * (high - low)))
        assert math.isclose(values @ masses * np.prod(high - low), 1.0, rel_tol=1e-12)


def test_faint_densities_are_those_of_fifty_digits() -> None:
    sampler = BernsteinSampler(
        epsilon=42.0, bounds=(0.0, 1.0), degree=900, unit="record", uniform_weight=0.0
    ).fit(np.full((10_000, 1), 0.05))
    sampler._weights_ = np.where(np.arange(901) == 45, 1.0, 0.0)
    for position in (0.3, 0.9, 0.999):
        with mp.workdps(50):
            x = mpf(position)
            value = 901 * mp.binomial(900, 45) * x**45 * (1 - x) ** 855
            expected = float(mp.log(value))
        found = float(sampler.score_samples(np.array([[position]]))[0])
        assert math.isclose(found, expected, rel_tol=1e-10)
    assert sampler.score_samples(np.array([[1.0]]))[0] == -np.inf


def test_draws_follow_the_density_in_one_dimension(statistical: ModuleType) -> None:
    data = np.random.default_rng(1).normal(0.3, 0.05, (2000, 1))
    sampler = BernsteinSampler(epsilon=20.0, bounds=(0.0, 2.0), degree=17, random_state=3)
    sampler.fit(data)
    index = np.arange(18)

    def distribution(x: Floats) -> Floats:
        return stats.beta.cdf(x[:, None] / 2.0, index + 1, 18 - index) @ sampler._weights_

    draws = sampler.sample(200_000, seed=8)[:, 0]
    assert stats.kstest(draws, distribution).pvalue > statistical.ALPHA


def test_draws_follow_the_density_in_two_dimensions(statistical: ModuleType) -> None:
    data = np.random.default_rng(1).beta([3.0, 8.0], 4.0, (500, 2))
    sampler = BernsteinSampler(
        epsilon=1.0, bounds=(0.0, 2.0), degree=5, unit="record", random_state=3
    ).fit(data)
    edges = np.linspace(0.0, 1.0, 9)
    index = np.arange(6)
    masses = np.diff(stats.beta.cdf(edges[:, None], index + 1, 6 - index), axis=0)
    expected = masses @ sampler._weights_.reshape(6, 6) @ masses.T
    draws = sampler.sample(200_000, seed=8)
    observed, _, _ = np.histogram2d(*draws.T, bins=[2.0 * edges, 2.0 * edges])
    statistical.check_law(observed.ravel(), expected.ravel())


def test_the_estimate_is_vitales_where_the_noise_is_small() -> None:
    data = np.random.default_rng(1).beta(2.0, 5.0, (100_000, 1))
    counts, _ = np.histogram(data, bins=31, range=(0.0, 1.0))
    for unit, tolerance in (("record", 1e-4), ("dataset", 0.5)):
        sampler = BernsteinSampler(
            epsilon=40.0,
            bounds=(0.0, 1.0),
            degree=30,
            unit=unit,
            uniform_weight=0.0,
            random_state=1,
        ).fit(data)
        np.testing.assert_allclose(sampler._weights_, counts / 100_000, atol=tolerance)
    noisy, _ = sampler._release(data, 1)
    exact = statistics(sampler, data) / (sampler.sensitivity_ / 2)
    np.testing.assert_allclose(exact, counts / 100_000, atol=1e-6)
    assert np.abs(noisy - exact).max() > 1e-3


@pytest.mark.parametrize(
    ("epsilon", "unit", "count", "dimensions", "degree"),
    [
        (0.1, "dataset", 10, 1, 2),
        (5.0, "dataset", 10, 1, 4),
        (10.0, "dataset", 10, 1, 8),
        (10.0, "dataset", 10, 2, 4),
        (1.0, "record", 100, 1, 46),
        (42.0, "record", 10_000, 1, 2000),
    ],
)
def test_the_default_degree_is_the_documented_one(
    epsilon: float, unit: str, count: int, dimensions: int, degree: int
) -> None:
    sampler = BernsteinSampler(epsilon=epsilon, bounds=(0.0, 1.0), unit=unit)
    assert sampler.fit(np.full((count, dimensions), 0.5))._degree_ == degree


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"degree": 0}, InvalidValueError, "degree must be an integer of at least 1, got 0"),
        ({"degree": 2.0}, InvalidTypeError, "degree"),
        ({"degree": 2**20}, InvalidValueError, "the number of coefficients"),
    ],
)
def test_bad_parameters_are_named(
    parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BernsteinSampler(bounds=(0.0, 1.0), **parameters).fit([[0.5]])


def test_too_many_features_are_refused_by_name() -> None:
    with pytest.raises(InvalidValueError, match=r"\(degree \+ 1\)\^12"):
        BernsteinSampler(bounds=(0.0, 1.0)).fit(np.full((3, 12), 0.5))
    assert BernsteinSampler(bounds=(0.0, 1.0)).fit(np.full((3, 10), 0.5))._degree_ == 2
