"""Servers that train: as the function makes one, and with the strategy in a main of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from trial.model import NAMED, NESTED, plan_of
from turnout.federated import SGD
from turnout.federated.flower import RandomParticipationStrategy, pack, server_app
from turnout.federated.trees import vector

nested = ServerApp()


@nested.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    folder = Path(str(config["folder"]))

    def on_end(model: object, server: object, ended: Context) -> None:
        np.save(folder / "model.npy", vector(model))

    server_app(
        plan_of(config),
        NESTED,
        SGD(0.5),
        rounds=int(config["rounds"]),
        on_end=on_end,
        least_nodes=int(config["nodes"]),
        timeout=float(config["timeout"]),
        checkpoint=folder / "checkpoint.npz",
    )(grid, context)


named = ServerApp()


@named.main()
def main_named(grid: Grid, context: Context) -> None:
    config = context.run_config
    folder = Path(str(config["folder"]))
    strategy = RandomParticipationStrategy(
        plan_of(config), SGD(0.5, momentum=0.5), least_nodes=int(config["nodes"])
    )
    extra = int(config["extra-rounds"])
    result = strategy.start(
        grid, pack(NAMED), int(config["rounds"]) + extra, float(config["timeout"])
    )
    model = {name: array.numpy() for name, array in result.arrays.items()}
    np.save(folder / "model.npy", vector(model))
