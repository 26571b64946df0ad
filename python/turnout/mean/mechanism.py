"""What the mechanisms for means have in common."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.collecting.taking_part import taking_part_in
from turnout.mean.law import MeanLaw
from turnout.mean.plan import MeanPlan
from turnout.mean.reports import MeanReports
from turnout.mean.tally import MeanTally
from turnout.mean.variance import rates_of
from turnout.participation import Participation

__all__ = ["MeanMechanism"]


class MeanMechanism(MeanLaw):
    """Base class of the local randomizers of numbers.

    A mechanism is immutable and holds no randomness: it may be shared by threads, and every call
    draws from streams of its own. Reports are cells of an integer grid, never floating-point
    numbers, whose digits would leak.
    """

    def randomize(
        self, values: Any, *, participation: Participation | None = None, seed: int | None = None
    ) -> MeanReports:
        """Randomize the values of the nodes that take part.

        Parameters
        ----------
        values
            One number for each node; with several dimensions, one row for each node. All within
            the bounds: nothing is clipped.
        participation
            Who takes part; everyone by default.
        seed
            For tests and simulations only: an integer in [0, 2^64) that makes the result
            reproducible, whatever the number of threads. Noise that must protect somebody takes
            the default, which is fresh from the operating system.

        Returns
        -------
        MeanReports
            The reports of the nodes that took part, in the order of the nodes.

        Raises
        ------
        InvalidValueError
            If a value is outside the bounds or not a number, whether its node takes part or not; if
            the shape does not fit; if there are not as many personal probabilities as nodes; if the
            seed is out of range.
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import turnout as tn
        >>> reports = tn.mean.Duchi(1.0, dimensions=2).randomize([[0.5, -0.5], [0.25, 1.0]])
        >>> len(reports), reports.cells.shape
        (2, (2, 2))
        """
        taking_part = taking_part_in(participation)
        array = self._array(values)
        rate = rates_of(taking_part, len(array))
        coordinates, cells, probabilities = self._core.randomize(
            array.ravel(), rate, _arguments.seed(seed)
        )
        return MeanReports(
            self,
            taking_part,
            cells.reshape(self.report_shape),
            len(array),
            coordinates=None if coordinates is None else coordinates.reshape(-1, self.sampled),
            probabilities=probabilities,
        )

    def tally(self, reports: MeanReports) -> MeanTally:
        """Add up reports.

        Parameters
        ----------
        reports
            Reports that were made by an equal mechanism.

        Returns
        -------
        MeanTally
            The sufficient statistics of the estimators.

        Raises
        ------
        PlanMismatchError
            If the reports were made by another mechanism.
        InvalidTypeError
            If ``reports`` is no :class:`MeanReports`.

        Examples
        --------
        >>> import turnout as tn
        >>> mechanism = tn.mean.Piecewise(1.0)
        >>> mechanism.tally(mechanism.randomize([0.5, 0.25])).received
        2
        """
        _arguments.instance("reports", reports, MeanReports, "a MeanReports object")
        plan = MeanPlan(self, reports.participation)
        plan.check_same(reports.plan, "reports")
        coordinates = None if reports.coordinates is None else reports.coordinates.ravel()
        sums = self._core.tally(reports.cells.ravel(), coordinates, reports.probabilities)
        return self._tally(reports.participation, reports.nodes, sums)

    def collect(
        self, values: Any, *, participation: Participation | None = None, seed: int | None = None
    ) -> MeanTally:
        """Randomize and tally in one pass, with no reports in memory.

        For the same seed the result equals ``tally(randomize(...))``.

        Parameters
        ----------
        values, participation, seed
            As for :meth:`randomize`.

        Returns
        -------
        MeanTally
            The sufficient statistics of the estimators.

        Raises
        ------
        TurnoutError
            As for :meth:`randomize`.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.mean.Duchi(1.0).collect([0.5] * 100, participation=tn.Bernoulli(0.5)).nodes
        100
        """
        taking_part = taking_part_in(participation)
        array = self._array(values)
        rate = rates_of(taking_part, len(array))
        sums = self._core.collect(array.ravel(), rate, _arguments.seed(seed))
        return self._tally(taking_part, len(array), sums)

    def _tally(self, participation: Participation, nodes: int, sums: Any) -> MeanTally:

        received, moments, weighted = sums
        if weighted is not None:
            weighted = [[low + (high << 64) for low, high in row] for row in weighted]
        plan = MeanPlan(self, participation)
        return MeanTally(plan, received, nodes, moments, weighted=weighted)
