"""Reports of several attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from turnout import _arguments
from turnout.collecting.plan import Plan
from turnout.collecting.reports import Reports
from turnout.errors import InvalidValueError
from turnout.frequency.attributes.base import Attributes
from turnout.participation import Participation, stated_participation

__all__ = ["AttributeReports", "checked_pieces"]


class AttributeReports(Mapping[str, Reports]):
    """The reports of the nodes that took part, by attribute: a mapping from names.

    Where a node reports every attribute, its reports stand at the same place in each.

    Parameters
    ----------
    collection
        What made them.
    participation
        How nodes took part.
    reports
        For each attribute its reports.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an attribute is missing, or has reports of another number of nodes.
    PlanMismatchError
        If the reports of an attribute were made under another plan.

    Examples
    --------
    >>> from turnout.frequency.attributes import SplitBudget
    >>> reports = SplitBudget(2.0, {"a": 2, "b": 3}).randomize({"a": [0, 1], "b": [2, 2]})
    >>> reports
    AttributeReports(a: 2, b: 2 reports of 2 nodes)
    """

    __slots__ = ("_collection", "_participation", "_reports")

    def __init__(
        self,
        collection: Attributes,
        participation: Participation,
        reports: Mapping[str, Reports],
    ) -> None:
        self._reports: dict[str, Reports] = checked_pieces(
            collection, participation, reports, "reports", Reports
        )
        self._collection = collection
        self._participation = participation.in_plan()

    @property
    def collection(self) -> Attributes:
        """What made the reports."""
        return self._collection

    @property
    def participation(self) -> Participation:
        """How nodes took part; of personal probabilities only that they are personal."""
        return self._participation

    @property
    def nodes(self) -> int:
        """How many nodes there are, reporting or not."""
        return next(iter(self._reports.values())).nodes

    def __getitem__(self, name: str) -> Reports:
        """Return the reports of one attribute."""
        return self._reports[name]

    def __iter__(self) -> Iterator[str]:
        """List the names of the attributes."""
        return iter(self._reports)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self._reports)

    def __eq__(self, other: object) -> bool:
        """Compare collections and reports."""
        if not isinstance(other, AttributeReports):
            return NotImplemented
        return self._collection == other._collection and self._reports == other._reports

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Copy and pickle what the constructor takes."""
        return type(self), (self._collection, self._participation, self._reports)

    def __repr__(self) -> str:
        """Show how many reports there are of each attribute."""
        numbers = ", ".join(f"{name}: {len(piece)}" for name, piece in self._reports.items())
        return f"AttributeReports({numbers} reports of {self.nodes} nodes)"


def checked_pieces(
    collection: Attributes,
    participation: Participation,
    pieces: Any,
    argument: str,
    kind: type[Any],
) -> dict[str, Any]:
    """Return one piece for each attribute, made under its plan and of the same nodes."""
    _arguments.instance("collection", collection, Attributes, "a collection of attributes")
    participation = stated_participation(participation)
    checked: dict[str, Any] = collection._by_attribute(argument, pieces)
    for name, piece in checked.items():
        what = f"{argument}[{name!r}]"
        _arguments.instance(what, piece, kind, f"a {kind.__name__} object")
        seen = collection.attribute_participation(name, participation)
        Plan(collection._plan_oracle(name), seen).check_same(piece.plan, what)
    nodes = {name: piece.nodes for name, piece in checked.items()}
    if len(set(nodes.values())) > 1:
        raise InvalidValueError(f"{argument} must be of the same nodes, got {nodes!r}")
    collection._check_received(
        argument,
        {
            name: len(piece) if kind is Reports else piece.received
            for name, piece in checked.items()
        },
        next(iter(nodes.values())),
        participation,
    )
    return checked
