"""A grid of Flower whose nodes live in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid


class LocalGrid(Grid):
    """Nodes that answer at once."""

    def __init__(self, apps: Iterable[Callable[[Message, Context], Message]]) -> None:
        self.apps = list(apps)
        self.contexts = [
            Context(1, node, {"partition-id": node}, RecordDict(), {})
            for node in range(len(self.apps))
        ]
        self.asked: list[Message] = []

    def get_node_ids(self) -> list[int]:
        return list(range(len(self.apps)))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[Message]:
        kept = list(messages)
        for message in kept:
            # Flower's own strategies give all messages the same content; each node gets its own.
            message.content = RecordDict(dict(message.content))
        self.asked += kept
        numbers = [message.metadata.dst_node_id for message in kept]
        pairs = zip(numbers, kept, strict=True)
        return [self.apps[number](message, self.contexts[number]) for number, message in pairs]

    def set_run(self, run: Any) -> None: ...
    @property
    def run(self) -> Any: ...
    def create_message(self, *given: Any, **named: Any) -> Any: ...
    def push_messages(self, messages: Any) -> Any: ...
    def pull_messages(self, message_ids: Any) -> Any: ...
