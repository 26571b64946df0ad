"""Gradients that depend on their batch: each alone, or a margin in the accounting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from turnout.accounting import PrivacyLedger
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.federated import SGD, Client, InProcessEngine, RandomParticipationSGD, one_at_a_time

DATA = np.random.default_rng(0).normal(size=(40, 3))


def batched(elements: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Gradients that know how large their batch is."""
    return {"w": DATA[elements] + 1e-6 * len(elements), "b": [DATA[elements, :1, None]]}


def test_an_element_that_is_left_out_changes_no_other_gradient() -> None:
    alone = one_at_a_time(batched)
    whole, fewer = alone(np.arange(10)), alone(np.arange(9))
    assert np.array_equal(whole["w"][:9], fewer["w"])
    assert np.array_equal(whole["b"][0][:9], fewer["b"][0])
    assert not np.array_equal(batched(np.arange(10))["w"][:9], batched(np.arange(9))["w"])
    assert np.array_equal(whole["w"], DATA[:10] + 1e-6)
    assert whole["b"][0].shape == (10, 1, 1)


def test_a_buffer_that_is_filled_again_and_again_is_read_in_time() -> None:
    buffer = np.zeros((1, 3))

    def filled(elements: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        buffer[:] = DATA[elements]
        return buffer

    assert np.array_equal(one_at_a_time(filled)(np.array([4, 2, 4])), DATA[[4, 2, 4]])


@pytest.mark.parametrize("together", [False, True])
def test_engines_and_clients_take_what_is_computed_alone(together: bool) -> None:
    plan = RandomParticipationSGD(1.0, 0.9, clip=1.0, noise_multiplier=1.0, local_size=10, seed=3)

    def gradients(model: Any, clients: Any, elements: Any) -> Any:
        return model - DATA[10 * clients + elements]

    models = [
        InProcessEngine(plan, np.zeros(3), function, 10, SGD(0.1), clients=4, batched=together).run(
            3
        )
        for function in (gradients, one_at_a_time(gradients))
    ]
    assert np.array_equal(*models)
    client = Client(plan, 10, parameters=3)
    update = client.answer(0, one_at_a_time(lambda elements: DATA[elements]))
    other = Client(plan, 10, parameters=3).answer(0, lambda elements: DATA[elements])
    assert update is not None
    assert other is not None
    assert np.array_equal(update.values, other.values)


def test_a_function_that_gives_more_than_one_gradient_for_an_element_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="one gradient for the one element"):
        one_at_a_time(lambda elements: np.zeros((2, 3)))(np.arange(2))
    with pytest.raises(InvalidValueError, match="at least one index"):
        one_at_a_time(batched)(np.arange(0))
    with pytest.raises(InvalidTypeError, match="gradients must be a function"):
        one_at_a_time(3)  # type: ignore[arg-type]


def plan_of(**changes: Any) -> RandomParticipationSGD:
    settings: dict[str, Any] = {"clip": 1.0, "noise_multiplier": 2.0, "local_size": 30}
    return RandomParticipationSGD(0.1, 0.1, **{**settings, **changes})


def test_a_margin_is_paid_for_by_the_accounting() -> None:
    plain, careful = plan_of(), plan_of(batch_slack=0.25)
    assert careful.noise_multiplier == plain.noise_multiplier == 2.0
    assert careful.batch_slack == 0.25
    assert plain.mechanism is not None
    assert careful.mechanism is not None
    # Rounded down: noise that is less by a bit is not claimed.
    covered = careful.mechanism.to_dict()["noise_multiplier"]
    assert covered == math.nextafter(1.6, 0.0)
    assert careful.mechanism == plan_of(noise_multiplier=covered).mechanism
    assert careful.mechanism.delta(0.5) > plain.mechanism.delta(0.5)
    assert RandomParticipationSGD.from_dict(careful.to_dict()) == careful != plain
    lacking = {name: value for name, value in careful.to_dict().items() if name != "batch_slack"}
    with pytest.raises(CorruptDataError, match="expected the fields"):
        RandomParticipationSGD.from_dict(lacking)


@pytest.mark.parametrize("slack", [1e-4, 0.1, 1.0 / 3.0])
def test_noise_that_is_calibrated_covers_the_margin(slack: float) -> None:
    target: dict[str, Any] = {"noise_multiplier": None, "epsilon": 1.0, "delta": 1e-5, "rounds": 1}
    plain, careful = plan_of(**target), plan_of(**target, batch_slack=slack)
    assert careful.noise_multiplier == pytest.approx((1.0 + slack) * plain.noise_multiplier)
    ledger = PrivacyLedger(1.0, 1e-5)
    assert careful.mechanism is not None
    ledger.spend(careful.mechanism)
    assert ledger.spent() <= 1.0


@pytest.mark.parametrize("slack", [-0.1, math.inf, math.nan, 1e4])
def test_margins_that_are_none_are_refused(slack: float) -> None:
    with pytest.raises(InvalidValueError, match="batch_slack must be"):
        plan_of(batch_slack=slack)
