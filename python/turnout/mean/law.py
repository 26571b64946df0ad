"""How numbers become cells of a grid, and what the cells say of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout.errors import InvalidTypeError, InvalidValueError

__all__ = ["MeanLaw", "SecondMoment"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SecondMoment:
    """The second moment of what a reported cell says of a value ``t`` in [-1, 1].

    ``E[t_hat^2] = constant + (1 + excess) t^2 + rounding r(t)`` with ``0 <= r(t) <= 1``; the mean
    is ``t``, so the variance is that without the 1.

    Attributes
    ----------
    constant, excess
        Of the mechanism.
    rounding
        The most that the random rounding of the value to the grid adds.
    """

    constant: float
    excess: float
    rounding: float

    @property
    def slope(self) -> float:
        """The factor of ``t^2``."""
        return 1.0 + self.excess


class MeanLaw(ABC):
    """The law of the reports of a mechanism: what plans, reports, tallies and estimates know of it.

    It is immutable and holds no randomness: it may be shared by threads, and every call
    draws from streams of its own. Reports are cells of an integer grid, never floating-point
    numbers, whose digits would leak.
    """

    #: The word for this mechanism.
    name: ClassVar[str]

    def __init__(
        self, epsilon: float, bounds: tuple[float, float] = (-1.0, 1.0), dimensions: int = 1
    ) -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        limits = _arguments.vector("bounds", bounds, "a pair of real numbers (low, high)")
        if limits.size != 2:
            raise InvalidValueError(
                f"bounds must be a pair of real numbers (low, high), got {_arguments.shown(bounds)}"
            )
        self._bounds = (float(limits[0]), float(limits[1]))
        self._dimensions = _arguments.integer("dimensions", dimensions, least=1, most=65_536)
        self._core = _core.MeanKernel(self.name, self._epsilon, self._bounds, self._dimensions)

    @property
    def epsilon(self) -> float:
        """The privacy parameter that was asked for, in nats: of a whole report."""
        return self._epsilon

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value of every coordinate."""
        return self._bounds

    @property
    def dimensions(self) -> int:
        """How many numbers a node holds."""
        return self._dimensions

    @property
    def sampled(self) -> int:
        """How many of the coordinates a report is about, chosen at random."""
        return self._core.sampled

    @property
    def cells(self) -> int:
        """The number of cells of the grid."""
        return self._core.cells

    @property
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report under two values, exactly; at most e^eps."""
        return Fraction(*self._core.ratio)

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""
        return self._core.realized_epsilon

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """The size of a report in bits."""

    @cached_property
    @abstractmethod
    def scale(self) -> Fraction:
        """What makes ``2 cell - (cells - 1)`` an unbiased estimate on the scale of [-1, 1]."""

    @cached_property
    @abstractmethod
    def second_moment(self) -> SecondMoment:
        """The second moment of this estimate."""

    def _rounding(self, positions: Floats) -> Floats:
        """Compute how much of ``second_moment.rounding`` a value in [-1, 1] has."""
        return np.zeros_like(positions)

    @property
    def worst_variance(self) -> float:
        """The largest variance of :meth:`variance` over all values within the bounds."""
        moment = self.second_moment
        share = self.sampled / self._dimensions
        excess = (1.0 - share + moment.excess) / share
        worst = (moment.constant + moment.rounding) / share + max(excess, 0.0)
        return worst * self._half**2

    def variance(self, values: npt.ArrayLike) -> Floats:
        """Compute the variance of what one report says of each coordinate of its node's values.

        Parameters
        ----------
        values
            As for :meth:`randomize`.

        Returns
        -------
        numpy.ndarray
            float64, of the shape of the values, in their squared unit. Of the unbiased estimate
            from a report, which is zero for the coordinates that the report is not about.

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
        positions = self._positions(self._checked(values))
        return self._noise(positions, self.sampled / self._dimensions) * self._half**2

    @property
    def _half(self) -> float:
        """Half the distance of the bounds."""
        low, high = self._bounds
        return high / 2 - low / 2

    @property
    def _middle(self) -> float:
        """The value between the bounds."""
        low, high = self._bounds
        return low / 2 + high / 2

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of the cells of all reports; the first length is free."""
        return (-1,) if self._dimensions == 1 else (-1, self.sampled)

    def _positions(self, array: Floats) -> Floats:
        """Put values on the scale where the bounds are -1 and 1."""
        result: Floats = (array - self._middle) / self._half
        return result

    def _noise(self, positions: Floats, share: Any) -> Floats:
        """Compute the variance of ``t_hat / share`` if reported with probability ``share``, else 0.

        At each position: ``E[t_hat^2] / share - t^2``, with nothing that cancels.
        """
        moment = self.second_moment
        constant = moment.constant + moment.rounding * self._rounding(positions)
        result: Floats = (constant + (1.0 - share + moment.excess) * positions**2) / share
        return result

    def _array(self, values: Any) -> Floats:
        """Convert values to float64 of the right shape; the core checks the bounds."""
        expected = (
            "one number for each node"
            if self._dimensions == 1
            else f"{self._dimensions} numbers for each node: shape (nodes, {self._dimensions})"
        )
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            place = tuple(int(index) for index in np.argwhere(np.ma.getmaskarray(values))[0])
            raise InvalidValueError(
                f"values{list(place)} must be a real number, got a masked value"
            )
        try:
            array = np.asarray(values)
        except Exception as error:
            # Anything can go wrong in the conversion of foreign objects.
            raise InvalidTypeError(
                f"values must be {expected}, got {_arguments.shown(values)}"
            ) from error
        if array.dtype.kind not in "iuf" and array.size:
            raise InvalidTypeError(
                f"values must be real numbers, {expected}, got dtype {array.dtype}"
            )
        one = self._dimensions == 1
        if array.size == 0 and array.ndim == 1 and not one:
            array = array.reshape(0, self._dimensions)
        if array.ndim != (1 if one else 2) or not (one or array.shape[1] == self._dimensions):
            raise InvalidValueError(f"values must be {expected}, got shape {array.shape}")
        return np.ascontiguousarray(array, dtype=np.float64)

    def _checked(self, values: Any) -> Floats:
        """Convert values and check that they are within the bounds."""
        array = self._array(values)
        low, high = self._bounds
        wrong = ~((array >= low) & (array <= high))
        if wrong.any():
            place = tuple(int(index) for index in np.argwhere(wrong)[0])
            raise InvalidValueError(
                f"values[{', '.join(map(str, place))}] = {array[place]} is not within the bounds "
                f"({low}, {high}) ({int(wrong.sum())} such value(s) in all)"
            )
        return array

    def to_dict(self) -> dict[str, Any]:
        """Describe the mechanism in terms of JSON."""
        return {
            "name": self.name,
            "epsilon": self._epsilon,
            "bounds": list(self._bounds),
            "dimensions": self._dimensions,
        }

    def __eq__(self, other: object) -> bool:
        """Compare class, epsilon, bounds and dimensions."""
        if not isinstance(other, MeanLaw):
            return NotImplemented
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash((type(self), self._epsilon, self._bounds, self._dimensions))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters: the kernel is rebuilt."""
        return type(self), (self._epsilon, self._bounds, self._dimensions)

    def __repr__(self) -> str:
        """Show the constructor."""
        more = f", dimensions={self._dimensions}" if self._dimensions > 1 else ""
        return f"{type(self).__name__}(epsilon={self._epsilon!r}, bounds={self._bounds!r}{more})"
