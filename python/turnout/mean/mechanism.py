"""The mechanisms for means: Duchi's, the piecewise and the hybrid mechanism."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats
from turnout.bounds import Bounds
from turnout.collecting.kind import Kind
from turnout.collecting.randomizer import Counts, Drawn, Noise, rates_of
from turnout.errors import CodeOutsideDomainError, InvalidValueError
from turnout.mean.estimators import mean_variances
from turnout.mean.groups import GroupedMeanEstimate
from turnout.mean.law import MeanLaw, SecondMoment
from turnout.mean.tally import MeanTally
from turnout.participation import Participation

_WORDS = 2**64


class MeanMechanism(MeanLaw, Kind[MeanTally]):
    """Base class of local randomizers of numbers.

    Reports are cells of an integer grid, never floating-point numbers, whose digits would leak
    information. The report of one number is one cell, the report of several numbers a row of cells.
    If a report is about only some of the coordinates, the row begins with their indices, ascending.
    """

    tally_type = MeanTally
    _grouped_type = GroupedMeanEstimate
    no_simulation_because = "a report depends on the number itself"
    domain_type = Bounds

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers of a report: the narrowest that holds them."""
        most = max(self.cells, self.dimensions if self._places else 0)
        return np.dtype(np.uint8 if most <= 2**8 else np.uint16 if most <= 2**16 else np.uint32)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``()`` for one number, ``(width,)`` for a row."""
        return () if self.dimensions == 1 else (self._places + self._sampled,)

    @property
    def _places(self) -> int:
        """The number of entries of a row that are indices of coordinates."""
        return self._sampled if self._sampled < self.dimensions else 0

    def _estimator_variance(
        self, participation: Participation, method: str, true_counts: Any, values: Any
    ) -> float | Floats:
        if values is None or true_counts is not None:
            raise InvalidValueError("values must be given for a mean, and true_counts must not")
        return mean_variances(self, participation, method, values)

    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize numbers: see :meth:`turnout.collecting.kind.Kind.draw_reports`."""
        rates = rates_of(participation)
        coordinates, cells, probabilities = self._core.randomize(answers.ravel(), rates, noise)
        if self.report_shape:
            cells = cells.reshape(-1, self._sampled)
            if coordinates is not None:
                cells = np.hstack([coordinates.reshape(-1, self._sampled), cells])
        return Drawn(np.ascontiguousarray(cells, self.report_dtype), probabilities)

    def count_reports(self, reports: Array, probabilities: Array | None = None) -> Counts:
        """Add up cells and squares: see :meth:`turnout.collecting.kind.Kind.count_reports`."""
        coordinates, cells = self._parts(reports)
        places = None if coordinates is None else coordinates.astype(np.uint16).ravel()
        return _counts(self._core.tally(np.ascontiguousarray(cells).ravel(), places, probabilities))

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and add up: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        return _counts(self._core.collect(answers.ravel(), rates_of(participation), noise))

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that the mechanism cannot have made.

        Raises
        ------
        CodeOutsideDomainError
            If a cell is outside the grid, or a coordinate does not exist.
        InvalidValueError
            If the coordinates of a report are not ascending.
        """
        are_cells = np.arange(reports.shape[-1]) >= self._places
        for what, size, among in (
            ("cell", self.cells, are_cells),
            ("coordinate", self.dimensions, ~are_cells),
        ):
            wrong = among & (reports >= size)
            expected = f"a {what} from 0 to {size - 1}"
            _arguments.refuse_entries(
                "codes", reports, wrong, expected, CodeOutsideDomainError, private=True
            )
        coordinates, _ = self._parts(reports)
        if coordinates is not None:
            unsorted = (np.diff(coordinates.astype(np.int64), axis=1) <= 0).any(axis=1)
            if unsorted.any():
                row = int(np.flatnonzero(unsorted)[0])
                raise InvalidValueError(
                    f"the coordinates of codes[{row}] must be ascending, got "
                    f"{coordinates[row].tolist()}"
                )

    def _parts(self, reports: Array) -> tuple[Array | None, Array]:
        """Split reports into coordinates, if they have any, and cells."""
        if not self._places:
            return None, reports
        return reports[:, : self._places], reports[:, self._places :]

    @classmethod
    def _made_of(cls, epsilon: float, domain: Any, parameters: dict[str, Any]) -> Any:
        return cls(epsilon, (domain.low, domain.high), domain.dimensions, **parameters)

    def __repr__(self) -> str:
        """Show the constructor."""
        more = f", dimensions={self.dimensions}" if self.dimensions > 1 else ""
        return f"{type(self).__name__}(epsilon={self.epsilon!r}, bounds={self.bounds!r}{more})"


class _Mixture(NamedTuple):
    """The parts of a report: near the value, or one of Duchi's two cells.

    Attributes
    ----------
    wide
        The probability of a report near the value.
    near
        The probability that such a report is from the window alone.
    window
        The number of cells near the value.
    gain, offset
        For Duchi's part, how much likelier the value's side is, and the distance of its cells from
        the middle.
    """

    wide: Fraction
    near: Fraction
    window: int
    gain: Fraction = Fraction(0)
    offset: int = 0


class GridMechanism(MeanMechanism):
    """Base class of mechanisms that report a cell for each of some random coordinates."""

    @property
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report under two values, exactly; at most e^eps."""
        return Fraction(*self._core.ratio) ** self._sampled

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: a cell and an index for each sampled coordinate."""
        place = (self.dimensions - 1).bit_length() if self._sampled < self.dimensions else 0
        return self._sampled * ((self.cells - 1).bit_length() + place)

    @cached_property
    @abstractmethod
    def _mixture(self) -> _Mixture:
        """The mixture that a report of one coordinate is drawn from."""

    @cached_property
    def _scale(self) -> Fraction:
        """What makes ``2 cell - (cells - 1)`` an unbiased estimate on the scale of [-1, 1]."""
        wide, near, window, gain, offset = self._mixture
        return 1 / (wide * near * (self.cells - window) + (1 - wide) * gain * offset)

    @cached_property
    def _second_moment(self) -> SecondMoment:
        """The second moment of the estimate of one coordinate."""
        wide, near, window, _, offset = self._mixture
        cells, square = self.cells, self._scale**2
        inside = near * (window**2 - 1) + (1 - near) * (cells**2 - 1)
        rounding = square * wide * near
        return SecondMoment(
            constant=float(square * (wide * inside / 3 + (1 - wide) * offset**2)),
            excess=float(rounding * (cells - window) ** 2 - 1),
            rounding=float(rounding),
        )

    def _rounding(self, positions: Floats) -> Floats:
        """Return the amount of rounding at positions among a number of cells."""
        if not self._mixture.near:
            return np.zeros_like(positions)
        rest = np.modf((positions + 1) / 2 * (self.cells - self._mixture.window))[0]
        result: Floats = 4 * rest * (1 - rest)
        return result


def _counts(sums: Any) -> Counts:
    received, moments, weighted = sums
    if weighted is not None:
        weighted = [[low + (high << 64) for low, high in row] for row in weighted]
    return Counts(moments, received, weighted)


class Duchi(MeanMechanism):
    """Report one bit for every coordinate.

    In one dimension a report is the upper of two cells with a probability between ``1 / (e^eps +
    1)`` and ``e^eps / (e^eps + 1)``, linear in the value. In ``d`` dimensions every coordinate is
    first rounded at random to -1 or 1. The report is one of the 2^d corners; it is more likely by
    the factor ``e^eps`` if it agrees with the rounded values in more than half of the coordinates.
    Duchi's mechanism has the smallest worst-case variance for small epsilon. The variance does not
    vanish as epsilon grows: :class:`Piecewise` is better above about 1.29.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, from about 1e-9 to 42.
    bounds
        The least and the largest value of every coordinate. They are public and must not be taken
        from the data.
    dimensions
        The number of numbers that a node holds, from 1 to 65,536.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Notes
    -----
    Duchi, Jordan, Wainwright, "Minimax optimal procedures for locally private estimation" (2018);
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy"
    (ICDE 2019), algorithms 1 and 3. In the printed algorithm 3, corners that agree in exactly half
    of the coordinates belong to both sides. For even ``d`` its likelihood ratio is then ``e^eps +
    1``, above the promised ``e^eps``. Here ties count as disagreement, with the factor that makes
    this unbiased: Nguyen et al., "Collecting and analyzing data from smart device users with local
    differential privacy" (2016).

    Examples
    --------
    >>> Duchi(1.0, dimensions=2).variance([[0.0, 0.0]]).round(1)
    array([[11.1, 11.1]])
    """

    name = "duchi"

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: one for each coordinate."""
        return self.dimensions

    @cached_property
    def _scale(self) -> Fraction:
        """The exact size of each coordinate of an unbiased estimate.

        ``(W 2^d + (A - W) H) / ((A - W) C(d - 1, floor(d / 2)))``, where ``A / W`` is the realised
        ratio and ``H`` corners agree with a given one in more than half of the coordinates.
        """
        many, few = self._core.ratio
        d = self.dimensions
        ties = math.comb(d, d // 2) if d % 2 == 0 else 0
        majority = (2**d - ties) // 2
        gain = many - few
        return Fraction(few * 2**d + gain * majority, gain * math.comb(d - 1, d // 2))

    @cached_property
    def _second_moment(self) -> SecondMoment:
        """The second moment: the square of the scale, whatever the value."""
        return SecondMoment(float(self._scale**2), -1.0, 0.0)


class Piecewise(GridMechanism):
    """Report a cell of a fine grid, near the value with high probability.

    There are ``G`` cells and a window of ``w`` neighbouring cells. The position of the window is
    linear in the value, up to an exact random rounding. Every cell of the window is more likely
    than every other cell by the factor ``e^eps`` or a little less, in whole numbers of 64-bit
    words. The variance is within 1e-4 of the continuous mechanism's ``t^2 / (e^(eps/2) - 1) +
    (e^(eps/2) + 3) / (3 (e^(eps/2) - 1)^2)``. In ``d`` dimensions a report is about ``k = max(1,
    min(d, floor(eps / 2.5)))`` coordinates chosen at random, each with ``eps / k``.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, from about 1e-9 to 42.
    bounds
        The least and the largest value of every coordinate. They are public and must not be taken
        from the data.
    dimensions
        The number of numbers that a node holds, from 1 to 65,536.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Notes
    -----
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy"
    (ICDE 2019), algorithms 2 and 4. Their reports are real numbers; as floating-point numbers their
    last digits would depend on the value. With ``h`` the probability of a report from the window
    alone, the scale is ``1 / (h (G - w))`` and ``E[t_hat^2] = scale^2 [h (w^2 - 1) + (1 - h)
    (G^2 - 1)] / 3 + t^2 / h``, plus at most ``1 / (h (G - w)^2)`` for the rounding.

    Examples
    --------
    >>> mechanism = Piecewise(4.0)
    >>> float((mechanism.variance([1.0]) * 10).round(3)[0])
    2.414
    """

    name = "piecewise"

    @property
    def window(self) -> int:
        """The number of cells near the value."""
        return self._mixture.window

    @cached_property
    def _mixture(self) -> _Mixture:
        window, anywhere = self._core.law or (1, 0)  # never None for this mechanism
        return _Mixture(Fraction(1), 1 - Fraction(anywhere, _WORDS), window)


class Hybrid(GridMechanism):
    """Report as :class:`Piecewise` most of the time, as :class:`Duchi` for the rest.

    The variance of the piecewise part grows with the square of the value, and that of Duchi's part
    falls. The mixture has the same variance for all values, the smallest worst case of the three
    mechanisms. With an epsilon of at most .6093525 for a coordinate it is Duchi's mechanism of one
    dimension. In ``d`` dimensions a report is about ``k = max(1, min(d, floor(eps / 2.5)))``
    coordinates chosen at random, each with ``eps / k``.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, from about 1e-9 to 42.
    bounds
        The least and the largest value of every coordinate. They are public and must not be taken
        from the data.
    dimensions
        The number of numbers that a node holds, from 1 to 65,536.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Notes
    -----
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy"
    (ICDE 2019), section III.C. The two answers of Duchi's part are two cells of the grid, so that a
    report does not reveal its part. Duchi's part is taken with probability ``e^(-eps/2)``, on the
    grid the probability that a piecewise report says nothing. The threshold is the root of ``3 (x^2
    + 1)^2 = (x + 1)^2 (x + 3)`` with ``x = e^(eps/2)``: .609352, in the paper .61. Above it this
    mixture is best, below it Duchi's part alone.

    Examples
    --------
    >>> import turnout as tn
    >>> tn.mean.Hybrid(1.5).variance([0.0, 0.5, 1.0]).round(3)
    array([1.892, 1.892, 1.892])
    >>> tn.mean.Hybrid(0.5).variance([0.5]) == tn.mean.Duchi(0.5).variance([0.5])
    array([ True])
    """

    name = "hybrid"

    @cached_property
    def _mixture(self) -> _Mixture:
        upper, few = self._core.ends or (1, 0)
        window, anywhere = self._core.law or (0, _WORDS)
        near = 1 - Fraction(anywhere, _WORDS)
        gain = 1 - 2 * Fraction(few, _WORDS)
        # The chance of the piecewise part is also that of its window alone.
        return _Mixture(near, near, window, gain, 2 * upper - (self.cells - 1))


def mechanisms_of(epsilon: float, bounds: Bounds) -> list[MeanMechanism]:
    """Create every mechanism, sorted by worst-case variance, the smallest first.

    Examples
    --------
    >>> [mechanism.name for mechanism in mechanisms_of(0.5, Bounds(0, 1))]
    ['duchi', 'hybrid', 'piecewise']
    """
    every = (kind(epsilon, (bounds.low, bounds.high)) for kind in (Duchi, Hybrid, Piecewise))
    return sorted(every, key=lambda mechanism: mechanism.worst_variance)
