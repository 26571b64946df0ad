"""What every estimate says of the collection that it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from turnout._tables import Tabular
from turnout.collecting.left_out import NOTHING, LeftOut

#: What can be answered.
D = TypeVar("D")


@dataclass(frozen=True, eq=False, repr=False)
class BaseEstimate(Tabular, Generic[D]):
    """What is estimated from one tally.

    Attributes
    ----------
    plan
        What the data was collected by: anything with a ``domain``.
    method
        The word for the estimator.
    nodes, received
        The numbers of nodes and of reports.
    left_out
        How many rows or messages do not count, and are in none of these numbers.
    """

    plan: Any
    method: str
    nodes: int
    received: int
    left_out: LeftOut = field(default=NOTHING, kw_only=True)

    @property
    def domain(self) -> D:
        """What can be answered."""
        domain: D = self.plan.domain
        return domain
