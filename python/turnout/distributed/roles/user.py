"""A user: tosses the coin, makes shares; in two-stage sampling it may be elected to add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from turnout._types import Integers
from turnout.distributed import payloads
from turnout.distributed.aggregation import AggregationMechanism
from turnout.distributed.deployment import Deployed
from turnout.distributed.messages import Message, MessageKind, Party, Role
from turnout.distributed.roles.base import State
from turnout.distributed.roles.elections import Adding, Election, largest_election
from turnout.distributed.two_stage import TwoStageSampling
from turnout.errors import ProtocolError


class User(Adding):
    """One person's device: it holds one item, and sends what looks random.

    Call :meth:`report` once. With aggregators that is all. In two-stage sampling the user then
    receives the election, answers with shares for the elected users, and, if it is elected itself,
    receives the shares of others and sends their sum to the server.

    Parameters
    ----------
    mechanism, round_id
        What is computed, and the name of the round: see
        :meth:`turnout.distributed.Round.user`.
    index
        Which user this is.

    Examples
    --------
    >>> import turnout as tn
    >>> domain = tn.Domain(["no", "yes"])
    >>> mechanism = tn.distributed.NoisyAggregation(domain, users=3, parties=2, epsilon=1.0)
    >>> messages = tn.distributed.Round.start(mechanism).user(1).report("yes")
    >>> [str(message.recipient) for message in messages]
    ['aggregator 0', 'aggregator 1']
    """

    _step: ClassVar[State] = State.WAITING

    def __init__(self, mechanism: AggregationMechanism, round_id: bytes, index: int) -> None:
        super().__init__(mechanism, round_id, Party(Role.USER, index))
        # Of two-stage sampling:
        self._set: Integers = np.empty(0, np.int64)
        self._bits: Integers = np.empty(0, np.int64)

    @property
    def _takes(self) -> Mapping[MessageKind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
        mechanism = self._mechanism
        if not isinstance(mechanism, TwoStageSampling):
            return {}
        return {
            MessageKind.ELECTION: largest_election(mechanism, with_duties=True),
            MessageKind.ITEM_SHARES: payloads.item_shares_size(mechanism.field, mechanism.reported),
        }

    def _forget(self) -> None:
        super()._forget()
        self._set = self._bits = np.empty(0, np.int64)

    def report(self, value: Any) -> list[Message]:
        """Report an item: toss the coin, and make shares, or choose a set.

        A device reports once in a round. One that has lost its state and reports again is refused
        or left out, but what it sent has been seen: a second set of two-stage sampling spends its
        local guarantee again.

        Parameters
        ----------
        value
            The user's item: a label of the domain.

        Returns
        -------
        list of Message
            A share for every party that adds up; in two-stage sampling, the set for the reporting
            server.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If the value is not in the domain.
        ProtocolError
            If the user has reported in this round already.
        """
        if self.state is not State.COLLECTING:
            done = self._failure or "has reported in this round already"
            raise ProtocolError(f"{self.party}: {done}")
        code = int(self._mechanism.domain.encode([value])[0])
        if isinstance(self._mechanism, TwoStageSampling):
            return self._report_set(self._mechanism, code)
        assert isinstance(self._mechanism, Deployed)
        return self._share(self._mechanism, code)

    def _share(self, mechanism: Deployed, code: int) -> list[Message]:
        field, parties = mechanism.field, mechanism.number_of_parties
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

    # Two-stage sampling.

    def _report_set(self, mechanism: TwoStageSampling, code: int) -> list[Message]:
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
