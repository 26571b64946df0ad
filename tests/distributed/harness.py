"""Rounds whose messages are carried by hand, and a look into the state of roles."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import turnout.distributed as td
from turnout.distributed import Message, Party, Role
from turnout.distributed.messages import MessageKind

#: Coins that all show heads: a round misses one with probability 10^-12 for each user.
ALWAYS = 1 - 1e-12

#: Discrete Laplace noise that is zero: anything else has probability 4 * 10^-22 for each item.
SILENT = 0.02


def silent(items: int, users: int, **arguments: Any) -> td.NoisyAggregation:
    """Make a mechanism whose sums are the counts."""
    return td.NoisyAggregation(items, users, parameter=SILENT, **arguments)


def forged(
    round_: td.Round, kind: MessageKind, sender: Party, recipient: Party, payload: bytes
) -> bytes:
    """Write a message of a round with a valid checksum and any content."""
    return Message(kind, round_.identifier, sender, recipient, payload).to_bytes()


@dataclass
class Network:
    """All roles of a round, and the messages on their way."""

    round_: td.Round
    roles: dict[Party, Any] = field(init=False)
    waiting: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the roles."""
        mechanism = self.round_.mechanism
        made: list[Any] = [self.round_.user(user) for user in range(mechanism.users)]
        made.append(self.round_.server())
        if isinstance(mechanism, td.TwoStageSampling):
            made.append(self.round_.reporting_server())
        else:
            count = mechanism._number_of_parties
            made += [self.round_.aggregator(index) for index in range(count)]
        self.roles = {role.party: role for role in made}

    @property
    def server(self) -> td.AggregatingServer:
        """The server."""
        return self.roles[Party(Role.SERVER)]

    def user(self, index: int) -> td.User:
        """A user."""
        return self.roles[Party(Role.USER, index)]

    def aggregator(self, index: int) -> td.Aggregator:
        """An aggregator."""
        return self.roles[Party(Role.AGGREGATOR, index)]

    @property
    def collectors(self) -> list[Any]:
        """The roles that have to be closed."""
        return [role for role in self.roles.values() if role._users_report]

    def report(self, values: Sequence[Any]) -> None:
        """Let the first users report; their messages wait."""
        for index, value in enumerate(values):
            self.waiting += self.user(index).report(value)

    def deliver(self, messages: Iterable[Message] | None = None) -> None:
        """Deliver messages and all that follow from them, in order."""
        pending = list(self.waiting if messages is None else messages)
        if messages is None:
            self.waiting = []
        while pending:
            message = pending.pop(0)
            pending += self.roles[message.recipient].receive(message.to_bytes())

    def close(self) -> None:
        """Close all collectors and deliver what follows."""
        for collector in self.collectors:
            self.deliver(collector.close())

    def finish_in_any_order(self, chance: random.Random) -> None:
        """Deliver and close in a random order that channels and deadlines allow.

        A collector closes when its users' messages are there; everything else may overtake.
        """
        open_ = {collector.party: collector for collector in self.collectors}
        while self.waiting or open_:
            ready = [party for party, role in open_.items() if not role.missing]
            step = chance.randrange(len(self.waiting) + len(ready))
            if step < len(self.waiting):
                message = self.waiting.pop(step)
                self.waiting += self.roles[message.recipient].receive(message.to_bytes())
            else:
                self.waiting += open_.pop(ready[step - len(self.waiting)]).close()


def state_of(role: Any) -> Any:
    """Everything a role holds, beside the round, in a form that compares."""
    hidden = {"round_id", "_mechanism"}
    return {name: _plain(value) for name, value in vars(role).items() if name not in hidden}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict):
        return [(_plain(key), _plain(entry)) for key, entry in value.items()]
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return (type(value).__name__, _plain(vars(value)))
    return value


def bytes_in(state: Any) -> list[bytes]:
    """All byte strings, and contents of arrays, in what :func:`state_of` gives."""
    if isinstance(state, bytes):
        return [state]
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, (list, tuple)):
        return [found for entry in state for found in bytes_in(entry)]
    return []


def holds_data(role: Any) -> bool:
    """Whether a role holds any bytes, or any array that is not all zero."""
    return any(found.strip(b"\0") for found in bytes_in(state_of(role)))


def spread(counts: Sequence[int]) -> list[int]:
    """Give the items of users with these counts."""
    return np.repeat(np.arange(len(counts)), counts).tolist()
