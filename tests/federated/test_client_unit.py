"""A client as the unit: clipped as a whole, accounted as one element, with any number of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from turnout.accounting import LocalSampling, RandomParticipation, WeakClientSampling
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import (
    SGD,
    Client,
    InProcessEngine,
    RandomParticipationSGD,
    Server,
    local_steps,
)

MODES = ("trusted_server", "always_send", "participants_only")
EPSILONS = np.linspace(0.0, 3.0, 13)


@pytest.fixture
def unit_of(plan_of: Any) -> Any:
    def make(**changes: Any) -> RandomParticipationSGD:
        plan = plan_of(**{"unit": "client", "local_size": None, **changes})
        assert isinstance(plan, RandomParticipationSGD)
        return plan

    return make


@pytest.mark.parametrize("mode", ["trusted_server", "always_send"])
@pytest.mark.parametrize("sample_rate", [0.1, 1.0])
def test_a_round_costs_a_gaussian_that_is_sampled_at_the_rate_of_clients(
    unit_of: Any, mode: str, sample_rate: float
) -> None:
    mechanism = unit_of(mode=mode, sample_rate=sample_rate).mechanism
    sampled = LocalSampling(0.3, 1.5)
    for epsilon in EPSILONS:
        assert mechanism.delta(epsilon) == pytest.approx(sampled.delta(epsilon), rel=1e-9)
    rounds = mechanism.compose(30).epsilon(1e-5)
    assert rounds == pytest.approx(sampled.compose(30).epsilon(1e-5), rel=1e-9)
    # One element for each client had to be counted beside itself.
    assert rounds < 0.8 * RandomParticipation(0.3, 1.0, 1, 1.5).compose(30).epsilon(1e-5)


def test_who_sees_who_takes_part_sees_a_gaussian_then(unit_of: Any) -> None:
    mechanism = unit_of(mode="participants_only", sample_rate=0.1).mechanism
    assert mechanism == WeakClientSampling(0.3, 1.0, 1.5)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("size", [1, 6, 200])
def test_all_that_a_client_has_moves_the_sum_by_one_clip(
    unit_of: Any, size: int, batched: bool
) -> None:
    """All noise and draws are the same with a client's data and without them."""

    def total(sizes: list[int]) -> npt.NDArray[Any]:
        plan = unit_of(client_rate=1.0, clip=0.5, noise="exact")
        data = np.random.default_rng(1).normal(size=(4, 200, 3))
        data[2] = 1e6
        engine = InProcessEngine(
            plan, np.zeros(3), lambda model, client, elements: data[client, elements],
            sizes, SGD(1.0), batched=batched,
        )  # fmt: skip
        seen = []
        close = engine.server.close

        def closing() -> Any:
            seen.append(engine.server._open.gradient() / plan._scale(4))  # type: ignore[union-attr]
            return close()

        engine.server.close = closing  # type: ignore[method-assign]
        engine.run(1)
        return np.asarray(seen[0])

    change = np.linalg.norm(total([5, 7, size, 3]) - total([5, 7, 0, 3]))
    assert change <= 0.5 + 1e-12
    if size > 1:  # of one element none may be sampled
        assert change > 0.499


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("noise", ["exact", "float", "none"])
def test_engine_and_halves_end_with_the_same_model(
    problem: Any, unit_of: Any, mode: str, noise: str
) -> None:
    more: dict[str, Any] = {"noise_multiplier": None} if noise == "none" else {}
    plan = unit_of(mode=mode, noise=noise, **more)
    whole = problem.engine(plan).run(5)
    batched = problem.engine(plan, batched=True).run(5)
    server = Server(plan, problem.start(), problem.engine(plan).server._optimizer)
    clients = [Client(plan, 6, parameters=3, index=index) for index in range(problem.clients)]
    for _ in range(5):
        number = server.open(available=len(clients))
        model = server.parameters
        for index, client in enumerate(clients):
            update = client.answer(
                number,
                lambda elements, index=index, model=model: problem.gradients(
                    model, index, elements
                ),
            )
            server.add(update, index)
        server.close()
    np.testing.assert_allclose(server.parameters, whole, rtol=1e-12)
    np.testing.assert_allclose(batched, whole, rtol=1e-12)


def test_a_client_is_the_mean_of_its_gradients_and_has_the_weight_of_any_other(
    unit_of: Any,
) -> None:
    plan = unit_of(
        client_rate=1.0, sample_rate=1.0, noise="none", noise_multiplier=None, clip=np.inf
    )
    data = np.random.default_rng(2).normal(size=(3, 9, 2))
    sizes = [9, 1, 4]
    engine = InProcessEngine(
        plan, np.zeros(2), lambda model, client, elements: data[client, elements], sizes, SGD(1.0)
    )
    means = [data[client, :size].mean(axis=0) for client, size in enumerate(sizes)]
    np.testing.assert_allclose(-engine.run(1), np.mean(means, axis=0), rtol=1e-12)


@pytest.mark.parametrize("batched", [False, True])
def test_a_client_with_a_gradient_that_is_not_finite_counts_as_zero(
    unit_of: Any, batched: bool, caplog: Any
) -> None:
    plan = unit_of(client_rate=1.0, sample_rate=1.0, clip=1e3, noise_multiplier=1e-6, grid_bits=8)
    data = np.ones((3, 2, 2))
    data[1, 0, 0] = np.nan
    data[2] = np.finfo(float).max  # the sum of both overflows

    engine = InProcessEngine(
        plan, np.zeros(2), lambda model, client, elements: data[client, elements],
        2, SGD(1.0), clients=3, batched=batched,
    )  # fmt: skip
    np.testing.assert_allclose(engine.run(1), [-1 / 3, -1 / 3], atol=0.02)
    assert "are not finite" in caplog.text


def averaged(
    problem: Any, rate: float, epochs: int, batch: int, rounds: int
) -> npt.NDArray[np.float64]:
    """Federated averaging as it is written down: each client trains, the models are averaged."""
    model = problem.start()
    for _ in range(rounds):
        models = []
        for client in range(problem.clients):
            own = model.copy()
            for _ in range(epochs):
                for first in range(0, problem.size, batch):
                    rows = problem.rows[client, first : first + batch]
                    errors = rows @ own - problem.targets[client, first : first + batch]
                    own -= rate * rows.T @ errors / len(rows)
            models.append(own)
        model = np.mean(models, axis=0)
    return np.asarray(model)


@pytest.mark.parametrize(("epochs", "batch"), [(1, 6), (3, 6), (2, 4), (2, 1)])
def test_local_steps_are_federated_averaging(
    problem: Any, unit_of: Any, epochs: int, batch: int
) -> None:
    plan = unit_of(
        client_rate=1.0, sample_rate=1.0, noise="none", noise_multiplier=None, clip=np.inf
    )
    update = local_steps(problem.gradients, 0.1, epochs=epochs, batch_size=batch)
    engine = InProcessEngine(
        plan, problem.start(), update, problem.size, SGD(1.0), clients=problem.clients
    )
    expected = averaged(problem, 0.1, epochs, batch, 4)
    np.testing.assert_allclose(engine.run(4), expected, rtol=1e-10)


def test_local_steps_reach_further_in_as_many_rounds(problem: Any, unit_of: Any) -> None:
    plan = unit_of(client_rate=0.5, sample_rate=1.0, clip=2.0, noise_multiplier=0.5)
    truth = np.linspace(-1.0, 1.0, 3)

    def error(gradients: Any) -> float:
        engine = InProcessEngine(
            plan, problem.start(), gradients, problem.size, SGD(1.0), clients=problem.clients
        )
        return float(np.linalg.norm(engine.run(10) - truth))

    many = error(local_steps(problem.gradients, 0.05, epochs=20, batch_size=3))
    assert many < 0.5 * error(local_steps(problem.gradients, 0.05))


def test_local_steps_keep_the_nest_of_a_model(unit_of: Any) -> None:
    model = {"weights": np.ones((2, 2), np.float32), "bias": [np.zeros(1)]}

    def gradients(parameters: Any, elements: Any) -> Any:
        assert parameters["weights"].dtype == np.float32
        many = len(elements)
        return {"weights": np.ones((many, 2, 2)), "bias": [np.full((many, 1), 2.0)]}

    found = local_steps(gradients, 0.5, epochs=3)(model, np.arange(4))
    np.testing.assert_allclose(found, [[3.0, 1.5, 1.5, 1.5, 1.5]])


def test_local_steps_that_diverge_count_as_zero(problem: Any, unit_of: Any) -> None:
    plan = unit_of(client_rate=1.0, noise_multiplier=1e-6, grid_bits=8)
    wild = local_steps(problem.gradients, 1e200, epochs=9)
    client = Client(plan, 6, parameters=3)
    update = client.answer(0, lambda elements: wild(problem.start(), 0, elements))
    assert update is not None
    assert not update.values.any()


def test_a_plan_survives_its_description_and_differs_by_its_unit(unit_of: Any) -> None:
    plan = unit_of()
    assert RandomParticipationSGD.from_dict(plan.to_dict()) == plan
    nominal = unit_of(unit="element", nominal_local_size=1)
    assert plan.fingerprint != nominal.fingerprint
    assert "one client has all of its elements or none" in str(plan.guarantee)
    assert "depends, to the last bit, on its data and the model alone" in str(plan.guarantee)
    assert "one client changes the gradients" in str(unit_of(batch_slack=0.1).guarantee)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        ({"unit": "user"}, InvalidValueError, "unit must be"),
        ({"local_size": 6}, InvalidValueError, "local_size must be left out with unit = 'client'"),
        ({"nominal_local_size": 6}, InvalidValueError, "nominal_local_size must be left out"),
    ],
)
def test_plans_that_make_no_sense_are_refused(
    unit_of: Any, make: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        unit_of(**make)


def test_calls_that_make_no_sense_are_refused(problem: Any, unit_of: Any) -> None:
    plan = unit_of(client_rate=1.0, sample_rate=1.0)
    with pytest.raises(InvalidTypeError, match="gradients must be a function"):
        local_steps(None, 0.1)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="learning_rate must be a finite number above 0"):
        local_steps(problem.gradients, 0.0)
    with pytest.raises(InvalidValueError, match="epochs must be"):
        local_steps(problem.gradients, 0.1, epochs=0)
    with pytest.raises(InvalidValueError, match="batch_size must be"):
        local_steps(problem.gradients, 0.1, batch_size=0)
    steps = local_steps(problem.gradients, 0.1)
    engine = InProcessEngine(
        plan, problem.start(), steps, 6, SGD(1.0), clients=problem.clients, batched=True
    )
    with pytest.raises(InvalidValueError, match="batched must be False with local_steps"):
        engine.run(1)
    with pytest.raises(InvalidValueError, match="one gradient for each of the 6 elements of a st"):
        local_steps(lambda model, elements: np.ones((2, 3)), 0.1)(np.zeros(3), np.arange(6))
    client = Client(plan, 6, parameters=3)
    with pytest.raises(InvalidValueError, match="at least one gradient, got none"):
        client.answer(0, lambda elements: np.zeros((0, 3)))
