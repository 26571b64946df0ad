"""Samplers of finitely many values: closed forms, exact guarantees, laws of draws."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.samplers.finite_laws import DIVERGENCES, bisected, distributions, exponential_below

from turnout import Domain
from turnout.errors import (
    BudgetExceededError,
    CodeOutsideDomainError,
    InvalidTypeError,
    InvalidValueError,
    NotFittedError,
    UnknownLabelError,
)
from turnout.samplers import PrivacyBudget
from turnout.samplers.finite import FiniteMollifier, RandomizedResponseSampler
from turnout.samplers.minimax import MinimaxSampler

EPSILONS = [0.1, 0.5, 1.0, 2.0, 5.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("uniform", [True, False])
def test_the_projection_is_the_clipped_distribution(epsilon: float, uniform: bool) -> None:
    rng = np.random.default_rng(1)
    for size in (2, 3, 10, 50):
        reference = np.full(size, 1 / size) if uniform else rng.dirichlet(np.full(size, 2.0))
        sampler = FiniteMollifier(epsilon, size, reference=None if uniform else reference)
        low, high = reference * math.exp(-epsilon / 2), reference * math.exp(epsilon / 2)
        for p in distributions(rng, size, 30):
            q = sampler.project(p)
            assert q.sum() == pytest.approx(1, abs=1e-12)
            np.testing.assert_allclose(q, bisected(p, low, high), rtol=1e-10)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_member_of_the_mollifier_is_closer(epsilon: float) -> None:
    rng = np.random.default_rng(2)
    for p in distributions(rng, 4, 20):
        sampler = FiniteMollifier(epsilon, 4)
        best = DIVERGENCES["kl"](p, sampler.project(p))
        for other in distributions(rng, 4, 100):
            member = sampler.project(other)
            for share in (1.0, 0.1, 1e-3):
                mixed = share * member + (1 - share) * sampler.project(p)
                assert DIVERGENCES["kl"](p, mixed) >= best - 1e-14


def test_values_without_mass_share_what_is_left() -> None:
    sampler = FiniteMollifier(1.0, 10)
    point = np.eye(10)[3]
    q = sampler.project(point)
    assert q[3] == pytest.approx(math.exp(0.5) / 10, rel=1e-14)
    np.testing.assert_allclose(np.delete(q, 3), (1 - q[3]) / 9, rtol=1e-13)
    nearly = (1 - 1e-13) * point + 1e-14
    np.testing.assert_allclose(sampler.project(nearly), q, rtol=1e-9)
    # In proportion to the reference.
    reference = np.array([0.1, 0.2, 0.3, 0.4])
    q = FiniteMollifier(1.0, 4, reference=reference).project([1, 0, 0, 0])
    rest = (1 - q[0]) / 0.9
    np.testing.assert_allclose(q[1:], reference[1:] * rest, rtol=1e-13)
    # Where the others are at their lower limit, the point takes what is left.
    q = FiniteMollifier(5.0, 10).project(point)
    np.testing.assert_allclose(np.delete(q, 3), math.exp(-2.5) / 10, rtol=1e-13)


@pytest.mark.parametrize("uniform", [True, False])
def test_weights_realise_the_projection_within_exact_limits(uniform: bool) -> None:
    rng = np.random.default_rng(3)
    for epsilon in [1e-6, *EPSILONS, 20.0, 42.0]:
        for size in (2, 7, 100):
            # Probabilities with few digits are whole numbers of units exactly.
            shares = np.full(size, 1 / size)
            if not uniform:
                counts = rng.multinomial(2**20 - size, rng.dirichlet(np.ones(size))) + 1
                shares = counts / 2**20
            sampler = FiniteMollifier(epsilon, size, reference=None if uniform else shares)
            ratio = sampler.realized_ratio
            assert ratio <= exponential_below(epsilon)
            assert sampler.realized_epsilon <= epsilon
            if epsilon <= 20.0:
                # What one value can have at most, given what the others keep.
                factor = math.exp(epsilon / 2)
                most = np.minimum(shares * factor, 1 - (1 - shares) / factor)
                expected = math.log((most / (shares / factor)).max())
                assert sampler.realized_epsilon == pytest.approx(expected, abs=1e-8)
            half = exponential_below(epsilon / 2)
            units = [2**61 // size] * size if uniform else [int(c) * 2**41 for c in counts]
            data = [rng.integers(size, size=50), [0] * 5, [0, size - 1], np.arange(size)]
            for values in data:
                fitted = sampler.fit(values)
                weights = fitted._weights_.tolist()
                assert sum(weights) == sum(units)
                for weight, unit in zip(weights, units, strict=True):
                    assert Fraction(weight) <= half * unit
                    assert Fraction(weight) * half >= unit
                assert fitted.certificate_ <= epsilon / 2
                p = np.bincount(values, minlength=size) / len(values)
                np.testing.assert_allclose(
                    fitted.probabilities_, sampler.project(p), rtol=1e-9, atol=1e-15
                )


def test_no_two_data_sets_differ_by_more_than_the_realised_ratio() -> None:
    reference = [0.5, 0.3, 0.15, 0.05]
    for sampler in (
        FiniteMollifier(0.7, 4, reference=reference),
        FiniteMollifier(4.0, 4),
        FiniteMollifier(0.3, 4),
    ):
        laws = []
        for code in range(16):
            values = [value for value in range(4) if code >> value & 1] or [0, 0, 0, 1]
            laws.append(sampler.fit(values)._weights_.tolist())
        ratio = max(
            Fraction(one, other)
            for left in laws
            for right in laws
            for one, other in zip(left, right, strict=True)
        )
        assert ratio <= sampler.realized_ratio
        # A point mass against one elsewhere comes close where there is room.
        assert float(ratio) > 1.0


def test_the_worst_case_of_ten_values() -> None:
    found = [FiniteMollifier(epsilon, 10).worst_case("kl") for epsilon in EPSILONS]
    np.testing.assert_allclose(found, [2.253, 2.053, 1.803, 1.303, 0.077], atol=5e-4)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("divergence", list(DIVERGENCES))
@pytest.mark.parametrize("kind", ["uniform", "skewed", "response"])
def test_the_worst_case_is_a_maximum(epsilon: float, divergence: str, kind: str) -> None:
    rng = np.random.default_rng(5)
    size = 5
    sampler: FiniteMollifier | RandomizedResponseSampler
    if kind == "response":
        sampler = RandomizedResponseSampler(epsilon, size)
    else:
        reference = [0.4, 0.3, 0.15, 0.1, 0.05] if kind == "skewed" else None
        sampler = FiniteMollifier(epsilon, size, reference=reference)
    measure = DIVERGENCES[divergence]
    worst = sampler.worst_case(divergence)
    points = [measure(point, sampler.project(point)) for point in np.eye(size)]
    assert max(points) == pytest.approx(worst, rel=1e-9)
    for p in distributions(rng, size, 300):
        assert measure(p, sampler.project(p)) <= worst + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_draws_follow_the_law(epsilon: float, statistical: ModuleType) -> None:
    values = [0, 0, 0, 1, 1, 4, 4, 4, 4]
    samplers = (
        FiniteMollifier(epsilon, 6),
        FiniteMollifier(epsilon, 6, reference=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1]),
        RandomizedResponseSampler(epsilon, 6),
    )
    for sampler in samplers:
        sampler.fit(values)
        draws = sampler.sample(300_000, budget=PrivacyBudget(math.inf), seed=7)
        assert draws.dtype == np.int64
        statistical.check_law(np.bincount(draws, minlength=6), sampler.probabilities_)
        scores = sampler.score_samples(np.arange(6))
        np.testing.assert_allclose(np.exp(scores), sampler.probabilities_, rtol=1e-14)
        assert np.exp(scores).sum() == pytest.approx(1, abs=1e-12)


def test_randomized_response_is_a_mixture_of_its_reports(statistical: ModuleType) -> None:
    sampler = RandomizedResponseSampler(1.0, 3).fit([0, 0, 0, 2])
    e = math.e
    matrix = (np.ones((3, 3)) + (e - 1) * np.eye(3)) / (e + 2)
    p = np.array([0.75, 0.0, 0.25])
    np.testing.assert_allclose(sampler.probabilities_, p @ matrix, rtol=1e-9)
    np.testing.assert_allclose(sampler.project(p), p @ matrix, rtol=1e-9)
    assert sampler.realized_ratio <= exponential_below(1.0)
    assert sampler.realized_epsilon <= 1.0
    assert not hasattr(sampler, "certificate_")
    # De-biasing gives the distribution back.
    draws = sampler.sample(200_000, budget=PrivacyBudget(math.inf), seed=1)
    shares = np.eye(3)[draws]
    statistical.check_mean(shares @ np.linalg.inv(matrix), p)


@pytest.mark.parametrize("kind", [FiniteMollifier, RandomizedResponseSampler])
class TestUse:
    def test_labels(self, kind: Any, statistical: ModuleType) -> None:
        domain = Domain(["never", "once", "often"])
        sampler = kind(1.0, domain=domain).fit(["once", "often", "once"])
        drawn = sampler.sample(1)
        assert drawn.shape == (1,)
        assert drawn[0] in domain.labels
        many = sampler.sample(50_000, budget=PrivacyBudget(math.inf), seed=1)
        statistical.check_law(np.bincount(domain.encode(many), minlength=3), sampler.probabilities_)
        assert sampler.score(["once"]) > sampler.score(["never"])
        assert "1.0-locally" in sampler.guarantee()
        pairs = Domain([("a", 1), ("b", 2)])
        assert kind(1.0, domain=pairs).fit(list(pairs.labels)).sample()[0] in pairs.labels

    def test_draws_are_paid_for_at_what_the_fit_cost(self, kind: Any) -> None:
        sampler = kind(0.5, 4).fit([1, 2])
        purse = PrivacyBudget(1.25)
        sampler.sample(2, budget=purse)
        assert purse.remaining == 0.25
        sampler.set_params(epsilon=1e-6)
        with pytest.raises(BudgetExceededError):
            sampler.sample(budget=PrivacyBudget(0.4))
        with pytest.raises(BudgetExceededError):
            sampler.sample()

    def test_scikit_learn_copies_it(self, kind: Any) -> None:
        base = pytest.importorskip("sklearn.base")
        sampler = kind(0.5, domain=Domain(["a", "b"]))
        copy = base.clone(sampler)
        assert copy.get_params() == sampler.get_params()
        assert "domain_size=3" in repr(kind(0.5, 3))
        tags = sampler.__sklearn_tags__()
        assert tags.input_tags.one_d_array
        assert not tags.input_tags.two_d_array

    def test_a_fitted_sampler_can_be_pickled(self, kind: Any) -> None:
        sampler = kind(0.5, 3).fit([0, 1])
        copy = pickle.loads(pickle.dumps(sampler))
        np.testing.assert_array_equal(copy.probabilities_, sampler.probabilities_)
        budget = PrivacyBudget(math.inf)
        np.testing.assert_array_equal(
            copy.sample(20, budget=budget, seed=3), sampler.sample(20, budget=budget, seed=3)
        )

    def test_parameters_that_cannot_be_used(self, kind: Any) -> None:
        for epsilon in (0.0, -1.0, 43.0, math.nan, math.inf):
            with pytest.raises(InvalidValueError, match="epsilon"):
                kind(epsilon, 3).fit([0])
        for size in (1, 0, -5, 2**24 + 1):
            with pytest.raises(InvalidValueError, match="domain_size"):
                kind(1.0, size).fit([0])
        with pytest.raises(InvalidTypeError, match="domain_size"):
            kind(1.0, 2.5).fit([0])
        for given in ({}, {"domain_size": 3, "domain": Domain(["a", "b"])}):
            with pytest.raises(InvalidValueError, match="exactly one of domain_size and domain"):
                kind(1.0, **given).fit([0])
        with pytest.raises(InvalidTypeError, match="domain"):
            kind(1.0, domain="ab").fit([0])
        with pytest.raises(InvalidValueError, match="divergence must be one of"):
            kind(1.0, 3).worst_case("chi2")

    def test_data_that_cannot_be_used(self, kind: Any) -> None:
        sampler = kind(1.0, 3)
        with pytest.raises(NotFittedError):
            sampler.sample()
        with pytest.raises(NotFittedError):
            sampler.score_samples([0])
        with pytest.raises(InvalidValueError, match="at least 1 value"):
            sampler.fit([])
        with pytest.raises(CodeOutsideDomainError):
            sampler.fit([0, 3])
        with pytest.raises(InvalidTypeError):
            sampler.fit([[0], [1]])
        with pytest.raises(CodeOutsideDomainError, match="whole number"):
            sampler.fit([0.5])
        with pytest.raises(UnknownLabelError):
            kind(1.0, domain=Domain(["a", "b"])).fit(["c"])
        for p in ([0.5, 0.5], [0.5, 0.6, -0.1], [0.5, 0.6, 0.1], [math.nan, 0.5, 0.5]):
            with pytest.raises(InvalidValueError, match=r"^p"):
                sampler.project(p)


@pytest.mark.parametrize(
    "reference", [[0.5, 0.5], [0.5, 0.5, 0.0], [0.5, 0.7, -0.2], [0.5, 0.5, math.inf]]
)
def test_references_that_cannot_be_used(reference: list[float]) -> None:
    with pytest.raises(InvalidValueError, match="reference"):
        FiniteMollifier(1.0, 3, reference=reference).fit([0])


@pytest.mark.parametrize(
    "make", [FiniteMollifier, RandomizedResponseSampler, MinimaxSampler], ids=lambda m: m.__name__
)
def test_a_fitted_sampler_says_the_epsilon_of_its_draws_and_not_of_its_parameter(make: Any) -> None:
    sampler = make(5.0, 4)
    before = sampler.realized_epsilon
    sampler.fit([0, 0, 1])
    sampler.epsilon = 0.1
    assert sampler.realized_epsilon == before > 3.0
    assert sampler._epsilon_ == 5.0
    assert sampler.fit([0]).realized_epsilon <= 0.1
    assert make(0.1, 4).realized_epsilon <= 0.1
