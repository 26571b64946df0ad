"""What draws of answers tell of the users: against linear programs, enumeration and simulation."""

from __future__ import annotations

import itertools
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import optimize, spatial

import turnout as tn
from turnout.errors import EstimatorError, InvalidTypeError, InvalidValueError
from turnout.samplers import (
    FiniteMollifier,
    MinimaxSampler,
    RandomizedResponseSampler,
    sample_population,
)
from turnout.samplers.population.answers import (
    FinitePopulationEstimate,
    IdentifiedSet,
    PopulationPlan,
    debiased,
    shares_of_draws,
)

Floats = Any


def projected(p: Floats, low: Floats, high: Floats) -> Floats:
    """Clip p/C into the limits by bisection, one row each: shares no code with the package."""
    rows = np.atleast_2d(p)
    least, most = np.full((len(rows), 1), -60.0), np.full((len(rows), 1), 60.0)
    for _ in range(100):
        middle = (least + most) / 2
        below = np.clip(rows * np.exp(middle), low, high).sum(axis=1, keepdims=True) < 1.0
        least, most = np.where(below, middle, least), np.where(below, most, middle)
    result = np.clip(rows * np.exp(most), low, high)
    # Where the answers that P has are at their limits, the others share what is left.
    left = 1.0 - np.where(rows > 0, high, 0.0).sum(axis=1, keepdims=True)
    shared = np.where(rows > 0, 0.0, low)
    over = left * shared / np.maximum(shared.sum(axis=1, keepdims=True), 1e-300)
    short = np.where(rows > 0, high, low).sum(axis=1, keepdims=True) < 1.0
    full = np.where(short, np.where(rows > 0, high, over), result)
    return full if np.ndim(p) == 2 else full[0]


def minimax(epsilon: float, size: int) -> tuple[Floats, Floats]:
    least = 1.0 / (math.exp(epsilon) + size - 1)
    return np.full(size, least), np.full(size, least * math.exp(epsilon))


def mollifier(epsilon: float, shares: Any) -> tuple[Floats, Floats]:
    return np.array(shares) * math.exp(-epsilon / 2), np.array(shares) * math.exp(epsilon / 2)


LIMITS = {
    "minimax": minimax(1.0, 3),
    "minimax of four": minimax(2.0, 4),
    "mollifier": mollifier(1.0, [1 / 3] * 3),
    "narrow mollifier of four": mollifier(0.5, [0.25] * 4),
    "wide mollifier of four": mollifier(2.0, [0.25] * 4),
    "beyond one": mollifier(5.0, [1 / 3] * 3),
    "two": mollifier(1.0, [0.5, 0.5]),
    "uneven two": mollifier(2.0, [0.8, 0.2]),
    "uneven": mollifier(1.0, [0.2, 0.3, 0.5]),
    "very uneven": mollifier(3.0, [0.05, 0.15, 0.8]),
}


def pairs(low: Floats, high: Floats, cell: int, steps: int) -> Floats:
    """(Q(x), P(x)) over a lattice of distributions, and over nearly degenerate ones."""
    size = low.size
    lattice = [
        np.array([*rest, steps - sum(rest)]) / steps
        for rest in itertools.product(range(steps + 1), repeat=size - 1)
        if sum(rest) <= steps
    ]
    others = [cell_ for cell_ in range(size) if cell_ != cell]
    for count in range(1, size):
        for some in itertools.combinations(others, count):
            # The edges of the hull turn where some answers share everything.
            for share in [1e-4, 1e-8, 1e-14, *np.linspace(0, 1, 1000)]:
                p = np.zeros(size)
                p[cell], p[list(some)] = share, (1 - share) / count
                lattice.append(p)
    rows = np.array(lattice)
    found = np.column_stack([projected(rows, low, high)[:, cell], rows[:, cell]])
    # The hull's corners are enough for linear programs.
    return found[spatial.ConvexHull(found).vertices]


@pytest.mark.parametrize("name", list(LIMITS))
def test_bounds_are_those_of_a_linear_program(name: str) -> None:
    low, high = LIMITS[name]
    size = low.size
    known = IdentifiedSet(low, high)
    sharp = np.ptp(low) < 1e-12 or size == 2
    for cell in range(size) if not sharp or size == 2 else [0]:
        found = pairs(low, high, cell, 200 if size <= 3 else 30)
        for mean in np.linspace(found[:, 0].min(), found[:, 0].max(), 7):
            least, most = (
                sign
                * optimize.linprog(
                    sign * found[:, 1],
                    A_eq=[found[:, 0], np.ones(len(found))],
                    b_eq=[mean, 1.0],
                    bounds=(0, None),
                ).fun
                for sign in (1, -1)
            )
            bounds = known.bounds(np.full(size, mean))
            assert bounds.low[cell] <= least + 1e-7
            assert most <= bounds.high[cell] + 1e-7
            assert least - bounds.low[cell] <= 0.01
            if sharp:
                assert bounds.high[cell] - most <= 0.01


@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_bounds_of_the_minimax_sampler_have_a_closed_form(size: int, epsilon: float) -> None:
    low, high = minimax(epsilon, size)
    p, q = high[0], low[0]
    mean = np.random.default_rng(1).dirichlet(np.ones(size)) * (1 - size * q) + q
    t = (mean - q) / (p - q)
    bounds = IdentifiedSet(low, high).bounds(mean)
    np.testing.assert_allclose(bounds.low, p * t, atol=1e-12)
    np.testing.assert_allclose(bounds.high, t + (1 - t) / (math.exp(epsilon) + 1), atol=1e-12)


@pytest.mark.parametrize("name", list(LIMITS))
def test_every_population_is_within_the_bounds(name: str) -> None:
    low, high = LIMITS[name]
    generator = np.random.default_rng(2)
    known = IdentifiedSet(low, high)
    for spread in (0.05, 0.3, 1.0, 5.0):
        users = generator.dirichlet(np.full(low.size, spread), size=60)
        users[:5] = np.eye(low.size)[np.arange(5) % low.size]
        # Below this the bracket of the bisection ends.
        users = np.where(users < 1e-20, 0.0, users)
        laws = projected(users, low, high)
        np.testing.assert_allclose(laws.sum(axis=1), 1.0, atol=1e-9)
        bounds = known.bounds(laws.mean(axis=0))
        mean = users.mean(axis=0)
        assert (bounds.low <= mean + 1e-9).all()
        assert (mean <= bounds.high + 1e-9).all()
        assert bounds.level is None


def test_no_function_of_the_draws_is_unbiased() -> None:
    low, high = minimax(1.0, 3)
    one, other = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])
    apart = (projected(one, low, high) + projected(other, low, high)) / 2
    together = projected((one + other) / 2, low, high)
    assert np.abs(apart - together).max() > 0.01


def test_bounds_hold_with_their_confidence(statistical: ModuleType) -> None:
    low, high = minimax(2.0, 4)
    generator = np.random.default_rng(3)
    users = generator.dirichlet(np.full(4, 0.3), size=300)
    laws = projected(users, low, high)
    plan = PopulationPlan(tn.Domain.from_integers(4), 2.0, 300)
    edges = laws.cumsum(axis=1)
    held = 0
    repeats = 1000
    for _ in range(repeats):
        codes = np.minimum((generator.random((300, 1)) > edges).sum(axis=1), 3)
        estimate = FinitePopulationEstimate(shares_of_draws(plan, codes), IdentifiedSet(low, high))
        bounds = estimate.bounds(0.8)
        inside = estimate.identified_set.bounds(laws.mean(axis=0))
        held += bool((bounds.low <= inside.low).all() and (inside.high <= bounds.high).all())
        assert bounds.contains(estimate.bounds(None).low).all()
    statistical.check_share(held, repeats, 0.8, 1.0)
    assert estimate.users == 300
    assert estimate.domain.size == 4
    assert bounds.level == 0.8


def drawn(users: Floats, p: float, q: float, generator: np.random.Generator) -> Any:
    """One draw of each user from q + (p - q) P."""
    laws = q + (p - q) * users
    edges = laws.cumsum(axis=1)
    return np.minimum((generator.random((len(users), 1)) > edges).sum(axis=1), users.shape[1] - 1)


@pytest.mark.parametrize("kind", ["one value", "own", "same"])
def test_linear_draws_are_debiased_with_their_errors(kind: str, statistical: ModuleType) -> None:
    oracle = tn.DirectEncoding(2.0, 4)
    p, q = oracle.support_probabilities
    generator = np.random.default_rng(4)
    frequencies = np.array([0.5, 0.3, 0.15, 0.05])
    users = {
        "one value": np.eye(4)[np.repeat(np.arange(4), [250, 150, 75, 25])],
        "own": generator.dirichlet(frequencies, size=500),
        "same": np.tile(frequencies, (500, 1)),
    }[kind]
    mean = users.mean(axis=0)
    plan = PopulationPlan(oracle.domain, 2.0, 500)
    repeats = 4000
    found = [
        debiased(plan, drawn(users, p, q, generator), p, q, one_value=kind == "one value")
        for _ in range(repeats)
    ]
    values = np.array([each.frequencies for each in found])
    statistical.check_mean(values, mean)
    claimed = np.mean([each.standard_errors**2 for each in found], axis=0)
    # The plug-in variance has a relative bias of about 1/users.
    if kind != "own":
        statistical.check_variance(values, claimed, slack=0.01)
    else:
        laws = q + (p - q) * users
        exact = (laws * (1 - laws)).mean(axis=0) / 500 / (p - q) ** 2
        statistical.check_variance(values, exact, slack=0.0)
        assert (claimed > exact).all()
    held = sum(bool(each.interval(0.9).contains(mean)[0]) for each in found)
    statistical.check_share(held, repeats, 0.89, 1.0)


def test_intervals_of_direct_encoding_are_too_short_for_users_with_several_values() -> None:
    oracle = tn.DirectEncoding(4.0, 2)
    p, q = oracle.support_probabilities
    generator = np.random.default_rng(5)
    users = np.full((400, 2), 0.5)
    plan = PopulationPlan(oracle.domain, 4.0, 400)
    missed = {False: 0, True: 0}
    for _ in range(500):
        codes = drawn(users, p, q, generator)
        for one_value in (False, True):
            interval = debiased(plan, codes, p, q, one_value=one_value).interval(0.95)
            missed[one_value] += not interval.contains([0.5, 0.5]).all()
    assert missed[False] < 60
    assert missed[True] > 250


def test_one_value_is_the_estimate_of_direct_encoding() -> None:
    oracle = tn.DirectEncoding(1.0, tn.Domain(["a", "b", "c"]))
    codes = np.random.default_rng(6).integers(0, 3, 200)
    plan = PopulationPlan(oracle.domain, 1.0, 200)
    mine = debiased(plan, codes, *oracle.support_probabilities, one_value=True)
    tally = oracle.tally(tn.Reports(oracle, tn.Everyone(), codes, nodes=200))
    theirs = tally.estimate("hajek")
    np.testing.assert_allclose(mine.frequencies, theirs.frequencies, rtol=1e-12)
    np.testing.assert_allclose(mine.standard_errors, theirs.standard_errors, rtol=1e-9)
    for side in ("low", "high"):
        np.testing.assert_allclose(
            getattr(mine.interval(0.9), side), getattr(theirs.interval(0.9), side), rtol=1e-9
        )
    assert mine.domain.labels == ("a", "b", "c")


def test_shares_are_shares() -> None:
    plan = PopulationPlan(tn.Domain.from_integers(3), 1.0, 5)
    estimate = shares_of_draws(plan, np.array([0, 0, 2, 0, 2]))
    np.testing.assert_allclose(estimate.frequencies, [0.6, 0.0, 0.4])
    np.testing.assert_allclose(estimate.standard_errors**2, [0.24 / 5, 0.0, 0.24 / 5])
    assert estimate.nodes == 5


LABELS = ["never", "rarely", "often", "daily"]


def several_values(users: int) -> tuple[Any, Any, Floats]:
    """Three labels of each user, and the mean of the users' distributions."""
    generator = np.random.default_rng(7)
    codes = np.minimum(generator.geometric(0.5, (users, 3)) - 1, 3)
    mean = np.bincount(codes.ravel(), minlength=4) / codes.size
    return np.array(LABELS)[codes.ravel()], np.repeat(np.arange(users), 3), mean


@pytest.mark.parametrize(
    "sampler",
    [
        MinimaxSampler(2.0, domain=tn.Domain(LABELS)),
        FiniteMollifier(2.0, domain=tn.Domain(LABELS)),
        FiniteMollifier(2.0, domain=tn.Domain(LABELS), reference=[0.4, 0.3, 0.2, 0.1]),
    ],
)
def test_clipped_samplers_give_bounds_that_hold(sampler: Any, statistical: ModuleType) -> None:
    data, users, mean = several_values(1500)
    draws = sample_population(sampler, data, users, seed=1)
    assert draws.draws.shape == (1500,)
    assert set(draws.draws) <= set(LABELS)
    estimate = draws.estimate()
    assert isinstance(estimate, FinitePopulationEstimate)
    assert estimate.bounds(1 - statistical.ALPHA).contains(mean).all()
    # The limits are those of the sampler: certain users are at them, or at what the others leave.
    certain = np.array([sampler.project(row) for row in np.eye(4)])
    np.testing.assert_allclose(np.diag(certain), estimate.identified_set.high, rtol=1e-9)
    assert (certain >= estimate.identified_set.low - 1e-12).all()
    codes = np.array(
        [[LABELS.index(label) for label in data[3 * user :][:3]] for user in range(1500)]
    )
    rows = np.array([np.bincount(row, minlength=4) / 3 for row in codes])
    laws = np.array([sampler.project(row) for row in rows])
    known = estimate.identified_set.bounds(laws.mean(axis=0))
    assert known.contains(mean).all()
    shares = estimate.mixture.frequencies
    allowed = statistical.quantile(4) * np.sqrt((laws * (1 - laws)).mean(axis=0) / 1500)
    assert (np.abs(shares - laws.mean(axis=0)) <= allowed).all()


def test_randomized_responses_are_debiased(statistical: ModuleType) -> None:
    data, users, mean = several_values(3000)
    sampler = RandomizedResponseSampler(2.0, domain=tn.Domain(LABELS))
    estimate: Any = sample_population(sampler, data, users, seed=2).estimate()
    assert isinstance(estimate, tn.FrequencyEstimate)
    allowed = statistical.quantile(4) * estimate.standard_errors
    assert (np.abs(estimate.frequencies - mean) <= allowed).all()
    assert (allowed < 0.2).all()
    assert estimate.method == "debiased"


@pytest.mark.parametrize(
    "sampler",
    [
        MinimaxSampler(2.0, domain_size=4),
        FiniteMollifier(3.0, domain_size=4),
        FiniteMollifier(5.0, domain_size=4),
        RandomizedResponseSampler(2.0, domain_size=4),
    ],
)
def test_one_value_of_each_user_is_debiased(sampler: Any, statistical: ModuleType) -> None:
    values = np.random.default_rng(8).choice(4, 4000, p=[0.6, 0.3, 0.1, 0.0])
    draws = sample_population(sampler, values, np.arange(4000), seed=3)
    estimate: Any = draws.estimate(assume="one_value")
    assert estimate.method == "one_value"
    truth = np.bincount(values, minlength=4) / 4000
    allowed = statistical.quantile(4) * estimate.standard_errors
    assert (np.abs(estimate.frequencies - truth) <= allowed).all()
    assert (allowed < 0.1).all()


def test_what_cannot_be_estimated_is_refused() -> None:
    uneven = FiniteMollifier(2.0, domain_size=2, reference=[0.3, 0.7])
    draws = sample_population(uneven, np.array([0, 1]), [1, 2], seed=1)
    with pytest.raises(EstimatorError, match="uniform reference"):
        draws.estimate(assume="one_value")


def test_bad_input_is_refused() -> None:
    for low, high in (
        ([0.5], [1.0]),
        ([0.0, 0.5], [0.5, 0.5]),
        ([0.6, 0.3], [0.5, 0.5]),
        ([0.6, 0.6], [0.7, 0.7]),
        ([0.1, 0.1], [0.2, 0.2]),
        ([0.1, math.nan], [0.9, 0.9]),
        ([0.1, 0.1], [0.9]),
    ):
        with pytest.raises(InvalidValueError):
            IdentifiedSet(low, high)
    known = IdentifiedSet([0.2, 0.2], [0.8, 0.8])
    with pytest.raises(InvalidValueError):
        known.bounds([0.5])
    with pytest.raises(InvalidTypeError):
        known.bounds("half")
    plan = PopulationPlan(tn.Domain.from_integers(2), 1.0, 1)
    with pytest.raises(EstimatorError, match="these draws contain no information"):
        debiased(plan, np.array([0]), 0.5, 0.5, one_value=True)
