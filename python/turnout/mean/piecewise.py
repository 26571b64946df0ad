"""The piecewise mechanism for means."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from turnout._types import Floats
from turnout.mean.law import SecondMoment
from turnout.mean.mechanism import GridMechanism


class Piecewise(GridMechanism):
    """Report a cell of a fine grid, near the value with high probability.

    ``G`` cells; a window of ``w`` neighbouring ones, the place of which is linear in the value, up
    to an exact random rounding; every cell of the window is more likely than every other by the
    factor ``e^eps`` or a little less, as whole numbers of 64-bit words. The variance is within
    1e-4 of the continuous mechanism's ``t^2 / (e^(eps/2) - 1) + (e^(eps/2) + 3) /
    (3 (e^(eps/2) - 1)^2)``. In ``d`` dimensions a report is about ``k = max(1, min(d, floor(eps /
    2.5)))`` coordinates chosen at random, each with ``eps / k``.

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
    (ICDE 2019), algorithms 2 and 4. Their reports are real numbers; as floating-point numbers their
    last digits would depend on the value. With ``h`` the probability of a report from the window
    alone, the scale is ``1 / (h (G - w))`` and ``E[t_hat^2] = scale^2 [h (w^2 - 1) + (1 - h)
    (G^2 - 1)] / 3 + t^2 / h``, plus at most ``1 / (h (G - w)^2)`` for the rounding.

    Examples
    --------
    >>> mechanism = Piecewise(4.0)
    >>> float((mechanism.variance([1.0]) * 10).round(3)[0])
    2.414
    >>> Piecewise(10.0, dimensions=20).sampled
    4
    """

    name = "piecewise"

    @property
    def window(self) -> int:
        """How many cells are near the value."""
        return self._law[0]

    @property
    def _law(self) -> tuple[int, int]:
        law = self._core.law
        return law if law is not None else (1, 0)  # never None for this mechanism

    @property
    def _near(self) -> Fraction:
        """The probability of a report from the window alone."""
        return 1 - Fraction(self._law[1], 2**64)

    @cached_property
    def scale(self) -> Fraction:
        """What makes ``2 cell - (cells - 1)`` an unbiased estimate on the scale of [-1, 1]."""
        return 1 / (self._near * (self.cells - self.window))

    @cached_property
    def second_moment(self) -> SecondMoment:
        """The second moment of this estimate of one coordinate."""
        near, cells, window = self._near, self.cells, self.window
        inside = near * (window**2 - 1) + (1 - near) * (cells**2 - 1)
        return SecondMoment(
            constant=float(self.scale**2 * inside / 3),
            excess=float(1 / near - 1),
            rounding=float(1 / (near * (cells - window) ** 2)),
        )

    def _rounding(self, positions: Floats) -> Floats:
        return self._uneven(positions, self.cells - self.window)
