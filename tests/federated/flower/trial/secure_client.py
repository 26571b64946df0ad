"""Nodes of a secure sum: aggregators, clients, and clients that vanish in the middle of a round."""

from __future__ import annotations

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from trial.keys import FILES, KEYS
from trial.model import plan_of
from trial.training_client import local
from turnout.federated.flower import client_app

honest = client_app(local, plan=lambda context: plan_of(context.run_config), aggregators=KEYS)
app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    number = int(context.node_config["partition-id"])
    if number < len(FILES):
        context.node_config["turnout-aggregator"] = FILES[number]
    reply = honest(message, context)
    asked = message.content.config_records.get("turnout.round", {"round": -1})["round"]
    if f"{number}:{asked}" in str(context.run_config["vanishing"]).split():
        raise RuntimeError("the node is gone before its reply is sent")
    return reply
