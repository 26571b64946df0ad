"""What the data could reach beside the choice: chance that is asked, and rows of others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.samplers.test_privacy_end_to_end import (
    PEOPLE,
    Atoms,
    Floats,
    Scripted,
    Shares,
    Teller,
    boosted,
    free,
    records,
)

from turnout import _core
from turnout.errors import BudgetExceededError
from turnout.samplers import (
    FiniteMollifier,
    MinimaxSampler,
    MollifiedDensity,
    PrivacyBudget,
    PrivateSampler,
    RandomizedResponseSampler,
    sample_population,
)
from turnout_reproduce.baselines import BernsteinSampler, PrivateKernelDensity
from turnout_reproduce.boosting import MollifiedBoosting

# Released densities


def boxed(seed: int, count: int) -> Floats:
    return np.random.default_rng(seed).random((count, 1))


# What the data could reach beside the choice


def test_what_is_asked_of_chance_does_not_depend_on_the_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[Any, ...]] = []
    real = {name: getattr(_core, name) for name in ("uniforms", "first_accepted")}

    def uniforms(length: int, seed: int | None = None) -> Any:
        calls.append(("uniforms", length, seed))
        return real["uniforms"](length, seed)

    def first_accepted(gaps: Floats, most: float, seed: int | None = None) -> Any:
        calls.append(("trials", gaps.shape, seed))
        return real["first_accepted"](gaps, most, seed)

    class Noted(Scripted):
        def resample(self, ratios: Floats, seed: int | None = None) -> Any:
            calls.append(("choice", ratios.shape, seed))
            return self._band.resample(ratios, seed)

    atoms = Atoms([5, 2, 1])
    made: list[Callable[[], PrivateSampler]] = [
        lambda: MollifiedDensity(2.0, reference=atoms, estimator=Shares(-math.inf)),
        lambda: MollifiedBoosting(2.0, reference=atoms, weak_learner=Teller(), n_rounds=3),
    ]
    for make in made:
        for seed in (None, 5):
            asked = []
            for values in PEOPLE:
                sampler = make().fit(records(values))
                with monkeypatch.context() as patch:
                    patch.setattr(_core, "uniforms", uniforms)
                    patch.setattr(_core, "first_accepted", first_accepted)
                    patch.setattr(_core, "SamplerBand", Noted)
                    calls.clear()
                    sampler.sample(3, budget=free(), seed=seed)
                    asked.append(list(calls))
            assert all(one == asked[0] for one in asked)
            seeds = [call[2] for call in asked[0]]
            assert len(set(seeds)) == (1 if seed is None else len(seeds)) > 0


def test_nothing_is_asked_of_chance_before_it_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any) -> Any:
        raise AssertionError(arguments)

    atoms = Atoms([5, 2, 1])
    samplers: list[PrivateSampler] = [
        MollifiedDensity(1.0, reference=atoms, estimator=Shares(0.0)).fit(records([0, 1])),
        boosted(1.0, [0, 1], atoms, Teller(), 3),
        FiniteMollifier(1.0, 3).fit([0]),
        MinimaxSampler(1.0, 3).fit([0]),
        RandomizedResponseSampler(1.0, 3).fit([0]),
        BernsteinSampler(1.0, bounds=(0.0, 1.0)).fit(boxed(1, 9)),
        PrivateKernelDensity(1.0, bounds=(0.0, 1.0), grid=16).fit(boxed(1, 9)),
    ]
    for name in ("uniforms", "first_accepted", "choose_weighted", "DirectEncoding"):
        monkeypatch.setattr(_core, name, never)
    for sampler in samplers:
        purse = PrivacyBudget(0.999, 0.5)
        with pytest.raises(BudgetExceededError):
            sampler.sample(1, budget=purse)
        assert purse.spent == 0.0


def test_a_draw_depends_on_the_rows_of_its_user_alone() -> None:
    users = np.repeat(["a", "b", "c"], 20)
    rows = np.random.default_rng(1).normal(size=(60, 2))
    others = np.where((users == "b")[:, None], rows, rows[::-1] * 3.0 + 1.0)
    samplers: list[PrivateSampler] = [
        MollifiedDensity(3.0),
        MollifiedBoosting(3.0, n_rounds=2, trials=5, weak_learner=Teller()),
    ]
    for sampler in samplers:
        draws = [
            dict(zip(found.users.tolist(), found.draws.tolist(), strict=True))
            for found in (
                sample_population(sampler, data, users, seed=4) for data in (rows, others)
            )
        ]
        assert draws[0]["b"] == draws[1]["b"]
        assert len({tuple(draw) for draw in draws[0].values()}) == 3
