"""The base class of all roles."""

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
    """The progress of a role in its round."""

    #: Waiting for the user's value, or for users.
    COLLECTING = "collecting"
    #: Waiting for other parties.
    WAITING = "waiting"
    #: All was done.
    DONE = "done"
    #: The round was lost; nothing is kept.
    FAILED = "failed"


class Participant(abc.ABC):
    """The role of one party in a round (base class).

    Parameters
    ----------
    mechanism
        The mechanism of the round.
    round_id
        The 16 bytes that every message of the round carries.
    index
        The number of this party among those with its role, from 0.
    """

    #: What such a party does.
    _role: ClassVar[Role]
    #: Whether users report to it, until :meth:`close`.
    _users_report: ClassVar[bool] = False

    #: Whether :meth:`close` may be called again, to go on without those who did not come.
    _closes_again: ClassVar[bool] = False

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
        """The parties that this party waits for."""

    @property
    @abc.abstractmethod
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party accepts, and the size of the largest payload."""

    @abc.abstractmethod
    def _forget(self) -> None:
        """Drop everything that others sent."""

    @abc.abstractmethod
    def _accept(self, message: Message) -> list[Message]:
        """Accept a message of this round for this party."""

    def receive(self, data: bytes) -> list[Message]:
        """Take a message.

        Parameters
        ----------
        data
            The bytes of one message.

        Returns
        -------
        list of Message
            The messages to send now.

        Raises
        ------
        MalformedMessageError
            If the bytes are truncated, altered, or contain something that the round does not allow.
        ProtocolError
            If the message belongs to another round or plan, is for another party, comes from an
            unknown sender, is a repetition, or arrives at the wrong time. The state of the role
            does not change.
        MissingPartyError
            If the message shows that the round is lost. Then nothing of the round is kept.
        """
        message = Message.from_bytes(data)
        if self.state is State.FAILED:
            raise ProtocolError(f"{self.party} accepts no more messages: {self._failure}")
        if message.round_id != self.round_id:
            raise ProtocolError(
                f"{self.party} accepts only messages of round {self.round_id.hex()}, got "
                f"round {message.round_id.hex()} from {message.sender}"
            )
        if message.recipient != self.party:
            raise ProtocolError(
                f"{self.party} got a message of {message.sender} for {message.recipient}"
            )
        if message.kind not in self._takes:
            expected = " or ".join(map(in_words, self._takes)) or "none"
            raise MalformedMessageError(
                f"{self.party} accepts only messages of kind {expected}, got "
                f"{in_words(message.kind)} from {message.sender}"
            )
        return self._accept(message)

    def close(self) -> list[Message]:
        """Accept nothing more from users.

        Returns
        -------
        list of Message
            The messages to send now.

        Raises
        ------
        ProtocolError
            If users do not report to this party, or the collection has already been closed.
        MissingPartyError
            If more users are missing than ``max_missing_users``. Then nothing is kept.
        """
        raise ProtocolError(f"{self.party} has nothing to close, because users do not report to it")

    def give_up(self) -> NoReturn:
        """End a round that lost a party: forget everything, and name the missing parties.

        Raises
        ------
        MissingPartyError
            Always, unless the role is done.
        ProtocolError
            If the role is done: nothing is missing.
        """
        if self.state is State.DONE:
            raise ProtocolError(f"{self.party} is finished: nothing is missing")
        missing = self.missing
        self._fail(f"the round is lost without {listed(missing)}", missing)

    def _fail(self, reason: str, parties: Iterable[Party] = ()) -> NoReturn:
        self._forget()
        self.state = State.FAILED
        self._failure = reason
        raise MissingPartyError(f"{self.party}: {reason}", parties)

    @property
    def _stage(self) -> object:
        """A value that changes whenever a message of this party may have become useless."""
        return self.state

    def _needs(self, message: Message) -> bool:
        """Return whether this party loses the round if its message does not arrive."""
        return True

    def _of_use(self, message: Message) -> bool:
        """Return whether a message of this party that has not arrived is still needed."""
        return True

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
        """Return the sender's index; refuse a message of a wrong step or time, or a repetition."""
        sender = message.sender
        if sender.role is not role or sender.index >= count:
            raise ProtocolError(
                f"{self.party} got a message of {sender}, which has no part in this step: "
                f"expected one of {count} of the role {in_words(role)}"
            )
        if self.state not in states:
            raise ProtocolError(
                f"{self.party} is {self.state.value}: the message of {sender} is too late"
            )
        if sender.index in seen:
            raise ProtocolError(f"{self.party} already has the message of {sender}")
        return sender.index

    def _check_open(self) -> None:
        if self.state is not State.COLLECTING:
            raise ProtocolError(f"{self.party} is {self.state.value}: it is already closed")

    def _check_missing(self, missing: tuple[Party, ...]) -> None:
        mechanism = self._mechanism
        if len(missing) > mechanism.max_missing_users:
            self._fail(
                f"the round is lost: {len(missing)} of {mechanism.users} users are missing "
                f"({listed(missing)}), and max_missing_users is {mechanism.max_missing_users}",
                missing,
            )


def absent(role: Role, count: int, seen: Collection[int]) -> tuple[Party, ...]:
    """List the parties of a role whose message has not arrived."""
    return tuple(Party(role, index) for index in range(count) if index not in seen)


def listed(parties: tuple[Party, ...]) -> str:
    """Name a few parties."""
    if not parties:
        return "a step of its own"
    shown = ", ".join(str(party) for party in parties[:_SHOWN])
    return shown if len(parties) <= _SHOWN else f"{shown} and {len(parties) - _SHOWN} more"
