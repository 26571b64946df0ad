"""Mechanisms in which aggregators, or all users, add up the shares of whole vectors."""

from __future__ import annotations

import dataclasses

from turnout import _arguments
from turnout._types import Array, Integers
from turnout._values import settle
from turnout.distributed.aggregation import AggregationMechanism, Codes, step_seed
from turnout.distributed.field import SEED_BYTES
from turnout.distributed.messages import MESSAGE_OVERHEAD, Role
from turnout.distributed.payloads import ROSTER_DIGEST, SHARE_OVERHEAD, party_sum_size, roster_size
from turnout.distributed.results import CostLedger, Costs
from turnout.errors import InvalidValueError

_MOST_PARTIES = 10_000


def telling_sentence(users: int, kind: str = "") -> str:
    """State how many users may disclose what they know to the adversary."""
    tell = "user gives what it knows" if users == 1 else "users give what they know"
    return f"at most {users} {kind}{tell} to the adversary"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Deployed(AggregationMechanism):
    """A mechanism in which every user shares one vector among parties that add up.

    The subclasses document the parameters.
    """

    parties: int | str = 3
    compressed: bool = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        if isinstance(self.parties, str):
            _arguments.choice("parties", self.parties, ("users",))
        else:
            parties = _arguments.integer("parties", self.parties, least=2, most=_MOST_PARTIES)
            settle(self, parties=parties)
        _arguments.instance("compressed", self.compressed, bool, "True or False")
        if self._users_are_parties and self.max_missing_users:
            raise InvalidValueError(
                'max_missing_users must be 0 with parties="users", got '
                f"{self.max_missing_users}: additive shares need every party, and here "
                "every user is a party"
            )
        if self._users_are_parties and self.users < 2:
            raise InvalidValueError('users must be at least 2 with parties="users", got 1')
        most = self._number_of_parties - (self._knowing_users if self._users_are_parties else 0)
        if self.honest_aggregators > most:
            raise InvalidValueError(
                f"honest_aggregators must be at most {most}, the parties that do not collude, got "
                f"{self.honest_aggregators}"
            )

    @property
    def _sharing_rate(self) -> float:
        """The probability that a user shares its item."""
        return 1.0

    @property
    def _users_are_parties(self) -> bool:
        """Whether every user is a party that adds up shares."""
        return self.parties == "users"

    def _number_of(self, role: Role) -> int:
        return self._number_of_parties if role is Role.AGGREGATOR else super()._number_of(role)

    def _bearer(self, role: Role) -> str:
        adding = role is Role.AGGREGATOR and self._users_are_parties
        return super()._bearer(Role.USER if adding else role)

    def _adders(self) -> str:
        return "all users" if self._users_are_parties else f"{self._number_of_parties:,} parties"

    def _adding(self) -> str:
        who = "all users" if self._users_are_parties else f"{self.parties} aggregators"
        return f"{who} add up"

    @property
    def _number_of_parties(self) -> int:
        """The number of shares into which each user's vector is split."""
        return self.users if isinstance(self.parties, str) else self.parties

    def _seeded(self, party: int) -> bool:
        """Return whether a party's shares travel as seeds: all but the last do, if compressed."""
        return self.compressed and party < self._number_of_parties - 1

    @property
    def _share_bytes(self) -> int:
        """The bytes that one user sends, without headers."""
        packed = self.field._packed_size(self.domain.size)
        seeds = self._number_of_parties - 1 if self.compressed else 0
        return seeds * SEED_BYTES + (self._number_of_parties - seeds) * packed

    def _noise_of_users(self, seed: int | None = None) -> Integers | None:
        """Draw the sum of the noise of all users; None if users add no noise.

        Parameters
        ----------
        seed
            For tests and simulations only.
        """
        return None

    def _added_up(self, codes: Codes, seed: int | None) -> tuple[Array, CostLedger]:
        field, size, n = self.field, self.domain.size, self.users
        parties = self._number_of_parties if self._has_messages else 2
        rate = self._sharing_rate
        per_party, draws, additions = field._core.share_one_hot(
            codes, rate, size, parties, self.compressed, step_seed(seed, "shares")
        )
        # Of the additions, those that make the last share are the users', the others the parties'.
        own_additions = n * (parties - 1) * size
        each = self._vector_costs()
        users = Costs(
            draws=draws, additions=own_additions, coins=n * each.coins, noise=n * each.noise
        )
        noise = self._noise_of_users(seed)
        if noise is not None:
            per_party[0] = field._add(per_party[0], field._reduce(noise))
        for index, own in self._contributions(seed):
            per_party[index % parties] = field._add(per_party[index % parties], own)
        adding = Costs(additions=additions - own_additions) + self._contributions_costs()
        total = field._sum(per_party)
        if not self._has_messages:
            return total, CostLedger({"server": Costs(coins=n + adding.coins)}, {"server": 1}, {})
        return total, self._ledger(users, adding)

    def _ledger(self, users: Costs, adding: Costs) -> CostLedger:
        """Add to the costs the messages of a round without missing users."""
        field, size, n = self.field, self.domain.size, self.users
        parties = self._number_of_parties
        seeds = parties - 1 if self.compressed else 0
        users.messages = n * parties
        users.bytes = n * (self._share_bytes + parties * (SHARE_OVERHEAD + MESSAGE_OVERHEAD))
        # What an aggregator expands, user by user.
        adding.draws += n * seeds * size
        # To each other a roster, to the server a sum with the number of users and the digest.
        roster = ROSTER_DIGEST if self._users_are_parties else roster_size(n)
        total = party_sum_size(field, size)
        adding.messages = parties * parties
        adding.bytes = parties * ((parties - 1) * roster + total + parties * MESSAGE_OVERHEAD)
        server = Costs(additions=(parties - 1) * size)
        if self._users_are_parties:
            totals = {"user": users + adding, "server": server}
            return CostLedger(totals, {"user": n, "server": 1}, self.paper_costs())
        totals = {"user": users, "aggregator": adding, "server": server}
        return CostLedger(totals, {"user": n, "aggregator": parties, "server": 1}, {})

    def paper_costs(self) -> dict[str, Costs]:
        """Evaluate the paper's table, which covers users as parties."""
        if not self._users_are_parties:
            return {}
        n, size, element = self.users, self.domain.size, self.field.bits / 8
        return {
            "user": Costs(
                bytes=(2 * n * size + size) * element,
                additions=2 * (n - 1) * size,
                draws=(n - 1) * size,
                coins=1,
            ),
            "server": Costs(additions=(n - 1) * size),
        }

    @property
    def _contributing_parties(self) -> int:
        """The number of parties that add dummies or noise, so that enough are honest."""
        if self._users_are_parties:
            return self._knowing_users + self.honest_aggregators
        return self._number_of_parties

    @property
    def _knowing_users(self) -> int:
        """The number of users that know their dummies or noise; each knows at least its own."""
        return max(self.max_colluding_users, 1)

    def _trust(self) -> list[str]:
        users = "no other user exploits or discloses its own randomness"
        if self.max_colluding_users:
            users = telling_sentence(self.max_colluding_users, "other ")
        return [self._parties_trust(), users]

    def _parties_trust(self) -> str:
        honest = self.honest_aggregators
        who = "one" if honest == 1 else str(honest)
        if self._users_are_parties and not self._contributors:
            return "at least one other user does not share what it sees with anybody"
        if self._users_are_parties:
            return (
                f"at least {who} of the first {self._contributors} users, who add dummies or "
                f"noise, {'keeps' if honest == 1 else 'keep'} them to themselves"
            )
        return (
            f"at least {who} of the {self._number_of_parties} aggregators "
            f"{'does' if honest == 1 else 'do'} not share what it sees with the others"
        )
