"""Models, updates and ledgers on their way through Flower; the strategy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.accounting import GaussianMechanism, PrivacyLedger
from turnout.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    MalformedMessageError,
    ProtocolError,
)
from turnout.federated import SGD, RandomParticipationSGD, Update
from turnout.federated.flower import (
    RandomParticipationStrategy,
    pack,
    server_app,
    unpack,
)
from turnout.federated.flower.kept import node_ledger
from turnout.federated.flower.records import ROUND, model_of, reply_of, round_record, update_of
from turnout.federated.trees import flatten

PLAN = RandomParticipationSGD(0.5, 0.5, 1.0, noise_multiplier=1.0, local_size=4)

TREES = [
    np.arange(3.0),
    {"b": np.ones((2, 2), np.float32), "a": np.zeros(1)},
    [np.ones(2), (np.zeros((1, 1)), {"x": np.ones(1)})],
    {"deep": {"a": np.ones(1)}, "flat": np.zeros(2)},
    [np.ones(1)] * 12,
]


@pytest.mark.parametrize("tree", TREES)
def test_models_arrive_as_they_were_nested(tree: Any) -> None:
    from flwr.app import RecordDict

    leaves, structure = flatten(tree)
    content = RecordDict({"arrays": pack(tree), ROUND: round_record(PLAN, 0, structure, PLAN.clip)})
    arrived, form = model_of(content)
    assert form == structure
    assert isinstance(arrived, type(tree))
    for ours, theirs in zip(leaves, flatten(arrived)[0], strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert flatten(unpack(pack(tree), structure))[1] == structure


def test_names_travel_in_any_order() -> None:
    from flwr.app import Array, ArrayRecord

    record = ArrayRecord({"z": Array(np.zeros(1)), "a": Array(np.ones(2))})
    assert list(pack(unpack(record))) == ["a", "z"]


def asked() -> Any:
    from flwr.app import Message, RecordDict

    return Message(RecordDict(), dst_node_id=1, message_type="train")


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**31 - 1, -(2**31)], np.int64),
        np.array([2**31, 0], np.int64),
        np.array([-(2**31) - 1, 0], np.int64),
        np.array([0.1, -3.0]),
    ],
)
def test_updates_arrive_whole(values: Any) -> None:
    update = update_of(reply_of(asked(), Update(3, values, "plan")))
    assert update is not None
    assert (update.round, update.plan) == (3, "plan")
    assert update.values.dtype == values.dtype
    np.testing.assert_array_equal(update.values, values)


def test_replies_that_are_no_updates_are_refused() -> None:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

    good = {"plan": "p", "round": 0}

    def reply(config: Any, arrays: Any) -> Any:
        return Message(
            RecordDict({ROUND: ConfigRecord(config), "turnout.update": ArrayRecord(arrays)}),
            reply_to=asked(),
        )

    values = Array(np.zeros(2, np.int64))
    broken = Array(dtype="int64", shape=(2,), stype="numpy.ndarray", data=b"no array")
    assert update_of(reply(good, {"values": values})) is not None
    for config, arrays in (
        ({"plan": "p"}, {"values": values}),
        ({"plan": "p", "round": "0"}, {"values": values}),
        ({"round": 0}, {"values": values}),
        (good, {}),
        (good, {"values": values, "more": values}),
        (good, {"other": values}),
        (good, {"values": Array(np.zeros((1, 2), np.int64))}),
        (good, {"values": Array(np.zeros(2, np.float32))}),
        (good, {"values": broken}),
    ):
        with pytest.raises(MalformedMessageError):
            update_of(reply(config, arrays))
    assert update_of(Message(RecordDict(), reply_to=asked())) is None


def test_a_ledger_that_refuses_is_left_as_it_was(
    context: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "ledger.json"
    node, query = context(turnout_ledger=str(path)), GaussianMechanism(10.0)
    with node_ledger(node, PrivacyLedger(1.0, 1e-5)) as ledger:
        assert ledger is not None
        ledger.spend(query)
    before = path.read_bytes()

    def too_much() -> None:
        with node_ledger(node, None) as ledger:
            assert ledger is not None
            ledger.spend(query)
            ledger.spend(query, rounds=10**6)

    with pytest.raises(BudgetExceededError):
        too_much()
    assert path.read_bytes() == before


SPENDER = """
import sys
from flwr.app import Context, RecordDict
from turnout.accounting import GaussianMechanism, PrivacyLedger
from turnout.federated.flower.kept import node_ledger

node = Context(1, 1, {"turnout-ledger": sys.argv[1]}, RecordDict(), {})
for _ in range(10):
    with node_ledger(node, PrivacyLedger(100.0, 1e-5)) as ledger:
        ledger.spend(GaussianMechanism(10.0))
"""


def test_processes_that_share_a_ledger_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    workers = [subprocess.Popen([sys.executable, "-c", SPENDER, str(path)]) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert sum(entry.rounds for entry in PrivacyLedger.read(path).entries) == 30


def test_flower_is_not_imported_with_turnout() -> None:
    program = "import sys, turnout, turnout.federated; sys.exit('flwr' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"plan": 1}, InvalidTypeError),
        ({"optimizer": 0.1}, InvalidTypeError),
        ({"least_nodes": 0}, InvalidValueError),
        ({"patience": 0.0}, InvalidValueError),
    ],
)
def test_bad_arguments_of_the_strategy(options: dict[str, Any], error: type[Exception]) -> None:
    usual = {"plan": PLAN, "optimizer": SGD(0.1)}
    with pytest.raises(error, match=next(iter(options))):
        RandomParticipationStrategy(**{**usual, **options})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rounds": 0}, InvalidValueError),
        ({"timeout": float("inf")}, InvalidValueError),
        ({"evaluate": 1}, InvalidTypeError),
        ({"on_end": 1}, InvalidTypeError),
        ({"parameters": {"a": "b"}}, InvalidTypeError),
    ],
)
def test_bad_arguments_of_the_server_app(options: dict[str, Any], error: type[Exception]) -> None:
    usual = {"parameters": np.zeros(2), "rounds": 1}
    with pytest.raises(error, match=next(iter(options))):
        server_app(PLAN, optimizer=SGD(0.1), **{**usual, **options})


def test_a_strategy_has_no_server_before_it_starts() -> None:
    with pytest.raises(ProtocolError, match="not started"):
        _ = RandomParticipationStrategy(PLAN, SGD(0.1)).server
