"""What every estimate says of the collection that it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from turnout._tables import Tabular

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
    """

    plan: Any
    method: str
    nodes: int
    received: int

    @property
    def domain(self) -> D:
        """What can be answered."""
        domain: D = self.plan.domain
        return domain
