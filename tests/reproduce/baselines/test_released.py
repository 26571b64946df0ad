"""What the baselines share: the public box, rounding with an exact sum, weights, one payment."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize

from turnout._rounding import rounded_up
from turnout.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    NotFittedError,
)
from turnout.frequency.estimation.projection import simplex
from turnout.samplers.budget import PrivacyBudget
from turnout_reproduce.baselines.bernstein import BernsteinSampler
from turnout_reproduce.baselines.kernel import PrivateKernelDensity
from turnout_reproduce.baselines.released import Box, ReleasedSampler, spread

BASELINES = (BernsteinSampler, PrivateKernelDensity)


def records(count: int = 50, dimensions: int = 1) -> npt.NDArray[np.float64]:
    return np.random.default_rng(3).uniform(0.2, 0.6, (count, dimensions))


@pytest.fixture(params=BASELINES, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[ReleasedSampler]:
    return request.param


def test_integers_have_exactly_their_sum_and_are_off_by_at_most_one() -> None:
    rng = np.random.default_rng(0)
    for total in (1, 7, 1000, 2**24 + 3):
        for size in (1, 2, 5, 300):
            shares = rng.dirichlet(np.full(size, 0.1), 20)
            found = spread(shares, total)
            assert (found >= 0).all()
            assert (found.sum(axis=1) == total).all()
            assert np.abs(found - shares * total).max() <= 1.0 + 1e-6


@pytest.mark.parametrize("wrong", [[2.0, 3.0], [0.0, 0.0, 0.0], [0.5, -0.4, 0.9], [1e300, 1.0]])
def test_the_sum_of_the_integers_is_exact_whatever_the_shares_are(wrong: list[float]) -> None:
    found = spread(np.array(wrong), 1000)
    assert found.sum() == 1000
    assert (found >= 0).all()


def test_the_projection_is_the_nearest_probability_vector() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 6):
        for spread_of_noise in (0.01, 1.0, 100.0):
            noisy = rng.dirichlet(np.ones(size)) + rng.normal(0.0, spread_of_noise, size)
            found = simplex(noisy)
            assert math.isclose(found.sum(), 1.0, rel_tol=1e-12)
            assert (found >= 0.0).all()
            other = optimize.minimize(
                lambda x, noisy=noisy: ((x - noisy) ** 2).sum(),
                np.full(size, 1.0 / size),
                bounds=[(0.0, 1.0)] * size,
                constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0},
                method="SLSQP",
                options={"ftol": 1e-15, "maxiter": 1000},
            )
            np.testing.assert_allclose(found, other.x, atol=1e-5)


def test_rationals_are_rounded_up() -> None:
    for value in (Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(10**40, 7)):
        found = rounded_up(value)
        assert Fraction(found) >= value
        assert Fraction(math.nextafter(found, 0.0)) < value


def test_cells_are_half_open_and_the_last_one_is_closed() -> None:
    box = Box([(-1.0, 1.0), (0.0, 3.0)], 2)
    points = np.array([[-1.0, 0.0], [0.0, 1.0], [-1e-12, 3.0], [1.0, 2.999]])
    np.testing.assert_array_equal(
        box.cells(points, (2, 3)), np.array([[0, 0], [1, 1], [0, 2], [1, 2]])
    )
    counts = box.counts(points, (2, 3))
    np.testing.assert_array_equal(counts.reshape(2, 3), [[1, 0, 1], [0, 1, 1]])


def test_the_first_draws_pay_and_all_later_ones_are_free(kind: Any) -> None:
    sampler = kind(epsilon=0.75, bounds=(0.0, 1.0)).fit(records())
    assert sampler.budget_.spent == 0.0
    assert sampler.sample(1000).shape == (1000, 1)
    assert sampler.budget_.spent == 0.75
    assert sampler.budget_.spent_delta == sampler.delta
    sampler.sample(1000)
    other = PrivacyBudget(1.0)
    sampler.sample(3, budget=other)
    assert sampler.budget_.spent == 0.75
    assert other.spent == 0.0


def test_another_budget_may_pay_and_one_that_is_too_small_buys_nothing(kind: Any) -> None:
    sampler = kind(epsilon=0.75, bounds=(0.0, 1.0)).fit(records())
    for _ in range(2):
        with pytest.raises(BudgetExceededError):
            sampler.sample(budget=PrivacyBudget(0.5, 0.5))
    enough = PrivacyBudget(2.0, 0.5)
    sampler.sample(budget=enough)
    assert (enough.spent, enough.spent_delta) == (0.75, sampler.delta)
    assert sampler.budget_.spent == 0.0


def test_a_delta_must_be_granted() -> None:
    sampler = PrivateKernelDensity(bounds=(0.0, 1.0)).fit(records())
    with pytest.raises(BudgetExceededError, match="delta"):
        sampler.sample(budget=PrivacyBudget(5.0))


def test_another_fit_is_another_release_and_must_be_paid_for(kind: Any) -> None:
    purse = PrivacyBudget(1.5, 0.5)
    sampler = kind(bounds=(0.0, 1.0)).fit(records())
    sampler.sample(budget=purse)
    sampler.fit(records())
    with pytest.raises(BudgetExceededError):
        sampler.sample(budget=purse)


def test_a_seed_fixes_the_noise_and_another_one_the_draws(kind: Any) -> None:
    sampler = kind(bounds=(0.0, 1.0), random_state=5).fit(records())
    same = kind(bounds=(0.0, 1.0), random_state=5).fit(records())
    np.testing.assert_array_equal(sampler._weights_, same._weights_)
    np.testing.assert_array_equal(sampler.sample(9, seed=1), same.sample(9, seed=1))
    assert (sampler.sample(9, seed=2) != same.sample(9, seed=1)).all()
    assert (sampler.sample(9) != same.sample(9)).all()
    fresh = [kind(epsilon=20.0, bounds=(0.0, 1.0)).fit(records()) for _ in range(2)]
    assert (fresh[0]._weights_ != fresh[1]._weights_).any()


def test_weights_are_a_distribution_with_the_share_of_the_uniform_one(kind: Any) -> None:
    for epsilon in (0.01, 1.0, 42.0):
        for share in (0.0, 0.25, 1.0):
            sampler = kind(
                epsilon=epsilon,
                bounds=(0.0, 1.0),
                uniform_weight=share,
                random_state=2,
            ).fit(records())
            assert math.isclose(sampler._weights_.sum(), 1.0, rel_tol=1e-12)
            assert sampler._weights_.min() >= share / sampler._weights_.size * (1 - 1e-12)
    np.testing.assert_allclose(sampler.score_samples(np.array([[0.1], [0.9]])), 0.0, atol=1e-12)


def test_the_fitted_object_holds_no_array_as_long_as_the_data(kind: Any) -> None:
    sampler = kind(epsilon=1.0, bounds=(0.0, 1.0)).fit(records(777))
    sizes = {value.size for value in vars(sampler).values() if isinstance(value, np.ndarray)}
    assert max(sizes) < 777


def test_what_is_chosen_for_a_whole_data_set_does_not_depend_on_its_size(kind: Any) -> None:
    parameters = []
    for count in (1, 3, 5000):
        sampler = kind(epsilon=2.0, bounds=(0.0, 1.0), random_state=2).fit(records(count))
        fitted = {name: value for name, value in vars(sampler).items() if np.isscalar(value)}
        parameters.append((sampler._weights_.size, fitted))
    assert parameters[0] == parameters[1] == parameters[2]


def test_the_density_outside_the_box_is_zero(kind: Any) -> None:
    sampler = kind(bounds=(0.0, 1.0)).fit(records())
    outside = sampler.score_samples(np.array([[-0.1], [1.1], [5.0]]))
    assert (outside == -np.inf).all()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"epsilon": 0.0}, InvalidValueError, "epsilon"),
        ({"epsilon": float("nan")}, InvalidValueError, "epsilon"),
        ({"epsilon": 1e-9}, InvalidValueError, "epsilon"),
        ({"epsilon": 43.0}, InvalidValueError, "epsilon"),
        ({"epsilon": "1"}, InvalidTypeError, "epsilon"),
        ({"bounds": (0.0, 0.5)}, InvalidValueError, r"X\[\d+, 0\] must be within the public"),
        ({"bounds": (1.0, 0.0)}, InvalidValueError, "bounds must be finite with low < high"),
        ({"bounds": (0.0, math.inf)}, InvalidValueError, "bounds must be finite"),
        ({"bounds": (-1e308, 1e308)}, InvalidValueError, "bounds must be finite"),
        ({"bounds": [(0.0, 1.0), (0.0, 1.0)]}, InvalidValueError, "bounds must be a pair"),
        ({"bounds": "box"}, InvalidTypeError, "bounds must be a pair"),
        ({"bounds": None}, InvalidTypeError, "bounds must be a pair"),
        ({"bounds": [(0.0, 1.0), (0.0,)]}, InvalidTypeError, "bounds must be a pair"),
        ({"unit": "person"}, InvalidValueError, "unit must be one of 'dataset', 'record'"),
        ({"uniform_weight": 1.5}, InvalidValueError, "uniform_weight must be a number from 0 to 1"),
        ({"uniform_weight": "much"}, InvalidTypeError, "uniform_weight"),
        ({"random_state": -1}, InvalidValueError, "random_state"),
        ({"random_state": np.random.RandomState(1)}, InvalidTypeError, "random_state"),
    ],
)
def test_bad_parameters_are_named(
    kind: Any, parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    sampler = kind(**{"bounds": (0.0, 1.0), **parameters})
    with pytest.raises(error, match=message):
        sampler.fit(records())
    with pytest.raises(NotFittedError):
        sampler.sample()


def test_bad_records_are_named(kind: Any) -> None:
    sampler = kind(bounds=(0.0, 1.0))
    with pytest.raises(InvalidValueError, match=r"X\[2, 0\] must be within .*\[0, 1\]$"):
        sampler.fit([[0.1], [0.2], [1.25]])
    with pytest.raises(InvalidValueError, match=r"X\[0, 1\] must be within .*\[2, 3\]$"):
        sampler.set_params(bounds=[(0.0, 1.0), (2.0, 3.0)]).fit([[0.1, 1.5], [0.2, 2.5]])
    sampler.set_params(bounds=(0.0, 1.0))
    with pytest.raises(InvalidValueError):
        sampler.fit(np.empty((0, 1)))
    sampler.fit(records())
    with pytest.raises(InvalidValueError, match="features"):
        sampler.score_samples(records(4, 2))


def test_parameters_are_those_of_scikit_learn(kind: Any) -> None:
    base = pytest.importorskip("sklearn.base")
    sampler = kind(epsilon=2.5, bounds=[(0.0, 1.0)], unit="record", uniform_weight=0.1)
    copy = base.clone(sampler.fit(records()))
    assert copy.get_params() == sampler.get_params()
    assert not hasattr(copy, "_weights_")
    assert copy.set_params(unit="dataset").unit == "dataset"


def test_the_guarantee_says_its_unit(kind: Any) -> None:
    sampler = kind(bounds=(0.0, 1.0), epsilon=0.5)
    with pytest.raises(NotFittedError):
        sampler.guarantee()
    sentence = sampler.fit(records()).guarantee()
    assert "0.5" in sentence
    assert "all records of the person and their number" in sentence
    sentence = sampler.set_params(unit="record").fit(records()).guarantee()
    assert "one record replaced by another" in sentence
