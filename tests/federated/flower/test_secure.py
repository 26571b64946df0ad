"""Secure sums in Flower: the server's numbers are those of the plain sum, and it sees no update."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict

from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidTypeError, InvalidValueError, MissingPartyError
from turnout.federated import SGD, Client, RandomParticipationSGD, SecureSum, Server
from turnout.federated.flower import (
    RandomParticipationStrategy,
    client_app,
    new_aggregator,
    pack,
    records,
)
from turnout.federated.shares import Purpose
from turnout.federated.trees import vector

Make = Callable[..., Any]
ROUNDS = 4
CLIENTS = 6


def plan_of(**changed: Any) -> RandomParticipationSGD:
    usual: dict[str, Any] = {
        "client_rate": 0.7,
        "sample_rate": 0.5,
        "clip": 1.0,
        "noise_multiplier": 1.0,
        "local_size": 12,
        "mode": "always_send",
        "seed": 4,
        "secure_sum": SecureSum(3, max_colluding_clients=1),
    }
    return RandomParticipationSGD(**{**usual, **changed})


class Setting:
    """Aggregators and clients in this process, in this order, and a server."""

    def __init__(self, grid_of: Make, model: ModuleType, folder: Path, plan: Any) -> None:
        self.plan, self.model = plan, model
        self.files = [folder / f"aggregator-{number}.json" for number in range(2)]
        self.keys = [new_aggregator(path) for path in self.files]

        def local(context: Context) -> Any:
            client = int(context.node_config["partition-id"])
            rows = len(model.rows_of(client))
            return rows, lambda now, elements: model.gradients(now, client, elements)

        app = client_app(local, plan=plan, aggregators=self.keys)
        self.replies: list[Message] = []
        self.lost: set[tuple[int, int]] = set()
        self.changed: Callable[[Message], Message] = lambda reply: reply

        def recorded(message: Message, context: Context) -> Message:
            reply = app(message, context)
            node = message.metadata.dst_node_id
            number = message.content.config_records.get("turnout.round", {"round": -1})["round"]
            if (node, number) in self.lost and "arrays" in message.content:
                return Message(Error(3, "the node is gone"), reply_to=message)
            reply = self.changed(reply)
            self.replies.append(reply)
            return reply

        self.grid = grid_of([recorded] * (2 + CLIENTS))
        for node, path in enumerate(self.files):
            self.grid.contexts[node].node_config["turnout-aggregator"] = str(path)

    def trained(self, **options: Any) -> RandomParticipationStrategy:
        strategy = RandomParticipationStrategy(
            self.plan, SGD(0.5), aggregators=self.keys, patience=0.1, **options
        )
        strategy.start(self.grid, pack(self.model.NAMED), num_rounds=ROUNDS)
        return strategy

    def expected(self, senders: Callable[[int], Iterable[int]]) -> Any:
        """The plain sums of the updates of these nodes, in one process."""
        server = Server(self.plan, self.model.NAMED, SGD(0.5))
        clients = {
            node: Client(
                self.plan,
                len(self.model.rows_of(node)),
                parameters=self.model.NAMED,
                index=node,
            )
            for node in range(2, 2 + CLIENTS)
        }
        for number in range(ROUNDS):
            server.open(available=CLIENTS)
            for node in senders(number):
                gradients = partial(self.model.gradients, server.parameters, node)
                update = clients[node].answer(number, gradients)
                if update is not None:
                    server.put(update.values)
            server.close()
        return vector(server.parameters)


@pytest.fixture
def setting(grid_of: Make, model: ModuleType, tmp_path: Path) -> Callable[..., Setting]:
    return lambda **changed: Setting(grid_of, model, tmp_path, plan_of(**changed))


@pytest.mark.parametrize("mode", ["always_send", "participants_only"])
def test_the_sum_is_the_plain_one_bit_for_bit(setting: Any, mode: str) -> None:
    made = setting(mode=mode, client_rate=0.9)
    strategy = made.trained()
    whole = made.expected(lambda number: range(2, 2 + CLIENTS))
    np.testing.assert_array_equal(vector(strategy.server.parameters), whole)
    assert strategy.server.round == ROUNDS
    assert np.abs(whole).max() > 0.0


def test_a_client_that_drops_out_is_missing_from_the_sum_only(setting: Any) -> None:
    made = setting()
    made.lost = {(3, 1), (5, 1), (4, 2)}
    strategy = made.trained()
    gone = {1: {3, 5}, 2: {4}}
    present = made.expected(
        lambda number: [node for node in range(2, 8) if node not in gone.get(number, ())]
    )
    # A client that is lost has drawn, and is not asked about that round again.
    np.testing.assert_array_equal(vector(strategy.server.parameters), present)


def test_too_few_senders_make_no_step_and_no_aggregator_adds_up(setting: Any) -> None:
    made = setting(secure_sum=SecureSum(5, 0))
    made.lost = {(node, number) for node in (2, 3) for number in range(ROUNDS)}
    strategy = made.trained()
    np.testing.assert_array_equal(vector(strategy.server.parameters), np.zeros(5))
    # The rounds are over and paid.
    assert [record["round"] for record in strategy.server.history.to_records()] == [1, 2, 3, 4]
    asked = [set(message.content) for message in made.grid.asked]
    assert not any("turnout.shares" in content for content in asked)
    assert sum("arrays" in content for content in asked) == ROUNDS * CLIENTS


def test_the_server_sees_no_update(setting: Any) -> None:
    """Without noise to speak of, what passes through the server is uniformly random."""
    made = setting(seed=None, noise_multiplier=1e-3, client_rate=1.0, sample_rate=1.0)
    made.trained()
    sent = [reply for reply in made.replies if "turnout.shares" in reply.content]
    assert len(sent) == ROUNDS * CLIENTS
    for reply in sent:
        assert set(reply.content) == {"turnout.shares", "turnout.round"}
        assert set(reply.content["turnout.round"]) == {"plan", "round"}
        first, last = reply.content["turnout.shares"]["shares"]
        # Always of one length: a seed, and 61 bits for each of five numbers, encrypted.
        assert (len(first), len(last)) == (32 + 55, 39 + 55)
    everything = [part for reply in sent for part in reply.content["turnout.shares"]["shares"]]
    assert len(set(everything)) == len(everything)
    bits = np.unpackbits(np.frombuffer(b"".join(part[39:] for part in everything), np.uint8))
    # A mean of n fair bits is within 5 / sqrt(4 n) of a half but for 6e-7.
    assert abs(bits.mean() - 0.5) < 5.0 / np.sqrt(4 * bits.size)


def sum_message(made: Setting, node: int, number: int, replies: list[Message]) -> Message:
    record = records.round_record(made.plan, number, None, 1.0)
    record["length"] = 5
    senders = [str(reply.metadata.src_node_id) for reply in replies]
    shares = [reply.content["turnout.shares"]["shares"][node] for reply in replies]
    content = RecordDict(
        {
            "turnout.round": record,
            "turnout.shares": ConfigRecord({"clients": senders, "shares": shares}),
        }
    )
    return Message(content, node, message_type="train")


def test_an_aggregator_adds_up_enough_shares_and_once_in_a_round(setting: Any) -> None:
    made = setting()
    app, contexts = made.grid.apps[0], made.grid.contexts
    made.trained()
    trained = [reply for reply in made.replies if "turnout.shares" in reply.content]
    last = [reply for reply in trained if reply.content["turnout.round"]["round"] == ROUNDS - 1]
    # Not again without one client: the difference of two sums would be its update.
    again = app(sum_message(made, 0, ROUNDS - 1, last[1:]), contexts[0])
    assert "round must be above 3" in again.error.reason
    # Nor after a restart of the node: the rounds are in its file.
    again = app(sum_message(made, 0, ROUNDS - 1, last), Context(1, 0, contexts[0].node_config,
                                                               RecordDict(), {}))  # fmt: skip
    assert "round must be above 3" in again.error.reason

    contexts[2].state = RecordDict()
    for node in (2, 3):
        asked = next(m for m in made.grid.asked if "arrays" in m.content)
        content = RecordDict(dict(asked.content))
        content["turnout.round"] = ConfigRecord({**asked.content["turnout.round"], "round": 9})
        message = Message(content, node, message_type="train")
        made.grid.apps[node](message, contexts[node])
    few = [reply for reply in made.replies[-2:] if "turnout.shares" in reply.content]
    assert len(few) == 2
    refused = app(sum_message(made, 0, 9, few), contexts[0])
    assert refused.has_error()
    # A plan that needs fewer senders is another plan, for which nothing was sealed.
    made.plan = plan_of(secure_sum=SecureSum(2, 0))
    none = app(sum_message(made, 0, 9, few), contexts[0])
    assert none.content["turnout.sum"]["refused"] == ["2", "3"]
    # Nor does a share stand for another client.
    made.plan = plan_of()
    message = sum_message(made, 0, 9, [*few, few[0]])
    message.content["turnout.shares"]["clients"] = ["2", "3", "4"]
    assert app(message, contexts[0]).content["turnout.sum"]["refused"] == ["4"]


def test_a_client_whose_shares_do_not_open_costs_one_round(setting: Any) -> None:
    made = setting(secure_sum=SecureSum(5, 0))

    def changed(reply: Message) -> Message:
        if reply.metadata.src_node_id == 4 and "turnout.shares" in reply.content:
            shares = reply.content["turnout.shares"]["shares"]
            reply.content["turnout.shares"]["shares"] = [b"x" * len(shares[0]), shares[1]]
        return reply

    made.changed = changed
    strategy = made.trained()
    steps = [record["step"] for record in strategy.server.history.to_records()]
    assert steps == [False, True, True, True]
    asked = [m.metadata.dst_node_id for m in made.grid.asked if "arrays" in m.content]
    assert asked.count(4) == 1


def test_a_node_that_pretends_to_be_an_aggregator_is_none(setting: Any) -> None:
    """It knows the public key, and passes its challenges on to the aggregator."""
    made = setting()
    contexts = made.grid.contexts
    app, last = made.grid.apps[0], 1 + CLIENTS
    named = contexts[0].node_config.pop("turnout-aggregator")
    contexts[last].node_config["turnout-aggregator"] = named

    def pretends(message: Message, context: Context) -> Message:
        if "turnout.aggregator" not in message.content:
            return app(message, context)  # type: ignore[no-any-return]
        found = app(message, contexts[last]).content["turnout.aggregator"]
        record = ConfigRecord({**found, "key": made.keys[0]})
        return Message(RecordDict({"turnout.aggregator": record}), reply_to=message)

    made.grid.apps[0] = pretends
    strategy = made.trained()
    steps = [record["step"] for record in strategy.server.history.to_records()]
    assert steps == [True] * ROUNDS


def test_a_client_counts_once_whatever_number_a_message_has(setting: Any) -> None:
    made = setting()
    made.trained()
    asked = next(m for m in made.grid.asked if "arrays" in m.content)
    content = RecordDict(dict(asked.content))
    content["turnout.round"] = ConfigRecord({**asked.content["turnout.round"], "round": 9})
    message = Message(content, 7, message_type="train")
    replies = [made.grid.apps[2](message, made.grid.contexts[node]) for node in (2, 3, 4)]
    summed = sum_message(made, 0, 9, replies)
    for claimed, refused in [(["7", "3", "4"], ["7"]), (["2", "3", "4"], None)]:
        summed.content["turnout.shares"]["clients"] = claimed
        found = made.grid.apps[0](summed, made.grid.contexts[0]).content["turnout.sum"]
        assert found.get("refused") == refused


def test_a_sum_that_no_honest_clients_have_makes_no_step(setting: Any) -> None:
    made = setting()

    def changed(reply: Message) -> Message:
        round_of = reply.content.config_records.get("turnout.round")
        if reply.metadata.src_node_id == 4 and round_of is not None and round_of["round"] == 1:
            purpose = Purpose(1, made.plan.fingerprint, 1, 5, tuple(made.keys))
            far = np.full(5, 2**58)
            reply.content["turnout.shares"] = ConfigRecord({"shares": purpose.sealed(far, 4)})
        return reply

    made.changed = changed
    strategy = made.trained()
    steps = [record["step"] for record in strategy.server.history.to_records()]
    assert steps == [True, False, True, True]
    assert np.abs(vector(strategy.server.parameters)).max() < 100.0


def test_a_server_does_not_choose_how_many_clients_work_for_it(setting: Any, model: Any) -> None:
    """Nor does a node trust such a plan that it did not name, though its ledger would pay."""
    made = setting(seed=None, noise_multiplier=50.0)
    budget = PrivacyLedger(50.0, 1e-5)
    app = client_app(
        lambda context: (3, model.gradients), budget=budget, size_bound=12, aggregators=made.keys
    )
    made.grid.apps[2] = app
    made.trained()
    train = next(m for m in made.grid.asked if "arrays" in m.content)
    message = Message(RecordDict(dict(train.content)), 2, message_type="train")
    refused = app(message, made.grid.contexts[2])
    assert "how many clients work for the server" in refused.error.reason


def test_a_missing_aggregator_stops_the_training_before_it_pays(setting: Any) -> None:
    made = setting()
    del made.grid.contexts[1].node_config["turnout-aggregator"]
    with pytest.raises(MissingPartyError, match="1 of 2 aggregators and 7 of at least 3 other"):
        made.trained()


def test_too_few_clients_stop_it_too(setting: Any) -> None:
    made = setting(secure_sum=SecureSum(CLIENTS + 1, 0))
    with pytest.raises(MissingPartyError, match="6 of at least 7 other nodes"):
        made.trained()


def test_what_does_not_fit_is_refused(tmp_path: Path, model: ModuleType) -> None:
    plan = plan_of()
    key = new_aggregator(tmp_path / "one")
    assert (tmp_path / "one").stat().st_mode & 0o077 == 0
    other = new_aggregator(tmp_path / "two")
    for keys in ([key], [key, key], []):
        with pytest.raises(InvalidValueError, match="at least two public keys, each once"):
            RandomParticipationStrategy(plan, SGD(0.5), aggregators=keys)
    with pytest.raises(InvalidValueError, match="as new_aggregator returns them, got 'abc'"):
        client_app(lambda context: (0, None), plan=plan, aggregators=[key, "abc"])
    with pytest.raises(InvalidTypeError, match="must be a list of public keys"):
        client_app(lambda context: (0, None), plan=plan, aggregators=key)
    plain = plan_of(secure_sum=None)
    with pytest.raises(InvalidValueError, match="left out with a plan without secure_sum"):
        RandomParticipationStrategy(plain, SGD(0.5), aggregators=[key, other])
    # Flower's own strategies see single updates.
    with pytest.raises(InvalidValueError, match="must not have a secure_sum with learning_rate"):
        client_app(lambda context: (0, None), plan=plan, aggregators=[key, other], learning_rate=1)
    with pytest.raises(FileExistsError):
        new_aggregator(tmp_path / "one")


def test_a_node_without_keys_sends_nothing(setting: Any, grid_of: Make, model: ModuleType) -> None:
    made = setting()
    app = client_app(lambda context: (3, model.gradients), plan=made.plan)
    made.grid.apps[2] = app
    made.trained()
    train = next(m for m in made.grid.asked if "arrays" in m.content)
    message = Message(RecordDict(dict(train.content)), 2, message_type="train")
    refused = app(message, made.grid.contexts[2])
    assert "the node knows no aggregators" in refused.error.reason
