"""Adam and AdamW against PyTorch's algorithm written out, and against optax."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import (
    Adam,
    AdamW,
    CosineDecay,
    Optimizer,
    RandomParticipationSGD,
    Schedule,
    Server,
    Warmup,
)

GRADIENTS = np.random.default_rng(3).normal(size=(40, 5))
START = np.random.default_rng(4).normal(size=5)
OPTIMIZERS = [
    Adam(0.1),
    Adam(Warmup(5, CosineDecay(0.1, 30)), beta1=0.0, eps=1e-3),
    Adam(0.1, beta2=0.0, eps=0.5),
    AdamW(0.1, beta1=0.8, beta2=0.99),
    AdamW(CosineDecay(0.1, 30), weight_decay=0.3),
]


def trained(optimizer: Optimizer) -> npt.NDArray[Any]:
    model, state = START.copy(), optimizer.initial_state(5)
    for number, gradient in enumerate(GRADIENTS):
        model, state = optimizer.step(model, gradient, state, number)
    return model


def pytorch(optimizer: Adam) -> list[float]:
    """torch.optim.Adam and AdamW of their documentation, one number at a time."""
    rate = optimizer.learning_rate
    decay = optimizer.weight_decay if isinstance(optimizer, AdamW) else 0.0
    found = []
    for place, start in enumerate(START.tolist()):
        number = start
        first = second = 0.0
        for at, gradient in enumerate(GRADIENTS[:, place].tolist()):
            gamma = rate(at) if isinstance(rate, Schedule) else rate
            number -= gamma * decay * number
            first = optimizer.beta1 * first + (1 - optimizer.beta1) * gradient
            second = optimizer.beta2 * second + (1 - optimizer.beta2) * gradient * gradient
            mean = first / (1 - optimizer.beta1 ** (at + 1))
            square = second / (1 - optimizer.beta2 ** (at + 1))
            number -= gamma * mean / (math.sqrt(square) + optimizer.eps)
        found.append(number)
    return found


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_are_those_of_pytorch(optimizer: Adam) -> None:
    np.testing.assert_allclose(trained(optimizer), pytorch(optimizer), rtol=1e-11)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_are_those_of_optax(optimizer: Adam) -> None:
    optax = pytest.importorskip("optax")
    words = {"b1": optimizer.beta1, "b2": optimizer.beta2, "eps": optimizer.eps}
    rate = optimizer.learning_rate
    # A function of ours cannot be traced: optax asks for a rate by the number of its step.
    theirs = optax.inject_hyperparams(optax.adam)(learning_rate=0.1, **words)
    if isinstance(optimizer, AdamW):
        theirs = optax.inject_hyperparams(optax.adamw)(
            learning_rate=0.1, weight_decay=optimizer.weight_decay, **words
        )
    model = START.astype(np.float32)
    state = theirs.init(model)
    for at, gradient in enumerate(GRADIENTS.astype(np.float32)):
        now = rate(at) if isinstance(rate, Schedule) else rate
        state.hyperparams["learning_rate"] = now
        changes, state = theirs.update(gradient, state, model)
        model = optax.apply_updates(model, changes)
    np.testing.assert_allclose(trained(optimizer), np.asarray(model), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_change_nothing_that_they_are_given(optimizer: Adam) -> None:
    state = [np.ones(5), np.ones(5), np.array([7])]
    given = [START.copy(), GRADIENTS[0].copy(), *state]
    for array in given:
        array.flags.writeable = False
    first = optimizer.step(given[0], given[1], given[2:], 7)
    second = optimizer.step(given[0], given[1], given[2:], 7)
    for one, other in zip([first[0], *first[1]], [second[0], *second[1]], strict=True):
        assert one.tobytes() == other.tobytes()
        assert not any(np.shares_memory(one, array) for array in given)


def test_rounds_without_a_step_do_not_count_in_the_correction() -> None:
    optimizer = Adam(0.1)
    late, state = START, optimizer.initial_state(5)
    for number, gradient in enumerate(GRADIENTS):
        late, state = optimizer.step(late, gradient, state, number + 1000)
    assert late.tobytes() == trained(optimizer).tobytes()


def test_descriptions_survive_json_and_differ() -> None:
    descriptions = [optimizer.to_dict() for optimizer in OPTIMIZERS]
    assert json.loads(json.dumps(descriptions)) == descriptions
    assert all(descriptions.count(each) == 1 for each in descriptions)
    assert Adam(0.1).to_dict() == {
        "optimizer": "Adam", "learning_rate": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8,
    }  # fmt: skip
    assert AdamW(0.1).to_dict()["weight_decay"] == 0.01
    assert AdamW(0.1, weight_decay=0.0).to_dict() != Adam(0.1).to_dict()


def test_a_checkpoint_carries_the_whole_state(problem: Any, plan_of: Any, tmp_path: Any) -> None:
    def engine(**more: Any) -> Any:
        return type(problem.engine(plan_of()))(
            plan_of(), problem.start(), problem.gradients, problem.size,
            AdamW(CosineDecay(0.1, 12)), clients=problem.clients, **more,
        )  # fmt: skip

    whole = engine().run(8)
    engine(checkpoint=tmp_path / "training.npz").run(3)
    later = engine(checkpoint=tmp_path / "training.npz")
    assert later.resume()
    assert later.run(8).tobytes() == whole.tobytes()


def test_a_state_that_is_not_finite_is_never_kept() -> None:
    """Adam's square of a large gradient overflows while its step is 0."""
    plan = RandomParticipationSGD(1.0, 1.0, clip=1e200, noise_multiplier=1.0, local_size=1, seed=1)
    server = Server(plan, np.zeros(3), Adam(0.1))
    server.open(available=1)
    with pytest.raises(InvalidValueError, match="a state of the optimizer that is not finite"):
        server.close()
    assert server.parameters.tolist() == [0.0] * 3
    assert all(np.isfinite(part).all() for part in server._state)
    assert server.round == 1


@pytest.mark.parametrize(
    "state", [[], [np.ones(5), np.ones(5)], [np.ones(5), np.ones(4), np.ones(1, np.int64)]]
)
def test_a_state_that_does_not_fit_is_refused(state: Any) -> None:
    with pytest.raises(InvalidValueError, match="gradient must have the shape of parameters"):
        Adam(0.1).step(START, GRADIENTS[0], state, 0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Adam(0.0), InvalidValueError, "learning_rate must be a finite number above 0"),
        (lambda: Adam("0.1"), InvalidTypeError, "learning_rate must be a number or a schedule"),
        (lambda: Adam(0.1, beta1=1.0), InvalidValueError, "beta1 must be at least 0 and below 1"),
        (lambda: Adam(0.1, beta2=-0.1), InvalidValueError, "beta2 must be at least 0 and below 1"),
        (lambda: Adam(0.1, beta2=math.nan), InvalidValueError, "beta2 must be"),
        (lambda: Adam(0.1, beta1=(0.9, 0.9)), InvalidTypeError, "beta1 must be"),
        (lambda: Adam(0.1, eps=0.0), InvalidValueError, "eps must be a finite number above 0"),
        (lambda: AdamW(0.1, weight_decay=-1.0), InvalidValueError, "weight_decay must be"),
        (lambda: AdamW(0.1, weight_decay=math.inf), InvalidValueError, "weight_decay must be"),
        (lambda: Adam(0.1).initial_state(-1), InvalidValueError, "parameters must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    make: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
