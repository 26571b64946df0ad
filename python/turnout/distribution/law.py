"""The law of a reported cell given the bin, and what is solved for with it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from turnout._types import Floats


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
