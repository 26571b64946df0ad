"""A party that adds up shares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from turnout import _core
from turnout._types import Unsigned
from turnout.distributed import payloads
from turnout.distributed.deployment import Deployed
from turnout.distributed.messages import Kind, Message, Party, Role
from turnout.distributed.roles.base import AnyRound, Participant, State, listed
from turnout.errors import InvalidTypeError, MalformedMessageError, ProtocolError


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
    round_
        The round: see :meth:`turnout.distributed.Round.aggregator`.
    index
        Which aggregator this is.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(2, users=3, parties=2, epsilon=1.0)
    >>> aggregator = mechanism.start_round().aggregator(0)
    >>> [str(party) for party in aggregator.missing]
    ['user 0', 'user 1', 'user 2']
    """

    def __init__(self, round_: AnyRound, index: int) -> None:
        mechanism = round_.mechanism
        if not isinstance(mechanism, Deployed):
            raise InvalidTypeError("round_ must be one of a mechanism with aggregators")
        super().__init__(round_, Party(Role.AGGREGATOR, index))
        self._mechanism = mechanism
        self._shares: dict[int, bytes] = {}
        self._reports = np.zeros(mechanism.users, np.uint64)
        self._rosters: dict[int, bytes] = {}

    @property
    def missing(self) -> tuple[Party, ...]:
        """The users whose share did not come, then the aggregators whose roster did not."""
        if self._state is State.COLLECTING:
            users = range(self._mechanism.users)
            return tuple(Party(Role.USER, user) for user in users if user not in self._shares)
        if self._state is not State.WAITING:
            return ()
        others = range(self._mechanism.number_of_parties)
        return tuple(
            Party(Role.AGGREGATOR, other) for other in others if other not in self._rosters
        )

    @property
    def takes(self) -> Mapping[Kind, int]:
        """The kinds of messages that this party takes, and the bytes of the largest payload."""
        mechanism = self._mechanism
        digests = mechanism.users_are_parties
        return {
            Kind.SHARE: payloads.share_size(mechanism.field, mechanism.domain.size, self._seeded),
            Kind.ROSTER: payloads.ROSTER_DIGEST
            if digests
            else payloads.roster_size(mechanism.users),
        }

    @property
    def _seeded(self) -> bool:
        return self._mechanism.seeded(self._party.index)

    def _forget(self) -> None:
        self._shares.clear()
        self._reports[:] = 0
        self._rosters.clear()

    def _accept(self, message: Message) -> list[Message]:
        self._expect(message)
        if message.kind is Kind.SHARE:
            return self._take_share(message)
        return self._take_roster(message)

    def _take_share(self, message: Message) -> list[Message]:
        mechanism = self._mechanism
        user = self._known(message, Role.USER, mechanism.users)
        self._in_state(message, (State.COLLECTING,))
        self._once(message, self._shares)
        report, share = payloads.unpack_share(
            message.payload, mechanism.field, mechanism.domain.size
        )
        if isinstance(share, bytes) != self._seeded:
            # A seed is small, and to expand it takes as long as the largest share.
            expected = "a seed" if self._seeded else "packed elements"
            raise MalformedMessageError(
                f"by the plan the shares for {self._party} are {expected}, got one of "
                f"{message.sender} that is not"
            )
        self._shares[user] = message.payload[payloads.SHARE_OVERHEAD - 1 :]
        self._reports[user] = report
        return []

    def _take_roster(self, message: Message) -> list[Message]:
        mechanism = self._mechanism
        other = self._known(message, Role.AGGREGATOR, mechanism.number_of_parties)
        self._in_state(message, (State.COLLECTING, State.WAITING))
        if other == self._party.index:
            raise ProtocolError(f"{self._party} got a roster that claims to be its own")
        self._once(message, self._rosters)
        payloads.check_roster(message.payload, mechanism.users, mechanism.users_are_parties)
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
        if self._state is not State.COLLECTING:
            raise ProtocolError(f"{self._party} is {self._state.value}: it is closed already")
        mechanism = self._mechanism
        self._check(self._reports)
        self._state = State.WAITING
        payload = payloads.pack_roster(self._reports)
        if mechanism.users_are_parties:
            # All users must be there: whether the rosters are the same is all that is asked.
            payload = payloads.roster_digest(self._reports)
        self._rosters[self._party.index] = payload
        sent = [
            self._send(Kind.ROSTER, Party(Role.AGGREGATOR, other), payload)
            for other in range(mechanism.number_of_parties)
            if other != self._party.index
        ]
        return sent + self._finish()

    def _check(self, reports: Unsigned) -> None:
        allowed = self._mechanism.max_missing_users
        missing = tuple(Party(Role.USER, int(user)) for user in np.flatnonzero(reports == 0))
        if len(missing) > allowed:
            self._fail(
                f"the round is lost: {len(missing)} of {self._mechanism.users} users are missing "
                f"({listed(missing)}), and max_missing_users is {allowed}",
                missing,
            )

    def _agreed_reports(self) -> Unsigned:
        """Leave out the users that are not in all rosters with the same report."""
        own, reports = self._rosters[self._party.index], self._reports.copy()
        others = [index for index, roster in self._rosters.items() if roster != own]
        if not others:
            return reports
        if self._mechanism.users_are_parties:
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
        if self._state is State.COLLECTING or len(self._rosters) < mechanism.number_of_parties:
            return []
        reports = self._agreed_reports()
        present = np.flatnonzero(reports)
        size, field = mechanism.domain.size, mechanism.field
        total = _core.ShareSum(field.core, size)
        for user in present.tolist():
            share = self._shares[user]
            content = share[1:]
            if share[0] == 0:
                total.add_seed(content)
                self._costs.draws += size
            else:
                total.add_packed(content)
        self._costs.additions += size * max(len(present) - 1, 0)
        sums = total.finish()
        if self._party.index < mechanism.contributors:
            own = mechanism.contribution()
            if own is not None:
                sums = field.add(sums, field.reduce(own))
                self._costs.additions += size
                self._costs += mechanism.contribution_costs(size)
        self._forget()
        self._state = State.DONE
        payload = payloads.pack_party_sum(reports, field, sums)
        return [self._send(Kind.SUM, Party(Role.SERVER), payload)]
