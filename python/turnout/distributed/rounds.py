"""A round: one use of a mechanism, with a name and roles of its own; and one in this process."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections import deque
from collections.abc import Iterable
from typing import Any

from turnout import _arguments
from turnout._documents import canonical, check_version, document
from turnout._values import settle
from turnout.distributed.aggregation import AggregationMechanism, check_users
from turnout.distributed.deployment import Deployed
from turnout.distributed.messages import Message, Party, Role, in_words
from turnout.distributed.noisy import NoisyAggregation
from turnout.distributed.results import CostLedger, Costs, RoundResult
from turnout.distributed.roles import AggregatingServer, Aggregator, ReportingServer, User
from turnout.distributed.sampling import SamplingAggregation
from turnout.distributed.two_stage import TwoStageSampling
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

_FORMAT = "turnout-round"
_VERSION = 1
_NONCE = 16

_KINDS: dict[str, type[AggregationMechanism]] = {
    kind.name: kind for kind in (SamplingAggregation, TwoStageSampling, NoisyAggregation)
}


@dataclasses.dataclass(frozen=True)
class Round:
    """One use of a mechanism. All parties of a round get the same one, and make their roles of it.

    Parameters
    ----------
    mechanism
        What is computed.
    nonce
        16 bytes that were never used before: :meth:`start` draws them.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the mechanism has no messages, or the nonce is not 16 bytes.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(3, users=2, parties=2, epsilon=1.0)
    >>> round_ = Round.start(mechanism)
    >>> Round.from_bytes(round_.to_bytes()) == round_
    True
    """

    mechanism: AggregationMechanism
    nonce: bytes
    #: The 16 bytes that every message of the round carries.
    identifier: bytes = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the fields and derive the name."""
        _arguments.instance("mechanism", self.mechanism, AggregationMechanism, "a mechanism")
        if not self.mechanism._has_messages:
            raise InvalidValueError(
                "mechanism must be distributed, got central=True: a trusted server has all records "
                "and needs no messages; use run"
            )
        if not isinstance(self.nonce, bytes) or len(self.nonce) != _NONCE:
            raise _arguments.invalid(f"nonce must be {_NONCE} bytes", self.nonce)
        named = hashlib.blake2b(
            self.nonce + bytes.fromhex(self.mechanism.fingerprint), digest_size=16
        )
        settle(self, identifier=named.digest())

    @classmethod
    def start(cls, mechanism: AggregationMechanism) -> Round:
        """Start a round: everyone who takes part gets it, as :meth:`to_bytes` writes it.

        Parameters
        ----------
        mechanism
            What is computed.

        Returns
        -------
        Round
            A round with a fresh name, which makes the roles.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the mechanism has no messages.
        """
        return cls(mechanism, secrets.token_bytes(_NONCE))

    # Roles.

    def user(self, index: int) -> User:
        """Make the role of a user.

        Parameters
        ----------
        index
            Which one, from 0 to n - 1.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is no such user.
        """
        most = self.mechanism.users - 1
        return User(
            self.mechanism, self.identifier, _arguments.integer("index", index, least=0, most=most)
        )

    def aggregator(self, index: int) -> Aggregator:
        """Make the role of a party that adds up shares; user ``index`` if users are the parties.

        Parameters
        ----------
        index
            Which one, from 0.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is no such party.
        """
        return Aggregator(self.mechanism, self.identifier, index)

    def server(self) -> AggregatingServer:
        """Make the role that puts the sums together: S2 of two-stage sampling."""
        return AggregatingServer(self.mechanism, self.identifier)

    def reporting_server(self) -> ReportingServer:
        """Make the role that gets the sets and elects users: S1 of two-stage sampling.

        Raises
        ------
        InvalidTypeError
            If the mechanism is not two-stage sampling.
        """
        return ReportingServer(self.mechanism, self.identifier)

    # What travels.

    def to_bytes(self) -> bytes:
        """Write the round: canonical JSON.

        Returns
        -------
        bytes
            What :meth:`from_bytes` takes.
        """
        description = {
            "format": _FORMAT,
            "version": _VERSION,
            "nonce": self.nonce.hex(),
            "mechanism": self.mechanism.to_dict(),
        }
        return canonical(description).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Round:
        """Read what :meth:`to_bytes` wrote.

        Parameters
        ----------
        data
            The bytes.

        Returns
        -------
        Round
            An equal round.

        Raises
        ------
        UnsupportedVersionError
            If it is of a version that this release does not read.
        CorruptDataError
            If it is no round.
        InvalidTypeError
            If ``data`` is not bytes.
        """
        _arguments.instance("data", data, (bytes, bytearray, memoryview), "bytes")
        description = document("not a round of turnout's", bytes(data))
        check_version("round", description, "turnout-round", _VERSION)
        match description:
            case {"nonce": str(nonce), "mechanism": mechanism}:
                try:
                    found = cls(mechanism_from_dict(mechanism), bytes.fromhex(nonce))
                except (TypeError, ValueError) as error:
                    raise CorruptDataError(f"not a round of turnout's: {error}") from error
                if found.to_bytes() == bytes(data):
                    return found
        raise CorruptDataError(f"not a round of turnout's: {_arguments.shown(description)}")


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
    if isinstance(description, dict):
        fields = dict(description)
        name, domain = fields.pop("mechanism", None), fields.pop("domain", None)
        chosen = _KINDS.get(name) if isinstance(name, str) else None
        if chosen is not None:
            known = {item.name for item in dataclasses.fields(chosen)} - {"domain"}
            if set(fields) == known:
                # To find it again could take any time, and it was found before it was written.
                if fields[chosen._found] is None:
                    raise CorruptDataError(
                        f"not a mechanism that can be: its {chosen._found} must be given"
                    )
                try:
                    return chosen(domain=Domain.from_dict(domain), **fields)
                except (InvalidTypeError, InvalidValueError) as error:
                    raise CorruptDataError(f"not a mechanism that can be: {error}") from error
    raise CorruptDataError(f"not the description of a mechanism: {_arguments.shown(description)}")


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
    items = _arguments.items("values", values, "one item for each user", private=True)
    check_users(mechanism, items)
    server = round_.server()
    users = [round_.user(index) for index in range(mechanism.users)]
    collectors: list[Aggregator | ReportingServer]
    if isinstance(mechanism, Deployed):
        collectors = [round_.aggregator(index) for index in range(mechanism.number_of_parties)]
    else:
        collectors = [round_.reporting_server()]
    roles = {role.party: role for role in (server, *users, *collectors)}

    def deliver(messages: Iterable[Message]) -> None:
        waiting = deque(messages)
        while waiting:
            message = waiting.popleft()
            waiting.extend(roles[message.recipient].receive(message.to_bytes()))

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
    if isinstance(mechanism, Deployed) and mechanism._users_are_parties:
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
