"""The base class of oracles that hash answers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.accounting.variation import ToldApart, VariationRatio, difference_up
from turnout.errors import InvalidValueError
from turnout.frequency.oracle import FrequencyOracle

#: What the functions are drawn from that all reports share: the same in every collection.
FUNCTIONS: Final = 0


class HashedOracle(FrequencyOracle):
    """Base class of oracles that report about the bucket of a hashed answer.

    A hash function evaluates a polynomial of the code modulo a prime and maps the residue to one of
    ``g`` buckets. Buckets are intervals whose lengths differ by at most one. Functions that come
    with a report are lines, and functions that all reports share are parabolas, with uniform
    coefficients. So the buckets of two (of three) different answers are exactly independent
    (Carter, Wegman, "Universal classes of hash functions", 1979).
    """

    #: How many functions all reports share; None if each has its own.
    _shared: int | None

    def _refuse_counting(self) -> None:
        """Refuse counting by a database if no group-by over reports can do it.

        Raises
        ------
        InvalidValueError
            If every report has its own hash function, or many bits beside it.
        """
        name = type(self).__name__
        if self._shared is None:
            raise InvalidValueError(
                f"{name} has a hash function of its own in every report, so counts do not "
                "show which answers the reports support: use oracle.tally(reports)"
            )
        if self.report_shape:
            raise InvalidValueError(
                f"{name} has a hash function and many bits in a report, so hardly two "
                "reports are equal, and counts are not shorter: use oracle.tally(reports)"
            )

    def _collisions(self, answers: int) -> Fraction:
        """Return the probability that a number of different answers have the same bucket."""
        modulus, buckets = self._core.modulus, self._core.buckets
        short, long = divmod(modulus, buckets)
        equal = long * (short + 1) ** answers + (buckets - long) * short**answers
        return Fraction(equal, modulus**answers)

    @property
    def variation_ratio(self) -> VariationRatio:
        """The variation ratio of a report, for :class:`turnout.accounting.Shuffled`.

        It is that of every pure oracle, unless all reports share functions. Then two answers may be
        in different buckets in all functions, and the laws of their reports are further apart than
        ``p* - q*``, which is an average over the functions. The factor is ``1 / (1 - c)`` with the
        probability ``c`` of a collision.
        """
        if self._shared is None:
            return super().variation_ratio
        ratio = self.realized_ratio
        distance = difference_up(*self.support_probabilities) / (1 - self._collisions(2))
        return VariationRatio(ratio, min(distance, (ratio - 1) / (ratio + 1)), ratio)

    @property
    def _told_apart(self) -> ToldApart | None:
        """The sets of a pure oracle; None with functions that all reports share."""
        return super()._told_apart if self._shared is None else None

    def pool_variance(self, true_counts: Any) -> Floats:
        """Compute the variance of counts that comes from the choice of shared hash functions.

        Answers that collide more often than expected in the functions of a pool are confused in
        every report. This error does not average out over reports, nor over collections with the
        same functions. Its mean over all pools is zero. :func:`turnout.estimator_variance`,
        standard errors and intervals include it.

        Parameters
        ----------
        true_counts
            The number of nodes that hold each answer, in the order of the domain.

        Returns
        -------
        numpy.ndarray
            One variance of the estimated count for each answer, float64, in squared nodes; zero if
            every report has its own function.

        Raises
        ------
        InvalidValueError
            If a count is negative or not a whole number, or there is not one for each answer.
        InvalidTypeError
            If ``true_counts`` is not a sequence of numbers.

        Notes
        -----
        The reports of two nodes that do not hold answer ``i`` are independent given the functions;
        over the functions their support of ``i`` has the covariance ``(p* - q*)^2 / (1 - c)^2``
        times ``(c - c^2) / m`` if the two hold the same answer and ``(c_3 - c^2) / m`` if not,
        where ``m`` is the number of functions, ``c`` the probability that two answers collide and
        ``c_3`` that three do. So the variance is, with the true counts ``F``,

        ``[(c - c^2) sum F_x (F_x - 1) + (c_3 - c^2) sum F_x F_y] / (m (1 - c)^2)``,

        over ``x != i``, and ``y`` other than both. Since ``c_3`` is almost ``c^2``, this is nearly
        ``sum F_x^2 / (m (g - 1))``. It is exact for the estimators ``"g"``, ``"c_hat"`` and
        ``"horvitz_thompson"`` whatever the participation, and for ``"hajek"`` if everyone takes
        part; otherwise Hajek's is slightly smaller.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.OptimizedLocalHashing(1.0, 100, hashes=1000)
        >>> error = oracle.pool_variance([5000] + [50] * 99) ** 0.5
        >>> error.round().tolist()[:3]
        [9.0, 92.0, 92.0]
        """
        counts = _arguments.counts("true_counts", true_counts, self.domain.size)
        held = counts.astype(np.float64)
        squares = held * held
        variances: Floats = self._shared_variance(held.sum() - held, squares.sum() - squares)
        return variances

    def _shared_variance(self, total: Any, squares: Any) -> Any:
        """Return the variance from the sums of the other answers' counts and of their squares."""
        if self._shared is None:
            return 0.0 * total
        two, three = self._collisions(2), self._collisions(3)
        scale = self._shared * (1 - two) ** 2
        same, other = float((two - two**2) / scale), float((three - two**2) / scale)
        return same * (squares - total) + other * (total**2 - squares)
