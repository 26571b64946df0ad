"""Roles of two-stage sampling: users report sets of items, and those who are elected add up."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from turnout._types import Array, Integers, Truths
from turnout.distributed import payloads
from turnout.distributed.elected import Elected
from turnout.distributed.messages import Message, MessageKind, Party, Role
from turnout.distributed.roles.base import Participant, State, absent
from turnout.distributed.roles.elections import Election, largest_election
from turnout.distributed.roles.server import AggregatingServer
from turnout.distributed.roles.user import User
from turnout.errors import MalformedMessageError, ProtocolError


class Adding(Participant):
    """Base class of roles that wait for an election, and for what it says comes from each user."""

    _mechanism: Elected

    #: Where such a role is in its round while it waits.
    _step: ClassVar[State]

    def __init__(self, mechanism: Elected, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._election: Election | None = None
        #: The items of which each of them sends something; None until that is known.
        self._expected: Mapping[int, list[int]] | None = None
        self._found: dict[int, Any] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The parties that this one waits for."""
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

    def _read_election(self, message: Message, user: int | None) -> Election:
        """Read the election, which comes once; of duties it has those of one user."""
        mechanism, known = self._mechanism, () if self._election is None else (0,)
        self._sender(message, Role.REPORTING_SERVER, 1, known, self._step)
        election = Election.unpack(message.payload, mechanism.users, mechanism.domain.size, user)
        election.check(mechanism)
        return election

    def _await(self, election: Election, expected: Mapping[int, list[int]]) -> None:
        """Wait for something of these items from each user."""
        self._election, self._expected = election, expected
        # What came before the election and does not fit is as if it had never come.
        self._found = {
            user: found
            for user, found in self._found.items()
            if found[0].tolist() == expected.get(user)
        }

    def _take_items(self, message: Message) -> None:
        mechanism = self._mechanism
        user = self._sender(message, Role.USER, mechanism.users, self._found, self._step)
        found = payloads.unpack_item_shares(message.payload, mechanism.field, mechanism.domain.size)
        if self._expected is not None and found[0].tolist() != self._expected.get(user):
            raise ProtocolError(
                f"{self.party} got elements of {message.sender} for other items than the "
                "election says"
            )
        self._found[user] = found

    def _total(self) -> Array:
        """Add up what was found: one sum for every item."""
        mechanism = self._mechanism
        totals = np.zeros(mechanism.domain.size, mechanism.field._dtype)
        for items, elements in self._found.values():
            totals[items] = mechanism.field._add(totals[items], elements)
            self.costs.additions += len(items)
        return totals


class SetUser(Adding, User):
    """A user who reports a set, and then shares bits with those who are elected, or adds them up.

    It receives the election, answers with shares for the elected users, and, if it is elected
    itself, receives the shares of others and sends their sum to the server.
    """

    _step: ClassVar[State] = State.WAITING

    def __init__(self, mechanism: Elected, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._set: Integers = np.empty(0, np.int64)
        self._bits: Integers = np.empty(0, np.int64)

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
        mechanism = self._mechanism
        return {
            MessageKind.ELECTION: largest_election(mechanism, with_duties=True),
            MessageKind.ITEM_SHARES: payloads.item_shares_size(mechanism.field, mechanism.reported),
        }

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
        if message.sender == self.party:
            raise ProtocolError(f"{self.party} got shares that claim to be its own")
        self._take_items(message)
        return self._finish()

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
        return self._share_items(election) + self._finish()

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
            payload = payloads.pack_item_shares(listed, field, packed)
            messages.append(self._send(MessageKind.ITEM_SHARES, Party(Role.USER, user), payload))
        self._bits = np.empty(0, np.int64)
        return messages

    def _finish(self) -> list[Message]:
        election = self._election
        if election is None or not self._all_found:
            return []
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
        payload = payloads.pack_item_shares(duties, field, sums)
        return [self._send(MessageKind.SUM, Party(Role.SERVER), payload)]


class ReportingServer(Participant):
    """Collects a set of items from every user, then elects users for each item (the paper's S1).

    It sees who reports which items, and no share. Its view alone is locally private with
    :attr:`turnout.distributed.TwoStageSampling.reporting_epsilon`.

    Parameters
    ----------
    mechanism, round_id
        What is computed, and the name of the round: see
        :meth:`turnout.distributed.Round.reporting_server`.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.TwoStageSampling(4, 10, reported=2, rate=0.5, floor=2)
    >>> len(tn.distributed.Round.start(mechanism).reporting_server().missing)
    10
    """

    _mechanism: Elected
    _role: ClassVar[Role] = Role.REPORTING_SERVER
    _users_report = True

    def __init__(self, mechanism: Elected, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._sets: dict[int, Truths] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The users whose set did not come."""
        if self.state is not State.COLLECTING:
            return ()
        return absent(Role.USER, self._mechanism.users, self._sets)

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
        return {MessageKind.SET: payloads.bits_size(self._mechanism.domain.size)}

    def _forget(self) -> None:
        self._sets.clear()

    def _accept(self, message: Message) -> list[Message]:
        mechanism = self._mechanism
        user = self._sender(message, Role.USER, mechanism.users, self._sets, State.COLLECTING)
        found = payloads.unpack_bits(message.payload, mechanism.domain.size, "a set")
        if found.sum() != mechanism.reported:
            raise MalformedMessageError(
                f"the set of {message.sender} must have {mechanism.reported} items, got "
                f"{found.sum()}"
            )
        self._sets[user] = found
        return []

    def close(self) -> list[Message]:
        """Take no more sets, and elect users for each item among those that sent one.

        Returns
        -------
        list of Message
            An election for every user that sent a set, and for the server.

        Raises
        ------
        ProtocolError
            If the collection is closed already.
        MissingPartyError
            If more users are missing than ``max_missing_users``; nothing is kept then.
        """
        self._check_open()
        mechanism = self._mechanism
        self._check_missing(self.missing)
        present = np.array(sorted(self._sets), np.int64)
        table = np.array([self._sets[user] for user in present.tolist()])
        reporters = table.sum(axis=0, dtype=np.int64)
        self.costs.additions += int(table.size)
        drawn = secrets.SystemRandom()
        elected = tuple(
            np.array(drawn.sample(present.tolist(), min(size, len(present))), np.int64)
            for size in map(mechanism._committee_size, reporters.tolist())
        )
        election = Election(len(present), reporters, elected, {})
        public = election.public_part()
        duties = election.duties_of_all()
        messages = []
        for user in present.tolist():
            own = ((item, present[table[:, item]]) for item in duties.get(user, ()))
            payload = public + election.duty_part(own)
            messages.append(self._send(MessageKind.ELECTION, Party(Role.USER, user), payload))
        messages.append(self._send(MessageKind.ELECTION, Party(Role.SERVER), public))
        self._forget()
        self.state = State.DONE
        return messages


class ElectedServer(Adding, AggregatingServer):
    """A server that waits for the election, and for a sum of every user that is elected.

    It is the paper's S2.
    """

    _step: ClassVar[State] = State.COLLECTING

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
        mechanism = self._mechanism
        return {
            MessageKind.SUM: payloads.item_shares_size(mechanism.field, mechanism.domain.size),
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
