"""The integers that records may hold, and the box that they are drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from turnout import Bounds
from turnout._types import Array, Floats

#: Beyond it a float has no half, which the cell of an integer ends at.
MOST_INTEGER: Final = 2.0**51


@dataclass(frozen=True)
class Integers:
    """The integers of each column.

    Attributes
    ----------
    low, high
        The least and the largest, one for each column; none where columns have no bounds.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def within(cls, bounds: Sequence[Bounds]) -> Integers:
        """Give those within bounds.

        Examples
        --------
        >>> Integers.within([Bounds(-1.6, 0.6)])
        Integers(low=(-1,), high=(0,))
        """
        low = tuple(math.ceil(each.low) for each in bounds)
        return cls(low, tuple(math.floor(each.high) for each in bounds))

    def box(self) -> list[tuple[float, float]]:
        """Give the sides of the box that is drawn from: each integer has a cell of length one.

        Between the least and the largest integer themselves, these two would have half a cell, and
        be drawn half as often.

        Examples
        --------
        >>> Integers((0,), (3,)).box()
        [(-0.5, 3.5)]
        """
        return [(low - 0.5, high + 0.5) for low, high in zip(self.low, self.high, strict=True)]

    def nearest(self, values: Array) -> Floats:
        """Round numbers of shape (n, d) to the nearest of the integers.

        Examples
        --------
        >>> Integers((0,), (3,)).nearest(np.array([[-0.2], [1.7], [3.5]])).tolist()
        [[0.0], [2.0], [3.0]]
        """
        # Of -0.0 and 0.0 the sum is 0.0.
        rounded: Floats = np.rint(values) + 0.0
        return np.clip(rounded, self.low, self.high) if self.low else rounded
