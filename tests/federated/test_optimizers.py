"""Steps and schedules against PyTorch's algorithm written out, and against optax."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated.optimizers import SGD, CosineDecay, Optimizer, Schedule, Warmup


@dataclass(frozen=True)
class StepDecay(Schedule):
    """A schedule as a user writes one."""

    initial: float
    every: int
    factor: float

    def __call__(self, round: int) -> float:  # noqa: A002
        return self.initial * self.factor ** (round // self.every)


SCHEDULES: list[Schedule] = [
    StepDecay(0.3, 7, 0.5),
    CosineDecay(0.3, 20),
    CosineDecay(0.3, 20, final=0.01),
    Warmup(4, Warmup(2, CosineDecay(0.3, 20))),
    Warmup(4, 0.3),
]
GRADIENTS = np.random.default_rng(3).normal(size=(40, 5))
START = np.random.default_rng(4).normal(size=5)


def trained(optimizer: Optimizer, gradients: npt.NDArray[Any] = GRADIENTS) -> npt.NDArray[Any]:
    model, state = START.copy(), optimizer.initial_state(5)
    for number, gradient in enumerate(gradients):
        model, state = optimizer.step(model, gradient, state, number)
    return model


def pytorch(rates: list[float], momentum: float, nesterov: bool) -> list[float]:
    """torch.optim.SGD of its documentation, one number at a time."""
    parameters = START.tolist()
    buffers: list[float | None] = [None] * 5
    for rate, gradients in zip(rates, GRADIENTS.tolist(), strict=True):
        for place, gradient in enumerate(gradients):
            step = gradient
            if momentum != 0.0:
                old = buffers[place]
                new = gradient if old is None else momentum * old + gradient
                buffers[place] = new
                step = gradient + momentum * new if nesterov else new
            parameters[place] -= rate * step
    return parameters


@pytest.mark.parametrize("schedule", [0.3, *SCHEDULES])
@pytest.mark.parametrize(
    ("momentum", "nesterov"), [(0.0, False), (0.5, False), (0.9, False), (0.9, True)]
)
def test_steps_are_those_of_pytorch(
    schedule: float | Schedule, momentum: float, nesterov: bool
) -> None:
    optimizer = SGD(schedule, momentum, nesterov)
    rates = [schedule(at) if isinstance(schedule, Schedule) else schedule for at in range(40)]
    np.testing.assert_allclose(trained(optimizer), pytorch(rates, momentum, nesterov), rtol=1e-13)


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
def test_steps_are_those_of_optax(momentum: float, nesterov: bool) -> None:
    optax = pytest.importorskip("optax")
    theirs = optax.sgd(optax.cosine_decay_schedule(0.3, 20, alpha=0.1), momentum or None, nesterov)
    model = START.astype(np.float32)
    state = theirs.init(model)
    for gradient in GRADIENTS.astype(np.float32):
        changes, state = theirs.update(gradient, state)
        model = optax.apply_updates(model, changes)
    ours = trained(SGD(CosineDecay(0.3, 20, final=0.03), momentum, nesterov))
    np.testing.assert_allclose(ours, np.asarray(model), rtol=2e-4)


def test_schedules_are_those_of_optax() -> None:
    optax = pytest.importorskip("optax")
    ours = CosineDecay(0.3, 20, 0.01)
    theirs = optax.cosine_decay_schedule(0.3, 20, alpha=0.01 / 0.3)
    for number in range(40):
        assert ours(number) == pytest.approx(float(theirs(number)), rel=1e-5, abs=1e-7)


def test_a_rate_warms_up_as_in_optax() -> None:
    optax = pytest.importorskip("optax")
    theirs = optax.join_schedules(
        [optax.linear_schedule(0.06, 0.3, 4), optax.cosine_decay_schedule(0.3, 20)], [4]
    )
    ours = Warmup(4, CosineDecay(0.3, 20))
    for number in range(30):
        assert ours(number) == pytest.approx(float(theirs(number)), rel=1e-5, abs=1e-7)


def test_schedules_have_the_values_of_their_formulas() -> None:
    assert CosineDecay(0.4, 3)(1) == pytest.approx(0.3, rel=1e-15)
    assert CosineDecay(0.4, 3)(2) == pytest.approx(0.1, rel=1e-15)
    assert CosineDecay(0.4, 3, 0.2)(10**9) == 0.2


@pytest.mark.parametrize("nesterov", [False, True])
def test_steps_change_nothing_that_they_are_given(nesterov: bool) -> None:
    optimizer = SGD(0.5, momentum=0.9, nesterov=nesterov)
    arrays = START.copy(), GRADIENTS[0].copy(), np.ones(5)
    for array in arrays:
        array.flags.writeable = False
    first = optimizer.step(arrays[0], arrays[1], [arrays[2]], 7)
    second = optimizer.step(arrays[0], arrays[1], [arrays[2]], 7)
    assert first[0].tobytes() == second[0].tobytes()
    assert first[1][0].tobytes() == second[1][0].tobytes()
    for result in (first[0], first[1][0]):
        assert not any(np.shares_memory(result, array) for array in arrays)
    plain = SGD(0.5).step(arrays[0], arrays[1], [], 0)
    assert not np.shares_memory(plain[0], arrays[0])


def test_the_state_carries_everything_over() -> None:
    optimizer = SGD(CosineDecay(0.3, 30), momentum=0.9, nesterov=True)
    model, state = START, optimizer.initial_state(5)
    for number, gradient in enumerate(GRADIENTS):
        if number == 17:
            state = [part.copy() for part in state]
        model, state = optimizer.step(model, gradient, state, number)
    assert model.tobytes() == trained(optimizer).tobytes()
    assert SGD(0.1).initial_state(5) == []
    assert [part.tolist() for part in SGD(0.1, 0.9).initial_state(3)] == [[0.0] * 3]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_descriptions_survive_json(schedule: Schedule) -> None:
    optimizer = SGD(schedule, 0.9, nesterov=True)
    description = optimizer.to_dict()
    assert json.loads(json.dumps(description)) == description
    assert description == {
        "optimizer": "SGD",
        "learning_rate": schedule.to_dict(),
        "momentum": 0.9,
        "nesterov": True,
    }
    others = [other.to_dict() for other in SCHEDULES if other != schedule]
    assert schedule.to_dict() not in others
    assert hash(SGD(schedule, 0.9, nesterov=True)) == hash(optimizer)


def test_optimizers_differ_by_their_parameters() -> None:
    class Other(SGD):
        pass

    several = [SGD(0.1), SGD(0.2), SGD(0.1, 0.5), SGD(0.1, 0.5, True), SGD(StepDecay(0.1, 1, 1))]
    assert len(set(several)) == len(several)
    assert SGD(1) == SGD(1.0)
    assert SGD(0.1) != Other(0.1)
    assert SGD(0.1).to_dict() != Other(0.1).to_dict()
    assert repr(SGD(0.1, 0.5)) == "SGD(learning_rate=0.1, momentum=0.5, nesterov=False)"
    assert SGD(0.1).to_dict()["learning_rate"] == 0.1


@dataclass(frozen=True)
class Wrong(Schedule):
    value: Any

    def __call__(self, round: int) -> Any:  # noqa: A002
        return self.value


@pytest.mark.parametrize("rate", [-0.1, math.nan, math.inf])
def test_a_rate_that_makes_no_sense_is_refused(rate: float) -> None:
    with pytest.raises(InvalidValueError, match="learning_rate must give finite numbers"):
        SGD(Wrong(rate)).step(START, START, [], 3)
    with pytest.raises(InvalidTypeError, match="learning_rate must be a real number"):
        SGD(Wrong("fast")).step(START, START, [], 3)


@pytest.mark.parametrize(
    ("momentum", "gradient", "state"),
    [
        (0.0, np.ones(4), []),
        (0.0, np.ones(5), [np.ones(5)]),
        (0.9, np.ones(5), []),
        (0.9, np.ones(5), [np.ones(1)]),
        (0.9, np.ones((5, 1)), [np.ones(5)]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(momentum: float, gradient: Any, state: Any) -> None:
    with pytest.raises(InvalidValueError, match="must have the shape of parameters"):
        SGD(0.1, momentum).step(START, gradient, state, 0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SGD(0.0), InvalidValueError, "learning_rate must be a finite number above 0"),
        (lambda: SGD(math.nan), InvalidValueError, "learning_rate must be"),
        (lambda: SGD(math.inf), InvalidValueError, "learning_rate must be"),
        (lambda: SGD(True), InvalidTypeError, "learning_rate must be a real number, got True"),
        (lambda: SGD(CosineDecay), InvalidTypeError, "learning_rate must be a number or a sch"),
        (lambda: SGD("0.1"), InvalidTypeError, "learning_rate must be a number or a schedule"),
        (lambda: SGD(0.1, 1.0), InvalidValueError, "momentum must be at least 0 and below 1"),
        (lambda: SGD(0.1, math.nan), InvalidValueError, "momentum must be"),
        (lambda: SGD(0.1, 0.9, 1), InvalidTypeError, "nesterov must be True or False, got 1"),
        (lambda: SGD(0.1, nesterov=True), InvalidValueError, "without momentum"),
        (lambda: SGD(0.1, 0.9).initial_state(-1), InvalidValueError, "parameters must be"),
        (lambda: Warmup(0, 0.1), InvalidValueError, "rounds must be"),
        (lambda: Warmup(5, 0.0), InvalidValueError, "then must be a finite number above 0"),
        (lambda: Warmup(5, "0.1"), InvalidTypeError, "then must be a number or a schedule"),
        (lambda: CosineDecay(0.0, 5), InvalidValueError, "initial must be"),
        (lambda: CosineDecay(1.0, 0), InvalidValueError, "rounds must be"),
        (lambda: CosineDecay(1.0, 5.0), InvalidTypeError, "rounds must be"),
        (lambda: CosineDecay(1.0, 5, 2.0), InvalidValueError, "final must be"),
        (lambda: CosineDecay(1.0, 5, math.nan), InvalidValueError, "final must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    make: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
