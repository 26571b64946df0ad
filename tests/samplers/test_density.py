"""Draws from projected estimates: in the band whatever they say, close where they are right."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, stats

from turnout import _core
from turnout._seeds import derived
from turnout.errors import InvalidValueError
from turnout.samplers import (
    Mixture,
    MollifiedDensity,
    Normal,
    PrivacyBudget,
    Reference,
    StandardNormal,
    Uniform,
    mollifier,
)
from turnout_reproduce.boosting import MollifiedBoosting
from turnout_reproduce.boosting.weak_learner import fitted_score

Floats = npt.NDArray[np.float64]

pytest.importorskip("sklearn")
linear_model = pytest.importorskip("sklearn.linear_model")

ALPHA = 1e-6
UNIT = 2**32
EPSILONS = [0.01, 0.1, 1.0, 2.0, 5.0, 42.0]
SIMULATION = PrivacyBudget(math.inf)


def seed_mixture(count: int, seed: int) -> Floats:
    """1/3 (N(.3, .01) + N(.5, .1) + N(.7, .1)), the numbers after the means being deviations."""
    rng = np.random.default_rng(seed)
    parts = rng.normal([0.3, 0.5, 0.7], [0.01, 0.1, 0.1], size=(count, 3))
    return parts[np.arange(count), rng.integers(0, 3, count)][:, None]


FINE = np.linspace(-1.0, 2.0, 15_001)
MIXTURE = sum(stats.norm(m, s).pdf(FINE) for m, s in [(0.3, 0.01), (0.5, 0.1), (0.7, 0.1)]) / 3.0


def floor(epsilon: float) -> float:
    """The least NLL of any member of the mollifier of N(0, 1), by quadrature and root finding."""
    base = stats.norm.pdf(FINE)
    ratio = np.log(MIXTURE + 1e-320) - stats.norm.logpdf(FINE)
    rest = 1.0 - integrate.simpson(base, x=FINE)
    half = epsilon / 2.0

    def excess(log_c: float) -> float:
        inside = integrate.simpson(base * np.exp(np.clip(ratio - log_c, -half, half)), x=FINE)
        return inside + rest * math.exp(-half) - 1.0

    low, high = -800.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    log_density = stats.norm.logpdf(FINE) + np.clip(ratio - low, -half, half)
    return -float(integrate.simpson(MIXTURE * log_density, x=FINE))


def loss(sampler: Any) -> float:
    return -float(integrate.simpson(MIXTURE * sampler.score_samples(FINE[:, None]), x=FINE))


@pytest.fixture(scope="module")
def records() -> Floats:
    return seed_mixture(10_000, 1)


# Quality


@pytest.mark.parametrize(
    ("epsilon", "published"), [(0.1, 1.011), (1.0, 0.561), (2.0, 0.062), (5.0, -0.692)]
)
def test_close_to_the_floor_on_the_seed_mixture(
    epsilon: float, published: float, records: Floats
) -> None:
    lowest = floor(epsilon)
    assert lowest == pytest.approx(published, abs=1e-3)
    sampler = MollifiedDensity(epsilon, random_state=1).fit(records)
    assert lowest - 1e-3 <= loss(sampler) <= lowest + 0.03
    # What score gives on fresh records is the same number with its sampling error.
    fresh = seed_mixture(20_000, 2)
    scores = sampler.score_samples(fresh)
    assert sampler.score(fresh) == scores.mean()
    assert abs(scores.mean() + loss(sampler)) < 5.0 * scores.std() / math.sqrt(len(scores))


def test_any_density_estimate_can_be_projected(records: Floats) -> None:
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import KernelDensity
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Nothing beats the floor, and each beats the reference by far.
    lowest, highest = floor(2.0), -float(integrate.simpson(MIXTURE * stats.norm.logpdf(FINE), FINE))
    few = records[:2000]
    for estimator in [
        GaussianMixture(3, random_state=0),
        KernelDensity(bandwidth=0.02),
        make_pipeline(StandardScaler(), KernelDensity(bandwidth=0.1)),
        MollifiedBoosting(6.0, weak_learner=Stump(), n_rounds=3),
    ]:
        found = loss(MollifiedDensity(2.0, estimator=estimator).fit(few))
        assert lowest - 1e-3 <= found <= lowest + 0.45 < highest - 0.4


class Stump:
    """The simplest weak learner: is a point near the mean of the records?"""

    def fit(self, X: Floats, y: Any) -> Stump:
        self.low, self.high = np.quantile(X[y == 1], [0.05, 0.95], axis=0)
        return self

    def decision_function(self, X: Floats) -> Floats:
        return ((self.low <= X) & (self.high >= X)).all(axis=1) * 4.0 - 2.0


# The law of draws


class Known:
    """An estimate that needs no fit."""

    def __init__(self, law: Any) -> None:
        self.law = law

    def fit(self, X: Any, y: None = None) -> Known:
        return self

    def score_samples(self, X: Floats) -> Floats:
        return self.law.logpdf(X if self.law_dimension() > 1 else X[:, 0])

    def law_dimension(self) -> int:
        return int(getattr(self.law, "dim", 1))


def test_draws_follow_the_stated_law() -> None:
    law = stats.norm(1.0, 0.4)
    sampler = MollifiedDensity(3.0, estimator=Known(law)).fit([[0.0]])
    drawn = sampler.sample(10_000, budget=SIMULATION, seed=1)
    grid = np.linspace(-8.0, 8.0, 16_001)

    def agreement(stated: MollifiedDensity) -> float:
        density = np.exp(stated.score_samples(grid[:, None]))
        cdf = integrate.cumulative_simpson(density, x=grid, initial=0.0)
        assert cdf[-1] == pytest.approx(1.0, abs=1e-3)
        return float(stats.kstest(drawn[:, 0], lambda x: np.interp(x, grid, cdf)).pvalue)

    assert agreement(sampler) > ALPHA
    # The sample tells a little more or less epsilon.
    for epsilon in (2.4, 4.0):
        assert agreement(MollifiedDensity(epsilon, estimator=Known(law)).fit([[0.0]])) < ALPHA


def test_draws_in_the_plane_follow_the_stated_law(statistical: Any) -> None:
    law = stats.multivariate_normal([0.5, -0.5], [[0.3, 0.1], [0.1, 0.2]])
    sampler = MollifiedDensity(2.0, estimator=Known(law)).fit([[0.0, 0.0]])
    drawn = sampler.sample(10_000, budget=SIMULATION, seed=1)
    edges = np.array([-6.0, -1.0, -0.5, 0.0, 0.4, 0.8, 1.3, 6.0])
    counts = np.histogram2d(*drawn.T, bins=[edges, edges])[0]
    axis = np.linspace(-6.0, 6.0, 961)
    middles = (axis[:-1] + axis[1:]) / 2.0
    plane = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(sampler.score_samples(plane)) * (axis[1] - axis[0]) ** 2
    masses = np.histogram2d(*plane.T, bins=[edges, edges], weights=density)[0]
    assert masses.sum() == pytest.approx(1.0, abs=2e-3)
    statistical.check_law(counts.ravel(), masses.ravel() / masses.sum())


def test_few_proposals_stay_in_the_band() -> None:
    # With two proposals the law is far from the projection and in the mollifier all the same.
    law = stats.norm(3.0, 0.1)
    sampler = MollifiedDensity(1.0, estimator=Known(law), proposals=2).fit([[0.0]])
    drawn = sampler.sample(10_000, budget=SIMULATION, seed=1)[:, 0]
    edges = stats.norm.ppf(np.linspace(0.0, 1.0, 11))
    shares = np.histogram(drawn, bins=edges)[0] / len(drawn) * 10.0
    error = 5.0 * math.sqrt(10.0 / len(drawn))
    assert np.abs(np.log(shares)).max() <= 0.5 + error
    # The lattice of two is a point and the one half a turn away: the upper half is favoured.
    assert shares[5:].mean() > 1.2
    assert shares[:5].mean() < 0.8


# The guarantee, whatever the estimate says


class Hostile:
    """An estimate of which nothing can be expected."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def fit(self, X: Floats, y: None = None) -> Hostile:
        self.rng = np.random.default_rng(len(X))
        self.at = X[0]
        return self

    def score_samples(self, X: Floats) -> Floats:
        count = len(X)
        given = {
            "nan": np.full(count, math.nan),
            "infinite": np.full(count, math.inf),
            "zero": np.full(count, -math.inf),
            "huge": np.full(count, 1e308),
            "signs": np.where(np.arange(count) % 2, 1e308, -1e308),
            "spike": np.where(np.abs(X - self.at).sum(axis=1) < 1e-2, math.inf, -math.inf),
            "steep": 1e200 * X[:, 0],
            "random": self.rng.choice([math.nan, math.inf, -math.inf, 0.0, 800.0, -800.0], count),
            "integers": np.arange(count),
            "column": X[:, :1] * 3.0,
            "writes": X[:, 0] * 0.0,
        }[self.kind]
        if self.kind == "writes":
            X[:] = self.at
        return given


KINDS = ["nan", "infinite", "zero", "huge", "signs", "spike", "steep", "random", "integers"]
KINDS += ["column", "writes"]


class Noting:
    """The band of the core, with notes of what it is asked."""

    noted: list[tuple[float, float | None, Floats]]

    def __init__(self, epsilon: float, base: float | None = None) -> None:
        self.asked = (epsilon, base)
        self.band = _core.SamplerBand(epsilon, base)
        self.limits, self.weights = self.band.limits, self.band.weights

    def resample(self, ratios: Floats, seed: int | None = None) -> Any:
        self.noted.extend((*self.asked, row) for row in ratios)
        return self.band.resample(ratios, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_in_the_band_of_the_epsilon(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[tuple[float, float | None, Floats]] = []
    monkeypatch.setattr(Noting, "noted", noted, raising=False)
    monkeypatch.setattr(mollifier, "_core", SimpleNamespace(SamplerBand=Noting))
    for epsilon in EPSILONS:
        noted.clear()
        sampler = MollifiedDensity(epsilon, estimator=Hostile(kind), proposals=33).fit([[0.2]])
        assert sampler.certificate_ == epsilon / 2.0
        drawn = sampler.sample(4, budget=SIMULATION, seed=1)
        assert len(noted) == 4
        # Proposals come from the reference alone: the same ones for every estimate.
        points = [
            StandardNormal(1)._draw_spread(33, seed=derived(1, 1, row))[:, 0] for row in range(4)
        ]
        assert all(value in row for value, row in zip(drawn[:, 0], points, strict=True))
        for asked, base, ratios in noted:
            assert (asked, base) == (epsilon, None)
            assert not np.isnan(ratios).any()
            weights, _ = _core.SamplerBand(epsilon).weights(ratios, np.full(33, UNIT, np.uint64))
            shares = [Fraction(int(weight), 33 * UNIT) for weight in weights]
            assert sum(shares) == 1
            # e^(epsilon / 2) from below: the bound of a share relative to 1/33.
            assert max(shares) * 33 <= Fraction(math.exp(epsilon / 2.0)) * (1 + Fraction(1, 10**9))
            assert 1 / (min(shares) * 33) <= Fraction(math.exp(epsilon / 2.0)) * (
                1 + Fraction(1, 10**9)
            )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.1, 5.0, 42.0])
def test_stated_densities_are_in_the_band(kind: str, epsilon: float) -> None:
    sampler = MollifiedDensity(epsilon, estimator=Hostile(kind), proposals=16).fit([[0.2, 0.1]])
    at = np.random.default_rng(1).normal(size=(300, 2)) * 2.0
    ratio = sampler.score_samples(at) - StandardNormal(2).log_density(at)
    assert (np.abs(ratio) <= epsilon / 2.0 + 1e-9).all()
    assert sampler._projection_._log_limits[1] <= epsilon / 2.0 + 1e-12
    assert sampler._projection_._log_limits[0] >= -epsilon / 2.0 - 1e-12


class Atoms(Reference):
    """Four points on a line, of equal mass: a spread of 4 m proposals has m of each."""

    dimensions = words = 1

    def log_density(self, points: Floats) -> Floats:
        return np.full(len(points), -math.log(4.0))

    def transform(self, uniforms: Floats) -> Floats:
        return np.floor(4.0 * uniforms)


class Empirical:
    """Nearly all of the density on the most frequent record."""

    def fit(self, X: Floats, y: None = None) -> Empirical:
        counts = np.bincount(X[:, 0].astype(int), minlength=4)
        self.log_density = np.log(counts / counts.sum() + 1e-9)
        return self

    def score_samples(self, X: Floats) -> Floats:
        return self.log_density[X[:, 0].astype(int)]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_laws_of_a_draw_for_all_pairs_of_data_sets(epsilon: float, statistical: Any) -> None:
    # The exact law: every point is proposed equally often, so weights are masses, as rationals.
    sets = [[[0.0]] * 9, [[3.0]] * 9, [[0.0], [1.0]], [[1.0], [2.0], [2.0]], [[2.0]]]
    laws = []
    for records in sets:
        sampler = MollifiedDensity(epsilon, reference=Atoms(), estimator=Empirical(), proposals=8)
        sampler.fit(records)
        ratios = np.repeat(sampler._estimator_.log_density + math.log(4.0), 2)
        weights = _core.SamplerBand(epsilon).weights(ratios, np.full(8, UNIT, np.uint64))[0]
        law = [Fraction(int(a) + int(b), 8 * UNIT) for a, b in weights.reshape(4, 2)]
        assert sum(law) == 1
        laws.append(law)
        # This is the law: draws agree with it.
        if epsilon > 0.5:
            drawn = sampler.sample(3000, budget=SIMULATION, seed=1)
            statistical.check_law(
                np.bincount(drawn[:, 0].astype(int), minlength=4), [float(x) for x in law]
            )
    largest = max(
        (one / other, k)
        for first, second in itertools.permutations(laws, 2)
        for k, (one, other) in enumerate(zip(first, second, strict=True))
    )[0]
    assert math.log(largest) <= epsilon
    assert math.log(largest) > 0.8 * epsilon


# Estimates and records of all kinds


@pytest.mark.parametrize("count", [1, 2, 19, 20, 40])
def test_few_records_and_identical_ones(count: int) -> None:
    rng = np.random.default_rng(count)
    for records, least in [
        (rng.normal(size=(count, 2)), -0.5),
        (np.zeros((count, 2)), 0.4),
        (np.column_stack([rng.normal(size=count), np.full(count, 3.0)]), 0.4),
        (np.full((count, 1), -3.0), 0.4),
        (np.arange(count)[:, None], 0.0),
    ]:
        sampler = MollifiedDensity(1.0, random_state=1).fit(records)
        assert np.isfinite(sampler.sample(1, seed=1)).all()
        # More likely at the records than the reference makes it, if they are unlike it.
        reference = StandardNormal(records.shape[1]).log_density(np.asarray(records, np.float64))
        gain = sampler.score_samples(records) - reference
        assert np.isfinite(gain).all()
        assert gain.mean() > least


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e12, 1e99])
@pytest.mark.parametrize("count", [5, 40])
def test_default_estimates_of_degenerate_records(scale: float, count: int) -> None:
    # Columns in proportion, far from the reference's scale; two values only.
    column = np.random.default_rng(count).normal(size=(count, 1)) * scale
    for records in [
        np.column_stack([column, column]),
        np.column_stack([column, 2.0 * column, np.full(count, scale)]),
        np.where(np.column_stack([column, column]) > 0.0, scale, -scale),
    ]:
        sampler = MollifiedDensity(1.0, random_state=1).fit(records)
        assert np.isfinite(sampler.sample(1, seed=1)).all()
        assert not np.isnan(sampler.score_samples(records)).any()


def test_records_where_the_reference_has_no_density() -> None:
    class Elsewhere:
        """An estimate with nearly all of its mass where the reference has none."""

        def fit(self, X: Any) -> None:
            pass

        def score_samples(self, X: Any) -> Any:
            return stats.norm(6.0, 1.0).logpdf(X[:, 0])

    sampler = MollifiedDensity(1.0, reference=Uniform(0.0, 1.0), estimator=Elsewhere())
    with pytest.raises(InvalidValueError, match="3 of 3 records are outside"):
        sampler.fit([[5.0], [6.0], [7.0]])
    sampler.fit([[0.5]])
    drawn = sampler.sample(20, budget=SIMULATION, seed=1)
    assert ((drawn >= 0.0) & (drawn <= 1.0)).all()
    assert np.isneginf(sampler.score_samples([[5.0]]))[0]
    assert np.isfinite(sampler.score_samples([[0.5]]))[0]


def test_references_of_all_kinds() -> None:
    records = np.random.default_rng(1).normal(0.5, 0.05, size=(60, 1))
    for reference in [
        None,
        Normal([0.0], [4.0]),
        Uniform(-1.0, 2.0),
        Mixture([Normal([-1.0], [1.0]), Normal([1.0], [1.0])]),
        stats.norm(0.2, 3.0),
        stats.cauchy(),
    ]:
        sampler = MollifiedDensity(2.0, reference=reference, random_state=1).fit(records)
        assert sampler.sample(1, seed=1).shape == (1, 1)
        normalizer = sampler._log_normalizer(seed=1)
        assert normalizer.low - 1e-3 <= 0.0 <= normalizer.high + 1e-3
        # The estimate itself is a density, whatever its unit of length.
        estimate = np.exp(sampler._estimator_.score_samples(FINE[:, None]))
        assert integrate.simpson(estimate, x=FINE) == pytest.approx(1.0, abs=1e-2)
        # The peak reaches the band's upper limit: as close to the records as is allowed.
        gain = sampler.score_samples([[0.5]]) - sampler._reference_.log_density(np.array([[0.5]]))
        assert gain[0] == pytest.approx(1.0, abs=1e-6)


def test_neither_records_nor_the_estimator_are_changed() -> None:
    from sklearn.neighbors import KernelDensity
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    records = np.random.default_rng(1).normal(5.0, 0.1, size=(50, 1))
    kept = records.copy()
    estimator = make_pipeline(StandardScaler(copy=False), KernelDensity())
    box = Uniform(0.0, 10.0)
    sampler = MollifiedDensity(1.0, reference=box, estimator=estimator).fit(records)
    np.testing.assert_array_equal(records, kept)
    assert not hasattr(estimator[0], "mean_")
    drawn = sampler.sample(50, budget=SIMULATION, seed=1)
    assert ((drawn >= 0.0) & (drawn <= 10.0)).all()


class FitsInPlace(Known):
    """An estimator of somebody who knows no conventions: fit gives nothing back."""

    def fit(self, X: Any) -> None:  # type: ignore[override]
        self.law = stats.norm(X.mean(), 1.0)


def test_what_was_fitted_is_not_shown() -> None:
    records = np.array([[123456.0], [123457.0]])
    reference = Normal([123456.0], 1.0)
    estimate = MollifiedDensity(reference=reference, random_state=1).fit(records)._estimator_
    score = fitted_score(linear_model.LogisticRegression(), records, records + 1.0)
    for fitted in (estimate, score):
        assert "12345" not in repr(fitted)


def test_an_estimator_whose_fit_returns_nothing() -> None:
    sampler = MollifiedDensity(1.0, estimator=FitsInPlace(None)).fit([[2.0], [2.0]])
    assert sampler.score_samples([[2.0]])[0] == pytest.approx(stats.norm.logpdf(2.0) + 0.5)


# Parameters and copies


def test_seeds_decide_and_fresh_draws_differ() -> None:
    records = seed_mixture(50, 3)
    sampler = MollifiedDensity(1.0, random_state=1).fit(records)
    one = sampler.sample(5, budget=SIMULATION, seed=4)
    np.testing.assert_array_equal(one, sampler.sample(5, budget=SIMULATION, seed=4))
    again = MollifiedDensity(1.0, random_state=1).fit(records)
    np.testing.assert_array_equal(one, again.sample(5, budget=SIMULATION, seed=4))
    np.testing.assert_array_equal(
        again.score_samples(records[:5]), sampler.score_samples(records[:5])
    )
    # random_state has no part in draws without a seed.
    fresh = [sampler.sample(5, budget=SIMULATION) for _ in range(2)]
    assert not np.isin(fresh[0], fresh[1]).any()
