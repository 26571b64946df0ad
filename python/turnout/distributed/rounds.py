"""A round: one use of a mechanism, with a name of its own, and the roles in it."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any

from turnout import _arguments
from turnout._documents import canonical, check_version, parsed
from turnout.distributed.aggregation import AggregationMechanism
from turnout.distributed.kinds import mechanism_from_dict
from turnout.distributed.messages import Party, Role
from turnout.distributed.roles import AggregatingServer, Aggregator, ReportingServer, User
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

_FORMAT = "turnout-round"
_VERSION = 1
_NONCE = 16


@dataclass(frozen=True)
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
    identifier: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the fields and derive the name."""
        _arguments.instance("mechanism", self.mechanism, AggregationMechanism, "a mechanism")
        if not self.mechanism.has_messages:
            raise InvalidValueError(
                "mechanism must be distributed, got central=True: a trusted server has all records "
                "and needs no messages; use run"
            )
        if not isinstance(self.nonce, bytes) or len(self.nonce) != _NONCE:
            raise _arguments.invalid(f"nonce must be {_NONCE} bytes", self.nonce)
        named = hashlib.blake2b(
            self.nonce + bytes.fromhex(self.mechanism.fingerprint), digest_size=16
        )
        object.__setattr__(self, "identifier", named.digest())

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

    def role(self, party: Party) -> User | Aggregator | AggregatingServer | ReportingServer:
        """Make the role of a party.

        Parameters
        ----------
        party
            Whose.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the round has no such party.
        """
        _arguments.instance("party", party, Party, "a Party")
        if party.role is Role.USER:
            return self.user(party.index)
        if party.role is Role.AGGREGATOR:
            return self.aggregator(party.index)
        if party.index != 0:
            raise InvalidValueError(
                f"party must have index 0, got {party.index}: there is only one"
            )
        return self.server() if party.role is Role.SERVER else self.reporting_server()

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
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidTypeError(f"data must be bytes, got {type(data).__name__}")
        try:
            description: Any = parsed(bytes(data))
        except (ValueError, RecursionError) as error:
            raise CorruptDataError(f"not a round of turnout's: {error}") from error
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
