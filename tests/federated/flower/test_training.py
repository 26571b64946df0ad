"""Flower's simulation and its deployment reach the numbers of the engine in one process."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from turnout.accounting import PrivacyLedger, compose
from turnout.federated import SGD, InProcessEngine
from turnout.federated.trees import vector

NESTED = ("trial.training_server:nested", "trial.training_client:app")
NAMED = ("trial.training_server:named", "trial.training_client:modded")


def configuration(**changed: Any) -> dict[str, Any]:
    usual = {
        "client-rate": 0.7,
        "mode": "trusted_server",
        "seed": 5,
        "rounds": 3,
        "epsilon": 0.0,
        "timeout": 600.0,
        "nodes": 3,
        "extra-rounds": 0,
    }
    return {**usual, **changed}


def expected(model: ModuleType, config: dict[str, Any], start: Any, optimizer: SGD) -> Any:
    """What the engine in this process gets."""
    sizes = [len(model.rows_of(client)) for client in range(config["nodes"])]
    engine = InProcessEngine(model.plan_of(config), start, model.gradients, sizes, optimizer)
    return vector(engine.run(config["rounds"]))


def test_simulation_gets_the_numbers_of_the_engine(simulation: Any, model: ModuleType) -> None:
    config = configuration(nodes=8, mode="always_send", seed=11, rounds=6)
    run = simulation.submit(NAMED, config, nodes=8)
    output = run.wait()
    assert (run.folder / "model.npy").exists(), output
    ours = expected(model, config, model.NAMED, SGD(0.5, momentum=0.5))
    np.testing.assert_array_equal(np.load(run.folder / "model.npy"), ours)
    assert np.abs(ours).max() > 0.0


def test_a_server_without_budget_asks_nobody(simulation: Any, model: ModuleType) -> None:
    # The noise is calibrated for two rounds; the server wants three.
    config = configuration(nodes=2, rounds=2, epsilon=1.0, **{"client-rate": 1.0})
    run = simulation.submit(NAMED, {**config, "extra-rounds": 1}, nodes=2)
    output = run.wait()
    assert "BudgetExceededError" in output
    assert not (run.folder / "model.npy").exists()
    for node in range(2):
        assert (run.folder / f"computing-{node}").read_text() == "xx"


def test_deployment_gets_the_numbers_of_the_engine(deployment: Any, model: ModuleType) -> None:
    config = configuration()
    before = [deployment.rounds(node) for node in range(3)]
    run = deployment.submit(NESTED, config)
    output = run.wait()
    assert (run.folder / "model.npy").exists(), output
    ours = expected(model, config, model.NESTED, SGD(0.5))
    np.testing.assert_array_equal(np.load(run.folder / "model.npy"), ours)
    for node in range(3):
        assert deployment.rounds(node) == before[node] + 3
        ledger = PrivacyLedger.read(deployment.ledger(node))
        parts = [(entry.mechanism, entry.rounds) for entry in ledger.entries]
        assert ledger.spent() == compose(parts).epsilon(1e-5)
