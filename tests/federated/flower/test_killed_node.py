"""A SuperNode that is killed in the middle of a round."""

from __future__ import annotations

import signal
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from turnout.federated import SGD, Client, Server
from turnout.federated.trees import vector

COMPONENTS = ("trial.training_server:nested", "trial.training_client:app")


def expected(model: ModuleType, config: dict[str, Any]) -> Any:
    """The last node is asked in the first two rounds, and answers in the first."""
    plan = model.plan_of(config)
    server = Server(plan, model.NESTED, SGD(0.5))
    clients = [
        Client(plan, len(model.rows_of(node)), parameters=model.NESTED, index=node)
        for node in range(4)
    ]
    for number in range(config["rounds"]):
        server.open(available=4 if number < 2 else 3)
        now = server.parameters
        for node, client in enumerate(clients):
            if node < 3 or number == 0:
                server.add(client.answer(number, partial(model.gradients, now, node)), node)
        server.close()
    return vector(server.parameters)


def test_the_run_goes_on_and_ledgers_hold_what_was_spent(
    deployment: Any, processes: ModuleType, model: ModuleType
) -> None:
    config = {
        "client-rate": 1.0,
        "mode": "always_send",
        "seed": 3,
        "rounds": 3,
        "epsilon": 0.0,
        "timeout": 600.0,
        "nodes": 4,
        "hold": "3:2",
    }
    before = [deployment.rounds(node) for node in range(3)]
    doomed = deployment.node(3)
    try:
        run = deployment.submit(COMPONENTS, config)
        computing = run.folder / "computing-3"
        processes.until(lambda: computing.exists() and computing.read_text() == "xx", run.output)
    finally:
        doomed.send_signal(signal.SIGKILL)
        doomed.wait()
    # What was paid for the round that it never answers is on disk.
    assert deployment.rounds(3) == 2
    # The round goes on until the SuperLink takes the node for lost, a minute at most.
    output = run.wait()
    assert (run.folder / "model.npy").exists(), output
    np.testing.assert_array_equal(np.load(run.folder / "model.npy"), expected(model, config))
    assert [deployment.rounds(node) for node in range(3)] == [count + 3 for count in before]
    assert deployment.rounds(3) == 2
