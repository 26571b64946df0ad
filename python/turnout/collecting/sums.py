"""Exact sums of participation probabilities and of their inverses.

All are fixed-point integers, so that tallies merged in any order are exactly equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array, Floats, Unsigned
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

_DESIGN_UNIT = 2.0**-64
_WEIGHT_UNIT = 2.0**-32


@dataclass(frozen=True)
class DesignSums:
    """Sums over *all* nodes, reporting or not, in units of 2^-64.

    Parameters
    ----------
    probability
        The sum of the participation probabilities.
    probability_squared
        The sum of their squares.

    Examples
    --------
    >>> DesignSums.of(np.array([0.5, 1.0])).mean_received
    1.5
    """

    probability: int
    probability_squared: int

    @classmethod
    def of(cls, probabilities: Floats) -> DesignSums:
        """Add up the probabilities of all nodes."""
        return cls(*_core.design_sums(probabilities))

    @property
    def mean_received(self) -> float:
        """The expected number of reports: the sum of the probabilities."""
        return self.probability * _DESIGN_UNIT

    @property
    def sum_of_squares(self) -> float:
        """The sum of the squared probabilities."""
        return self.probability_squared * _DESIGN_UNIT

    def check_nodes(self, nodes: int) -> None:
        """Refuse sums that the probabilities of a number of nodes cannot have.

        Raises
        ------
        InvalidValueError
            If the sums are out of range.
        """
        # Each probability is from 2^-30 to 1, and its square as much smaller.
        least, most = nodes << 34, nodes << 64
        if not (least <= self.probability <= most and self.probability_squared <= self.probability):
            raise _arguments.invalid(
                f"design must be sums over {nodes} nodes of probabilities from 2^-30 to 1", self
            )

    def scaled(self, share: Fraction) -> DesignSums:
        """Return the sums of the probabilities times a share, rounded down.

        Examples
        --------
        >>> DesignSums.of(np.array([0.5, 1.0])).scaled(Fraction(1, 2)).mean_received
        0.75
        """
        return DesignSums(
            int(self.probability * share), int(self.probability_squared * share * share)
        )

    def __add__(self, other: DesignSums) -> DesignSums:
        """Add the sums of other nodes."""
        return DesignSums(
            self.probability + other.probability,
            self.probability_squared + other.probability_squared,
        )


class WeightedSums:
    """Sums of the inverse participation probabilities of the nodes that reported.

    Parameters
    ----------
    inverse
        (k + 1, 2) uint64: the sums of ``1/pi`` over the reports that support each code, and last
        over all reports, in units of 2^-32, as the low and the high 64 bits. Where reports hold
        scores, the sums of ``score / pi``, which may be negative, as two's complement.
    inverse_squared
        The same for ``1/pi^2``.

    Raises
    ------
    InvalidTypeError
        If the arrays do not have that shape and type.

    Examples
    --------
    >>> one = np.array([[2**33, 0], [0, 0], [2**33, 0]], dtype=np.uint64)
    >>> WeightedSums(one, one).inverse
    array([2., 0.])
    >>> WeightedSums(one, one).total_inverse
    2.0
    """

    def __init__(self, inverse: Unsigned, inverse_squared: Unsigned) -> None:
        for array in (inverse, inverse_squared):
            if array.dtype != np.uint64 or array.ndim != 2 or array.shape[1:] != (2,):
                raise InvalidTypeError(
                    f"weighted sums must be (k + 1, 2) arrays of uint64, got {array.dtype} of "
                    f"shape {array.shape}"
                )
        self._words = np.stack([inverse, inverse_squared])

    @cached_property
    def _sums(self) -> Floats:
        sums = _to_float(self._words)
        sums.flags.writeable = False
        return sums

    @property
    def inverse(self) -> Floats:
        """The sums of 1/pi over the reports that support each code; read-only."""
        return self._sums[0, :-1]

    @property
    def inverse_squared(self) -> Floats:
        """The sums of 1/pi^2 over the reports that support each code; read-only."""
        return self._sums[1, :-1]

    @property
    def total_inverse(self) -> float:
        """The sum of 1/pi over all reports."""
        return float(self._sums[0, -1])

    @property
    def total_inverse_squared(self) -> float:
        """The sum of 1/pi^2 over all reports."""
        return float(self._sums[1, -1])

    def _check_support(self, support: Array, received: int) -> None:
        """Refuse sums that a number of reports cannot have.

        Raises
        ------
        InvalidValueError
            If the sums are impossible: every weight is at least 1.
        """
        first, second = self._sums
        reports = np.append(support, [received]).astype(np.float64)
        fits = (reports <= first * (1 + 1e-12)) & (first <= second * (1 + 1e-9))
        fits &= (reports > 0) | (second == 0)
        # What supports a code is some of all reports.
        fits &= (first <= first[-1] * (1 + 1e-12)) & (second <= second[-1] * (1 + 1e-12))
        if support.dtype.kind == "i":
            # Scores, which may be negative: only the totals are weights of at least 1.
            fits[:-1] = True
        if not fits.all():
            code = int(np.flatnonzero(~fits)[0])
            place = f"at code {code}" if code < support.size else "in all"
            raise InvalidValueError(
                f"weights do not fit support {place}: {reports[code]:.0f} reports, weights of "
                f"at least 1 that add up to {first[code]:g}, their squares to {second[code]:g}; "
                f"over all {received} reports to {first[-1]:g} and {second[-1]:g}"
            )

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self._words[0]) - 1

    def __add__(self, other: WeightedSums) -> WeightedSums:
        """Add the sums of other reports."""
        total = self._words + other._words
        total[..., 1] += total[..., 0] < self._words[..., 0]
        return WeightedSums(*total)

    def __eq__(self, other: object) -> bool:
        """Compare the exact integers."""
        return isinstance(other, WeightedSums) and np.array_equal(self._words, other._words)

    def __hash__(self) -> int:
        """Hash of the exact integers."""
        return hash(self._words.tobytes())

    def to_bytes(self) -> bytes:
        """Write both arrays, little-endian."""
        return self._words.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, size: int) -> WeightedSums:
        """Read what :meth:`to_bytes` wrote for a domain of ``size`` codes.

        Raises
        ------
        CorruptDataError
            If the length does not fit.
        """
        length = 32 * (size + 1)
        if len(data) != length:
            raise CorruptDataError(f"expected {length} bytes of weights, got {len(data)}")
        return cls(*np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(2, size + 1, 2))


def _to_float(halves: Unsigned) -> Floats:
    low, high = halves[..., 0], halves[..., 1]
    # Two's complement: sums of scores may be negative.
    negative = (high >> np.uint64(63)) == 1
    high = np.where(negative, ~high + (low == 0), high)
    low = np.where(negative, ~low + np.uint64(1), low)
    wide = high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    return np.where(negative, -wide, wide) * _WEIGHT_UNIT
