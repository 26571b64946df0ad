"""What the ways to collect several attributes have in common."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.frequency.attributes.base import Attributes
from turnout.frequency.attributes.description import read_description
from turnout.frequency.attributes.reports import AttributeReports
from turnout.frequency.attributes.tally import AttributeTally
from turnout.participation import Participation

__all__ = ["AttributeCollection", "collection_from_dict"]


class AttributeCollection(Attributes):
    """Base class of the ways to collect several attributes of each node.

    Immutable. What a node sends about all its attributes together has a likelihood ratio of at most
    :attr:`realized_ratio` under any two whole tuples of answers.
    """

    def randomize(
        self,
        table: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> AttributeReports:
        """Randomize the answers of the nodes that take part.

        Parameters
        ----------
        table
            One column of answers for each attribute, all of the same length: a mapping, or a
            pandas, polars or pyarrow table. Other columns are not read.
        participation
            Who takes part, with all attributes or none; everyone by default.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        AttributeReports
            The reports, by attribute.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If an answer is not in its domain.
        InvalidValueError
            If a column is missing, lengths differ, or the seed is out of range.
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import turnout as tn
        >>> from turnout.frequency.attributes import SplitBudget
        >>> both = SplitBudget(2.0, {"sex": tn.Domain(["f", "m"]), "age": 4})
        >>> reports = both.randomize({"sex": ["f", "m", "f"], "age": [0, 3, 1]})
        >>> len(reports["age"])
        3
        """
        taking_part, pieces = self._reports(table, participation, seed)
        return AttributeReports(self, taking_part, dict(pieces))

    def tally(self, reports: AttributeReports) -> AttributeTally:
        """Count the reports that support each answer of each attribute.

        Parameters
        ----------
        reports
            Reports that were made by an equal collection.

        Returns
        -------
        AttributeTally
            The sufficient statistics of the estimators.

        Raises
        ------
        PlanMismatchError
            If the reports were made by another collection.
        InvalidTypeError
            If ``reports`` is no :class:`AttributeReports`.

        Examples
        --------
        >>> from turnout.frequency.attributes import SampledAttribute
        >>> one = SampledAttribute(1.0, {"a": 2, "b": 3})
        >>> tally = one.tally(one.randomize({"a": [0, 1] * 50, "b": [2, 2] * 50}))
        >>> tally["a"].received + tally["b"].received
        100
        """
        _arguments.instance("reports", reports, AttributeReports, "an AttributeReports object")
        self.check_same(reports.collection, "reports")
        return AttributeTally(
            self,
            reports.participation,
            {name: self._plan_oracle(name).tally(piece) for name, piece in reports.items()},
        )

    def collect(
        self,
        table: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> AttributeTally:
        """Randomize and tally, with the reports of one attribute at a time in memory.

        For the same seed the result equals ``tally(randomize(...))``.

        Parameters
        ----------
        table, participation, seed
            As for :meth:`randomize`.

        Returns
        -------
        AttributeTally
            The sufficient statistics of the estimators.

        Raises
        ------
        TurnoutError
            As for :meth:`randomize`.

        Examples
        --------
        >>> from turnout.frequency.attributes import SplitBudget
        >>> table = {"a": [0, 1] * 500, "b": [2, 2] * 500}
        >>> estimates = SplitBudget(8.0, {"a": 2, "b": 3}).collect(table, seed=1).estimate()
        >>> bool(estimates["b"].frequencies[2] > 0.9)
        True
        """
        taking_part, pieces = self._reports(table, participation, seed)
        tallies = {name: self._plan_oracle(name).tally(piece) for name, piece in pieces}
        return AttributeTally(self, taking_part, tallies)


def collection_from_dict(description: Any) -> AttributeCollection:
    """Rebuild a collection from its description.

    Parameters
    ----------
    description
        What :meth:`AttributeCollection.to_dict` gave, perhaps through JSON.

    Returns
    -------
    AttributeCollection
        An equal collection.

    Raises
    ------
    CorruptDataError
        If the description is not one of a collection that this release knows.

    Examples
    --------
    >>> from turnout.frequency.attributes import SampledAttribute
    >>> one = SampledAttribute(1.0, {"a": 2, "b": 3}, padding="fake")
    >>> collection_from_dict(one.to_dict()) == one
    True
    """
    found = read_description(description)
    # What has a scheme is one.
    assert isinstance(found, AttributeCollection)
    return found
