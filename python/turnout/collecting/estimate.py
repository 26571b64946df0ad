"""What every estimate says about its collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from turnout._tables import Tabular
from turnout.collecting.left_out import NOTHING, LeftOut

#: What can be answered.
D = TypeVar("D")

#: The columns that say of a group how many it has.
COUNTED: Final = ("nodes", "received", "left_out")


def counts_of(counted: Any) -> dict[str, int]:
    """Return the numbers of nodes, reports and left-out rows of a tally or an estimate.

    Examples
    --------
    >>> import turnout as tn
    >>> counts_of(tn.DirectEncoding(1.0, 2).collect([0, 1, 1]))
    {'nodes': 3, 'received': 3, 'left_out': 0}
    """
    numbers = counted.nodes, counted.received, counted.left_out.total
    return dict(zip(COUNTED, numbers, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class BaseEstimate(Tabular, Generic[D]):
    """Base class of estimates from one tally.

    Attributes
    ----------
    plan
        The plan of the collection: anything with a ``domain``.
    method
        The name of the estimator.
    nodes, received
        The numbers of nodes and of reports.
    left_out
        The rows or messages that do not count, and are in none of these numbers.
    """

    plan: Any
    method: str
    nodes: int
    received: int
    left_out: LeftOut = field(default=NOTHING, kw_only=True)

    @property
    def domain(self) -> D:
        """The possible answers."""
        domain: D = self.plan.domain
        return domain
