"""MBDE: the law of draws, the rounds, the learners, quality on known data."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, stats
from tests.reproduce.boosting.learners import Nearby

from turnout._seeds import derived
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers import (
    Mixture,
    Normal,
    PrivacyBudget,
    StandardNormal,
    Uniform,
)
from turnout_reproduce.boosting import MollifiedBoosting
from turnout_reproduce.boosting.sampler import boosting_weights, score_bound
from turnout_reproduce.boosting.weak_learner import LOG_TWO, BoostedScore, default_learner

Floats = npt.NDArray[np.float64]

pytest.importorskip("sklearn")

ALPHA = 1e-6
SIMULATION = PrivacyBudget(math.inf)
RECORDS = np.random.default_rng(1).normal(1.0, 0.1, size=(100, 1))


# The law on a line and in the plane

GRID = np.linspace(-7.0, 7.0, 28_001)


def agreement(drawn: Floats, density: Floats) -> float:
    cdf = integrate.cumulative_simpson(density, x=GRID, initial=0.0)
    assert cdf[-1] == pytest.approx(1.0, abs=2e-3)
    return float(stats.kstest(drawn, lambda x: np.interp(x, GRID, cdf / cdf[-1])).pvalue)


@pytest.mark.parametrize("trials", [1, 2, 3, None])
def test_draws_follow_the_stated_law(trials: int | None) -> None:
    from sklearn.linear_model import LogisticRegression

    sampler = MollifiedBoosting(
        4.0, weak_learner=LogisticRegression(), n_rounds=6, trials=trials, random_state=1
    ).fit(RECORDS)
    drawn = sampler.sample(40_000, budget=SIMULATION, seed=5)[:, 0]
    stated = np.exp(sampler.score_samples(GRID[:, None]))
    assert agreement(drawn, stated) > ALPHA
    # A second computation: the tilted density and the weight of the fall-back by quadrature.
    base, score = stats.norm.pdf(GRID), sampler._score_(GRID[:, None])
    kept = integrate.simpson(base * np.exp(score - sampler._score_.most), x=GRID)
    fallback = (1.0 - kept) ** sampler.trials_
    second = base * ((1.0 - fallback) * np.exp(score - sampler._score_.most) / kept + fallback)
    # Jumps of the clipped score cost the grid some digits.
    np.testing.assert_allclose(stated, second, rtol=2e-3)
    # Expected trials are at most e^(epsilon / 2), and the fall-back no likelier than stated.
    assert 1.0 / kept <= math.exp(2.0)
    assert fallback <= sampler.fallback_weight_
    if trials is None:
        assert sampler.fallback_weight_ <= 1e-6
    else:
        # The draws tell the fall-back from none, and from that of one trial more.
        assert sampler.trials_ == trials
        for other in (0.0, (1.0 - kept) ** (trials + 1)):
            wrong = base * ((1.0 - other) * np.exp(score - sampler._score_.most) / kept + other)
            if np.abs(np.cumsum(wrong - second)).max() * (GRID[1] - GRID[0]) > 0.05:
                assert agreement(drawn, wrong) < ALPHA


def test_draws_in_the_plane_follow_the_stated_law(statistical: Any) -> None:
    records = np.random.default_rng(1).normal([1.0, -1.0], 0.3, size=(200, 2))
    sampler = MollifiedBoosting(
        3.0, weak_learner=Nearby(0.5), n_rounds=4, trials=3, random_state=1
    ).fit(records)
    drawn = sampler.sample(60_000, budget=SIMULATION, seed=5)
    edges = np.array([-6.0, -1.2, -0.8, 0.0, 0.8, 1.2, 6.0])
    counts = np.histogram2d(*drawn.T, bins=[edges, edges])[0]
    axis = np.linspace(-6.0, 6.0, 1201)
    middles = (axis[:-1] + axis[1:]) / 2.0
    plane = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(sampler.score_samples(plane)) * (axis[1] - axis[0]) ** 2
    masses = np.histogram2d(*plane.T, bins=[edges, edges], weights=density)[0]
    assert masses.sum() == pytest.approx(1.0, abs=2e-3)
    statistical.check_law(counts.ravel(), masses.ravel() / masses.sum())


def test_the_normaliser_is_kept_and_is_right() -> None:
    sampler = MollifiedBoosting(2.0, weak_learner=Nearby(), n_rounds=4, random_state=1)
    sampler.fit(RECORDS)
    score = sampler._score_(GRID[:, None])
    truth = math.log(integrate.simpson(stats.norm.pdf(GRID) * np.exp(score), x=GRID))
    kept = sampler._log_normalizer()
    assert kept is sampler._log_normalizer()
    assert kept.low - 1e-4 <= truth <= kept.high + 1e-4
    assert kept.error < 2e-3
    other = sampler._log_normalizer(points=1000, confidence=0.9, seed=3)
    assert other.points == 1000
    assert other.low - 1e-4 <= truth <= other.high + 1e-4
    assert sampler._log_normalizer() is kept
    # A new fit has a normaliser of its own.
    assert sampler.fit(-RECORDS)._log_normalizer() is not kept


# Rounds


def test_rounds_are_recorded() -> None:
    sampler = MollifiedBoosting(3.0, weak_learner=Nearby(0.4), n_rounds=5, random_state=1)
    sampler.fit(RECORDS)
    assert len(sampler.rounds_) == 5
    weights = boosting_weights(3.0, 5)
    learners = sampler._score_.learners[:5]
    base = stats.norm.pdf(GRID)
    score = np.zeros(len(GRID))
    for number, (found, learner) in enumerate(zip(sampler.rounds_, learners, strict=True)):
        assert found.weight == weights[number]
        assert found.certificate == 2.0 * score_bound(3.0, weights[: number + 1])
        # Edges and the fall of KL(P, Q) against quadrature under the density before the round.
        own = learner(RECORDS).mean()
        assert found.edge_records == pytest.approx(own / LOG_TWO)
        density = base * np.exp(score)
        density /= integrate.simpson(density, x=GRID)
        scores = learner(GRID[:, None])
        edge = -integrate.simpson(density * scores, x=GRID) / LOG_TWO
        assert found.edge_density == pytest.approx(edge, abs=0.12)
        tilted = integrate.simpson(density * np.exp(found.weight * scores), x=GRID)
        drop = found.weight * own - math.log(tilted)
        assert found.divergence_drop == pytest.approx(drop, abs=0.1)
        score += found.weight * scores
    assert sampler.certificate_ == sampler.rounds_[-1].certificate
    certificates = [found.certificate for found in sampler.rounds_]
    assert certificates == sorted(certificates)


class Backwards(Nearby):
    """Worse than chance."""

    def decision_function(self, X: Floats) -> Floats:
        return -super().decision_function(X)


def test_boosting_stops_when_a_learner_is_no_better_than_chance(statistical: Any) -> None:
    sampler = MollifiedBoosting(2.0, weak_learner=Backwards(), n_rounds=9, random_state=1)
    sampler.fit(RECORDS)
    assert sampler.rounds_ == ()
    assert sampler.certificate_ == 0.0
    at = np.linspace(-3, 3, 7)[:, None]
    np.testing.assert_allclose(sampler.score_samples(at), stats.norm.logpdf(at[:, 0]), atol=1e-9)
    drawn = sampler.sample(5000, budget=SIMULATION, seed=1)[:, 0]
    assert stats.kstest(drawn, stats.norm.cdf).pvalue > ALPHA
    # The number of trials is the one of all rounds: it says nothing of the data.
    kept = MollifiedBoosting(2.0, weak_learner=Nearby(), n_rounds=9, random_state=1).fit(RECORDS)
    assert kept.trials_ == sampler.trials_
    assert kept.fallback_weight_ == sampler.fallback_weight_ <= 1e-6
    # Nor does the work of an evaluation.
    assert len(kept._score_.learners) == len(sampler._score_.learners) == 9


def test_the_density_that_a_round_trains_against_is_the_current_one() -> None:
    sampler = MollifiedBoosting(5.0, weak_learner=Nearby(), n_rounds=4, random_state=1)
    sampler.fit(RECORDS)
    drawn = sampler._current(sampler._score_, 20_000, 7)[:, 0]
    density = stats.norm.pdf(GRID) * np.exp(sampler._score_(GRID[:, None]))
    density /= integrate.simpson(density, x=GRID)
    cdf = integrate.cumulative_simpson(density, x=GRID, initial=0.0)
    # About that density: the distance is that of a few thousand independent draws at most.
    distance = stats.kstest(drawn, lambda x: np.interp(x, GRID, cdf)).statistic
    assert distance < 0.02
    assert stats.kstest(drawn, stats.norm.cdf).statistic > 0.1


@pytest.mark.parametrize("epsilon", [10.0, 42.0])
def test_training_ends_however_far_the_records_are(epsilon: float) -> None:
    records = np.random.default_rng(1).normal(4.0, 0.1, size=(500, 1))
    sampler = MollifiedBoosting(
        epsilon, weak_learner=Nearby(), n_rounds=10, trials=10, random_state=1
    ).fit(records)
    assert len(sampler.rounds_) > 1
    assert np.isfinite(sampler.score_samples(records)).all()


# Quality


def seed_mixture(count: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    parts = rng.normal([0.3, 0.5, 0.7], [0.01, 0.1, 0.1], size=(count, 3))
    return parts[np.arange(count), rng.integers(0, 3, count)][:, None]


@pytest.mark.parametrize(
    ("epsilon", "n_rounds", "optimal"), [(0.1, 1, 1.022), (1.0, 2, 0.693), (2.0, 4, 0.374)]
)
def test_close_to_the_optimal_learner_on_the_seed_mixture(
    epsilon: float, n_rounds: int, optimal: float
) -> None:
    at = np.linspace(-1.0, 2.0, 15_001)
    parts = [(0.3, 0.01), (0.5, 0.1), (0.7, 0.1)]
    truth = sum(stats.norm(mean, deviation).pdf(at) for mean, deviation in parts) / 3.0
    # The optimal learner knows the densities: its log-odds are log P - log Q, clipped.
    base = stats.norm.pdf(GRID_FINE)
    density = sum(stats.norm(mean, deviation).pdf(GRID_FINE) for mean, deviation in parts) / 3.0
    score = np.zeros(len(GRID_FINE))
    for weight in boosting_weights(epsilon, 20):
        current = base * np.exp(score)
        current /= integrate.simpson(current, x=GRID_FINE)
        odds = np.log(density + 1e-300) - np.log(current)
        score += weight * np.clip(odds, -LOG_TWO, LOG_TWO)
    current = base * np.exp(score)
    best = -integrate.simpson(
        density * np.log(current / integrate.simpson(current, x=GRID_FINE)), x=GRID_FINE
    )
    assert best == pytest.approx(optimal, abs=2e-3)
    sampler = MollifiedBoosting(epsilon, n_rounds=n_rounds, random_state=1)
    sampler.fit(seed_mixture(10_000, 1))
    found = -integrate.simpson(truth * sampler.score_samples(at[:, None]), x=at)
    assert found <= best + 0.05


GRID_FINE = np.linspace(-8.0, 8.0, 160_001)


# Learners of all kinds


def learners() -> list[Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    polynomial = PolynomialFeatures(2)
    return [
        DecisionTreeClassifier(max_depth=4),
        GaussianNB(),
        HistGradientBoostingClassifier(max_iter=5, max_depth=3),
        LinearSVC(),
        MLPClassifier((8,), activation="relu", max_iter=30),
        make_pipeline(StandardScaler(copy=False), polynomial, LogisticRegression()),
        Nearby(),
    ]


def test_all_classifiers_are_weak_learners() -> None:
    far = stats.norm.logpdf(RECORDS[:, 0]).mean()
    for learner in learners():
        sampler = MollifiedBoosting(2.0, weak_learner=learner, n_rounds=3, random_state=2)
        sampler.fit(RECORDS)
        assert sampler.score(RECORDS) > far + 0.1
        assert np.isfinite(sampler.sample(1)).all()
        # A copy was fitted.
        assert not hasattr(learner, "classes_")
        assert not hasattr(learner, "low")


def test_references_of_all_kinds() -> None:
    for reference in [
        Normal([0.0], [4.0]),
        Uniform(-1.0, 2.0),
        Mixture([Normal([-1.0], [1.0]), Normal([1.0], [1.0])]),
        stats.norm(0.2, 3.0),
        stats.cauchy(),
    ]:
        sampler = MollifiedBoosting(
            2.0, reference=reference, weak_learner=Nearby(), n_rounds=3, random_state=1
        ).fit(RECORDS)
        gain = sampler.score_samples(RECORDS) - sampler._reference_.log_density(RECORDS)
        assert 0.2 < gain.mean() <= 1.0
        assert sampler.sample(1, seed=1).shape == (1, 1)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_records_identical_ones_and_constant_columns(count: int) -> None:
    rng = np.random.default_rng(count)
    for records in [
        rng.normal(size=(count, 2)),
        np.zeros((count, 2)),
        np.column_stack([rng.normal(size=count), np.full(count, 3.0)]),
        np.full((count, 1), -3.0),
    ]:
        sampler = MollifiedBoosting(1.0, weak_learner=Nearby(), n_rounds=3, random_state=1)
        sampler.fit(records)
        assert np.isfinite(sampler.sample(1, seed=1)).all()
        assert np.isfinite(sampler.score_samples(records)).all()


def test_the_default_learner_is_the_papers_network() -> None:
    network = default_learner(20_000, 1)
    assert network.hidden_layer_sizes == (25, 25, 25)
    assert (network.activation, network.solver) == ("tanh", "sgd")
    assert (network.learning_rate_init, network.momentum) == (0.01, 0.9)
    assert network.nesterovs_momentum


def test_a_fast_network_gives_the_log_odds_of_the_slow_one() -> None:
    sampler = MollifiedBoosting(1.0, n_rounds=1, random_state=3).fit(RECORDS)
    fast = sampler._score_
    positives = RECORDS[np.resize(np.arange(100), 500)]
    assert len(fast.learners) == 1
    # The same training by hand: the same numbers up to rounding.
    learner = MollifiedBoosting(1.0, n_rounds=1, random_state=3)
    learner._reference_ = StandardNormal(1)
    negatives = learner._current(BoostedScore([], [], 0.0), 500, derived(3, 6, 0))
    network = default_learner(1000, derived(3, 7, 0) % 2**32)  # type: ignore[operator]
    both = np.concatenate([positives, negatives])
    center, scale = both.mean(axis=0), both.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network.fit((both - center) / scale, np.repeat([1, 0], 500))
    at = np.linspace(-3.0, 3.0, 301)[:, None]
    odds = network.predict_proba((at - center) / scale)
    expected = np.clip(np.log(odds[:, 1] / odds[:, 0]), -LOG_TWO, LOG_TWO)
    np.testing.assert_allclose(fast(at), fast.weights[0] * expected, atol=1e-9)


# Parameters and copies


def test_seeds_decide_and_fresh_draws_differ() -> None:
    from sklearn.tree import DecisionTreeClassifier

    def fitted() -> MollifiedBoosting:
        learner = DecisionTreeClassifier(max_features=1, max_depth=3)
        return MollifiedBoosting(1.0, weak_learner=learner, n_rounds=3, random_state=2).fit(RECORDS)

    one, other = fitted(), fitted()
    np.testing.assert_array_equal(one.score_samples(RECORDS), other.score_samples(RECORDS))
    np.testing.assert_array_equal(
        one.sample(5, budget=SIMULATION, seed=4), other.sample(5, budget=SIMULATION, seed=4)
    )
    fresh = [one.sample(5, budget=SIMULATION) for _ in range(2)]
    assert not np.isin(fresh[0], fresh[1]).any()


@pytest.mark.parametrize("learner", [None, Nearby()], ids=["network", "own"])
def test_fitted_samplers_are_pickled_and_copied(learner: Any) -> None:
    sampler = MollifiedBoosting(1.0, weak_learner=learner, n_rounds=1, random_state=1)
    sampler.fit(RECORDS)
    for other in [pickle.loads(pickle.dumps(sampler)), copy.deepcopy(sampler)]:
        np.testing.assert_array_equal(other.score_samples(RECORDS), sampler.score_samples(RECORDS))
        np.testing.assert_array_equal(
            other.sample(2, budget=SIMULATION, seed=1), sampler.sample(2, budget=SIMULATION, seed=1)
        )


def test_parameters_follow_the_conventions() -> None:
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    sampler = MollifiedBoosting(2.0, weak_learner=LogisticRegression(), n_rounds=2)
    assert sampler.set_params(weak_learner__C=0.5).get_params()["weak_learner__C"] == 0.5
    other = clone(sampler.fit(RECORDS))
    assert not hasattr(other, "rounds_")
    assert other.weak_learner is not sampler.weak_learner
    assert repr(MollifiedBoosting()) == "MollifiedBoosting(epsilon=1.0)"
    assert repr(MollifiedBoosting(2.0, n_rounds=3)) == "MollifiedBoosting(epsilon=2.0, n_rounds=3)"


class Shapeless(Nearby):
    def decision_function(self, X: Floats) -> Floats:
        return np.zeros((len(X), 2))


class OneColumn:
    def fit(self, X: Floats, y: Any) -> OneColumn:
        return self

    def predict_proba(self, X: Floats) -> Floats:
        return np.full((len(X), 1), 0.5)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Nearby, "weak_learner must be a classifier"),
        (3.0, "weak_learner must be a classifier"),
        (stats.norm(), "weak_learner must be a classifier"),
        (SimpleNamespace(fit=1, predict_proba=2), "weak_learner must be a classifier"),
        (Shapeless(), "weak_learner must give one decision value for each point"),
        (OneColumn(), "weak_learner must give two probabilities for each point"),
    ],
)
def test_what_is_no_weak_learner(learner: Any, message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        MollifiedBoosting(1.0, weak_learner=learner).fit(RECORDS)
