"""The engine in one process: the same numbers as its halves, the cost, and how it goes on."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from turnout import _core
from turnout.accounting import PrivacyLedger, compose
from turnout.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
)
from turnout.federated import SGD, Client, CosineDecay, InProcessEngine, Server
from turnout.federated.sums import (
    Gathering,
    add_gradients,
    clipped_rows,
    structure_of,
    zeros,
)

MODES = ("trusted_server", "always_send", "participants_only")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("varies", [False, True])
def test_it_ends_with_the_bits_of_clients_and_a_server(
    problem: Any, plan_of: Any, mode: str, varies: bool
) -> None:
    plan = plan_of(mode=mode)
    present = {number: np.arange(number % 3, problem.clients, 2) for number in range(8)}
    engine = problem.engine(plan)
    fast = engine.run(8, available=present.__getitem__ if varies else None)

    server = Server(
        plan, problem.start(), SGD(CosineDecay(0.2, rounds=12, final=0.05), momentum=0.5)
    )
    halves = [
        Client(plan, problem.size, parameters=problem.columns, index=index)
        for index in range(problem.clients)
    ]
    for number in range(8):
        here = present[number] if varies else np.arange(problem.clients)
        server.open(here.size)
        model = server.parameters
        # Any order: sums of integers are exact.
        for index in reversed(here):
            server.add(
                halves[index].answer(
                    number, lambda e, c=index, m=model: problem.gradients(m, int(c), e)
                ),
                index,
            )
        server.close()
    np.testing.assert_array_equal(fast, server.parameters)
    assert np.abs(fast).max() > 0.0


@pytest.mark.parametrize("mode", MODES)
def test_batches_give_the_same_bits(problem: Any, plan_of: Any, mode: str) -> None:
    plan = plan_of(mode=mode)
    one = problem.engine(plan).run(6)
    calls, problem.calls = problem.calls, 0
    np.testing.assert_array_equal(problem.engine(plan, batched=True).run(6), one)
    assert problem.calls <= 7 < calls  # a trial and six rounds


def test_it_learns(problem: Any, plan_of: Any) -> None:
    plan = plan_of(noise_multiplier=0.2, clip=2.0)
    model = InProcessEngine(
        plan, problem.start(), problem.gradients, problem.size, SGD(0.3), clients=problem.clients
    ).run(60)
    assert np.abs(model - np.linspace(-1.0, 1.0, 3)).max() < 0.15


def test_without_noise_and_sampling_it_is_gradient_descent(problem: Any, plan_of: Any) -> None:
    plan = plan_of(
        noise="none", noise_multiplier=None, clip=np.inf, client_rate=1.0, sample_rate=1.0
    )
    model = InProcessEngine(
        plan, problem.start(), problem.gradients, problem.size, SGD(0.5), clients=problem.clients
    ).run(5)
    rows, targets = problem.rows.reshape(-1, 3), problem.targets.ravel()
    expected = np.zeros(3)
    for _ in range(5):
        expected -= 0.5 * (rows.T @ (rows @ expected - targets)) / len(rows)
    np.testing.assert_allclose(model, expected, rtol=1e-12)


def test_the_budget_is_refused_before_any_gradient(problem: Any, plan_of: Any) -> None:
    plan = plan_of(noise_multiplier=None, epsilon=3.0, delta=1e-5, rounds=5)
    engine = problem.engine(plan)
    engine.run(5)
    calls, model = problem.calls, engine.server.parameters
    with pytest.raises(BudgetExceededError):
        engine.run(6)
    assert problem.calls == calls
    np.testing.assert_array_equal(engine.server.parameters, model)
    assert engine.server.round == 5


def test_ledgers_of_clients_count_the_rounds_in_which_they_were_available(
    problem: Any, plan_of: Any
) -> None:
    plan = plan_of(noise_multiplier=4.0)
    engine = problem.engine(plan, ledger=PrivacyLedger(20.0, 1e-5))
    engine.run(3)
    engine.run(5, available=lambda number: [7, 9] if number == 3 else np.array([9]))
    for index, rounds in ((0, 3), (7, 4), (9, 5)):
        expected = compose([(plan.mechanism, rounds)]).epsilon(1e-5)
        assert engine._client_ledger(index).spent() == expected
    assert engine.server.ledger is not None
    assert engine.server.ledger.spent() == compose([(plan.mechanism, 5)]).epsilon(1e-5)
    with pytest.raises(InvalidValueError, match="index must be an integer from 0 to 39"):
        engine._client_ledger(40)
    with pytest.raises(InvalidValueError, match="has no ledger"):
        problem.engine(plan)._client_ledger(0)


def test_the_cost_follows_the_participants_not_the_clients(plan_of: Any) -> None:
    # A pass over 10^10 clients would take gigabytes and minutes.
    plan = plan_of(client_rate=1e-9, local_size=1, sample_rate=1.0, seed=None)
    asked: list[int] = []

    def gradients(model: Any, client: int, elements: Any) -> Any:
        asked.append(client)
        return np.ones((1, 2))

    engine = InProcessEngine(plan, np.zeros(2), gradients, 1, SGD(0.1), clients=10**10)
    tracemalloc.start()
    engine.run(5)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert 5 < len(asked) < 200
    assert max(asked) > 10**8


def test_a_round_that_fails_is_abandoned_and_stays_paid(problem: Any, plan_of: Any) -> None:
    plan = plan_of(client_rate=1.0)
    broken = [False]

    def gradients(model: Any, client: int, elements: Any) -> Any:
        if broken[0]:
            raise OSError("the disk is gone")
        return problem.gradients(model, client, elements)

    engine = InProcessEngine(
        plan, problem.start(), gradients, 6, SGD(0.1), clients=40, ledger=PrivacyLedger(90.0, 1e-5)
    )
    engine.run(1)
    model = engine.server.parameters
    broken[0] = True
    with pytest.raises(OSError, match="the disk is gone"):
        engine.run(2)
    np.testing.assert_array_equal(engine.server.parameters, model)
    broken[0] = False
    engine.run(3)
    assert engine.server.ledger is not None
    assert sum(entry.rounds for entry in engine.server.ledger.entries) == 3


def test_sizes_may_differ_by_client(plan_of: Any) -> None:
    seen: dict[int, int] = {}

    def gradients(model: Any, client: int, elements: Any) -> Any:
        seen[client] = max(seen.get(client, 0), int(elements.max()) + 1)
        return np.ones((elements.size, 1))

    sizes = [0, 1, 6, 3]
    engine = InProcessEngine(plan_of(client_rate=1.0), np.zeros(1), gradients, sizes, SGD(0.1))
    engine.run(40)
    assert seen == {1: 1, 2: 6, 3: 3}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sizes": 7}, InvalidValueError, "sizes must be at most 6 = local_size"),
        ({"sizes": [1, 7], "clients": None}, InvalidValueError, r"sizes\[1\] must be from 0 to 6"),
        ({"sizes": [1, 2]}, InvalidValueError, "clients must be 2"),
        ({"sizes": []}, InvalidValueError, "sizes must hold"),
        ({"sizes": [1.5]}, InvalidTypeError, "sizes must hold whole numbers"),
        ({"clients": None}, InvalidValueError, "clients must be given"),
        ({"clients": 0}, InvalidValueError, "clients must be an integer from 1"),
        ({"gradients": None}, InvalidTypeError, "gradients must be a function"),
        ({"plan": None}, InvalidTypeError, "plan must be a RandomParticipationSGD, got None"),
        ({"checkpoint": 5}, InvalidTypeError, "checkpoint must be the path of a file, got 5"),
        ({"checkpoint": "/"}, InvalidValueError, "checkpoint must be a file in a folder"),
        ({"checkpoint": "no/such/folder/a"}, InvalidValueError, "folder that exists, got 'no/such"),
        ({"parameters": [1, 2]}, InvalidTypeError, "parameters"),
    ],
)
def test_wrong_arguments_are_named(
    problem: Any, plan_of: Any, change: dict[str, Any], error: Any, message: str
) -> None:
    usual = {
        "parameters": problem.start(), "gradients": problem.gradients, "sizes": 6,
        "optimizer": SGD(0.1), "clients": 40, "plan": plan_of(),
    }  # fmt: skip
    with pytest.raises(error, match=message):
        InProcessEngine(**{**usual, **change})


def test_rounds_are_the_total_and_functions_are_functions(problem: Any, plan_of: Any) -> None:
    engine = problem.engine(plan_of())
    engine.run(2)
    engine.run(2)
    with pytest.raises(InvalidValueError, match="of which 2 are over, got 1"):
        engine.run(1)
    for name in ("available", "callback"):
        with pytest.raises(InvalidTypeError, match=f"{name} must be a function, got 7"):
            engine.run(3, **{name: 7})
    assert engine.server.round == 2


@pytest.mark.parametrize("given", [[], [0, 0], [40], [-1], [1.5], "0", None])
def test_wrong_availability_is_named_before_anything_is_paid(
    problem: Any, plan_of: Any, given: Any
) -> None:
    engine = problem.engine(plan_of(), ledger=PrivacyLedger(9.0, 1e-5))
    with pytest.raises((InvalidValueError, InvalidTypeError), match="available must"):
        engine.run(1, available=lambda number: given)
    assert engine.server.ledger is not None
    assert engine.server.ledger.entries == ()
    assert engine.server.round == 0


def test_gradients_of_several_clients_add_up_as_those_of_each(plan_of: Any) -> None:
    """In one call or many, whatever form they have, and though a function fills one buffer."""
    plan = plan_of(local_size=None, nominal_local_size=3)
    structure = structure_of({"a": np.zeros(1500, np.float32), "b": np.zeros(500)})
    random = np.random.default_rng(0)
    buffer = np.empty((40, 2000))
    gathering = Gathering(plan, plan.clip, structure.total)
    together, each = zeros(plan, structure.total), zeros(plan, structure.total)
    finite, calls = 0, 0
    # 16 rows fit together: some clients have more, some fill what is left exactly.
    for client, rows in enumerate([1, 3, 12, 1, 40, 2, 16, 17, 5, 5, 7, 1]):
        buffer[:rows] = random.normal(size=(rows, 2000)) / random.uniform(0.1, 100.0, (rows, 1))
        if client % 4 == 1:
            buffer[0, -1] = np.nan
        given: Any = buffer[:rows]
        if client % 3 == 2:
            given = {"a": given[:, :1500].astype(np.float32), "b": given[:, 1500:]}
        elif client % 3 == 1:
            given = given.astype(np.float32)
        alone, usable = add_gradients(plan, given, [rows], structure, plan.clip)
        each, finite = each + alone, finite + usable
        for values, usable in gathering.take(clipped_rows(plan, given, [rows], structure)):
            together, finite, calls = together + values, finite - usable, calls + 1
        buffer[:] = np.inf
    for values, usable in gathering.rest():
        together, finite, calls = together + values, finite - usable, calls + 1
    assert not [*gathering.rest()]
    np.testing.assert_array_equal(together, each)
    assert np.any(each)
    assert finite == 0
    assert calls == 1


def test_a_trusted_server_asks_the_core_less_often_than_there_are_clients(
    problem: Any, plan_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    clip = _core.clip_to_grid

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return clip(*arguments)

    monkeypatch.setattr(_core, "clip_to_grid", counted)
    problem.engine(plan_of(client_rate=1.0)).run(3)
    assert problem.clients > 1
    assert calls == 3
