"""The bins of a number, the law of a reported cell given the bin, and what is solved with it."""

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

#: Smoothing stops when the log-likelihood of all reports changes by less, as published; the largest
#: likelihood is found when no distribution can have one that is larger by more.
TOLERANCE: Final = 1e-3

#: What sums of 64-bit numbers cannot tell apart, as a share: of more than 10^9 reports.
_ROUNDING: Final = 1e-12

_MOST_STEPS: Final = {"ems": 20_000, "ml": 200}

#: The number of bins for which (1, 2, 1) / 4 has the right width.
_FINE: Final = 256


@dataclass(frozen=True)
class BinnedBounds(Bounds):
    """The numbers that can be given, within public limits, in bins of equal width.

    For integers from a to b take ``BinnedBounds(a - 0.5, b + 0.5, bins=b - a + 1)``: then each has
    a bin of its own, and is its middle. From a to b some bins hold more integers than others.

    Parameters
    ----------
    low, high
        The least and the largest value: finite, the first the smaller.
    dimensions
        One: a node holds one number.
    bins
        How many bins, from 2 to 1,024. The last one has its upper edge too.

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
        """How many bins there are."""
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
    """Of ``bins + window - 1`` cells, ``window`` from the bin on are likelier than the others.

    The matrix ``P[cell | bin]`` is never made: it is a constant and a band of constant height, so
    that products with it are differences of cumulative sums.

    Parameters
    ----------
    bins, window
        How many.
    many, few
        The words of each cell of the window, and of each other cell.

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
        """The words of all cells."""
        return self.window * self.many + (self.bins - 1) * self.few

    def probability(self, cell: int, place: int) -> Fraction:
        """Give the probability of a cell under the bin at a place, exactly."""
        near = place <= cell < place + self.window
        return Fraction(self.many if near else self.few, self.total)

    @property
    def levels(self) -> tuple[float, float]:
        """How likely a cell is at least, and how much likelier within the window."""
        return self.few / self.total, (self.many - self.few) / self.total

    def cell_shares(self, frequencies: Floats) -> Floats:
        """Give the probability of each cell for a distribution over the bins."""
        floor, extra = self.levels
        padded = np.concatenate([frequencies, np.zeros(self.window - 1)])
        # By rounding a difference of sums can be below zero.
        near = np.maximum(_windows(padded, self.window, after=False), 0.0)
        result: Floats = floor * frequencies.sum() + extra * near
        return result

    def window_sums(self, weights: Floats) -> Floats:
        """Add up the weights of the cells of each bin's window."""
        return _windows(weights, self.window, after=True)[: self.bins]

    def bin_sums(self, weights: Floats) -> Floats:
        """Add up the weights of the cells for each bin, each with its probability."""
        floor, extra = self.levels
        result: Floats = floor * weights.sum() + extra * self.window_sums(weights)
        return result

    def overlaps(self, weights: Floats) -> Floats:
        """Add up the weights of the cells that are in the windows of two bins, for each pair."""
        if self.window == 1:
            return np.diag(weights)
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        places = np.arange(self.bins)
        low, high = np.minimum.outer(places, places), np.maximum.outer(places, places)
        both = sums[np.minimum(low + self.window, self.cells)] - sums[high]
        return np.where(high - low < self.window, both, 0.0)

    def information(self, weights: Floats) -> Floats:
        """Give ``P^T diag(weights) P``, a row and a column for each bin."""
        floor, extra = self.levels
        near = self.window_sums(weights)
        outside: Floats = np.add.outer(near, near)
        constant = floor**2 * float(weights.sum())
        result: Floats = extra**2 * self.overlaps(weights) + extra * floor * outside + constant
        return result

    def matrix(self) -> Floats:
        """Give the whole matrix: a row for each cell, a column for each bin."""
        floor, extra = self.levels
        offset = np.arange(self.cells)[:, None] - np.arange(self.bins)
        near = (offset >= 0) & (offset < self.window)
        return np.where(near, floor + extra, floor)


def _windows(numbers: Floats, window: int, *, after: bool) -> Floats:
    """Sum up each run of neighbours that begins (or ends) at each place, cut at the ends."""
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
        One for each bin: non-negative, adding up to one.
    steps
        How many steps it took.
    converged
        Whether the rule for stopping was met.
    """

    frequencies: Floats
    steps: int
    converged: bool


def solved(law: WaveLaw, counts: Floats, method: str) -> Solution:
    """Find the distribution for counts of the cells, whose sum is how many reports they are worth.

    Examples
    --------
    >>> law = WaveLaw(3, 1, 8, 1)
    >>> solved(law, np.array([26.0, 12.0, 12.0]), "ml").frequencies.round(3)
    array([0.6, 0.2, 0.2])
    """
    return _smoothed(law, counts) if method == "ems" else _likeliest(law, counts)


def _smoothed(law: WaveLaw, counts: Floats) -> Solution:
    """Expectation-maximisation, each step followed by an average over neighbours.

    The published average is (1, 2, 1) / 4; on a grid of few bins that is so wide that it hides what
    reports say. Below 256 bins the weights of the neighbours are those that smooth as many units of
    the number as on 256 bins. At an end, what would fall outside stays.
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
    """Newton's method on the conditions of the maximum, kept inside of the simplex.

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
    """How far a change can be followed with all numbers above zero, and not further than it is."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, 0.995 * float((-point[falling] / change[falling]).min()))
