"""Estimate shares of all people's values from draws whose law is known for every value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from turnout._types import Floats, Integers
from turnout.samplers.finite_law import FiniteLaw

#: How much bias is taken for less variance: the least half length is chosen.
_TRADES: Final = tuple(10.0**-power for power in range(9, 1, -1))

#: The confidence at which that is compared.
_LEVEL: Final = 0.95


@dataclass(frozen=True)
class Weights:
    """The weights of a draw in the shares of cells, and how wrong the shares can be.

    Attributes
    ----------
    weights
        For each draw (rows) and each cell.
    low, high
        The least and the largest bias of each cell, over all values of a person.
    variance
        A bound of the variance of a draw's weight, whatever the person's value is.
    spread
        The range of the weights of each cell.
    """

    weights: Floats
    low: Floats
    high: Floats
    variance: Floats
    spread: Floats

    def of(self, cells: slice) -> Weights:
        """Return the weights of some of the cells."""
        vectors = (self.low, self.high, self.variance, self.spread)
        return Weights(self.weights[:, cells], *(vector[cells] for vector in vectors))

    def half(self, draws: int, level: float) -> Floats:
        """Bound how far the mean of independent draws is from its expectation.

        The bound is by Bernstein's inequality, for each cell by itself.
        """
        rest = math.log(2.0 / (1.0 - level))
        result: Floats = np.sqrt(2.0 * self.variance * rest / draws) + self.spread * rest / (
            3.0 * draws
        )
        return result


def laws_of_values(law: FiniteLaw, ratios: Floats) -> Floats:
    """Return the law of a draw for each combination of cells that a person may hold.

    Parameters
    ----------
    law
        The band.
    ratios
        For each person's value (rows), the logarithm of the estimate over the reference.
    """
    weights = np.array([law.band.weights(row, law.reference)[0] for row in ratios], np.float64)
    result: Floats = weights / float(law.total)
    return result


def weights_of(laws: Floats, codes: Integers, cells: Sequence[int], draws: int) -> list[Weights]:
    """Find weights for each column whose mean over draws is the share of each cell.

    For weights w the mean of a draw of a person who holds x is ``sum_y Q_x(y) w(y)``; it should be
    1 if x is in the cell, and 0 otherwise. The difference is bias. The bias is known for every x,
    and so are its extremes. Nothing here depends on the draws except their number.

    Parameters
    ----------
    laws
        The law of a draw for each value, one row per value.
    codes
        The cells of each value, of shape (n, d).
    cells
        How many cells each column has.
    draws
        How many draws there will be; with more draws, less bias is acceptable.
    """
    from scipy.linalg import cho_factor, cho_solve  # noqa: PLC0415 (slow)

    wanted = np.concatenate(
        [np.eye(count)[own] for count, own in zip(cells, codes.T, strict=True)], axis=1
    )
    mean = laws.mean(axis=0)
    square, right = laws.T @ laws, laws.T @ wanted
    tried = []
    for trade in _TRADES:
        factor = cho_factor(square + np.diag(trade * len(laws) * mean))
        tried.append(_measured(laws, wanted, cho_solve(factor, right)))
    result, first = [], 0
    for count in cells:
        own = slice(first, first + count)
        parts = [one.of(own) for one in tried]
        lengths = [
            float(((one.high - one.low) / 2.0 + one.half(draws, _LEVEL)).max()) for one in parts
        ]
        result.append(parts[int(np.argmin(lengths))])
        first += count
    return result


def _measured(laws: Floats, wanted: Floats, weights: Floats) -> Weights:
    means = laws @ weights
    bias = means - wanted
    variance = (laws @ weights**2 - means**2).max(axis=0)
    return Weights(weights, bias.min(axis=0), bias.max(axis=0), variance, np.ptp(weights, axis=0))
