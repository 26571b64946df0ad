"""Roles of two-stage sampling: users report sets of items, and elected users add up.

1. Users send sets to the reporting server, which elects users for each item (election 0).
2. The reporters of an item send shares of their bits to the users elected for it. An elected user
   that has all of them tells the reporting server so, with an empty roster.
3. When all have told it, the reporting server lets everyone continue: elected users send sums to
   the server. Nobody sends a sum earlier, and nobody sends one twice.

A user that disappears between the first step and the last is lost. The reporting server asks the
elected users that have not told it what they miss. It leaves out those who do not answer, and those
whose messages are missing. Then it holds another election among the remaining users, who share
their bits again. No sum contains the shares of an earlier election.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from turnout._types import Array, Integers
from turnout.distributed import payloads
from turnout.distributed.elected import Elected
from turnout.distributed.messages import Message, MessageKind, Party, Role
from turnout.distributed.payloads import NUMBER, Reader
from turnout.distributed.roles.base import Participant, State
from turnout.distributed.roles.elections import (
    WORD_SIZE,
    Election,
    Word,
    largest_election,
    pack_missing,
    unpack_word,
)
from turnout.distributed.roles.reporting import ReportingServer
from turnout.distributed.roles.server import AggregatingServer
from turnout.distributed.roles.user import User
from turnout.errors import ProtocolError

_LAST = 2**32 - 1


class Adding(Participant):
    """A role that waits for an election, and for the messages of users in it (base class).

    What comes has the number of the election in front. Only a later election takes the place of
    one, and what came for it before is kept.
    """

    _mechanism: Elected

    #: Where such a role is in its round while it waits.
    _step: ClassVar[State]

    def __init__(self, mechanism: Elected, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._election: Election | None = None
        #: The items of which each of them sends something; None until that is known.
        self._expected: Mapping[int, list[int]] | None = None
        self._found: dict[int, tuple[Integers, Array]] = {}
        #: What came for an election that has not come yet: of each user the latest.
        self._early: dict[int, tuple[int, Integers, Array]] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The parties that this party waits for."""
        if self.state is not self._step:
            return ()
        if self._expected is None:
            return (Party(Role.REPORTING_SERVER),)
        waited = self._expected.keys() - self._found.keys()
        return tuple(Party(Role.USER, index) for index in sorted(waited))

    @property
    def _all_found(self) -> bool:
        return self._expected is not None and len(self._found) == len(self._expected)

    def _forget(self) -> None:
        self._election = self._expected = None
        self._found.clear()
        self._early.clear()

    def _read_election(self, message: Message, user: int | None) -> Election:
        """Read an election, later than the last one; of duties it has those of one user."""
        mechanism = self._mechanism
        self._sender(message, Role.REPORTING_SERVER, 1, (), self._step)
        election = Election.unpack(message.payload, mechanism.users, mechanism.domain.size, user)
        if self._election is not None and election.number <= self._election.number:
            raise ProtocolError(
                f"{self.party} already has election {self._election.number}, got election "
                f"{election.number}"
            )
        election.check(mechanism)
        return election

    def _await(self, election: Election, expected: Mapping[int, list[int]]) -> None:
        """Wait for a message about these items from each user."""
        self._election, self._expected = election, expected
        # What came before the election and does not fit is as if it had never come.
        self._found = {
            user: (items, elements)
            for user, (number, items, elements) in self._early.items()
            if number == election.number and items.tolist() == expected.get(user)
        }
        self._early = {
            user: early for user, early in self._early.items() if early[0] > election.number
        }

    def _take_items(self, message: Message) -> bool:
        """Accept a user's elements; return whether they belong to the current election."""
        mechanism, election, reader = self._mechanism, self._election, Reader(message.payload)
        number, now = reader.number(_LAST), -1 if election is None else election.number
        later = {user for user, early in self._early.items() if early[0] >= number}
        seen = self._found if number == now else later
        user = self._sender(message, Role.USER, mechanism.users, seen, self._step)
        items, elements = payloads.unpack_item_shares(
            reader.rest(), mechanism.field, mechanism.domain.size
        )
        if number < now:
            raise ProtocolError(
                f"{self.party} is in election {now}, got elements of {message.sender} of election "
                f"{number}"
            )
        if number > now:
            self._early[user] = number, items, elements
            return False
        if self._expected is not None and items.tolist() != self._expected.get(user):
            raise ProtocolError(
                f"{self.party} got elements of {message.sender} for items other than "
                "those of the election"
            )
        self._found[user] = items, elements
        return True

    def _send_items(
        self, kind: MessageKind, recipient: Party, number: int, items: Integers, elements: Array
    ) -> Message:
        payload = payloads.pack_item_shares(items, self._mechanism.field, elements)
        return self._send(kind, recipient, NUMBER.pack(number) + payload)

    def _total(self) -> Array:
        """Add up the received values: one sum for every item."""
        mechanism = self._mechanism
        totals = np.zeros(mechanism.domain.size, mechanism.field._dtype)
        for items, elements in self._found.values():
            totals[items] = mechanism.field._add(totals[items], elements)
            self.costs.additions += len(items)
        return totals


class SetUser(Adding, User):
    """A user who reports a set, then shares bits with elected users, or adds them up.

    It receives the election, answers with shares for the elected users, and, if it is elected
    itself, receives the shares of others and sends their sum to the server.
    """

    _step: ClassVar[State] = State.WAITING

    def __init__(self, mechanism: Elected, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._set: Integers = np.empty(0, np.int64)
        self._bits: Integers = np.empty(0, np.int64)
        #: Whether the reporting server knows that nothing is missing.
        self._told = False

    @property
    def missing(self) -> tuple[Party, ...]:
        """The parties that this party waits for."""
        found = super().missing
        if self.state is self._step and not found:
            return (Party(Role.REPORTING_SERVER),)
        return found

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party accepts, and the size of the largest payload."""
        mechanism = self._mechanism
        return {
            MessageKind.ELECTION: largest_election(mechanism, with_duties=True),
            MessageKind.ITEM_SHARES: NUMBER.size
            + payloads.item_shares_size(mechanism.field, mechanism.reported),
            MessageKind.ROSTER: WORD_SIZE,
        }

    @property
    def _stage(self) -> object:
        return self.state, None if self._election is None else self._election.number

    def _needs(self, message: Message) -> bool:
        # An elected user who is not reached is lost, and another is elected. A late roster belongs
        # to an election that was replaced.
        return message.kind in (MessageKind.SET, MessageKind.SUM)

    def _of_use(self, message: Message) -> bool:
        if self._needs(message):
            return True
        number = Reader(message.payload).number(_LAST)
        return self._election is not None and number == self._election.number

    def _forget(self) -> None:
        super()._forget()
        self._set = self._bits = np.empty(0, np.int64)

    def _report(self, code: int) -> list[Message]:
        mechanism = self._mechanism
        coins, sets = mechanism._draw_sets(np.array([code], np.uint32))
        self.costs.coins += 1
        self.costs.sets += 1
        self._set = sets[0].astype(np.int64)
        self._bits = ((self._set == code) & bool(coins[0])).astype(np.int64)
        chosen = np.zeros(mechanism.domain.size, np.bool_)
        chosen[self._set] = True
        self.state = State.WAITING
        payload = payloads.pack_bits(chosen)
        return [self._send(MessageKind.SET, Party(Role.REPORTING_SERVER), payload)]

    def _accept(self, message: Message) -> list[Message]:
        if message.kind is MessageKind.ELECTION:
            return self._take_election(message)
        if message.kind is MessageKind.ROSTER:
            return self._take_word(message)
        if message.sender == self.party:
            raise ProtocolError(f"{self.party} got shares with its own name as the sender")
        return self._tell() if self._take_items(message) else []

    # Elections.

    def _take_election(self, message: Message) -> list[Message]:
        election = self._read_election(message, self.party.index)
        if (election.reporters[self._set] == 0).any():
            raise ProtocolError(f"{self.party} is not counted among the reporters of its items")
        own = set(self._set.tolist())
        for item, users in election.duties.items():
            if (self.party.index in users) != (item in own):
                raise ProtocolError(
                    f"{self.party} is wrongly listed among the reporters of item {item}"
                )
        expected: dict[int, list[int]] = {}
        for item, users in sorted(election.duties.items()):
            for user in users.tolist():
                expected.setdefault(user, []).append(item)
        self._await(election, expected)
        self._told = False
        return self._share_items(election) + self._tell()

    def _share_items(self, election: Election) -> list[Message]:
        field = self._mechanism.field
        bundles: dict[int, tuple[list[int], list[int]]] = {}
        for item, bit in zip(self._set.tolist(), self._bits.tolist(), strict=True):
            users = election.elected[item].tolist()
            shares = field.share([bit], len(users))[:, 0].tolist()
            self.costs.draws += len(users) - 1
            self.costs.additions += len(users) - 1
            for user, share in zip(users, shares, strict=True):
                items, elements = bundles.setdefault(user, ([], []))
                items.append(item)
                elements.append(share)
        messages = []
        for user in sorted(bundles):
            items, elements = bundles[user]
            listed, packed = np.array(items, np.int64), field._elements(elements)
            if user == self.party.index:
                self._found[user] = (listed, packed)
                continue
            kind, other = MessageKind.ITEM_SHARES, Party(Role.USER, user)
            messages.append(self._send_items(kind, other, election.number, listed, packed))
        return messages

    # Rosters.

    def _tell(self) -> list[Message]:
        """Tell the reporting server once that nothing is missing."""
        election = self._election
        if self._told or election is None or not election.duties or not self._all_found:
            return []
        self._told = True
        return [self._roster()]

    def _roster(self) -> Message:
        assert self._election is not None
        assert self._expected is not None
        missing = self._expected.keys() - self._found.keys()
        payload = pack_missing(self._mechanism, self._election.number, missing)
        return self._send(MessageKind.ROSTER, Party(Role.REPORTING_SERVER), payload)

    def _take_word(self, message: Message) -> list[Message]:
        self._sender(message, Role.REPORTING_SERVER, 1, (), self._step)
        number, word = unpack_word(message.payload)
        if word is Word.WITHOUT_YOU:
            self._fail(f"the round goes on without {self.party}, who was too late", [self.party])
        election = self._election
        if election is None or number != election.number:
            now = "none" if election is None else election.number
            raise ProtocolError(f"{self.party} is in election {now}, got word of {number}")
        if word is Word.ADD_UP:
            return self._add_up(election)
        return [] if self._told or not election.duties else [self._roster()]

    def _add_up(self, election: Election) -> list[Message]:
        if not self._all_found:
            raise ProtocolError(f"{self.party} cannot add up: it still waits for shares")
        self.state = State.DONE
        if not election.duties:
            self._forget()
            return []
        mechanism, field = self._mechanism, self._mechanism.field
        duties = np.array(sorted(election.duties), np.int64)
        sums = self._total()[duties]
        contributes = np.array(
            [
                self.party.index in election.elected[item][: mechanism._contributors]
                for item in duties.tolist()
            ]
        )
        count = int(contributes.sum())
        if count:
            own = field._reduce(mechanism._contribution(count))
            sums[contributes] = field._add(sums[contributes], own)
            self.costs.additions += count
            self.costs += mechanism._contribution_costs(count)
        self._forget()
        server, number = Party(Role.SERVER), election.number
        return [self._send_items(MessageKind.SUM, server, number, duties, sums)]


class ElectedServer(Adding, AggregatingServer):
    """A server that waits for the election, and for a sum from every elected user.

    It is the paper's S2.
    """

    _step: ClassVar[State] = State.COLLECTING

    @property
    def missing(self) -> tuple[Party, ...]:
        """Who has sent no sum; first the reporting server, as long as nobody has sent one."""
        found = super().missing
        first = Party(Role.REPORTING_SERVER)
        waits = self.state is self._step and not self._found and found != (first,)
        return (first, *found) if waits else found

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party accepts, and the size of the largest payload."""
        mechanism = self._mechanism
        return {
            MessageKind.SUM: NUMBER.size
            + payloads.item_shares_size(mechanism.field, mechanism.domain.size),
            MessageKind.ELECTION: largest_election(mechanism, with_duties=False),
        }

    def _accept(self, message: Message) -> list[Message]:
        if message.kind is MessageKind.ELECTION:
            election = self._read_election(message, None)
            self._await(election, election.duties_of_all())
        else:
            self._take_items(message)
        if self._election is not None and self._all_found:
            self._publish(self._total(), self._election.received)
        return []


#: The roles of such rounds, those who are asked first.
ROLES = (SetUser, ReportingServer, ElectedServer)
