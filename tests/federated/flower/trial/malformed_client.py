"""Nodes of which the first two are honest, and each of the others sends something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable

from trial.frequency_client import app as answering
from trial.training_client import app as training

HONEST = 2


def stored(data: bytes) -> Array:
    """Bytes that say they are an array."""
    return Array(dtype="int64", shape=(5,), stype="numpy.ndarray", data=data)


def holding(array: Array) -> Callable[[Message], Message]:
    """Put an array where an update's values or a node's reports are."""

    def change(reply: Message) -> Message:
        trained = "turnout.update" in reply.content
        record, name = ("turnout.update", "values") if trained else ("turnout.reports", "reports")
        reply.content[record] = ArrayRecord({name: array})
        return reply

    return change


def another_round(reply: Message) -> Message:
    reply.content["turnout.round"]["round"] = 10**6
    return reply


def strange(reply: Message) -> Message:
    reply.content = RecordDict({"m": MetricRecord({"a": 1}), "c": ConfigRecord({"b": "x" * 10**6})})
    return reply


def failing(reply: Message) -> Message:
    raise ValueError("the node's program fails")


KINDS: list[Callable[[Message], Message]] = [
    holding(Array(np.arange(10_000_000))),
    holding(stored(b"garbage")),
    holding(stored(b"\x93NUMPY\x01\x00\x10\x00{'descr': '|O', ")),
    holding(Array(np.zeros(2, np.int64))),
    holding(Array(np.full(5, np.nan))),
    holding(Array(np.full(5, 2**62))),
    another_round,
    strange,
    failing,
]


def malformed(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Change what a node sends, and write its name down."""
    reply = call_next(message, context)
    number = int(context.node_config["partition-id"]) - HONEST
    if number < 0:
        return reply
    (Path(str(context.run_config["folder"])) / f"kind-{number}").write_text(str(context.node_id))
    return KINDS[number](reply)


app = ClientApp(mods=[malformed])


@app.train()
def train(message: Message, context: Context) -> Message:
    return training(message, context)


@app.query()
def query(message: Message, context: Context) -> Message:
    return answering(message, context)
