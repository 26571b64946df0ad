"""Tallies of several attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from turnout.collecting.parted_tally import PartedTally
from turnout.frequency.attributes.estimate import AttributeEstimate
from turnout.frequency.tally import Tally
from turnout.products import Questions


class AttributeTally(PartedTally, Mapping[str, Tally]):
    """How many reports support each answer of each attribute: a mapping from names to tallies.

    Tallies of different nodes under the same plan add up, in any order.

    Examples
    --------
    >>> from turnout.frequency.attributes import SampledAttribute
    >>> one = SampledAttribute(1.0, {"a": 2, "b": 3})
    >>> monday = one.collect({"a": [0] * 60, "b": [1] * 60})
    >>> tuesday = one.collect({"a": [1] * 40, "b": [2] * 40})
    >>> (monday + tuesday).nodes
    100
    >>> AttributeTally.from_bytes(monday.to_bytes()) == monday
    True
    >>> list(monday)
    ['a', 'b']
    """

    __slots__ = ()

    @property
    def domain(self) -> Questions:
        """The answers that can be given to all questions."""
        domain: Questions = self.plan.domain
        return domain

    def __getitem__(self, name: str) -> Tally:
        """Return the tally of one attribute."""
        places = {each: place for place, each in enumerate(self)}
        tally: Tally = self.parts[places[name]]
        return tally

    def __iter__(self) -> Iterator[str]:
        """List the names of the attributes."""
        return iter(self.plan.oracle.domains)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self.parts)

    __eq__ = PartedTally.__eq__
    __hash__ = PartedTally.__hash__

    def estimate(self, method: str = "hajek") -> AttributeEstimate:
        """Estimate the frequencies of the answers of each attribute.

        Parameters
        ----------
        method
            The estimator, as in :meth:`turnout.Tally.estimate`.

        Returns
        -------
        AttributeEstimate
            For each attribute its frequencies among all nodes, with standard errors and intervals.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        EstimatorError
            If the method does not apply, or an attribute has no report.
        """
        each = {name: tally.estimate(method) for name, tally in self.items()}
        return AttributeEstimate(self.plan, method, self.nodes, self.received, each)
