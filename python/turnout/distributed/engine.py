"""Rounds in one process, by all roles with real messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from turnout import _arguments
from turnout.distributed.aggregation import AggregationMechanism, check_users
from turnout.distributed.costs import CostLedger, Costs
from turnout.distributed.deployment import Deployed
from turnout.distributed.messages import Message, Party, Role, in_words
from turnout.distributed.results import RoundResult
from turnout.distributed.roles import AggregatingServer, Aggregator, ReportingServer, User
from turnout.distributed.rounds import Round


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
    >>> result = exchange(Round.start(mechanism), [0, 0, 1, 1, 1, 1])
    >>> result.costs.parties
    {'user': 6, 'server': 1}
    """
    mechanism = round_.mechanism
    items = _arguments.items("values", values, "one item for each user")
    check_users(mechanism, items)
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
    mechanism: AggregationMechanism,
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
