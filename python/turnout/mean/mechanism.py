"""What the mechanisms for means have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout.collecting.taking_part import common_rate, taking_part_in
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.participation import Participation, Personalized

if TYPE_CHECKING:
    from turnout.mean.reports import MeanReports
    from turnout.mean.tally import MeanTally

__all__ = ["MeanMechanism", "SecondMoment"]

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


class MeanMechanism(ABC):
    """Base class of the local randomizers of numbers.

    A mechanism is immutable and holds no randomness: it may be shared by threads, and every call
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
        from turnout.mean.reports import MeanReports  # noqa: PLC0415

        taking_part = taking_part_in(participation)
        array = self._array(values)
        rate = _rates(taking_part, len(array))
        coordinates, cells, probabilities = self._core.randomize(
            array.ravel(), rate, _arguments.seed(seed)
        )
        return MeanReports(
            self,
            taking_part,
            cells.reshape(self._report_shape),
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
        from turnout.mean.plan import MeanPlan  # noqa: PLC0415
        from turnout.mean.reports import MeanReports  # noqa: PLC0415

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
        rate = _rates(taking_part, len(array))
        sums = self._core.collect(array.ravel(), rate, _arguments.seed(seed))
        return self._tally(taking_part, len(array), sums)

    def _tally(self, participation: Participation, nodes: int, sums: Any) -> MeanTally:
        from turnout.mean.plan import MeanPlan  # noqa: PLC0415
        from turnout.mean.tally import MeanTally  # noqa: PLC0415

        received, moments, weighted = sums
        if weighted is not None:
            weighted = [[low + (high << 64) for low, high in row] for row in weighted]
        plan = MeanPlan(self, participation)
        return MeanTally(plan, received, nodes, moments, weighted=weighted)

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
    def _report_shape(self) -> tuple[int, ...]:
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
        if not isinstance(other, MeanMechanism):
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


def _rates(participation: Participation, nodes: int) -> float | Floats:
    """Take the rate of all nodes, or one for each."""
    if not isinstance(participation, Personalized):
        return common_rate(participation)
    probabilities = participation.probabilities
    if probabilities.size != nodes:
        raise InvalidValueError(
            f"probabilities and values must have the same length, got {probabilities.size} and "
            f"{nodes}"
        )
    return probabilities
