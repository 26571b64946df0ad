"""Strategies, wrappers and mods of Flower's own, with nodes that take part at random."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import (
    LocalDpMod,
    adaptiveclipping_mod,
    arrays_size_mod,
    fixedclipping_mod,
    message_size_mod,
)
from flwr.serverapp import strategy as flower

from turnout.accounting import GaussianMechanism, PrivacyLedger, compose, from_flower
from turnout.errors import InvalidTypeError, InvalidValueError, ProtocolError
from turnout.federated import (
    SGD,
    AdaptiveClipping,
    Client,
    InProcessEngine,
    RandomParticipationSGD,
    Warmup,
)
from turnout.federated.flower import (
    RandomParticipationStrategy,
    client_app,
    pack,
    participation_mod,
    sampled_elements,
)
from turnout.federated.flower.records import numbers_of

NODES, SIZE, ROUNDS, RATE = 6, 12, 3, 0.5
#: Not in the order of the names.
START = {"weights": np.zeros((1, 4)), "bias": np.zeros(1, np.float32)}
ALL: dict[str, Any] = {
    "fraction_evaluate": 0.0, "min_train_nodes": NODES, "min_available_nodes": NODES
}  # fmt: skip


def plan_of(**changed: Any) -> RandomParticipationSGD:
    usual: dict[str, Any] = {
        "client_rate": 0.7, "sample_rate": 0.5, "clip": 1.0, "noise_multiplier": 1.0,
        "local_size": SIZE, "mode": "always_send", "seed": 4,
    }  # fmt: skip
    return RandomParticipationSGD(**{**usual, **changed})


@cache
def budgeted(mode: str) -> RandomParticipationSGD:
    return plan_of(mode=mode, noise_multiplier=None, epsilon=4.0, delta=1e-5, rounds=ROUNDS)


def arrays_of(model: dict[str, Any]) -> ArrayRecord:
    """In the order of the model, which is what projects send."""
    return ArrayRecord({name: Array(np.asarray(value)) for name, value in model.items()})


def numbers(arrays: ArrayRecord) -> Any:
    return np.concatenate([numbers_of(arrays[name]).ravel() for name in sorted(arrays)])


@pytest.fixture
def nodes(grid_of: Callable[..., Any], model: ModuleType) -> Callable[..., Any]:
    """Make a grid of nodes that answer Flower's strategies."""

    def make(plan: RandomParticipationSGD, *mods: Any, rate: Any = RATE) -> Any:
        def size(context: Context) -> int:
            return len(model.rows_of(int(context.node_config["partition-id"])))

        own = participation_mod(size, plan=plan, learning_rate=rate)
        app = ClientApp(mods=[*mods, own])

        @app.train()
        def train(message: Message, context: Context) -> Message:
            given = {name: numbers_of(array) for name, array in message.content["arrays"].items()}
            client = int(context.node_config["partition-id"])
            found = model.gradients(given, client, sampled_elements(message))
            parts = {"weights": found[:, 1:].reshape(-1, 1, 4), "bias": found[:, :1]}
            reply = {"any": ArrayRecord({name: Array(part) for name, part in parts.items()})}
            return Message(RecordDict(reply), reply_to=message)

        return grid_of([app] * NODES)

    return make


def engine_of(model: ModuleType, plan: RandomParticipationSGD, rate: Any) -> Any:
    sizes = [len(model.rows_of(client)) for client in range(NODES)]
    engine = InProcessEngine(plan, START, model.gradients, sizes, SGD(rate))
    return engine.run(ROUNDS)


@pytest.mark.parametrize("rate", [RATE, Warmup(3, RATE)])
def test_the_mean_of_all_replies_is_turnouts_own_step(
    nodes: Callable[..., Any], model: ModuleType, rate: Any
) -> None:
    plan = plan_of()
    grid = nodes(plan, rate=rate)
    result = flower.FedAvg(**ALL).start(grid, arrays_of(START), ROUNDS)
    ours = numbers(pack(engine_of(model, plan, rate)))
    np.testing.assert_allclose(numbers(result.arrays), ours, rtol=1e-5, atol=1e-6)
    assert np.abs(ours).max() > 0.01
    # What a node sends tells neither whether it took part nor how many examples it has.
    replies = grid.send_and_receive(
        flower.FedAvg(**ALL).configure_train(ROUNDS + 1, result.arrays, ConfigRecord(), grid)
    )
    for reply in replies:
        assert list(reply.content) == ["arrays", "metrics"]
        assert dict(reply.content["metrics"]) == {"num-examples": 1}
        for name, array in reply.content["arrays"].items():
            assert array.dtype == START[name].dtype.name
    assert list(reply.content["arrays"]) == list(START)


def test_who_takes_no_part_is_left_out_of_the_mean(
    nodes: Callable[..., Any], model: ModuleType
) -> None:
    plan = plan_of(mode="participants_only", client_rate=0.5)
    result = flower.FedAvg(**ALL).start(nodes(plan), arrays_of(START), ROUNDS)
    now = {name: value.astype(np.float64) for name, value in START.items()}
    counts = []
    for number in range(ROUNDS):
        updates = []
        for index in range(NODES):
            client = Client(plan, len(model.rows_of(index)), parameters=now, index=index)
            updates.append(client.answer(number, partial(model.gradients, now, index)))
        took = [update.values for update in updates if update is not None]
        counts.append(len(took))
        assert plan.grid is not None
        # In units of a gradient: of half of the elements of one client.
        mean = np.mean(took, axis=0) * plan.grid.step / (0.5 * SIZE)
        flat = np.concatenate([now["bias"], now["weights"][0]]) - RATE * mean
        now = {"weights": flat[None, 1:], "bias": flat[:1]}
    # So the mean is not that of all.
    assert min(counts) > 0
    assert min(counts) < NODES
    np.testing.assert_allclose(numbers(result.arrays), flat, rtol=1e-5, atol=1e-6)


STRATEGIES: dict[str, Callable[[], Any]] = {
    "FedAvg": lambda: flower.FedAvg(**ALL),
    "FedAvgM": lambda: flower.FedAvgM(server_momentum=0.5, **ALL),
    "FedAdagrad": lambda: flower.FedAdagrad(**ALL),
    "FedAdam": lambda: flower.FedAdam(**ALL),
    "FedYogi": lambda: flower.FedYogi(**ALL),
    "FedProx": lambda: flower.FedProx(proximal_mu=0.1, **ALL),
    "FedMedian": lambda: flower.FedMedian(**ALL),
    "FedTrimmedAvg": lambda: flower.FedTrimmedAvg(**ALL),
    "Krum": lambda: flower.Krum(**ALL),
    "MultiKrum": lambda: flower.MultiKrum(num_nodes_to_select=3, **ALL),
    "Bulyan": lambda: flower.Bulyan(**ALL),
}


@pytest.mark.parametrize("mode", ["always_send", "participants_only"])
@pytest.mark.parametrize(
    "name",
    # Flower takes seconds for Bulyan's mean.
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "Bulyan")) for name in STRATEGIES],
)
def test_strategies_of_flower_train_and_nodes_pay(
    name: str, mode: str, nodes: Callable[..., Any]
) -> None:
    plan = budgeted(mode)
    grid = nodes(plan)
    result = STRATEGIES[name]().start(grid, arrays_of(START), ROUNDS)
    found = numbers(result.arrays)
    assert np.isfinite(found).all()
    assert np.abs(found).max() > 0.0
    for context in grid.contexts:
        ledger = PrivacyLedger._from_json(str(context.state["turnout-ledger"]["json"]))
        assert [(part.mechanism, part.rounds) for part in ledger.entries] == [
            (plan.mechanism, ROUNDS)
        ]
        assert ledger.spent() <= 4.0
    # The plan has no fourth round: every node refuses it.
    messages = flower.FedAvg(**ALL).configure_train(
        ROUNDS + 1, arrays_of(START), ConfigRecord(), grid
    )
    for reply in grid.send_and_receive(messages):
        assert "BudgetExceededError" in reply.error.reason


def test_qfedavg_finds_no_loss(nodes: Callable[..., Any]) -> None:
    """It weighs by losses of nodes, which no budget pays for."""
    with pytest.raises(Exception, match="train_loss"):
        flower.QFedAvg(client_learning_rate=RATE, **ALL).start(
            nodes(plan_of()), arrays_of(START), 1
        )


CLIP = 0.01
WRAPPERS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "server": (flower.DifferentialPrivacyServerSideFixedClipping, []),
    "client": (flower.DifferentialPrivacyClientSideFixedClipping, [fixedclipping_mod]),
    "server adaptive": (flower.DifferentialPrivacyServerSideAdaptiveClipping, []),
    "client adaptive": (
        flower.DifferentialPrivacyClientSideAdaptiveClipping, [adaptiveclipping_mod]
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRAPPERS)
def test_wrappers_of_flower_add_a_guarantee_for_clients(
    kind: str, nodes: Callable[..., Any]
) -> None:
    wrapper, mods = WRAPPERS[kind]
    options: dict[str, Any] = {"initial_clipping_norm": CLIP} if "adaptive" in kind else {}
    if "adaptive" not in kind:
        options["clipping_norm"] = CLIP
    else:
        options["clipped_count_stddev"] = 1.0
    plan = plan_of()
    moved = {}
    for noise in (1e-9, 1.5):
        outer = wrapper(
            flower.FedAvg(**ALL), noise_multiplier=noise, num_sampled_clients=NODES, **options
        )
        result = outer.start(nodes(plan, *mods), arrays_of(START), 1)
        moved[noise] = float(np.linalg.norm(numbers(result.arrays)))
    # Without its noise, the mean moves by no more than the clip: all weights are equal.
    assert 0.0 < moved[1e-9] <= CLIP * 1.0001
    assert moved[1.5] != moved[1e-9]
    training = from_flower(outer, clients=NODES, replies=[NODES])
    assert 0.0 < training.epsilon(1e-5) < 20.0


def test_mods_of_flower_around_the_participation(
    nodes: Callable[..., Any], model: ModuleType
) -> None:
    """They see only what leaves the node, so they change nothing of the guarantee."""
    plan = plan_of()
    grid = nodes(plan, message_size_mod, arrays_size_mod)
    result = flower.FedAvg(**ALL).start(grid, arrays_of(START), ROUNDS)
    ours = numbers(pack(engine_of(model, plan, RATE)))
    np.testing.assert_allclose(numbers(result.arrays), ours, rtol=1e-5, atol=1e-6)
    local = nodes(plan, LocalDpMod(CLIP, 1e-9, 1.0, 1e-5))
    result = flower.FedAvg(**ALL).start(local, arrays_of(START), 1)
    assert 0.0 < np.linalg.norm(numbers(result.arrays)) <= CLIP * 1.0001


def test_wrappers_of_flower_need_a_reply_of_every_node(nodes: Callable[..., Any]) -> None:
    wrapper = flower.DifferentialPrivacyServerSideFixedClipping
    result = wrapper(flower.FedAvg(**ALL), 1.0, CLIP, NODES).start(
        nodes(plan_of(mode="participants_only", client_rate=0.5)), arrays_of(START), 1
    )
    assert not result.arrays


def test_mods_of_flower_with_turnouts_strategy(
    grid_of: Callable[..., Any], model: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    plan = plan_of()

    def trained(*mods: Any) -> Any:
        def local(context: Context) -> Any:
            number = int(context.node_config["partition-id"])
            return len(model.rows_of(number)), partial(own, number)

        def own(number: int, now: Any, elements: Any) -> Any:
            return model.gradients(now, number, elements)

        inner = client_app(local, plan=plan)
        app = ClientApp(mods=list(mods))
        app.train()(inner)
        strategy = RandomParticipationStrategy(plan, SGD(RATE))
        return numbers(strategy.start(grid_of([app] * NODES), pack(START), ROUNDS).arrays)

    ours = numbers(pack(engine_of(model, plan, RATE)))
    np.testing.assert_array_equal(trained(message_size_mod, arrays_size_mod), ours)
    for mod, reason in (
        (fixedclipping_mod, "fixedclipping_mod expects exactly one ConfigRecord"),
        (adaptiveclipping_mod, "adaptiveclipping_mod expects exactly one ConfigRecord"),
        (LocalDpMod(CLIP, 1.0, 1.0, 1e-5), "expects the keys in the ArrayRecord of the reply"),
    ):
        caplog.clear()
        np.testing.assert_array_equal(trained(mod), numbers(pack(START)))
        assert reason in caplog.text
        assert "no node answered" in caplog.text


def test_what_cannot_be_sound_is_refused_at_once() -> None:
    for changed, reason in (
        ({"mode": "trusted_server"}, "'trusted_server' a node sends its sum without noise"),
        ({"adaptive_clipping": AdaptiveClipping()}, "only RandomParticipationStrategy moves"),
    ):
        with pytest.raises(InvalidValueError, match=reason):
            participation_mod(SIZE, plan=plan_of(**changed), learning_rate=1.0)
    with pytest.raises(InvalidValueError, match="plan must be given with learning_rate"):
        participation_mod(SIZE, budget=PrivacyLedger(1.0, 1e-5), learning_rate=1.0)
    with pytest.raises(InvalidValueError, match="learning_rate must be"):
        client_app(lambda context: (1, lambda *given: None), plan=plan_of(), learning_rate=0.0)
    with pytest.raises(InvalidTypeError, match="learning_rate must be a number or a schedule"):
        participation_mod(SIZE, plan=plan_of(), learning_rate="0.1")  # type: ignore[arg-type]


def reason_of(app: Any, context: Context, **content: Any) -> str:
    record = RecordDict({"arrays": arrays_of(START), **content})
    message = Message(record, dst_node_id=7, message_type="train")
    reply = app(message, context)
    assert reply.has_error()
    assert "turnout-ledger" not in context.state
    return str(reply.error.reason)


def test_a_node_that_is_not_set_up_for_the_strategy_says_so(context: Any) -> None:
    def local(context: Context) -> Any:
        raise AssertionError("the data are not read")

    budget = PrivacyLedger(9.0, 1e-5)
    ours = client_app(local, budget=budget, size_bound=SIZE)
    config = ConfigRecord({"server-round": 1})
    assert "pass learning_rate and plan on the node" in reason_of(ours, context(), config=config)

    theirs = client_app(local, budget=budget, plan=lambda context: plan_of(), learning_rate=1.0)
    sent = ConfigRecord({"plan": "{}", "round": 0})
    reason = reason_of(theirs, context(), config=config, **{"turnout.round": sent})
    assert "leave out learning_rate on the node" in reason
    for wrong in (ConfigRecord(), ConfigRecord({"server-round": 0})):
        assert "'server-round'" in reason_of(theirs, context(), config=wrong)
    central = client_app(
        local, budget=budget, plan=lambda context: plan_of(mode="trusted_server"), learning_rate=1.0
    )
    assert "sends its sum without noise" in reason_of(central, context(), config=config)


def test_a_round_is_answered_once(nodes: Callable[..., Any]) -> None:
    grid = nodes(plan_of())
    for expected in (False, True):
        messages = flower.FedAvg(**ALL).configure_train(1, arrays_of(START), ConfigRecord(), grid)
        assert [each.has_error() for each in grid.send_and_receive(messages)] == [expected] * NODES


def test_a_step_to_a_model_that_is_not_finite_is_not_sent(nodes: Callable[..., Any]) -> None:
    grid = nodes(plan_of(), rate=1e300)
    messages = flower.FedAvg(**ALL).configure_train(1, arrays_of(START), ConfigRecord(), grid)
    for reply in grid.send_and_receive(messages):
        assert "is the learning rate too large?" in reply.error.reason


def test_turnouts_strategy_is_not_wrapped(nodes: Callable[..., Any]) -> None:
    own = RandomParticipationStrategy(plan_of(), SGD(0.1))
    outer = flower.DifferentialPrivacyServerSideFixedClipping(own, 1.0, 1.0, NODES)
    with pytest.raises(ProtocolError, match="call start of RandomParticipationStrategy itself"):
        outer.start(nodes(plan_of()), arrays_of(START), 1)


@pytest.mark.parametrize("name", ["FedAdam", "DifferentialPrivacy"])
@pytest.mark.slow
def test_in_flowers_simulation(name: str, simulation: Any, nodes: Callable[..., Any]) -> None:
    components = ("trial.standard:server", "trial.standard:client")
    config = {"strategy": name, "nodes": NODES, "rounds": ROUNDS}
    run = simulation.submit(components, config, nodes=NODES)
    output = run.wait()
    assert (run.folder / "model.npy").exists(), output
    found = np.load(run.folder / "model.npy")
    if name == "FedAdam":
        here = flower.FedAdam(**ALL).start(nodes(plan_of()), arrays_of(START), ROUNDS)
        np.testing.assert_allclose(found, numbers(here.arrays), rtol=1e-4, atol=1e-6)
    else:
        assert 0.0 < np.linalg.norm(found) < 1.0
        # For each round, noise of twice the clip on a mean that a replaced client moves by two.
        paid = compose([(GaussianMechanism(1.0), ROUNDS)], "replace").epsilon(1e-5)
        assert float((run.folder / "epsilon").read_text()) == pytest.approx(paid, rel=1e-9)
