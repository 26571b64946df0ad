"""The certificate of MBDE holds for every learner, and for the exact law of a draw."""

from __future__ import annotations

import decimal
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from tests.reproduce.boosting.learners import Nearby

from turnout import _core
from turnout.samplers import PrivacyBudget, Reference
from turnout_reproduce.boosting import MollifiedBoosting
from turnout_reproduce.boosting import rejection as of_boosting
from turnout_reproduce.boosting.sampler import boosting_weights, score_bound
from turnout_reproduce.boosting.weak_learner import LOG_TWO, BoostedScore

Floats = npt.NDArray[np.float64]

pytest.importorskip("sklearn")

EPSILONS = [1e-300, 1e-6, 0.01, 0.1, 1.0, 2.0, 5.0, 20.0, 42.0]
SIMULATION = PrivacyBudget(math.inf)


class Hostile:
    """A classifier of which nothing can be expected."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def fit(self, X: Floats, y: Any) -> Hostile:
        self.rng = np.random.default_rng(len(X))
        self._middle = X[y == 1].mean()
        X[:] = math.nan
        return self

    def decision_function(self, X: Floats) -> Floats:
        # Better than chance on the way, so that rounds are kept.
        sign = np.where(X[:, 0] > self._middle, 1.0, -1.0)
        near = np.where(np.abs(X[:, 0] - self._middle) < 0.3, 1.0, -1.0)
        given = {
            "nan": np.where(near > 0, 3.0, math.nan),
            "infinite": near * math.inf,
            "huge": near * 1e308,
            "range": near * 50.0 + sign,
            "random": self.rng.choice([math.nan, math.inf, -math.inf, 3.0, -0.1], len(X)) + near,
            "writes": near * 2.0,
        }[self.kind]
        if self.kind == "writes":
            X[:] = 1e300
        return given


class Liar(Hostile):
    """Probabilities that are none."""

    def __getattribute__(self, name: str) -> Any:
        if name == "decision_function":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def predict_proba(self, X: Floats) -> Floats:
        near = np.abs(X[:, 0] - self._middle) < 0.3
        one = {
            "above": np.where(near, 3.0, -2.0),
            "infinite": np.where(near, math.inf, 0.0),
            "nan": np.where(near, 0.9, math.nan),
            "sure": near * 1.0,
            "random": self.rng.normal(size=len(X)) + near,
        }[self.kind]
        return np.column_stack([1.0 - one, one])


LEARNERS: list[Any] = [
    Hostile(kind) for kind in ("nan", "infinite", "huge", "range", "random", "writes")
]
LEARNERS += [Liar(kind) for kind in ("above", "infinite", "nan", "sure", "random")]
RECORDS = np.random.default_rng(1).normal(1.0, 0.1, size=(100, 1))


def named(value: Any) -> str:
    return f"{type(value).__name__}-{value.kind}"


# The certificate


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_range_of_the_score_is_within_a_quarter_of_epsilon(epsilon: float) -> None:
    for n_rounds in range(1, 201):
        weights = boosting_weights(epsilon, n_rounds)
        most = score_bound(epsilon, weights)
        # As rationals: whatever is in [-most, most] has a width of at most epsilon / 2.
        assert 2 * Fraction(2.0 * most) <= Fraction(epsilon)
        assert 2.0 * most == Fraction(most) * 2
        # Not much less than theorem 4 allows, in exact arithmetic.
        theta = Fraction(epsilon) / (Fraction(epsilon) + 4 * Fraction(LOG_TWO))
        exact = sum(theta**t for t in (1, 2, 3)[:n_rounds]) * Fraction(LOG_TWO)
        if n_rounds <= 3:
            assert most == pytest.approx(float(exact), rel=1e-12)
    assert len(weights) == 200
    # All the rounds that there can be use a quarter of epsilon, and never more.
    assert score_bound(epsilon, boosting_weights(epsilon, 10_000)) == pytest.approx(
        epsilon / 4.0, rel=1e-9
    )


def test_weights_are_powers_of_the_papers_ratio() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        base = 1.0 / (1.0 + 4.0 * math.log(2.0) / epsilon)
        for number, weight in enumerate(boosting_weights(epsilon, 20), start=1):
            assert weight == pytest.approx(base**number, rel=1e-12)


class Notes:
    """The core, with notes of the gaps that it is asked to try."""

    def __init__(self) -> None:
        self.calls: list[tuple[Floats, float]] = []

    def first_accepted(self, gaps: Floats, most: float, seed: int | None = None) -> Any:
        self.calls.append((gaps.copy(), most))
        return _core.first_accepted(gaps, most, seed)


@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_gaps_are_in_the_certified_range_whatever_the_learner(
    learner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Notes()
    monkeypatch.setattr(of_boosting, "_core", notes)
    for epsilon, n_rounds in [(0.01, 1), (1.0, 7), (8.0, 3), (42.0, 2)]:
        sampler = MollifiedBoosting(
            epsilon, weak_learner=learner, n_rounds=n_rounds, trials=50, random_state=1
        ).fit(RECORDS)
        most = sampler._score_.most
        notes.calls.clear()
        drawn = sampler.sample(20, budget=SIMULATION, seed=1)
        assert np.isfinite(drawn).all()
        ((gaps, bound),) = notes.calls
        assert gaps.shape == (20, 50)
        assert bound == 2.0 * most == sampler.certificate_
        assert 2 * Fraction(sampler.certificate_) <= Fraction(epsilon)
        assert not np.isnan(gaps).any()
        assert Fraction(float(gaps.max())) <= Fraction(bound)
        assert gaps.min() >= 0.0
        at = np.linspace(-5.0, 5.0, 1001)[:, None]
        scores = sampler._score_(at)
        assert np.abs(scores).max() <= most
        assert [round_.weight for round_ in sampler.rounds_] == list(
            boosting_weights(epsilon, n_rounds)[: len(sampler.rounds_)]
        )


def test_hostile_learners_are_not_all_dropped() -> None:
    # The test above says something only where rounds are kept.
    kept = {
        named(learner): len(
            MollifiedBoosting(1.0, weak_learner=learner, n_rounds=3, random_state=1)
            .fit(RECORDS)
            .rounds_
        )
        for learner in LEARNERS
    }
    assert sum(rounds > 0 for rounds in kept.values()) >= 8


@pytest.mark.parametrize("learner", [Hostile("infinite"), Liar("above"), Nearby()])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 42.0])
def test_stated_densities_are_in_the_band(learner: Any, epsilon: float) -> None:
    sampler = MollifiedBoosting(
        epsilon, weak_learner=learner, n_rounds=5, trials=20, random_state=1
    ).fit(RECORDS)
    at = np.linspace(-6.0, 6.0, 501)[:, None]
    ratio = sampler.score_samples(at) - stats.norm.logpdf(at[:, 0])
    assert np.abs(ratio).max() <= epsilon / 2.0 + 1e-9


class Lying(BoostedScore):
    """A score that leaves the range that it states: what no BoostedScore does."""

    def __call__(self, points: Floats) -> Floats:
        return np.where(points[:, 0] > 0.0, 1e3, -1e3)


def test_even_a_score_that_leaves_its_range_cannot_widen_the_law(statistical: Any) -> None:
    sampler = MollifiedBoosting(1.0, weak_learner=Nearby(), n_rounds=1, trials=40).fit(RECORDS)
    most = sampler._score_.most
    sampler._score_ = Lying([], [], most)
    drawn = sampler.sample(40_000, budget=SIMULATION, seed=1)[:, 0]
    accepted = (1.0 + math.exp(-2.0 * most)) / 2.0
    fallback = (1.0 - accepted) ** 40
    right = (1.0 - fallback) * 0.5 / accepted + fallback * 0.5
    counts = [int((drawn <= 0.0).sum()), int((drawn > 0.0).sum())]
    statistical.check_law(counts, [1.0 - right, right])
    assert math.log(right / 0.5) <= 2.0 * most <= 0.5


# The law, exactly, on finitely many points


class Atoms(Reference):
    dimensions = words = 1

    def __init__(self, masses: Any) -> None:
        self.masses = np.asarray(masses, np.float64)

    def log_density(self, points: Floats) -> Floats:
        return np.log(self.masses)[points[:, 0].astype(int)]

    def transform(self, uniforms: Floats) -> Floats:
        edges = np.cumsum(self.masses)[:-1]
        return np.searchsorted(edges, uniforms, side="right").astype(np.float64)


MASSES = np.array([0.5, 0.25, 0.125, 0.125])
WHERE = np.arange(4.0)[:, None]


def exact_law(sampler: MollifiedBoosting) -> list[Decimal]:
    """Enumerate the trials and the fall-back, to 60 digits."""
    most = sampler._score_.most
    gaps = [Fraction(most) - Fraction(float(score)) for score in sampler._score_(WHERE)]
    with decimal.localcontext(decimal.Context(prec=60)):
        accepted = [(-Decimal(gap.numerator) / Decimal(gap.denominator)).exp() for gap in gaps]
        shares = [Decimal(float(mass)) for mass in MASSES]
        law, none = [Decimal(0)] * 4, Decimal(1)
        for _ in range(sampler.trials_):
            law = [one + none * m * a for one, m, a in zip(law, shares, accepted, strict=True)]
            none *= 1 - sum(m * a for m, a in zip(shares, accepted, strict=True))
        return [one + none * m for one, m in zip(law, shares, strict=True)]


class Pointwise:
    """For every point, more records than draws or fewer: as far as scores can go."""

    def fit(self, X: Floats, y: Any) -> Pointwise:
        self.records = np.unique(X[y == 1])
        return self

    def decision_function(self, X: Floats) -> Floats:
        return np.where(np.isin(X[:, 0], self.records), math.inf, -math.inf)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("trials", [1, 3, 40])
def test_exact_laws_of_pairs_of_data_sets(epsilon: float, trials: int, statistical: Any) -> None:
    sets = [[[0.0]], [[1.0]], [[2.0], [3.0]], [[3.0]], [[0.0], [1.0], [2.0]]]
    laws = []
    for records in sets:
        sampler = MollifiedBoosting(
            epsilon,
            reference=Atoms(MASSES),
            weak_learner=Pointwise(),
            n_rounds=8,
            trials=trials,
            random_state=2,
        ).fit(records)
        assert len(sampler.rounds_) == 8
        law = exact_law(sampler)
        laws.append(law)
        # The stated density is that law.
        stated = np.exp(sampler.score_samples(WHERE))
        np.testing.assert_allclose(stated, [float(share) for share in law], rtol=2e-4)
        if trials < 40:
            drawn = sampler.sample(100_000, budget=SIMULATION, seed=3)
            observed = np.bincount(drawn[:, 0].astype(int), minlength=4)
            statistical.check_law(observed, [float(share) for share in law])
    with decimal.localcontext(decimal.Context(prec=60)):
        bound = Decimal(epsilon).exp()
        largest = max(
            one / other
            for first, second in itertools.permutations(laws, 2)
            for one, other in zip(first, second, strict=True)
        )
        assert largest <= bound
        for law in laws:
            for share, mass in zip(law, MASSES, strict=True):
                ratio = share / Decimal(float(mass))
                assert (-Decimal(epsilon) / 2).exp() <= ratio <= (Decimal(epsilon) / 2).exp()
        if trials == 40 and epsilon <= 1.0:
            # Something is learned.
            assert largest > (Decimal(epsilon) * Decimal("0.4")).exp()
