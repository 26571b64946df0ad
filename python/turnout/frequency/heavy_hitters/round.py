"""One round: the candidates that the server publishes, and what a node reports about them."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.errors import InvalidValueError
from turnout.frequency.heavy_hitters.prefixes import PrefixDomain
from turnout.frequency.heavy_hitters.values import Rows, Values
from turnout.frequency.wrapped import CodesOracle, OfCodes


class Round(CodesOracle):
    """Report which of the candidate prefixes a value has, or that it has none.

    Made by :attr:`Search.current`. Its plan is all that a node needs, and everything that serves a
    plan serves a round: plan files, messages, files of reports, jobs, tallies, groups, commands.
    **A node answers one round**, that of its group: a second report would spend epsilon again.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats.
    domain
        The candidates: a :class:`PrefixDomain`.
    number
        Which round this is, counted from 0: the group of nodes that answers it.
    groups
        How many groups there are.
    oracle
        What randomizes the code of the prefix: ``"auto"`` (default), the name of an oracle, or a
        class; or an oracle of as many codes as there are candidates and one more, or its
        description.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or the oracle is of another epsilon or
        another number of codes.

    Examples
    --------
    >>> import turnout as tn
    >>> from turnout.frequency.heavy_hitters import HeavyHitters
    >>> first = HeavyHitters(1.0, bits=16).rounds().current
    >>> plan = tn.Plan(first, tn.Everyone())
    >>> plan.gather([plan.report(0xABCD), plan.report(17)]).nodes
    2
    """

    name = "prefixes"
    domain_type = PrefixDomain
    asked_of = "the group of this round alone: a person in two rounds spends epsilon twice"

    def __init__(
        self,
        epsilon: float,
        domain: PrefixDomain,
        *,
        number: int,
        groups: int,
        oracle: OfCodes = "auto",
    ) -> None:
        _arguments.instance("domain", domain, PrefixDomain, "a PrefixDomain")
        super().__init__(epsilon, domain, oracle)
        self._groups = _arguments.integer("groups", groups, least=1)
        self._number = _arguments.integer("number", number, least=0)
        if self._number >= self._groups:
            raise InvalidValueError(f"number must be below groups = {groups}, got {number}")

    @property
    def domain(self) -> PrefixDomain:
        """The candidates, and all others."""
        domain: Any = self._domain
        found: PrefixDomain = domain
        return found

    @property
    def values(self) -> Values:
        """The kind of values."""
        return self.domain.values

    @property
    def number(self) -> int:
        """Which round this is, counted from 0: the group of nodes that answers it."""
        return self._number

    @property
    def groups(self) -> int:
        """How many groups there are: of rounds, if something is found."""
        return self._groups

    @property
    def bits(self) -> int:
        """How many bits the prefixes have."""
        return self.domain.bits

    @property
    def candidates(self) -> tuple[Any, ...]:
        """The prefixes, shown as text, in the order of their codes; at last the values."""
        return self.domain.labels[:-1]

    @property
    def rows(self) -> Rows:
        """The prefixes as rows of bits."""
        return self.domain.rows

    def parameters(self) -> dict[str, Any]:
        """Name what the constructor takes beyond epsilon and the domain, in terms of JSON."""
        return {"number": self._number, "groups": self._groups, **super().parameters()}

    def __repr__(self) -> str:
        """Show the number, the prefixes and the oracle's class."""
        return (
            f"Round(epsilon={self._epsilon!r}, {self._domain!r}, number={self._number}, "
            f"groups={self._groups}, oracle={type(self._inner).__name__})"
        )
