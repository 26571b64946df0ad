"""References give the density that they draw from; foreign distributions become references."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

from turnout.errors import InvalidValueError
from turnout.samplers import (
    Mixture,
    MollifiedDensity,
    Normal,
    PrivacyBudget,
    Reference,
    StandardNormal,
    Uniform,
    as_reference,
)

Floats = npt.NDArray[np.float64]

ALPHA = 1e-6
COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
MEAN = np.array([1.0, -2.0, 0.5])


def fits(sample: Floats, law: Any) -> None:
    """Fail unless one column follows a law: Kolmogorov-Smirnov."""
    assert stats.kstest(sample, law).pvalue > ALPHA


def sklearn_mixture(kind: str, dimensions: int = 2) -> Any:
    mixture = pytest.importorskip("sklearn.mixture")
    rng = np.random.default_rng(5)
    public = np.concatenate(
        [
            rng.normal(size=(300, dimensions)) * 0.4 - 2.0,
            rng.normal(size=(600, dimensions)) @ (np.eye(dimensions) + 0.3) + 2.0,
        ]
    )
    return mixture.GaussianMixture(2, covariance_type=kind, random_state=0).fit(public)


# Densities and draws of our own references


def test_normal_densities_agree_with_scipy() -> None:
    at = np.random.default_rng(1).normal(size=(50, 3)) * 3.0
    for reference, law in [
        (Normal(MEAN, COVARIANCE), stats.multivariate_normal(MEAN, COVARIANCE)),
        (Normal(MEAN, [2.0, 1.0, 0.5]), stats.multivariate_normal(MEAN, [2.0, 1.0, 0.5])),
        (StandardNormal(3), stats.multivariate_normal(np.zeros(3))),
    ]:
        assert (reference.dimensions, reference.words) == (3, 3)
        np.testing.assert_allclose(reference.log_density(at), law.logpdf(at), rtol=1e-12)
    one = Normal([1.5], 4.0)
    np.testing.assert_allclose(one.log_density(at[:, :1]), stats.norm(1.5, 2.0).logpdf(at[:, 0]))
    assert StandardNormal(2).log_density(np.array([[np.inf, 0.0]])) == -np.inf


def test_uniform_densities_agree_with_scipy() -> None:
    box = Uniform([0.0, -1.0], [2.0, 4.0])
    at = np.random.default_rng(1).uniform(-2, 5, size=(200, 2))
    expected = stats.uniform(0, 2).logpdf(at[:, 0]) + stats.uniform(-1, 5).logpdf(at[:, 1])
    np.testing.assert_allclose(box.log_density(at), expected)
    corners = np.array([[0.0, -1.0], [2.0, 4.0], [2.0, np.nextafter(4.0, 5.0)]])
    assert np.isfinite(box.log_density(corners)).tolist() == [True, True, False]


def test_mixture_densities_agree_with_scipy() -> None:
    mixture = Mixture([Normal([-1.0], [0.25]), Uniform(0.0, 3.0), Normal([9.0], [1.0])], [3, 1, 0])
    at = np.linspace(-4.0, 12.0, 401)[:, None]
    density = 0.75 * stats.norm(-1.0, 0.5).pdf(at[:, 0]) + 0.25 * stats.uniform(0, 3).pdf(at[:, 0])
    np.testing.assert_allclose(np.exp(mixture.log_density(at)), density, rtol=1e-12, atol=1e-300)
    # No overflow far away, and no warning where no component has a density.
    assert mixture.log_density(np.array([[1e6]]))[0] < -1e11
    assert np.isneginf(Mixture([Uniform(0.0, 1.0)]).log_density(np.array([[2.0]])))[0]


def test_normal_draws_follow_their_law(statistical: Any) -> None:
    drawn = Normal(MEAN, COVARIANCE).draw(100_000, seed=1)
    for column in range(3):
        fits(drawn[:, column], stats.norm(MEAN[column], COVARIANCE[column, column] ** 0.5).cdf)
    statistical.check_covariance(drawn, COVARIANCE.ravel())
    # Every direction is normal: the law is jointly so.
    direction = np.array([1.0, -2.0, 0.7])
    scale = (direction @ COVARIANCE @ direction) ** 0.5
    fits(drawn @ direction, stats.norm(direction @ MEAN, scale).cdf)
    plain = StandardNormal(2).draw(100_000, seed=2)
    fits((plain**2).sum(axis=1), stats.chi2(2).cdf)


def test_uniform_draws_follow_their_law(statistical: Any) -> None:
    drawn = Uniform([0.0, -1.0], [2.0, 4.0]).draw(100_000, seed=1)
    fits(drawn[:, 0], stats.uniform(0.0, 2.0).cdf)
    fits(drawn[:, 1], stats.uniform(-1.0, 5.0).cdf)
    statistical.check_covariance(drawn, [1 / 3, 0.0, 0.0, 25 / 12])


def test_mixture_draws_follow_their_law() -> None:
    parts = [Normal([-1.0], [0.25]), Uniform(0.0, 3.0), Normal([9.0], [1.0])]
    mixture = Mixture(parts, [3.0, 1.0, 0.0])
    assert mixture.words == 2

    def cdf(x: Floats) -> Floats:
        return 0.75 * stats.norm(-1.0, 0.5).cdf(x) + 0.25 * stats.uniform(0.0, 3.0).cdf(x)

    fits(mixture.draw(100_000, seed=1)[:, 0], cdf)
    # Components of several words: the words of one are not those that chose it.
    pair = Mixture([StandardNormal(2), Normal([5.0, 5.0], [1.0, 1.0])], [0.5, 0.5])
    assert pair.words == 3
    drawn = pair.draw(100_000, seed=1)
    near = drawn[drawn.sum(axis=1) < 5.0]
    fits(near[near[:, 1] < -1.0][:, 0], stats.norm.cdf)


def test_equal_weights_are_the_default() -> None:
    assert Mixture([StandardNormal(), StandardNormal()]).weights.tolist() == [0.5, 0.5]


# Points that cover the distribution evenly


def atomic(point: Floats) -> Floats:
    return np.concatenate([np.cos(2 * np.pi * point), np.sin(2 * np.pi * point)], axis=1)


@pytest.mark.parametrize("words", [1, 2, 3])
def test_each_point_of_a_spread_is_uniform(words: int, statistical: Any) -> None:
    # The share of the shift is what makes each uniform: any position, over many shifts.
    cube = Uniform(np.zeros(words), np.ones(words))
    spreads = np.stack([cube._draw_spread(16, seed=seed) for seed in range(8000)])
    assert spreads.shape == (8000, 16, words)
    for position in (0, 1, 7, 15):
        for column in range(words):
            fits(spreads[:, position, column], stats.uniform.cdf)
        statistical.check_mean(atomic(spreads[:, position]), 0.0)
    # Coordinates are independent of each other.
    if words > 1:
        cells = (spreads[:, 3, :2] * 8).astype(int)
        counts = np.bincount(cells[:, 0] * 8 + cells[:, 1], minlength=64)
        statistical.check_law(counts, np.full(64, 1 / 64))


@pytest.mark.parametrize(
    "reference",
    [StandardNormal(1), Uniform(-1.0, 3.0), Mixture([Normal([0.0], [1.0]), Normal([4.0], [0.1])])],
)
def test_each_point_of_a_spread_follows_the_reference(reference: Reference) -> None:
    spreads = np.stack([reference._draw_spread(4, seed=seed)[:, 0] for seed in range(5000)])
    independent = reference.draw(50_000, seed=1)[:, 0]
    for position in range(4):
        assert stats.ks_2samp(spreads[:, position], independent).pvalue > ALPHA


def test_a_spread_covers_evenly() -> None:
    line = np.sort(Uniform(0.0, 1.0)._draw_spread(1000, seed=1)[:, 0])
    assert np.diff(line).max() < 1.001e-3
    # In the plane: boxes hold about what they should, far closer than independent points.
    plane = Uniform([0.0, 0.0], [1.0, 1.0])
    for seed in range(5):
        spread, independent = plane._draw_spread(4096, seed=seed), plane.draw(4096, seed=seed)
        counts = [
            np.histogram2d(*points.T, bins=16, range=[(0, 1), (0, 1)])[0]
            for points in (spread, independent)
        ]
        assert np.abs(counts[0] - 16).max() <= 8 < np.abs(counts[1] - 16).max()


def test_a_spread_never_leaves_the_open_interval() -> None:
    for seed in range(50):
        assert np.isfinite(StandardNormal(2)._draw_spread(2048, seed=seed)).all()


# Seeds


def test_seeds_decide_and_fresh_draws_differ() -> None:
    mixture = Mixture([StandardNormal(2), Normal([5.0, 5.0], [1.0, 1.0])])
    for draw in (mixture.draw, mixture._draw_spread):
        np.testing.assert_array_equal(draw(50, seed=3), draw(50, seed=3))
        assert not np.array_equal(draw(50, seed=3), draw(50, seed=4))
        assert not np.array_equal(draw(50), draw(50))


def test_fresh_uniforms_are_uniform_and_never_repeat() -> None:
    one, other = (Uniform(0.0, 1.0).draw(50_000)[:, 0] for _ in range(2))
    assert np.intersect1d(one, other).size == 0
    assert 0.0 < one.min() < one.max() < 1.0


# Foreign distributions


def check_univariate(reference: Reference, law: Any) -> None:
    assert (reference.dimensions, reference.words) == (1, 1)
    at = law.ppf(np.linspace(0.01, 0.99, 37))
    np.testing.assert_allclose(reference.log_density(at[:, None]), law.logpdf(at), rtol=1e-12)
    drawn = reference.draw(20_000, seed=1)
    assert drawn.shape == (20_000, 1)
    fits(drawn[:, 0], law.cdf)


@pytest.mark.parametrize(
    "law",
    [
        stats.norm(3.0, 2.0),
        stats.gamma(2.0),
        stats.beta(2.0, 5.0, loc=-1.0, scale=4.0),
        stats.uniform(-3.0, 6.0),
        stats.cauchy(),
        stats.expon(),
    ],
    ids=lambda law: law.dist.name,
)
def test_frozen_univariate_distributions(law: Any) -> None:
    check_univariate(as_reference(law, 1), law)


def test_frozen_multivariate_distributions(statistical: Any) -> None:
    law = stats.multivariate_normal(MEAN, COVARIANCE)
    reference = as_reference(law, 3)
    assert isinstance(reference, Normal)
    at = np.random.default_rng(2).normal(size=(30, 3))
    np.testing.assert_allclose(reference.log_density(at), law.logpdf(at), rtol=1e-12)
    statistical.check_covariance(reference.draw(20_000, seed=1), COVARIANCE.ravel())
    student = stats.multivariate_t(MEAN, COVARIANCE, df=5)
    reference = as_reference(student, 3)
    np.testing.assert_allclose(reference.log_density(at), student.logpdf(at), rtol=1e-12)
    drawn = reference.draw(20_000, seed=1)
    for column in range(3):
        scale = COVARIANCE[column, column] ** 0.5
        fits(drawn[:, column], stats.t(5, MEAN[column], scale).cdf)
    # A frozen distribution of one dimensions that is written as a multivariate one.
    assert as_reference(stats.multivariate_normal(0.0, 4.0), 1).dimensions == 1


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_gaussian_mixtures_of_all_kinds(kind: str, dimensions: int) -> None:
    fitted = sklearn_mixture(kind, dimensions)
    reference = as_reference(fitted, dimensions)
    assert isinstance(reference, Mixture)
    at = np.random.default_rng(3).normal(size=(40, dimensions)) * 3.0
    np.testing.assert_allclose(reference.log_density(at), fitted.score_samples(at), rtol=1e-9)
    drawn = reference.draw(20_000, seed=1)

    def cdf(x: Floats) -> Floats:
        parts = zip(reference.weights, reference.components, strict=True)
        return sum(
            weight * stats.norm(part.mean[0], part.covariance[0, 0] ** 0.5).cdf(x)
            for weight, part in parts
            if isinstance(part, Normal)
        )

    fits(drawn[:, 0], cdf)


@pytest.mark.parametrize("kernel", ["gaussian", "tophat"])
def test_kernel_densities(kernel: str) -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    public = np.array([[-2.0], [0.0], [0.5], [3.0]])
    fitted = neighbors.KernelDensity(bandwidth=0.5, kernel=kernel).fit(public)
    reference = as_reference(fitted, 1)
    at = np.linspace(-2.4, 3.3, 20)[:, None]
    np.testing.assert_array_equal(reference.log_density(at), fitted.score_samples(at))
    smooth = stats.norm(0, 0.5) if kernel == "gaussian" else stats.uniform(-0.5, 1.0)
    drawn = reference.draw(20_000, seed=1)
    fits(drawn[:, 0], lambda x: np.mean([smooth.cdf(x - place[0]) for place in public], axis=0))
    np.testing.assert_array_equal(drawn, reference.draw(20_000, seed=1))
    assert not np.array_equal(reference.draw(5), reference.draw(5))
    assert reference._draw_spread(6, seed=1).shape == (6, 1)


class Own:
    """An object of the user's: two exponential coordinates."""

    dimensions = 2

    def log_density(self, points: Floats) -> Floats:
        return np.where((points >= 0).all(axis=1), -points.sum(axis=1), -np.inf)

    def draw(self, count: int, seed: int | None = None) -> Floats:
        return np.random.default_rng(seed).exponential(size=(count, 2))


class OwnWithGenerator:
    def logpdf(self, points: Floats) -> Floats:
        return stats.norm.logpdf(points)

    def rvs(self, count: int, rng: np.random.Generator) -> Floats:
        return rng.normal(size=count)


def test_own_objects() -> None:
    reference = as_reference(Own(), 2)
    at = np.array([[1.0, 2.0], [-1.0, 1.0]])
    assert reference.log_density(at).tolist() == [-3.0, -np.inf]
    np.testing.assert_array_equal(reference.draw(5, seed=1), Own().draw(5, seed=1))
    assert not np.array_equal(reference.draw(5), reference.draw(5))
    simple = as_reference(OwnWithGenerator(), 1)
    np.testing.assert_array_equal(simple.draw(9, seed=1), simple.draw(9, seed=1))
    fits(simple.draw(20_000, seed=2)[:, 0], stats.norm.cdf)
    np.testing.assert_allclose(simple.log_density(at[:, :1]), stats.norm.logpdf(at[:, 0]))


def test_a_reference_is_copied() -> None:
    own = Normal([1.0, 2.0], [1.0, 1.0])
    copied = as_reference(own, 2)
    own.mean[:] = 50.0
    assert isinstance(copied, Normal)
    assert copied.mean.tolist() == [1.0, 2.0]
    assert isinstance(as_reference(None, 4), StandardNormal)
    assert as_reference(None, 4).dimensions == 4


@pytest.mark.parametrize(
    ("value", "dimensions"),
    [
        (None, 1),
        (StandardNormal(3), 3),
        (stats.gamma(2.0), 1),
        (stats.multivariate_normal(MEAN, COVARIANCE), 3),
        (stats.multivariate_t(MEAN, COVARIANCE, df=5), 3),
        (Own(), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_most_references_know_their_dimension(value: Any, dimensions: int) -> None:
    assert as_reference(value).dimensions == dimensions
    assert as_reference(value).draw(4, seed=1).shape == (4, dimensions)


def test_those_of_scikit_learn_know_their_dimension() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    assert as_reference(neighbors.KernelDensity().fit(np.zeros((2, 3)))).dimensions == 3
    assert as_reference(sklearn_mixture("full", 2)).dimensions == 2


def test_a_reference_without_a_dimension_is_asked_for_it() -> None:
    with pytest.raises(InvalidValueError, match="dimensions must be given"):
        as_reference(OwnWithGenerator())


def test_a_mixture_takes_foreign_references() -> None:
    law = stats.gamma(2.0)
    mixture = Mixture([law, Normal([-3.0], [1.0])], [0.25, 0.75])

    def cdf(x: Floats) -> Floats:
        return 0.25 * law.cdf(x) + 0.75 * stats.norm.cdf(x, -3.0)

    at = np.linspace(-4.0, 4.0, 9)
    expected = np.log(0.25 * law.pdf(at) + 0.75 * stats.norm.pdf(at, -3.0))
    np.testing.assert_allclose(mixture.log_density(at[:, None]), expected, rtol=1e-12)
    fits(mixture.draw(20_000, seed=1)[:, 0], cdf)
    plane = Mixture([stats.multivariate_normal([0.0, 1.0]), sklearn_mixture("full", 2)])
    assert plane.draw(5, seed=1).shape == (5, 2)
    assert [type(part) for part in plane.components] == [Normal, Mixture]


def test_a_sampler_takes_foreign_references() -> None:
    records = np.abs(np.random.default_rng(1).normal(size=(30, 2)))
    for reference in [Own(), stats.multivariate_t([1.0, 1.0], np.eye(2)), sklearn_mixture("full")]:
        fitted = MollifiedDensity(1.0, reference=reference, proposals=32).fit(records)
        drawn = fitted.sample(3, budget=PrivacyBudget(3.0), seed=1)
        assert drawn.shape == (3, 2)
        assert np.isfinite(fitted.score_samples(drawn)).all()


# Copies


@pytest.mark.parametrize(
    "reference",
    [
        Normal(MEAN, COVARIANCE),
        StandardNormal(3),
        Uniform([0.0] * 3, [1.0] * 3),
        Mixture([StandardNormal(3), Uniform([0.0] * 3, [1.0] * 3)], [0.2, 0.8]),
        as_reference(stats.multivariate_t(MEAN, COVARIANCE, df=5), 3),
        as_reference(stats.multivariate_normal(MEAN, COVARIANCE), 3),
    ],
    ids=lambda reference: type(reference).__name__,
)
def test_references_are_copied(reference: Reference) -> None:
    at = np.random.default_rng(4).random((20, 3))
    for other in [copy.deepcopy(reference), pickle.loads(pickle.dumps(reference))]:
        np.testing.assert_array_equal(other.log_density(at), reference.log_density(at))
        np.testing.assert_array_equal(other.draw(9, seed=1), reference.draw(9, seed=1))
    univariate = as_reference(stats.gamma(2.0), 1)
    other = pickle.loads(pickle.dumps(univariate))
    np.testing.assert_array_equal(other.draw(9, seed=1), univariate.draw(9, seed=1))


def test_reprs_say_what_they_are() -> None:
    assert repr(StandardNormal(2)) == "StandardNormal(2)"
    assert repr(Normal([0.0], [4.0])) == "Normal([0.0], [[4.0]])"
    assert repr(Uniform(0, 1)) == "Uniform([0.0], [1.0])"
    assert repr(Mixture([StandardNormal()])) == "Mixture([StandardNormal(1)], [1.0])"
    assert repr(as_reference(stats.gamma(2.0, scale=3.0))) == "as_reference(gamma(2.0, scale=3.0))"
    student = stats.multivariate_t([0.0, 0.0], np.eye(2), df=5)
    assert repr(as_reference(student)) == "as_reference(multivariate_t_frozen)"
    assert repr(as_reference(Own())) == "as_reference(Own)"


# Refusals


def test_uniforms_become_normals_by_the_inverse() -> None:
    words = np.array([[0.01], [0.5], [0.99]])
    np.testing.assert_array_equal(StandardNormal(1).transform(words), special.ndtri(words))
    np.testing.assert_allclose(
        Normal([2.0], [9.0]).transform(words), 2.0 + 3 * special.ndtri(words)
    )
