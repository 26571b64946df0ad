"""A server of secure sums that writes down everything that it receives."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from trial.keys import KEYS
from trial.model import NAMED, plan_of
from turnout.federated import SGD
from turnout.federated.flower import RandomParticipationStrategy, pack
from turnout.federated.trees import vector

app = ServerApp()


class Watched:
    """Flower's grid, with a list of what came through it."""

    def __init__(self, grid: Grid, path: Path) -> None:
        self._grid, self._path = grid, path

    def get_node_ids(self) -> Iterable[int]:
        return self._grid.get_node_ids()

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Any:
        replies = list(self._grid.send_and_receive(messages, timeout=timeout))
        with self._path.open("a") as file:
            for reply in replies:
                seen = {} if reply.has_error() else described(reply)
                file.write(json.dumps(seen) + "\n")
        return replies


def described(reply: Message) -> dict[str, Any]:
    """All that stands in a reply, with bytes as hexadecimal text."""
    records = {
        name: {key: shown(value) for key, value in record.items()}
        for name, record in reply.content.config_records.items()
    }
    assert set(records) == set(reply.content)
    return records


def shown(value: Any) -> Any:
    if isinstance(value, list):
        return [shown(each) for each in value]
    return value.hex() if isinstance(value, bytes) else value


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    folder = Path(str(config["folder"]))
    strategy = RandomParticipationStrategy(
        plan_of(config), SGD(0.5), aggregators=KEYS, least_nodes=int(config["nodes"])
    )
    watched: Any = Watched(grid, folder / "seen.jsonl")
    rounds = int(config["rounds"])
    result = strategy.start(watched, pack(NAMED), rounds, float(config["timeout"]))
    model = {name: array.numpy() for name, array in result.arrays.items()}
    np.save(folder / "model.npy", vector(model))
