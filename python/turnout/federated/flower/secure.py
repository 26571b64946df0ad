"""Secure sums in Flower: shares of clients, and the nodes that add them up.

A node whose configuration has ``turnout-aggregator`` is an *aggregator*. It never trains. All
messages are of the type train and pass through the server, which cannot read the shares in them.

From a client, in place of ``turnout.update``
    ``turnout.shares``
        A ``ConfigRecord``: ``shares``, the encrypted share for each aggregator, in their order.

To a node that may be an aggregator
    ``turnout.aggregator``
        A ``ConfigRecord``: ``challenges``, random bytes for each aggregator, in their order,
        encrypted to its key for this node. An aggregator replies with the same record and
        ``answer``, the bytes that its key opens. Other nodes reply with no records.

To an aggregator
    ``turnout.round``
        As to a client; with ``length``, the number of numbers in an update.
    ``turnout.shares``
        A ``ConfigRecord``: ``clients``, the numbers of nodes as text; ``shares``, the share of each
        for this aggregator.

From an aggregator
    ``turnout.sum``
        A ``ConfigRecord``: ``sum``, its shares added up, 61 bits for each number; or ``refused``,
        the clients whose shares do not open.

The file of an aggregator is a JSON object: ``format``, ``"turnout-aggregator"``; ``version``, 1;
``key`` and ``private_key``, in the base64 alphabet for URLs; ``answered``, an object with the last
round whose sum it has sent, for each training (the number of the run, a slash and the fingerprint
of the plan).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid

from turnout import _core
from turnout._documents import check_version, document
from turnout._files import atomic_write, turn
from turnout._secrets import read_secret_file, write_secret_file
from turnout._types import Integers
from turnout.errors import (
    CorruptDataError,
    MalformedMessageError,
    MissingPartyError,
    PlanMismatchError,
    ProtocolError,
    TurnoutError,
)
from turnout.federated import RandomParticipationSGD, Update
from turnout.federated.flower import records
from turnout.federated.shares import Purpose, checked_keys, combined, key_bytes, key_text

_CONFIGURED = "turnout-aggregator"
_FORMAT, _VERSION = "turnout-aggregator", 1
_AGGREGATOR, _SHARES, _RESULT = "turnout.aggregator", "turnout.shares", "turnout.sum"
#: What challenges are encrypted for: never the same as shares, which an answer must not reveal.
_CHALLENGE = b"turnout aggregator challenge 1"
#: Stands for the key of a node that has the record of an aggregator, and none of their keys.
_ANOTHER = "?"
_POLL = 0.2


def new_aggregator(path: str | os.PathLike[str]) -> str:
    """Make the key of an aggregator, and return the public key, which everybody may know.

    Name the file in the configuration of the aggregator's node: ``flower-supernode --node-config
    "turnout-aggregator='/path/aggregator.json'"``. The file also keeps which rounds the aggregator
    has answered: never copy it to a second node, and never restore an old copy.

    Parameters
    ----------
    path
        The new file, which only its owner can read.

    Returns
    -------
    str
        The public key, for ``aggregators`` of the applications of clients and server.

    Raises
    ------
    OSError
        If the file exists already or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     key = new_aggregator(folder + "/aggregator.json")
    >>> len(key)
    56
    """
    key = _core.HpkeKey.generate(0)
    write_secret_file(path, _File(key, {}).text())
    return key_text(key.config)


@dataclass(eq=False)
class _File:
    """The key of an aggregator, and the last round of each training that it has answered."""

    key: _core.HpkeKey = field(repr=False)
    answered: dict[str, int]

    @classmethod
    def read(cls, path: Path) -> _File:
        """Read the file of an aggregator, which nobody else must be able to read."""
        try:
            return cls.of(read_secret_file(path))
        except CorruptDataError as error:
            raise type(error)(f"{path}: {error}") from None

    @classmethod
    def of(cls, text: str | bytes) -> _File:
        """Read the content of the file; nothing of it is shown, since it holds a key."""
        refusal = "not the file of an aggregator"
        found = document(refusal, text)
        check_version("file of an aggregator", found, _FORMAT, _VERSION)
        match found:
            case {"key": str(config), "private_key": str(private), "answered": dict(answered)} if (
                len(found) == 5 and all(type(last) is int for last in answered.values())
            ):
                try:
                    secret = base64.urlsafe_b64decode(private)
                    return cls(_core.HpkeKey(base64.urlsafe_b64decode(config), secret), answered)
                except (ValueError, TurnoutError):
                    raise CorruptDataError(refusal) from None
        raise CorruptDataError(refusal)

    def text(self) -> str:
        """Return the content of the file."""
        private = base64.urlsafe_b64encode(self.key.private_key()).decode("ascii")
        head = {"format": _FORMAT, "version": _VERSION, "key": key_text(self.key.config)}
        return json.dumps({**head, "private_key": private, "answered": self.answered}) + "\n"


def is_for_aggregators(message: Message) -> bool:
    """Return whether a message asks an aggregator for something."""
    return _AGGREGATOR in message.content or _SHARES in message.content


def aggregator_reply(message: Message, context: Context, keys: tuple[str, ...]) -> Message:
    """Answer a message to aggregators, with a proof of the key or a sum; other nodes have none."""
    named = context.node_config.get(_CONFIGURED)
    path = None if named is None else Path(str(named))
    try:
        if _SHARES in message.content:
            return _summed(message, context, keys, path)
        content = RecordDict()
        if path is not None:
            answer = _answer(message.content.config_records[_AGGREGATOR], context, path)
            content[_AGGREGATOR] = ConfigRecord({"answer": answer})
        return Message(content, reply_to=message)
    except (TurnoutError, OSError, ValueError) as error:
        return records.refusal(message, error)


def _answer(record: ConfigRecord, context: Context, path: Path) -> bytes:
    """Open the challenge for the key of an aggregator; no bytes if there is none."""
    key, challenges = _File.read(path).key, record.get("challenges")
    for challenge in challenges if isinstance(challenges, list) else []:
        if isinstance(challenge, bytes):
            with contextlib.suppress(TurnoutError, ValueError):
                return key.open(_CHALLENGE, _node(context.node_id), challenge)
    return b""


def _node(number: int) -> bytes:
    return str(number).encode("ascii")


def is_aggregator(context: Context) -> bool:
    """Return whether a node only adds up shares of others."""
    return _CONFIGURED in context.node_config


def _summed(
    message: Message, context: Context, keys: tuple[str, ...], path: Path | None
) -> Message:
    """Add up the shares in a message, once in a round; that it did is saved before it replies."""
    if path is None:
        raise ProtocolError(f"the node is no aggregator: its configuration has no {_CONFIGURED}")
    record = records.round_of(message.content)
    plan, number, length = records.plan_of(record), record["round"], record.get("length")
    shares = message.content.config_records.get(_SHARES, ConfigRecord())
    clients, sealed = shares.get("clients"), shares.get("shares")
    if (
        type(number) is not int
        or type(length) is not int
        or length < 1
        or not (isinstance(clients, list) and isinstance(sealed, list))
        or len(clients) != len(sealed)
        or len(set(clients)) != len(clients)
    ):
        raise MalformedMessageError(f"the message has no record {_SHARES!r} of different clients")
    purpose = Purpose(context.run_id, plan.fingerprint, number, length, keys)
    pairs = zip(clients, sealed, strict=True)
    by_client = {int(str(client)): share for client, share in pairs if isinstance(share, bytes)}
    with turn(path):
        own = _File.read(path)
        training = f"{context.run_id}/{plan.fingerprint}"
        last = own.answered.get(training, -1)
        if number <= last:
            raise ProtocolError(
                f"round must be above {last}, the last whose sum the aggregator has sent, got "
                f"{number}: two sums of a round would show single updates"
            )
        if key_text(own.key.config) not in keys:
            raise ProtocolError("the key of the aggregator is not among those of the application")
        found = purpose.added(own.key, plan, by_client)
        if isinstance(found, bytes):
            own.answered[training] = number
            with atomic_write(path, private=True) as temporary:
                temporary.write_bytes(own.text().encode("ascii"))
    result: dict[str, Any] = {"refused": [str(client) for client in found]}
    if isinstance(found, bytes):
        result = {"sum": found}
    return Message(RecordDict({_RESULT: ConfigRecord(result)}), reply_to=message)


def update_reply(
    message: Message, context: Context, keys: tuple[str, ...], update: Update | None
) -> Message:
    """Reply with the shares of an update for aggregators, or with the update if there are none."""
    if update is None or not keys:
        return records.reply_of(message, update)
    purpose = Purpose(context.run_id, update.plan, update.round, update.values.size, keys)
    # Not the number in the message: one client must not count as two.
    record = ConfigRecord({"shares": purpose.sealed(update.values, context.node_id)})
    about = ConfigRecord({"plan": update.plan, "round": update.round})
    return Message(RecordDict({_SHARES: record, records.ROUND: about}), reply_to=message)


def _sealed_of(reply: Message, plan: RandomParticipationSGD, number: int, count: int) -> Any:
    """Return the shares in the reply of a client; None if it sends nothing."""
    if not reply.content:
        return None
    record = records.round_of(reply.content)
    if record.get("plan") != plan.fingerprint:
        raise PlanMismatchError("the reply was made under another plan")
    if record["round"] != number:
        raise ProtocolError(f"the reply must be for round {number}, got {record['round']!r}")
    shares = reply.content.config_records.get(_SHARES, ConfigRecord()).get("shares")
    if (
        not isinstance(shares, list)
        or len(shares) != count
        or not all(isinstance(share, bytes) for share in shares)
    ):
        raise MalformedMessageError(f"the reply has no record {_SHARES!r} with {count} shares")
    return shares


class Aggregation:
    """The aggregators of a training, as its server finds and asks them.

    Parameters
    ----------
    plan
        The plan, which has a secure sum.
    keys
        The public keys of the aggregators.
    """

    def __init__(self, plan: RandomParticipationSGD, keys: Sequence[str]) -> None:
        assert plan.secure_sum is not None
        self._plan, self._keys = plan, checked_keys(keys)
        self._least = plan.secure_sum.least_senders
        # The public key that each node has proven to hold; no text for nodes that are clients.
        self._known: dict[int, str] = {}
        self._aggregators: list[int] = []
        self._excluded: set[int] = set()
        self._grid: Grid | None = None

    def clients(self, grid: Grid, least: int, patience: float) -> list[int]:
        """Wait for all aggregators and for enough clients, and return the connected clients.

        Raises
        ------
        MissingPartyError
            If some are not connected when ``patience``, in seconds, is over.
        """
        self._grid = grid
        wanted, begin = max(least, self._least), time.monotonic()
        told = False
        while True:
            nodes = list(grid.get_node_ids())
            self._ask(grid, [node for node in nodes if node not in self._known], patience)
            place = {self._known[node]: node for node in reversed(nodes) if self._known[node]}
            clients = [node for node in nodes if not self._known[node]]
            clients = [node for node in clients if node not in self._excluded]
            found = [place[key] for key in self._keys if key in place]
            if len(found) == len(self._keys) and len(clients) >= wanted:
                self._aggregators = found
                return clients
            text = (
                f"{len(found)} of {len(self._keys)} aggregators and {len(clients)} of at least "
                f"{wanted} other nodes are connected"
            )
            if time.monotonic() - begin > patience:
                raise MissingPartyError(f"{text} after {patience:g} seconds")
            if not told:
                log(INFO, "turnout: %s, waiting %.0f s at most", text, patience)
                told = True
            time.sleep(_POLL)

    def _ask(self, grid: Grid, nodes: list[int], timeout: float) -> None:
        """Learn which of these nodes are aggregators."""
        if not nodes:
            return
        proofs: dict[int, dict[bytes, str]] = {}
        messages = []
        for node in nodes:
            self._known[node] = ""
            proofs[node] = {secrets.token_bytes(16): key for key in self._keys}
            challenges = [
                _core.seal_to(key_bytes(key), _CHALLENGE, _node(node), proof)
                for proof, key in proofs[node].items()
            ]
            content = RecordDict({_AGGREGATOR: ConfigRecord({"challenges": challenges})})
            messages.append(Message(content, node, message_type=MessageType.TRAIN))

        def take(node: int, reply: Message) -> None:
            record = reply.content.config_records.get(_AGGREGATOR)
            if record is not None:
                answer = record.get("answer")
                proven = proofs[node].get(answer) if isinstance(answer, bytes) else None
                self._known[node] = proven or _ANOTHER

        records.taken(grid.send_and_receive(messages, timeout=timeout), take)

    def sum(
        self, number: int, length: int, replies: Iterable[Message], timeout: float
    ) -> tuple[Integers, int]:
        """Have the shares in the replies added up; return the sum and the number of its clients.

        Raises
        ------
        MissingPartyError
            If too few clients sent, or an aggregator did not add up their shares.
        """
        sealed: dict[int, list[bytes]] = {}

        def take(node: int, reply: Message) -> None:
            if node in sealed:
                raise ProtocolError("the node has replied already")
            shares = _sealed_of(reply, self._plan, number, len(self._keys))
            if shares is not None:
                sealed[node] = shares

        records.taken(replies, take)
        if len(sealed) < self._least:
            raise MissingPartyError(
                f"{len(sealed)} clients sent, and secure_sum needs {self._least} of them"
            )
        sums: dict[int, bytes] = {}
        refused: set[int] = set()

        def take_sum(node: int, reply: Message) -> None:
            found = reply.content.config_records.get(_RESULT, ConfigRecord())
            packed, failed = found.get("sum"), found.get("refused")
            if isinstance(packed, bytes):
                sums[node] = packed
            elif isinstance(failed, list):
                named = set(failed)
                refused.update(client for client in sealed if str(client) in named)
            else:
                raise MalformedMessageError(f"the reply has no record {_RESULT!r}")

        assert self._grid is not None
        messages = self._messages(number, length, sealed)
        records.taken(self._grid.send_and_receive(messages, timeout=timeout), take_sum)
        for client in sorted(refused):
            log(WARNING, "turnout: node %s sent shares that do not open: it is left out", client)
        self._excluded |= refused
        if len(sums) < len(self._keys):
            raise MissingPartyError(
                f"{len(sums)} of {len(self._keys)} aggregators added up the shares"
            )
        return combined([sums[node] for node in self._aggregators], length), len(sealed)

    def _messages(self, number: int, length: int, sealed: dict[int, list[bytes]]) -> list[Message]:
        messages = []
        for position, node in enumerate(self._aggregators):
            record = records.round_record(self._plan, number, None, self._plan.clip)
            record["length"] = length
            shares = ConfigRecord(
                {
                    "clients": [str(client) for client in sealed],
                    "shares": [each[position] for each in sealed.values()],
                }
            )
            content = RecordDict({records.ROUND: record, _SHARES: shares})
            messages.append(Message(content, node, message_type=MessageType.TRAIN))
        return messages
