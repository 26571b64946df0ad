"""The engine in one process: the same numbers as its halves, the cost, and how it goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.accounting import LocalSampling, PrivacyLedger, compose
from turnout.errors import (
    BudgetExceededError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    ProtocolError,
)
from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD, StepDecay

MODES = ("trusted_server", "always_send", "participants_only")


def engine_of(problem: Any, plan: RandomParticipationSGD, **more: Any) -> InProcessEngine:
    return InProcessEngine(
        plan,
        problem.start(),
        problem.gradients,
        problem.size,
        SGD(StepDecay(0.2, every=4, factor=0.5), momentum=0.5),
        clients=problem.clients,
        **more,
    )


@pytest.fixture
def plan_of() -> Any:
    def make(**changes: Any) -> RandomParticipationSGD:
        chosen: dict[str, Any] = {
            "client_rate": 0.3, "sample_rate": 0.5, "clip": 1.0, "noise_multiplier": 1.5,
            "local_size_bound": 6, "seed": 11,
        }  # fmt: skip
        return RandomParticipationSGD(**{**chosen, **changes})

    return make


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("varies", [False, True])
def test_it_ends_with_the_bits_of_clients_and_a_server(
    problem: Any, plan_of: Any, mode: str, varies: bool
) -> None:
    plan = plan_of(mode=mode)
    present = {number: np.arange(number % 3, problem.clients, 2) for number in range(8)}
    engine = engine_of(problem, plan)
    fast = engine.run(8, available=present.__getitem__ if varies else None)

    server = plan.server(problem.start(), SGD(StepDecay(0.2, every=4, factor=0.5), momentum=0.5))
    halves = [
        plan.client(problem.size, parameters=problem.columns, index=index)
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
                )
            )
        server.close()
    np.testing.assert_array_equal(fast, server.parameters)
    assert np.abs(fast).max() > 0.0


@pytest.mark.parametrize("mode", MODES)
def test_batches_give_the_same_bits(problem: Any, plan_of: Any, mode: str) -> None:
    plan = plan_of(mode=mode)
    one = engine_of(problem, plan).run(6)
    calls, problem.calls = problem.calls, 0
    np.testing.assert_array_equal(engine_of(problem, plan, batched=True).run(6), one)
    assert problem.calls <= 6 < calls


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
    engine = engine_of(problem, plan)
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
    engine = engine_of(problem, plan, ledger=PrivacyLedger(20.0, 1e-5))
    engine.run(3)
    engine.run(5, available=lambda number: [7, 9] if number == 3 else np.array([9]))
    for index, rounds in ((0, 3), (7, 4), (9, 5)):
        expected = compose([(plan.mechanism, rounds)]).epsilon(1e-5)
        assert engine.client_ledger(index).spent() == expected
    assert engine.server.ledger is not None
    assert engine.server.ledger.spent() == compose([(plan.mechanism, 5)]).epsilon(1e-5)
    with pytest.raises(InvalidValueError, match="index must be an integer from 0 to 39"):
        engine.client_ledger(40)
    with pytest.raises(InvalidValueError, match="has no ledger"):
        engine_of(problem, plan).client_ledger(0)


def test_the_cost_follows_the_participants_not_the_clients(plan_of: Any) -> None:
    # A pass over 10^10 clients would take gigabytes and minutes.
    plan = plan_of(client_rate=1e-9, local_size_bound=1, sample_rate=1.0, seed=None)
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


@pytest.mark.parametrize("rounds", [1, 3, 7])
def test_a_checkpoint_goes_on_to_the_same_model(
    problem: Any, plan_of: Any, tmp_path: Path, rounds: int
) -> None:
    plan = plan_of(noise_multiplier=None, epsilon=9.0, delta=1e-5, rounds=10)
    whole = engine_of(problem, plan)
    expected = whole.run(10)
    path = tmp_path / "training.npz"
    first = engine_of(problem, plan, checkpoint=path, checkpoint_every=rounds)
    assert not first.resume()
    first.run(8)
    second = engine_of(problem, plan, checkpoint=path)
    assert second.resume()
    assert second.server.round == 8 - 8 % rounds
    np.testing.assert_array_equal(second.run(10), expected)
    assert second.server.ledger == whole.server.ledger
    assert engine_of(problem, plan, checkpoint=path).resume()


def test_rounds_after_the_last_checkpoint_stay_paid_without_a_seed(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    plan, path = plan_of(seed=None), tmp_path / "training.npz"
    ledger = PrivacyLedger(90.0, 1e-5)
    first = engine_of(problem, plan, checkpoint=path, checkpoint_every=4, ledger=ledger)
    first.run(6)
    second = engine_of(
        problem, plan, checkpoint=path, checkpoint_every=4, ledger=PrivacyLedger(90.0, 1e-5)
    )
    assert second.resume()
    assert second.server.ledger == ledger
    # Clients have answered rounds 4 and 5 and would refuse to answer them again.
    assert second.server.round == 6
    before = engine_of(
        problem, plan, checkpoint=tmp_path / "b.npz", checkpoint_every=9,
        ledger=PrivacyLedger(90.0, 1e-5),
    )  # fmt: skip
    before.run(2)
    again = engine_of(
        problem, plan, checkpoint=tmp_path / "b.npz", ledger=PrivacyLedger(90.0, 1e-5)
    )
    assert again.resume()
    assert again.server.round == 2


def test_an_earlier_training_is_not_written_over(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    path = tmp_path / "training.npz"
    engine_of(problem, plan_of(), checkpoint=path).run(2)
    before = path.read_bytes()
    ledger = PrivacyLedger(90.0, 1e-5)
    again = engine_of(problem, plan_of(seed=12), checkpoint=path, ledger=ledger)
    with pytest.raises(
        ProtocolError, match=r"training\.npz is there from an earlier training: call resume"
    ):
        again.run(1)
    assert path.read_bytes() == before
    assert ledger.entries == ()
    unseeded = plan_of(seed=None)
    path = tmp_path / "lost.npz"
    begun = engine_of(
        problem, unseeded, checkpoint=path, checkpoint_every=9, ledger=PrivacyLedger(90.0, 1e-5)
    )
    begun.run(1)
    assert not path.exists()
    again = engine_of(problem, unseeded, checkpoint=path, ledger=PrivacyLedger(90.0, 1e-5))
    with pytest.raises(ProtocolError, match=r"lost\.npz\.ledger\.json is there"):
        again.run(1)


def test_checkpoints_of_another_training_are_refused(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    path = tmp_path / "training.npz"
    engine_of(problem, plan_of(), checkpoint=path).run(2)
    with pytest.raises(PlanMismatchError, match="another plan: seed = 11, this has 12"):
        engine_of(problem, plan_of(seed=12), checkpoint=path).resume()
    with pytest.raises(PlanMismatchError, match="has no ledger"):
        engine_of(problem, plan_of(), checkpoint=path, ledger=PrivacyLedger(1.0, 1e-5)).resume()
    plan = plan_of()
    with pytest.raises(PlanMismatchError, match="another model"):
        plan.server(np.zeros(4), SGD(0.1), checkpoint=path).resume()
    with pytest.raises(PlanMismatchError, match=r"optimizer: .*; momentum = 0\.5, this has 0\.0"):
        plan.server(np.zeros(3), SGD(0.1), checkpoint=path).resume()
    with pytest.raises(ProtocolError, match="no checkpoint was named"):
        plan.server(np.zeros(3), SGD(0.1)).resume()
    begun = engine_of(problem, plan, checkpoint=tmp_path / "other.npz")
    begun.run(1)
    with pytest.raises(ProtocolError, match="the training has begun"):
        begun.resume()
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(CorruptDataError, match=r"training\.npz"):
        engine_of(problem, plan, checkpoint=path).resume()
    budget = plan_of(noise_multiplier=9.0)
    other = tmp_path / "budget.npz"
    engine_of(problem, budget, checkpoint=other, ledger=PrivacyLedger(9.0, 1e-5)).run(1)
    with pytest.raises(PlanMismatchError, match=r"epsilon = 9\.0"):
        engine_of(problem, budget, checkpoint=other, ledger=PrivacyLedger(8.0, 1e-5)).resume()


def test_a_ledger_that_knows_more_than_the_file_is_not_forgotten(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    plan, other = plan_of(seed=None), LocalSampling(0.01, 9.0)
    for every in (1, 9):
        path, shared = tmp_path / f"{every}.npz", PrivacyLedger(90.0, 1e-5)
        shared.spend(other, 2)
        first = engine_of(problem, plan, checkpoint=path, checkpoint_every=every, ledger=shared)
        first.run(3)
        # What was there before the training is in the file.
        before = PrivacyLedger(90.0, 1e-5)
        before.spend(other, 2)
        second = engine_of(problem, plan, checkpoint=path, ledger=before)
        assert second.resume()
        assert (second.server.round, second.server.ledger) == (3, shared)
        # What another use has paid since is not: more of it than the training has rounds, or less.
        for more in (1, 20):
            since = PrivacyLedger(90.0, 1e-5)
            since.spend(other, 2 + more)
            with pytest.raises(PlanMismatchError, match="which would be forgotten"):
                engine_of(problem, plan, checkpoint=path, ledger=since).resume()


SCRIPT = """
    import sys, time
    import numpy as np
    from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD

    path, rounds, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    random = np.random.default_rng(0)
    data = random.normal(size=(50, 4, 6))

    def gradients(model, client, elements):
        time.sleep(pause)
        return model - data[client, elements]

    plan = RandomParticipationSGD(
        0.2, 0.5, 1.0, epsilon=5.0, delta=1e-5, rounds=rounds, local_size_bound=4, seed=3
    )
    engine = InProcessEngine(
        plan, np.zeros(6), gradients, 4, SGD(0.1, momentum=0.9), clients=50,
        checkpoint=path, checkpoint_every=2,
    )
    engine.resume()
    model = engine.run(rounds, callback=lambda number, model: print(number, flush=True))
    np.save(path + ".model.npy", model)
    engine.server.ledger.save(path + ".ledger")
"""


def test_killed_in_the_middle_it_ends_with_the_model_of_an_uninterrupted_run(
    tmp_path: Path,
) -> None:
    def command(path: Path, pause: float) -> list[str]:
        return [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), "40", str(pause)]

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run(command(whole, 0.0), check=True, timeout=120, stdout=subprocess.DEVNULL)
    with subprocess.Popen(command(broken, 0.05), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if int(line) >= 7:
                break
        time.sleep(0.1)
        os.kill(running.pid, signal.SIGKILL)
    assert broken.exists()
    assert not Path(f"{broken}.model.npy").exists()
    finished = subprocess.run(
        command(broken, 0.0), check=True, timeout=120, stdout=subprocess.PIPE, text=True
    )
    assert 2 < int(finished.stdout.split()[0]) < 40
    np.testing.assert_array_equal(np.load(f"{broken}.model.npy"), np.load(f"{whole}.model.npy"))
    ledgers = [json.loads(Path(f"{path}.ledger").read_text()) for path in (broken, whole)]
    assert ledgers[0] == ledgers[1]


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
        ({"sizes": 7}, InvalidValueError, "sizes must be at most 6 = local_size_bound"),
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
    engine = engine_of(problem, plan_of())
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
    engine = engine_of(problem, plan_of(), ledger=PrivacyLedger(9.0, 1e-5))
    with pytest.raises((InvalidValueError, InvalidTypeError), match="available must"):
        engine.run(1, available=lambda number: given)
    assert engine.server.ledger is not None
    assert engine.server.ledger.entries == ()
    assert engine.server.round == 0
