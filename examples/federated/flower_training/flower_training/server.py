"""The server: the plan, the steps, and how good the model is."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from flower_training.model import LARGEST_NODE, START, flat, probabilities
from turnout.federated import SGD, RandomParticipationSGD
from turnout.federated.flower import server_app
from turnout_reproduce.datasets import read_mnist

ROUNDS = 20
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train with all nodes that are connected."""
    plan = RandomParticipationSGD(
        client_rate=0.5,
        sample_rate=0.5,
        clip=1.0,
        epsilon=2.0,
        delta=1e-5,
        rounds=ROUNDS,
        local_size=LARGEST_NODE,
        mode="always_send",
    )
    test = read_mnist(str(context.run_config["data"])).test
    images, labels = flat(test.images), test.labels

    def evaluate(number: int, model: Any) -> dict[str, float]:
        found = probabilities(model, images).argmax(axis=1)
        return {"accuracy": float(np.mean(found == labels))}

    def on_end(model: Any, server: Any, ended: Context) -> None:
        print(f"epsilon = {server.ledger.spent():.3f} at delta = {server.ledger.delta}")
        np.savez("model.npz", **model)

    training = server_app(
        plan,
        START,
        SGD(2.0),
        rounds=ROUNDS,
        evaluate=evaluate,
        on_end=on_end,
        least_nodes=3,
        timeout=300.0,
    )
    training(grid, context)
