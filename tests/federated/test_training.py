"""The public parameters: noise, accounting, scale, encoding, and what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest

from turnout.accounting import (
    PrivacyLedger,
    RandomParticipation,
    WeakClientSampling,
    calibrate_noise,
    compose,
)
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedVersionError,
)
from turnout.federated import Client, RandomParticipationSGD
from turnout.federated import plan as plan_module
from turnout.federated.grid import Grid


def plan_of(**changes: Any) -> RandomParticipationSGD:
    chosen: dict[str, Any] = {
        "client_rate": 0.001, "sample_rate": 0.1, "clip": 1.0, "noise_multiplier": 2.4903,
        "local_size": 30,
    }  # fmt: skip
    chosen.update(changes)
    return RandomParticipationSGD(**chosen)


def test_a_round_with_a_trusted_server_costs_random_participation() -> None:
    assert plan_of().mechanism == RandomParticipation(0.001, 0.1, 30, 2.4903)
    assert plan_of(mode="always_send").mechanism == RandomParticipation(0.001, 0.1, 30, 2.4903)


def test_where_participation_shows_or_sizes_are_not_bounded_it_costs_weak_client_sampling() -> None:
    weak = WeakClientSampling(0.001, 0.1, 2.4903)
    assert plan_of(mode="participants_only").mechanism == weak
    for mode in ("trusted_server", "always_send"):
        unbounded = plan_of(local_size=None, nominal_local_size=30, mode=mode)
        assert unbounded.mechanism == weak


def test_the_published_scenario_needs_the_sound_noise_and_not_the_printed_one() -> None:
    plan = plan_of(noise_multiplier=None, epsilon=0.015, delta=1e-6, rounds=1)
    assert plan.noise_multiplier == pytest.approx(2.37328, abs=1e-5)
    assert plan.target == (0.015, 1e-6, 1)
    weak = plan_of(
        noise_multiplier=None, epsilon=0.015, delta=1e-6, rounds=1, mode="participants_only"
    )
    assert weak.noise_multiplier == pytest.approx(7.66512, abs=1e-5)


def test_a_target_is_reached_by_the_composition_of_all_rounds() -> None:
    plan = plan_of(noise_multiplier=None, epsilon=0.5, delta=1e-5, rounds=200)
    assert plan.mechanism is not None
    assert compose([(plan.mechanism, 200)]).epsilon(1e-5) <= 0.5 * (1 + 1e-6)
    assert compose([(plan.mechanism, 200)]).delta(0.5) <= 1e-5
    ledger = plan.ledger()
    assert ledger is not None
    assert ledger.can_spend(plan.mechanism, 200)
    assert not ledger.can_spend(plan.mechanism, 202)
    base = RandomParticipation(0.001, 0.1, 30, 1.0)
    assert plan.noise_multiplier == calibrate_noise(base, 0.5, 1e-5, 200)


def test_the_scale_is_made_of_public_numbers_only() -> None:
    plan = plan_of()
    assert plan._scale(20_000) == pytest.approx(1 / (0.001 * 20_000 * 0.1 * 30), rel=1e-12)
    assert plan_of(nominal_local_size=10)._scale(20_000) == pytest.approx(3 * plan._scale(20_000))


@pytest.mark.parametrize("clip", [1.0, 0.1, 1e-250, 1e250, 3.7])
@pytest.mark.parametrize("noise", [2.0**-15, 0.3, 1.0, 2.4902912345, 1e6])
def test_noise_in_steps_is_never_less_than_asked_for(clip: float, noise: float) -> None:
    grid = Grid.of(clip, noise, 24)
    assert grid.noise_multiplier >= Fraction(noise)
    assert grid.noise_multiplier <= Fraction(noise) * (1 + Fraction(1, 2**50))
    assert 2**grid.bits * Fraction(grid.step) >= Fraction(noise) * Fraction(clip)


def test_grids_that_sums_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="noise_multiplier must be at least"):
        plan_of(noise_multiplier=2.0**-17)
    with pytest.raises(InvalidValueError, match="beyond floating-point range"):
        plan_of(clip=1e-300)
    assert plan_of(noise_multiplier=2.0**-17, grid_bits=20).grid is not None
    with pytest.raises(InvalidValueError, match="local_size must be at most 2,097,15"):
        plan_of(noise_multiplier=2.0**-16, local_size=2**22)
    unbounded = plan_of(noise_multiplier=2.0**-16, local_size=None, nominal_local_size=2**22)
    with pytest.raises(InvalidValueError, match="size must be at most 2,097,15"):
        Client(unbounded, 2**22, parameters=1)
    assert Client(unbounded, 2**20, parameters=1).size == 2**20


def test_descriptions_give_the_same_plan_and_fingerprint() -> None:
    plans = [
        plan_of(),
        plan_of(seed=4, mode="always_send", grid_bits=20),
        plan_of(local_size=None, nominal_local_size=7, mode="participants_only"),
        plan_of(noise="none", noise_multiplier=None, clip=math.inf),
        plan_of(noise="float"),
        plan_of(noise_multiplier=None, epsilon=0.1, delta=1e-6, rounds=1),
    ]
    for plan in plans:
        again = RandomParticipationSGD.from_dict(json.loads(json.dumps(plan.to_dict())))
        assert again == plan
        assert again.fingerprint == plan.fingerprint
        assert again.target == plan.target
        assert hash(again) == hash(plan)
    assert len({plan.fingerprint for plan in plans}) == len(plans)


def test_a_description_is_not_calibrated_again() -> None:
    described = plan_of(noise_multiplier=None, epsilon=0.1, delta=1e-6, rounds=1).to_dict()
    described["noise_multiplier"] = 0.5
    plan = RandomParticipationSGD.from_dict(described)
    assert plan.noise_multiplier == 0.5
    # What it claims is not believed by a ledger.
    ledger = PrivacyLedger(0.1, 1e-6)
    assert plan.mechanism is not None
    assert not ledger.can_spend(plan.mechanism)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "x"},
        {"client_rate": 2.0},
        {"clip": "1"},
        {"mode": "trust me"},
        {"epsilon": 1.0},
        {"epsilon": -1.0, "delta": 1e-5, "rounds": 3},
        {"epsilon": 1.0, "delta": 1e-5, "rounds": "3"},
        {"more": 1},
        {"grid_bits": 24.5},
        {"noise_multiplier": None},
    ],
)
def test_altered_descriptions_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CorruptDataError, match="not a plan of federated training"):
        RandomParticipationSGD.from_dict({**plan_of().to_dict(), **change})


def test_no_noise_is_looked_for_in_what_others_describe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "calibrate_noise", lambda *a, **b: pytest.fail("looked for"))
    asked = {"noise_multiplier": None, "epsilon": 1.0, "delta": 1e-5, "rounds": 10**9}
    with pytest.raises(CorruptDataError, match="give either noise_multiplier or"):
        RandomParticipationSGD.from_dict({**plan_of().to_dict(), **asked})


@pytest.mark.parametrize("value", [None, 3, "plan", [], {}])
def test_what_is_no_description_is_refused(value: Any) -> None:
    with pytest.raises(CorruptDataError):
        RandomParticipationSGD.from_dict(value)
    with pytest.raises(UnsupportedVersionError, match="version 2"):
        RandomParticipationSGD.from_dict({**plan_of().to_dict(), "version": 2})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"client_rate": 0.0}, "client_rate must be a probability in"),
        ({"sample_rate": math.nan}, "sample_rate must be a probability in"),
        ({"clip": 0.0}, "clip must be finite and at least 2\\^-1000"),
        ({"clip": 1e-305}, "clip must be finite and at least 2\\^-1000"),
        ({"clip": math.inf}, "clip must be finite and at least 2\\^-1000"),
        (
            {"clip": -1.0, "noise": "none", "noise_multiplier": None},
            "clip must be at least 2\\^-1000",
        ),
        ({"noise_multiplier": 0.0}, "say noise='none'"),
        ({"noise_multiplier": math.inf}, "noise_multiplier must be finite"),
        ({"noise_multiplier": None}, "either noise_multiplier or all of"),
        ({"epsilon": 1.0, "delta": 1e-5, "rounds": 3}, "either noise_multiplier or all of"),
        ({"noise_multiplier": None, "epsilon": 1.0}, "must be given together"),
        ({"noise": "none"}, "gives no privacy"),
        ({"local_size": None}, "nominal_local_size must be given"),
        ({"local_size": 0}, "local_size must be an integer from 1"),
        ({"mode": "trusted"}, "mode must be one of 'trusted_server'"),
        ({"noise": "gaussian"}, "noise must be one of 'exact'"),
        ({"grid_bits": 60}, "grid_bits must be an integer from 8 to 36"),
        ({"seed": -1}, "seed must be an integer from 0"),
    ],
)
def test_wrong_parameters_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        plan_of(**change)


def test_wrong_types_are_named() -> None:
    with pytest.raises(InvalidTypeError, match="client_rate must be a real number"):
        plan_of(client_rate="0.1")
    with pytest.raises(InvalidTypeError, match="available must be an integer of at least 1"):
        plan_of()._scale(1.5)


def test_ledgers_do_not_go_with_a_training_without_noise() -> None:
    plan = plan_of(noise="none", noise_multiplier=None)
    assert plan.mechanism is None
    assert plan.ledger() is None
    with pytest.raises(InvalidValueError, match="ledger must be None"):
        Client(plan, 3, parameters=2, ledger=PrivacyLedger(1.0, 1e-5))
    with pytest.raises(InvalidTypeError, match="ledger must have an adjacency among"):
        Client(plan_of(), 3, parameters=2, ledger=PrivacyLedger(1.0, 1e-5, "replace"))
