"""What one node answers, without a SuperLink: checks, payment, and what it never sends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.accounting import GaussianMechanism, PrivacyLedger
from turnout.errors import InvalidTypeError, InvalidValueError, MalformedMessageError
from turnout.federated import AdaptiveClipping, RandomParticipationSGD
from turnout.federated.flower import client_app, pack, participation_mod, sampled_elements
from turnout.federated.flower.records import ROUND, round_record, update_of

MODEL = {"weights": np.zeros((2, 2), np.float32), "bias": np.zeros(1)}
ALWAYS = {"client_rate": 1.0, "sample_rate": 1.0}
BUDGET = PrivacyLedger(50.0, 1e-5)
SIZE = 4


def plan_of(**changed: Any) -> RandomParticipationSGD:
    usual = {
        "client_rate": 0.5,
        "sample_rate": 0.5,
        "clip": 1.0,
        "noise_multiplier": 1.0,
        "local_size": SIZE,
        "mode": "always_send",
    }
    return RandomParticipationSGD(**{**usual, **changed})


def asked(plan: Any, number: int = 0, kind: str = "train", clip: Any = 1.0) -> Any:
    """A message as the strategy makes it."""
    from flwr.app import ConfigRecord, Message, RecordDict

    record = round_record(plan, number, None, clip)
    content = RecordDict({"arrays": pack(MODEL), ROUND: record, "config": ConfigRecord({"a": 1})})
    return Message(content, dst_node_id=7, message_type=kind)


def local(gradients: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda context: (SIZE, gradients)


def ones(model: Any, elements: Any) -> Any:
    return {"weights": np.ones((elements.size, 2, 2)), "bias": np.ones((elements.size, 1))}


def never(model: Any, elements: Any) -> Any:
    raise AssertionError("the gradients must not be computed")


def entries(context: Any) -> int:
    ledger = PrivacyLedger._from_json(context.state["turnout-ledger"]["json"])
    return sum(entry.rounds for entry in ledger.entries)


def test_an_update_is_the_clipped_truncated_sum(context: Any) -> None:
    plan = plan_of(**ALWAYS, mode="trusted_server")
    app = client_app(local(ones), budget=BUDGET, size_bound=SIZE, trusts_server=True)
    update = update_of(app(asked(plan), context()))
    assert update is not None
    step = plan.grid.step  # type: ignore[union-attr]
    each = np.floor(1.0 / np.sqrt(5.0) / step)
    np.testing.assert_array_equal(update.values, np.full(5, SIZE * each))
    assert (update.round, update.plan) == (0, plan.fingerprint)


def test_a_node_that_is_the_unit_is_clipped_as_a_whole(context: Any) -> None:
    """It needs no bound on its number of elements, and may send one row for all of them."""
    plan = plan_of(**ALWAYS, mode="trusted_server", unit="client", local_size=None)
    for rows in (1, 3, SIZE):

        def moves(model: Any, elements: Any, rows: int = rows) -> Any:
            return ones(model, elements[:rows])

        app = client_app(local(moves), budget=BUDGET, trusts_server=True)
        update = update_of(app(asked(plan), context()))
        assert update is not None
        each = np.floor(1.0 / np.sqrt(5.0) / plan.grid.step)  # type: ignore[union-attr]
        np.testing.assert_array_equal(update.values, np.full(5, each))


def test_a_clip_that_moves_comes_with_the_round(context: Any) -> None:
    plan = plan_of(**ALWAYS, mode="trusted_server", adaptive_clipping=AdaptiveClipping())
    app = client_app(local(ones), budget=BUDGET, size_bound=SIZE, trusts_server=True)
    update = update_of(app(asked(plan, clip=0.5), context()))
    assert update is not None
    each = np.floor(0.5 / np.sqrt(5.0) / plan._grid_at(0.5).step)  # type: ignore[union-attr]
    np.testing.assert_array_equal(update.values[:-1], np.full(5, SIZE * each))
    votes = plan._votes
    assert votes is not None
    assert update.values[-1] == -SIZE * votes.above  # all are longer
    for wrong in (-1.0, 1e40, float("nan")):
        state = context()
        reply = client_app(local(never), budget=BUDGET, size_bound=SIZE, trusts_server=True)(
            asked(plan, clip=wrong), state
        )
        assert reply.has_error()
        assert "turnout-ledger" not in state.state


def test_numbers_that_fit_travel_in_32_bits_and_others_in_64(context: Any) -> None:
    for bits, dtype in ((24, np.int32), (36, np.int64)):
        plan = plan_of(**ALWAYS, mode="trusted_server", grid_bits=bits)
        app = client_app(local(ones), budget=BUDGET, size_bound=SIZE, trusts_server=True)
        reply = app(asked(plan), context())
        assert reply.content["turnout.update"]["values"].numpy().dtype == dtype
        update = update_of(reply)
        assert update is not None
        assert update.values.dtype == np.int64
        assert (update.values * plan.grid.step).round(6).tolist() == [1.788854] * 5  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["trusted_server", "participants_only", "always_send"])
def test_who_does_not_take_part_computes_nothing(mode: str, context: Any) -> None:
    plan = plan_of(client_rate=1e-9, mode=mode)
    node = context()
    reply = client_app(local(never), budget=BUDGET, size_bound=SIZE, trusts_server=True)(
        asked(plan), node
    )
    assert not reply.has_error()
    if mode == "always_send":
        update = update_of(reply)
        assert update is not None
        # Noise with a standard deviation of 2^24 steps.
        assert np.abs(update.values).max() > 2**16
    else:
        assert len(reply.content) == 0
        assert update_of(reply) is None
    assert entries(node) == 1


def test_in_always_send_replies_look_alike(context: Any) -> None:
    silent, active = plan_of(client_rate=1e-9), plan_of(**ALWAYS)
    replies = [
        client_app(local(ones), budget=BUDGET, size_bound=SIZE)(asked(plan), context())
        for plan in (silent, active)
    ]
    for reply in replies:
        assert sorted(reply.content) == ["turnout.round", "turnout.update"]
        assert list(reply.content["turnout.update"]) == ["values"]
        assert reply.content["turnout.update"]["values"].shape in ((5,), [5])
    assert {tuple(sorted(reply.content[ROUND])) for reply in replies} == {("plan", "round")}


@pytest.mark.parametrize("mode", ["always_send", "participants_only"])
def test_a_failure_looks_like_noise_where_the_server_is_not_trusted(
    mode: str, context: Any
) -> None:
    node, plan = context(), plan_of(**ALWAYS, mode=mode)
    reply = client_app(local(never), budget=BUDGET, size_bound=SIZE)(asked(plan), node)
    assert not reply.has_error()
    assert update_of(reply) is not None
    assert entries(node) == 1


@pytest.mark.parametrize("mode", ["trusted_server", "participants_only", "always_send"])
def test_one_element_never_fails_a_node(mode: str, context: Any) -> None:
    # Else the kind of the reply would tell with probability p q that the element is there.
    def overflowing(model: Any, elements: Any) -> Any:
        found = ones(model, elements)
        found["bias"][elements == 2] = np.inf
        found["weights"][elements == 3] = np.nan
        return found

    plan = plan_of(**ALWAYS, mode=mode)
    app = client_app(local(overflowing), budget=BUDGET, size_bound=SIZE, trusts_server=True)
    update = update_of(app(asked(plan), context()))
    assert update is not None
    if mode == "trusted_server":
        each = np.floor(1.0 / np.sqrt(5.0) / plan.grid.step)  # type: ignore[union-attr]
        np.testing.assert_array_equal(update.values, np.full(5, 2 * each))


def test_a_failure_says_nothing_of_the_data(context: Any) -> None:
    def quoting(model: Any, elements: Any) -> Any:
        raise ValueError("patient Smith has an entry that is no number")

    node = context()
    app = client_app(local(quoting), budget=BUDGET, size_bound=SIZE, trusts_server=True)
    reply = app(asked(plan_of(**ALWAYS, mode="trusted_server")), node)
    assert reply.has_error()
    assert "Smith" not in reply.error.reason
    assert entries(node) == 1


def test_a_server_cannot_choose_another_kind_of_round_by_what_it_has_seen(
    context: Any, tmp_path: Path
) -> None:
    first, other = plan_of(), plan_of(noise_multiplier=2.0)
    for node in (context(), context(turnout_ledger=str(tmp_path / "ledger.json"))):
        app = client_app(local(ones), budget=BUDGET, size_bound=SIZE)
        assert not app(asked(first, 0), node).has_error()
        refused = app(asked(other, 1), node)
        assert refused.has_error()
        assert "no other kind" in refused.error.reason
        # The same costs under another plan, and a plan that the owner names.
        assert not app(asked(plan_of(nominal_local_size=2), 1), node).has_error()
        named = client_app(local(ones), budget=BUDGET, plan=other)
        assert not named(asked(other, 2), node).has_error()
    # What the owner has spent on something else does not count.
    ledger, path = PrivacyLedger(50.0, 1e-5), tmp_path / "owned.json"
    ledger.spend(GaussianMechanism(9.0), label="a query")
    ledger.write(path)
    app = client_app(local(ones), size_bound=SIZE)
    assert not app(asked(first, 0), context(turnout_ledger=str(path))).has_error()


def test_gradients_of_another_shape_are_refused(context: Any) -> None:
    def wrong(model: Any, elements: Any) -> Any:
        return {"weights": np.ones((elements.size, 4)), "bias": np.ones((elements.size, 1))}

    app = client_app(local(wrong), budget=BUDGET, size_bound=SIZE, trusts_server=True)
    reply = app(asked(plan_of(**ALWAYS, mode="trusted_server")), context())
    assert reply.has_error()


def test_a_spent_budget_ends_it(context: Any) -> None:
    plan = plan_of(**ALWAYS)
    budget = PrivacyLedger(float(np.nextafter(spent(plan, 2), np.inf)), 1e-5)
    node, calls = context(), []

    def counted(model: Any, elements: Any) -> Any:
        calls.append(elements.size)
        return ones(model, elements)

    app = client_app(local(counted), budget=budget, size_bound=SIZE)
    replies = [app(asked(plan, number), node) for number in range(4)]
    assert [reply.has_error() for reply in replies] == [False, False, True, True]
    assert "budget" in replies[2].error.reason
    assert calls == [SIZE, SIZE]
    assert entries(node) == 2


def spent(plan: Any, rounds: int) -> float:
    from turnout.accounting import compose

    return compose([(plan.mechanism, rounds)]).epsilon(1e-5)


def test_a_round_is_answered_once(context: Any) -> None:
    node, app = context(), client_app(local(ones), budget=BUDGET, size_bound=SIZE)
    plan = plan_of()
    assert not app(asked(plan, 3), node).has_error()
    for number in (3, 2):
        reply = app(asked(plan, number), node)
        assert reply.has_error()
        assert "round must be above 3" in reply.error.reason
    assert not app(asked(plan, 4), node).has_error()
    assert entries(node) == 2


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"seed": 1}, "seed"),
        ({"noise": "float"}, "exact noise"),
        ({"noise": "none", "noise_multiplier": None}, "exact noise"),
        ({"mode": "trusted_server"}, "trust"),
    ],
)
def test_plans_that_do_not_protect_are_refused(
    changed: dict[str, Any], word: str, context: Any
) -> None:
    plan, node = plan_of(**changed), context(partition_id=0)
    reply = client_app(local(never), budget=BUDGET, size_bound=SIZE)(asked(plan), node)
    assert reply.has_error()
    assert word in reply.error.reason
    assert "turnout-ledger" not in node.state
    # The owner of the node may say that this very plan is wanted.
    accepting = client_app(local(ones), plan=plan)
    assert not accepting(asked(plan), node).has_error()


def test_a_round_is_answered_once_also_between_those_of_another_plan(context: Any) -> None:
    app, node = client_app(local(ones), budget=BUDGET, size_bound=SIZE), context()
    first, second = plan_of(), plan_of(nominal_local_size=3)
    assert first.mechanism == second.mechanism
    replies = [app(asked(plan, 0), node) for plan in (first, second, first, second)]
    assert [reply.has_error() for reply in replies] == [False, False, True, True]
    assert "round must be above 0" in replies[2].error.reason
    assert entries(node) == 2


def test_another_plan_than_the_nodes_is_refused(context: Any) -> None:
    app = client_app(local(never), plan=plan_of(), budget=BUDGET, size_bound=SIZE)
    reply = app(asked(plan_of(noise_multiplier=0.5)), context())
    assert reply.has_error()
    assert "accepts the plan" in reply.error.reason


def test_a_node_without_a_ledger_answers_nothing(context: Any) -> None:
    reply = client_app(local(never), size_bound=SIZE)(asked(plan_of()), context())
    assert reply.has_error()
    assert "no ledger" in reply.error.reason


def test_a_plan_with_a_target_is_its_own_budget_if_the_node_names_it(context: Any) -> None:
    plan = plan_of(noise_multiplier=None, epsilon=1.0, delta=1e-5, rounds=2)
    node, app = context(), client_app(local(ones), plan=plan)
    replies = [app(asked(plan, number), node) for number in range(3)]
    assert [reply.has_error() for reply in replies] == [False, False, True]


def test_the_ledgers_file_counts_and_not_the_budget(context: Any, tmp_path: Path) -> None:
    plan, path = plan_of(**ALWAYS), tmp_path / "ledger.json"
    node = context(turnout_ledger=str(path))
    app = client_app(local(ones), budget=BUDGET, size_bound=SIZE)
    assert not app(asked(plan, 0), node).has_error()
    assert len(PrivacyLedger.read(path).entries) == 1
    assert "turnout-ledger" not in node.state
    PrivacyLedger(1e-3, 1e-9).write(path)
    assert app(asked(plan, 1), node).has_error()
    path.write_text("not a ledger")
    assert app(asked(plan, 2), node).has_error()


def test_a_missing_ledger_file_needs_a_budget(context: Any, tmp_path: Path) -> None:
    node = context(turnout_ledger=str(tmp_path / "none.json"))
    assert client_app(local(never))(asked(plan_of()), node).has_error()


def test_the_ledger_is_on_disk_before_gradients_are_computed(context: Any, tmp_path: Path) -> None:
    path, seen = tmp_path / "ledger.json", []

    def looking(model: Any, elements: Any) -> Any:
        seen.append(sum(entry.rounds for entry in PrivacyLedger.read(path).entries))
        return ones(model, elements)

    node = context(turnout_ledger=str(path))
    app = client_app(local(looking), budget=BUDGET, size_bound=SIZE)
    for number in range(3):
        app(asked(plan_of(**ALWAYS), number), node)
    assert seen == [1, 2, 3]


def test_seeded_nodes_need_numbers(context: Any) -> None:
    plan = plan_of(seed=1)
    reply = client_app(local(never), plan=plan)(asked(plan), context())
    assert reply.has_error()
    assert "partition-id" in reply.error.reason


def test_messages_that_open_no_round_are_refused(context: Any) -> None:
    from flwr.app import ConfigRecord, Message, RecordDict

    app = client_app(local(never), budget=BUDGET, size_bound=SIZE)
    good = asked(plan_of()).content
    for content in (
        RecordDict(),
        RecordDict({"arrays": good["arrays"]}),
        RecordDict({ROUND: good[ROUND]}),
        RecordDict({**good, ROUND: ConfigRecord({**good[ROUND], "plan": "{"})}),
        RecordDict({**good, ROUND: ConfigRecord({**good[ROUND], "round": -1})}),
        RecordDict({**good, ROUND: ConfigRecord({**good[ROUND], "structure": "[1]"})}),
    ):
        assert app(Message(content, dst_node_id=7, message_type="train"), context()).has_error()


def test_replies_come_no_sooner_than_said(context: Any) -> None:
    import time

    app = client_app(local(ones), budget=BUDGET, size_bound=SIZE, least_seconds=0.3)
    for rate in (1e-9, 1.0):
        begin = time.monotonic()
        app(asked(plan_of(client_rate=rate)), context())
        assert time.monotonic() - begin >= 0.3


def modded(handler: Any, **options: Any) -> Any:
    from flwr.clientapp import ClientApp

    app = ClientApp(mods=[participation_mod(SIZE, budget=BUDGET, **options)])
    app.train()(handler)
    app.evaluate()(handler)
    return app


def test_the_mod_hands_on_indices_and_replaces_the_reply(context: Any) -> None:
    from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict

    seen: list[Any] = []

    def handler(message: Any, context: Any) -> Any:
        elements = sampled_elements(message)
        seen.append(elements.tolist())
        parts = {name: Array(part) for name, part in ones(None, elements).items()}
        secret = MetricRecord({"loss": 0.123})
        return Message(RecordDict({"any": ArrayRecord(parts), "metrics": secret}), reply_to=message)

    plan = plan_of(client_rate=1.0, mode="trusted_server")
    app = modded(handler, trusts_server=True)
    sampled = set()
    node = context()
    for number in range(30):
        reply = app(asked(plan, number), node)
        assert not reply.has_error()
        assert not reply.content.metric_records
        update = update_of(reply)
        assert update is not None
        count = round(float(update.values[0]) / np.floor(1 / np.sqrt(5) / plan.grid.step))  # type: ignore[union-attr]
        if count:
            assert count == len(seen[-1])
        sampled.update(seen[-1] if seen else [])
    assert sampled == set(range(SIZE))


def test_the_mod_leaves_other_messages_alone(context: Any) -> None:
    from flwr.app import Message, MetricRecord, RecordDict

    def handler(message: Any, context: Any) -> Any:
        with pytest.raises(MalformedMessageError, match="participation_mod"):
            sampled_elements(message)
        return Message(RecordDict({"m": MetricRecord({"a": 1})}), reply_to=message)

    reply = modded(handler)(asked(plan_of(), kind="evaluate"), context())
    assert reply.content["m"]["a"] == 1


@pytest.mark.parametrize("fault", ["two records", "names", "error", "raises"])
def test_handlers_that_reply_otherwise_fail(fault: str, context: Any) -> None:
    from flwr.app import Array, ArrayRecord, Error, Message, RecordDict

    def handler(message: Any, context: Any) -> Any:
        if fault == "error":
            return Message(Error(1, "secret"), reply_to=message)
        if fault == "raises":
            raise RuntimeError("secret")
        record = ArrayRecord({"weights": Array(np.ones((SIZE, 2, 2)))})
        content = {"a": record, "b": record} if fault == "two records" else {"a": record}
        return Message(RecordDict(content), reply_to=message)

    plan = plan_of(**ALWAYS, mode="trusted_server")
    reply = modded(handler, trusts_server=True)(asked(plan), context())
    assert reply.has_error()
    assert "secret" not in reply.error.reason


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"size": -1}, InvalidValueError),
        ({"size": 1.5}, InvalidTypeError),
        ({"budget": 1.0}, InvalidTypeError),
        ({"plan": "plan"}, InvalidTypeError),
        ({"trusts_server": 1}, InvalidTypeError),
        ({"least_seconds": -1.0}, InvalidValueError),
        ({"least_seconds": float("inf")}, InvalidValueError),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(arguments))):
        participation_mod(arguments.pop("size", 1), **arguments)


def test_client_app_wants_a_function() -> None:
    with pytest.raises(InvalidTypeError, match="local"):
        client_app(3)  # type: ignore[arg-type]
