"""Nodes that train: one ClientApp around a function, and one with the mod."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from trial.model import gradients, plan_of, rows_of
from turnout.federated.flower import client_app, participation_mod, sampled_elements


def _wait(context: Context) -> None:
    """Say that gradients are being computed; stop if the run's ``hold`` is this node and time."""
    node = context.node_config["partition-id"]
    computing = Path(str(context.run_config["folder"])) / f"computing-{node}"
    with computing.open("a") as file:
        file.write("x")
    if context.run_config.get("hold") == f"{node}:{computing.stat().st_size}":
        time.sleep(3600)


def local(context: Context) -> Any:
    client = int(context.node_config["partition-id"])

    def gradients_of(model: Any, elements: Any) -> Any:
        _wait(context)
        return gradients(model, client, elements)

    return len(rows_of(client)), gradients_of


app = client_app(local, plan=lambda context: plan_of(context.run_config))

modded = ClientApp(
    mods=[
        participation_mod(
            lambda context: len(rows_of(int(context.node_config["partition-id"]))),
            plan=lambda context: plan_of(context.run_config),
        )
    ]
)


@modded.train()
def train(message: Message, context: Context) -> Message:
    _wait(context)
    arrays = message.content["arrays"]
    model = {name: array.numpy() for name, array in arrays.items()}
    found = gradients(model, int(context.node_config["partition-id"]), sampled_elements(message))
    parts = {"weights": found[:, 1:].reshape(-1, 1, 4), "bias": found[:, :1]}
    reply = RecordDict(
        {"gradients": ArrayRecord({name: Array(part) for name, part in parts.items()})}
    )
    return Message(reply, reply_to=message)
