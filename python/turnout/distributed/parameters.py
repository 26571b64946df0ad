"""The parameters of mechanisms: participants, collusion, target and guarantee."""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, ClassVar

from turnout import _arguments
from turnout._documents import digest
from turnout._values import settle
from turnout.accounting import calibrate
from turnout.accounting.guarantee import Guarantee
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import nonnegative, target_delta
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidValueError

_MOST_USERS = 2**31 - 1
_MOST_ITEMS = 2**24


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameters(abc.ABC):
    """The parameters and the guarantee that all mechanisms have in common."""

    #: The word for this mechanism in descriptions and on the command line.
    name: ClassVar[str]

    #: The parameter that is found for a target if it is not given; None if nothing is.
    _found: ClassVar[str | None] = None

    #: The sentence of trust that says what everyone must do.
    _conduct: ClassVar[str] = (
        "everyone follows the protocol: shares carry no proof that they are those of one item"
    )

    #: What a user holds, in a word.
    _holding: ClassVar[str] = "item"

    #: What differs between neighbouring data sets: where one is replaced, and otherwise.
    _changes: ClassVar[tuple[str, str]] = (
        "one user's item is changed",
        "one user that takes part holds an item or none",
    )

    #: What makes a round of the mechanism among machines.
    _among_machines: ClassVar[str] = (
        "turnout.distributed.Round.start(mechanism) starts a round of the same mechanism"
    )

    domain: Any = dataclasses.field(kw_only=False)
    users: int = dataclasses.field(kw_only=False)
    epsilon: float | None = None
    delta: float | None = None
    honest_aggregators: int = 1
    max_colluding_users: int = 0
    max_missing_users: int = 0
    adjacency: str = "replace"

    def __post_init__(self) -> None:
        """Check the parameters that all mechanisms have."""
        settle(
            self,
            domain=self._domain_of(self.domain),
            users=_arguments.integer("users", self.users, least=1, most=_MOST_USERS),
        )
        if (self.epsilon is None) != (self.delta is None):
            raise InvalidValueError(
                "epsilon and delta must be given together, got epsilon = "
                f"{_arguments.shown(self.epsilon)}, delta = {_arguments.shown(self.delta)}"
            )
        if self.epsilon is not None and self.delta is not None:
            epsilon = nonnegative("epsilon", _arguments.number("epsilon", self.epsilon))
            delta = target_delta(self.delta, self.users)
            settle(self, epsilon=float(epsilon), delta=delta)
        least = {"honest_aggregators": 1, "max_colluding_users": 0, "max_missing_users": 0}
        for name, smallest in least.items():
            settle(self, **{name: _arguments.integer(name, getattr(self, name), least=smallest)})
        away = self.max_colluding_users + self.max_missing_users
        if away >= self.users:
            raise InvalidValueError(
                "max_colluding_users and max_missing_users must leave at least one user of "
                f"{self.users}, got {self.max_colluding_users} and "
                f"{self.max_missing_users}"
            )

    @classmethod
    def _domain_of(cls, domain: Any) -> Any:
        """Check the domain of what users hold."""
        found = domain_of("domain", domain)
        if found.size > _MOST_ITEMS:
            raise _arguments.invalid(f"domain must have at most {_MOST_ITEMS} items", found.size)
        return found

    @classmethod
    def _read_domain(cls, description: Any) -> Any:
        """Read the domain from its description by :meth:`to_dict`."""
        return Domain.from_dict(description)

    def _calibrated(self, argument: str, mechanism: Mechanism, parameter: str) -> float:
        """Return the given parameter, or find the one that reaches the target.

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
            raise InvalidValueError(f"{argument} = {value} is not valid: {error}") from error
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
        """Whether a delta of 0 is possible."""
        return False

    # What protects.

    @property
    @abc.abstractmethod
    def accounting(self) -> Mechanism:
        """The privacy accounting of one release."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee: what is protected, against whom, and under which assumptions."""
        data, missing = "the data may be anything", self.max_missing_users
        if self._promised:
            data = (
                f"every item is held by at least {self._promised} users, before and after the "
                "change"
            )
        sentences = [*self._trust(), data, self._conduct]
        if missing and self._users_protect:
            are = "user is" if missing == 1 else "users are"
            sentences.append(f"at most {missing} {are} missing from a round")
        found = Guarantee(
            self.accounting, self.adjacency, self.epsilon, self.delta, tuple(sentences)
        )
        replaced, otherwise = self._changes
        change = replaced if self.adjacency == "replace" else otherwise
        return dataclasses.replace(found, change=change)

    @abc.abstractmethod
    def _trust(self) -> list[str]:
        """State who must keep what secret."""

    @property
    def _promised(self) -> int:
        """The promised number of holders of each item on which the guarantee rests, or 0."""
        return 0

    @property
    def _users_protect(self) -> bool:
        """Whether missing users reduce the protection."""
        return self._promised > 0

    @property
    @abc.abstractmethod
    def _modulus(self) -> int:
        """The number of elements of the field."""

    @property
    def _has_messages(self) -> bool:
        """Whether parties exchange messages: a trusted server that has all records needs none."""
        return True

    # What is told of it.

    def _adders(self) -> str:
        """Name the parties that add up."""
        return "the server"

    def _title(self) -> str:
        """Describe the mechanism in a few words."""
        return self.name.replace("_", " ")

    def _told(self) -> list[tuple[str, str]]:
        """Describe the mechanism and its parameters: names and texts."""
        return [("mechanism", self._title())]

    @abc.abstractmethod
    def _error(self) -> tuple[float, str]:
        """Return the expected root mean squared error, and the quantity that it is about."""

    def _facts(self) -> dict[str, Any]:
        """Return the computed facts about the mechanism, for programs."""
        return {"field": self._modulus}

    # What travels.

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters for copies and pickles; derived values are recomputed."""
        return {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """Describe the mechanism as a JSON-compatible dictionary.

        Returns
        -------
        dict
            The description that :func:`turnout.distributed.mechanism_from_dict` accepts.
        """
        fields = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {"mechanism": self.name, **fields, "domain": self.domain.to_dict()}

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of :meth:`to_dict`, in hexadecimal."""
        return digest(self.to_dict())
