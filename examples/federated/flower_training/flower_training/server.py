"""The server: the plan, the steps, and how good the model is."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from flower_training.model import LARGEST_NODE, START, probabilities, public_images
from turnout.federated import SGD, RandomParticipationSGD
from turnout.federated.flower import server_app

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train with all nodes that are connected."""
    config = context.run_config
    rounds = int(config["rounds"])
    plan = RandomParticipationSGD(
        client_rate=0.5,
        sample_rate=0.5,
        clip=1.0,
        epsilon=float(config["epsilon"]),
        delta=1e-5,
        rounds=rounds,
        local_size=LARGEST_NODE,
        mode="always_send",
    )
    images, labels = public_images()

    def evaluate(number: int, model: Any) -> dict[str, float]:
        found = probabilities(model, images)
        return {
            "loss": float(-np.log(found[np.arange(len(labels)), labels]).mean()),
            "accuracy": float((found.argmax(axis=1) == labels).mean()),
        }

    def on_end(model: Any, server: Any, ended: Context) -> None:
        print(f"epsilon = {server.ledger.spent():.3f} at delta = {server.ledger.delta}")
        np.savez(str(config["output"]), **model)

    training = server_app(
        plan,
        START,
        SGD(4.0),
        rounds=rounds,
        evaluate=evaluate,
        on_end=on_end,
        least_nodes=int(config["nodes"]),
        timeout=300.0,
    )
    training(grid, context)
