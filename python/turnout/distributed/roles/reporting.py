"""The first server of two-stage sampling: it learns the sets, and elects users."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import numpy as np

from turnout._types import Truths
from turnout.distributed import payloads
from turnout.distributed.electing import Electing
from turnout.distributed.messages import Kind, Message, Party, Role
from turnout.distributed.roles.base import AnyRound, Participant, State, listed
from turnout.errors import InvalidTypeError, MalformedMessageError, ProtocolError


class ReportingServer(Participant):
    """Collects a set of items from every user, then elects users for each item (the paper's S1).

    It sees who reports which items, and no share. Its view alone is locally private with
    :attr:`turnout.distributed.TwoStageSampling.reporting_epsilon`.

    Parameters
    ----------
    round_
        The round: see :meth:`turnout.distributed.Round.reporting_server`.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.TwoStageSampling(4, 10, reported=2, rate=0.5, floor=2)
    >>> len(mechanism.start_round().reporting_server().missing)
    10
    """

    def __init__(self, round_: AnyRound) -> None:
        if not isinstance(round_.mechanism, Electing):
            raise InvalidTypeError("round_ must be one of two-stage sampling")
        super().__init__(round_, Party(Role.REPORTING_SERVER))
        self._mechanism = round_.mechanism
        self._sets: dict[int, Truths] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The users whose set did not come."""
        if self._state is not State.COLLECTING:
            return ()
        users = range(self._mechanism.users)
        return tuple(Party(Role.USER, user) for user in users if user not in self._sets)

    @property
    def takes(self) -> Mapping[Kind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
        return {Kind.SET: payloads.bits_size(self._mechanism.domain.size)}

    def _forget(self) -> None:
        self._sets.clear()

    def _accept(self, message: Message) -> list[Message]:
        mechanism = self._mechanism
        self._expect(message)
        user = self._known(message, Role.USER, mechanism.users)
        self._in_state(message, (State.COLLECTING,))
        self._once(message, self._sets)
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
        if self._state is not State.COLLECTING:
            raise ProtocolError(f"{self._party} is {self._state.value}: it is closed already")
        mechanism = self._mechanism
        missing, allowed = self.missing, mechanism.max_missing_users
        if len(missing) > allowed:
            self._fail(
                f"the round is lost: {len(missing)} of {mechanism.users} users are missing "
                f"({listed(missing)}), and max_missing_users is {allowed}",
                missing,
            )
        present = np.array(sorted(self._sets), np.int64)
        table = np.array([self._sets[user] for user in present.tolist()])
        reporters = table.sum(axis=0, dtype=np.int64)
        self._costs.additions += int(table.size)
        drawn = secrets.SystemRandom()
        elected = tuple(
            np.array(drawn.sample(present.tolist(), min(size, len(present))), np.int64)
            for size in map(mechanism.committee_size, reporters.tolist())
        )
        election = payloads.Election(len(present), reporters, elected, {})
        public = election.public_part()
        duties = election.duties_of_all()
        messages = []
        for user in present.tolist():
            own = ((item, present[table[:, item]]) for item in duties.get(user, ()))
            payload = public + election.duty_part(own)
            messages.append(self._send(Kind.ELECTION, Party(Role.USER, user), payload))
        messages.append(self._send(Kind.ELECTION, Party(Role.SERVER), public))
        self._forget()
        self._state = State.DONE
        return messages
