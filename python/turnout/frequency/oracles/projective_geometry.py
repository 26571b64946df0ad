"""Projective geometry response: nearly the least variance with one short integer a report."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout.domain import Domain
from turnout.frequency.oracle import FrequencyOracle


class ProjectiveGeometryResponse(FrequencyOracle):
    """Report a point that is likelier to lie in the hyperplane of the answer.

    A report is one of the ``K = (r^t - 1) / (r - 1)`` points of the projective space of ``t``
    coordinates over the field of ``r`` elements. Each answer has a hyperplane of
    ``(r^(t-1) - 1) / (r - 1)`` points, and any two meet in ``(r^(t-2) - 1) / (r - 1)``. A node
    reports each point of its answer's hyperplane with a weight of ``e^eps`` and each other point
    with a weight of one.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, at most ``2^31 - 1``, or their number ``k``: then the codes ``0 .. k - 1`` are
        the answers.
    field_size
        The prime ``r``. By default the prime of smallest variance among those that need at most
        ``2^20`` points, or 16 times as many points as there are answers; it is mostly close to
        ``e^eps + 1``. The number of coordinates is the least, from two, with ``K >= k``.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If epsilon is out of range, or so small (below 2^-32 or so) that reports would say nothing;
        if the size of the field is not a prime, needs 2^31 points or more, or is far too small for
        epsilon.

    Notes
    -----
    Feldman, Nelson, Nguyen, Talwar, "Private frequency estimation via projective geometry" (2022).
    Two coordinates give direct encoding, whatever the field. With more coordinates, for some three
    answers, a point in the hyperplanes of two is in that of the third. So pairs of answers are not
    alike, and :func:`turnout.ordered` needs the reports.

    The table shows for which domains it is best: the exact variance of a rare answer's frequency
    times the number of reports, and the size of a report in bits:

    ======= ======= ========================= ================ =============== ==================
    k       epsilon this one                  subset selection local hashing   Hadamard response
    ======= ======= ========================= ================ =============== ==================
    100     0.5     15.55, 7 bits (r = 3)     15.34, 100 bits  15.82, 64 bits  16.67, 7 bits
    100     1       3.690, 7 bits (r = 3)     3.590            3.692           4.683
    100     2       0.7121, 8 bits (r = 11)   0.6899           0.7246          1.724
    100     4       0.0538, 7 bits (r = 101)  0.0531           0.0760          1.076
    1000    1       3.761, 11 bits (r = 3)    3.673, 1000 bits 3.692, 64 bits  4.683, 10 bits
    1000    4       0.0753, 12 bits (r = 53)  0.0739           0.0760          1.076
    100,000 1       3.770, 19 bits (r = 3)    3.683            3.692, 64 bits  4.683, 17 bits
    100,000 4       0.0761, 18 bits (r = 53)  0.0760           0.0760          1.076
    ======= ======= ========================= ================ =============== ==================

    The variance is within 4 % of that of subset selection in all these cases, and so is that of
    local hashing except for small domains at a large epsilon. A report is as short as that of
    Hadamard response. Once the reports are counted, the time of a tally depends on the number of
    points, not of reports: below 1 ms for 1000 answers and some 20 ms for 100,000 on two cores.
    Local hashing checks every report once for each answer. So use it from about ``3 e^eps + 2``
    answers on, where direct encoding is no longer best, if reports are many and must be short.
    Hadamard response makes reports three to seven times as fast and is nearly as good up to an
    epsilon of 0.5.

    Examples
    --------
    >>> oracle = ProjectiveGeometryResponse(epsilon=1.5, domain=100)
    >>> oracle.field_size, oracle.report_bits
    (5, 8)
    >>> p, q = oracle.support_probabilities
    >>> round(p, 4), round(q, 4)
    (0.5264, 0.1966)
    """

    name = "projective_geometry_response"

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        field_size: int | None = None,
    ) -> None:
        super().__init__(epsilon, domain)
        size = self._domain.size
        asked = _arguments.optional_integer("field_size", field_size, least=2, most=2**31 - 1)
        self._field_size, points = _core.projective_space(self._epsilon, size, asked)
        kernel: Any = _core.ProjectiveGeometry32
        if points <= 2**8:
            kernel = _core.ProjectiveGeometry8
        elif points <= 2**16:
            kernel = _core.ProjectiveGeometry16
        self._core = kernel(self._epsilon, size, self._field_size)

    @property
    def field_size(self) -> int:
        """The number of elements of the field: ``r``."""
        return self._field_size

    @property
    def dimensions(self) -> int:
        """The number of coordinates of a point: ``t``."""
        return int(self._core.dimensions)

    @property
    def _report_count(self) -> int:
        """The number of distinct reports: ``K``."""
        return int(self._core.points[0])

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: ceil(log2 K)."""
        return (self._report_count - 1).bit_length()

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds a report."""
        return np.min_scalar_type(self._report_count - 1)

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {"field_size": self._field_size}
