"""A node: its answer, and what it may ever spend on answers."""

from __future__ import annotations

from flwr.app import Context

from turnout.federated.flower import frequency_client_app

#: What nodes of a simulation answer, by the last digit of their number.
SIMULATED = ["never"] * 6 + ["once"] * 3 + ["often"]


def answer(context: Context) -> str:
    """Give the answer in the node's configuration."""
    if "answer" in context.node_config:
        return str(context.node_config["answer"])
    return SIMULATED[int(context.node_config["partition-id"]) % 10]


app = frequency_client_app(answer, budget=4.0)
