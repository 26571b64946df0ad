"""A privacy budget adds up exactly, refuses what was not granted, and pays for draws."""

from __future__ import annotations

import copy
import math
import pickle
import sys
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from turnout._rounding import rounded_up
from turnout.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    NotFittedError,
)
from turnout.samplers import MollifiedDensity, PrivacyBudget

RECORDS = np.random.default_rng(1).normal(0.5, 0.1, size=(40, 1))


class Bell:
    """A density estimate that costs no time to fit."""

    def fit(self, X: Any, y: None = None) -> Bell:
        self.law = stats.norm(X.mean(), max(X.std(), 0.01))
        return self

    def score_samples(self, X: Any) -> Any:
        return self.law.logpdf(X[:, 0])


class Broken(Bell):
    """A density estimate that fails when it is drawn from, not when it is fitted."""

    broken = False

    def score_samples(self, X: Any) -> Any:
        if self.broken:
            raise RuntimeError("out of order")
        return super().score_samples(X)


def sampler(epsilon: float = 1.0, **parameters: Any) -> MollifiedDensity:
    return MollifiedDensity(epsilon, estimator=Bell(), proposals=16, **parameters)


# Sums


def test_ten_draws_of_a_tenth_cost_what_the_doubles_add_up_to() -> None:
    # The double 0.1 is above 1/10: ten of them do not fit into 1, though floats add up to .9999.
    assert 10 * Fraction(0.1) > 1 > sum([0.1] * 10)
    budget = PrivacyBudget(1.0)
    for _ in range(9):
        budget.spend(0.1)
    with pytest.raises(BudgetExceededError):
        budget.spend(0.1)
    with pytest.raises(BudgetExceededError):
        PrivacyBudget(1.0).spend(0.1, times=10)
    PrivacyBudget(math.nextafter(1.0, 2.0)).spend(0.1, times=10)


def test_sums_are_exact_rationals() -> None:
    rng = np.random.default_rng(2)
    costs = [float(cost) for cost in rng.lognormal(-3.0, 4.0, 200)]
    times = [int(number) for number in rng.integers(0, 9, 200)]
    exact = sum(
        (number * Fraction(cost) for cost, number in zip(costs, times, strict=True)), Fraction(0)
    )
    enough = float(exact)
    while Fraction(enough) < exact:
        enough = math.nextafter(enough, math.inf)
    while Fraction(math.nextafter(enough, 0.0)) >= exact:
        enough = math.nextafter(enough, 0.0)

    def spend_all(granted: float) -> None:
        budget = PrivacyBudget(granted)
        for cost, number in zip(costs, times, strict=True):
            budget.spend(cost, times=number)

    spend_all(enough)
    with pytest.raises(BudgetExceededError):
        spend_all(math.nextafter(enough, 0.0))
    budget = PrivacyBudget(math.inf)
    for cost, number in zip(costs, times, strict=True):
        budget.spend(cost, times=number)
    assert Fraction(budget.spent) >= exact
    assert Fraction(math.nextafter(budget.spent, 0.0)) < exact


def test_what_is_spent_is_rounded_up_and_what_is_left_is_rounded_down() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        granted, cost = 1.0 + float(rng.random()), float(rng.random()) * 2.0**-20
        budget = PrivacyBudget(granted, delta=0.5)
        budget.spend(cost, cost, times=3)
        assert Fraction(budget.spent) >= 3 * Fraction(cost)
        assert Fraction(budget.remaining) <= Fraction(granted) - 3 * Fraction(cost)
        assert budget.remaining == pytest.approx(granted - 3 * cost, rel=1e-15)
        assert Fraction(budget.spent_delta) >= 3 * Fraction(cost)
        assert Fraction(budget.remaining_delta) <= Fraction(1, 2) - 3 * Fraction(cost)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(2, 3), Fraction(-1, 3), Fraction(1, 7)])
def test_rounding_up_gives_the_next_float(value: Fraction) -> None:
    found = rounded_up(value)
    assert Fraction(found) >= value > Fraction(math.nextafter(found, -math.inf))


def test_a_refusal_spends_nothing() -> None:
    budget = PrivacyBudget(1.0, delta=1e-6)
    budget.spend(0.5, 5e-7)
    for arguments in [(0.6,), (0.25, 6e-7), (0.6, 6e-7)]:
        with pytest.raises(BudgetExceededError):
            budget.spend(*arguments)
        assert (budget.spent, budget.spent_delta) == (0.5, 5e-7)
    budget.spend(0.5, 5e-7)
    assert (budget.remaining, budget.remaining_delta) == (0.0, 0.0)
    assert math.copysign(1.0, budget.remaining) == 1.0
    budget.spend(1.0, times=0)


def test_an_infinite_grant_counts_and_never_refuses() -> None:
    budget = PrivacyBudget(math.inf)
    budget.spend(40.0, 0.5, times=10**6)
    assert (budget.spent, budget.remaining) == (4e7, math.inf)
    budget.spend(1e308, times=100)
    assert budget.spent == math.inf
    assert "inf" in repr(budget)


def test_the_message_says_what_it_costs_and_what_is_left() -> None:
    with pytest.raises(BudgetExceededError, match=r"3 x 0\.5.*, and 1(\.0)? of 1\.0 is left"):
        PrivacyBudget(1.0).spend(0.5, times=3)
    with pytest.raises(BudgetExceededError, match=r"costs delta = .*0\.1, and 0(\.0)? of"):
        PrivacyBudget(1.0, 0.0).spend(0.5, 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a number above 0"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": "1"}, "epsilon must be a real number"),
        ({"epsilon": True}, "epsilon must be a real number"),
        ({"epsilon": None}, "epsilon must be a real number"),
        ({"epsilon": 1.0, "delta": -0.1}, "delta must be"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must be"),
        ({"epsilon": 1.0, "delta": math.nan}, "delta must be"),
    ],
)
def test_bad_grants(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        PrivacyBudget(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": -0.5}, "epsilon must be a finite number above 0"),
        ({"epsilon": math.inf}, "epsilon must be a finite number above 0"),
        ({"epsilon": math.nan}, "epsilon must be a finite number above 0"),
        ({"epsilon": "0.1"}, "epsilon must be a real number"),
        ({"epsilon": 0.1, "delta": -0.1}, "delta must be at least 0"),
        ({"epsilon": 0.1, "delta": 1.0}, "delta must be at least 0 and below 1"),
        ({"epsilon": 0.1, "times": -1}, "times must be an integer of at least 0"),
        ({"epsilon": 0.1, "times": 1.0}, "times must be an integer"),
        ({"epsilon": 0.1, "times": True}, "times must be an integer"),
    ],
)
def test_bad_costs_spend_nothing(arguments: dict[str, Any], message: str) -> None:
    budget = PrivacyBudget(1.0, delta=0.5)
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        budget.spend(**arguments)
    assert (budget.spent, budget.spent_delta) == (0.0, 0.0)


def test_a_cost_beyond_floating_point_is_refused_like_any_other() -> None:
    with pytest.raises(BudgetExceededError):
        PrivacyBudget(1.0).spend(1.0, times=10**400)


# Threads and copies


def test_threads_never_spend_more_than_was_granted() -> None:
    interval = sys.getswitchinterval()
    # Threads take turns within a payment, not between payments only.
    sys.setswitchinterval(1e-6)
    try:
        check_threads()
    finally:
        sys.setswitchinterval(interval)


def check_threads() -> None:
    budget = PrivacyBudget(1.0)
    accepted = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for _ in range(100):
            try:
                budget.spend(1.0 / 256.0)
            except BudgetExceededError:
                continue
            accepted.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(accepted), budget.spent, budget.remaining) == (256, 1.0, 0.0)


def test_copies_keep_what_was_spent() -> None:
    budget = PrivacyBudget(1.0, delta=0.5)
    budget.spend(0.25, 0.125)
    for other in [pickle.loads(pickle.dumps(budget)), copy.copy(budget), copy.deepcopy(budget)]:
        assert (other.remaining, other.remaining_delta) == (0.75, 0.375)
        other.spend(0.75)
        with pytest.raises(BudgetExceededError):
            other.spend(1e-9)
    assert budget.remaining == 0.75


def test_what_it_looks_like() -> None:
    budget = PrivacyBudget(1.5)
    budget.spend(0.5)
    assert repr(budget) == "PrivacyBudget(epsilon=1.5): 0.5 spent"
    assert repr(PrivacyBudget(1.0, 1e-6)).startswith("PrivacyBudget(epsilon=1.0, delta=1e-06)")


# Draws


def test_a_fit_grants_one_draw() -> None:
    fitted = sampler(0.3).fit(RECORDS)
    with pytest.raises(BudgetExceededError):
        fitted.sample(2, seed=1)
    assert fitted.budget_.spent == 0.0
    assert fitted.sample(1, seed=1).shape == (1, 1)
    assert (fitted.budget_.spent, fitted.budget_.remaining) == (0.3, 0.0)
    with pytest.raises(BudgetExceededError):
        fitted.sample(seed=1)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 5.0])
def test_m_draws_cost_m_times_epsilon(epsilon: float) -> None:
    fitted = sampler(epsilon).fit(RECORDS)
    budget = PrivacyBudget(math.inf)
    assert fitted.sample(7, budget=budget, seed=1).shape == (7, 1)
    assert Fraction(budget.spent) >= 7 * Fraction(epsilon)
    assert budget.spent == rounded_up(7 * Fraction(epsilon))
    # What another budget pays leaves the fit's own alone.
    assert fitted.budget_.spent == 0.0


def test_a_budget_that_was_given_pays_for_later_draws_of_the_fit() -> None:
    fitted, budget = sampler(0.25).fit(RECORDS), PrivacyBudget(1.0)
    fitted.sample(2, budget=budget, seed=1)
    fitted.sample(1, seed=1)
    assert (budget.spent, fitted.budget_.spent) == (0.75, 0.0)
    fitted.sample(1, seed=1)
    with pytest.raises(BudgetExceededError):
        fitted.sample(1, seed=1)
    # Copies have copies; another fit is another release, with a grant of its own.
    copied = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(BudgetExceededError):
        copied.sample(1, seed=1)
    fitted.fit(RECORDS).sample(1, seed=1)
    assert (budget.spent, fitted.budget_.spent) == (1.0, 0.25)


def test_a_budget_that_refuses_pays_for_nothing_later() -> None:
    fitted = sampler(0.25).fit(RECORDS)
    with pytest.raises(BudgetExceededError):
        fitted.sample(2, budget=PrivacyBudget(0.4), seed=1)
    assert fitted.sample(1, seed=1).shape == (1, 1)
    assert fitted.budget_.spent == 0.25


def test_one_budget_pays_for_several_samplers() -> None:
    budget = PrivacyBudget(1.0)
    first, second = sampler(0.5).fit(RECORDS), sampler(0.25).fit(RECORDS)
    first.sample(1, budget=budget, seed=1)
    second.sample(2, budget=budget, seed=1)
    with pytest.raises(BudgetExceededError):
        second.sample(1, budget=budget, seed=1)
    assert budget.remaining == 0.0


def test_draws_that_are_refused_draw_nothing() -> None:
    fitted = MollifiedDensity(1.0, estimator=Broken(), proposals=16).fit(RECORDS)
    fitted._estimator_.broken = True
    # A refusal comes before anything is drawn: the estimate is not asked.
    with pytest.raises(BudgetExceededError):
        fitted.sample(2)


def test_a_draw_that_fails_is_paid_for() -> None:
    fitted = MollifiedDensity(1.0, estimator=Broken(), proposals=16).fit(RECORDS)
    fitted._estimator_.broken = True
    with pytest.raises(RuntimeError, match="out of order"):
        fitted.sample(1)
    assert fitted.budget_.remaining == 0.0


@pytest.mark.parametrize("n_samples", [0, -1, 1.0, True, "1", None])
def test_bad_numbers_of_draws_cost_nothing(n_samples: Any) -> None:
    fitted = sampler().fit(RECORDS)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="n_samples must be an integer"):
        fitted.sample(n_samples)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="seed must be an integer"):
        fitted.sample(1, seed=-1)
    with pytest.raises(InvalidTypeError, match="budget must be a PrivacyBudget"):
        fitted.sample(1, budget=1.0)  # type: ignore[arg-type]
    assert fitted.budget_.spent == 0.0


def test_more_draws_than_floats_can_count_are_refused() -> None:
    with pytest.raises(BudgetExceededError):
        sampler().fit(RECORDS).sample(10**400)


def test_a_second_fit_grants_anew_and_a_failed_one_leaves_nothing() -> None:
    fitted = sampler().fit(RECORDS)
    fitted.sample(1, seed=1)
    fitted.fit(RECORDS)
    fitted.sample(1, seed=2)
    fitted.set_params(proposals=1)
    with pytest.raises(InvalidValueError, match="proposals"):
        fitted.fit(RECORDS)
    with pytest.raises(NotFittedError):
        fitted.sample(1)


def test_draws_cost_the_epsilon_of_the_fit_whatever_is_set_later() -> None:
    fitted = sampler(5.0).fit(RECORDS)
    fitted.set_params(epsilon=0.01)
    with pytest.raises(BudgetExceededError):
        fitted.sample(2, seed=1)
    budget = PrivacyBudget(math.inf)
    fitted.sample(3, budget=budget, seed=1)
    assert budget.spent == 15.0
    assert "5.0-locally" in fitted.guarantee()
    assert fitted.certificate_ == 2.5
