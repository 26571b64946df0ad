"""Estimates with intervals, and guarantees, for results that Janus made noisy."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Integers
from turnout._values import settle
from turnout.accounting.guarantee import Guarantee
from turnout.accounting.noisy_sums import NoisySums
from turnout.bounds import Bounds
from turnout.distributed.noise import LaplaceLaw
from turnout.distributed.noised import noised_estimation, noised_means
from turnout.domain import Domain, domain_of
from turnout.errors import ImplausibleSumsError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.mean.estimate import MeanEstimate

#: The orders of the fields Field64 and Field128 of Prio3. Half of one is far above every sum, and
#: far below every sum that noise made negative.
_FIELDS = (2**32 * 4294967295 + 1, 2**66 * 4611686018427387897 + 1)

#: What floating point counts.
_LARGEST_SUM = 2**53

_MOST_REPORTS, _MOST_AGGREGATORS = 2**40, 254

#: How often an honest result is refused at most.
_CHANCE = 1e-6


class _Law(LaplaceLaw):
    """The noise of all aggregators on one sum: nobody here draws it, so it may be wider."""

    largest: ClassVar[float] = 1e12


@dataclasses.dataclass(frozen=True)
class JanusTask:
    """A task of Janus with noise: the estimates and the guarantee of its results.

    Janus, the aggregator of the Distributed Aggregation Protocol (DAP), can add noise to its
    aggregates with its strategy ``PureDpDiscreteLaplace``, for Prio3Histogram and Prio3SumVec. The
    collector receives the noisy sums, but learns nothing about their error. This class knows the
    law of that noise.

    Parameters
    ----------
    epsilon
        The budget of the task: the number under ``epsilon`` in its ``dp_strategy``.
    domain
        What the task measures. For Prio3Histogram, the buckets: a :class:`turnout.Domain`, a list
        of labels or their number. For Prio3SumVec, the bounds of each number and the count of
        numbers: ``Bounds(0, max_measurement, dimensions=length)``.
    aggregators
        The number of aggregators that add independent noise; 2 in DAP.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    The law of the noise comes from the source of the crate ``prio`` 0.18.1 (``flp/types/dp.rs`` and
    ``dp/distributions.rs``), and 400,000 values that it drew agree with it. Each aggregator adds to
    each sum an independent discrete Laplace variable of the scale ``sensitivity / epsilon``. Its
    sensitivity is the L1 sensitivity to replacing one report: 2 for a histogram, which is exact,
    and ``(2**bits - 1) * length`` for a vector of sums, with the bits of the largest number. That
    is exact if the largest number is ``2**bits - 1``, and otherwise up to twice the necessary
    value; :attr:`guarantee` states the smaller loss. Adding or removing one report costs half of
    epsilon in a histogram, since one bucket changes. In a vector of sums it costs as much as a
    replacement. Janus adds no noise for Prio3Count, Prio3Sum and Prio3MultihotCountVec.

    A leader of Janus as of August 2026 (commit 4ab28a36) adds its noise before it asks the helper.
    If the helper defers its answer, the leader reads its sums again and adds no noise to them
    (``collection_job_driver.rs``). Then only the helper's noise protects. Intervals still hold, and
    are wider than necessary. The helper of Janus itself never defers.

    Examples
    --------
    >>> task = JanusTask(1.0, ["red", "green", "blue"])
    >>> estimate = task.estimate([512, 297, 188], reports=1000)
    >>> low, high = estimate.interval(0.95).low, estimate.interval(0.95).high
    >>> low.round(3), high.round(3)
    (array([0.504, 0.289, 0.18 ]), array([0.52 , 0.305, 0.196]))
    >>> task.guarantee.mechanism.epsilon(0.0), task.guarantee.mechanism.epsilon(0.0, "add")
    (1.0, 0.5)

    Hours of the day, of 500 people, as sums of 5 bits:

    >>> import turnout as tn
    >>> hours = JanusTask(0.5, tn.Bounds(0, 31))
    >>> hours.estimate([6123], reports=500)
    MeanEstimate('noised', 12.25 ± 0.25)
    """

    epsilon: float
    domain: Domain | Bounds
    aggregators: int = 2

    def __post_init__(self) -> None:
        """Check the fields."""
        epsilon = _arguments.number("epsilon", self.epsilon)
        if not 0.0 < epsilon < math.inf:
            raise _arguments.invalid("epsilon must be a finite number above 0", self.epsilon)
        domain = self.domain
        if not isinstance(domain, Bounds):
            domain = domain_of("domain", domain, least=1)
        elif domain.low != 0.0 or not domain.high.is_integer():
            raise _arguments.invalid(
                "domain must be Bounds from 0 to a whole number, the largest one, for sums",
                domain,
            )
        aggregators = _arguments.integer(
            "aggregators", self.aggregators, least=1, most=_MOST_AGGREGATORS
        )
        settle(self, epsilon=epsilon, domain=domain, aggregators=aggregators)
        # It refuses noise that is too wide.
        _ = self._law

    @property
    def _largest(self) -> int | None:
        return int(self.domain.high) if isinstance(self.domain, Bounds) else None

    @property
    def _law(self) -> _Law:
        """The law of all noise on one sum."""
        sensitivity = 2
        if self._largest is not None:
            # Not the largest number, but the largest that has as many bits.
            sensitivity = (2 ** self._largest.bit_length() - 1) * self.domain.size
        return _Law(sensitivity / self.epsilon, 1, self.aggregators)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of a result: what it protects, against whom, and its assumptions.

        Its ``mechanism`` is the noise of one aggregator. For a vector of sums it is that of one
        sum, and :meth:`turnout.accounting.Mechanism.compose` with their number gives all of them.
        Its epsilon is the budget, or less where the noise is more than that needs.
        """
        sentences = [
            f"at least one of the {self.aggregators} aggregators does not share what it sees, its "
            "own noise included, with the others",
            "that aggregator adds its noise, with this budget, to what it sends",
            "every user sends one report",
            "no report is in another result: each result costs the budget again",
        ]
        mechanism = NoisySums("discrete_laplace", self._law.parameter, largest=self._largest)
        return Guarantee(mechanism, "replace", self.epsilon, 0.0, tuple(sentences))

    def estimate(self, sums: npt.ArrayLike, reports: int) -> FrequencyEstimate | MeanEstimate:
        """Estimate frequencies or means from the result of a collection.

        Parameters
        ----------
        sums
            The aggregate result: one whole number for each bucket or coordinate. You may pass sums
            that noise made negative as the collector received them, as elements of the field.
        reports
            The number of reports in the result; the collector receives this number.

        Returns
        -------
        FrequencyEstimate or MeanEstimate
            The frequencies of the buckets, or the means of the numbers, among these reports, with
            exact variances, and intervals that hold for any number of reports.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one whole number for each bucket or coordinate.
        ImplausibleSumsError
            If such sums occur at most once in a million results. Then the budget, the number of
            reports or aggregators, or the order of magnitude of the sums is wrong.
        """
        count = _arguments.integer("reports", reports, least=1, most=_MOST_REPORTS)
        numbers = self._decoded(sums)
        law = self._law
        if self._largest is None:
            self._check(numbers, count, 1)
            found = noised_estimation(numbers, count, law)
            return FrequencyEstimate._from_estimation(self, "noised", count, count, found)
        self._check(numbers, count, self._largest)
        means = noised_means(numbers, count, law, self._largest)
        return MeanEstimate(self, "noised", count, count, means)

    def _decoded(self, sums: Any) -> Integers:
        """Check the sums, and decode negative ones."""
        size = self.domain.size
        listed = _arguments.items("sums", sums, "a whole number for each bucket or coordinate")
        if len(listed) != size:
            raise InvalidValueError(f"sums must have {size} numbers, got {len(listed)}")
        numbers = []
        for place, given in enumerate(listed):
            number = _arguments.integer(f"sums[{place}]", given, least=-_LARGEST_SUM)
            for order in _FIELDS:
                if order // 2 < number < order:
                    number -= order
                    break
            if not -_LARGEST_SUM <= number <= _LARGEST_SUM:
                raise _arguments.invalid(
                    f"sums[{place}] must be a sum or an element of Field64 or Field128", given
                )
            numbers.append(number)
        return np.array(numbers, dtype=np.int64)

    def _check(self, sums: Integers, reports: int, largest: int) -> None:
        """Refuse sums that are almost impossible."""
        law = self._law
        reach = law.tail_bound(0.5 * _CHANCE / sums.size)
        low, high = -reach, reports * largest + reach
        wrong = np.flatnonzero((sums < low) | (sums > high))
        reason = ""
        if wrong.size:
            first = int(wrong[0])
            reason = f"sums[{first}] is {sums[first]}, and should be between {low} and {high}"
        elif self._largest is None:
            # Every report is in one bucket.
            every = dataclasses.replace(law, contributors=sums.size * law.contributors)
            reach = every.tail_bound(0.5 * _CHANCE)
            if abs(int(sums.sum()) - reports) > reach:
                reason = (
                    f"the sums add up to {int(sums.sum())}, and should to between "
                    f"{reports - reach} and {reports + reach}"
                )
        if reason:
            raise ImplausibleSumsError(
                f"{reason}, except for one result in a million. Check that reports, "
                "epsilon and domain belong to this task"
            )
