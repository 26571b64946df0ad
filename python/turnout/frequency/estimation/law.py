"""What estimators know of an oracle and of a tally."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

from turnout import _arguments
from turnout._types import Array, Unsigned
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.domain import Domain
from turnout.frequency.estimation.models import ScoreMoments
from turnout.participation import Participation


class Law(Protocol):
    """The law of the reports of a frequency oracle: :class:`turnout.FrequencyOracle`."""

    @property
    def name(self) -> str:
        """The word for it in plans."""
        ...

    @property
    def domain(self) -> Domain:
        """The answers that can be given."""
        ...

    @property
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report under two answers."""
        ...

    @property
    def two_valued(self) -> bool:
        """Whether which answers a report supports is all that a likelihood needs."""
        ...

    @property
    def score_moments(self) -> ScoreMoments:
        """What a report says about one answer."""
        ...

    def shared_variance(self, total: Any, squares: Any) -> Any:
        """Give what hash functions shared by all reports add to the variance of a count."""
        ...

    def supports(self, reports: Array) -> Unsigned:
        """Tell which answers each report supports: bits, 64 to a word."""
        ...

    def randomize(self, values: Any, *, seed: int | None = None) -> Any:
        """Make the reports of all nodes."""
        ...


class Counted(Protocol):
    """What an estimator needs of a tally: :class:`turnout.Tally`."""

    @property
    def plan(self) -> Plan:
        """The oracle and the participation."""
        ...

    @property
    def oracle(self) -> Any:
        """The randomizer."""
        ...

    @property
    def participation(self) -> Participation:
        """How the nodes took part."""
        ...

    @property
    def support(self) -> Array:
        """The number of reports that support each answer."""
        ...

    @property
    def received(self) -> int:
        """The number of reports."""
        ...

    @property
    def nodes(self) -> int:
        """The number of nodes, reporting or not."""
        ...

    @property
    def weights(self) -> WeightedSums | None:
        """Sums of inverse probabilities, if every node has its own."""
        ...

    @property
    def design(self) -> DesignSums | None:
        """Sums of probabilities over all nodes, if every node has its own."""
        ...


def check_law(argument: str, value: object) -> None:
    """Refuse what is no frequency oracle.

    Raises
    ------
    InvalidTypeError
        If it says nothing of its scores.

    Examples
    --------
    >>> import turnout as tn
    >>> check_law("oracle", tn.DirectEncoding(1.0, 3))
    """
    if not hasattr(type(value), "score_moments"):
        raise _arguments.mistyped(f"{argument} must be an oracle", value)
