"""Minimax samplers: closed forms, low bounds, exact guarantees, laws of draws."""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Context, Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from tests.samplers.finite_laws import DIVERGENCES, bisected, distributions, exponential_below

from turnout import Domain
from turnout.errors import (
    BudgetExceededError,
    CodeOutsideDomainError,
    InvalidTypeError,
    InvalidValueError,
    NotFittedError,
)
from turnout.samplers import PrivacyBudget, StandardNormal, Uniform
from turnout.samplers.finite import FiniteMollifier
from turnout.samplers.minimax import MinimaxSampler

EPSILONS = [0.1, 0.5, 1.0, 2.0, 5.0]
SIZES = [5, 10, 20, 100]
#: low, high, and a number of cells of which a whole number makes up alpha.
CLASSES = [(0.0, 4.0, 20), (0.2, 2.0, 18), (0.5, 3.0, 20), (0.0, 1.5, 18)]


def test_the_worst_cases_of_ten_values() -> None:
    found = [MinimaxSampler(epsilon, 10).worst_case() for epsilon in EPSILONS]
    np.testing.assert_allclose(found, [2.213, 1.865, 1.461, 0.797, 0.059], atol=5e-4)
    for epsilon in EPSILONS:
        mollifier = FiniteMollifier(epsilon, 10)
        assert MinimaxSampler(epsilon, 10).worst_case() < mollifier.worst_case()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_worst_cases_to_six_digits(size: int, epsilon: float) -> None:
    """Against 50 digits, against the projection of each vertex, and against random laws."""
    context = Context(prec=50)
    e = context.exp(Decimal(epsilon))
    mass = context.divide(e, e + size - 1)
    expected = {
        "kl": -mass.ln(context),
        "tv": 1 - mass,
        "hellinger": 1 - mass.sqrt(context),
    }
    rng = np.random.default_rng(size)
    sampler = MinimaxSampler(epsilon, size)
    for name, exact in expected.items():
        worst = sampler.worst_case(name)
        assert worst == pytest.approx(float(exact), rel=1e-12)
        point = np.eye(size)[size // 2]
        assert DIVERGENCES[name](point, sampler.project(point)) == pytest.approx(worst, rel=1e-9)
        for p in distributions(rng, size, 40):
            assert DIVERGENCES[name](p, sampler.project(p)) <= worst + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("size", [2, 3, 6])
def test_no_private_sampler_gives_every_value_more(epsilon: float, size: int) -> None:
    """The best law of draws for certain persons, by linear programming.

    One law for each certain person, all within e^epsilon of each other; the least mass on the own
    value is maximal. Every divergence from a certain person falls with that mass.
    """
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j]
    unknowns = size * size + 1
    rows = []
    for (i, j), value in itertools.product(pairs, range(size)):
        row = np.zeros(unknowns)
        row[i * size + value] += 1.0
        row[j * size + value] -= math.exp(epsilon)
        rows.append(row)
    for i in range(size):
        row = np.zeros(unknowns)
        row[i * size + i] = -1.0
        row[-1] = 1.0
        rows.append(row)
    sums = np.zeros((size, unknowns))
    for i in range(size):
        sums[i, i * size : (i + 1) * size] = 1.0
    objective = np.zeros(unknowns)
    objective[-1] = -1.0
    solved = optimize.linprog(
        objective, np.array(rows), np.zeros(len(rows)), sums, np.ones(size), bounds=(0, 1)
    )
    assert solved.success
    sampler = MinimaxSampler(epsilon, size)
    assert sampler.worst_case("tv") == pytest.approx(1.0 + solved.fun, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_projection_is_the_clipped_distribution(epsilon: float) -> None:
    rng = np.random.default_rng(4)
    for size in (2, 3, 10, 50):
        floor = 1 / (math.exp(epsilon) + size - 1)
        for p in distributions(rng, size, 20):
            q = MinimaxSampler(epsilon, size).project(p)
            assert q.sum() == pytest.approx(1, abs=1e-12)
            assert q.max() <= math.exp(epsilon) * q.min() * (1 + 1e-12)
            np.testing.assert_allclose(q, bisected(p, floor, 1.0), rtol=1e-9)


def test_weights_realise_the_projection_within_exact_limits() -> None:
    rng = np.random.default_rng(3)
    for epsilon in [1e-6, *EPSILONS, 20.0, 42.0]:
        for size in (2, 7, 100):
            sampler = MinimaxSampler(epsilon, size)
            bound = exponential_below(epsilon)
            assert sampler.realized_ratio <= bound
            assert sampler.realized_epsilon <= epsilon
            if epsilon <= 20.0:
                assert sampler.realized_epsilon >= epsilon - 1e-6
            seen: list[int] = []
            for values in (rng.integers(size, size=50), [0] * 5, [0, size - 1], np.arange(size)):
                weights = sampler.fit(values)._weights_.tolist()
                assert sum(weights) == size * (2**61 // size)
                seen += weights
                p = np.bincount(values, minlength=size) / len(values)
                np.testing.assert_allclose(
                    sampler.probabilities_, sampler.project(p), rtol=1e-8, atol=1e-15
                )
                spread = np.abs(np.log(sampler.probabilities_ * size)).max()
                assert spread <= sampler.certificate_ + 1e-12
            assert Fraction(max(seen), min(seen)) <= sampler.realized_ratio
    assert MinimaxSampler(1.0, 3).fit([0]).realized_epsilon == pytest.approx(1.0, abs=1e-12)


def test_draws_of_values_follow_the_law(statistical: ModuleType) -> None:
    domain = Domain(list("abcdef"))
    sampler = MinimaxSampler(1.5, domain=domain).fit(list("aabbbf"))
    draws = sampler.sample(300_000, budget=PrivacyBudget(math.inf), seed=2)
    statistical.check_law(np.bincount(domain.encode(draws), minlength=6), sampler.probabilities_)
    scores = sampler.score_samples(list("abcdef"))
    np.testing.assert_allclose(np.exp(scores), sampler.probabilities_, rtol=1e-14)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("low", "high", "cells"), CLASSES)
def test_the_worst_density_is_at_its_bounds(
    epsilon: float, low: float, high: float, cells: int
) -> None:
    """Densities that are constant on cells: the closed form against projections by bisection."""
    sampler = MinimaxSampler(epsilon, reference=Uniform([0.0], [1.0]), low=low, high=high)
    alpha = (1 - low) / (high - low)
    above = round(alpha * cells)
    assert above == pytest.approx(alpha * cells)
    base = 1 / (alpha * math.exp(epsilon) + 1 - alpha)

    def loss(p: Any, name: str) -> float:
        q = bisected(p, base / cells, base * math.exp(epsilon) / cells)
        assert q.sum() == pytest.approx(1, abs=1e-9)
        return DIVERGENCES[name](p, q)

    rng = np.random.default_rng(cells)
    worst = np.where(np.arange(cells) < above, high, low) / cells
    for name in DIVERGENCES:
        bound = sampler.worst_case(name)
        assert loss(worst, name) == pytest.approx(bound, rel=1e-9, abs=1e-12)
        for _ in range(40):
            # Mixtures of densities at their bounds make up the class.
            shares = rng.dirichlet(np.full(4, 0.3))
            p = sum(share * rng.permutation(worst) for share in shares)
            assert loss(np.asarray(p), name) <= bound + 1e-12


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_private_sampler_of_densities_is_closer(epsilon: float) -> None:
    """The least largest total variation over densities at their bounds, by linear programming."""
    cells, low, high = 6, 0.25, 2.5  # alpha = 1/3
    persons = list(itertools.combinations(range(cells), 2))
    laws = np.full((len(persons), cells), low / cells)
    for person, places in enumerate(persons):
        laws[person, list(places)] = high / cells
    size = laws.size
    # Unknowns: the laws of draws, the positive parts of the differences, the largest distance.
    unknowns = 2 * size + 1
    rows, limits = [], []
    for person, cell in itertools.product(range(len(persons)), range(cells)):
        row = np.zeros(unknowns)
        row[[person * cells + cell, size + person * cells + cell]] = -1.0
        rows.append(row)
        limits.append(-laws[person, cell])
        for other in range(len(persons)):
            row = np.zeros(unknowns)
            row[person * cells + cell] += 1.0
            row[other * cells + cell] -= math.exp(epsilon)
            rows.append(row)
            limits.append(0.0)
    for person in range(len(persons)):
        row = np.zeros(unknowns)
        row[size + person * cells : size + (person + 1) * cells] = 1.0
        row[-1] = -1.0
        rows.append(row)
        limits.append(0.0)
    sums = np.zeros((len(persons), unknowns))
    for person in range(len(persons)):
        sums[person, person * cells : (person + 1) * cells] = 1.0
    objective = np.zeros(unknowns)
    objective[-1] = 1.0
    solved = optimize.linprog(
        objective, np.array(rows), limits, sums, np.ones(len(persons)), bounds=(0, None)
    )
    assert solved.success
    sampler = MinimaxSampler(epsilon, reference=Uniform([0.0], [1.0]), low=low, high=high)
    assert sampler.worst_case("tv") == pytest.approx(solved.fun, abs=1e-9)


def test_a_narrow_class_is_drawn_from_as_it_is() -> None:
    for epsilon, low, high in [(1.0, 0.5, 1.3), (2.0, 0.25, 0.25 * math.exp(2.0))]:
        sampler = MinimaxSampler(epsilon, reference=Uniform([0.0], [1.0]), low=low, high=high)
        for name in DIVERGENCES:
            assert sampler.worst_case(name) == 0.0
    cells = 20
    tilted = stats.uniform(0.0, 1.0)
    sampler = MinimaxSampler(1.0, reference=Uniform([0.0], [1.0]), low=0.5, high=1.3)
    at = (np.arange(cells)[:, None] + 0.5) / cells
    np.testing.assert_allclose(sampler.project(tilted).log_density(at), 0.0, atol=1e-9)


def test_points_are_drawn_from_the_projection() -> None:
    records = np.random.default_rng(5).normal(0.5, 0.4, size=(400, 1))
    sampler = MinimaxSampler(2.0, reference=StandardNormal(1), low=0.1, high=3.0).fit(records)
    grid = np.linspace(-9, 9, 20_001)
    density = np.exp(sampler.score_samples(grid[:, None]))
    cumulated = np.cumsum(density) * (grid[1] - grid[0])
    assert cumulated[-1] == pytest.approx(1.0, abs=2e-3)
    ratios = density / stats.norm.pdf(grid)
    base = 1 / (0.9 / 2.9 * math.exp(2.0) + 2.0 / 2.9)
    assert ratios.min() == pytest.approx(base, rel=1e-8)
    assert ratios.max() == pytest.approx(base * math.exp(2.0), rel=1e-8)
    draws = sampler.sample(1500, budget=PrivacyBudget(math.inf), seed=6)
    assert draws.shape == (1500, 1)
    found = stats.kstest(draws[:, 0], lambda x: np.interp(x, grid, cumulated / cumulated[-1]))
    assert found.pvalue > 1e-6
    # They are not draws from the reference, nor from the records' own density.
    assert stats.kstest(draws[:, 0], stats.norm.cdf).pvalue < 1e-6
    assert stats.kstest(draws[:, 0], stats.norm(0.5, 0.4).cdf).pvalue < 1e-6
    assert sampler.realized_ratio <= exponential_below(2.0)
    assert sampler.realized_epsilon == pytest.approx(2.0, abs=1e-8)
    assert sampler.certificate_ == pytest.approx(max(-math.log(base), 2 + math.log(base)), abs=1e-8)


def test_other_estimators_of_points() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    records = np.random.default_rng(6).normal(size=(60, 2))
    sampler = MinimaxSampler(
        1.0,
        reference=StandardNormal(2),
        low=0.0,
        high=5.0,
        estimator=neighbors.KernelDensity(bandwidth=0.5),
        proposals=64,
    )
    assert sampler.fit(records).sample().shape == (1, 2)
    assert sampler.project(lambda at: -np.abs(at).sum(axis=1)).sample(seed=1).shape == (1, 2)
    with pytest.raises(InvalidValueError, match="3 features"):
        sampler.score_samples(np.zeros((1, 3)))
    with pytest.raises(InvalidTypeError, match="estimator"):
        sampler.set_params(estimator="kernel").fit(records)


def test_draws_are_paid_for_at_what_the_fit_cost() -> None:
    sampler = MinimaxSampler(0.5, 4).fit([1, 2])
    sampler.set_params(epsilon=1e-6)
    with pytest.raises(BudgetExceededError):
        sampler.sample(budget=PrivacyBudget(0.4))
    sampler.sample()
    with pytest.raises(BudgetExceededError):
        sampler.sample()


def test_scikit_learn_and_pickle_copy_it() -> None:
    base = pytest.importorskip("sklearn.base")
    for sampler in (
        MinimaxSampler(0.5, 3).fit([0, 0, 1]),
        MinimaxSampler(0.5, low=0.1, high=4.0).fit(np.full((30, 1), 0.3)),
    ):
        assert base.clone(sampler).get_params() == sampler.get_params()
        copy = pickle.loads(pickle.dumps(sampler))
        budget = PrivacyBudget(math.inf)
        np.testing.assert_array_equal(
            copy.sample(3, budget=budget, seed=3), sampler.sample(3, budget=budget, seed=3)
        )
    assert "domain_size=3" in repr(MinimaxSampler(0.5, 3))
    assert MinimaxSampler(0.5, 3).__sklearn_tags__().input_tags.one_d_array
    assert MinimaxSampler(0.5, low=0.1, high=4.0).__sklearn_tags__().input_tags.two_d_array


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "low and high must be given"),
        ({"low": 0.1}, "low and high"),
        ({"domain_size": 3, "low": 0.1}, "low is for samplers of points"),
        ({"domain_size": 3, "reference": StandardNormal(1)}, "reference is for samplers of points"),
        ({"domain_size": 3, "domain": Domain(["a", "b"])}, "exactly one of domain_size and domain"),
        ({"domain_size": 1}, "domain_size"),
        ({"low": 1.0, "high": 2.0}, "low must be"),
        ({"low": -0.1, "high": 2.0}, "low must be"),
        ({"low": math.nan, "high": 2.0}, "low must be"),
        ({"low": 0.5, "high": 1.0}, "high must be"),
        ({"low": 0.5, "high": math.inf}, "high must be"),
        ({"epsilon": 0.0, "domain_size": 3}, "epsilon"),
        ({"epsilon": 43.0, "domain_size": 3}, "epsilon"),
        ({"low": 0.5, "high": 2.0, "proposals": 1}, "proposals"),
    ],
)
def test_parameters_that_cannot_be_used(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        MinimaxSampler(**arguments).fit([[0.5]] if "high" in arguments else [0])


def test_data_that_cannot_be_used() -> None:
    sampler = MinimaxSampler(1.0, 3)
    for use in (sampler.sample, lambda: sampler.score_samples([0])):
        with pytest.raises(NotFittedError):
            use()
    with pytest.raises(CodeOutsideDomainError):
        sampler.fit([0, 3])
    with pytest.raises(InvalidValueError, match="at least 1 value"):
        sampler.fit([])
    with pytest.raises(InvalidValueError, match="divergence must be one of"):
        sampler.worst_case("chi2")
    with pytest.raises(InvalidValueError, match=r"^p must add up to 1"):
        sampler.project([0.5, 0.4, 0.2])
    of_points = MinimaxSampler(1.0, low=0.1, high=3.0)
    with pytest.raises(InvalidValueError, match="X"):
        of_points.fit([0.5])
    with pytest.raises(InvalidValueError, match="divergence must be one of"):
        of_points.worst_case("chi2")


def test_a_fitted_sampler_of_points_says_the_limits_of_its_draws() -> None:
    sampler = MinimaxSampler(2.0, low=0.0, high=5.0, reference=StandardNormal(1))
    limits, realized = sampler._log_limits, sampler.realized_epsilon
    sampler.fit(np.zeros((5, 1)))
    sampler.set_params(epsilon=0.1, high=3.0)
    assert (sampler._log_limits, sampler.realized_epsilon) == (limits, realized)
    with pytest.raises(InvalidValueError, match="log_limits needs a sampler of points"):
        _ = MinimaxSampler(2.0, 4)._log_limits
