"""The bins of a number, the law of a reported cell given the bin, and its solvers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout._values import settle
from turnout.bounds import Bounds
from turnout.errors import InvalidValueError

#: To estimate takes time in proportion to the third power of the number of bins.
MOST_BINS: Final = 1024

#: The methods by name, the default first.
METHODS: Final = ("ems", "ml")

#: Smoothing stops when the log-likelihood of all reports changes by less than this, as published.
#: The search for the largest likelihood stops when no distribution can exceed it by more than this.
TOLERANCE: Final = 1e-3

#: What sums of 64-bit numbers cannot tell apart, as a share: of more than 10^9 reports.
_ROUNDING: Final = 1e-12

_MOST_STEPS: Final = {"ems": 20_000, "ml": 200}

#: The number of bins for which (1, 2, 1) / 4 has the right width.
_FINE: Final = 256


@dataclass(frozen=True)
class BinnedBounds(Bounds):
    """Public limits of numeric answers, divided into bins of equal width.

    For integers from a to b use ``BinnedBounds(a - 0.5, b + 0.5, bins=b - a + 1)``: then each
    integer is the middle of its own bin. With limits a and b, some bins hold more integers than
    others.

    Parameters
    ----------
    low, high
        The least and the largest value: finite, ``low`` below ``high``.
    dimensions
        One: a node holds one number.
    bins
        The number of bins, from 2 to 1,024. The last bin includes its upper edge.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> BinnedBounds(0, 10, bins=4).edges
    array([ 0. ,  2.5,  5. ,  7.5, 10. ])
    """

    bins: int = 64

    _beside: ClassVar[tuple[str, int, int]] = ("bins", 2, MOST_BINS)

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        if self.dimensions != 1:
            raise InvalidValueError(f"dimensions must be 1, got {self.dimensions}")
        settle(self, bins=_arguments.integer("bins", self.bins, least=2, most=MOST_BINS))

    @property
    def size(self) -> int:
        """The number of bins."""
        return self.bins

    @property
    def width(self) -> float:
        """The width of a bin."""
        return 2 * self._half / self.bins

    @property
    def edges(self) -> Floats:
        """The edges of the bins, one more than there are bins."""
        edges: Floats = np.linspace(self.low, self.high, self.bins + 1)
        return edges

    @property
    def _middles(self) -> Floats:
        """The middle of each bin."""
        edges = self.edges
        middles: Floats = edges[:-1] / 2 + edges[1:] / 2
        return middles


class WaveLaw:
    """The law of a report given the bin: ``window`` cells are likelier than the others.

    There are ``bins + window - 1`` cells; the likelier ones begin at the bin. The matrix ``P[cell |
    bin]`` is never built. It is a constant plus a band of constant height, so products with it are
    differences of cumulative sums.

    Parameters
    ----------
    bins, window
        The numbers of bins and of cells in a window.
    many, few
        The numbers of words of each cell of the window, and of each other cell.

    Examples
    --------
    >>> law = WaveLaw(2, 2, 3, 1)
    >>> law.probability(0, 0), law.cell_shares(np.array([1.0, 0.0]))
    (Fraction(3, 7), array([0.42857143, 0.42857143, 0.14285714]))
    """

    __slots__ = ("bins", "cells", "few", "many", "window")

    def __init__(self, bins: int, window: int, many: int, few: int) -> None:
        self.bins, self.window, self.cells = bins, window, bins + window - 1
        self.many, self.few = many, few

    @property
    def total(self) -> int:
        """The number of words of all cells."""
        return self.window * self.many + (self.bins - 1) * self.few

    def probability(self, cell: int, place: int) -> Fraction:
        """Return the exact probability of a cell given a bin."""
        near = place <= cell < place + self.window
        return Fraction(self.many if near else self.few, self.total)

    @property
    def levels(self) -> tuple[float, float]:
        """The least probability of a cell, and the surplus within the window."""
        return self.few / self.total, (self.many - self.few) / self.total

    def cell_shares(self, frequencies: Floats) -> Floats:
        """Return the probability of each cell for a distribution over the bins."""
        floor, extra = self.levels
        padded = np.concatenate([frequencies, np.zeros(self.window - 1)])
        # By rounding a difference of sums can be below zero.
        near = np.maximum(_windows(padded, self.window, after=False), 0.0)
        result: Floats = floor * frequencies.sum() + extra * near
        return result

    def window_sums(self, weights: Floats) -> Floats:
        """Sum the weights of the cells of each bin's window."""
        return _windows(weights, self.window, after=True)[: self.bins]

    def bin_sums(self, weights: Floats) -> Floats:
        """Sum the weights of the cells for each bin, weighted by their probabilities."""
        floor, extra = self.levels
        result: Floats = floor * weights.sum() + extra * self.window_sums(weights)
        return result

    def overlaps(self, weights: Floats) -> Floats:
        """Sum the weights of the cells in the windows of both bins, for each pair of bins."""
        if self.window == 1:
            return np.diag(weights)
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        places = np.arange(self.bins)
        low, high = np.minimum.outer(places, places), np.maximum.outer(places, places)
        both = sums[np.minimum(low + self.window, self.cells)] - sums[high]
        return np.where(high - low < self.window, both, 0.0)

    def information(self, weights: Floats) -> Floats:
        """Return ``P^T diag(weights) P``, a row and a column for each bin."""
        floor, extra = self.levels
        near = self.window_sums(weights)
        outside: Floats = np.add.outer(near, near)
        constant = floor**2 * float(weights.sum())
        result: Floats = extra**2 * self.overlaps(weights) + extra * floor * outside + constant
        return result

    def matrix(self) -> Floats:
        """Return the whole matrix: a row for each cell, a column for each bin."""
        floor, extra = self.levels
        offset = np.arange(self.cells)[:, None] - np.arange(self.bins)
        near = (offset >= 0) & (offset < self.window)
        return np.where(near, floor + extra, floor)


def _windows(numbers: Floats, window: int, *, after: bool) -> Floats:
    """Sum each run of neighbours that begins (or ends) at each position, cut at the ends."""
    if window == 1:
        return numbers
    sums = np.zeros(numbers.size + 1, np.float64)
    np.cumsum(numbers, out=sums[1:])
    places = np.arange(numbers.size)
    found: Floats
    if after:
        found = sums[np.minimum(places + window, numbers.size)] - sums[places]
    else:
        found = sums[places + 1] - sums[np.maximum(places + 1 - window, 0)]
    return found


class Solution(NamedTuple):
    """A distribution over the bins.

    Attributes
    ----------
    frequencies
        The share of each bin: non-negative, adding up to one.
    steps
        The number of steps.
    converged
        Whether the stopping rule was met.
    """

    frequencies: Floats
    steps: int
    converged: bool


def solved(law: WaveLaw, counts: Floats, method: str) -> Solution:
    """Estimate the distribution from counts of the cells, which may be weighted.

    Examples
    --------
    >>> law = WaveLaw(3, 1, 8, 1)
    >>> solved(law, np.array([26.0, 12.0, 12.0]), "ml").frequencies.round(3)
    array([0.6, 0.2, 0.2])
    """
    return _smoothed(law, counts) if method == "ems" else _likeliest(law, counts)


def _smoothed(law: WaveLaw, counts: Floats) -> Solution:
    """Run expectation-maximisation, and smooth over neighbours after each step.

    The published kernel is (1, 2, 1) / 4. On a grid of few bins it is so wide that it hides the
    signal. Below 256 bins the weights of the neighbours smooth over the same distance as on 256
    bins. At an end, mass that would fall outside stays.
    """
    aside = 0.25 * min(1.0, (law.bins / _FINE) ** 2)
    frequencies = np.full(law.bins, 1.0 / law.bins)
    before = -np.inf
    seen = counts > 0
    for step in range(_MOST_STEPS["ems"]):
        shares = law.cell_shares(frequencies)
        value = float(counts[seen] @ np.log(shares[seen]))
        if abs(value - before) < max(TOLERANCE, 1e-3 * _ROUNDING * abs(value)):
            return Solution(frequencies, step, True)
        before = value
        updated = frequencies * law.bin_sums(counts / shares)
        updated /= updated.sum()
        padded = np.concatenate([updated[:1], updated, updated[-1:]])
        frequencies = aside * (padded[:-2] + padded[2:]) + (1 - 2 * aside) * updated
    return Solution(frequencies, _MOST_STEPS["ems"], False)


def _likeliest(law: WaveLaw, counts: Floats) -> Solution:
    """Maximise the likelihood by Newton's method inside the simplex.

    With multipliers ``z``: ``P^T (c / P f) + z = S`` and ``f z = mu`` for a falling ``mu``, ``S``
    the sum of the counts ``c``. By concavity the log-likelihood is nowhere larger by more than
    ``max P^T (c / P f) - S``.
    """
    total = float(counts.sum())
    frequencies = np.full(law.bins, 1.0 / law.bins)
    multipliers = np.full(law.bins, total)
    for step in range(_MOST_STEPS["ml"]):
        shares = law.cell_shares(frequencies)
        gradient = law.bin_sums(counts / shares)
        scaled = frequencies / frequencies.sum()
        gap = float(law.bin_sums(counts / law.cell_shares(scaled)).max()) - total
        if gap <= max(TOLERANCE, _ROUNDING * total):
            return Solution(scaled, step, True)
        aim = 0.1 * float(frequencies @ multipliers) / law.bins
        curvature = law.information(counts / shares**2)
        curvature[np.diag_indices(law.bins)] += multipliers / frequencies
        change = np.linalg.solve(curvature, gradient - total + aim / frequencies)
        other = aim / frequencies - multipliers - multipliers / frequencies * change
        frequencies = frequencies + _inside(frequencies, change) * change
        multipliers = multipliers + _inside(multipliers, other) * other
    return Solution(frequencies / frequencies.sum(), _MOST_STEPS["ml"], False)


def _inside(point: Floats, change: npt.NDArray[np.floating[Any]]) -> float:
    """Return how much of a step keeps all numbers above zero, at most the whole step."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, 0.995 * float((-point[falling] / change[falling]).min()))
