"""Bound the shares of people's own records from the shares of draws of tables."""

from __future__ import annotations

import math

import numpy as np

from turnout._types import Floats
from turnout.samplers.hull import concave

#: So many shares of a person's draw are looked at.
_GRID = 400

#: Integer weights are within this of the law.
_ROUNDING = 1e-6


class TiltedBounds:
    r"""Bounds on the share of each cell of a column, from the shares of the draws.

    A person's estimate is a product of columns, and the reference is uniform. Two combinations that
    differ in this column alone have estimates over the reference whose ratio is :math:`\rho`, the
    same whatever the other columns hold; it is linear over linear in the person's own shares of
    cells. Clipping and scaling bring a ratio nearer to 1 and never past it. So if draws have one
    cell more often than another, relative to the reference, the estimate favours that cell at least
    as much. This bounds the person's own share of the cell. The means over people are in the convex
    hull of what is possible for one person.

    Parameters
    ----------
    shares
        The reference's share of each cell.
    tilts
        For each cell that a person's records are in (rows), the estimate over the reference.
    epsilon
        Privacy of one draw.
    """

    def __init__(self, shares: Floats, tilts: Floats, epsilon: float) -> None:
        self._edges = [self._edge(cell, shares, tilts, epsilon) for cell in range(len(shares))]

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return bounds, given limits of the mean share of each cell among draws."""
        below = [np.interp(at, x, edge) for at, (x, edge, _) in zip(low, self._edges, strict=True)]
        above = [np.interp(at, x, edge) for at, (x, _, edge) in zip(high, self._edges, strict=True)]
        return np.array(below), np.array(above)

    @staticmethod
    def _edge(
        cell: int, shares: Floats, tilts: Floats, epsilon: float
    ) -> tuple[Floats, Floats, Floats]:
        """Return shares of draws, and the least and largest mean of people's own shares at each."""
        own, rest = float(shares[cell]), 1.0 - float(shares[cell])
        factor = math.exp(epsilon / 2.0)
        least = max(own / factor, 1.0 - rest * factor)
        most = min(own * factor, 1.0 - rest / factor)
        grid = np.linspace(least, most, _GRID)
        ratios = (grid / own) / ((1.0 - grid) / rest) * (1.0 + _ROUNDING)
        low = np.array([_least(cell, tilts, ratio / (1.0 + _ROUNDING) ** 2) for ratio in ratios])
        high = np.array([_most(cell, tilts, 1.0 / ratio) for ratio in ratios])
        # Both rise: steps beside them are on the safe side, and so is the hull of the steps.
        low, high = np.append(low[0], low[:-1]), np.append(high[1:], high[-1])
        x, edge = concave(grid, -low)
        below = -np.interp(grid, x, edge)
        x, edge = concave(grid, high)
        return grid, below, np.interp(grid, x, edge)


def _least(cell: int, tilts: Floats, ratio: float) -> float:
    """Return the least share of a cell with which its tilt is ``ratio`` times that of another."""
    if ratio <= 1.0:
        return 0.0
    found = 1.0
    for other in range(len(tilts)):
        if other == cell:
            continue
        gains = tilts[:, cell] - ratio * tilts[:, other]
        gain = float(gains[cell])
        best = float(np.delete(gains, cell).max())
        if best >= 0.0:
            return 0.0
        if gain > 0.0:
            found = min(found, -best / (gain - best))
    return found


def _most(cell: int, tilts: Floats, ratio: float) -> float:
    """Return the largest share of a cell with which another's tilt is ``ratio`` times its own."""
    if ratio <= 1.0:
        return 1.0
    found = 0.0
    for other in range(len(tilts)):
        if other == cell:
            continue
        gains = tilts[:, other] - ratio * tilts[:, cell]
        loss = float(gains[cell])
        best = float(np.delete(gains, cell).max())
        if loss >= 0.0:
            return 1.0
        if best > 0.0:
            found = max(found, best / (best - loss))
    return found


class ClippedBounds:
    """Bounds on the share of each cell of a column, for draws of the minimax law.

    A combination is drawn with at most the probability that it has among the person's records, or
    with its least one. So draws have a set of combinations at most as often as the person has it,
    plus the sum of the least probabilities. The same holds for all other combinations.

    Parameters
    ----------
    least
        For each cell of the column, the sum of the least probabilities of its combinations.
    """

    def __init__(self, least: Floats) -> None:
        self._least = least

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return bounds, given limits of the mean share of each cell among draws."""
        others = float(self._least.sum()) - self._least
        return np.maximum(low - self._least, 0.0), np.minimum(high + others, 1.0)


def nothing_known(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the bounds that hold when nothing better is known."""
    return np.zeros(len(low)), np.ones(len(high))
