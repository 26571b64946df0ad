"""Rounds in one process: by the compiled core for studies, or by all roles with real messages."""

from __future__ import annotations

import random
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._tables import Tabular
from turnout._types import Array, Integers
from turnout.distributed.aggregation import Aggregation, aggregation_from_dict, step_seed
from turnout.distributed.costs import CostLedger, Costs
from turnout.distributed.deployment import Deployed, Electing
from turnout.distributed.messages import MESSAGE_OVERHEAD, Message, Party, Role, in_words
from turnout.distributed.payloads import (
    ROSTER_DIGEST,
    bits_size,
    party_sum_size,
    roster_size,
    share_size,
)
from turnout.distributed.roles import AggregatingServer, Aggregator, ReportingServer, User
from turnout.distributed.rounds import Round
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate

Codes = npt.NDArray[np.uint32]

#: Sets are drawn and shared in one piece; this many entries of them are the most.
_MOST_SET_ENTRIES = 200_000_000
#: Shares of two-stage sampling that a study may draw.
_MOST_SHARES = 20_000_000_000


@dataclass(frozen=True, eq=False)
class RoundResult(Tabular):
    """What a round gave: a table of the frequencies with intervals.

    Attributes
    ----------
    estimate
        The frequencies, with exact variances and intervals.
    sums
        int64: what the round reveals, one whole number for each item.
    costs
        What each role did.
    """

    estimate: FrequencyEstimate
    sums: Integers
    costs: CostLedger

    _columns = FrequencyEstimate._columns

    def to_records(self, level: float = 0.95, **options: Any) -> list[dict[str, Any]]:
        """List one dictionary for each item.

        Parameters
        ----------
        level, **options
            As for :meth:`turnout.FrequencyEstimate.to_records`.

        Returns
        -------
        list of dict
            As :meth:`turnout.FrequencyEstimate.to_records` gives them.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or none of the allowed values.
        """
        return self.estimate.to_records(level, **options)


@dataclass(frozen=True, kw_only=True)
class AggregationMechanism(Aggregation):
    """Base class: who takes part, who may collude, and what is published.

    Mechanisms are frozen: they compare by their parameters, and every round has randomness of its
    own.
    """

    def run(self, values: Any, seed: int | None = None) -> RoundResult:
        """Run one round in this process, in the compiled core.

        Every coin, set, share and sum is drawn and computed as the parties would, and no message is
        made; the bytes and messages of the costs are those that the messages would have. The noise
        of all users together is drawn from its law where that is known (discrete Laplace and
        Skellam).

        Parameters
        ----------
        values
            One item for each user: anything that :meth:`turnout.Domain.encode` takes.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        RoundResult
            The estimate, the sums, and the costs.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError, InvalidTypeError
            If a value is not in the domain.
        InvalidValueError
            If there is not one value for each user, or two-stage sampling would draw more than
            2 * 10^10 shares.
        """
        seed = _arguments.seed(seed)
        codes = self.domain.encode(values).astype(np.uint32)
        _check_users(self, codes)
        if isinstance(self, Electing):
            total, costs = _run_two_stage(self, codes, seed)
        else:
            assert isinstance(self, Deployed)
            total, costs = _run_deployed(self, codes, seed)
        sums = self.decode(total)
        return RoundResult(self.estimate(sums), sums, costs)

    def start_round(self) -> Round:
        """Start a round: everyone who takes part gets it, as ``round.to_bytes()``.

        Returns
        -------
        Round
            A round with a fresh name, which makes the roles.
        """
        return Round.start(self)


def mechanism_from_dict(description: Any) -> AggregationMechanism:
    """Rebuild a mechanism from :meth:`AggregationMechanism.to_dict`.

    Parameters
    ----------
    description
        The dictionary, perhaps through JSON.

    Returns
    -------
    AggregationMechanism
        An equal mechanism.

    Raises
    ------
    CorruptDataError
        If it describes no mechanism.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(4, 100, epsilon=1.0)
    >>> mechanism_from_dict(mechanism.to_dict()) == mechanism
    True
    """
    # Whatever has a name, and so can be described, derives from the class above.
    return cast("AggregationMechanism", aggregation_from_dict(description))


def paper_costs(mechanism: Aggregation) -> dict[str, Costs]:
    """Evaluate Table 1 of Yang et al. for one party of each role.

    Bytes are those of bare elements and numbers, of ``ceil(log2 q)``, ``ceil(log2 n)`` and
    ``ceil(log2 N)`` bits, without headers. The table is for users as parties (DPDS) and for
    two-stage sampling (TSS) in which as many users are elected as report an item; for other ways to
    add up there are none.

    Parameters
    ----------
    mechanism
        Sampling or noise among parties, or two-stage sampling.

    Returns
    -------
    dict
        Costs by role.

    Raises
    ------
    InvalidTypeError
        If the mechanism is of another kind.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.SamplingAggregation(
    ...     30, 1000, rate=0.5, floor=33, parties="users"
    ... )
    >>> paper_costs(mechanism)["user"].draws  # (n - 1) N
    29970
    """
    _arguments.instance("mechanism", mechanism, Aggregation, "distributed aggregation")
    return mechanism.paper_costs()


def _check_users(mechanism: Aggregation, values: Sized) -> None:
    if len(values) != mechanism.users:
        raise InvalidValueError(
            f"values must hold one item for each of the {mechanism.users} users, got {len(values)}"
        )


def _run_deployed(mechanism: Deployed, codes: Codes, seed: int | None) -> tuple[Array, CostLedger]:
    field, size, n = mechanism.field, mechanism.domain.size, mechanism.users
    parties = mechanism.number_of_parties if mechanism.has_messages else 2
    rate = mechanism.sharing_rate
    per_party, draws, additions = field.core.share_one_hot(
        codes, rate, size, parties, mechanism.compressed, step_seed(seed, "shares")
    )
    # Of the additions, those that make the last share are the users', the others the parties'.
    own_additions = n * (parties - 1) * size
    each = mechanism.vector_costs()
    users = Costs(draws=draws, additions=own_additions, coins=n * each.coins, noise=n * each.noise)
    noise = mechanism.noise_of_users(seed)
    if noise is not None:
        per_party[0] = field.add(per_party[0], field.reduce(noise))
    for index, own in _contributions(mechanism, seed):
        per_party[index % parties] = field.add(per_party[index % parties], own)
    adding = Costs(additions=additions - own_additions) + _contribution_costs(mechanism)
    total = field.sum(per_party)
    if not mechanism.has_messages:
        return total, CostLedger({"server": Costs(coins=n + adding.coins)}, {"server": 1}, {})
    return total, _deployed_ledger(mechanism, users, adding)


def _deployed_ledger(mechanism: Deployed, users: Costs, adding: Costs) -> CostLedger:
    """Complete the costs by what the messages of a round without missing users take."""
    field, size, n = mechanism.field, mechanism.domain.size, mechanism.users
    parties = mechanism.number_of_parties
    seeds = parties - 1 if mechanism.compressed else 0
    packed = share_size(field, size, seeded=False)
    share_bytes = seeds * share_size(field, size, seeded=True) + (parties - seeds) * packed
    users.messages = n * parties
    users.bytes = n * (share_bytes + parties * MESSAGE_OVERHEAD)
    # What an aggregator expands, user by user.
    adding.draws += n * seeds * size
    # To each other a roster, to the server a sum with the number of users and the roster's digest.
    roster = ROSTER_DIGEST if mechanism.users_are_parties else roster_size(n)
    total = party_sum_size(field, size)
    adding.messages = parties * parties
    adding.bytes = parties * ((parties - 1) * roster + total + parties * MESSAGE_OVERHEAD)
    server = Costs(additions=(parties - 1) * size)
    if mechanism.users_are_parties:
        totals = {"user": users + adding, "server": server}
        return CostLedger(totals, {"user": n, "server": 1}, mechanism.paper_costs())
    totals = {"user": users, "aggregator": adding, "server": server}
    return CostLedger(totals, {"user": n, "aggregator": parties, "server": 1}, {})


def _contributions(mechanism: Aggregation, seed: int | None) -> Iterator[tuple[int, Array]]:
    """Draw what each contributor adds, as elements of the field."""
    for index in range(mechanism.contributors):
        own = mechanism.contribution(seed=step_seed(seed, "contribution", index))
        if own is not None:
            yield index, mechanism.field.reduce(own)


def _contribution_costs(mechanism: Aggregation) -> Costs:
    items = mechanism.contributors * mechanism.domain.size
    return Costs(additions=items) + mechanism.contribution_costs(items)


def _run_two_stage(mechanism: Electing, codes: Codes, seed: int | None) -> tuple[Array, CostLedger]:
    field, size, n = mechanism.field, mechanism.domain.size, mechanism.users
    if n * mechanism.reported > _MOST_SET_ENTRIES:
        raise InvalidValueError(
            f"users and reported must be at most {_MOST_SET_ENTRIES} together, got {n} and "
            f"{mechanism.reported}"
        )
    coins, sets = mechanism.draw_sets(codes, step_seed(seed, "sets"))
    reporters = np.bincount(sets.ravel(), minlength=size)
    sizes = [min(mechanism.committee_size(count), n) for count in reporters.tolist()]
    shares = sum(int(one) * two for one, two in zip(reporters, sizes, strict=True))
    if shares > _MOST_SHARES:
        raise InvalidValueError(
            f"elected must be given for so many users: {shares:,} shares would be drawn"
        )
    chosen = _choose(n, sizes, seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    sums, draws, additions = _core.two_stage_sums(
        codes, coins, sets, offsets, np.concatenate(chosen).astype(np.uint32), field.modulus,
        step_seed(seed, "shares"),
    )  # fmt: skip
    elected_sums = sums.astype(field.dtype)
    for index, own in _contributions(mechanism, seed):
        places = offsets[:-1].astype(np.int64) + index
        elected_sums[places] = field.add(elected_sums[places], own)
    total = np.zeros(size, field.dtype)
    starts = offsets.astype(np.int64)
    for item in range(size):
        part = elected_sums[starts[item] : starts[item + 1]]
        total[item] = field.sum(part[:, None])[0]
    users = Costs(coins=n, sets=n, draws=draws, additions=additions)
    users += _contribution_costs(mechanism)
    _count_two_stage_messages(mechanism, users, sets, chosen, reporters)
    election = 4 + 4 * (2 * size + sum(sizes))
    duties = sum(4 * len(who) * (1 + int(m)) for who, m in zip(chosen, reporters, strict=True))
    reporting = Costs(
        messages=n + 1,
        bytes=(n + 1) * (MESSAGE_OVERHEAD + election) + duties,
        additions=n * size,
    )
    server = Costs(additions=sum(sizes))
    totals = {"user": users, "reporting server": reporting, "server": server}
    parties = {"user": n, "reporting server": 1, "server": 1}
    return total, CostLedger(totals, parties, mechanism.paper_costs())


def _choose(n: int, sizes: list[int], seed: int | None) -> list[Integers]:
    """Elect users for each item."""
    own = step_seed(seed, "elections")
    drawn = secrets.SystemRandom() if own is None else random.Random(own)
    return [np.array(drawn.sample(range(n), size), np.int64) for size in sizes]


def _count_two_stage_messages(
    mechanism: Electing,
    users: Costs,
    sets: npt.NDArray[np.uint32],
    chosen: list[Integers],
    reporters: Integers,
) -> None:
    """Add the messages of users: a set each, bundles of shares, a sum of each elected user."""
    field, size, n = mechanism.field, mechanism.domain.size, mechanism.users
    users.messages += n
    users.bytes += n * (MESSAGE_OVERHEAD + bits_size(size))
    # Who is elected for which items: bundles go from every user to those elected for its items.
    elected = np.unique(np.concatenate(chosen))
    member = np.zeros((size, len(elected)), np.float32)
    for item, who in enumerate(chosen):
        member[item, np.searchsorted(elected, who)] = 1.0
    place = np.full(n, -1)
    place[elected] = np.arange(len(elected))
    step = max(1, 50_000_000 // max(len(elected), size))
    for start in range(0, n, step):
        block = sets[start : start + step].astype(np.int64)
        reported = np.zeros((len(block), size), np.float32)
        np.put_along_axis(reported, block, 1.0, axis=1)
        counts = (reported @ member).astype(np.int64)
        own = place[start : start + step]
        counts[np.flatnonzero(own >= 0), own[own >= 0]] = 0  # what a user keeps for itself
        users.count_bundles(counts[counts > 0], field.bits)
    users.count_bundles(member.sum(axis=0).astype(np.int64), field.bits)


def exchange(round_: Round, values: Any) -> RoundResult:
    """Run one round with all its roles and messages, in this process.

    Parameters
    ----------
    round_
        The round.
    values
        One item for each user.

    Returns
    -------
    RoundResult
        The estimate, the sums, and the costs, measured.

    Raises
    ------
    UnknownLabelError, CodeOutsideDomainError, InvalidTypeError
        If a value is not in the domain.
    InvalidValueError
        If there is not one value for each user.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.SamplingAggregation(
    ...     2, users=6, parties="users", rate=0.9, dummies=5
    ... )
    >>> result = exchange(mechanism.start_round(), [0, 0, 1, 1, 1, 1])
    >>> result.costs.parties
    {'user': 6, 'server': 1}
    """
    mechanism = round_.mechanism
    items = _arguments.items("values", values, "one item for each user")
    _check_users(mechanism, items)
    roles: dict[Party, User | Aggregator | AggregatingServer | ReportingServer] = {}

    def deliver(messages: Iterable[Message]) -> None:
        waiting = deque(messages)
        while waiting:
            message = waiting.popleft()
            waiting.extend(roles[message.recipient].receive(message.to_bytes()))

    server = round_.server()
    roles[server.party] = server
    users = [round_.user(index) for index in range(mechanism.users)]
    roles.update({user.party: user for user in users})
    collectors: list[Aggregator | ReportingServer]
    if isinstance(mechanism, Deployed):
        collectors = [round_.aggregator(index) for index in range(mechanism.number_of_parties)]
    else:
        collectors = [round_.reporting_server()]
    roles.update({collector.party: collector for collector in collectors})
    for user, value in zip(users, items, strict=True):
        deliver(user.report(value))
    for collector in collectors:
        deliver(collector.close())
    return RoundResult(server.estimate(), server.sums, ledger(roles.values(), mechanism))


def ledger(
    roles: Iterable[User | Aggregator | AggregatingServer | ReportingServer],
    mechanism: Aggregation,
) -> CostLedger:
    """Add up the costs of roles; with users as parties a user's two roles are one party."""
    order = (Role.USER, Role.AGGREGATOR, Role.REPORTING_SERVER, Role.SERVER)
    names = {role: in_words(role) for role in order}
    if isinstance(mechanism, Deployed) and mechanism.users_are_parties:
        names[Role.AGGREGATOR] = "user"
    totals: dict[str, Costs] = {}
    parties: dict[str, set[Party]] = {}
    for role in roles:
        name = names[role.party.role]
        totals[name] = totals.get(name, Costs()) + role.costs
        known = Party(Role.USER, role.party.index) if name == "user" else role.party
        parties.setdefault(name, set()).add(known)
    ordered = [name for name in dict.fromkeys(names.values()) if name in totals]
    return CostLedger(
        {name: totals[name] for name in ordered},
        {name: len(parties[name]) for name in ordered},
        mechanism.paper_costs(),
    )
