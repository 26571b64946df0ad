"""The hybrid mechanism for means."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from turnout._types import Floats
from turnout.mean.law import SecondMoment
from turnout.mean.mechanism import GridMechanism

_WORDS = 2**64


class Hybrid(GridMechanism):
    """Report as :class:`Piecewise` most of the time, as :class:`Duchi` for the rest.

    The variance of the one grows with the square of the value, that of the other falls with it: the
    mixture has the same variance for all values, the smallest in the worst case of the three. With
    an epsilon of at most .6093525 for a coordinate it is Duchi's mechanism of one dimension. In
    ``d`` dimensions a report is about ``k = max(1, min(d, floor(eps / 2.5)))`` coordinates chosen
    at random, each with ``eps / k``.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, from about 1e-9 to 42.
    bounds
        The least and the largest value of every coordinate: public, and not taken from the data.
    dimensions
        How many numbers a node holds, from 1 to 65,536.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Notes
    -----
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy"
    (ICDE 2019), section III.C. The two answers of Duchi's part are two cells of the grid, so
    that a report does not say which part it is of. That part is taken with probability
    ``e^(-eps/2)``, on the grid the chance that a piecewise report says nothing. The threshold is
    the root of ``3 (x^2 + 1)^2 = (x + 1)^2 (x + 3)`` with ``x = e^(eps/2)``: .609352, in the
    paper .61. Above it this mixture is the best one, below it Duchi's part alone.

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
    def _mixture(self) -> tuple[Fraction, int, Fraction, int]:
        """Chance and window of the piecewise part, gain and offset of Duchi's."""
        upper, few = self._core.ends or (1, 0)
        window, anywhere = self._core.law or (0, _WORDS)
        gain = 1 - 2 * Fraction(few, _WORDS)
        return 1 - Fraction(anywhere, _WORDS), window, gain, 2 * upper - (self.cells - 1)

    @cached_property
    def scale(self) -> Fraction:
        """What makes ``2 cell - (cells - 1)`` an unbiased estimate on the scale of [-1, 1]."""
        near, window, gain, offset = self._mixture
        return 1 / (near**2 * (self.cells - window) + (1 - near) * gain * offset)

    @cached_property
    def second_moment(self) -> SecondMoment:
        """The second moment of this estimate of one coordinate."""
        near, window, _, offset = self._mixture
        cells, square = self.cells, self.scale**2
        inside = near * (window**2 - 1) + (1 - near) * (cells**2 - 1)
        slope = square * near**2 * (cells - window) ** 2
        return SecondMoment(
            constant=float(square * (near * inside / 3 + (1 - near) * offset**2)),
            excess=float(slope - 1),
            rounding=float(square * near**2),
        )

    def _rounding(self, positions: Floats) -> Floats:
        near, window, _, _ = self._mixture
        if not near:
            return np.zeros_like(positions)
        return self._uneven(positions, self.cells - window)
