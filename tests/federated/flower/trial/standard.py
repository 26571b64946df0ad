"""A server with a strategy of Flower's own, and nodes for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp, strategy

from trial.model import NAMED, SIZE, gradients, rows_of
from turnout.accounting import from_flower
from turnout.federated import RandomParticipationSGD
from turnout.federated.flower import client_app

PLAN = RandomParticipationSGD(
    0.7, 0.5, 1.0, noise_multiplier=1.0, local_size=SIZE, mode="always_send", seed=4
)


def local(context: Context) -> Any:
    number = int(context.node_config["partition-id"])
    return len(rows_of(number)), lambda model, elements: gradients(model, number, elements)


client = client_app(local, plan=PLAN, learning_rate=0.5)
server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    folder = Path(str(config["folder"]))
    nodes, rounds = int(config["nodes"]), int(config["rounds"])
    options: Any = {
        "fraction_evaluate": 0.0, "min_train_nodes": nodes, "min_available_nodes": nodes
    }  # fmt: skip
    chosen: Any
    if config["strategy"] == "DifferentialPrivacy":
        chosen = strategy.DifferentialPrivacyServerSideFixedClipping(
            strategy.FedAvg(**options), 2.0, 0.1, nodes
        )
    else:
        chosen = getattr(strategy, str(config["strategy"]))(**options)
    arrays = ArrayRecord({name: Array(value) for name, value in NAMED.items()})
    result = chosen.start(grid, arrays, rounds)
    if config["strategy"] == "DifferentialPrivacy":
        training = from_flower(chosen, clients=nodes, replies=[nodes] * rounds)
        (folder / "epsilon").write_text(repr(training.epsilon(1e-5)))
    found = [result.arrays[name].numpy().ravel() for name in sorted(result.arrays)]
    np.save(folder / "model.npy", np.concatenate(found))
