"""Rounds: single uses of a mechanism, and their execution in this process."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from turnout import _arguments
from turnout._documents import canonical, check_version, document
from turnout._values import settle
from turnout.distributed.aggregation import AggregationMechanism, check_users
from turnout.distributed.mechanisms import known, rebuilt
from turnout.distributed.messages import Message, Party, Role, in_words
from turnout.distributed.results import CostLedger, Costs, RoundResult
from turnout.distributed.roles import AggregatingServer, Aggregator, ReportingServer, User
from turnout.distributed.roles.base import Participant
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

_FORMAT = "turnout-round"
_VERSION = 1
_NONCE = 16


@dataclasses.dataclass(frozen=True)
class Round:
    """One use of a mechanism; all parties receive it and create their roles from it.

    Parameters
    ----------
    mechanism
        The mechanism of the round.
    nonce
        16 bytes that have never been used before; :meth:`start` draws them.

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
        """Check the fields and derive the identifier."""
        _arguments.instance("mechanism", self.mechanism, AggregationMechanism, "a mechanism")
        if self.mechanism._no_rounds is not None:
            raise InvalidValueError(
                "mechanism must be one whose parties exchange the messages of a Round, got "
                f"{self.mechanism.name!r}: {self.mechanism._no_rounds}"
            )
        if not isinstance(self.nonce, bytes) or len(self.nonce) != _NONCE:
            raise _arguments.invalid(f"nonce must be {_NONCE} bytes", self.nonce)
        named = hashlib.blake2b(
            self.nonce + bytes.fromhex(self.mechanism.fingerprint), digest_size=16
        )
        settle(self, identifier=named.digest())

    @classmethod
    def start(cls, mechanism: AggregationMechanism) -> Round:
        """Start a round with a fresh identifier.

        Parameters
        ----------
        mechanism
            The mechanism of the round.

        Returns
        -------
        Round
            A round with a fresh identifier. Send it to every party, as :meth:`to_bytes` writes it.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the mechanism has no messages.
        """
        return cls(mechanism, secrets.token_bytes(_NONCE))

    # Roles.

    @property
    def parties(self) -> Iterator[Party]:
        """All parties: users, those who add up, and the server."""
        for kind in self.mechanism._roles:
            for index in range(self.mechanism._number_of(kind._role)):
                yield Party(kind._role, index)

    def role(self, party: Party) -> Participant:
        """Create the role of a party.

        Parameters
        ----------
        party
            One of :attr:`parties`.

        Returns
        -------
        Participant
            The object that receives and returns the messages of the party.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is no such party.

        Examples
        --------
        >>> import turnout as tn
        >>> mechanism = tn.distributed.NoisyAggregation(3, users=2, parties=2, epsilon=1.0)
        >>> round_ = Round.start(mechanism)
        >>> [str(round_.role(party).party) for party in round_.parties]
        ['user 0', 'user 1', 'aggregator 0', 'aggregator 1', 'the server']
        """
        _arguments.instance("party", party, Party, "a Party")
        made: Participant = self._made(party.role, party.index)
        return made

    def _made(self, role: Role, index: int = 0) -> Any:
        for kind in self.mechanism._roles:
            if kind._role is role:
                most = self.mechanism._number_of(role) - 1
                number = _arguments.integer("index", index, least=0, most=most)
                return kind(self.mechanism, self.identifier, number)
        there = ", ".join(in_words(kind._role) for kind in self.mechanism._roles)
        raise InvalidTypeError(
            f"a round of {self.mechanism.name.replace('_', '-')} has no {in_words(role)}: its "
            f"roles are {there}"
        )

    def user(self, index: int) -> User:
        """Create the role of a user.

        Parameters
        ----------
        index
            The number of the user, from 0 to n - 1.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is no such user.
        """
        made: User = self._made(Role.USER, index)
        return made

    def aggregator(self, index: int) -> Aggregator:
        """Create the role of a party that adds up shares; user ``index`` if users are the parties.

        Parameters
        ----------
        index
            The number of the aggregator, from 0.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is no such aggregator. In two-stage sampling there is none: elected users add
            up.
        """
        made: Aggregator = self._made(Role.AGGREGATOR, index)
        return made

    def server(self) -> AggregatingServer:
        """Create the role that receives the sums and publishes their total."""
        made: AggregatingServer = self._made(Role.SERVER)
        return made

    def reporting_server(self) -> ReportingServer:
        """Create the role that receives the sets and elects users (S1 in two-stage sampling).

        Raises
        ------
        InvalidTypeError
            If the mechanism is not two-stage sampling.
        """
        made: ReportingServer = self._made(Role.REPORTING_SERVER)
        return made

    # What travels.

    def to_bytes(self) -> bytes:
        """Serialize the round as canonical JSON.

        Returns
        -------
        bytes
            The bytes that :meth:`from_bytes` accepts.
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
        """Read a round that :meth:`to_bytes` wrote.

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
            If this release does not read its version.
        CorruptDataError
            If the bytes are not a round.
        InvalidTypeError
            If ``data`` is not bytes.
        """
        _arguments.instance("data", data, (bytes, bytearray, memoryview), "bytes")
        description = document("not a round of turnout's", bytes(data))
        check_version("round", description, "turnout-round", _VERSION)
        match description:
            case {"nonce": str(nonce), "mechanism": mechanism}:
                try:
                    found = cls(rebuilt(mechanism, known()), bytes.fromhex(nonce))
                except (TypeError, ValueError) as error:
                    raise CorruptDataError(f"not a turnout round: {error}") from error
                if found.to_bytes() == bytes(data):
                    return found
        raise CorruptDataError(f"not a turnout round: {_arguments.shown(description)}")


def exchange(round_: Round, values: Any) -> RoundResult:
    """Run one round in this process, with all its roles and messages.

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
    roles: dict[Party, Any] = {party: round_.role(party) for party in round_.parties}

    def deliver(messages: Iterable[Message]) -> None:
        waiting = deque(messages)
        while waiting:
            message = waiting.popleft()
            waiting.extend(roles[message.recipient].receive(message.to_bytes()))

    for index, value in enumerate(items):
        deliver(roles[Party(Role.USER, index)].report(value))
    for role in roles.values():
        if role._users_report:
            deliver(role.close())
    server = roles[Party(Role.SERVER)]
    return RoundResult(server.estimate(), server.sums, ledger(roles.values(), mechanism))


def ledger(roles: Iterable[Participant], mechanism: AggregationMechanism) -> CostLedger:
    """Add up the costs of roles; two roles of one party count as one."""
    names = dict.fromkeys(mechanism._bearer(kind._role) for kind in mechanism._roles)
    totals: dict[str, Costs] = {}
    parties: dict[str, set[int]] = {}
    for role in roles:
        name = mechanism._bearer(role.party.role)
        totals[name] = totals.get(name, Costs()) + role.costs
        parties.setdefault(name, set()).add(role.party.index)
    ordered = [name for name in names if name in totals]
    return CostLedger(
        {name: totals[name] for name in ordered},
        {name: len(parties[name]) for name in ordered},
        mechanism.paper_costs(),
    )
