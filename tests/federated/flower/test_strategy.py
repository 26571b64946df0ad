"""The server side over a grid whose nodes live in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import turnout as tn
from turnout.errors import (
    BudgetExceededError,
    InvalidValueError,
    MissingPartyError,
    PlanMismatchError,
)
from turnout.federated import (
    SGD,
    AdaptiveClipping,
    Client,
    InProcessEngine,
    RandomParticipationSGD,
    Server,
)
from turnout.federated.flower import (
    RandomParticipationStrategy,
    client_app,
    frequency_client_app,
    frequency_server_app,
    pack,
    server_app,
    unpack,
)
from turnout.federated.flower import strategy as strategies
from turnout.federated.flower.frequency import collect_frequencies
from turnout.federated.trees import vector

Make = Callable[..., Any]
NODES = 5


def settings(**changed: Any) -> dict[str, Any]:
    usual = {"client-rate": 0.7, "mode": "trusted_server", "seed": 4, "rounds": 6, "epsilon": 0.0}
    return {**usual, **changed}


def apps_of(model: ModuleType, plan: Any, nodes: int = NODES) -> list[Any]:
    def local(context: Context) -> Any:
        client = int(context.node_config["partition-id"])
        rows = len(model.rows_of(client))
        return rows, lambda now, elements: model.gradients(now, client, elements)

    return [client_app(local, plan=plan) for _ in range(nodes)]


def engine_of(model: ModuleType, plan: Any, start: Any, optimizer: SGD) -> InProcessEngine:
    sizes = [len(model.rows_of(client)) for client in range(NODES)]
    return InProcessEngine(plan, start, model.gradients, sizes, optimizer)


def context() -> Context:
    return Context(1, 0, {}, RecordDict(), {})


@pytest.mark.parametrize("mode", ["trusted_server", "always_send", "participants_only"])
def test_every_mode_gets_the_numbers_of_the_engine(
    grid_of: Make, mode: str, model: ModuleType
) -> None:
    plan = model.plan_of(settings(mode=mode))
    grid = grid_of(apps_of(model, plan))
    strategy = RandomParticipationStrategy(plan, SGD(0.5, momentum=0.9))
    result = strategy.start(grid, pack(model.NAMED), num_rounds=6)
    engine = engine_of(model, plan, model.NAMED, SGD(0.5, momentum=0.9))
    np.testing.assert_array_equal(vector(unpack(result.arrays)), vector(engine.run(6)))
    assert len(grid.asked) == 6 * NODES
    # Nothing about nodes stands in the results.
    assert not result.train_metrics_clientapp
    assert not result.evaluate_metrics_clientapp


def test_a_clip_that_moves_is_that_of_the_engine(grid_of: Make, model: ModuleType) -> None:
    plan = replace(model.plan_of(settings()), adaptive_clipping=AdaptiveClipping(0.5, 1.0))
    strategy = RandomParticipationStrategy(plan, SGD(0.5))
    result = strategy.start(grid_of(apps_of(model, plan)), pack(model.NAMED), num_rounds=6)
    engine = engine_of(model, plan, model.NAMED, SGD(0.5))
    np.testing.assert_array_equal(vector(unpack(result.arrays)), vector(engine.run(6)))
    assert strategy.server.clip == engine.server.clip != plan.clip


def test_a_training_goes_on_from_its_checkpoint(
    grid_of: Make, model: ModuleType, tmp_path: Path
) -> None:
    plan, path = model.plan_of(settings()), tmp_path / "checkpoint"
    ends: list[Any] = []
    seen: list[int] = []

    def app_of(rounds: int) -> Any:
        return server_app(
            plan,
            model.NESTED,
            SGD(0.5),
            rounds=rounds,
            evaluate=lambda number, now: seen.append(number),
            on_end=lambda now, server, ended: ends.append(now),
            checkpoint=path,
        )

    for rounds in (2, 6, 6):
        app_of(rounds)(grid_of(apps_of(model, plan)), context())
    assert seen == [0, 1, 2, 2, 3, 4, 5, 6, 6]
    whole = vector(engine_of(model, plan, model.NESTED, SGD(0.5)).run(6))
    np.testing.assert_array_equal(vector(ends[1]), whole)
    np.testing.assert_array_equal(vector(ends[2]), whole)
    other = server_app(plan, model.NESTED, SGD(0.4), rounds=6, checkpoint=path)
    with pytest.raises(PlanMismatchError):
        other(grid_of(apps_of(model, plan)), context())


def test_numbers_of_the_evaluation_are_kept(grid_of: Make, model: ModuleType) -> None:
    plan = model.plan_of(settings())
    strategy = RandomParticipationStrategy(plan, SGD(0.5))

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
        return MetricRecord({"size": float(np.abs(vector(unpack(arrays))).sum())})

    result = strategy.start(
        grid_of(apps_of(model, plan)), pack(model.NAMED), 2, evaluate_fn=evaluate
    )
    assert sorted(result.evaluate_metrics_serverapp) == [0, 1, 2]
    assert result.evaluate_metrics_serverapp[0]["size"] == 0.0


def test_bad_replies_are_left_out(grid_of: Make, model: ModuleType) -> None:
    plan = model.plan_of(settings(**{"client-rate": 1.0}))
    good = apps_of(model, plan)

    def wrong_length(message: Message, context: Context) -> Message:
        reply = good[1](message, context)
        reply.content["turnout.update"] = ArrayRecord({"values": Array(np.zeros(2, np.int64))})
        return reply

    def wrong_round(message: Message, context: Context) -> Message:
        reply = good[2](message, context)
        reply.content["turnout.round"]["round"] = 7
        return reply

    def failed(message: Message, context: Context) -> Message:
        return Message(Error(5, "lost"), reply_to=message)

    def strange(message: Message, context: Context) -> Message:
        return Message(RecordDict({"m": MetricRecord({"a": 1})}), reply_to=message)

    bad = [good[0], wrong_length, wrong_round, failed, strange]
    result = RandomParticipationStrategy(plan, SGD(0.5)).start(
        grid_of(bad), pack(model.NAMED), num_rounds=1
    )
    server = Server(plan, model.NAMED, SGD(0.5))
    client = Client(plan, len(model.rows_of(0)), parameters=model.NAMED, index=0)
    server.open(available=NODES)
    server.add(client.answer(0, lambda elements: model.gradients(model.NAMED, 0, elements)), 0)
    np.testing.assert_array_equal(vector(unpack(result.arrays)), vector(server.close()))


def npy(header: str, entries: bytes = b"") -> bytes:
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + entries


#: Each ends a process that gives it to ``numpy.load``, or takes its memory, or is of another kind.
HOSTILE = [
    b"",
    b"PK\x03\x04" + bytes(7),
    b"\x80\x04K\x01.",
    npy("{'descr': '<i8', 'fortran_order': False, 'shape': (10000000000000,), }\n", bytes(24)),
    npy("{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n", bytes(23)),
    npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n", bytes(24)),
    npy("{'descr': '<i8', 'fortran_order': False, 'shape': (" + "9" * 30 + ",), }\n", bytes(24)),
    npy("{'descr': ('<i8',), 'fortran_order': False, 'shape': (3,), }\n", bytes(24)),
    npy("{'descr': [1], 'fortran_order': False, 'shape': (3,), }\n", bytes(24)),
    npy("{'descr': ", bytes(24)),
    npy("(" * 3000, bytes(24)),
]


def stored(data: bytes, kind: str = "numpy.ndarray") -> Array:
    return Array(dtype="int64", shape=(3,), stype=kind, data=data)


def test_whatever_one_node_sends_the_training_goes_on(grid_of: Make, model: ModuleType) -> None:
    plan = model.plan_of(settings(**{"client-rate": 1.0}))
    total = np.concatenate([leaf.ravel() for leaf in model.NAMED.values()]).size
    arrays = [stored(data) for data in HOSTILE]
    arrays += [
        stored(Array(np.zeros(total, np.int64)).data, "torch"),
        *(
            Array(values)
            for values in (
                np.full(total, 2**62),
                np.full(total, -(2**63)),
                np.full(total, int(1000 * plan.grid.radius)),
                np.zeros((total, 1), np.int64),
                np.zeros(total, np.bool_),
            )
        ),
    ]

    def attacking(array: Array) -> Any:
        app = apps_of(model, plan, 1)[0]

        def answer(message: Message, context: Context) -> Message:
            reply = app(message, context)
            reply.content["turnout.update"] = ArrayRecord({"values": array})
            return reply

        return answer

    good = apps_of(model, plan)
    attackers = [attacking(array) for array in arrays]
    silent = [lambda message, context: Message(RecordDict(), reply_to=message)] * len(attackers)
    models = []
    for others in (attackers, silent):
        strategy = RandomParticipationStrategy(plan, SGD(0.5))
        result = strategy.start(grid_of([*good, *others]), pack(model.NAMED), num_rounds=2)
        models.append(vector(unpack(result.arrays)))
        assert strategy.server.round == 2
    np.testing.assert_array_equal(*models)
    assert np.abs(models[0]).max() > 0.0


def test_a_reply_that_comes_twice_counts_once(grid_of: Make, model: ModuleType) -> None:
    plan = model.plan_of(settings(**{"client-rate": 1.0}))
    models, tallies = [], []
    for times in (1, 2):
        grid = grid_of(apps_of(model, plan))
        whole = grid.send_and_receive
        grid.send_and_receive = lambda messages, send=whole, n=times, **options: (
            send(messages, **options) * n
        )
        result = RandomParticipationStrategy(plan, SGD(0.5)).start(grid, pack(model.NAMED), 1)
        models.append(vector(unpack(result.arrays)))
        grid.apps = [answering(0)] * 5
        tallies.append(collect_frequencies(grid, PLAN).nodes)
    np.testing.assert_array_equal(*models)
    assert tallies == [5, 5]


def test_a_step_that_leads_nowhere_does_not_end_the_training(
    grid_of: Make, model: ModuleType
) -> None:
    plan = model.plan_of(settings(**{"client-rate": 1.0}))
    strategy = RandomParticipationStrategy(plan, SGD(1e308, momentum=0.9))
    result = strategy.start(grid_of(apps_of(model, plan)), pack(model.NAMED), num_rounds=3)
    assert strategy.server.round == 3
    assert np.isfinite(vector(unpack(result.arrays))).all()


def test_a_round_that_nobody_answers_makes_no_step(grid_of: Make, model: ModuleType) -> None:
    plan = model.plan_of(settings(**{"client-rate": 1.0}))

    def refused(message: Message, context: Context) -> Message:
        return Message(Error(6, "no budget"), reply_to=message)

    strategy = RandomParticipationStrategy(plan, SGD(0.5))
    result = strategy.start(grid_of([refused] * NODES), pack(model.NAMED), num_rounds=2)
    np.testing.assert_array_equal(vector(unpack(result.arrays)), vector(model.NAMED))
    assert strategy.server.round == 2


def test_nobody_is_asked_for_a_round_that_is_not_paid(grid_of: Make, model: ModuleType) -> None:
    plan = RandomParticipationSGD(
        1.0, 0.5, 1.0, epsilon=1.0, delta=1e-5, rounds=2, local_size=12, mode="always_send"
    )
    grid = grid_of(apps_of(model, plan))
    strategy = RandomParticipationStrategy(plan, SGD(0.5))
    with pytest.raises(BudgetExceededError):
        strategy.start(grid, pack(model.NAMED), num_rounds=3)
    assert len(grid.asked) == 2 * NODES
    assert strategy.server.round == 2
    assert strategy.server.ledger.spent() <= 1.0  # type: ignore[union-attr]


def test_too_few_nodes_are_not_waited_for_forever(
    grid_of: Make, model: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    passed: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(passed), sleep=passed.append)
    monkeypatch.setattr(strategies, "time", clock)
    monkeypatch.setattr(strategies, "log", lambda level, text, *values: said.append(text % values))
    plan = model.plan_of(settings())
    strategy = RandomParticipationStrategy(plan, SGD(0.5), least_nodes=NODES + 1, patience=3.3)
    grid = grid_of(apps_of(model, plan))
    with pytest.raises(MissingPartyError, match="5 of at least 6"):
        strategy.start(grid, pack(model.NAMED), num_rounds=1)
    assert not grid.asked
    waiting = [text for text in said if "waiting" in text]
    assert waiting == ["turnout: 5 of at least 6 nodes are connected, waiting 2 s more at most"]


PLAN = tn.Plan(tn.DirectEncoding(2.0, 3), tn.Bernoulli(0.5))


def answering(label: Any) -> ClientApp:
    return frequency_client_app(lambda context: label, budget=10.0)


def test_a_collection_is_near_the_truth(grid_of: Make) -> None:
    nodes = [answering(0)] * 200 + [answering(2)] * 100
    got: list[Any] = []
    frequency_server_app(PLAN, lambda *given: got.append(given))(grid_of(nodes), context())
    estimate, tally, _ = got[0]
    assert tally.nodes == 300
    # Standard errors are about 0.06.
    np.testing.assert_allclose(estimate.frequencies, [2 / 3, 0.0, 1 / 3], atol=0.4)


def test_nodes_that_speak_for_several_people(grid_of: Make) -> None:
    nodes = [answering([0] * 40), answering([1] * 60), answering(2)]
    tally = collect_frequencies(grid_of(nodes), PLAN, most_answers=60)
    assert tally.nodes == 101
    assert 0 < tally.received < 101
    assert not tally.left_out
    fewer = collect_frequencies(grid_of(nodes), PLAN, most_answers=59)
    assert (fewer.nodes, fewer.left_out) == (41, tn.LeftOut(unanswered=1))


def test_whatever_one_node_sends_the_collection_goes_on(grid_of: Make) -> None:
    def attacking(data: bytes) -> Any:
        def answer(message: Message, context: Context) -> Message:
            reply = answering([0] * 40)(message, context)
            reply.content["turnout.reports"] = ArrayRecord({"reports": stored(data)})
            return reply

        return answer

    nodes = [answering(1)] * 3 + [attacking(data) for data in HOSTILE]
    tally = collect_frequencies(grid_of(nodes), PLAN, most_answers=40)
    assert (tally.nodes, tally.left_out.unanswered) == (3, len(HOSTILE))


def test_a_collection_without_replies_is_empty(grid_of: Make) -> None:
    def failed(message: Message, context: Context) -> Message:
        return Message(Error(5, "lost"), reply_to=message)

    tally = collect_frequencies(grid_of([failed]), PLAN)
    assert (tally.nodes, tally.received, tally.left_out.unanswered) == (0, 0, 1)


def test_a_trial_on_the_server_fails_before_any_node_is_asked(
    grid_of: Make, model: ModuleType
) -> None:
    plan = model.plan_of(settings(epsilon=2.0))
    strategy = RandomParticipationStrategy(
        plan, SGD(0.5), trial=lambda now: {name: part[None] * np.nan for name, part in now.items()}
    )
    grid = grid_of(apps_of(model, plan))
    with pytest.raises(InvalidValueError, match="nothing was spent"):
        strategy.start(grid, pack(model.NAMED), num_rounds=6)
    assert not grid.asked
    assert strategy.server.ledger is not None
    assert strategy.server.ledger.spent() == 0.0
