"""What a plan, a report file and a message need to know of a randomizer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Protocol

import numpy as np

from turnout import _arguments
from turnout._types import Array, Truths
from turnout.domain import Domain
from turnout.metrics import observe
from turnout.participation import Participation

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    #: A randomizer; what is not said is not checked.
    R_co = TypeVar("R_co", bound="Randomizer", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

_LOGGER = logging.getLogger(__name__)


class Made(Protocol):
    """What a randomizer makes of answers: one report for each node that takes part."""

    @property
    def codes(self) -> Array:
        """What was reported, in the order of the nodes."""
        ...

    def __len__(self) -> int:
        """Return the number of reports."""
        ...


class Randomizer(Protocol):
    """How the answer of one person becomes a report, and which reports there can be."""

    #: The word for this kind in plans.
    name: ClassVar[str]

    #: Whether every report is drawn anew, so that nothing has to be kept between them.
    fresh: ClassVar[bool]

    #: Why all nodes must share one rate of participation; empty where each may have its own.
    one_rate_because: ClassVar[str]

    @property
    def silent(self) -> bool:
        """Whether a node may send nothing by what its answer is."""
        ...

    @property
    def epsilon(self) -> float:
        """The privacy parameter that was asked for, in nats."""
        ...

    @property
    def domain(self) -> Domain:
        """The answers that can be given."""
        ...

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers that a report is made of."""
        ...

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``()`` for one integer, ``(width,)`` for a row of them."""
        ...

    def randomize(
        self,
        values: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> Made:
        """Make the reports of the nodes that take part."""
        ...

    def reports(self, participation: Participation, codes: Any, nodes: int) -> Made:
        """Take over reports that arrived by another way."""
        ...

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that it cannot have made."""
        ...

    def refuse_range(self, reports: Array) -> NoReturn:
        """Refuse reports with a number that :attr:`report_dtype` does not hold."""
        ...

    def improbable(self, reports: Array) -> Truths:
        """Say which reports hardly ever come from an honest node."""
        ...

    def parameters(self) -> dict[str, Any]:
        """Name what it takes beyond epsilon and the domain, in terms of JSON."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Describe it in terms of JSON."""
        ...


_MEMBERS: Final = tuple(
    name for name in (*vars(Randomizer), *Randomizer.__annotations__) if not name.startswith("_")
)


def check_randomizer(argument: str, value: object) -> None:
    """Refuse what is no randomizer.

    Its class is asked, not the object: some of its properties are computed.

    Raises
    ------
    InvalidTypeError
        If a member is missing.

    Examples
    --------
    >>> import turnout as tn
    >>> check_randomizer("oracle", tn.DirectEncoding(1.0, 3))
    """
    kind = type(value)
    if not all(hasattr(kind, name) for name in _MEMBERS):
        raise _arguments.mistyped(f"{argument} must be an oracle", value)


def tell_improbable(oracle: Randomizer, reports: Array) -> int:
    """Count the reports that came from elsewhere and that honest nodes hardly ever send.

    Parameters
    ----------
    oracle
        Which oracle they should be of.
    reports
        Reports that it can have made.

    Returns
    -------
    int
        How many there are; if there are any they are also logged, and told to the hooks.
    """
    found = int(oracle.improbable(reports).sum())
    say_improbable(found)
    return found


def say_improbable(found: int) -> None:
    """Log that there are so many such reports, and tell the hooks; nothing of none."""
    if found:
        observe("reports_improbable", reports=found)
        _LOGGER.warning("reports that honest nodes hardly ever send: %d", found)
