"""The law of the cells that numbers become."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._types import Floats
from turnout.bounds import Bounds
from turnout.collecting.randomizer import Randomizer


@dataclass(frozen=True)
class SecondMoment:
    """The second moment of a reported cell's estimate of a value ``t`` in [-1, 1].

    ``E[t_hat^2] = constant + (1 + excess) t^2 + rounding r(t)`` with ``0 <= r(t) <= 1``; the mean
    is ``t``, so the variance is this formula without the 1.

    Attributes
    ----------
    constant, excess
        The constants of the mechanism.
    rounding
        The largest contribution of the random rounding of the value to the grid.
    """

    constant: float
    excess: float
    rounding: float

    @property
    def slope(self) -> float:
        """The factor of ``t^2``."""
        return 1.0 + self.excess


class MeanLaw(Randomizer):
    """The law of the reports of a mechanism, which plans, tallies and estimates use.

    It is immutable and holds no randomness. Threads may share it; every call draws from separate
    streams. Reports are cells of an integer grid, never floating-point numbers, whose digits would
    leak information.
    """

    _core: _core.MeanKernel
    _domain: Bounds

    def __init__(
        self, epsilon: float, bounds: tuple[float, float] = (-1.0, 1.0), dimensions: int = 1
    ) -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        self._domain = Bounds._from_pair(bounds, dimensions)
        limits = (self._domain.low, self._domain.high)
        self._core = _core.MeanKernel(self.name, self._epsilon, limits, self._domain.dimensions)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value of every coordinate."""
        return self._domain.low, self._domain.high

    @property
    def dimensions(self) -> int:
        """The number of numbers that a node holds."""
        return self._domain.dimensions

    @property
    def _sampled(self) -> int:
        """The number of coordinates that a report is about, chosen at random."""
        return self._core.sampled

    @property
    def cells(self) -> int:
        """The number of cells of the grid."""
        return self._core.cells

    @property
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of a report under two values; at most e^eps."""
        return Fraction(*self._core.ratio)

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""
        return self._core.realized_epsilon

    @cached_property
    @abstractmethod
    def _scale(self) -> Fraction:
        """The factor that makes ``2 cell - (cells - 1)`` an unbiased estimate in [-1, 1]."""

    @cached_property
    @abstractmethod
    def _second_moment(self) -> SecondMoment:
        """The second moment of this estimate."""

    def _rounding(self, positions: Floats) -> Floats:
        """Compute the fraction of ``second_moment.rounding`` at a value in [-1, 1]."""
        return np.zeros_like(positions)

    @property
    def worst_variance(self) -> float:
        """The largest variance of :meth:`variance` over all values within the bounds."""
        moment = self._second_moment
        share = self._sampled / self._domain.dimensions
        excess = (1.0 - share + moment.excess) / share
        worst = (moment.constant + moment.rounding) / share + max(excess, 0.0)
        return worst * self._domain._half**2

    def variance(self, values: npt.ArrayLike) -> Floats:
        """Compute the variance of one report's estimate of each coordinate.

        Parameters
        ----------
        values
            As for :meth:`randomize`.

        Returns
        -------
        numpy.ndarray
            float64, of the shape of the values, in their squared unit. The estimate is unbiased; it
            is zero for the coordinates that the report is not about.

        Raises
        ------
        TurnoutError
            As for :meth:`randomize`.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.mean.Duchi(1.0).variance([0.0, 1.0]).round(3)
        array([4.683, 3.683])
        """
        positions = self._positions(self._domain.encode(values))
        return (
            self._noise(positions, self._sampled / self._domain.dimensions) * self._domain._half**2
        )

    def _positions(self, array: Floats) -> Floats:
        """Map values to the scale where the bounds are -1 and 1."""
        result: Floats = (array - self._domain._middle) / self._domain._half
        return result

    def _noise(self, positions: Floats, share: Any) -> Floats:
        """Compute the variance of ``t_hat / share`` if reported with probability ``share``, else 0.

        At each position it is ``E[t_hat^2] / share - t^2``, computed without cancellation.
        """
        moment = self._second_moment
        constant = moment.constant + moment.rounding * self._rounding(positions)
        result: Floats = (constant + (1.0 - share + moment.excess) * positions**2) / share
        return result
