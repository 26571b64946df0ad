"""A SuperNode that is killed in the middle of a round."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from turnout.accounting import PrivacyLedger
from turnout.federated import SGD
from turnout.federated.trees import vector

COMPONENTS = ("trial.training_server:nested", "trial.training_client:app")


def expected(model: ModuleType, config: dict[str, Any]) -> Any:
    """The third node is asked in the first two rounds, and answers in the first."""
    plan = model.plan_of(config)
    server = plan.server(model.NESTED, SGD(0.5))
    clients = [
        plan.client(len(model.rows_of(node)), parameters=model.NESTED, index=node)
        for node in range(3)
    ]
    for number in range(config["rounds"]):
        server.open(available=3 if number < 2 else 2)
        now = server.parameters
        for node, client in enumerate(clients):
            if node < 2 or number == 0:
                server.add(client.answer(number, partial(model.gradients, now, node)))
        server.close()
    return vector(server.parameters)


def test_the_run_goes_on_and_ledgers_hold_what_was_spent(
    processes: ModuleType, model: ModuleType, tmp_path: Path
) -> None:
    config = {
        "client-rate": 1.0,
        "mode": "always_send",
        "seed": 3,
        "rounds": 3,
        "epsilon": 0.0,
        "timeout": 600.0,
        "nodes": 3,
    }
    ledgers = [tmp_path / f"ledger-{node}.json" for node in range(3)]
    with processes.running(tmp_path / "flower") as flower:
        for path in ledgers:
            PrivacyLedger(100.0, 1e-5).save(path)
        nodes = [flower.node(node, {"turnout-ledger": ledgers[node]}) for node in range(3)]
        run = flower.submit(COMPONENTS, config)
        computing = run.folder / "computing-2"
        processes.until(computing.exists, run.output)
        (run.folder / "hold-2").touch()
        processes.until(lambda: computing.read_text() == "xx", run.output)
        nodes[2].send_signal(signal.SIGKILL)
        nodes[2].wait()
        # The round goes on until the SuperLink takes the node for lost, a minute at most.
        # What was paid for the round that it never answered is on disk.
        assert rounds(ledgers[2]) == 2
        output = run.wait()
        assert (run.folder / "model.npy").exists(), output
        reached = np.load(run.folder / "model.npy")
    np.testing.assert_array_equal(reached, expected(model, config))
    assert [rounds(path) for path in ledgers] == [3, 3, 2]


def rounds(path: Path) -> int:
    return sum(entry.rounds for entry in PrivacyLedger.load(path).entries)
