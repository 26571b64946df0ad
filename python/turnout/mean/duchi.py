"""Duchi's mechanism for means."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

from turnout.mean.law import SecondMoment
from turnout.mean.mechanism import MeanMechanism


class Duchi(MeanMechanism):
    """Report one bit for every coordinate.

    In one dimension the upper of two cells with a probability between ``1 / (e^eps + 1)`` and
    ``e^eps / (e^eps + 1)``, linear in the value. In ``d`` dimensions every coordinate is first
    rounded at random to -1 or 1; the report is one of the 2^d corners, more likely by the factor
    ``e^eps`` if it agrees with these in more than half of the coordinates. The smallest worst-case
    variance for small epsilon; it does not vanish as epsilon grows: :class:`Piecewise` is better
    above 1.29 or so.

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
    Duchi, Jordan, Wainwright, "Minimax optimal procedures for locally private estimation" (2018);
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy"
    (ICDE 2019), algorithms 1 and 3. Algorithm 3 as printed lets corners that agree in exactly half
    of the coordinates belong to both sides: for even ``d`` its likelihood ratio is ``e^eps + 1``,
    above the promised ``e^eps``. Here ties count as disagreement, with the factor that makes this
    unbiased: Nguyen et al., "Collecting and analyzing data from smart device users with local
    differential privacy" (2016).

    Examples
    --------
    >>> Duchi(1.0).scale.limit_denominator(1000)
    Fraction(1861, 860)
    >>> Duchi(1.0, dimensions=2).variance([[0.0, 0.0]]).round(1)
    array([[11.1, 11.1]])
    """

    name = "duchi"

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: one for each coordinate."""
        return self.dimensions

    @cached_property
    def scale(self) -> Fraction:
        """The size of each coordinate of an unbiased estimate, exactly.

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
    def second_moment(self) -> SecondMoment:
        """The second moment: the square of the scale, whatever the value."""
        return SecondMoment(float(self.scale**2), -1.0, 0.0)
