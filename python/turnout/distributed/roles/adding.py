"""What roles of two-stage sampling have in common that add up what is shared of items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from turnout._types import Array
from turnout.distributed.aggregation import AggregationMechanism
from turnout.distributed.elections import Election
from turnout.distributed.messages import Message, Party, Role
from turnout.distributed.payloads import unpack_item_shares
from turnout.distributed.roles.base import Participant, State
from turnout.distributed.two_stage import TwoStageSampling
from turnout.errors import ProtocolError


class Adding(Participant):
    """Base class of roles that wait for an election, and for what it says comes from each user."""

    #: Where such a role is in its round while it waits.
    _step: ClassVar[State]

    def __init__(self, mechanism: AggregationMechanism, round_id: bytes, party: Party) -> None:
        super().__init__(mechanism, round_id, party)
        self._election: Election | None = None
        #: The items of which each user sends something.
        self._expected: Mapping[int, list[int]] = {}
        self._found: dict[int, Any] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The parties that this one waits for."""
        if self._state is not self._step:
            return ()
        if self._election is None:
            return (Party(Role.REPORTING_SERVER),)
        waited = self._expected.keys() - self._found.keys()
        return tuple(Party(Role.USER, user) for user in sorted(waited))

    @property
    def _all_found(self) -> bool:
        return self._election is not None and len(self._found) == len(self._expected)

    def _forget(self) -> None:
        self._election = None
        self._expected = {}
        self._found.clear()

    def _read_election(self, message: Message, user: int | None) -> Election:
        """Read the election, which comes once; of duties it has those of one user."""
        mechanism, known = self._mechanism, () if self._election is None else (0,)
        assert isinstance(mechanism, TwoStageSampling)
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
        found = unpack_item_shares(message.payload, mechanism.field, mechanism.domain.size)
        if self._election is not None and found[0].tolist() != self._expected.get(user):
            raise ProtocolError(
                f"{self._party} got elements of {message.sender} for other items than the "
                "election says"
            )
        self._found[user] = found

    def _total(self) -> Array:
        """Add up what was found: one sum for every item."""
        mechanism = self._mechanism
        totals = np.zeros(mechanism.domain.size, mechanism.field.dtype)
        for items, elements in self._found.values():
            totals[items] = mechanism.field.add(totals[items], elements)
            self._costs.additions += len(items)
        return totals
