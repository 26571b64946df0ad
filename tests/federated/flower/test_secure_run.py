"""Secure sums in Flower's simulation and in a deployment, with clients that vanish in a round."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from turnout.federated import SGD, Client, Server
from turnout.federated.flower import new_aggregator
from turnout.federated.trees import vector

COMPONENTS = ("trial.secure_server:app", "trial.secure_client:app")


def configuration(**changed: Any) -> dict[str, Any]:
    usual = {
        "client-rate": 0.7,
        "mode": "always_send",
        "seed": 6,
        "rounds": 3,
        "epsilon": 0.0,
        "timeout": 600.0,
        "least": 2,
        "vanishing": "",
    }
    return {**usual, **changed}


def plain(
    model: ModuleType,
    config: dict[str, Any],
    nodes: list[int],
    gone: Callable[[int, int], bool],
    available: Callable[[int], int],
) -> tuple[Any, set[str]]:
    """The plain sums in this process, and every single update in the forms that it could have."""
    plan = model.plan_of(config)
    server = Server(plan, model.NAMED, SGD(0.5))
    clients = {
        node: Client(plan, len(model.rows_of(node)), parameters=model.NAMED, index=node)
        for node in nodes
    }
    updates = set()
    for number in range(config["rounds"]):
        server.open(available=available(number))
        for node, client in clients.items():
            gradients = partial(model.gradients, server.parameters, node)
            update = client.answer(number, gradients)
            if update is not None:
                updates |= {update.values.astype(kind).tobytes().hex() for kind in ("<i8", "<i4")}
                if not gone(node, number):
                    server.put(update.values)
        server.close()
    return vector(server.parameters), updates


def check_seen(path: Path, updates: set[str], senders: int, rounds: int) -> None:
    """Nothing but keys, shares of one length and sums came to the server."""
    seen = [json.loads(line) for line in path.read_text().splitlines()]
    known = [frozenset(reply) for reply in seen]
    assert set(known) - {frozenset()} == {
        frozenset({"turnout.aggregator"}),
        frozenset({"turnout.shares", "turnout.round"}),
        frozenset({"turnout.sum"}),
    }
    shares = [reply["turnout.shares"]["shares"] for reply in seen if "turnout.shares" in reply]
    assert len(shares) == senders
    assert {tuple(len(bytes.fromhex(one)) for one in each) for each in shares} == {(87, 94)}
    sums = [reply["turnout.sum"] for reply in seen if "turnout.sum" in reply]
    assert [set(each) for each in sums] == [{"sum"}] * (2 * rounds)
    whole = path.read_text()
    assert not any(update in whole for update in updates)


@pytest.mark.slow
def test_in_a_simulation_two_clients_vanish(
    simulation: Any, model: ModuleType, tmp_path: Path
) -> None:
    files = [str(tmp_path / f"aggregator-{number}.json") for number in range(2)]
    keys = [new_aggregator(path) for path in files]
    config = configuration(vanishing="3:1 5:1 4:2", nodes=5)
    text = f"KEYS = {keys!r}\nFILES = {files!r}\n"
    run = simulation.submit(COMPONENTS, config, nodes=7, keys=text)
    output = run.wait()
    assert (run.folder / "model.npy").exists(), output
    gone = {(3, 1), (5, 1), (4, 2)}
    ours, updates = plain(model, config, [2, 3, 4, 5, 6], lambda *at: at in gone, lambda number: 5)
    np.testing.assert_array_equal(np.load(run.folder / "model.npy"), ours)
    assert np.abs(ours).max() > 0.0
    check_seen(run.folder / "seen.jsonl", updates, senders=12, rounds=3)


@pytest.mark.slow
def test_in_a_deployment_a_client_is_killed_in_a_round(
    processes: ModuleType, model: ModuleType, tmp_path: Path
) -> None:
    config = configuration(rounds=1, nodes=3, hold="4:1", **{"client-rate": 1.0})
    with processes.running(tmp_path / "flower") as flower:
        keys = []
        for number in range(2):
            path = tmp_path / f"aggregator-{number}.json"
            keys.append(new_aggregator(path))
            flower.node(number, turnout_aggregator=str(path))
        doomed = [flower.node(number) for number in (2, 3, 4)][-1]
        run = flower.submit(COMPONENTS, config, keys=f"KEYS = {keys!r}\nFILES = []\n")
        computing = run.folder / "computing-4"
        processes.until(computing.exists, run.output)
        doomed.send_signal(signal.SIGKILL)
        doomed.wait()
        output = run.wait()
        assert (run.folder / "model.npy").exists(), output
        # Whoever drew has paid, also the client that was killed before it sent.
        assert [flower.rounds(number) for number in (2, 3, 4)] == [1, 1, 1]
        # The aggregators drew nothing and paid nothing.
        assert flower.rounds(0) == flower.rounds(1) == 0
    ours, updates = plain(
        model, config, [2, 3, 4], lambda node, number: node == 4, lambda number: 3
    )
    np.testing.assert_array_equal(np.load(run.folder / "model.npy"), ours)
    check_seen(run.folder / "seen.jsonl", updates, senders=2, rounds=1)
