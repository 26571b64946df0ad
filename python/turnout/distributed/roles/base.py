"""What all roles have in common."""

from __future__ import annotations

import abc
import enum
from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final, NoReturn

from turnout.distributed.aggregation import AggregationMechanism
from turnout.distributed.messages import Message, MessageKind, Party, Role, in_words
from turnout.distributed.results import Costs
from turnout.errors import MalformedMessageError, MissingPartyError, ProtocolError

_SHOWN = 5


class State(enum.Enum):
    """Where a role is in its round."""

    #: Waiting for the user's value, or for users.
    COLLECTING = "collecting"
    #: Waiting for other parties.
    WAITING = "waiting"
    #: All was done.
    DONE = "done"
    #: The round was lost; nothing is kept.
    FAILED = "failed"


class Participant(abc.ABC):
    """Base class of the roles.

    Parameters
    ----------
    mechanism
        What is computed.
    round_id
        The 16 bytes that every message of the round carries.
    index
        Which of those who have the role this is.
    """

    #: What such a party does.
    _role: ClassVar[Role]
    #: Whether users report to it, until :meth:`close`.
    _users_report: ClassVar[bool] = False

    #: The 16 bytes that every message of the round carries.
    round_id: Final[bytes]
    #: Who this is.
    party: Final[Party]
    #: Where the role is in its round.
    state: State
    #: What was done so far.
    costs: Costs

    def __init__(self, mechanism: AggregationMechanism, round_id: bytes, index: int = 0) -> None:
        self._mechanism = mechanism
        self.round_id = round_id
        self.party = Party(self._role, index)
        self.state = State.COLLECTING
        self.costs = Costs()
        self._failure = ""

    @property
    @abc.abstractmethod
    def missing(self) -> tuple[Party, ...]:
        """The parties that this one waits for."""

    @property
    @abc.abstractmethod
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""

    @abc.abstractmethod
    def _forget(self) -> None:
        """Drop everything that came from others."""

    @abc.abstractmethod
    def _accept(self, message: Message) -> list[Message]:
        """Take a message of this round for this party."""

    def receive(self, data: bytes) -> list[Message]:
        """Take a message.

        Parameters
        ----------
        data
            The bytes of one message.

        Returns
        -------
        list of Message
            What is to be sent now.

        Raises
        ------
        MalformedMessageError
            If the bytes are truncated, altered, or hold what the round does not allow.
        ProtocolError
            If the message is of another round or plan, for another party, from somebody unknown, a
            repetition, or comes when it may not. The role is as it was before.
        MissingPartyError
            If it shows that the round is lost; nothing of the round is kept then.
        """
        message = Message.from_bytes(data)
        if self.state is State.FAILED:
            raise ProtocolError(f"{self.party} takes no more messages: {self._failure}")
        if message.round_id != self.round_id:
            raise ProtocolError(
                f"{self.party} takes messages of round {self.round_id.hex()} only, got "
                f"one of round {message.round_id.hex()} from {message.sender}"
            )
        if message.recipient != self.party:
            raise ProtocolError(
                f"{self.party} got a message of {message.sender} for {message.recipient}"
            )
        if message.kind not in self._takes:
            expected = " or ".join(map(in_words, self._takes)) or "none"
            raise MalformedMessageError(
                f"{self.party} takes messages of kind {expected} only, got "
                f"{in_words(message.kind)} from {message.sender}"
            )
        return self._accept(message)

    def close(self) -> list[Message]:
        """Take nothing more from users.

        Returns
        -------
        list of Message
            What is to be sent now.

        Raises
        ------
        ProtocolError
            If users do not report to this party, or the collection is closed already.
        MissingPartyError
            If more users are missing than ``max_missing_users``; nothing is kept then.
        """
        raise ProtocolError(f"{self.party} has nothing to close: users do not report to it")

    def give_up(self) -> NoReturn:
        """End a round that lost a party: forget everything, and say who is missing.

        Raises
        ------
        MissingPartyError
            Always, unless the role is done.
        ProtocolError
            If the role is done: nothing is missing.
        """
        if self.state is State.DONE:
            raise ProtocolError(f"{self.party} is done: nothing is missing")
        missing = self.missing
        self._fail(f"the round is lost without {listed(missing)}", missing)

    def _fail(self, reason: str, parties: Iterable[Party] = ()) -> NoReturn:
        self._forget()
        self.state = State.FAILED
        self._failure = reason
        raise MissingPartyError(f"{self.party}: {reason}", parties)

    def _send(self, kind: MessageKind, recipient: Party, payload: bytes) -> Message:
        message = Message(kind, self.round_id, self.party, recipient, payload)
        self.costs.messages += 1
        self.costs.bytes += message._size
        return message

    # Refusals.

    def _sender(
        self,
        message: Message,
        role: Role,
        count: int,
        seen: Collection[int],
        *states: State,
    ) -> int:
        """Give the index of who sent a message: one of a step, in its time, and once."""
        sender = message.sender
        if sender.role is not role or sender.index >= count:
            raise ProtocolError(
                f"{self.party} got a message of {sender}, who has no part in this step: expected "
                f"one of {count} of the role {in_words(role)}"
            )
        if self.state not in states:
            raise ProtocolError(
                f"{self.party} is {self.state.value}: the message of {sender} comes too late"
            )
        if sender.index in seen:
            raise ProtocolError(f"{self.party} already has the message of {sender}")
        return sender.index

    def _check_open(self) -> None:
        if self.state is not State.COLLECTING:
            raise ProtocolError(f"{self.party} is {self.state.value}: it is closed already")

    def _check_missing(self, missing: tuple[Party, ...]) -> None:
        mechanism = self._mechanism
        if len(missing) > mechanism.max_missing_users:
            self._fail(
                f"the round is lost: {len(missing)} of {mechanism.users} users are missing "
                f"({listed(missing)}), and max_missing_users is {mechanism.max_missing_users}",
                missing,
            )


def absent(role: Role, count: int, seen: Collection[int]) -> tuple[Party, ...]:
    """List those of a role whose message did not come."""
    return tuple(Party(role, index) for index in range(count) if index not in seen)


def listed(parties: tuple[Party, ...]) -> str:
    """Name a few parties."""
    if not parties:
        return "a step of its own"
    shown = ", ".join(str(party) for party in parties[:_SHOWN])
    return shown if len(parties) <= _SHOWN else f"{shown} and {len(parties) - _SHOWN} more"
