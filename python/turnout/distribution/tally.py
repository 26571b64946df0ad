"""Tallies of reports about a number: how many there are of each cell."""

from __future__ import annotations

from typing import ClassVar

import numpy.typing as npt

from turnout import _arguments
from turnout._types import Unsigned
from turnout.collecting.counted import CountedTally
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.distribution.bins import BinnedBounds
from turnout.distribution.estimate import DistributionEstimate
from turnout.distribution.solving import METHODS
from turnout.errors import InvalidValueError


class DistributionTally(CountedTally):
    """How many reports there are of each cell, and how many nodes there are.

    Tallies of different nodes under the same plan add up, in any order, to the tally of all nodes.

    Parameters
    ----------
    plan
        The mechanism and the participation.
    cells
        The number of reports of each cell.
    received
        The number of reports.
    nodes
        The number of nodes, reporting or not.
    weights
        Sums of inverse probabilities, if every node has its own.
    design
        Sums of probabilities over all nodes, if every node has its own.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> wave = tn.SquareWave(1.0, bounds=(0, 10), bins=20)
    >>> monday, tuesday = wave.collect([2.5] * 60), wave.collect([7.0] * 40)
    >>> (monday + tuesday).received
    100
    >>> type(monday).from_bytes(monday.to_bytes()) == monday
    True
    """

    __slots__ = ()

    _sums_name: ClassVar[str] = "cells"
    _entries_name: ClassVar[str] = "cells as the mechanism has"
    default_method: ClassVar[str] = METHODS[0]

    def __init__(
        self,
        plan: Plan,
        cells: npt.ArrayLike,
        received: int,
        nodes: int,
        *,
        weights: WeightedSums | None = None,
        design: DesignSums | None = None,
    ) -> None:
        super().__init__(plan, cells, received, nodes, weights=weights, design=design)

    @classmethod
    def _entries(cls, plan: Plan) -> int:
        cells: int = plan.oracle.cells
        return cells

    def _check_sums(self) -> None:
        total = sum(self._sums.tolist())
        if total != self._received:
            raise InvalidValueError(
                f"cells must add up to the {self._received} reports received, got {total}"
            )

    @property
    def domain(self) -> BinnedBounds:
        """The numbers that can be given, and their bins."""
        domain: BinnedBounds = self._plan.oracle.domain
        return domain

    @property
    def cells(self) -> Unsigned:
        """The number of reports of each cell, uint64; read-only."""
        cells: Unsigned = self._sums
        return cells

    def estimate(self, method: str = METHODS[0]) -> DistributionEstimate:
        """Estimate the distribution over all nodes.

        Every report counts with its inverse probability, if every node has its own.

        Parameters
        ----------
        method
            ``"ems"`` (default): expectation-maximisation with each step smoothed, until the
            log-likelihood of all reports changes by less than .001, as published. Best where
            neighbouring bins have similar shares. ``"ml"``: maximum likelihood, until no
            distribution can have a log-likelihood that is larger by more than .001. Best where the
            numbers are in few places.

        Returns
        -------
        DistributionEstimate
            Frequencies of the bins, quantiles and the mean, with intervals.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        EstimatorError
            If no reports were received.

        Examples
        --------
        >>> import turnout as tn
        >>> tally = tn.SquareWave(5.0, (0, 4), bins=4).collect([0.5] * 700 + [2.5] * 300, seed=1)
        >>> tally.estimate("ml").frequencies.round(1)
        array([0.7, 0. , 0.3, 0. ])
        """
        _arguments.choice("method", method, METHODS)
        return DistributionEstimate.from_tally(self, method)
