"""The square wave mechanism, which reports near a number, and its tallies."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array, Unsigned
from turnout._values import settle
from turnout.collecting.kind import KernelKind
from turnout.collecting.plan import Plan
from turnout.collecting.randomizer import Counts, Drawn, Noise
from turnout.collecting.tally import CountedTally, nothing_received
from turnout.distribution.estimate import DistributionEstimate
from turnout.distribution.groups import GroupedDistributionEstimate
from turnout.distribution.law import METHODS, BinnedBounds, WaveLaw, solved
from turnout.errors import CodeOutsideDomainError, InvalidValueError
from turnout.participation import Participation


class DistributionTally(CountedTally):
    """The number of reports of each cell, and the number of nodes.

    Tallies of different nodes under the same plan add up, in any order, to the tally of all nodes.

    Parameters
    ----------
    plan
        The mechanism and the participation.
    sums
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

    told: ClassVar[str] = "distributions"

    _entries_name: ClassVar[str] = "cells as the mechanism has"
    _default_method: ClassVar[str] = METHODS[0]

    @classmethod
    def _entries(cls, plan: Plan) -> int:
        return int(plan.oracle.cells)

    def _check_sums(self) -> None:
        total = sum(self.sums.tolist())
        if total != self.received:
            raise InvalidValueError(
                f"cells must add up to the {self.received} reports received, got {total}"
            )

    @property
    def cells(self) -> Unsigned:
        """The number of reports of each cell, uint64; read-only."""
        cells: Unsigned = self.sums
        return cells

    def estimate(self, method: str = METHODS[0]) -> DistributionEstimate:
        """Estimate the distribution over all nodes.

        If every node has its own probability, each report counts with the inverse of it.

        Parameters
        ----------
        method
            ``"ems"`` (default): expectation-maximisation with smoothing after each step, until the
            log-likelihood of all reports changes by less than .001, as published. It is best if
            neighbouring bins have similar shares. ``"ml"``: maximum likelihood, until no
            distribution can have a log-likelihood that is larger by more than .001. It is best if
            the numbers are concentrated in few bins.

        Returns
        -------
        DistributionEstimate
            Frequencies of the bins, quantiles and the mean, with intervals.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
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
        if self.received == 0:
            raise nothing_received()
        shares = self.sums / np.float64(self.received)
        worth, squares = float(self.received), None
        if self.weights is not None:
            total = self.weights.total_inverse
            shares = self.weights.inverse / total
            squares = self.weights.inverse_squared / total**2
            # As many reports of equal weight as these are worth (Kish).
            worth = 1.0 / float(squares.sum())
        found = solved(self.oracle._law, shares * worth, method)
        found.frequencies.flags.writeable = False
        collected = (self.plan, method, self.nodes, self.received)
        estimate = DistributionEstimate(*collected, *found, left_out=self.left_out)
        settle(estimate, _cells=(shares, squares))
        return estimate


class SquareWave(KernelKind[DistributionTally]):
    """Report a cell near a number, to estimate the distribution of the numbers.

    The bounds are divided into bins; the cells are the bins and ``window - 1`` more of the same
    width, half of them on each side. Each of the ``window`` cells around the node's bin is
    e^epsilon times as likely as any other cell. The mechanism is far better than an oracle for
    categories if neighbouring bins have similar shares; see :doc:`/topics/distributions`.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, from about 1e-9 to 42.
    bounds
        The least and the largest value. They are public and must not be taken from the data.
    bins
        The number of bins of equal width, from 2 to 1,024. Only the bin of a number is used.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Notes
    -----
    Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric, "Estimating numerical distributions under local
    differential privacy" (SIGMOD 2020), with the number rounded to a bin first. Their reports are
    real numbers. Here they are cells, drawn by integer thresholds, with a likelihood ratio that is
    an exact fraction of at most e^epsilon. The window is close to their width ``2 b``, with ``b =
    (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps))``.

    Examples
    --------
    >>> import numpy as np
    >>> import turnout as tn
    >>> ages = np.random.default_rng(1).normal(40, 10, 50_000).clip(0, 100)
    >>> wave = tn.SquareWave(2.0, bounds=(0, 100))
    >>> estimate = wave.collect(ages, participation=0.5, seed=1).estimate()
    >>> median = estimate.quantile(0.5, level=0.999)
    >>> median.low < 40 < median.high
    True
    """

    name = "square_wave"
    #: The type of the integers that a report is made of.
    report_dtype = np.dtype(np.uint16)
    tally_type = DistributionTally
    _grouped_type = GroupedDistributionEstimate
    domain_type = BinnedBounds
    no_simulation_because = ""

    _domain: BinnedBounds

    def __init__(
        self, epsilon: float, bounds: tuple[float, float] = (0.0, 100.0), bins: int = 64
    ) -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        pair = BinnedBounds._from_pair(bounds)
        self._domain = BinnedBounds(pair.low, pair.high, bins=bins)
        limits = (self._domain.low, self._domain.high)
        self._core = _core.SquareWave(self._epsilon, limits, self._domain.bins)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value."""
        return self._domain.low, self._domain.high

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return self._domain.bins

    @property
    def window(self) -> int:
        """The number of cells near a bin."""
        return self._core.window

    @property
    def cells(self) -> int:
        """The number of cells, ``bins + window - 1``; those from ``j`` on are near bin ``j``."""
        return self._core.cells

    @property
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of a report under two values; at most e^eps."""
        return Fraction(*self._core.words)

    @cached_property
    def _law(self) -> WaveLaw:
        """The law of a report given the bin."""
        return WaveLaw(self.bins, self.window, *self._core.words)

    @property
    def report_bits(self) -> int:
        """The size of a report in bits."""
        return (self.cells - 1).bit_length()

    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize numbers: see :meth:`turnout.collecting.kind.Kind.draw_reports`."""
        return super().draw_reports(self._core.bins(answers), participation, noise)

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and count: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        return super().draw_counts(self._core.bins(answers), participation, noise)

    def draw_from_counts(self, counts: Array, rate: float, seed: int | None) -> Counts:
        """Draw from counts: see :meth:`turnout.collecting.kind.Kind.draw_from_counts`.

        A report is either of any cell, or of one in the window. The reports of the first sort are
        drawn at once for all bins.
        """
        generator = np.random.Generator(np.random.Philox(seed))
        reporting = generator.binomial(counts.astype(np.int64), rate)
        near = generator.binomial(reporting, self.window * self._law.levels[1])
        far = int((reporting - near).sum())
        cells = generator.multinomial(far, np.full(self.cells, 1.0 / self.cells))
        alike = np.full(self.window, 1.0 / self.window)
        for place in np.flatnonzero(near).tolist():
            cells[place : place + self.window] += generator.multinomial(int(near[place]), alike)
        return Counts(cells.astype(np.uint64), int(reporting.sum()))

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that the mechanism cannot have made.

        Raises
        ------
        CodeOutsideDomainError
            If a report is not one of the cells.
        """
        expected = f"a cell from 0 to {self.cells - 1}"
        _arguments.refuse_entries(
            "codes",
            reports,
            reports >= self.cells,
            expected,
            CodeOutsideDomainError,
            private=True,
        )

    @classmethod
    def _made_of(cls, epsilon: float, domain: Any, parameters: dict[str, Any]) -> Any:
        return cls(epsilon, (domain.low, domain.high), domain.bins, **parameters)

    def __repr__(self) -> str:
        """Show the constructor."""
        return f"SquareWave(epsilon={self.epsilon!r}, bounds={self.bounds!r}, bins={self.bins})"
