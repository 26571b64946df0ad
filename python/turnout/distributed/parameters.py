"""The parameters of a mechanism: who takes part and may collude, the target, how it travels."""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, ClassVar

from turnout import _arguments
from turnout._documents import digest
from turnout._values import settle
from turnout.accounting import calibrate
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import nonnegative, unit_interval
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidValueError

_MOST_USERS = 2**31 - 1
_MOST_ITEMS = 2**24


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameters(abc.ABC):
    """What all mechanisms are told, and how the parameter that reaches a target is found."""

    #: The word for this mechanism in descriptions and on the command line.
    name: ClassVar[str]

    #: The parameter that is found for a target if it is not given; None if nothing is.
    _found: ClassVar[str | None] = None

    domain: Domain = dataclasses.field(kw_only=False)
    users: int = dataclasses.field(kw_only=False)
    epsilon: float | None = None
    delta: float | None = None
    honest_aggregators: int = 1
    max_colluding_users: int = 0
    max_missing_users: int = 0
    adjacency: str = "replace"

    def __post_init__(self) -> None:
        """Check what all mechanisms have."""
        domain = domain_of("domain", self.domain)
        if domain.size > _MOST_ITEMS:
            raise _arguments.invalid(f"domain must have at most {_MOST_ITEMS} items", domain.size)
        settle(
            self,
            domain=domain,
            users=_arguments.integer("users", self.users, least=1, most=_MOST_USERS),
        )
        if (self.epsilon is None) != (self.delta is None):
            raise InvalidValueError(
                "epsilon and delta must be given together, got epsilon = "
                f"{_arguments.shown(self.epsilon)}, delta = {_arguments.shown(self.delta)}"
            )
        if self.epsilon is not None and self.delta is not None:
            epsilon = nonnegative("epsilon", _arguments.number("epsilon", self.epsilon))
            delta = unit_interval("delta", _arguments.number("delta", self.delta))
            settle(self, epsilon=float(epsilon), delta=float(delta))
        least = {"honest_aggregators": 1, "max_colluding_users": 0, "max_missing_users": 0}
        for name, smallest in least.items():
            settle(self, **{name: _arguments.integer(name, getattr(self, name), least=smallest)})
        away = self.max_colluding_users + self.max_missing_users
        if away >= self.users:
            raise InvalidValueError(
                "max_colluding_users and max_missing_users must leave a user of "
                f"{self.users}, got {self.max_colluding_users} and {self.max_missing_users}"
            )

    def _calibrated(self, argument: str, mechanism: Mechanism, parameter: str) -> float:
        """Take the parameter that was given, or find the one that reaches the target.

        ``mechanism`` is the accounting for any value of the parameter.
        """
        given = getattr(self, argument)
        if self.adjacency not in mechanism.adjacencies:
            allowed = ", ".join(map(repr, mechanism.adjacencies))
            raise _arguments.invalid(f"adjacency must be one of {allowed}", self.adjacency)
        if given is None:
            if self.epsilon is None or self.delta is None:
                raise InvalidValueError(
                    f"epsilon and delta must be given, or {argument}: got epsilon = "
                    f"{self.epsilon}, delta = {self.delta}, {argument} = None"
                )
            if self.delta == 0.0 and not self._pure:
                raise InvalidValueError(
                    f"delta must be above 0, got 0.0: no {argument} reaches it with this mechanism"
                )
            return float(
                calibrate(mechanism, parameter, self.epsilon, self.delta, adjacency=self.adjacency)
            )
        value = _arguments.number(argument, given)
        try:
            chosen = mechanism.replace(**{parameter: value})
        except InvalidValueError as error:
            raise InvalidValueError(f"{argument} = {value} cannot be: {error}") from error
        if self.epsilon is not None and self.delta is not None:
            reached = chosen.delta(self.epsilon, self.adjacency)
            if reached > self.delta:
                raise InvalidValueError(
                    f"{argument} = {value} does not reach delta = {self.delta} at epsilon = "
                    f"{self.epsilon}: its delta is {reached:.3g}"
                )
        return value

    @property
    def _pure(self) -> bool:
        """Whether a delta of 0 can be reached."""
        return False

    # What travels.

    def __getstate__(self) -> dict[str, Any]:
        """Copy and pickle the parameters; what follows from them is computed again."""
        return {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """Describe the mechanism in terms of JSON.

        Returns
        -------
        dict
            What :func:`turnout.distributed.mechanism_from_dict` takes.
        """
        fields: dict[str, Any] = {"mechanism": self.name}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            fields[item.name] = value.to_dict() if isinstance(value, Domain) else value
        return fields

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of :meth:`to_dict`, in hexadecimal."""
        return digest(self.to_dict())
