"""Nodes that answer a question."""

from __future__ import annotations

from flwr.app import Context

from trial.frequency_server import LABELS
from turnout.federated.flower import frequency_client_app


def answer(context: Context) -> str:
    return LABELS[int(context.node_config["partition-id"]) % len(LABELS)]


app = frequency_client_app(answer, budget=4.0, seed=lambda context: int(context.run_config["seed"]))
