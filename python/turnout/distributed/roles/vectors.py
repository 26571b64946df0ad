"""Roles of rounds in which each user shares one vector among parties that add up."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from turnout import _core
from turnout._types import Array, Unsigned
from turnout.distributed import payloads
from turnout.distributed.deployment import Deployed
from turnout.distributed.messages import Message, MessageKind, Party, Role
from turnout.distributed.roles.base import Participant, State, absent, listed
from turnout.distributed.roles.server import AggregatingServer
from turnout.distributed.roles.user import User
from turnout.errors import MalformedMessageError, ProtocolError


class VectorUser(User):
    """A user that sends a share of its vector to each party that adds up."""

    _mechanism: Deployed
    _takes: ClassVar[Mapping[MessageKind, int]] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """Nobody: a user waits for no other party."""
        return ()

    def _forget(self) -> None:
        """Do nothing: others send this party no messages."""

    def _accept(self, message: Message) -> list[Message]:
        raise AssertionError("no kind of message is accepted")

    def _report(self, code: int) -> list[Message]:
        mechanism = self._mechanism
        field, parties = mechanism.field, mechanism._number_of_parties
        vector = mechanism._user_vector(code)
        self.costs += mechanism._vector_costs()
        elements, report = field._reduce(vector), payloads.new_report()
        if mechanism.compressed:
            seeds, packed = field._share_compressed(elements, parties)
            shares = [*seeds, packed]
        else:
            shares = [field._pack(share) for share in field.share(elements, parties)]
        self.costs.draws += (parties - 1) * len(vector)
        self.costs.additions += (parties - 1) * len(vector)
        self.state = State.DONE
        return [
            self._send(
                MessageKind.SHARE,
                Party(Role.AGGREGATOR, index),
                payloads.pack_share(report, share, mechanism._seeded(index)),
            )
            for index, share in enumerate(shares)
        ]


class Aggregator(Participant):
    """The role that collects one share from every user, and sends the sum to the server.

    1. ``receive`` shares until the deadline, then ``close``: a roster of the users whose share
       arrived goes to every other aggregator.
    2. ``receive`` their rosters. A user is in the round if all rosters contain its shares of one
       report. A user whose shares did not all arrive, or belong to different reports, is in none of
       the sums.
    3. When the last roster has arrived, the sum of the shares, with this party's own dummies or
       noise, goes to the server. The shares are then forgotten.

    With users as parties, each user's device also has this role, with the index of the user.

    Parameters
    ----------
    mechanism, round_id
        The mechanism, and the identifier of the round: see
        :meth:`turnout.distributed.Round.aggregator`.
    index
        The number of the aggregator, from 0.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(2, users=3, parties=2, epsilon=1.0)
    >>> aggregator = tn.distributed.Round.start(mechanism).aggregator(0)
    >>> [str(party) for party in aggregator.missing]
    ['user 0', 'user 1', 'user 2']
    """

    _mechanism: Deployed
    _role: ClassVar[Role] = Role.AGGREGATOR
    _users_report = True

    def __init__(self, mechanism: Deployed, round_id: bytes, index: int) -> None:
        super().__init__(mechanism, round_id, index)
        self._shares: dict[int, bytes] = {}
        self._reports = np.zeros(mechanism.users, np.uint64)
        self._rosters: dict[int, bytes] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The users whose share has not arrived, then the aggregators whose roster has not."""
        if self.state is State.COLLECTING:
            return absent(Role.USER, self._mechanism.users, self._shares)
        if self.state is State.WAITING:
            return absent(Role.AGGREGATOR, self._mechanism._number_of_parties, self._rosters)
        return ()

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party accepts, and the size of the largest payload."""
        mechanism = self._mechanism
        roster = payloads.roster_size(mechanism.users)
        return {
            MessageKind.SHARE: payloads.share_size(
                mechanism.field, mechanism.domain.size, self._seeded
            ),
            MessageKind.ROSTER: payloads.ROSTER_DIGEST if mechanism._users_are_parties else roster,
        }

    @property
    def _seeded(self) -> bool:
        return self._mechanism._seeded(self.party.index)

    def _forget(self) -> None:
        self._shares.clear()
        self._reports[:] = 0
        self._rosters.clear()

    def _accept(self, message: Message) -> list[Message]:
        if message.kind is MessageKind.SHARE:
            return self._take_share(message)
        return self._take_roster(message)

    def _take_share(self, message: Message) -> list[Message]:
        mechanism = self._mechanism
        user = self._sender(message, Role.USER, mechanism.users, self._shares, State.COLLECTING)
        report, share = payloads.unpack_share(
            message.payload, mechanism.field, mechanism.domain.size
        )
        if isinstance(share, bytes) != self._seeded:
            # A seed is small, and to expand it takes as long as the largest share.
            expected = "a seed" if self._seeded else "packed elements"
            raise MalformedMessageError(
                f"the plan expects {expected} shares for {self.party}, got other shares "
                f"from {message.sender}"
            )
        self._shares[user] = message.payload[payloads.SHARE_OVERHEAD :]
        self._reports[user] = report
        return []

    def _take_roster(self, message: Message) -> list[Message]:
        mechanism = self._mechanism
        if message.sender == self.party:
            raise ProtocolError(f"{self.party} got a roster with its own name as the sender")
        count, states = mechanism._number_of_parties, (State.COLLECTING, State.WAITING)
        other = self._sender(message, Role.AGGREGATOR, count, self._rosters, *states)
        payloads.check_roster(message.payload, mechanism.users, mechanism._users_are_parties)
        self._rosters[other] = message.payload
        return self._finish()

    def close(self) -> list[Message]:
        """Accept no more shares.

        Returns
        -------
        list of Message
            A roster for every other aggregator; the sum too, if their rosters are all there.

        Raises
        ------
        ProtocolError
            If the collection is closed already.
        MissingPartyError
            If more users are missing than ``max_missing_users``; nothing is kept then.
        """
        self._check_open()
        mechanism = self._mechanism
        self._check(self._reports)
        self.state = State.WAITING
        payload = payloads.pack_roster(self._reports)
        if mechanism._users_are_parties:
            # All users must be there: whether the rosters are the same is all that is asked.
            payload = payloads.roster_digest(self._reports)
        self._rosters[self.party.index] = payload
        others = absent(Role.AGGREGATOR, mechanism._number_of_parties, (self.party.index,))
        sent = [self._send(MessageKind.ROSTER, other, payload) for other in others]
        return sent + self._finish()

    def _check(self, reports: Unsigned) -> None:
        missing = np.flatnonzero(reports == 0).tolist()
        self._check_missing(tuple(Party(Role.USER, user) for user in missing))

    def _agreed_reports(self) -> Unsigned:
        """Leave out users that are not in all rosters with the same report."""
        own, reports = self._rosters[self.party.index], self._reports.copy()
        others = [index for index, roster in self._rosters.items() if roster != own]
        if not others:
            return reports
        if self._mechanism._users_are_parties:
            parties = tuple(Party(Role.AGGREGATOR, index) for index in sorted(others))
            self._fail(
                f"the round is lost: {listed(parties)} hold shares of other reports", parties
            )
        users = self._mechanism.users
        for index in others:
            reports[payloads.unpack_roster(self._rosters[index], users) != reports] = 0
        self._check(reports)
        return reports

    def _finish(self) -> list[Message]:
        mechanism = self._mechanism
        if self.state is State.COLLECTING or len(self._rosters) < mechanism._number_of_parties:
            return []
        reports = self._agreed_reports()
        present = np.flatnonzero(reports)
        size, field = mechanism.domain.size, mechanism.field
        total = _core.ShareSum(field._core, size)
        add = total.add_seed if self._seeded else total.add_packed
        for user in present.tolist():
            add(self._shares[user])
        self.costs.draws += size * len(present) * self._seeded
        self.costs.additions += size * max(len(present) - 1, 0)
        sums = total.finish()
        if self.party.index < mechanism._contributors:
            sums = field._add(sums, field._reduce(mechanism._contribution()))
            self.costs.additions += size
            self.costs += mechanism._contribution_costs(size)
        self._forget()
        self.state = State.DONE
        payload = payloads.pack_party_sum(reports, field, sums)
        return [self._send(MessageKind.SUM, Party(Role.SERVER), payload)]


class VectorServer(AggregatingServer):
    """A server that receives the sum of each party that adds up."""

    _mechanism: Deployed

    def __init__(self, mechanism: Deployed, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._found: dict[int, tuple[int, bytes, Array]] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The parties whose sum has not arrived."""
        if self.state is not State.COLLECTING:
            return ()
        return absent(Role.AGGREGATOR, self._mechanism._number_of_parties, self._found)

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party accepts, and the size of the largest payload."""
        mechanism = self._mechanism
        return {MessageKind.SUM: payloads.party_sum_size(mechanism.field, mechanism.domain.size)}

    def _forget(self) -> None:
        self._found.clear()

    def _accept(self, message: Message) -> list[Message]:
        mechanism = self._mechanism
        count = mechanism._number_of_parties
        party = self._sender(message, Role.AGGREGATOR, count, self._found, State.COLLECTING)
        found = payloads.unpack_party_sum(message.payload, mechanism.field, mechanism.domain.size)
        if not mechanism.users - mechanism.max_missing_users <= found[0] <= mechanism.users:
            raise MalformedMessageError(
                f"{message.sender} added up {found[0]} users; expected {mechanism.users}, less at "
                f"most {mechanism.max_missing_users}"
            )
        # All that are here agree, so one of them is enough.
        for other, known in itertools.islice(self._found.items(), 1):
            if found[:2] != known[:2]:
                raise ProtocolError(
                    f"{message.sender} added up users other than aggregator {other}: "
                    f"{found[0]} and {known[0]}"
                )
        self._found[party] = found
        if len(self._found) == count:
            total = mechanism.field._sum([elements for _, _, elements in self._found.values()])
            self.costs.additions += mechanism.domain.size * (count - 1)
            self._publish(total, found[0])
        return []


#: The roles of such rounds, those who are asked first.
ROLES = (VectorUser, Aggregator, VectorServer)
