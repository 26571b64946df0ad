"""The party that puts the sums together and publishes the estimate."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from turnout._types import Integers
from turnout.distributed import payloads
from turnout.distributed.deployment import Deployed, Electing
from turnout.distributed.messages import Kind, Message, Party, Role
from turnout.distributed.roles.base import AnyRound, Participant, State, absent, listed
from turnout.errors import MalformedMessageError, MissingPartyError, ProtocolError
from turnout.frequency.estimation.estimate import FrequencyEstimate


class AggregatingServer(Participant):
    """Receives the sums of all that add up, and learns their total, which is published.

    With aggregators, or with users as parties, it waits for a sum of each. In two-stage sampling it
    is the paper's S2: it waits for the election of the reporting server and for a sum of every user
    that is elected for an item.

    Parameters
    ----------
    round_
        The round: see :meth:`turnout.distributed.Round.server`.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(2, users=3, parties=2, epsilon=1.0)
    >>> [str(party) for party in mechanism.start_round().server().missing]
    ['aggregator 0', 'aggregator 1']
    """

    def __init__(self, round_: AnyRound) -> None:
        super().__init__(round_, Party(Role.SERVER))
        self._mechanism = round_.mechanism
        self._election: payloads.Election | None = None
        self._duties: dict[int, list[int]] = {}
        self._sums: dict[int, Any] = {}
        self._published: tuple[Integers, int] | None = None

    @property
    def missing(self) -> tuple[Party, ...]:
        """The parties whose sum, or election, did not come."""
        if self._state is not State.COLLECTING:
            return ()
        if isinstance(self._mechanism, Deployed):
            return absent(Role.AGGREGATOR, self._mechanism.number_of_parties, self._sums)
        if self._election is None:
            return (Party(Role.REPORTING_SERVER),)
        waited = sorted(self._duties.keys() - self._sums.keys())
        return tuple(Party(Role.USER, user) for user in waited)

    @property
    def takes(self) -> Mapping[Kind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
        mechanism = self._mechanism
        size = mechanism.domain.size
        if isinstance(mechanism, Electing):
            return {
                Kind.SUM: payloads.item_shares_size(mechanism.field, size),
                Kind.ELECTION: payloads.largest_election(mechanism, with_duties=False),
            }
        return {Kind.SUM: payloads.party_sum_size(mechanism.field, size)}

    def _forget(self) -> None:
        self._sums.clear()
        self._duties.clear()
        self._election = None

    def _accept(self, message: Message) -> list[Message]:
        if isinstance(self._mechanism, Deployed):
            self._take_party_sum(message, self._mechanism)
        elif message.kind is Kind.ELECTION:
            self._take_election(message)
        else:
            self._take_elected_sum(message)
        expected = len(self._duties)
        if isinstance(self._mechanism, Deployed):
            expected = self._mechanism.number_of_parties
        elif self._election is None:
            return []
        if len(self._sums) == expected:
            self._publish()
        return []

    def _take_party_sum(self, message: Message, mechanism: Deployed) -> None:
        count = mechanism.number_of_parties
        party = self._sender(message, Role.AGGREGATOR, count, self._sums, State.COLLECTING)
        found = payloads.unpack_party_sum(message.payload, mechanism.field, mechanism.domain.size)
        if not mechanism.users - mechanism.max_missing_users <= found[0] <= mechanism.users:
            raise MalformedMessageError(
                f"{message.sender} added up {found[0]} users; expected {mechanism.users}, less at "
                f"most {mechanism.max_missing_users}"
            )
        # All that are here agree, so one of them is enough.
        for other, known in itertools.islice(self._sums.items(), 1):
            if found[:2] != known[:2]:
                raise ProtocolError(
                    f"{message.sender} added up other users than aggregator {other}: "
                    f"{found[0]} and {known[0]}"
                )
        self._sums[party] = found

    def _take_election(self, message: Message) -> None:
        mechanism = self._mechanism
        assert isinstance(mechanism, Electing)
        self._election = election = self._opened(
            message, mechanism, State.COLLECTING, self._election is not None, None
        )
        # What came before the election and does not fit is as if it had never come.
        self._duties = election.duties_of_all()
        self._sums = {
            user: found
            for user, found in self._sums.items()
            if found[0].tolist() == self._duties.get(user)
        }

    def _take_elected_sum(self, message: Message) -> None:
        mechanism = self._mechanism
        user = self._sender(message, Role.USER, mechanism.users, self._sums, State.COLLECTING)
        found = payloads.unpack_item_shares(message.payload, mechanism.field, mechanism.domain.size)
        if self._election is not None and found[0].tolist() != self._duties.get(user):
            raise ProtocolError(
                f"{self._party} got a sum of {message.sender} for items that it was not elected for"
            )
        self._sums[user] = found

    def _publish(self) -> None:
        mechanism, field = self._mechanism, self._mechanism.field
        size = mechanism.domain.size
        if isinstance(mechanism, Deployed):
            received = next(iter(self._sums.values()))[0]
            total = field.sum([elements for _, _, elements in self._sums.values()])
            self._costs.additions += size * (len(self._sums) - 1)
        else:
            assert self._election is not None
            received = self._election.received
            total = np.zeros(size, field.dtype)
            for items, elements in self._sums.values():
                total[items] = field.add(total[items], elements)
                self._costs.additions += len(items)
        self._published = (mechanism.decode(total), received)
        self._forget()
        self._state = State.DONE

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
            if self._state is State.FAILED:
                raise MissingPartyError(f"{self._party}: {self._failure}")
            missing = self.missing
            raise MissingPartyError(f"{self._party} still waits for {listed(missing)}", missing)
        return self._published
