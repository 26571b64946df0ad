"""The roles to whom others send: aggregators, the server of the sets, and that of the sums."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from turnout import _arguments, _core
from turnout._types import Integers, Truths, Unsigned
from turnout.distributed import payloads
from turnout.distributed.aggregation import AggregationMechanism
from turnout.distributed.deployment import Deployed
from turnout.distributed.messages import Message, MessageKind, Party, Role
from turnout.distributed.roles.base import Participant, State, absent, listed
from turnout.distributed.roles.elections import Adding, Election, largest_election
from turnout.distributed.two_stage import TwoStageSampling
from turnout.errors import (
    InvalidTypeError,
    MalformedMessageError,
    MissingPartyError,
    ProtocolError,
)
from turnout.frequency.estimation.estimate import FrequencyEstimate


class Aggregator(Participant):
    """Collects one share of every user, agrees on the users with the others, and sends their sum.

    1. ``receive`` shares until the deadline, then ``close``: a roster of the users whose share
       came goes to every other aggregator.
    2. ``receive`` their rosters. The users whose shares of one report are in all of them are in the
       round; a user whose shares did not all arrive, or are of different reports, is in none of the
       sums.
    3. When the last roster came, the sum of the shares, with this party's own dummies or noise,
       goes to the server, and the shares are forgotten.

    With users as parties each user's device has this role too, with the index of the user.

    Parameters
    ----------
    mechanism, round_id
        What is computed, and the name of the round: see
        :meth:`turnout.distributed.Round.aggregator`.
    index
        Which aggregator this is.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(2, users=3, parties=2, epsilon=1.0)
    >>> aggregator = tn.distributed.Round.start(mechanism).aggregator(0)
    >>> [str(party) for party in aggregator.missing]
    ['user 0', 'user 1', 'user 2']
    """

    _mechanism: Deployed

    def __init__(self, mechanism: AggregationMechanism, round_id: bytes, index: int) -> None:
        if not isinstance(mechanism, Deployed):
            raise InvalidTypeError(
                "two-stage sampling has no aggregators: elected users add up, and are made by user"
            )
        most = mechanism.number_of_parties - 1
        number = _arguments.integer("index", index, least=0, most=most)
        super().__init__(mechanism, round_id, Party(Role.AGGREGATOR, number))
        self._shares: dict[int, bytes] = {}
        self._reports = np.zeros(mechanism.users, np.uint64)
        self._rosters: dict[int, bytes] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The users whose share did not come, then the aggregators whose roster did not."""
        if self.state is State.COLLECTING:
            return absent(Role.USER, self._mechanism.users, self._shares)
        if self.state is State.WAITING:
            return absent(Role.AGGREGATOR, self._mechanism.number_of_parties, self._rosters)
        return ()

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
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
                f"by the plan the shares for {self.party} are {expected}, got one of "
                f"{message.sender} that is not"
            )
        self._shares[user] = message.payload[payloads.SHARE_OVERHEAD :]
        self._reports[user] = report
        return []

    def _take_roster(self, message: Message) -> list[Message]:
        mechanism = self._mechanism
        if message.sender == self.party:
            raise ProtocolError(f"{self.party} got a roster that claims to be its own")
        count, states = mechanism.number_of_parties, (State.COLLECTING, State.WAITING)
        other = self._sender(message, Role.AGGREGATOR, count, self._rosters, *states)
        payloads.check_roster(message.payload, mechanism.users, mechanism._users_are_parties)
        self._rosters[other] = message.payload
        return self._finish()

    def close(self) -> list[Message]:
        """Take no more shares.

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
        others = absent(Role.AGGREGATOR, mechanism.number_of_parties, (self.party.index,))
        sent = [self._send(MessageKind.ROSTER, other, payload) for other in others]
        return sent + self._finish()

    def _check(self, reports: Unsigned) -> None:
        missing = np.flatnonzero(reports == 0).tolist()
        self._check_missing(tuple(Party(Role.USER, user) for user in missing))

    def _agreed_reports(self) -> Unsigned:
        """Leave out the users that are not in all rosters with the same report."""
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
        if self.state is State.COLLECTING or len(self._rosters) < mechanism.number_of_parties:
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

    _mechanism: TwoStageSampling

    def __init__(self, mechanism: AggregationMechanism, round_id: bytes) -> None:
        if not isinstance(mechanism, TwoStageSampling):
            raise InvalidTypeError("only two-stage sampling has a reporting server")
        super().__init__(mechanism, round_id, Party(Role.REPORTING_SERVER))
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


class AggregatingServer(Adding):
    """Receives the sums of all that add up, and learns their total, which is published.

    With aggregators, or with users as parties, it waits for a sum of each. In two-stage sampling it
    is the paper's S2: it waits for the election of the reporting server and for a sum of every user
    that is elected for an item.

    Parameters
    ----------
    mechanism, round_id
        What is computed, and the name of the round: see
        :meth:`turnout.distributed.Round.server`.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(2, users=3, parties=2, epsilon=1.0)
    >>> [str(party) for party in tn.distributed.Round.start(mechanism).server().missing]
    ['aggregator 0', 'aggregator 1']
    """

    _step: ClassVar[State] = State.COLLECTING

    def __init__(self, mechanism: AggregationMechanism, round_id: bytes) -> None:
        super().__init__(mechanism, round_id, Party(Role.SERVER))
        self._published: tuple[Integers, int] | None = None
        if isinstance(mechanism, Deployed):
            self._senders = Role.AGGREGATOR
            self._expected = {index: [] for index in range(mechanism.number_of_parties)}

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
        mechanism = self._mechanism
        size = mechanism.domain.size
        if isinstance(mechanism, TwoStageSampling):
            return {
                MessageKind.SUM: payloads.item_shares_size(mechanism.field, size),
                MessageKind.ELECTION: largest_election(mechanism, with_duties=False),
            }
        return {MessageKind.SUM: payloads.party_sum_size(mechanism.field, size)}

    def _accept(self, message: Message) -> list[Message]:
        if message.kind is MessageKind.ELECTION:
            election = self._read_election(message, None)
            self._await(election, election.duties_of_all())
        elif isinstance(self._mechanism, Deployed):
            self._take_party_sum(message, self._mechanism)
        else:
            self._take_items(message)
        if self._all_found:
            self._publish()
        return []

    def _take_party_sum(self, message: Message, mechanism: Deployed) -> None:
        count = mechanism.number_of_parties
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
                    f"{message.sender} added up other users than aggregator {other}: "
                    f"{found[0]} and {known[0]}"
                )
        self._found[party] = found

    def _publish(self) -> None:
        mechanism = self._mechanism
        if isinstance(mechanism, Deployed):
            received = next(iter(self._found.values()))[0]
            total = mechanism.field._sum([elements for _, _, elements in self._found.values()])
            self.costs.additions += mechanism.domain.size * (len(self._found) - 1)
        else:
            assert self._election is not None
            received = self._election.received
            total = self._total()
        self._published = (mechanism.decode(total), received)
        self._forget()
        self.state = State.DONE

    @property
    def received(self) -> int:
        """The number of users in the round.

        Raises
        ------
        MissingPartyError
            If the round is not complete.
        """
        return self._complete()[1]

    @property
    def sums(self) -> Integers:
        """What the round reveals: one whole number for each item.

        Raises
        ------
        MissingPartyError
            If the round is not complete.
        """
        return self._complete()[0].copy()

    def estimate(self) -> FrequencyEstimate:
        """Estimate the frequencies.

        Returns
        -------
        FrequencyEstimate
            With exact variances and intervals.

        Raises
        ------
        MissingPartyError
            If the round is not complete; it names who is missing. The role goes on waiting.
        """
        sums, received = self._complete()
        return self._mechanism.estimate(sums, received)

    def _complete(self) -> tuple[Integers, int]:
        if self._published is None:
            if self.state is State.FAILED:
                raise MissingPartyError(f"{self.party}: {self._failure}")
            missing = self.missing
            raise MissingPartyError(f"{self.party} still waits for {listed(missing)}", missing)
        return self._published
