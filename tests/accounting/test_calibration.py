"""Calibrated parameters reach their target, and slightly worse ones do not."""

from __future__ import annotations

import math
from typing import Any

import pytest

import turnout as tn
from turnout.accounting import (
    CentralShuffling,
    CountSampling,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianMechanism,
    LocalSampling,
    Mechanism,
    RandomParticipation,
    SampleAndThreshold,
    Shuffled,
    SkellamNoise,
    VariationRatio,
    WeakClientSampling,
    calibrate,
    calibrate_noise,
)
from turnout.errors import InvalidTypeError, InvalidValueError

#: Each mechanism, with an epsilon and a delta that some value of every parameter just reaches.
TARGETS: list[tuple[Mechanism, float, float]] = [
    (RandomParticipation(0.05, 0.1, 30, 1.0), 0.3, 2e-4),
    (WeakClientSampling(0.1, 0.1, 1.0), 0.5, 1e-4),
    (CentralShuffling(0.3, 0.3, 1.0), 0.5, 1e-3),
    (LocalSampling(0.1, 1.0), 0.5, 1e-3),
    (GaussianMechanism(1.0), 1.0, 1e-6),
    (CountSampling(0.5, 100), 1.0, 1e-6),
    (DiscreteLaplaceNoise(1.0), 0.5, 1e-3),
    (DiscreteGaussianNoise(1.0), 0.5, 1e-5),
    (SkellamNoise(1.0), 0.5, 1e-5),
    (Shuffled(tn.DirectEncoding(1.0, 3), 10), 0.5, 1e-5),
    (Shuffled(VariationRatio._of_any(3.0), 10, tn.Bernoulli(0.5)), 0.5, 1e-5),
]
CASES = [
    pytest.param(mechanism, parameter, epsilon, delta, id=f"{type(mechanism).__name__}-{parameter}")
    for mechanism, epsilon, delta in TARGETS
    for parameter in mechanism._calibrated
]


def worse(value: float, protects: bool, step: float) -> float:
    """Give a slightly worse value: the next one of a whole number."""
    if isinstance(value, int):
        return value - 1 if protects else value + 1
    return value * (1.0 - step if protects else 1.0 + step)


@pytest.mark.parametrize(("mechanism", "parameter", "epsilon", "delta"), CASES)
def test_a_calibrated_parameter_reaches_the_target_and_a_slightly_worse_one_does_not(
    mechanism: Mechanism, parameter: str, epsilon: float, delta: float
) -> None:
    value = calibrate(mechanism, parameter, epsilon, delta)
    whole = parameter in ("local_size", "floor", "nodes")
    assert type(value) is (int if whole else float)
    assert mechanism.replace(**{parameter: value}).delta(epsilon) <= delta
    less = worse(value, mechanism._calibrated[parameter], 1e-9)
    assert mechanism.replace(**{parameter: less}).delta(epsilon) > delta


ROUNDS: list[tuple[Mechanism, str, float, float]] = [
    (LocalSampling(0.01, 1.0), "noise_multiplier", 0.5, 1e-6),
    (LocalSampling(0.01, 1.0), "sample_rate", 0.5, 1e-6),
    (RandomParticipation(0.01, 0.1, 30, 1.0), "client_rate", 0.2, 1e-3),
    (GaussianMechanism(1.0), "noise_multiplier", 1.0, 1e-9),
    (CountSampling(0.3, 10), "floor", 1.0, 1e-6),
    (DiscreteGaussianNoise(1.0), "scale", 1.0, 1e-6),
]


@pytest.mark.parametrize(("mechanism", "parameter", "epsilon", "delta"), ROUNDS)
def test_so_does_one_of_several_rounds(
    mechanism: Mechanism, parameter: str, epsilon: float, delta: float
) -> None:
    value = calibrate(mechanism, parameter, epsilon, delta, rounds=20)
    assert mechanism.replace(**{parameter: value}).compose(20).delta(epsilon) <= delta
    less = worse(value, mechanism._calibrated[parameter], 3e-4)
    assert mechanism.replace(**{parameter: less}).compose(20).delta(epsilon) > delta


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta"),
    [
        (GaussianMechanism(20.0), 1.0, 1e-6),
        (CountSampling(0.1, 10_000), 0.5, 1e-6),
        (DiscreteLaplaceNoise(20.0), 1.0, 1e-6),
        (WeakClientSampling(0.1, 0.1, 2.0), 0.5, 1e-2),
    ],
    ids=repr,
)
def test_rounds_are_the_largest_number_that_reaches_the_target(
    mechanism: Mechanism, epsilon: float, delta: float
) -> None:
    rounds = calibrate(mechanism, "rounds", epsilon, delta)
    assert type(rounds) is int
    assert rounds > 1
    assert mechanism.compose(rounds).delta(epsilon) <= delta
    assert mechanism.compose(rounds + 1).delta(epsilon) > delta
    assert calibrate(mechanism, "rounds", epsilon, delta, rounds=7) == rounds


def test_rounds_of_gaussian_noise_are_its_noise_squared() -> None:
    # T rounds of noise sigma are one of noise sigma / sqrt(T).
    noise = calibrate_noise(GaussianMechanism(1.0), 1.0, 1e-6)
    assert calibrate_noise(GaussianMechanism(1.0), 1.0, 1e-6, 25) == pytest.approx(
        5.0 * noise, rel=2e-4
    )
    rounds = calibrate(GaussianMechanism(noise * math.sqrt(50.5)), "rounds", 1.0, 1e-6)
    assert rounds == 50


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        (RandomParticipation(0.05, 0.1, 30, 1.0), "noise_multiplier"),
        (DiscreteLaplaceNoise(1.0), "scale"),
        (SkellamNoise(1.0), "mean"),
    ],
)
def test_noise_is_found_under_whatever_name_it_has(mechanism: Mechanism, name: str) -> None:
    found = calibrate_noise(mechanism, 0.5, 1e-4)
    assert found == calibrate(mechanism, name, 0.5, 1e-4)


def test_the_adjacency_is_that_of_the_target() -> None:
    noise = DiscreteGaussianNoise(1.0)
    alone = calibrate_noise(noise, 0.5, 1e-5, adjacency="add")
    assert alone < calibrate_noise(noise, 0.5, 1e-5)
    assert noise.replace(scale=alone).delta(0.5, "add") <= 1e-5
    assert noise.replace(scale=alone * (1 - 1e-9)).delta(0.5, "add") > 1e-5


def test_the_value_that_a_mechanism_had_does_not_matter() -> None:
    values = {calibrate_noise(LocalSampling(0.1, noise), 0.5, 1e-4) for noise in (1e-3, 1.0, 1e3)}
    assert len(values) == 1


def test_where_every_value_reaches_the_target_the_best_of_the_range_is_given() -> None:
    assert calibrate(LocalSampling(0.1, 1.0), "sample_rate", 0.5, 1.0) == 1.0
    assert calibrate(CountSampling(0.1, 5), "floor", 0.5, 1.0) == 0
    assert calibrate(Shuffled(tn.DirectEncoding(1.0, 3), 9), "nodes", 2.0, 1e-9) == 1
    assert calibrate(LocalSampling(0.0, 1.0), "rounds", 0.5, 1e-9) == 10**9
    training = WeakClientSampling(0.1, 0.1, 1.0)
    largest = calibrate(RandomParticipation(0.1, 0.1, 3, 1.0), "local_size", 0.5,
                        training.delta(0.5) * 1.001)  # fmt: skip
    assert largest == 10**10


@pytest.mark.parametrize(
    ("mechanism", "parameter", "epsilon", "delta"),
    [
        (GaussianMechanism(1.0), "noise_multiplier", 1.0, 0.0),
        (RandomParticipation(0.5, 0.5, 3, 1.0), "local_size", 0.01, 1e-9),
        (RandomParticipation(0.5, 0.5, 3, 1.0), "noise_multiplier", 0.0, 0.0),
        (CountSampling(1.0, 3), "floor", 1.0, 1e-6),
        (GaussianMechanism(1.0), "rounds", 0.1, 1e-9),
    ],
)
def test_a_target_out_of_reach_is_refused_by_its_numbers(
    mechanism: Mechanism, parameter: str, epsilon: float, delta: float
) -> None:
    kind = type(mechanism).__name__
    message = f"no {parameter} reaches epsilon = {epsilon} at delta = {delta} with {kind}"
    with pytest.raises(InvalidValueError, match=message):
        calibrate(mechanism, parameter, epsilon, delta)


def test_all_of_the_range_of_integer_noise_is_searched() -> None:
    wide = DiscreteLaplaceNoise(700_000.0)
    delta = wide.delta(0.0)
    assert calibrate_noise(wide, 0.0, delta) == pytest.approx(700_000.0, rel=1e-6)
    with pytest.raises(InvalidValueError, match=r"no scale reaches epsilon = 0\.0"):
        calibrate_noise(wide, 0.0, 0.0)


@pytest.mark.parametrize(("mechanism", "epsilon", "delta"), TARGETS)
def test_a_name_that_is_no_parameter_is_refused(
    mechanism: Mechanism, epsilon: float, delta: float
) -> None:
    for name in ("sigma", "", None, 3, "oracle", "participation"):
        with pytest.raises(InvalidValueError, match=r"parameter must be one of .*'rounds'"):
            calibrate(mechanism, name, epsilon, delta)  # type: ignore[arg-type]


def test_a_mechanism_without_noise_has_none_to_calibrate() -> None:
    with pytest.raises(InvalidTypeError, match=r"mechanism must have noise.*CountSampling"):
        calibrate_noise(CountSampling(0.5, 100), 1.0, 1e-6)
    with pytest.raises(InvalidTypeError, match="mechanism must be a mechanism"):
        calibrate_noise("gauss", 1.0, 1e-6)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="mechanism must be a mechanism"):
        calibrate(None, "rounds", 1.0, 1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"epsilon": -1.0}, InvalidValueError, "epsilon"),
        ({"epsilon": math.inf}, InvalidValueError, "epsilon"),
        ({"epsilon": [1.0]}, InvalidTypeError, "epsilon"),
        ({"delta": 1.5}, InvalidValueError, "delta"),
        ({"delta": math.nan}, InvalidValueError, "delta"),
        ({"delta": "1"}, InvalidTypeError, "delta"),
        ({"rounds": 0}, InvalidValueError, "rounds"),
        ({"rounds": 1.5}, InvalidTypeError, "rounds"),
        ({"adjacency": "replace"}, InvalidValueError, "adjacency"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], name: str
) -> None:
    given = {"epsilon": 1.0, "delta": 1e-6, **arguments}
    with pytest.raises(error, match=f"{name} must be"):
        calibrate(LocalSampling(0.1, 1.0), "noise_multiplier", **given)


@pytest.mark.parametrize("threshold", [1, 20])
def test_the_rarest_rates_are_found_or_refused_and_never_zero(threshold: int) -> None:
    mechanism = SampleAndThreshold(0.5, threshold)
    found = calibrate(mechanism, "rate", 1.0, 1e-280)
    assert 0.0 < found <= 1e-280 ** (1 / threshold)
    assert SampleAndThreshold(float(found), threshold).delta(1.0) <= 1e-280
    assert SampleAndThreshold(found * 1.01, threshold).delta(1.0) > 1e-280
    for delta in (0.0, 1e-300):
        with pytest.raises(InvalidValueError, match="no rate reaches"):
            calibrate(mechanism, "rate", 1.0, delta)
